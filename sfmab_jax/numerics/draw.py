"""Draw an arm whose true law is p', down to probabilities of 1e-9 in float32."""

from functools import reduce

import chex
import jax.numpy as jnp
from jax import Array, lax

from sfmab_jax.numerics import hints
from sfmab_jax.numerics.arms import block_factor, pick
from sfmab_jax.numerics.bits import whole_number
from sfmab_jax.numerics.double_word import Sum, add_sums, start_sum, two_product, two_sum

__all__ = ["draw_arm"]

# Up to this many arms the sums are unrolled into one fused loop.
_FEW = 16


def draw_arm(probabilities: Array, words: tuple[Array, Array]) -> Array:
    """Draw the arm i with C_{i-1} <= U C < C_i, C_i the running sums of p', U uniform on 46 bits.

    A float32 running sum and a 23-bit uniform give an arm of probability 1e-7 up to twice its
    due, which biases importance weighting. Here sums, uniform and comparison carry two words, so
    that every arm's law is p'(i) / sum(p') to an absolute 2^-42, and mostly 2^-44.

    Args:
      probabilities: p' [n], non-negative; divided by its own sum, which is about 1.
      words: two uint32 random words.

    Returns:
      The arm, int32 [].

    >>> law = jnp.array([0.25, 0.0, 0.75], jnp.float32)
    >>> [int(draw_arm(law, jnp.array([word, 0], jnp.uint32))) for word in (0, 2**30 - 1, 2**30)]
    [0, 0, 2]
    """
    chex.assert_rank(probabilities, 1)
    dtype = probabilities.dtype
    high = (words[0] >> 8).astype(dtype) * dtype.type(2.0**-24)
    # 46 bits in all, so that U is below 1 by more than the rounding of U C in two words.
    tail = ((words[0] & jnp.uint32(0xFF)) << 14) | (words[1] >> 18)
    # Stored, as are targets, block sums and arms below: everything that follows reads them.
    uniform = Sum(*hints.keep(high, tail.astype(dtype) * dtype.type(2.0**-46)))
    if len(probabilities) <= _FEW:
        return _draw_of_few(probabilities, uniform)
    return _draw_of_many(probabilities, uniform)


def _draw_of_few(probabilities: Array, uniform: Sum) -> Array:
    """Draw an arm from sums that are written out, one after the other.

    The sums begin at 1, which no probability exceeds, so that two subtractions give the error of
    an addition (Dekker's fast two-sum). The errors are summed apart from the values, which shortens
    the chain of dependent operations; they are below n 2^-24, and their sum is right to n^2 2^-49.
    """
    members = _numbers(probabilities)
    one = hints.opaque_one(members[0])
    sums = [start_sum(one)]
    for member in members:
        value = sums[-1].value + member
        error = member - (value - sums[-1].value)
        sums.append(Sum(value, sums[-1].error + error))
    target = _unnormalised_product(uniform, Sum(sums[-1].value - one, sums[-1].error))
    high = one + target.value
    low = (target.value - (high - one)) + target.error
    # As a float: on CPU choices between integers take longer.
    arm = jnp.zeros((), jnp.float32)
    for i, running in enumerate(sums[1:-1]):
        is_behind = running.value - high <= low - running.error
        # Rounding might carry the target past the last arm with p > 0.
        arm = jnp.where(is_behind & (members[i + 1] > 0), jnp.float32(i + 1), arm)
    return hints.keep(whole_number(arm))[0]


def _draw_of_many(probabilities: Array, uniform: Sum) -> Array:
    """Find the block of arms that holds the target, then the arm in it; maybe blocks of blocks."""
    levels = [_columns(start_sum(probabilities))]
    sums = _block_sums(levels[0])
    while len(sums.value) > _FEW:
        levels.append(_columns(sums))
        sums = _block_sums(levels[-1])
    members = [Sum(*words) for words in zip(*map(_numbers, sums))]
    index, target = _find(members, _multiply(uniform, reduce(add_sums, members)))
    for columns in reversed(levels):
        members = [Sum(*(pick(word, index) for word in column)) for column in columns]
        place, target = _find(members, target)
        index = index * len(columns) + place
    return index


def _numbers(x: Array) -> list[Array]:
    """Split [n] into n numbers, by slices: indexing would bring in operations kernels lack."""
    return [lax.squeeze(lax.slice(x, (i,), (i + 1,)), (0,)) for i in range(len(x))]


def _columns(members: Sum) -> list[Sum]:
    """Return the first, second, ... members of all blocks, [blocks] each; zeros fill the last."""
    num_members = len(members.value)
    size = block_factor(num_members)
    num_blocks = -(-num_members // size)
    blocks = [
        jnp.pad(word, (0, num_blocks * size - num_members)).reshape(num_blocks, size)
        for word in members
    ]
    return [
        Sum(*(lax.squeeze(lax.slice(x, (0, i), (num_blocks, i + 1)), (1,)) for x in blocks))
        for i in range(size)
    ]


def _block_sums(columns: list[Sum]) -> Sum:
    return Sum(*hints.keep(*reduce(add_sums, columns)))


def _find(members: list[Sum], target: Sum) -> tuple[Array, Sum]:
    """Find the member i with S_{i-1} <= target < S_i, S_i the running sums.

    A target that rounding has put outside counts as just inside.

    Returns:
      i, int32 [], and target - S_{i-1}.
    """
    start = start_sum(jnp.zeros_like(target.value))
    # The place as a float, as in `_draw_of_few`.
    place, before, running = jnp.zeros((), jnp.float32), start, start
    for i, member in enumerate(members[1:], 1):
        running = add_sums(running, members[i - 1])
        is_reached = _is_behind(running, target) & (member.value > 0)
        place = jnp.where(is_reached, jnp.float32(i), place)
        before = Sum(*(jnp.where(is_reached, new, old) for new, old in zip(running, before)))
    rest = add_sums(target, Sum(-before.value, -before.error))
    rest = Sum(*(jnp.where(rest.value < 0, 0, word) for word in rest))
    rest = Sum(*hints.keep(*rest))
    return hints.keep(whole_number(place))[0], rest


def _is_behind(running: Sum, target: Sum) -> Array:
    """Whether the running sum is not above the target."""
    return (running.value - target.value) + (running.error - target.error) <= 0


def _multiply(a: Sum, b: Sum) -> Sum:
    """Return the two-word product."""
    return Sum(*two_sum(*_unnormalised_product(a, b)))


def _unnormalised_product(a: Sum, b: Sum) -> Sum:
    """Return the product in two words, the second not yet small against the first."""
    product, error = two_product(a.value, b.value)
    return Sum(product, error + (a.value * b.error + a.error * b.value))
