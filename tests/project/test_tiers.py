"""The strategies that stand for all in the default tests of the engine."""

from pathlib import Path
from typing import Any

import pytest
from jax.tree_util import Partial
from tiers import ARCHETYPES

import sfmab_jax as sf
from sfmab_jax.strategies import STRATEGIES

pytestmark = pytest.mark.quick

ROOMS = ("sampling", "estimation", "full_information", "potentials")
PACKAGE = Path(sf.__file__).parent


def modules_of(value: Any) -> set[str]:
    """The modules of all functions in a strategy, however deep."""
    if isinstance(value, Partial):
        inner = [*value.args, *value.keywords.values()]
        return {value.func.__module__}.union(*map(modules_of, inner))
    if isinstance(value, tuple):
        return set().union(*map(modules_of, value))
    return {value.__module__} if callable(value) else set()


def parts_of(names) -> set[str]:
    modules = set().union(*(modules_of(STRATEGIES[name]()) for name in names))
    rooms = tuple(f"sfmab_jax.{room}." for room in ROOMS)
    return {module for module in modules if module.startswith(rooms)}


def test_every_part_of_a_strategy_is_in_an_archetype():
    assert parts_of(ARCHETYPES) == parts_of(STRATEGIES)


def test_every_part_is_in_a_strategy():
    """So that nothing escapes the first test; made potentials and bases have tests of their own."""
    files = {path for room in ROOMS for path in (PACKAGE / room).glob("*.py")}
    apart = {"__init__", "base", "general"}
    parts = {
        f"sfmab_jax.{path.parent.name}.{path.stem}" for path in files if path.stem not in apart
    }
    assert parts_of(STRATEGIES) == parts
