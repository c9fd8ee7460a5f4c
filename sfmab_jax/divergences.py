"""Bregman divergences of scalars in forms that do not cancel when the two points are close.

Each is a Taylor remainder: exactly zero, with zero slope, at zero.
"""

import jax.numpy as jnp
import numpy as np
from jax import Array

__all__ = ["exp_remainder", "log_remainder", "power_remainder", "unit_quadrature"]

# Inside this radius the series are used, outside the plain formulas lose at most two bits.
_RADIUS = 0.25


def unit_quadrature(num_nodes: int, dtype) -> tuple[Array, Array]:
    """Gauss-Legendre nodes and weights on [0, 1]."""
    nodes, weights = np.polynomial.legendre.leggauss(num_nodes)
    return jnp.asarray((nodes + 1) / 2, dtype), jnp.asarray(weights / 2, dtype)


def log_remainder(z: Array, one_plus_z: Array) -> Array:
    """``z - log(1 + z)`` for z > -1, relatively accurate everywhere.

    Near z = -1 that takes 1 + z to more digits than z has, so both are given.

    With s = z / (2 + z), log(1 + z) = 2 artanh(s), so the remainder is
    z s - 2 s^3 (1/3 + s^2/5 + s^4/7 + ...).

    >>> float(log_remainder(jnp.float32(1e-4), jnp.float32(1.0001))) / 4.99966669e-09
    1.0...
    """
    small = jnp.abs(z) < _RADIUS
    near = jnp.where(small, z, jnp.zeros_like(z))
    s = near / (2 + near)
    square = s * s
    num_terms = 5 if z.dtype == jnp.float32 else 11
    series = jnp.full_like(z, 1 / (2 * num_terms + 1))
    for k in range(num_terms - 1, 0, -1):
        series = series * square + z.dtype.type(1 / (2 * k + 1))
    far = jnp.where(small, jnp.ones_like(z), one_plus_z)
    return jnp.where(small, near * s - 2 * s * square * series, z - jnp.log(far))


def exp_remainder(d: Array) -> Array:
    """``exp(d) - 1 - d``, relatively accurate everywhere.

    >>> float(exp_remainder(jnp.float32(1e-4))) / 5.00016667e-09
    1.0...
    """
    small = jnp.abs(d) < _RADIUS
    near = jnp.where(small, d, jnp.zeros_like(d))
    num_terms = 6 if d.dtype == jnp.float32 else 12
    series = jnp.ones_like(d)
    for k in range(num_terms, 0, -1):
        series = 1 + series * near / (k + 2)
    far = jnp.where(small, jnp.ones_like(d), d)
    return jnp.where(small, near * near * series / 2, jnp.expm1(far) - far)


def power_remainder(z: Array, one_plus_z: Array, exponent: Array | float) -> Array:
    """``((1 + z)^(1 - r) - 1) / r + (1 - 1/r) z`` for z > -1 and exponent r > 1.

    Near zero it is (r - 1) z^2 times the integral of (1 - s)(1 + s z)^(-r - 1) over [0, 1].
    """
    small = jnp.abs(z) < _RADIUS
    near = jnp.where(small, z, jnp.zeros_like(z))
    total = jnp.zeros_like(z)
    for node, weight in zip(*unit_quadrature(8, z.dtype), strict=True):
        total = total + weight * (1 - node) * (1 + node * near) ** (-exponent - 1)
    far = jnp.where(small, jnp.ones_like(z), one_plus_z)
    plain = (far ** (1 - exponent) - 1) / exponent + (1 - 1 / exponent) * z
    return jnp.where(small, (exponent - 1) * near * near * total, plain)
