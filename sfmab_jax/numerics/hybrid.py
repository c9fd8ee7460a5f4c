"""The distribution of a hybrid regulariser, a square root with a share of entropy.

With f(p) = -2 sqrt(p) + w p (ln p - 1), f'(p) = -1/sqrt(p) + w ln p has no inverse in closed form.
"""

import jax
import jax.numpy as jnp
from jax import Array

from sfmab_jax.numerics.arms import arm_sum
from sfmab_jax.numerics.root_finding import monotone_solve

__all__ = ["hybrid_distribution", "hybrid_psi"]


def hybrid_distribution(weight: Array, gaps: Array, leader: Array) -> Array:
    """Return psi(nu - x) [n], psi the inverse of f', with nu such that it sums to 1.

    Newton's method on f'(s(nu)) = f'(1), s the sum. That is convex in nu: with h(p) = 1 / f''(p),
    whose elasticity p h'/h falls from 3/2 to 1, its second derivative has the sign of
    sum h'(p) h(p) h(s) - h'(s) (sum h(p))^2, not negative as sum h(p)^2 / p >= (sum h(p))^2 / s. So
    a step from above never passes the root.

    Args:
      weight: w [], not negative.
      gaps: x [n], not negative with minimum 0.
      leader: a guess of the largest probability [], which saves time, nothing else.
    """
    return _solve(weight, gaps, leader)[0]


def hybrid_psi(weight: Array, u: Array) -> Array:
    """Return p with -1/sqrt(p) + w ln p = u, elementwise for u <= -1.

    y = 1/sqrt(p) solves y + 2 w ln y = v = -u: Wright's omega function of v/2w - ln 2w, times 2w.
    The iteration is that of Fritsch, Shafer and Crowley (1973) for it, of fourth order, written so
    that w may be 0; it starts from the smaller of two upper bounds, v and exp(v / 2w).
    """
    return _inverse_square(_omega(2 * weight, -u))


@jax.custom_jvp
def _solve(weight: Array, gaps: Array, leader: Array) -> tuple[Array, Array]:
    n = len(gaps)

    def value_and_slope(u: Array) -> tuple[Array, Array]:
        y = _omega(2 * weight, -u)
        p = _inverse_square(y)
        return p, 2 * p / (y + 2 * weight)

    def step(excess: Array, slope: Array) -> Array:
        total = 1 + excess
        root = jnp.sqrt(total)
        ahead = excess / (root * (1 + root)) + weight * jnp.log1p(excess)
        return ahead * total / ((0.5 / root + weight) * slope)

    def inverse(p: Array) -> Array:
        return -1 / jnp.sqrt(p) + weight * jnp.log(p)

    lowest, highest = inverse(jnp.full_like(leader, 1 / n)), jnp.full_like(leader, -1)
    return monotone_solve(gaps, value_and_slope, step, lowest, highest, inverse(leader), 2.0)


@_solve.defjvp
def _solve_jvp(primals, tangents):
    (weight, gaps, leader), (weight_dot, gaps_dot, _) = primals, tangents
    play, nu = _solve(weight, gaps, leader)
    # f'(p) + x = nu: dp = h (dnu - dx - ln p dw), and the sum of dp is 0.
    h = 1 / (0.5 / (play * jnp.sqrt(play)) + weight / play)
    moved = gaps_dot + jnp.log(play) * weight_dot
    nu_dot = arm_sum(h * moved) / arm_sum(h)
    return (play, nu), (h * (nu_dot - moved), nu_dot)


def _inverse_square(y: Array) -> Array:
    return (1 / y) ** 2


def _omega(twice: Array, v: Array) -> Array:
    """Return y >= 1 with y + b ln y = v, b = ``twice``; see `hybrid_psi`."""
    y = jnp.minimum(v, jnp.exp(v / twice))
    for _ in range(3):
        q = (v - y - twice * jnp.log(y)) / (y + twice)
        share = q * twice / (y + twice)
        y = y * (1 + q * (2 + 4 / 3 * q - share) / (2 + 4 / 3 * q - 2 * share))
    return y
