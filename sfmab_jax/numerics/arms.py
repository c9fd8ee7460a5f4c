"""Operations on a vector over the arms: its sum, one of its entries, its leader."""

import chex
import jax.numpy as jnp
from jax import Array

from sfmab_jax.numerics.double_word import Sum, add

__all__ = ["add_at", "arm_sum", "block_factor", "is_arm", "leading_arm", "pick"]

# Above this many arms a gather is cheaper than a pass over the arms.
_ONE_HOT_ARMS = 64


def arm_sum(x: Array) -> Array:
    """Sum over the arms, ``[n] -> []``.

    The terms are added in a tree, by XLA or where games are lanes by the transform, so that the
    rounding error grows like log n: 2e-7 where a running float32 sum of 100,000 terms errs by up
    to 6e-4. The tests hold it to that.
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
    # x + (-0.0) is x whatever it is, so that adding it under a mask is one instruction.
    nothing = -0.0 if jnp.issubdtype(x.dtype, jnp.floating) else 0
    return jnp.sum(jnp.where(is_arm(arm, x), x, jnp.full_like(x, nothing)), dtype=x.dtype)


def add_at(totals: Sum, arm: Array, term: Array) -> Sum:
    """Return ``totals`` [n] with ``term`` [] added to that of one arm."""
    here = is_arm(arm, totals.value)
    new = add(Sum(pick(totals.value, arm), pick(totals.error, arm)), term)
    return Sum(jnp.where(here, new.value, totals.value), jnp.where(here, new.error, totals.error))


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


def block_factor(num_arms: int) -> int:
    """Return a number from 8 to 16 to cut n numbers by: a divisor of n if there is one, else 8.

    `draw` takes it as the length of a block, `engine.lanes.reductions` as the number of rows.
    """
    divisors = [size for size in range(8, 17) if num_arms % size == 0]
    return divisors[0] if divisors else 8
