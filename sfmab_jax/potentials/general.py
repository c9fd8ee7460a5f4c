"""A potential from psi and its inverse alone."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jax import Array
from jax.tree_util import Partial

from sfmab_jax.divergences import log_ratio, unit_quadrature
from sfmab_jax.mixability import general_stability
from sfmab_jax.potentials.base import Potential
from sfmab_jax.simplex import newton_root

__all__ = ["potential"]

_NEWTON_STEPS = 60


def potential(psi: Callable[[Array], Array], inverse: Callable[[Array], Array]) -> Potential:
    """A potential from psi and psi^{-1} alone, both elementwise and differentiable by JAX.

    psi' comes from automatic differentiation, f and the divergence from quadrature, lambda from
    safeguarded Newton steps. Slower than the built-in ones, equally usable.

    >>> cosine_free = potential(lambda u: jnp.exp(2 * u), lambda p: jnp.log(p) / 2)
    >>> print(cosine_free.derivative(jnp.float32(0.0)))
    2.0
    """
    psi, inverse = Partial(psi), Partial(inverse)
    made = Potential(
        psi=psi,
        inverse=inverse,
        derivative=Partial(_slope_of, psi),
        primitive=Partial(_primitive, inverse),
        conjugate=Partial(_conjugate, psi, inverse),
        divergence=Partial(_divergence, inverse),
        solve=Partial(_solve, psi, inverse),
        stability=Partial(general_stability),  # completed below: it needs the whole
    )
    return made._replace(stability=Partial(general_stability, potential=made))


def _slope_of(psi: Callable[[Array], Array], u: Array) -> Array:
    return jax.jvp(psi, (u,), (jnp.ones_like(u),))[1]


def _primitive(inverse: Callable[[Array], Array], x: Array) -> Array:
    """The integral of psi^{-1} from 1 to x, on a logarithmic scale."""
    nodes, weights = unit_quadrature(64, x.dtype)
    s = jnp.exp(jnp.multiply.outer(jnp.log(x), nodes))
    return jnp.log(x) * ((inverse(s) * s) @ weights)


def _conjugate(psi, inverse, u: Array) -> Array:
    x = psi(u)
    return u * x - _primitive(inverse, x)


def _divergence(inverse: Callable[[Array], Array], y: Array, x: Array) -> Array:
    """The integral of psi^{-1}(s) - psi^{-1}(x) from x to y, on a logarithmic scale."""
    nodes, weights = unit_quadrature(64, x.dtype)
    span = log_ratio(y, x)
    s = x[..., None] * jnp.exp(jnp.multiply.outer(span, nodes))
    return span * (((inverse(s) - inverse(x)[..., None]) * s) @ weights)


def _solve(psi, inverse, gaps: Array, start: Array) -> tuple[Array, Array]:
    def value_and_slope(u):
        return jax.jvp(psi, (u,), (jnp.ones_like(u),))

    def plain_newton(excess, slope):
        return excess / slope

    lowest, highest = (
        inverse(jnp.full_like(gaps[0], 1 / len(gaps))),
        inverse(jnp.ones_like(gaps[0])),
    )
    nu = newton_root(gaps, value_and_slope, plain_newton, lowest, highest, _NEWTON_STEPS)
    return psi(nu - gaps), nu
