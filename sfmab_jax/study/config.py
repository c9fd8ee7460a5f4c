"""Study files: read TOML text into a checked `StudyFile`.

    title = "Both options of the paper"
    rounds = 10000               # a list makes a grid: rounds = [1000, 10000]
    arms = 10                    # likewise
    seeds = 256                  # each with its own losses, unless sequences = ... says how many
    [strategies.adaptive]        # a label of your own
    strategy = "scale_free"      # from `sfmab list strategies`; by default the label
    beta = [0.1, 1.0]            # a parameter; a list makes a grid
    [strategies.mine]
    strategy = "mymodule:mine"   # a function of mymodule.py beside the study file
    [losses.dense]
    family = "uniform"           # from `sfmab list losses`; by default the label
    scale = [1e-6, 1, 1e6]
    [losses.recorded]
    family = "from_file"         # also an import path, as of strategies
    path = "recorded.csv"        # relative to the study file

Nothing is built or played here: see `cells`.
"""

import itertools
import math
import re
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sfmab_jax.strategies import STRATEGIES
from sfmab_jax.study.factories import FAMILIES, Factory, find_factory
from sfmab_jax.study.parameters import check_parameter, fail, parameters_of, suggest
from sfmab_jax.study.settings import QUICK, SETTINGS

__all__ = ["EXAMPLES", "Choice", "StudyFile", "find_study", "parse_study", "read_study"]

EXAMPLES = Path(__file__).parent / "examples"
MOST_CELLS = 10_000
_LARGEST_FILE = 2**20
_LABEL = re.compile(r"[A-Za-z0-9][A-Za-z0-9 _.+()=-]{0,39}")
# Parameters that come from the cell, not from the tables of strategies and losses.
_FROM_CELL = ("num_arms",)


@dataclass(frozen=True)
class Choice:
    """A strategy or a loss family with a grid of values for its parameters."""

    label: str
    name: str
    factory: Factory
    grid: dict[str, tuple[Any, ...]]

    @property
    def size(self) -> int:
        """Number of members of the grid."""
        return math.prod(map(len, self.grid.values()))

    def members(self) -> list[dict[str, Any]]:
        """Return the parameters of each member of the grid."""
        return [dict(zip(self.grid, values)) for values in itertools.product(*self.grid.values())]


@dataclass(frozen=True)
class StudyFile:
    """What a study file asks for, checked."""

    source: str
    text: str
    title: str
    question: str
    strategies: tuple[Choice, ...]
    losses: tuple[Choice, ...]
    arms: tuple[int, ...]
    rounds: tuple[int, ...]
    seeds: int
    sequences: int | None  # None: each seed of a random family has its own
    seed: int
    checkpoints: int | tuple[int, ...]
    dtype: str
    certificates: bool
    pseudo_regret: bool
    output: str
    quick: bool = False

    @property
    def folder(self) -> Path:
        """The folder of the file, where a user's modules and losses are."""
        return Path(self.source).resolve().parent


def find_study(name: str) -> Path:
    """Return the path of a study file, or of a ready study by its name."""
    path = Path(name)
    ready = {example.stem: example for example in sorted(EXAMPLES.glob("*.toml"))}
    if path.exists():
        return path
    if name in ready:
        return ready[name]
    raise ValueError(f"{name}: there is no such file, and no ready study; {suggest(name, ready)}")


def read_study(name: str, quick: bool = False) -> StudyFile:
    """Read and check a study file, or a ready study by its name.

    Args:
      name: a path, or the name of a ready study.
      quick: whether to read its quick form.
    """
    path = find_study(name)
    try:
        with open(path, "rb") as file:
            raw = file.read(_LARGEST_FILE + 1)
        text = raw.decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(f"{path}: cannot be read as text: {error}") from None
    if len(raw) > _LARGEST_FILE:
        raise ValueError(f"{path}: has more than {_LARGEST_FILE} bytes; is it a study file?")
    return parse_study(text, str(path), quick)


