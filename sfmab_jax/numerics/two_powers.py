"""The distribution of a regulariser of two Tsallis entropies, of the powers a and 1 - a.

With f'(p) = -p^(a-1) - r p^(-a), whose inverse has no closed form.
"""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from sfmab_jax.numerics.arms import arm_sum
from sfmab_jax.numerics.root_finding import MOST_STEPS

__all__ = ["two_power_distribution"]

# Within this change of all ln p the sum of p is good enough to move nu.
_NEAR = 0.25


class _Step(NamedTuple):
    """What a Newton step leaves."""

    play: Array  # p [n]
    heights: Array  # -ln p, for the next step [n]
    nu: Array
    goes_on: Array  # whether another step is due, bool []
    steps_left: Array


def two_power_distribution(power: float, ratio: Array, gaps: Array, guess: Array) -> Array:
    """Return psi(nu - x) [n], psi the inverse of f', with nu such that it sums to 1.

    Newton's method for nu and all z = -ln p at once. For nu it solves f'(s(nu)) = f'(1), s the sum:
    as the elasticity of 1 / f'' falls, from 1 + a to 2 - a, that is convex in nu, and a step from
    above never passes the root; see `hybrid.hybrid_distribution`. In z the logarithm of -f' is
    convex and nearly linear; there the steps are Halley's, of third order.

    Args:
      power: a, between 1/2 and 1, a Python number.
      ratio: r [], not negative.
      gaps: x [n], not negative with minimum 0.
      guess: p or something like it [n]; it saves time, nothing else.
    """
    return _solve(power, ratio, gaps, guess)


@partial(jax.custom_jvp, nondiff_argnums=(0,))
def _solve(power: float, ratio: Array, gaps: Array, guess: Array) -> Array:
    low, high = 1 - power, power
    eps = jnp.finfo(gaps.dtype).eps
    small, settled = eps**0.5 * low / 8, 2 * eps ** (1 / 3)
    n = len(gaps)
    least, most = -(n**low) - ratio * n**high, -1 - ratio

    def terms(z: Array) -> tuple[Array, Array]:
        """Return -f'(p), and the derivative of its logarithm by z."""
        first, second = jnp.exp(low * z), ratio * jnp.exp(high * z)
        total = first + second
        return total, low + (high - low) * (second / total)

    def newton(z: Array, nu: Array, steps_left: Array) -> _Step:
        total, slope = terms(z)
        ahead = jnp.log(total / (gaps - nu))
        curvature = (slope - low) * (high - slope)
        change = ahead / jnp.maximum(slope - ahead * curvature / (2 * slope), slope / 2)
        largest = jnp.max(jnp.abs(change))
        z = jnp.maximum(z - change, 0)
        p = jnp.exp(-z)
        # d ln p / d nu
        growth = 1 / (slope * (gaps - nu))
        excess = arm_sum(p) - 1
        log = jnp.log1p(excess)
        gain, more = jnp.expm1(-low * log), ratio * jnp.expm1(-high * log)
        steepness = (low * (1 + gain) + high * (ratio + more)) * arm_sum(p * growth)
        next_nu = jnp.clip(nu + (gain + more) * (1 + excess) / steepness, least, most)
        next_nu = jnp.where(largest <= _NEAR, next_nu, nu)
        move = next_nu - nu
        is_last = (largest <= settled) & (jnp.abs(move) <= small * jnp.abs(nu))
        # Over the last step psi is linear up to rounding.
        play = p * (1 + growth * move)
        goes_on = ~is_last & (steps_left > 0)
        return _Step(play, z - growth * move, next_nu, goes_on, steps_left - 1)

    # A Newton step from the guess on the constrained problem.
    z = -jnp.log(jnp.clip(guess, eps**4, 1))
    total, slope = terms(z)
    h = jnp.exp(-z) / (total * slope)
    start = jnp.clip(arm_sum(h * (gaps - total)) / arm_sum(h), least, most)
    first = newton(z, start, jnp.int32(MOST_STEPS))

    # As in `root_finding.monotone_solve`.
    def go_on() -> Array:
        return jax.lax.while_loop(
            lambda step: step.goes_on,
            lambda step: newton(step.heights, step.nu, step.steps_left),
            first,
        ).play

    return jax.lax.cond(first.goes_on, go_on, lambda: first.play)


@_solve.defjvp
def _solve_jvp(power, primals, tangents):
    (ratio, gaps, guess), (ratio_dot, gaps_dot, _) = primals, tangents
    play = _solve(power, ratio, gaps, guess)
    # f'(p) + x = nu: dp = (dnu - dx + p^(-a) dr) / f''(p), and the sum of dp is 0.
    first, second = play ** (power - 1), play**-power
    h = play / ((1 - power) * first + power * ratio * second)
    moved = gaps_dot - second * ratio_dot
    return play, h * (arm_sum(h * moved) / arm_sum(h) - moved)
