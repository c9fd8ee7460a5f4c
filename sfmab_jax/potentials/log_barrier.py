"""The log barrier, -log x: the regulariser of Algorithm 1."""

from typing import Any

import jax.numpy as jnp
from jax import Array, lax
from jax.tree_util import Partial

from sfmab_jax.numerics.double_word import reciprocal
from sfmab_jax.numerics.potential import Potential, Power, Stability
from sfmab_jax.numerics.remainders import log_remainder, log_remainder_near
from sfmab_jax.numerics.root_finding import monotone_solve
from sfmab_jax.numerics.stability_power import power_stability, power_stability_on_arm

__all__ = ["log_barrier"]


def log_barrier() -> Potential:
    """The log barrier, the regulariser of Algorithm 1: psi(u) = -1/u on u < 0, f(x) = -log x.

    >>> print(log_barrier().psi(jnp.float32(-4.0)))
    0.25
    """
    return Potential(
        psi=Partial(_psi),
        inverse=Partial(_psi),
        derivative=Partial(_derivative),
        primitive=Partial(_primitive),
        conjugate=Partial(_conjugate),
        divergence=Partial(_divergence),
        solve=Partial(_solve),
        stability=Partial(_stability),
        stability_on_arm=Partial(_stability_on_arm),
    )


def _psi(u: Array) -> Array:
    return -1 / u


def _derivative(u: Array) -> Array:
    return (1 / u) ** 2


def _primitive(x: Array) -> Array:
    return -jnp.log(x)


def _conjugate(u: Array) -> Array:
    return -1 - jnp.log(-u)


def _divergence(y: Array, x: Array) -> Array:
    return jnp.where(y > 0, log_remainder((y - x) / x, y / x), jnp.inf)


def _step(excess: Array, slope: Array) -> Array:
    """Take a Newton step on 1/s - 1, a harmonic mean: concave in -nu, monotone, nearly linear."""
    return (1 + excess) * excess / slope


def _solve(gaps: Array, start: Array) -> tuple[Array, Array]:
    def value_and_slope(u):
        p = -1 / u
        return p, p * p

    lowest, highest = jnp.full_like(gaps[0], -len(gaps)), jnp.full_like(gaps[0], -1)
    return monotone_solve(gaps, value_and_slope, _step, lowest, highest, start, 1.0)


def _q_over_p(z: Array, one_plus_z: Array) -> tuple[Array, Array, Array]:
    inverse = 1 / one_plus_z
    return inverse, z * inverse, inverse


_POWER = Power(
    w=lambda p: p,
    inverse_w=reciprocal,
    scale=lambda p: 1.0,
    moment=lambda _, w, j: lax.integer_pow(w, j + 1),
    q_over_p=_q_over_p,
    p_over_q=lambda z, one_plus_z: (one_plus_z, z, 1.0),
    newton_step=_step,
    divergence_near=lambda _, z: log_remainder_near(z),
    divergence=lambda _, z, one_plus_z: log_remainder(z, one_plus_z),
    exponent=1.0,
    coefficient=1.0,
)


def _stability(*play_and_loss: Array) -> Array:
    return power_stability(_POWER, *play_and_loss)


def _stability_on_arm(*play_and_loss: Any) -> Stability:
    return power_stability_on_arm(_POWER, *play_and_loss)
