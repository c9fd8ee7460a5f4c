"""The best sequence of arms with at most m switches: a dynamic programme over the rounds.

Let V_t(i, j) be the least total loss in the first t rounds of a sequence of arms that ends in arm i
and changes arms at most j times. It was in arm i before, or came from another with one switch less:

    V_t(i, j) = min( V_{t-1}(i, j), min_k V_{t-1}(k, j-1) ) + l_t(i),    V_0 = 0.

So n (m + 1) numbers are carried, whatever the rounds. They are sums in two words, and compared by
both.
"""

from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from sfmab_jax.numerics.double_word import Sum, add
from sfmab_jax.numerics.hints import keep

__all__ = ["MOST_SWITCHES", "add_to_paths", "begin_paths", "least_path"]

# The work and the memory of a round grow with the switches.
MOST_SWITCHES = 64


def begin_paths(*, num_arms: int, switches: int, num_sequences: int, dtype) -> Sum:
    """Return V_0 [n, m + 1, sequences], in host memory."""

    def zeros() -> Any:
        return np.zeros((num_arms, switches + 1, num_sequences), dtype)

    return Sum(zeros(), zeros())


def add_to_paths(paths: Sum, loss: Array) -> Sum:
    """Return V_t [n, m + 1] of one sequence from V_{t-1} and l_t [n]."""
    shape = paths.value.shape
    stay = paths
    if shape[1] > 1:
        best = _least(paths)
        none = Sum(jnp.full(1, jnp.inf, loss.dtype), jnp.zeros(1, loss.dtype))
        # Column j has the best with one switch fewer; without switches there is none.
        fewer = Sum(*(jnp.concatenate([x, word[:-1]]) for x, word in zip(none, best, strict=True)))
        come = Sum(*(jnp.broadcast_to(word[None], shape) for word in fewer))
        is_less = (come.value < paths.value) | (
            (come.value == paths.value) & (come.error < paths.error)
        )
        stay = Sum(*(jnp.where(is_less, *words) for words in zip(come, paths, strict=True)))
    return Sum(*keep(*add(stay, jnp.broadcast_to(loss[:, None], shape))))


def least_path(paths: Sum) -> Sum:
    """Return min_i V_t(i, m) of one sequence, in two words []."""
    return Sum(*(lax.index_in_dim(word, -1, keepdims=False) for word in _least(paths)))


def _least(paths: Sum) -> Sum:
    """Return the least over the arms, [n, m + 1] -> [m + 1]: as in `measure` of the single arms."""
    lowest = jnp.min(paths.value, axis=0)
    ahead = paths.value - jnp.broadcast_to(lowest[None], paths.value.shape)
    return Sum(lowest, jnp.min(ahead + paths.error, axis=0))
