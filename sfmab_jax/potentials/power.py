"""The Tsallis entropies, -x^c, whose potentials are powers: the INF family."""

from typing import Any

import jax.numpy as jnp
from jax import Array, lax
from jax.tree_util import Partial

from sfmab_jax.checks import check_number
from sfmab_jax.divergences import log_of, log_ratio, power_remainder
from sfmab_jax.floating import start_sum
from sfmab_jax.mixability import Stability
from sfmab_jax.potentials.base import Potential
from sfmab_jax.power_stability import Power, power_stability, power_stability_on_arm
from sfmab_jax.simplex import monotone_solve

__all__ = ["tsallis"]


def tsallis(power: Array | float = 0.5) -> Potential:
    """psi(u) = (-u/c)^(-1/(1-c)) on u < 0, f(x) = -x^c, for a power c in (0, 1).

    The INF potentials of Audibert and Bubeck (2009) with q = 1/(1-c); c = 1/2 is the Tsallis
    entropy -sqrt(x), for which psi(u) = 1/(4 u^2).

    >>> print(tsallis(0.5).psi(jnp.float32(-1.0)))
    0.25
    """
    check_number("power", power)
    if not isinstance(power, Array) and not 0 < power < 1:
        raise ValueError(f"power is {power}; a Tsallis power lies strictly between 0 and 1")
    c = power
    return Potential(
        psi=Partial(_psi, c),
        inverse=Partial(_inverse, c),
        derivative=Partial(_derivative, c),
        primitive=Partial(_primitive, c),
        conjugate=Partial(_conjugate, c),
        divergence=Partial(_divergence, c),
        solve=Partial(_solve, c),
        stability=Partial(_stability, c),
        stability_on_arm=Partial(_stability_on_arm, c),
    )


# With r = 1/(1-c), psi(u) = (-u/c)^(-r).


def _psi(c: Array | float, u: Array) -> Array:
    return (-u / c) ** (-1 / (1 - c))


def _inverse(c: Array | float, x: Array) -> Array:
    return -c * x ** (c - 1)


def _derivative(c: Array | float, u: Array) -> Array:
    return _psi(c, u) / (-u * (1 - c))


def _primitive(c: Array | float, x: Array) -> Array:
    return -(x**c)


def _conjugate(c: Array | float, u: Array) -> Array:
    x = _psi(c, u)
    return u * x + x**c


def _divergence(c: Array | float, y: Array, x: Array) -> Array:
    z = jnp.expm1((c - 1) * log_ratio(x, y))
    return y**c * power_remainder(z, (x / y) ** (c - 1), 1 / (1 - c))


def _step(c: Array | float, excess: Array, slope: Array) -> Array:
    """Newton on s^(-1/r) - 1, a power mean: the log barrier's step with its exponent."""
    growth = jnp.expm1((1 - c) * jnp.log1p(excess))
    return (1 + excess) * growth / ((1 - c) * slope)


def _shrink(exponent: Array | float, z: Array, ratio: Array) -> tuple[Array, Array, Array]:
    """(1 + z)^(-r) and 1 less that. By logarithms, as a rounding of 1 + z would count r times."""
    log_shrink = -exponent * log_of(z, ratio)
    return jnp.exp(log_shrink), -jnp.expm1(log_shrink), 1 / ratio


def _solve(c: Array | float, gaps: Array, start: Array) -> tuple[Array, Array]:
    def value_and_slope(u):
        p = _psi(c, u)
        return p, p / (-u * (1 - c))

    lowest = _inverse(c, jnp.full_like(gaps[0], 1 / len(gaps)))
    highest = jnp.full_like(gaps[0], 1) * -c
    step, exponent = Partial(_step, c), 1 / (1 - c)
    return monotone_solve(gaps, value_and_slope, step, lowest, highest, start, exponent)


def _grow(exponent: Array | float, z: Array, ratio: Array) -> tuple[Array, Array, Array]:
    """(1 + z)^r, that less 1, and r (1 + z)^(r - 1)."""
    log_growth = exponent * log_of(z, ratio)
    grown = jnp.exp(log_growth)
    return grown, jnp.expm1(log_growth), exponent * grown / ratio


def _power(c: Array | float) -> Power:
    r = 1 / (1 - c)
    return Power(
        inverse_dual=lambda p: p ** (1 - c) / c,
        dual=lambda p: start_sum(c / p ** (1 - c)),
        scale=lambda p: c * p**c,
        moment=lambda p, w, j: p * lax.integer_pow(w, j),
        shrink=Partial(_shrink, r),
        grow=Partial(_grow, r),
        newton_step=Partial(_step, c),
        divergence_near=lambda p, z: p**c * power_remainder(z, 1 + z, r),
        divergence=lambda p, z, ratio: p**c * power_remainder(z, ratio, r),
        exponent=r,
        coefficient=c,
    )


def _stability(c: Array | float, *play_and_loss: Array) -> Array:
    return power_stability(_power(c), *play_and_loss)


def _stability_on_arm(c: Array | float, *play_and_loss: Any) -> Stability:
    return power_stability_on_arm(_power(c), *play_and_loss)
