"""Losses drawn anew in every round."""

import jax
import numpy as np
from jax import Array

from sfmab_jax.checks import check_integer, check_number
from sfmab_jax.losses.base import MOST_ARMS, LossSequence, from_function

__all__ = ["gaussian", "uniform"]


def uniform(num_arms: int = 10, gap: float = 0.2, scale: float = 1.0) -> LossSequence:
    """l_t(i) = scale * (U_t(i) - gap [i = 0]) with U_t(i) uniform on [-1, 1], all independent.

    Arm 0 is the best, by scale * gap a round.

    >>> uniform(num_arms=4).num_arms
    4
    """
    advantage = _advantage(num_arms, gap, scale)
    return from_function(
        _uniform, num_arms, scale * (1 + abs(gap)), "uniform", advantage=advantage, scale=scale
    )


def gaussian(num_arms: int = 10, gap: float = 0.5, scale: float = 1.0) -> LossSequence:
    """l_t(i) = scale * (Z_t(i) - gap [i = 0]) with Z_t(i) standard normal, all independent.

    Losses have either sign and no bound. Arm 0 is the best, by scale * gap a round.

    >>> gaussian(num_arms=4, scale=1e6).magnitude
    4500000.0
    """
    advantage = _advantage(num_arms, gap, scale)
    return from_function(
        _gaussian, num_arms, scale * (4 + abs(gap)), "gaussian", advantage=advantage, scale=scale
    )


def _advantage(num_arms: int, gap: float, scale: float) -> np.ndarray:
    """gap [i = 0] as a vector, after checking the parameters of both families."""
    check_integer("num_arms", num_arms, 1, MOST_ARMS)
    check_number("gap", gap)
    check_number("scale", scale, positive=True)
    return np.float32(gap) * (np.arange(num_arms) == 0)


def _uniform(key: Array, round_: Array, *, advantage: Array, scale: Array) -> Array:
    draws = jax.random.uniform(key, advantage.shape, advantage.dtype, minval=-1, maxval=1)
    return scale * (draws - advantage)


def _gaussian(key: Array, round_: Array, *, advantage: Array, scale: Array) -> Array:
    draws = jax.random.normal(key, advantage.shape, advantage.dtype)
    return scale * (draws - advantage)
