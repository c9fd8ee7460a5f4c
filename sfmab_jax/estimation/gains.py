"""Importance-weighted gains G - l, as in the first bandit papers, with an optional bonus."""

from collections.abc import Callable
from typing import NamedTuple

import jax.numpy as jnp
from jax import Array
from jax.tree_util import Partial

from sfmab_jax.base import Estimation, as_partial, keep_state
from sfmab_jax.checks import check_functions, check_positive
from sfmab_jax.estimation.importance import on_arm
from sfmab_jax.numerics.arms import pick

__all__ = ["gain_weighted"]


class GainState(NamedTuple):
    scale: Array  # G in the losses' unit []
    bonus: Array  # b G in the losses' unit []


def gain_weighted(
    scale: Array | float = 1.0, bonus: Callable[[int], Array] | None = None
) -> Estimation:
    """Weigh gains in place of losses: l~_t(i) = -((G - l_t(i)) [i = i_t] + b G) / p'_t(i).

    Minus an estimate of the gain G - l_t(i), so that it can take the place of losses. Its mean is
    l_t(i) - G - b G / p'_t(i): the bonus favours rare arms, with high probability by more than the
    error of the estimate. Exp3 and Exp3.P of Auer et al. (2002).

    Args:
      scale: G, the largest loss.
      bonus: a function of the number of arms n that returns b; None means b = 0.
    """
    check_positive(scale=scale)
    if bonus is not None:
        check_functions(bonus=bonus)
    return Estimation(
        init=Partial(_init, scale, as_partial(_no_bonus if bonus is None else bonus)),
        estimate=Partial(_estimate),
        update=Partial(keep_state),
    )


def _no_bonus(num_arms: int) -> float:
    return 0.0


def _init(scale, bonus, num_arms, dtype, loss_unit) -> GainState:
    largest = jnp.asarray(scale, dtype) * loss_unit
    return GainState(largest, jnp.asarray(bonus(num_arms), dtype) * largest)


def _estimate(state: GainState, play, probabilities, arm, loss) -> Array:
    gain = (state.scale - loss) / pick(probabilities, arm)
    return -(on_arm(gain, arm, play) + state.bonus / probabilities)
