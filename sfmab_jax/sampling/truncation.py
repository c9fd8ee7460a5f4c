"""Truncation, which never plays arms of small probability: Green."""

from collections.abc import Callable
from typing import NamedTuple

import jax.numpy as jnp
from jax import Array
from jax.tree_util import Partial

from sfmab_jax.base import Sampling, as_partial, keep_state
from sfmab_jax.checks import check_functions
from sfmab_jax.numerics.arms import arm_sum

__all__ = ["truncated"]


class TruncatedState(NamedTuple):
    threshold: Array  # []


def truncated(threshold: Callable[[int], Array]) -> Sampling:
    """Never play arms of small probability: Green, Allenberg et al. (2006).

    p'_t(i) is proportional to p_t(i) [p_t(i) >= threshold(n)].

    Args:
      threshold: a function of the number of arms n. Above 1/n it counts as 1/n, so that the
        likeliest arm is never lost.
    """
    check_functions(threshold=threshold)
    return Sampling(
        init=Partial(_init, as_partial(threshold)),
        probabilities=Partial(_probabilities),
        update=Partial(keep_state),
    )


def _init(threshold, num_arms, dtype, loss_unit) -> TruncatedState:
    # Slightly less than 1/n, as rounding can put all arms below that.
    highest = (1 - 8 * float(jnp.finfo(dtype).eps)) / num_arms
    return TruncatedState(jnp.minimum(jnp.asarray(threshold(num_arms), dtype), highest))


def _probabilities(state: TruncatedState, play: Array) -> Array:
    weights = jnp.where(play >= state.threshold, play, jnp.zeros_like(play))
    return weights / arm_sum(weights)
