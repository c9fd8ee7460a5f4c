"""One arm for a whole batch of rounds."""

from typing import NamedTuple

import jax.numpy as jnp
from jax import Array
from jax.tree_util import Partial

from sfmab_jax.base import Round, Sampling
from sfmab_jax.checks import check_batch
from sfmab_jax.numerics.arms import is_arm

__all__ = ["in_batches"]


class BatchState(NamedTuple):
    place: Array  # of the round in its batch, 0, 1, ... [] int32
    arm: Array  # the last arm [] int32


def in_batches(length: Array | int) -> Sampling:
    """Draw an arm from the play at the start of each batch of rounds, and keep it in the batch.

    p'_t = p_t in the first round of a batch, in the others [i = i_{t-1}]: the player changes arms
    T / length times at most. Goes with `sf.estimation.in_batches` of the same length. Arora, Dekel
    and Tewari, "Online bandit learning against an adaptive adversary" (2012).

    Args:
      length: of a batch, in rounds.

    >>> scheme = in_batches(2)
    >>> state = BatchState(jnp.int32(1), jnp.int32(2))
    >>> print(scheme.probabilities(state, jnp.array([0.5, 0.25, 0.25])))
    [0. 0. 1.]
    """
    check_batch(length)
    return Sampling(
        init=Partial(_init),
        probabilities=Partial(_probabilities),
        update=Partial(_update, length),
    )


def _init(num_arms, dtype, loss_unit) -> BatchState:
    return BatchState(jnp.zeros((), jnp.int32), jnp.zeros((), jnp.int32))


def _probabilities(state: BatchState, play: Array) -> Array:
    kept = is_arm(state.arm, play).astype(play.dtype)
    return jnp.where(state.place == 0, play, kept)


def _update(length, state: BatchState, seen: Round) -> BatchState:
    is_last = state.place + 1 >= jnp.asarray(length).astype(jnp.int32)
    return BatchState(jnp.where(is_last, 0, state.place + 1), seen.arm.astype(jnp.int32))
