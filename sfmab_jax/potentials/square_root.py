"""The Tsallis entropy of power 1/2, -sqrt(x): `tsallis(0.5)` without general powers, so faster."""

from functools import partial

import jax.numpy as jnp
from jax import Array, lax
from jax.tree_util import Partial

from sfmab_jax.floating import Sum, two_product
from sfmab_jax.potentials.base import Potential
from sfmab_jax.potentials.power import tsallis
from sfmab_jax.power_stability import Power, power_stability, power_stability_on_arm
from sfmab_jax.simplex import monotone_solve

__all__ = ["square_root", "tsallis_of"]


def square_root() -> Potential:
    """psi(u) = 1 / (4 u^2) on u < 0, f(x) = -sqrt(x): the regulariser of Tsallis-INF.

    >>> print(square_root().psi(jnp.float32(-1.0)))
    0.25
    """
    return Potential(
        psi=Partial(_psi),
        inverse=Partial(_inverse),
        derivative=Partial(_derivative),
        primitive=Partial(_primitive),
        conjugate=Partial(_conjugate),
        divergence=Partial(_divergence),
        solve=Partial(_solve),
        stability=Partial(_stability),
        stability_on_arm=Partial(_stability_on_arm),
    )


def tsallis_of(power: Array | float) -> Potential:
    """`tsallis(power)`, in its faster form if the power is 1/2."""
    return square_root() if not isinstance(power, Array) and power == 0.5 else tsallis(power)


def _psi(u: Array) -> Array:
    return (0.5 / u) ** 2


def _inverse(x: Array) -> Array:
    return -0.5 / jnp.sqrt(x)


def _derivative(u: Array) -> Array:
    return -2 * _psi(u) / u


def _primitive(x: Array) -> Array:
    return -jnp.sqrt(x)


def _conjugate(u: Array) -> Array:
    return -0.25 / u


def _divergence(y: Array, x: Array) -> Array:
    """(sqrt(y) - sqrt(x))^2 / (2 sqrt(x)), the difference of roots from y - x."""
    difference = (y - x) / (jnp.sqrt(y) + jnp.sqrt(x))
    return difference * difference / (2 * jnp.sqrt(x))


def _step(excess: Array, slope: Array) -> Array:
    """Newton on s^(-1/2) - 1, as for the other powers; sqrt(1 + e) - 1 = e / (1 + sqrt(1 + e))."""
    return 2 * (1 + excess) * (excess / (1 + jnp.sqrt(1 + excess))) / slope


def _solve(gaps: Array, start: Array) -> tuple[Array, Array]:
    def value_and_slope(u):
        p = _psi(u)
        return p, -2 * p / u

    lowest = jnp.full_like(gaps[0], -0.5 * len(gaps) ** 0.5)
    highest = jnp.full_like(gaps[0], -0.5)
    return monotone_solve(gaps, value_and_slope, _step, lowest, highest, start, 2.0)


def _shrink(z: Array, ratio: Array) -> tuple[Array, Array, Array]:
    """(1 + z)^(-2), 1 less that, and 1 / (1 + z)."""
    kept = 1 / ratio
    return kept * kept, z * kept * (1 + kept), kept


def _dual(p: Array) -> Sum:
    """d = 1 / (2 sqrt(p)) in two words: d (1 + (1 - 4 p d^2) / 2)."""
    value = 0.5 / jnp.sqrt(p)
    square = two_product(value, value)
    product = two_product(square.value, 4 * p)
    missing = (1 - product.value) - (product.error + square.error * (4 * p))
    return Sum(value, lax.stop_gradient(value * missing / 2))


# At q = p (1 + z)^(-2), Breg_f(p || q) = sqrt(p) z^2 / (2 (1 + z)): nothing cancels.
_POWER = Power(
    inverse_dual=lambda p: 2 * jnp.sqrt(p),
    dual=_dual,
    scale=lambda p: jnp.sqrt(p) / 2,
    moment=lambda p, w, j: p * lax.integer_pow(w, j),
    shrink=_shrink,
    grow=lambda z, ratio: (ratio * ratio, z * (1 + ratio), 2 * ratio),
    newton_step=_step,
    divergence_near=lambda p, z: jnp.sqrt(p) * z * (z / (2 * (1 + z))),
    divergence=lambda p, z, ratio: jnp.sqrt(p) * z * (z / (2 * ratio)),
    exponent=2.0,
    coefficient=0.5,
)

_stability = partial(power_stability, _POWER)
_stability_on_arm = partial(power_stability_on_arm, _POWER)
