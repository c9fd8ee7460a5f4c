"""Losses drawn anew in every round, with light tails."""

import jax
import jax.numpy as jnp
from jax import Array

from sfmab_jax.checks import check_number, check_probability
from sfmab_jax.losses.base import LossSequence, best_arm, from_function
from sfmab_jax.losses.combinators import scaled

__all__ = ["bernoulli", "bernoulli_draw", "gaussian", "uniform"]


def bernoulli(
    num_arms: int = 10, gap: float = 0.1, mean: float = 0.5, scale: float = 1.0
) -> LossSequence:
    """l_t(i) = scale with probability mean - gap [i = 0], else 0; all independent.

    Arm 0 is the best, by scale * gap a round.

    >>> bernoulli(num_arms=4).num_arms
    4
    """
    best = best_arm(num_arms)
    check_number("gap", gap)
    check_probability("mean", mean)
    if not 0 <= mean - gap <= 1:
        raise ValueError(f"gap is {gap}; mean - gap = {mean - gap:g} must lie between 0 and 1")
    means = (mean - gap * best).astype(best.dtype)
    return scaled(
        from_function(_bernoulli, num_arms, name="bernoulli", mean=_given_mean, means=means), scale
    )


def uniform(num_arms: int = 10, gap: float = 0.2, scale: float = 1.0) -> LossSequence:
    """l_t(i) = scale * (U_t(i) - gap [i = 0]) with U_t(i) uniform on [-1, 1], all independent.

    Arm 0 is the best, by scale * gap a round.

    >>> uniform(num_arms=4).num_arms
    4
    """
    best = best_arm(num_arms)
    check_number("gap", gap)
    means = -(gap * best).astype(best.dtype)
    return scaled(
        from_function(_uniform, num_arms, 1 + abs(gap), "uniform", _given_mean, means=means), scale
    )


def gaussian(num_arms: int = 10, gap: float = 0.5, scale: float = 1.0) -> LossSequence:
    """l_t(i) = scale * (Z_t(i) - gap [i = 0]) with Z_t(i) standard normal, all independent.

    Losses have either sign and no bound. Arm 0 is the best, by scale * gap a round.

    >>> gaussian(num_arms=4, scale=1e6).magnitude
    4500000.0
    """
    best = best_arm(num_arms)
    check_number("gap", gap)
    means = -(gap * best).astype(best.dtype)
    return scaled(
        from_function(_gaussian, num_arms, 4 + abs(gap), "gaussian", _given_mean, means=means),
        scale,
    )


def bernoulli_draw(key: Array, means: Array) -> Array:
    """Independent losses of 0 and 1 with these means, [n] -> [n]."""
    return (jax.random.uniform(key, means.shape, means.dtype) < means).astype(means.dtype)


def _given_mean(round_: Array, *, means: Array) -> Array:
    return jnp.asarray(means)


def _bernoulli(key: Array, round_: Array, *, means: Array) -> Array:
    return bernoulli_draw(key, means)


def _uniform(key: Array, round_: Array, *, means: Array) -> Array:
    return means + jax.random.uniform(key, means.shape, means.dtype, minval=-1, maxval=1)


def _gaussian(key: Array, round_: Array, *, means: Array) -> Array:
    return means + jax.random.normal(key, means.shape, means.dtype)
