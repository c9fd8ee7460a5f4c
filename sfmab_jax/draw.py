"""Draw an arm whose true law is p', down to probabilities of 1e-9 in float32."""

import chex
import jax.numpy as jnp
from jax import Array, lax

from sfmab_jax.floating import Sum, add, start_sum, two_sum

__all__ = ["draw_arm", "prefix_sums"]

# Arms whose running sum is unrolled into one fused loop; more arms go through a scan of such
# slabs, which keeps the program small.
_SLAB = 16


def prefix_sums(probabilities: Array) -> Sum:
    """Double-word running sums ``C_i = p(0) + ... + p(i)``, both words ``[n]``."""

    def step(total: Sum, term: Array) -> tuple[Sum, Sum]:
        total = add(total, term)
        return total, total

    zero = start_sum(jnp.zeros((), probabilities.dtype))
    if probabilities.shape[0] > 2 * _SLAB:
        return lax.scan(step, zero, probabilities, unroll=_SLAB)[1]
    running = []
    for i in range(probabilities.shape[0]):
        zero, total = step(zero, probabilities[i])
        running.append(total)
    return Sum(jnp.stack([c.value for c in running]), jnp.stack([c.error for c in running]))


def draw_arm(probabilities: Array, words: tuple[Array, Array]) -> Array:
    """The arm i with C_{i-1} <= U C_{n-1} < C_i, for a 46-bit uniform U.

    A float32 running sum and a 23-bit uniform give an arm of probability 1e-7 up to twice its
    due, which biases importance weighting. Here sums, uniform and comparison carry two words, so
    that every arm's law is p'(i) / sum(p') to an absolute 2^-44. An arm of probability 0 is
    never drawn.

    Args:
      probabilities: p' [n], non-negative; divided by its own sum.
      words: two uint32 random words.

    Returns:
      The arm, int32 [].
    """
    chex.assert_rank(probabilities, 1)
    dtype = probabilities.dtype
    sums = prefix_sums(probabilities)
    high = (words[0] >> 8).astype(dtype) * dtype.type(2.0**-24)
    # 46 bits in all, so that U C_{n-1} cannot round up to C_{n-1}.
    tail = ((words[0] & jnp.uint32(0xFF)) << 14) | (words[1] >> 18)
    low = tail.astype(dtype) * dtype.type(2.0**-46)
    threshold = _multiply(Sum(high, low), Sum(sums.value[-1], sums.error[-1]))
    # C_i <= threshold, compared word by word without rounding C_i or the threshold.
    passed = (sums.value - threshold.value) + (sums.error - threshold.error) <= 0
    return jnp.sum(passed[:-1], dtype=jnp.int32)


def _multiply(a: Sum, b: Sum) -> Sum:
    """Double-word product, for ``b`` close to 1 and ``a`` in [0, 1)."""
    product, error = _two_product(a.value, b.value)
    error = error + (a.value * b.error + a.error * b.value)
    value, error = two_sum(product, error)
    return Sum(value, error)


def _two_product(a: Array, b: Array) -> tuple[Array, Array]:
    """Dekker's exact product. The halves come from bit masks: immune to contraction into FMAs."""
    product = a * b
    a_high, b_high = _high_half(a), _high_half(b)
    a_low, b_low = a - a_high, b - b_high
    error = ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low
    return product, error


def _high_half(x: Array) -> Array:
    """``x`` with the lower half of its significand cleared."""
    bits, mask = (
        (jnp.uint32, 0xFFFFF000) if x.dtype == jnp.float32 else (jnp.uint64, 0xFFFFFFFFF8000000)
    )
    return lax.bitcast_convert_type(lax.bitcast_convert_type(x, bits) & bits(mask), x.dtype)
