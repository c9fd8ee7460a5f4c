"""Operations on a vector over the arms: its sum, one of its entries, its leader."""

import chex
import jax.numpy as jnp
from jax import Array

from sfmab_jax.numerics.double_word import Sum, add

__all__ = ["add_at", "arm_sum", "block_factor", "is_arm", "leading_arm", "least_total", "pick"]

# Above this many arms a gather is cheaper than a pass over the arms.
_ONE_HOT_ARMS = 64


def arm_sum(x: Array) -> Array:
    """Sum over the arms, ``[n] -> []``.

    The terms are added in a tree, by XLA or, in lanes, by the transform, so that the rounding
    error grows like log n: for 100,000 float32 terms 2e-7, against up to 6e-4 for a running sum.
    The tests hold it to that.
    """
    chex.assert_rank(x, 1)
    return jnp.sum(x)


def is_arm(arm: Array, like: Array) -> Array:
    """Return a mask [n], n the length of ``like``, that is True at one arm only."""
    return jnp.arange(like.shape[0], dtype=jnp.int32) == arm.astype(jnp.int32)


def pick(x: Array, arm: Array) -> Array:
    """Return ``x[arm]`` for ``x`` of shape ``[n]``, exactly but for the sign of a zero.

    For few arms it is a masked sum, which stays a vector operation when it is mapped; a gather
    does not.
    """
    if x.shape[0] > _ONE_HOT_ARMS:
        return x[arm]
    # x + (-0.0) is x for every x: the masked addition is then one instruction.
    zero = -0.0 if jnp.issubdtype(x.dtype, jnp.floating) else 0
    return jnp.sum(jnp.where(is_arm(arm, x), x, jnp.full_like(x, zero)), dtype=x.dtype)


def add_at(totals: Sum, arm: Array, term: Array) -> Sum:
    """Return ``totals`` [n] with ``term`` [] added to that of one arm."""
    is_it = is_arm(arm, totals.value)
    new = add(Sum(pick(totals.value, arm), pick(totals.error, arm)), term)
    return Sum(jnp.where(is_it, new.value, totals.value), jnp.where(is_it, new.error, totals.error))


def leading_arm(scores: Array) -> Array:
    """Return an arm whose score [n] is the smallest up to rounding, int32 [].

    A compiler may round the scores differently where it finds their minimum and where it compares
    them with it, so they are not compared for equality; which of two near-equals is taken does
    not matter.
    """
    lowest = jnp.min(scores)
    slack = 8 * jnp.finfo(scores.dtype).eps * jnp.abs(lowest)
    places = jnp.arange(len(scores), dtype=jnp.int32)
    return jnp.min(jnp.where(scores <= lowest + slack, places, len(scores) - 1))


def least_total(totals: Sum) -> Array:
    """Return the first arm whose total [n] is the least, int32 [].

    Totals that differ by no more than the rounding of two words, eps^2 of the largest, are equal.
    """
    ahead = (totals.value - jnp.min(totals.value)) + totals.error
    scale = jnp.max(jnp.abs(totals.value))
    places = jnp.arange(len(ahead), dtype=jnp.int32)
    least = ahead <= jnp.min(ahead) + jnp.finfo(ahead.dtype).eps ** 2 * scale
    return jnp.min(jnp.where(least, places, len(ahead) - 1))


def block_factor(num_arms: int) -> int:
    """Return into how many parts to cut n numbers: the least divisor of n from 8 to 16, else 8.

    `draw` takes it as the length of each part instead.
    """
    divisors = [size for size in range(8, 17) if num_arms % size == 0]
    return divisors[0] if divisors else 8
