"""Sets of loss tables that an adversary may choose from.

A constraint projects a table [T, n] onto its set, and stretches a table of numbers between 0 and 1
to its border, so that the built-in adversaries get the same freedom as the search.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax import Array
from jax.tree_util import Partial

from sfmab_jax.checks import check_integer, check_number

__all__ = ["Constraint", "box", "profile", "sparse", "sup_norm", "total_l1", "total_l2"]


class Constraint(NamedTuple):
    """A set of loss tables.

    Attributes:
      project: ``project(table [T, n]) -> [T, n]``, a nearest point of the set.
      fit: ``fit(table [T, n] in [0, 1]) -> tables``: the table, and where losses of both signs are
        allowed its centred form 2 l - 1, each stretched to the border of the set.
      size: ``size(rounds, arms)``, of a typical loss; steps are measured in it.
      label: the set in words.
    """

    project: Callable[[Array], Array]
    fit: Callable[[np.ndarray], list[np.ndarray]]
    size: Callable[[int, int], float]
    label: str


def sup_norm(largest: float = 1.0) -> Constraint:
    """|l_t(i)| <= G: Theorem 1's L_inf."""
    check_number("largest", largest, positive=True)
    return Constraint(
        project=Partial(_within, -largest, largest),
        fit=lambda table: [largest * signed for signed in _signs(table)],
        size=lambda rounds, arms: largest,
        label=f"|l| <= {largest:g}",
    )


def box(lowest: float = 0.0, highest: float = 1.0) -> Constraint:
    """lowest <= l_t(i) <= highest: the range that strategies of known range are told."""
    check_number("lowest", lowest)
    check_number("highest", highest)
    if not lowest < highest:
        raise ValueError(f"the box is from {lowest} to {highest}; give lowest < highest")
    return Constraint(
        project=Partial(_within, lowest, highest),
        fit=lambda table: [lowest + (highest - lowest) * table],
        size=lambda rounds, arms: highest - lowest,
        label=f"{lowest:g} <= l <= {highest:g}",
    )


def total_l2(budget: float) -> Constraint:
    """sum_t ||l_t||_2^2 <= L_2."""
    check_number("budget", budget, positive=True)
    radius = float(np.sqrt(budget))
    return Constraint(
        project=Partial(_l2_ball, radius),
        fit=lambda table: [_stretch(x, radius, float(np.linalg.norm(x))) for x in _signs(table)],
        size=lambda rounds, arms: radius / np.sqrt(rounds * arms),
        label=f"L_2 <= {budget:g}",
    )


def total_l1(budget: float) -> Constraint:
    """sum_t ||l_t||_1 <= L_1."""
    check_number("budget", budget, positive=True)
    return Constraint(
        project=Partial(_l1_ball, budget),
        fit=lambda table: [_stretch(x, budget, np.abs(x).sum()) for x in _signs(table)],
        size=lambda rounds, arms: budget / (rounds * arms),
        label=f"L_1 <= {budget:g}",
    )


def sparse(arms_per_round: int, largest: float = 1.0) -> Constraint:
    """At most s losses of a round differ from 0, and |l_t(i)| <= G. Not convex."""
    s = check_integer("arms_per_round", arms_per_round, 1, 2**24)
    check_number("largest", largest, positive=True)
    # Two partials: the number of arms is a size, so it must not be traced.
    project = Partial(partial(_sparsest, s), largest)

    def fit(table: np.ndarray) -> list[np.ndarray]:
        return [np.asarray(project(jnp.asarray(largest * x))) for x in _signs(table)]

    label = f"{s} non-zero a round, |l| <= {largest:g}"
    return Constraint(project, fit, lambda rounds, arms: largest, label)


def profile(scales: Sequence[float] | np.ndarray) -> Constraint:
    """|l_t(i)| <= g_t, the scales g [T] given: losses whose size changes over time."""
    limits = np.asarray(scales, np.float64)
    if limits.ndim != 1 or not (np.isfinite(limits) & (limits >= 0)).all() or not limits.any():
        raise ValueError(f"scales are {scales!r}; give a list of sizes, one for each round")
    column = limits[:, None]
    return Constraint(
        project=Partial(_within, -column, column),
        fit=lambda table: [column * x for x in _signs(table)],
        size=lambda rounds, arms: float(limits.mean()),
        label=f"|l_t| <= g_t, from {limits.min():g} to {limits.max():g}",
    )


def _signs(table: np.ndarray) -> list[np.ndarray]:
    return [table, 2 * table - 1]


def _stretch(table: np.ndarray, radius: float, norm: float) -> np.ndarray:
    return table * (radius / norm) if norm > 0 else table


def _within(lowest, highest, table: Array) -> Array:
    low, high = (jnp.broadcast_to(x, table.shape) for x in (lowest, highest))
    low, high = low.astype(table.dtype), high.astype(table.dtype)
    return optax.projections.projection_box(table, low, high)


def _l2_ball(radius, table: Array) -> Array:
    return optax.projections.projection_l2_ball(table, jnp.asarray(radius, table.dtype))


def _l1_ball(radius, table: Array) -> Array:
    with jax.numpy_dtype_promotion("standard"):  # optax divides by integers
        return optax.projections.projection_l1_ball(table, jnp.asarray(radius, table.dtype))


def _sparsest(arms_per_round: int, largest, table: Array) -> Array:
    """Keep the s largest of every row, of equal ones the first."""
    if arms_per_round < table.shape[1]:
        order = jnp.argsort(-jnp.abs(table), axis=1, stable=True)
        rank = jnp.argsort(order, axis=1)
        table = jnp.where(rank < arms_per_round, table, jnp.zeros_like(table))
    return _within(-largest, largest, table)
