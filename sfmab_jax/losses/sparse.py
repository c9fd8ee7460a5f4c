"""Sparse losses of large size: the paper's motivating case (section 1.2)."""

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from sfmab_jax.checks import check_integer, check_number, check_probability
from sfmab_jax.losses.base import MOST_ARMS, LossSequence, from_function

__all__ = ["sparse"]


def sparse(
    num_arms: int = 10,
    rate: float = 0.1,
    size: float = 100.0,
    gap: float = 0.5,
    scale: float = 1.0,
) -> LossSequence:
    """With probability ``rate`` a round has one loss of size G = scale * size; else all are 0.

    The arm that has it is uniform, the loss is +G or -G with equal chance, except that arm 0's is
    -G with probability (1 + gap) / 2. So L_inf = G while L_2 is about rate G^2 T, far below
    n T L_inf^2. Arm 0 is the best, by rate * gap * G / n a round.

    >>> sparse(num_arms=4).magnitude
    100.0
    """
    check_integer("num_arms", num_arms, 1, MOST_ARMS)
    check_probability("rate", rate)
    check_probability("gap", gap)
    check_number("size", size, positive=True)
    check_number("scale", scale, positive=True)
    largest = scale * size
    bias = np.float32(gap) * (np.arange(num_arms) == 0)
    return from_function(_sparse, num_arms, largest, "sparse", bias=bias, rate=rate, size=largest)


def _sparse(key: Array, round_: Array, *, bias: Array, rate: Array, size: Array) -> Array:
    happens_key, arm_key, sign_key = jax.random.split(key, 3)
    happens = jax.random.uniform(happens_key, dtype=bias.dtype) < rate
    hit = jnp.arange(len(bias), dtype=jnp.int32) == jax.random.randint(
        arm_key, (), 0, len(bias), jnp.int32
    )
    positive = jax.random.uniform(sign_key, dtype=bias.dtype) < (1 - bias) / 2
    return jnp.where(happens & hit, jnp.where(positive, size, -size), 0).astype(bias.dtype)
