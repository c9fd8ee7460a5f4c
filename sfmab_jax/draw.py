"""Draw an arm whose true law is p', down to probabilities of 1e-9 in float32."""

import math

import chex
import jax.numpy as jnp
from jax import Array, lax

from sfmab_jax.floating import Sum, add, add_sums, once, start_sum, two_product, two_sum

__all__ = ["draw_arm"]

# Up to this many arms the sums are unrolled into one fused loop.
_FEW = 16
# Up to this many one running sum keeps its digits.
_SOME = 1024


def draw_arm(probabilities: Array, words: tuple[Array, Array]) -> Array:
    """The arm i with C_{i-1} <= U C < C_i, C_i the running sums of p', and U uniform on 46 bits.

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
    # 46 bits in all, so that U C cannot round up to C, the sum of all.
    tail = ((words[0] & jnp.uint32(0xFF)) << 14) | (words[1] >> 18)
    uniform = Sum(*once(high, tail.astype(dtype) * dtype.type(2.0**-46)))
    if len(probabilities) <= _FEW:
        return _draw_of_few(probabilities, uniform)
    draw = _draw_of_some if len(probabilities) <= _SOME else _draw_of_many
    return draw(probabilities, uniform)


def _draw_of_few(probabilities: Array, uniform: Sum) -> Array:
    """In one fused loop.

    The sums begin at 1, which no probability exceeds, so that two subtractions give the error of
    an addition. The errors are summed apart from the values, which is a shorter chain to wait for;
    they are below n 2^-24, and their sum is right to n^2 2^-49.
    """
    # As kernels know it; indexing would bring in more operations.
    places = range(len(probabilities))
    members = [lax.squeeze(lax.slice(probabilities, (i,), (i + 1,)), (0,)) for i in places]
    # Not written as a constant, or XLA would take (1 + p) - 1 for p.
    one = jnp.where(members[0] == members[0], jnp.ones_like(members[0]), 0.5)
    sums = [start_sum(one)]
    for member in members:
        value = sums[-1].value + member
        error = member - (value - sums[-1].value)
        sums.append(Sum(value, sums[-1].error + error))
    target = _product(uniform, Sum(sums[-1].value - one, sums[-1].error))
    high = one + target.value
    low = (target.value - (high - one)) + target.error
    arm = jnp.zeros((), jnp.float32)
    for i, running in enumerate(sums[1:-1]):
        is_behind = running.value - high <= low - running.error
        # Rounded up, the target might be behind the last arm that can be drawn.
        arm = jnp.where(is_behind & (members[i + 1] > 0), jnp.float32(i + 1), arm)
    return once(_as_integer(arm))[0]


def _draw_of_some(probabilities: Array, uniform: Sum) -> Array:
    """With the running sums in an array."""

    def step(running: Sum, member: Array) -> tuple[Sum, Sum]:
        running = add(running, member)
        return running, running

    zero = start_sum(jnp.zeros_like(probabilities[0]))
    total, sums = lax.scan(step, zero, probabilities, unroll=8)
    target = _multiply(uniform, total)
    target = Sum(*once(*target))
    passed = jnp.sum(_is_behind(sums, target), dtype=jnp.int32)
    return jnp.minimum(passed, len(probabilities) - 1)


def _draw_of_many(probabilities: Array, uniform: Sum) -> Array:
    """With the running sums of groups first, lest errors add up."""
    members, offsets, total = _grouped(probabilities)
    target = _multiply(uniform, total)
    target = add_sums(target, Sum(-offsets.value, -offsets.error))

    def step(carry, member: Array):
        running, passed = carry
        running = add(running, member)
        return (running, passed + _is_behind(running, target).astype(jnp.int32)), None

    zero = start_sum(jnp.zeros_like(offsets.value))
    start = (zero, jnp.zeros(offsets.value.shape, jnp.int32))
    (_, passed), _ = lax.scan(step, start, members, unroll=8)
    return jnp.minimum(jnp.sum(passed, dtype=jnp.int32), len(probabilities) - 1)


def _grouped(probabilities: Array) -> tuple[Array, Sum, Sum]:
    """Consecutive arms in groups, so that most of the summing is done side by side.

    Returns the members of the groups [size, groups], filled up with zeros; the sums of all arms
    before each group [groups]; and the sum of all arms [].
    """
    num_arms = len(probabilities)
    size = math.isqrt(num_arms - 1) + 1
    if num_arms.bit_count() == 1:  # then groups of a power of two, as in kernels
        size = 1 << (size - 1).bit_length()
    num_groups = -(-num_arms // size)
    filled = jnp.pad(probabilities, (0, num_groups * size - num_arms))
    members = filled.reshape(num_groups, size).T
    zero = start_sum(jnp.zeros(num_groups, probabilities.dtype))
    sums, _ = lax.scan(lambda s, x: (add(s, x), None), zero, members, unroll=8)
    start = Sum(zero.value[0], zero.error[0])
    total, before = lax.scan(lambda s, x: (add_sums(s, x), s), start, sums, unroll=8)
    return members, before, total


def _is_behind(running: Sum, target: Sum) -> Array:
    """Whether the running sum is not above the target."""
    return (running.value - target.value) + (running.error - target.error) <= 0


def _as_integer(x: Array) -> Array:
    """A whole number 0 <= x < 2^23 as int32, from its bits: a conversion looks for NaNs first."""
    bits = lax.bitcast_convert_type(x + jnp.float32(2.0**23), jnp.int32)
    return bits & jnp.int32(0x7FFFFF)


def _multiply(a: Sum, b: Sum) -> Sum:
    """Two-word product."""
    return Sum(*two_sum(*_product(a, b)))


def _product(a: Sum, b: Sum) -> Sum:
    """The same, the second word not yet small against the first."""
    product, error = two_product(a.value, b.value)
    return Sum(product, error + (a.value * b.error + a.error * b.value))
