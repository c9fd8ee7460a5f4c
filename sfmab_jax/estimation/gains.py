"""Importance-weighted gains G - l, as the first bandit papers have them, with an optional bonus."""

from collections.abc import Callable
from typing import NamedTuple

import jax.numpy as jnp
from jax import Array
from jax.tree_util import Partial

from sfmab_jax.base import Estimation, Round, as_partial
from sfmab_jax.checks import check_number
from sfmab_jax.estimation.importance import on_arm
from sfmab_jax.floating import pick

__all__ = ["gain_weighted"]


class GainState(NamedTuple):
    scale: Array  # G in the losses' unit []
    bonus: Array  # b G in the losses' unit []


def gain_weighted(
    scale: Array | float = 1.0, bonus: Callable[[int], Array] | None = None
) -> Estimation:
    """l~_t(i) = -((G - l_t(i)) [i = i_t] + b G) / p'_t(i) with b = bonus(n), 0 by default.

    Minus an estimate of the gain G - l_t(i), so that it serves where losses do. The mean is
    l_t(i) - G - b G / p'_t(i): the bonus favours rare arms, with high probability by more than
    the estimate errs (Exp3.P).
    """
    check_number("scale", scale, positive=True)
    return Estimation(
        init=Partial(_init, scale, as_partial(_none if bonus is None else bonus)),
        estimate=Partial(_estimate),
        update=Partial(_keep),
    )


def _none(num_arms: int) -> float:
    return 0.0


def _init(scale, bonus, num_arms, dtype, loss_unit) -> GainState:
    largest = jnp.asarray(scale, dtype) * loss_unit
    return GainState(largest, jnp.asarray(bonus(num_arms), dtype) * largest)


def _estimate(state: GainState, play, probabilities, arm, loss) -> Array:
    gain = (state.scale - loss) / pick(probabilities, arm)
    return -(on_arm(gain, arm, play) + state.bonus / probabilities)


def _keep(state: GainState, seen: Round) -> GainState:
    return state
