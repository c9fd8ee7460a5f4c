"""The inverse error function in float32, of which normal numbers are made."""

import jax.numpy as jnp
import numpy as np
from jax import Array

__all__ = ["inverse_erf"]

# Coefficients of Giles' polynomials, the highest first.
_CENTRAL = (
    2.81022636e-08,
    3.43273939e-07,
    -3.5233877e-06,
    -4.39150654e-06,
    0.00021858087,
    -0.00125372503,
    -0.00417768164,
    0.246640727,
    1.50140941,
)
_TAIL = (
    -0.000200214257,
    0.000100950558,
    0.00134934322,
    -0.00367342844,
    0.00573950773,
    -0.0076224613,
    0.00943887047,
    1.00167406,
    2.83297682,
)


def inverse_erf(x: Array) -> Array:
    """Return erf^-1(x), -1 < x < 1, float32 of any shape.

    With w = -log(1 - x^2), erf^-1(x) / x is close to a polynomial in w - 5/2 for w < 5, and to one
    in sqrt(w) - 3 beyond (Giles, "Approximating the erfinv function", 2012). `lax.erf_inv` has the
    same polynomials, but finds w with log1p, which takes as long as all the rest.
    """
    w = -jnp.log((1 - x) * (1 + x))
    is_central = w < 5
    place = jnp.where(is_central, w - np.float32(2.5), jnp.sqrt(w) - 3)
    ratio = jnp.zeros_like(place)
    for central, tail in zip(_CENTRAL, _TAIL, strict=True):
        ratio = jnp.where(is_central, np.float32(central), np.float32(tail)) + ratio * place
    return ratio * x
