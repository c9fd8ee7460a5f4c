"""The distribution of a log barrier and the entropy of the complement, with a weight for each arm.

With phi'(p) = 1 - 1/p - g ln(1 - p), which rises from -inf at 0 to inf at 1 and has no inverse in
closed form.
"""

import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from sfmab_jax.numerics.arms import arm_sum, is_arm, leading_arm, pick
from sfmab_jax.numerics.root_finding import MOST_STEPS

__all__ = ["complemented_distribution"]


class _Step(NamedTuple):
    """What a Newton step leaves."""

    play: Array  # p [n]
    odds: Array  # (1 - p) / p, for the next step [n]
    nu: Array
    low: Array  # bounds of nu
    high: Array
    goes_on: Array  # whether another step is due, bool []
    steps_left: Array


def complemented_distribution(weights: Array, gamma: Array, gaps: Array, guess: Array) -> Array:
    """Return p [n] that minimises x.p + sum_i b_i phi(p_i) on the simplex.

    b_i phi'(p_i) + x_i = nu for all i. Newton's method for nu and all p at once. For nu it looks
    for the root of the logarithm of the ratio of sum_{i != k} p_i(nu) and 1 - p_k(nu), k the arm
    that has 1/n at the least nu: nearly linear, and accurate where one arm has nearly all. For p it
    is in w = (1 - p) / p, where -phi' = w - g ln(1 + 1/w) is concave, so that from below no step
    passes the root, and a step from above goes below it.

    Args:
      weights: b [n], positive.
      gamma: g [], positive.
      gaps: x [n], not negative with minimum 0.
      guess: p or something like it [n]; it saves time, nothing else.
    """
    if len(gaps) == 1:
        return jnp.ones_like(gaps)
    return _solve(weights, gamma, gaps, guess)


@jax.custom_jvp
def _solve(weights: Array, gamma: Array, gaps: Array, guess: Array) -> Array:
    n, eps = len(gaps), jnp.finfo(gaps.dtype).eps
    small = eps**0.5 / 16
    guess = jnp.clip(guess, eps**4, 1 - eps)
    # One arm has 1/n or more.
    centre = 1 - n - gamma * math.log1p(-1 / n)
    at_centre = weights * centre + gaps
    low, leader = jnp.min(at_centre), leading_arm(at_centre)
    leads = is_arm(leader, gaps)
    # At the lowest nu w >= n - 1, and so w <= -v + g ln(n / (n - 1)); the others have p or more.
    p = 1 / (1 - (low - gaps) / weights - gamma * math.log1p(-1 / n))
    rest = jnp.minimum(arm_sum(jnp.where(leads, 0, p)), 1 - 1 / n)
    most = -rest / (1 - rest) - gamma * jnp.log(rest)
    high = jnp.maximum(pick(weights, leader) * most + pick(gaps, leader), low)

    def closer(w: Array, v: Array) -> Array:
        return _ahead(w, -(_minus_slope(gamma, w) + v) / _minus_curvature(gamma, w))

    def newton(odds: Array, nu: Array, low: Array, high: Array, steps_left: Array) -> _Step:
        v = (nu - gaps) / weights
        before = closer(odds, v)
        w = closer(before, v)
        is_settled = jnp.all(jnp.abs(w - before) <= 16 * small * w)
        p, slope = 1 / (1 + w), _slope(gamma, w) / weights
        others, rest = arm_sum(jnp.where(leads, 0, p)), pick(w * p, leader)
        excess = jnp.log(others / rest)
        steepness = arm_sum(jnp.where(leads, 0, slope)) / others + pick(slope, leader) / rest
        low = jnp.where(is_settled & (excess < 0), nu, low)
        high = jnp.where(is_settled & (excess >= 0), nu, high)
        next_nu = nu - excess / steepness
        is_inside = (next_nu >= low) & (next_nu <= high)
        next_nu = jnp.where(is_inside, next_nu, low + (high - low) / 2)
        is_last = is_settled & is_inside & (jnp.abs(excess) <= small)
        # Over the last step p is linear up to rounding.
        play = jnp.maximum(p + slope * (next_nu - nu), 0)
        odds = _ahead(w, -(next_nu - nu) / (weights * _minus_curvature(gamma, w)))
        goes_on = ~is_last & (steps_left > 0)
        return _Step(play, odds, next_nu, low, high, goes_on, steps_left - 1)

    # A Newton step from the guess on the constrained problem.
    odds = 1 / guess - 1
    slopes = _slope(gamma, odds) / weights
    height = gaps - weights * _minus_slope(gamma, odds)
    start = jnp.clip(arm_sum(slopes * height) / arm_sum(slopes), low, high)
    first = newton(odds, start, low, high, jnp.int32(MOST_STEPS))

    # As in `root_finding.monotone_solve`.
    def go_on() -> Array:
        return jax.lax.while_loop(
            lambda step: step.goes_on, lambda step: newton(*step[1:5], step.steps_left), first
        ).play

    return jax.lax.cond(first.goes_on, go_on, lambda: first.play)


def _ahead(w: Array, step: Array) -> Array:
    """Return w moved by a step, or a smaller w where that goes too near 0."""
    nearest = jnp.clip(w / 8, jnp.finfo(w.dtype).eps ** 4, 1)
    return jnp.maximum(w + step, nearest)


def _minus_slope(gamma: Array, w: Array) -> Array:
    """Return -phi'(p) from w."""
    return w - gamma * jnp.log1p(1 / w)


def _minus_curvature(gamma: Array, w: Array) -> Array:
    """Return the derivative of that by w."""
    return 1 + gamma / (w * (1 + w))


def _slope(gamma: Array, w: Array) -> Array:
    """Return 1 / phi''(p) = 1 / (1/p^2 + g / (1 - p)) from w."""
    return w / ((1 + w) * (w * (1 + w) + gamma))


@_solve.defjvp
def _solve_jvp(primals, tangents):
    (weights, gamma, gaps, guess), (weights_dot, gamma_dot, gaps_dot, _) = primals, tangents
    play = _solve(weights, gamma, gaps, guess)
    # b phi'(p) + x = nu: dp = (dnu - dx - phi' db + b ln(1 - p) dg) / (b phi''), of sum 0.
    log_rest = jnp.log1p(-play)
    h = _slope(gamma, 1 / play - 1) / weights
    change = weights_dot * (1 - 1 / play - gamma * log_rest) - weights * log_rest * gamma_dot
    moved = gaps_dot + change
    return play, h * (arm_sum(h * moved) / arm_sum(h) - moved)
