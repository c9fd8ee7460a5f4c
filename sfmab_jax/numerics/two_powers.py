"""The distribution of a regulariser of two Tsallis entropies, of the powers a and 1 - a.

With f'(p) = -p^(a-1) - r p^(-a), whose inverse has no closed form.
"""

from functools import partial

import jax
import jax.numpy as jnp
from jax import Array

from sfmab_jax.numerics.arms import arm_sum
from sfmab_jax.numerics.root_finding import monotone_solve

__all__ = ["two_power_distribution", "two_power_psi"]


def two_power_distribution(power: float, ratio: Array, gaps: Array, leader: Array) -> Array:
    """Return psi(nu - x) [n], psi the inverse of f', with nu such that it sums to 1.

    Newton's method on f'(s(nu)) = f'(1), s the sum. As the elasticity of 1 / f'' falls, from 1 + a
    to 2 - a, that is convex in nu, and a step from above never passes the root: see
    `hybrid.hybrid_distribution`.

    Args:
      power: a, between 1/2 and 1, a Python number.
      ratio: r [], not negative.
      gaps: x [n], not negative with minimum 0.
      leader: a guess of the largest probability [], which saves time, nothing else.
    """
    return _solve(power, ratio, gaps, leader)[0]


def two_power_psi(power: float, ratio: Array, u: Array) -> tuple[Array, Array]:
    """Return p with p^(a-1) + r p^(-a) = -u, elementwise for u <= -1, and dp / du.

    In z = -ln p the logarithm of the left side is convex and nearly linear, and either term alone
    gives an upper bound of z. From the smaller one Halley's steps, of third order, which here are
    at least as long as Newton's.
    """
    low, high = 1 - power, power
    target = jnp.log(-u)
    z = jnp.minimum(target / low, (target - jnp.log(ratio)) / high)
    for _ in range(3 if jnp.result_type(u) == jnp.float32 else 4):
        first, second = jnp.exp(low * z), ratio * jnp.exp(high * z)
        total = first + second
        ahead = jnp.log(total) - target
        share = second / total
        slope = low + (high - low) * share
        curvature = (high - low) ** 2 * share * (1 - share)
        z = z - ahead / (slope - ahead * curvature / (2 * slope))
    p, first = jnp.exp(-z), jnp.exp(low * z)
    return p, p / (low * first + high * (ratio / (p * first)))


@partial(jax.custom_jvp, nondiff_argnums=(0,))
def _solve(power: float, ratio: Array, gaps: Array, leader: Array) -> tuple[Array, Array]:
    low, high = 1 - power, power

    def step(excess: Array, slope: Array) -> Array:
        log = jnp.log1p(excess)
        first, second = jnp.expm1(-low * log), ratio * jnp.expm1(-high * log)
        steepness = low * (1 + first) + high * (ratio + second)
        return -(first + second) * (1 + excess) / (steepness * slope)

    def inverse(p: Array) -> Array:
        return -(p**-low) - ratio * p**-high

    lowest, highest = inverse(jnp.full_like(leader, 1 / len(gaps))), -1 - ratio
    value_and_slope = partial(two_power_psi, power, ratio)
    return monotone_solve(gaps, value_and_slope, step, lowest, highest, inverse(leader), 1 / low)


@_solve.defjvp
def _solve_jvp(power, primals, tangents):
    (ratio, gaps, leader), (ratio_dot, gaps_dot, _) = primals, tangents
    play, nu = _solve(power, ratio, gaps, leader)
    # f'(p) + x = nu: dp = (dnu - dx + p^(-a) dr) / f''(p), and the sum of dp is 0.
    first, second = play ** (power - 1), play**-power
    h = play / ((1 - power) * first + power * ratio * second)
    moved = gaps_dot - second * ratio_dot
    nu_dot = arm_sum(h * moved) / arm_sum(h)
    return (play, nu), (h * (nu_dot - moved), nu_dot)
