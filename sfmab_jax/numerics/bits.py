"""Exponents and integers read directly from the bits of a float."""

import jax.numpy as jnp
from jax import Array, lax

__all__ = ["binary_exponent", "inverse_power", "rounded", "whole_number"]


def rounded(x: Array) -> Array:
    """Return ``x``, rounded to its dtype before anything is added to it.

    A compiler may contract a product and a later sum into one FMA, which does not round the
    product: then eta l - eta l is the rounding error of eta l, not 0. A clip to the finite range
    prevents that. Infinities become the largest number.
    """
    largest = jnp.finfo(x.dtype).max
    return jnp.clip(x, -largest, largest)


def inverse_power(x: Array) -> Array:
    """Return 2^-k for a normal x in [2^k, 2^(k+1)), k <= 126: 1 / x up to a factor of 2.

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
    """Return k for a normal x in [2^k, 2^(k+1)), in the dtype of x.

    >>> [float(binary_exponent(jnp.float32(x))) for x in (1.0, 1.9, 2.0, 0.75)]
    [0.0, 0.0, 1.0, -1.0]
    """
    word, digits, bias = (jnp.int32, 23, 127) if x.dtype == jnp.float32 else (jnp.int64, 52, 1023)
    exponent = lax.bitcast_convert_type(x, word) >> word(digits)
    return (exponent - word(bias)).astype(x.dtype)


def whole_number(x: Array) -> Array:
    """Return a float32 whole number 0 <= x < 2^23 as int32.

    From the bits of x + 2^23: a conversion would check for NaN and overflow first.

    >>> int(whole_number(jnp.float32(7.0)))
    7
    """
    bits = lax.bitcast_convert_type(x + jnp.float32(2.0**23), jnp.int32)
    return bits & jnp.int32(0x7FFFFF)
