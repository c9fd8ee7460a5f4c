"""From scores to a distribution: the normaliser lambda(theta) and psi(theta + lambda(theta)).

Appendix A of the paper. For every theta there is exactly one lambda with
sum_i psi(theta(i) + lambda) = 1; it lies below a - max(theta), where a is the end of psi's domain
(the paper prints a - min(theta), which lets in spurious roots).
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

import chex
import jax
import jax.numpy as jnp
from jax import Array

from sfmab_jax.floating import arm_sum

if TYPE_CHECKING:
    from sfmab_jax.potentials import Potential

__all__ = [
    "MOST_STEPS",
    "distribution",
    "distribution_of_gaps",
    "monotone_solve",
    "newton_root",
    "normalizer",
]

# Of a Newton iteration that ends by itself, and does so long before.
MOST_STEPS = 40


def normalizer(potential: "Potential", theta: Array) -> Array:
    """lambda(theta), the number with sum_i psi(theta(i) + lambda) = 1. Lemma 9 of the paper.

    Differentiable any number of times: by the implicit function theorem,
    d lambda = -sum_i w(i) d theta(i) with w proportional to psi'(theta + lambda).

    Args:
      potential: see `sfmab_jax.potentials`.
      theta: scores [n].

    Returns:
      lambda, []. It has the magnitude of theta, so where |theta| is large compared with 1 use
      `distribution`, which never forms it.

    >>> from sfmab_jax import potentials
    >>> print(f"{normalizer(potentials.log_barrier(), jnp.array([0.0, -1.0])):.4f}")
    -1.6180
    """
    chex.assert_rank(theta, 1)
    top = jax.lax.stop_gradient(jnp.max(theta))
    return _solve(potential, top - theta, -jnp.inf)[1] - top


def distribution(potential: "Potential", theta: Array) -> Array:
    """psi(theta + lambda(theta)), a point of the simplex. Shapes [n] -> [n], differentiable.

    The FTRL iterate of the paper (appendix C) is this at theta = -eta * (cumulative losses).

    >>> from sfmab_jax import potentials
    >>> p = distribution(potentials.log_barrier(), jnp.array([0.0, -1.0]))
    >>> [f"{x:.3f}" for x in p]
    ['0.618', '0.382']
    """
    chex.assert_rank(theta, 1)
    return distribution_of_gaps(potential, jax.lax.stop_gradient(jnp.max(theta)) - theta)


def distribution_of_gaps(
    potential: "Potential", gaps: Array, start: Array | float = -jnp.inf
) -> Array:
    """The same from the gaps x(i) = max(theta) - theta(i) >= 0, [n] -> [n].

    ``start`` is a guess of psi^{-1} of the largest probability; it saves time, nothing else.
    """
    return _solve(potential, gaps, start)[0]


@jax.custom_jvp
def _solve(potential: "Potential", gaps: Array, start: Array | float) -> tuple[Array, Array]:
    """psi(nu - x) and nu with sum_i psi(nu - x(i)) = 1."""
    return potential.solve(gaps, jnp.asarray(start, gaps.dtype))


@_solve.defjvp
def _solve_jvp(primals, tangents):
    (potential, gaps, start), (potential_dot, gaps_dot, _) = primals, tangents
    play, nu = _solve(potential, gaps, start)
    _, sum_dot = jax.jvp(
        lambda potential, gaps: arm_sum(potential.psi(nu - gaps)),
        (potential, gaps),
        (potential_dot, gaps_dot),
    )
    nu_dot = -sum_dot / arm_sum(potential.derivative(nu - gaps))
    _, play_dot = jax.jvp(
        lambda potential, u: potential.psi(u),
        (potential, nu - gaps),
        (potential_dot, nu_dot - gaps_dot),
    )
    return (play, nu), (play_dot, nu_dot)


def newton_root(
    gaps: Array,
    value_and_slope: Callable[[Array], tuple[Array, Array]],
    newton_step: Callable[[Array, Array], Array],
    lowest: Array,
    highest: Array,
    num_steps: int,
) -> Array:
    """Newton's method for sum_i psi(nu - x(i)) = 1, with a bracket and a fixed number of steps.

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
    """psi(nu - x) and nu for psi(u) proportional to (-u)^(-r): no bracket is carried.

    The step never passes the root from above; from a start below the root the first step goes
    above it. Newton squares the relative error, so the step that is small enough is the last.

    Args:
      gaps, value_and_slope, newton_step, lowest, highest: as in `newton_root`.
      start: a guess of nu, or something below ``lowest``.
      exponent: r.
    """
    small = jnp.finfo(gaps.dtype).eps ** 0.5 / (8 * exponent)

    def newton(carry):
        _, nu, _, steps_left = carry
        value, slope = value_and_slope(nu - gaps)
        step = newton_step(arm_sum(value) - 1, arm_sum(slope))
        next_nu = jnp.clip(nu - step, lowest, highest)
        moved = jnp.abs(next_nu - nu) > small * jnp.abs(nu)
        # Over the last step psi is linear up to rounding.
        play = value + slope * (next_nu - nu)
        return play, next_nu, moved & (steps_left > 0), steps_left - 1

    # Unknown, the start is the upper end.
    nu = jnp.where(start >= lowest, jnp.minimum(start, highest), highest)
    # The first step is always due, and often the last.
    carry = newton((gaps, nu, nu == nu, jnp.int32(MOST_STEPS)))
    return jax.lax.cond(
        carry[2],
        lambda: jax.lax.while_loop(lambda carry: carry[2], newton, carry)[:2],
        lambda: carry[:2],
    )
