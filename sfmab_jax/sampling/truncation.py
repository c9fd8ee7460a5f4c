"""Arms of small probability are not played at all: Green."""

from collections.abc import Callable
from typing import NamedTuple

import jax.numpy as jnp
from jax import Array
from jax.tree_util import Partial

from sfmab_jax.base import Round, Sampling, as_partial
from sfmab_jax.floating import arm_sum

__all__ = ["truncated"]


class TruncatedState(NamedTuple):
    threshold: Array  # []


def truncated(threshold: Callable[[int], Array]) -> Sampling:
    """p'_t(i) proportional to p_t(i) [p_t(i) >= threshold(n)]. Allenberg et al. (2006).

    A threshold above 1/n is taken as 1/n, so that the likeliest arm is never lost.
    """
    return Sampling(
        init=Partial(_init, as_partial(threshold)),
        probabilities=Partial(_probabilities),
        update=Partial(_keep),
    )


def _init(threshold, num_arms, dtype, loss_unit) -> TruncatedState:
    # A little below 1/n, as rounding can put all arms below it.
    most = (1 - 8 * float(jnp.finfo(dtype).eps)) / num_arms
    return TruncatedState(jnp.minimum(jnp.asarray(threshold(num_arms), dtype), most))


def _probabilities(state: TruncatedState, play: Array) -> Array:
    kept = jnp.where(play >= state.threshold, play, jnp.zeros_like(play))
    return kept / arm_sum(kept)


def _keep(state: TruncatedState, seen: Round) -> TruncatedState:
    return state