def parse_study(text: str, source: str, quick: bool = False) -> StudyFile:
    """Return the study in TOML text; ``source`` names the file in messages."""
    try:
        table = tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{source}: not TOML: {error}") from None
    _check_keys(source, "", table, (*SETTINGS, "strategies", "losses", "quick"))
    overrides = table.pop("quick", {})
    if not isinstance(overrides, dict):
        fail(source, "quick", overrides, "give a table, [quick]")
    _check_keys(source, "quick.", overrides, QUICK)
    for key, value in overrides.items():  # checked whether or not it is used
        SETTINGS[key][0](source, f"quick.{key}", value)
    if quick:
        table = table | _quick_defaults(table) | overrides
    settings = {
        key: check(source, key, table[key]) if key in table else default
        for key, (check, default) in SETTINGS.items()
    }
    strategies = _read_choices(source, "strategies", "strategy", table, STRATEGIES)
    losses = _read_choices(source, "losses", "family", table, FAMILIES)
    study = StudyFile(source, text, strategies=strategies, losses=losses, quick=quick, **settings)
    _check_size(study)
    return study


def _quick_defaults(table: dict[str, Any]) -> dict[str, Any]:
    """Return the quick form of a file without [quick]: at most 32 seeds and 500 rounds."""
    most = {"seeds": 32, "rounds": 500}
    values = {key: table.get(key, limit) for key, limit in most.items()}
    return {key: min(n, most[key]) if type(n) is int else n for key, n in values.items()}


def _check_keys(source: str, prefix: str, table: Mapping[str, Any], known) -> None:
    for key, value in table.items():
        if key not in known:
            fail(source, f"{prefix}{key}", value, f"unknown key; {suggest(key, known)}")


def _check_size(study: StudyFile) -> None:
    cells = sum(choice.size for choice in study.strategies)
    cells *= sum(choice.size for choice in study.losses) * len(study.arms) * len(study.rounds)
    if cells > MOST_CELLS:
        raise ValueError(f"{study.source}: the grids make {cells} cells; {MOST_CELLS} at most")


def _read_choices(
    source: str, section: str, name_key: str, table: dict[str, Any], known: Mapping[str, Callable]
) -> tuple[Choice, ...]:
    """Return the strategies or loss families of a study file.

    Args:
      source: the file, for messages.
      section: "strategies" or "losses".
      name_key: the key with the name in ``known``, if that is not the label.
      table: the whole file.
      known: factories by name, beside those of import paths.
    """
    folder = Path(source).resolve().parent
    tables = table.get(section, {})
    if not isinstance(tables, dict) or not tables:
        fail(source, section, tables, f"give at least one table, [{section}.name]")
    choices = []
    for label, parameters in tables.items():
        key = f"{section}.{label}"
        if not _LABEL.fullmatch(label):
            fail(source, section, label, "a label has up to 40 letters, digits or _ . + - ( ) =")
        if not isinstance(parameters, dict):
            fail(source, key, parameters, f"give a table, [{key}]")
        name = parameters.get(name_key, label)
        if not isinstance(name, str):
            fail(source, f"{key}.{name_key}", name, f"unknown; {suggest(str(name), known)}")
        try:
            factory = find_factory(name, known, folder)
        except ValueError as error:
            fail(source, f"{key}.{name_key}", name, str(error))
        values = {k: v for k, v in parameters.items() if k != name_key}
        grid = _read_grid(source, key, values, factory.make, section == "strategies", name_key)
        choices.append(Choice(label, name, factory, grid))
    return tuple(choices)


def _read_grid(
    source: str, key: str, parameters: dict, factory: Callable, is_strategy: bool, name_key: str
) -> dict[str, tuple[Any, ...]]:
    """Return the values of each parameter; a list is a grid, references start with @."""
    known = {k: p for k, p in parameters_of(factory).items() if k not in _FROM_CELL}
    _check_keys(source, f"{key}.", parameters, (*known, name_key))
    grid = {}
    for name, value in parameters.items():
        place = f"{key}.{name}"
        values = value if isinstance(value, list) else [value]
        if not values:
            fail(source, place, value, "the grid is empty; give at least one value")
        checked = [
            member
            if is_strategy and isinstance(member, str) and member.startswith("@")
            else check_parameter(source, place, member, known[name].annotation)
            for member in values
        ]
        if len(set(checked)) < len(checked):
            fail(source, place, value, "a value is there twice")
        grid[name] = tuple(checked)
    return grid
