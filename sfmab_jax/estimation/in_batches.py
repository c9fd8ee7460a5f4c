"""Importance weighting of the mean loss of a batch of rounds, all with one arm."""

from typing import NamedTuple

import jax.numpy as jnp
from jax import Array
from jax.tree_util import Partial

from sfmab_jax.base import Estimation, Round
from sfmab_jax.checks import check_batch
from sfmab_jax.estimation.importance import on_arm
from sfmab_jax.numerics.arms import pick

__all__ = ["in_batches"]


class BatchLossState(NamedTuple):
    place: Array  # of the round in its batch, 0, 1, ... [] int32
    total: Array  # of the losses of the batch so far []
    chance: Array  # of its arm, when it was drawn []


def in_batches(length: Array | int) -> Estimation:
    """Weigh the mean loss of a batch by the probability with which its arm was drawn.

    At the end of a batch l~_t(i) = mean_s l_s(i) [i = i_t] / p'(i), the mean over its rounds s and
    p' the law of its first; in the other rounds l~_t = 0. Goes with `sf.sampling.in_batches` of the
    same length. Arora, Dekel and Tewari (2012).

    Args:
      length: of a batch, in rounds.
    """
    check_batch(length)
    return Estimation(
        init=Partial(_init),
        estimate=Partial(_estimate, length),
        update=Partial(_update, length),
        weigh=Partial(_weigh, length),
    )


def _init(num_arms, dtype, loss_unit) -> BatchLossState:
    zero = jnp.zeros((), dtype)
    return BatchLossState(jnp.zeros((), jnp.int32), zero, zero)


def _seen(state: BatchLossState, probabilities: Array, arm: Array, loss: Array) -> BatchLossState:
    """Return the batch with the present round."""
    is_first = state.place == 0
    total = jnp.where(is_first, loss, state.total + loss)
    chance = jnp.where(is_first, pick(probabilities, arm), state.chance)
    return BatchLossState(state.place, total, chance)


def _weigh(length, state, play: Array, probabilities: Array, arm: Array, loss: Array) -> Array:
    _, total, chance = _seen(state, probabilities, arm, loss)
    mean = total / jnp.asarray(length).astype(total.dtype)
    return jnp.where(_is_last(length, state), mean / chance, 0)


def _is_last(length, state: BatchLossState) -> Array:
    return state.place + 1 >= jnp.asarray(length).astype(jnp.int32)


def _estimate(length, state, play: Array, probabilities: Array, arm: Array, loss: Array) -> Array:
    return on_arm(_weigh(length, state, play, probabilities, arm, loss), arm, play)


def _update(length, state: BatchLossState, seen: Round) -> BatchLossState:
    _, total, chance = _seen(state, seen.probabilities, seen.arm, seen.loss)
    place = jnp.where(_is_last(length, state), 0, state.place + 1)
    return BatchLossState(place, total, chance)
