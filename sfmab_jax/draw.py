"""Draw an arm whose true law is p', down to probabilities of 1e-9 in float32."""

import chex
import jax.numpy as jnp
from jax import Array, lax

from sfmab_jax.floating import Sum, add_sums, start_sum, two_sum

__all__ = ["draw_arm"]

# Arms in a group. Sums run along the groups side by side, then over the groups.
_GROUP = 16


def draw_arm(probabilities: Array, words: tuple[Array, Array]) -> Array:
    """The arm i with C_{i-1} <= U C_{n-1} < C_i, C the running sums of p' and U uniform on 46 bits.

    A float32 running sum and a 23-bit uniform give an arm of probability 1e-7 up to twice its
    due, which biases importance weighting. Here sums, uniform and comparison carry two words, so
    that every arm's law is p'(i) / sum(p') to an absolute 2^-44.

    Args:
      probabilities: p' [n], non-negative; divided by its own sum.
      words: two uint32 random words.

    Returns:
      The arm, int32 [].
    """
    chex.assert_rank(probabilities, 1)
    groups, offsets, total = _running_sums(start_sum(probabilities))
    dtype = probabilities.dtype
    high = (words[0] >> 8).astype(dtype) * dtype.type(2.0**-24)
    # 46 bits in all, so that U C_{n-1} cannot round up to C_{n-1}.
    tail = ((words[0] & jnp.uint32(0xFF)) << 14) | (words[1] >> 18)
    low = tail.astype(dtype) * dtype.type(2.0**-46)
    threshold = _multiply(Sum(high, low), total)
    threshold = add_sums(threshold, Sum(-offsets.value, -offsets.error))
    passed = jnp.zeros(offsets.value.shape, jnp.int32)
    for running in groups:
        behind = (running.value - threshold.value) + (running.error - threshold.error) <= 0
        passed = passed + behind.astype(jnp.int32)
    return jnp.minimum(jnp.sum(passed, dtype=jnp.int32), len(probabilities) - 1)


def _running_sums(x: Sum) -> tuple[list[Sum], Sum, Sum]:
    """Running sums of ``x`` [m] in R groups: along each group, before each group, and in all.

    Returns the sums of the first 1, 2, ... members of every group, each [R]; the sum of all groups
    before a group, [R]; and the total []. The last group is filled up with zeros.
    """
    num_terms = x.value.shape[0]
    # At least two groups: the sum over groups then keeps XLA from redoing the draw for each arm.
    size = min(_GROUP, -(-num_terms // 2))
    num_groups = -(-num_terms // size)
    padding = (0, num_groups * size - num_terms)
    value, error = (jnp.pad(word, padding).reshape(num_groups, size) for word in x)
    running = Sum(value[:, 0], error[:, 0])
    groups = [running]
    for member in range(1, size):
        running = add_sums(running, Sum(value[:, member], error[:, member]))
        groups.append(running)
    offsets, total = _exclusive_sums(running)
    return groups, offsets, total


def _exclusive_sums(x: Sum) -> tuple[Sum, Sum]:
    """Sums of the terms before each term, [m], and of all terms, []."""
    num_terms = x.value.shape[0]
    if num_terms > _GROUP:
        groups, offsets, total = _running_sums(x)
        zero = start_sum(jnp.zeros_like(offsets.value))
        before = [add_sums(offsets, inner) for inner in (zero, *groups[:-1])]
        flat = (jnp.stack(words, axis=1).ravel()[:num_terms] for words in zip(*before, strict=True))
        return Sum(*flat), total
    terms = [Sum(x.value[i], x.error[i]) for i in range(num_terms)]
    place = jnp.arange(num_terms)
    sums = start_sum(jnp.zeros_like(x.value))
    for i, term in enumerate(terms[:-1]):
        later = jnp.where(place > i, jnp.ones_like(x.value), 0)
        sums = add_sums(sums, Sum(later * term.value, later * term.error))
    return sums, add_sums(Sum(sums.value[-1], sums.error[-1]), terms[-1])


def _multiply(a: Sum, b: Sum) -> Sum:
    """Two-word product."""
    product, error = _two_product(a.value, b.value)
    error = error + (a.value * b.error + a.error * b.value)
    return Sum(*two_sum(product, error))


def _two_product(a: Array, b: Array) -> tuple[Array, Array]:
    """Dekker's exact product. The halves come from bit masks: immune to contraction into FMAs."""
    product = a * b
    a_high, b_high = _high_half(a), _high_half(b)
    a_low, b_low = a - a_high, b - b_high
    error = ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low
    return product, error


def _high_half(x: Array) -> Array:
    """``x`` with the lower half of its significand cleared."""
    if x.dtype == jnp.float32:
        word, mask = jnp.uint32, 0xFFFFF000
    else:
        word, mask = jnp.uint64, 0xFFFFFFFFF8000000
    return lax.bitcast_convert_type(lax.bitcast_convert_type(x, word) & word(mask), x.dtype)
