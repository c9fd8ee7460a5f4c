"""Importance weighting within a range that doubles until it holds the losses: Exp3Light-A.

The range is a pure function of the losses seen; `full_information.restarting_ftrl` keeps the same
one in a state of its own.
"""

from typing import NamedTuple

import jax.numpy as jnp
from jax import Array
from jax.tree_util import Partial

from sfmab_jax.base import Estimation, Round
from sfmab_jax.estimation.importance import on_arm
from sfmab_jax.numerics.arms import pick
from sfmab_jax.numerics.bits import inverse_power

__all__ = ["RangeState", "next_range", "range_init", "within_range"]


class RangeState(NamedTuple):
    top: Array  # B_{t+1} []
    unit: Array  # one unit of loss []


def within_range() -> Estimation:
    """Weigh a loss within the range so far, and drop one above: Gagliolo and Schmidhuber (2011).

    l~_t(i) = l_t(i) [i = i_t] [l_t(i) <= B_t] / p'_t(i), of mean l_t(i) [l_t(i) <= B_t]. B_1 = 1 in
    units of loss; a loss above B_t raises it to the next power of two, 2^ceil(log2(l_t(i_t))).
    """
    return Estimation(
        init=Partial(range_init),
        estimate=Partial(_estimate),
        update=Partial(_update),
        weigh=Partial(_weigh),
    )


def range_init(num_arms, dtype, loss_unit) -> RangeState:
    return RangeState(loss_unit, loss_unit)


def next_range(state: RangeState, loss: Array) -> RangeState:
    """Return the range after a round with this loss []."""
    # Above 2^126 there is no power of two whose inverse is a number.
    ratio = jnp.clip(loss / state.unit, 1, 2.0**126)
    lower = 1 / inverse_power(ratio)
    power = jnp.where(ratio > lower, 2 * lower, lower)
    return RangeState(jnp.where(loss > state.top, power * state.unit, state.top), state.unit)


def _estimate(state: RangeState, play, probabilities, arm, loss) -> Array:
    return on_arm(_weigh(state, play, probabilities, arm, loss), arm, play)


def _weigh(state: RangeState, play, probabilities, arm, loss) -> Array:
    return jnp.where(loss > state.top, 0, loss / pick(probabilities, arm))


def _update(state: RangeState, seen: Round) -> RangeState:
    return next_range(state, seen.loss)
