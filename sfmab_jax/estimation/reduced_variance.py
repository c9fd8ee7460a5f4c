"""Importance weighting of the distance to a baseline: Tsallis-INF's reduced variance."""

from collections.abc import Callable
from typing import NamedTuple

import jax.numpy as jnp
from jax import Array
from jax.tree_util import Partial

from sfmab_jax.base import Estimation, Round, as_partial
from sfmab_jax.checks import check_functions, check_positive
from sfmab_jax.estimation.importance import on_arm
from sfmab_jax.numerics.arms import pick

__all__ = ["reduced_variance"]


class ReducedVarianceState(NamedTuple):
    num_rounds: Array  # t [] int32
    baseline: Array  # G/2 in the losses' unit []


def reduced_variance(
    threshold: Callable[[Array, int], Array], scale: Array | float = 1.0
) -> Estimation:
    """Weigh the distance to a baseline: Tsallis-INF, Zimmert and Seldin (2021), section 3.

    l~_t(i) = (l_t(i) - B_t(i)) [i = i_t] / p'_t(i) + B_t(i) for **every** arm i, where
    B_t(i) = (G/2) [p'_t(i) >= h_t]. Unbiased, as B_t does not depend on the arm drawn; without the
    last term for the arms not played it would not be.

    Args:
      threshold: a function of the number of rounds played t - 1 = 0, 1, ... (a float []) and the
        number of arms n that returns h_t []; eta_t^2 in the paper.
      scale: G, for losses in [0, G].
    """
    check_functions(threshold=threshold)
    check_positive(scale=scale)
    return Estimation(
        init=Partial(_init, scale),
        estimate=Partial(_estimate, as_partial(threshold)),
        update=Partial(_update),
    )


def _init(scale, num_arms, dtype, loss_unit) -> ReducedVarianceState:
    baseline = jnp.asarray(scale, dtype) * loss_unit / 2
    return ReducedVarianceState(jnp.zeros((), jnp.int32), baseline)


def _estimate(threshold, state: ReducedVarianceState, play, probabilities, arm, loss) -> Array:
    least = jnp.asarray(threshold(state.num_rounds.astype(play.dtype), len(play)), play.dtype)
    baseline = jnp.where(probabilities >= least, state.baseline, jnp.zeros_like(play))
    weighted = (loss - pick(baseline, arm)) / pick(probabilities, arm)
    return on_arm(weighted, arm, play) + baseline


def _update(state: ReducedVarianceState, seen: Round) -> ReducedVarianceState:
    return ReducedVarianceState(state.num_rounds + 1, state.baseline)
