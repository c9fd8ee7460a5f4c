"""Local-norm lower bounds for Bregman divergences: the technique of section 4, as a tool.

Take a potential psi and a function phi >= 0. With m(u) = [psi(u + phi(u)) - psi(u)] / phi(u), the
slope of a chord of psi, and x = psi(u),

    Breg_f(y || x) >= (x - y)^2 / (2 w(x)),  w(x) = m(psi^{-1}(x)),  for 0 < y <= psi(u + phi(u)).

Lemma 6 of the paper. `up_to(top)` is the phi that reaches a given point whatever u is; with
top = 1 the log barrier has w(x) = x (Corollary 7), the entropy (x - 1) / log x, and the Tsallis
entropy of power 1/2 has 2 (x + sqrt(x)).
"""

from collections.abc import Callable
from typing import NamedTuple

import jax.numpy as jnp
from jax import Array

from sfmab_jax.numerics.remainders import unit_quadrature
from sfmab_jax.potentials import Potential

__all__ = ["LocalNorm", "chord", "local_norm", "slack", "up_to"]


class LocalNorm(NamedTuple):
    """A lower bound on Breg_f(y || x); functions work elementwise."""

    m: Callable[[Array], Array]  # u -> the slope of the chord
    w: Callable[[Array], Array]  # x -> m(psi^{-1}(x))
    reach: Callable[[Array], Array]  # x -> the largest y for which it holds


def local_norm(potential: Potential, phi: Callable[[Array], Array]) -> LocalNorm:
    """Return the lower bound that phi gives for a potential.

    Args:
      potential: see `sfmab_jax.potentials`.
      phi: u -> phi(u) >= 0, elementwise, with u + phi(u) in psi's domain. phi = 0 gives the
        local norm of the second derivative, w(x) = 1 / f''(x), which holds for y <= x only.

    >>> from sfmab_jax import potentials
    >>> barrier = potentials.log_barrier()
    >>> bound = local_norm(barrier, up_to(barrier, 1.0))
    >>> print(f"{bound.w(jnp.float32(0.25)):.4f} up to {bound.reach(jnp.float32(0.25)):.1f}")
    0.2500 up to 1.0
    """

    def m(u: Array) -> Array:
        return chord(potential, u, phi(u))

    def reach(x: Array) -> Array:
        u = potential.inverse(x)
        return potential.psi(u + phi(u))

    return LocalNorm(m=m, w=lambda x: m(potential.inverse(x)), reach=reach)


def up_to(potential: Potential, top: float) -> Callable[[Array], Array]:
    """Return the phi with psi(u + phi(u)) = top; it is 0 where psi(u) is above top already."""

    def phi(u: Array) -> Array:
        end = potential.inverse(jnp.full_like(u, top))
        return jnp.maximum(end - u, jnp.zeros_like(u))

    return phi


def chord(potential: Potential, u: Array, length: Array) -> Array:
    """[psi(u + length) - psi(u)] / length; psi'(u) at length 0.

    Where psi grows by less than half it is the mean of psi' over the chord, by quadrature, as the
    difference would cancel.
    """
    low, high = potential.psi(u), potential.psi(u + length)
    short = high < 1.5 * low
    nodes, weights = unit_quadrature(12, u.dtype)
    steps = jnp.where(short, length, 0)[..., None] * nodes.reshape((1,) * u.ndim + (-1,))
    mean_slope = potential.derivative(u[..., None] + steps) @ weights
    quotient = (high - low) / jnp.where(short, 1, length)
    return jnp.where(short, mean_slope, quotient)


def slack(potential: Potential, bound: LocalNorm, x: Array, y: Array) -> Array:
    """Breg_f(y || x) - (x - y)^2 / (2 w(x)): not negative for y <= reach(x)."""
    return potential.divergence(y, x) - (x - y) ** 2 / (2 * bound.w(x))
