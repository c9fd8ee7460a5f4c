"""The negative entropy with a share of the log barrier, x log x - theta log x.

psi^{-1}(x) = 1 + log x - theta / x has an inverse in Lambert's function W, y exp(y) at y = W.
"""

import math

import jax
import jax.numpy as jnp
from jax import Array
from jax.tree_util import Partial

from sfmab_jax.checks import check_number, is_known
from sfmab_jax.numerics.potential import Potential
from sfmab_jax.numerics.remainders import exp_remainder, log_ratio, log_remainder
from sfmab_jax.numerics.root_finding import monotone_solve
from sfmab_jax.numerics.stability import general_stability

__all__ = ["entropy_with_barrier", "entropy_with_barrier_of"]


def entropy_with_barrier(weight: Array | float = 1.0) -> Potential:
    """The entropy with a log barrier: psi(u) = theta / W(theta exp(1 - u)), W Lambert's function.

    f(x) = x log x - theta log x. The regulariser of `strategies.hybrid_barrier`: the entropy sets
    its rate, the barrier keeps each probability from changing much in a round.

    Args:
      weight: theta, not negative; at 0 this is `negative_entropy` but for the constant 1 in
        psi^{-1}(x) = 1 + log x - theta / x.

    >>> print(f"{entropy_with_barrier(2.0).psi(jnp.float32(-1.0)):.4f}")
    1.0000
    """
    check_number("weight", weight)
    if is_known(weight) and weight < 0:
        raise ValueError(f"weight is {weight!r}; the weight of a barrier cannot be negative")
    return entropy_with_barrier_of(weight)


def entropy_with_barrier_of(weight: Array | float) -> Potential:
    """Return `entropy_with_barrier` of a weight known to be right."""
    incomplete = Potential(
        psi=Partial(_psi, weight),
        inverse=Partial(_inverse, weight),
        derivative=Partial(_derivative, weight),
        primitive=Partial(_primitive, weight),
        conjugate=Partial(_conjugate, weight),
        divergence=Partial(_divergence, weight),
        solve=Partial(_solve, weight),
        stability=Partial(general_stability),  # which needs the potential itself, below
    )
    return incomplete._replace(stability=Partial(general_stability, potential=incomplete))


@jax.custom_jvp
def _psi(weight: Array | float, u: Array) -> Array:
    """Return x with log x - theta / x = u - 1.

    y = theta / x = W(theta exp(1 - u)) solves y + log y = v, v = log(theta) + 1 - u. The iteration
    is that of Fritsch, Shafer and Crowley (1973), of fourth order, for x in place of y: no
    exponential of v is formed, which could overflow, and theta may be 0. It starts from the lower
    bounds of x that come from y <= v, if v >= 1, and from y <= exp(v).
    """
    v = jnp.log(weight) + (1 - u)
    x = jnp.where(v > 1, weight / v, jnp.exp(u - 1))
    for _ in range(2 if jnp.result_type(u) == jnp.float32 else 3):
        inverse = 1 / x
        y = weight * inverse
        r = (1 - u) + jnp.log(x) - y
        q = 2 * (1 + y) * (1 + y + r * (2 / 3))
        # The last factor is (q - r) / (q - 2 r), in a form in which q may overflow.
        x = x / (1 + r / (1 + y) * (1 + r / (q - 2 * r)))
    return x


@_psi.defjvp
def _psi_jvp(primals, tangents):
    (weight, u), (weight_dot, u_dot) = primals, tangents
    x = _psi(weight, u)
    return x, x * (x * u_dot + weight_dot) / (x + weight)


def _inverse(weight: Array | float, x: Array) -> Array:
    return 1 + jnp.log(x) - weight / x


def _slope(weight: Array | float, x: Array) -> Array:
    return x * (x / (x + weight))


def _derivative(weight: Array | float, u: Array) -> Array:
    return _slope(weight, _psi(weight, u))


def _primitive(weight: Array | float, x: Array) -> Array:
    return (x - weight) * jnp.log(x)


def _conjugate(weight: Array | float, u: Array) -> Array:
    x = _psi(weight, u)
    return x - weight + weight * jnp.log(x)


def _divergence(weight: Array | float, y: Array, x: Array) -> Array:
    entropy = y * exp_remainder(log_ratio(x, y))
    barrier = jnp.where(y > 0, log_remainder((y - x) / x, y / x), jnp.inf)
    return entropy + weight * barrier


def _solve(weight: Array | float, gaps: Array, start: Array) -> tuple[Array, Array]:
    """Find nu with f'(s(nu)) = f'(1), s the sum of psi(nu - x), by Newton's method.

    f'(s) is convex in nu, as 1 / f''(p) = p^2 / (p + theta) has an elasticity that falls, from 2
    to 1; see `numerics.hybrid.hybrid_distribution`. The search is for nu - 2 <= -1 - theta, of
    which relative changes are those that count.
    """

    def value_and_slope(u: Array) -> tuple[Array, Array]:
        p = _psi(weight, u + 2)
        return p, _slope(weight, p)

    def step(excess: Array, slope: Array) -> Array:
        total = 1 + excess
        ahead = jnp.log1p(excess) * total + weight * excess
        return ahead * total / ((total + weight) * slope)

    n = len(gaps)
    one = jnp.ones_like(gaps[0])
    lowest, highest = -(1 + math.log(n)) * one - weight * n, -one - weight
    play, nu = monotone_solve(gaps, value_and_slope, step, lowest, highest, start - 2, 1.0)
    return play, nu + 2
