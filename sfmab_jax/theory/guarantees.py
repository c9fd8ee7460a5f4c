"""Which bound belongs to which result. Importing it lets `plotting.regret` draw them."""

from typing import Any

import jax
import numpy as np

from sfmab_jax import strategies
from sfmab_jax.base import Bandit
from sfmab_jax.results.plotting import register_bounds
from sfmab_jax.results.result import Result
from sfmab_jax.theory import bounds
from sfmab_jax.theory.textbook import TEXTBOOK

__all__ = ["exploration_of", "guarantee"]

_OPTIONS: tuple[bounds.Exploration, ...] = ("adaptive", "decaying")


def guarantee(result: Result) -> dict[str, np.ndarray]:
    """Return the bounds on the expected regret of a result by label, each [C]; {} if unknown.

    Algorithm 1 is recognised by its functions and parameters, and has its corrected and its tight
    bound. Other strategies are recognised by name, as in `textbook.TEXTBOOK`; their bounds assume
    losses in [0, L_inf], and that a strategy that needs L_inf was told it. Over several sequences
    a line is the mean of their bounds.
    """
    option = exploration_of(result)
    if option is not None:
        bound = bounds.scale_free(result.norms, option)
        return {
            f"{result.name}: bound": bound.corrected.mean(axis=0),
            f"{result.name}: tight bound": bound.tight.mean(axis=0),
        }
    if result.name in TEXTBOOK:
        norms = result.norms
        lines = TEXTBOOK[result.name](norms.num_arms, norms.rounds, norms.l_inf)
        return {f"{result.name}: bound": np.asarray(lines).mean(axis=0)}
    return {}


def exploration_of(result: Result) -> bounds.Exploration | None:
    """Return the option of Algorithm 1 that was played; None if it was another strategy.

    Results read from a file do not hold their strategy and go by the name.
    """
    for option in _OPTIONS:
        if result.bandit is None:
            if result.name in (f"scale_free {option}", f"scale_free_{option}"):
                return option
        elif _same_strategy(result.bandit, strategies.scale_free(option)):
            return option
    if result.bandit is None and result.name == "scale_free":
        return "adaptive"
    return None


def _same_strategy(one: Bandit, other: Bandit) -> bool:
    """Whether two strategies have the same functions and the same parameters."""
    structures: list[Any] = [jax.tree.structure(bandit) for bandit in (one, other)]
    leaves = zip(jax.tree.leaves(one), jax.tree.leaves(other))
    return structures[0] == structures[1] and all(np.array_equal(a, b) for a, b in leaves)


register_bounds(guarantee)
