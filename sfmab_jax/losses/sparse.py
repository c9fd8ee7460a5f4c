"""Sparse losses of large size: the paper's motivating case (section 1.2)."""

import jax
import jax.numpy as jnp
from jax import Array

from sfmab_jax.checks import check_integer, check_number, check_probability
from sfmab_jax.losses.base import LossSequence, best_arm, from_function
from sfmab_jax.losses.combinators import scaled

__all__ = ["sparse"]


def sparse(
    num_arms: int = 10,
    rate: float = 0.1,
    size: float = 100.0,
    gap: float = 0.5,
    num_nonzero: int = 1,
    scale: float = 1.0,
) -> LossSequence:
    """With probability ``rate`` a round has s losses of size G = scale * size; else all are 0.

    They fall on the s = ``num_nonzero`` arms a, a + 1, ... (mod n) from a uniform arm a on. Each
    is +G or -G with equal chance, except that arm 0's is -G with probability (1 + gap) / 2. So
    L_inf = G while L_2 is about rate s G^2 T, far below n T L_inf^2. Arm 0 is the best, by
    rate * gap * G s / n a round.

    >>> sparse(num_arms=4).magnitude
    100.0
    """
    best = best_arm(num_arms)
    check_probability("rate", rate)
    check_probability("gap", gap)
    check_number("size", size, positive=True)
    check_integer("num_nonzero", num_nonzero, 1, num_arms)
    return scaled(
        from_function(
            _sparse,
            num_arms,
            size,
            "sparse",
            _sparse_mean,
            bias=(gap * best).astype(best.dtype),
            rate=rate,
            size=size,
            num_nonzero=num_nonzero,
        ),
        scale,
    )


def _sparse(key: Array, round_: Array, *, bias, rate, size, num_nonzero) -> Array:
    num_arms = len(bias)
    happens_key, arm_key, sign_key = jax.random.split(key, 3)
    happens = jax.random.uniform(happens_key, dtype=bias.dtype) < rate
    first = jax.random.randint(arm_key, (), 0, num_arms, jnp.int32)
    hit = (jnp.arange(num_arms, dtype=jnp.int32) - first) % num_arms < num_nonzero
    positive = jax.random.uniform(sign_key, bias.shape, bias.dtype) < (1 - bias) / 2
    return jnp.where(happens & hit, jnp.where(positive, size, -size), 0).astype(bias.dtype)


def _sparse_mean(round_: Array, *, bias, rate, size, num_nonzero) -> Array:
    return -rate * size * num_nonzero / len(bias) * bias
