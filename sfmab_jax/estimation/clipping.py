"""Clipping of losses from below, by the size of what came before: UMAB-G.

The size is a pure function of the losses seen; `full_information.clipped_ftrl` keeps the same one
in a state of its own.
"""

from typing import NamedTuple

import jax.numpy as jnp
from jax import Array
from jax.tree_util import Partial

from sfmab_jax.base import Estimation, Round
from sfmab_jax.estimation.importance import on_arm
from sfmab_jax.numerics.arms import pick

__all__ = ["ClippingState", "clip_below", "clipped_below", "clipping_init", "next_clipping"]


class ClippingState(NamedTuple):
    size: Array  # C_{t+1} []


def clipped_below() -> Estimation:
    """Clip the loss from below, then weigh it: UMAB-G, Chen and Zhang (2023).

    l~_t(i) = max(l_t(i), -2 C_t) [i = i_t] / p'_t(i), of mean max(l_t(i), -2 C_t), where C_1 = 1 in
    units of loss and C_{t+1} = max(C_t, -max(l_t(i_t), -2 C_t)): at most twice C_t, so that a
    large gain is believed step by step. Positive losses are neither clipped nor do they change C.
    """
    return Estimation(
        init=Partial(clipping_init),
        estimate=Partial(_estimate),
        update=Partial(_update),
        weigh=Partial(_weigh),
    )


def clipping_init(num_arms, dtype, loss_unit) -> ClippingState:
    return ClippingState(loss_unit)


def clip_below(state: ClippingState, loss: Array) -> Array:
    """Return max(l, -2 C_t) []."""
    return jnp.maximum(loss, -2 * state.size)


def next_clipping(state: ClippingState, clipped: Array) -> ClippingState:
    """Return the size after a round whose loss was ``clipped`` [] by `clip_below`."""
    return ClippingState(jnp.maximum(state.size, -clipped))


def _estimate(state: ClippingState, play, probabilities, arm, loss) -> Array:
    return on_arm(_weigh(state, play, probabilities, arm, loss), arm, play)


def _weigh(state: ClippingState, play, probabilities, arm, loss) -> Array:
    return clip_below(state, loss) / pick(probabilities, arm)


def _update(state: ClippingState, seen: Round) -> ClippingState:
    return next_clipping(state, clip_below(state, seen.loss))
