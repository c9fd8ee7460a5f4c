"""Numbers held as the unevaluated sum of two floats, which carry about twice the digits of one.

Errors are stated with u, half a unit in the last place: 2^-24 in float32, 2^-53 in float64.
"""

from typing import NamedTuple

import jax.numpy as jnp
from jax import Array, lax

from sfmab_jax.numerics import hints
from sfmab_jax.numerics.bits import rounded

__all__ = ["Sum", "add", "add_sums", "reciprocal", "start_sum", "two_product", "two_sum"]


class Sum(NamedTuple):
    """A number held as the unevaluated sum ``value + error`` of two floats.

    Unless a function says otherwise ``value`` is the number rounded to its dtype; together the two
    carry about twice its digits.
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


def two_product(a: Array, b: Array) -> Sum:
    """Dekker's product ``a b = value + error``, unless the error underflows.

    Exact in float32. In float64 the error word may be off in its last place, as 53 bits have no
    equal halves.

    The halves come from bit masks, so that a contraction into FMAs does no harm.

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
    """Return 1 / x in two words; the relative error is a few u^2."""
    value = 1 / x
    product, error = two_product(value, x)
    return Sum(value, lax.stop_gradient(value * ((1 - product) - error)))


def _high_half(x: Array) -> Array:
    """Return ``x`` with the lower half of its significand cleared."""
    if x.dtype == jnp.float32:
        word, mask = jnp.uint32, 0xFFFFF000
    else:
        word, mask = jnp.uint64, 0xFFFFFFFFF8000000
    return lax.bitcast_convert_type(lax.bitcast_convert_type(x, word) & word(mask), x.dtype)


def start_sum(value: Array) -> Sum:
    """Return a total that begins at ``value``."""
    return Sum(value, jnp.zeros_like(value))


def add(total: Sum, term: Array) -> Sum:
    """Return ``total + term``; the relative error is at most a few u^2."""
    high, low = two_sum(total.value, term)
    low = low + total.error
    value = high + low
    total = Sum(value, low - (value - high))
    # A single total is stored: its ten operations would be repeated by everything that reads it.
    return total if total.value.ndim else Sum(*hints.keep(*total))


def add_sums(a: Sum, b: Sum) -> Sum:
    """Return ``a + b``; the error is at most a few u^2 (|a| + |b|)."""
    high, low = two_sum(a.value, b.value)
    low = low + (a.error + b.error)
    value = high + low
    return Sum(value, low - (value - high))
