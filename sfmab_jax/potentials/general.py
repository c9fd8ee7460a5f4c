"""A potential from psi and its inverse alone."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jax import Array
from jax.tree_util import Partial

from sfmab_jax.checks import check_functions
from sfmab_jax.numerics.potential import Potential
from sfmab_jax.numerics.remainders import log_ratio, unit_quadrature
from sfmab_jax.numerics.root_finding import newton_root
from sfmab_jax.numerics.stability import general_stability

__all__ = ["potential"]

_NEWTON_STEPS = 60


def potential(psi: Callable[[Array], Array], inverse: Callable[[Array], Array]) -> Potential:
    """Make a potential from psi and psi^{-1} alone.

    psi' comes from automatic differentiation, f and the divergence from quadrature, the normaliser
    from safeguarded Newton steps: slower than the built-in potentials, equally usable.

    Args:
      psi: convex, increasing and smooth from (-inf, a) onto (0, inf), elementwise.
      inverse: psi^{-1}, elementwise.

    >>> steep = potential(lambda u: jnp.exp(2 * u), lambda p: jnp.log(p) / 2)
    >>> print(steep.derivative(jnp.float32(0.0)))
    2.0
    """
    check_functions(psi=psi, inverse=inverse)
    psi, inverse = Partial(psi), Partial(inverse)
    incomplete = Potential(
        psi=psi,
        inverse=inverse,
        derivative=Partial(_derivative, psi),
        primitive=Partial(_primitive, inverse),
        conjugate=Partial(_conjugate, psi, inverse),
        divergence=Partial(_divergence, inverse),
        solve=Partial(_solve, psi, inverse),
        stability=Partial(general_stability),  # which needs the potential itself, below
    )
    return incomplete._replace(stability=Partial(general_stability, potential=incomplete))


def _value_and_slope(psi: Callable[[Array], Array], u: Array) -> tuple[Array, Array]:
    return jax.jvp(psi, (u,), (jnp.ones_like(u),))


def _derivative(psi: Callable[[Array], Array], u: Array) -> Array:
    return _value_and_slope(psi, u)[1]


def _primitive(inverse: Callable[[Array], Array], x: Array) -> Array:
    """Return the integral of psi^{-1} from 1 to x, taken on a logarithmic scale."""
    nodes, weights = unit_quadrature(64, x.dtype)
    s = jnp.exp(jnp.multiply.outer(jnp.log(x), nodes))
    return jnp.log(x) * ((inverse(s) * s) @ weights)


def _conjugate(psi, inverse, u: Array) -> Array:
    x = psi(u)
    return u * x - _primitive(inverse, x)


def _divergence(inverse: Callable[[Array], Array], y: Array, x: Array) -> Array:
    """Return the integral of psi^{-1}(s) - psi^{-1}(x) from x to y, on a logarithmic scale."""
    nodes, weights = unit_quadrature(64, x.dtype)
    span = log_ratio(y, x)
    s = x[..., None] * jnp.exp(jnp.multiply.outer(span, nodes))
    return span * (((inverse(s) - inverse(x)[..., None]) * s) @ weights)


def _solve(psi, inverse, gaps: Array, start: Array) -> tuple[Array, Array]:
    def plain_newton(excess, slope):
        return excess / slope

    lowest = inverse(jnp.full_like(gaps[0], 1 / len(gaps)))
    highest = inverse(jnp.ones_like(gaps[0]))
    value_and_slope = Partial(_value_and_slope, psi)
    nu = newton_root(gaps, value_and_slope, plain_newton, lowest, highest, _NEWTON_STEPS)
    return psi(nu - gaps), nu
