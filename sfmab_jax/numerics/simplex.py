"""From scores to a distribution: the normaliser lambda(theta) and psi(theta + lambda(theta)).

Appendix A of the paper. For every theta there is exactly one lambda with
sum_i psi(theta(i) + lambda) = 1; it lies below a - max(theta), where a is the end of psi's domain
(the paper prints a - min(theta), which lets in spurious roots).
"""

import chex
import jax
import jax.numpy as jnp
from jax import Array

from sfmab_jax.numerics.arms import arm_sum
from sfmab_jax.numerics.potential import Potential

__all__ = ["distribution", "distribution_of_gaps", "normalizer"]


def normalizer(potential: Potential, theta: Array) -> Array:
    """Return lambda(theta), the number with sum_i psi(theta(i) + lambda) = 1: Lemma 9.

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


def distribution(potential: Potential, theta: Array) -> Array:
    """Return psi(theta + lambda(theta)), a point of the simplex; [n] -> [n], differentiable.

    The FTRL iterate of the paper (appendix C) is this at theta = -eta * (cumulative losses).

    >>> from sfmab_jax import potentials
    >>> p = distribution(potentials.log_barrier(), jnp.array([0.0, -1.0]))
    >>> [f"{x:.3f}" for x in p]
    ['0.618', '0.382']
    """
    chex.assert_rank(theta, 1)
    return distribution_of_gaps(potential, jax.lax.stop_gradient(jnp.max(theta)) - theta)


def distribution_of_gaps(
    potential: Potential, gaps: Array, start: Array | float = -jnp.inf
) -> Array:
    """Return psi(theta + lambda(theta)) [n] from the gaps x(i) = max(theta) - theta(i) >= 0, [n].

    ``start`` is a guess of psi^{-1} of the largest probability; it saves time, nothing else.
    """
    return _solve(potential, gaps, start)[0]


@jax.custom_jvp
def _solve(potential: Potential, gaps: Array, start: Array | float) -> tuple[Array, Array]:
    """Return psi(nu - x) and nu with sum_i psi(nu - x(i)) = 1."""
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
