"""Objectives of the adversary: regret, regret over a bound, or regret less another strategy's.

An objective is (R(l) - R'(l)) / B(l): the regret of the strategy, less that of a rival if there is
one, over a bound if there is one.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.tree_util import Partial

from sfmab_jax.base import Bandit, as_partial, with_static_functions
from sfmab_jax.results.norms import Norms
from sfmab_jax.theory.bounds import Exploration, corrected

__all__ = ["Objective", "regret", "regret_difference", "regret_over_bound"]


class Objective(NamedTuple):
    """(R(l) - R'(l)) / B(l).

    Attributes:
      rival: the strategy with regret R'; None for R' = 0.
      bound: B as a function of the `Norms`; None for B = 1.
    """

    rival: Bandit | None
    bound: Callable[[Norms], Array] | None


def regret() -> Objective:
    """R(l) = E sum_t l_t.p'_t - min_i sum_t l_t(i), the expected regret."""
    return Objective(None, None)


def regret_difference(rival: Bandit) -> Objective:
    """R(l) - R'(l): where the rival strategy does better, by how much? The comparator cancels."""
    if not isinstance(rival, Bandit):
        raise ValueError(f"rival is {rival!r}; give a Bandit, such as sf.strategies.exp3_ix()")
    return Objective(with_static_functions(rival), None)


def regret_over_bound(bound: Exploration | Callable[[Norms], Any]) -> Objective:
    """R(l) / B(l): how tight is a bound that depends on the losses?

    Args:
      bound: "adaptive" or "decaying" for the corrected bound of Algorithm 1, or a function of the
        `Norms` of the table, whose entries are [1, 1], written with `jax.numpy`.
    """
    if callable(bound):
        return Objective(None, as_partial(bound))
    if bound not in ("adaptive", "decaying"):
        raise ValueError(f"bound is {bound!r}; choose 'adaptive', 'decaying' or give a function")
    function = {"adaptive": _adaptive_bound, "decaying": _decaying_bound}[bound]
    return Objective(None, Partial(function))


def table_norms(table: Array) -> Norms:
    """Norms of one table [T, n] at its end, differentiable; every entry is [1, 1]."""
    totals = jnp.sum(table, axis=0)
    values = (
        jnp.sum(jnp.abs(table)),
        jnp.sum(table**2),
        jnp.max(jnp.abs(table)),
        jnp.max(jnp.abs(totals)),
        jnp.min(totals),
        jnp.mean(totals),
        jnp.min(table),
    )
    num_rounds, num_arms = table.shape
    entries: Any = [value.reshape(1, 1) for value in values]
    return Norms(num_arms, np.array([num_rounds]), *entries)


def bounds_and_slopes(objective: Objective, tables: Array, unit: float) -> tuple[Array, Array]:
    """B of every table [R] and its derivative [R, T, n], for losses counted in ``unit``."""

    def bound(table: Array) -> Array:
        assert objective.bound is not None
        return objective.bound(table_norms(table * unit)).reshape(()) / unit

    return jax.vmap(jax.value_and_grad(bound))(tables)


def divisor(objective: Objective, table: np.ndarray) -> float:
    """B(l) of one table [T, n]; 1 where there is no bound."""
    if objective.bound is None:
        return 1.0
    return float(np.asarray(objective.bound(table_norms(jnp.asarray(table)))).reshape(()))


def _adaptive_bound(norms: Norms) -> Array:
    return corrected(norms, "adaptive")


def _decaying_bound(norms: Norms) -> Array:
    return corrected(norms, "decaying")
