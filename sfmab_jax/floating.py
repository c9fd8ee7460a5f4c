"""Sums that stay right in float32: compensated over rounds, in a tree over arms."""

from typing import NamedTuple

import chex
import jax.numpy as jnp
from jax import Array, lax

__all__ = [
    "Sum",
    "add",
    "add_at",
    "add_sums",
    "arm_sum",
    "binary_exponent",
    "chosen",
    "inverse_power",
    "is_arm",
    "once",
    "pick",
    "reciprocal",
    "rounded",
    "start_sum",
    "two_product",
    "two_sum",
]

# Above this many arms a gather is cheaper than a pass over the arms.
_ONE_HOT_ARMS = 64


class Sum(NamedTuple):
    """A running total held as the unevaluated sum ``value + error`` of two floats.

    ``value`` is the total rounded to its dtype; together the two carry about twice its digits.
    """

    value: Array
    error: Array


def two_sum(a: Array, b: Array) -> tuple[Array, Array]:
    """Knuth's exact addition: ``a + b = s + e`` with ``s`` the rounded sum.

    >>> s, e = two_sum(jnp.float32(1.0), jnp.float32(1e-9))
    >>> float(s), round(float(e), 12)
    (1.0, 1e-09)
    """
    s = a + b
    b_rounded = s - a
    return s, (a - (s - b_rounded)) + (b - b_rounded)


def rounded(x: Array) -> Array:
    """``x`` itself. A product that passes through cannot be contracted with a later sum to an FMA.

    Contracted, y(k) - y(k) is not zero but the rounding error of y(k) = eta l(k).
    """
    largest = jnp.finfo(x.dtype).max
    return jnp.clip(x, -largest, largest)


def two_product(a: Array, b: Array) -> Sum:
    """Dekker's exact product. The halves come from bit masks: immune to contraction into FMAs.

    >>> x = jnp.float32(1 + 2.0**-20)
    >>> [float(word) for word in two_product(x, x)] == [1 + 2.0**-19, 2.0**-40]
    True
    """
    product = rounded(a * b)
    a_high, b_high = _high_half(a), _high_half(b)
    a_low, b_low = a - a_high, b - b_high
    error = ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low
    return Sum(product, lax.stop_gradient(error))


def reciprocal(x: Array) -> Sum:
    """1 / x in two words."""
    value = 1 / x
    product, error = two_product(value, x)
    return Sum(value, lax.stop_gradient(value * ((1 - product) - error)))


def _high_half(x: Array) -> Array:
    """``x`` with the lower half of its significand cleared."""
    if x.dtype == jnp.float32:
        word, mask = jnp.uint32, 0xFFFFF000
    else:
        word, mask = jnp.uint64, 0xFFFFFFFFF8000000
    return lax.bitcast_convert_type(lax.bitcast_convert_type(x, word) & word(mask), x.dtype)


def inverse_power(x: Array) -> Array:
    """2^-k for a normal x in [2^k, 2^(k+1)): 1 / x up to a factor of 2, without a division.

    >>> [float(inverse_power(jnp.float32(x))) for x in (1.0, 1.9, 2.0, 0.75)]
    [1.0, 1.0, 0.5, 2.0]
    """
    if x.dtype == jnp.float32:
        word, exponent, inverted = jnp.uint32, 0x7F800000, 0x7F000000
    else:
        word, exponent, inverted = jnp.uint64, 0x7FF0000000000000, 0x7FE0000000000000
    bits = word(inverted) - (lax.bitcast_convert_type(x, word) & word(exponent))
    return lax.bitcast_convert_type(bits, x.dtype)


def binary_exponent(x: Array) -> Array:
    """k for a normal x in [2^k, 2^(k+1)), of the dtype of x.

    >>> [float(binary_exponent(jnp.float32(x))) for x in (1.0, 1.9, 2.0, 0.75)]
    [0.0, 0.0, 1.0, -1.0]
    """
    word, digits, bias = (jnp.int32, 23, 127) if x.dtype == jnp.float32 else (jnp.int64, 52, 1023)
    exponent = lax.bitcast_convert_type(x, word) >> word(digits)
    return (exponent - word(bias)).astype(x.dtype)


def once(*values: Array) -> tuple[Array, ...]:
    """The values themselves, to be worked out once and together.

    XLA on CPU repeats cheap operations for every use of a result; see `lanes.over_lanes`.
    """
    return lax.optimization_barrier(values)


def chosen(takes: Array, new: Array, old: Array) -> Array:
    """``new`` where taken, else ``old``.

    Floats by a sum with zeros: of a choice to be written where ``old`` is, LLVM makes a store with
    a mask, which on some processors takes several times as long.
    """
    if not jnp.issubdtype(new.dtype, jnp.floating):
        return jnp.where(takes, new, old)
    zero = jnp.zeros_like(new)
    return jnp.where(takes, new, zero) + jnp.where(takes, zero, old)


def start_sum(value: Array) -> Sum:
    """A total that begins at ``value``."""
    return Sum(value, jnp.zeros_like(value))


def add(total: Sum, term: Array) -> Sum:
    """``total + term`` in double-word arithmetic; relative error about the square of an ulp."""
    high, low = two_sum(total.value, term)
    low = low + total.error
    value = high + low
    now = Sum(value, low - (value - high))
    return now if now.value.ndim else Sum(*once(*now))


def add_at(totals: Sum, arm: Array, term: Array) -> Sum:
    """``totals`` [n] with ``term`` [] added to that of one arm."""
    now = add(Sum(pick(totals.value, arm), pick(totals.error, arm)), term)
    here = is_arm(arm, totals.value)
    return Sum(*(chosen(here, new, old) for old, new in zip(totals, now)))


def add_sums(a: Sum, b: Sum) -> Sum:
    """``a + b`` of two two-word numbers."""
    high, low = two_sum(a.value, b.value)
    low = low + (a.error + b.error)
    value = high + low
    return Sum(value, low - (value - high))


def arm_sum(x: Array) -> Array:
    """Sum over the arms, ``[n] -> []``.

    XLA adds in a tree on every platform, so that the rounding error grows like log n: 2e-7 where
    a running float32 sum of 100,000 terms errs by up to 6e-4. The tests hold it to that.
    """
    chex.assert_rank(x, 1)
    return jnp.sum(x)


def is_arm(arm: Array, like: Array) -> Array:
    """True for one arm, False for the others: bool [n] with n the length of ``like``.

    Arms are compared as floats, of which they are exact: on CPU integers take twice the time, as
    the compiler widens them to the 64 bits of an index.
    """
    places = jnp.arange(like.shape[0], dtype=jnp.float32)
    return places == arm.astype(jnp.float32)


def pick(x: Array, arm: Array) -> Array:
    """``x[arm]`` for ``x`` of shape ``[n]``, exactly.

    For few arms it is a masked sum, which stays a vector operation when a batch of seeds is
    mapped over it; a gather does not.
    """
    if x.shape[0] > _ONE_HOT_ARMS:
        return x[arm]
    here = is_arm(arm, x)
    # x + (-0.0) is x whatever it is, so that adding it under a mask is one instruction.
    nothing = -0.0 if jnp.issubdtype(x.dtype, jnp.floating) else 0
    return jnp.sum(jnp.where(here, x, jnp.full_like(x, nothing)), dtype=x.dtype)
