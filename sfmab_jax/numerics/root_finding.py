"""Newton's method for nu = lambda + max(theta), where sum_i psi(nu - x(i)) = 1."""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from sfmab_jax.numerics.arms import arm_sum

__all__ = ["MOST_STEPS", "monotone_solve", "newton_root"]

# A limit for Newton iterations that end by themselves, long before.
MOST_STEPS = 40


class _Step(NamedTuple):
    """What a Newton step leaves."""

    play: Array  # psi(nu - x) [n]
    nu: Array
    goes_on: Array  # whether another step is due, bool []
    steps_left: Array


def newton_root(
    gaps: Array,
    value_and_slope: Callable[[Array], tuple[Array, Array]],
    newton_step: Callable[[Array, Array], Array],
    lowest: Array,
    highest: Array,
    num_steps: int,
) -> Array:
    """Solve sum_i psi(nu - x(i)) = 1 by Newton's method with a bracket, in a fixed number of steps.

    The root lies between psi^{-1}(1/n) and psi^{-1}(1), since the leader (gap 0) has probability
    between 1/n and 1. As psi is convex, nu = psi^{-1}(1/n) + mean(x) is not below the root either
    (Jensen). From such a start Newton moves down towards the root and never past it; the bracket
    guards user-defined potentials and rounding.

    Args:
      gaps: x [n], non-negative with minimum 0.
      value_and_slope: u -> (psi(u), psi'(u)).
      newton_step: (excess, slope) -> the decrease of nu, where excess = sum(psi) - 1 and slope =
        sum(psi'). Plain Newton is excess / slope.
      lowest: psi^{-1}(1/n).
      highest: psi^{-1}(1).
      num_steps: a Python integer.
    """
    high = jnp.minimum(highest, lowest + jnp.mean(gaps))

    def newton(_, carry):
        nu, low, high = carry
        value, slope = value_and_slope(nu - gaps)
        excess = arm_sum(value) - 1
        low = jnp.where(excess < 0, nu, low)
        high = jnp.where(excess < 0, high, nu)
        nu = nu - newton_step(excess, arm_sum(slope))
        nu = jnp.where((nu >= low) & (nu <= high), nu, (low + high) / 2)
        return nu, low, high

    return jax.lax.fori_loop(0, num_steps, newton, (high, lowest, high))[0]


def monotone_solve(
    gaps: Array,
    value_and_slope: Callable[[Array], tuple[Array, Array]],
    newton_step: Callable[[Array, Array], Array],
    lowest: Array,
    highest: Array,
    start: Array,
    exponent: Array | float,
) -> tuple[Array, Array]:
    """Return psi(nu - x) and nu for psi(u) proportional to (-u)^(-r): no bracket is needed.

    The step never passes the root from above; from a start below the root the first step goes
    above it. Newton squares the relative error, so the first step below sqrt(eps) / (8 r) is the
    last.

    Args:
      gaps, value_and_slope, newton_step, lowest, highest: as in `newton_root`.
      start: a guess of nu; -inf for none.
      exponent: r.
    """
    small = jnp.finfo(gaps.dtype).eps ** 0.5 / (8 * exponent)

    def newton(nu: Array, steps_left: Array) -> _Step:
        value, slope = value_and_slope(nu - gaps)
        step = newton_step(arm_sum(value) - 1, arm_sum(slope))
        next_nu = jnp.clip(nu - step, lowest, highest)
        goes_on = jnp.abs(next_nu - nu) > small * jnp.abs(nu)
        # Over the last step psi is linear up to rounding.
        play = value + slope * (next_nu - nu)
        return _Step(play, next_nu, goes_on & (steps_left > 0), steps_left - 1)

    # Without a guess, start from the upper end.
    nu = jnp.where(start >= lowest, jnp.minimum(start, highest), highest)
    # The first step is always due, and often the last.
    first = newton(nu, jnp.int32(MOST_STEPS))

    # In lanes, a branch that no game takes costs nothing; a loop that does not run still copies.
    def go_on() -> _Step:
        return jax.lax.while_loop(
            lambda step: step.goes_on, lambda step: newton(step.nu, step.steps_left), first
        )

    return jax.lax.cond(first.goes_on, lambda: go_on()[:2], lambda: first[:2])
