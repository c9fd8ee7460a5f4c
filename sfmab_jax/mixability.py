"""The mixability gap M_t(eta) and the stability term Psi, without cancellation.

Psi_p(y) = sup_q [ y.(p - q) - Breg_F(q || p) ] over the simplex, and M_t(eta) =
Psi_{p_t}(eta l_t) / eta (section 5 of the paper). At the maximiser q, psi^{-1}(q) =
psi^{-1}(p) - y - shift, and Psi = Breg_F(p || q): a sum of n non-negative terms. An error in the
shift costs only its square, and any shift gives an upper bound.
"""

from typing import TYPE_CHECKING, NamedTuple

import chex
import jax.numpy as jnp
from jax import Array, lax

from sfmab_jax.divergences import exp_remainder, unit_quadrature
from sfmab_jax.floating import (
    Sum,
    arm_sum,
    inverse_power,
    once,
    pick,
    rounded,
    two_product,
    two_sum,
)

if TYPE_CHECKING:
    from sfmab_jax.potentials import Potential

__all__ = [
    "Stability",
    "entropy_stability",
    "gap_of_arm",
    "general_stability",
    "leading_arm",
    "mixability_gap",
]


class Stability(NamedTuple):
    """Psi_p(y), and from where to seek the next play: see `start_at`."""

    value: Array  # Psi []
    top: Array  # psi^{-1} of the largest entry of the maximiser q []
    centre: Array  # the mean of u = psi^{-1}(q) weighted with psi'(u) []

    def start_at(self, kept: Array) -> Array:
        """A guess of psi^{-1}(max p) for eta and the losses of q, eta multiplied by ``kept``.

        u becomes kept * u + d; to first order in 1 - kept, d = (1 - kept) * centre.
        """
        return self.centre + kept * (self.top - self.centre)


def mixability_gap(
    potential: "Potential", play: Array, loss: Array, learning_rate: Array | float
) -> Array:
    """M(eta) = sup_q [ l.(p - q) - Breg_F(q || p) / eta ] over the simplex; never negative.

    Algorithm 1, line "Compute eta_t", and section 5. For the built-in potentials the relative
    error is below 1e-5 in float32 and 1e-12 in float64 for eta |l| from 1e-12 to 1e12. p, eta and
    l count as exact, and q has the sum of p, which is 1 only up to rounding: where eta l(i) all
    but cancels psi^{-1}(p(i)) of an arm of 1e-9, the gap feels that much. There the general
    `tsallis`, as against `square_root`, errs by four roundings of its arguments.

    Args:
      potential: see `sfmab_jax.potentials`.
      play: p [n], on the simplex.
      loss: l [n], any sign.
      learning_rate: eta > 0.

    Returns:
      M, [].

    >>> from sfmab_jax import potentials
    >>> gap = mixability_gap(potentials.log_barrier(), jnp.full(2, 0.5), jnp.array([1.0, 0.0]), 2.0)
    >>> print(f"{gap:.5f}")
    0.11299
    """
    chex.assert_rank([play, loss], 1)
    chex.assert_equal_shape([play, loss])
    # M does not change with an offset common to all arms: take it out before it is rounded in.
    # The mean, so that differences between likely arms keep their digits; between the extremes,
    # so that equal losses leave nothing.
    # No derivative passes through offset or ceiling, as M does not depend on either.
    lowest, highest = lax.stop_gradient((jnp.min(loss), jnp.max(loss)))
    mean = lax.stop_gradient(jnp.clip(arm_sum(play * loss), lowest, highest))
    # M is within 1e-29 of its limit beyond this rate, and eta * l must not overflow.
    ceiling = 1e30 / jnp.maximum(highest - lowest, jnp.finfo(loss.dtype).tiny)
    rate = jnp.minimum(learning_rate, ceiling)
    value, error = two_sum(loss, -mean)
    dual = two_product(rate, value)
    dual = Sum(dual.value, lax.stop_gradient(dual.error + rate * error))
    return potential.stability(play, *dual) / rate


def gap_of_arm(
    potential: "Potential", play: Array, arm: Array, loss: Array, learning_rate: Array
) -> tuple[Array, "Stability"]:
    """M(eta) for a loss [] of one arm and 0 of the others, where the potential has a way for it.

    Also the stability term itself, which knows where the next play will be.
    """
    largest = jnp.maximum(jnp.abs(lax.stop_gradient(loss)), jnp.finfo(loss.dtype).tiny)
    rate = jnp.minimum(learning_rate, 5e29 * inverse_power(largest))
    assert potential.stability_on_arm is not None
    rate, dual = once(rate, rounded(rate * loss))
    stability = potential.stability_on_arm(play, arm, dual, lambda: two_product(rate, loss).error)
    return stability.value / rate, stability


def entropy_stability(play: Array, dual_loss: Array, dual_error: Array | float = 0.0) -> Array:
    """Psi_p(y) for psi = exp, in closed form: q = p exp(-y) / sum(p exp(-y)).

    psi^{-1}(p) is never so large that the error of y would count.
    """
    dual_loss = rounded(dual_loss)
    # Arms whose probability has underflowed to zero are left out.
    alive = play > 0
    moved = jnp.where(alive, dual_loss - jnp.log(jnp.where(alive, play, 1)), jnp.inf)
    offsets = jnp.where(alive, dual_loss - pick(dual_loss, leading_arm(moved)), 0)
    # Scores of 1e8 are near-equal up to hundreds, where exp would overflow.
    offsets = offsets - jnp.minimum(jnp.min(offsets) + 60, 0)
    # Made apart from their sums: together they are too long for the compiler to make vectors of.
    changes, masses = once(play * jnp.expm1(-offsets), play * jnp.exp(-offsets))
    change, mass = arm_sum(changes), arm_sum(masses)
    # Each logarithm is kept from the other's arguments, where its derivative may be infinite.
    near = jnp.abs(change) < 0.5
    log_near = jnp.log1p(jnp.where(near, change, 0))
    log_mass = jnp.where(near, log_near, jnp.log(jnp.where(near, 1, mass)))
    (terms,) = once(play * exp_remainder(-(offsets + log_mass)))
    return arm_sum(terms)


def general_stability(
    play: Array, dual_loss: Array, dual_error: Array | float = 0.0, *, potential: "Potential"
) -> Array:
    """Psi_p(y) for any potential, from psi, its inverse and their derivatives.

    Newton on the shift e in u = psi^{-1}(p) - (y - y(k) + e). Where a point moves by less than
    a factor two, p - q and the divergence are integrals of psi' over the move, by quadrature:
    relatively accurate for small y. Further down the divergence is the integral of p - psi, which
    allows for q = 0; further up it is the potential's own.
    """
    dual_loss = rounded(dual_loss)
    u = potential.inverse(play)
    leader = leading_arm(dual_loss - u)
    u_leader = pick(u, leader)
    offsets = dual_loss - pick(dual_loss, leader)
    gaps = offsets + (u_leader - u)
    gaps = gaps - jnp.min(gaps)
    moved = potential.solve(gaps, u_leader)[1] - gaps
    q = potential.psi(moved)
    near = jnp.all((q < 2 * play) & (play < 2 * q))
    nodes, weights = unit_quadrature(12, play.dtype)

    def slope_along(move: Array) -> Array:
        return potential.derivative(u[:, None] - jnp.outer(move, nodes))

    # Near p, improve the shift until sum(q - p) = 0 to full relative accuracy.
    shift = jnp.where(near, u_leader - pick(moved, leader), 0)
    for _ in range(3):
        move = jnp.where(near, offsets + shift, 0)
        deficit = arm_sum(move * (slope_along(move) @ weights))
        shift = shift - deficit / arm_sum(potential.derivative(u - move))
    move = jnp.where(near, offsets + shift, u - moved)
    q = jnp.where(near, potential.psi(u - jnp.where(near, move, 0)), q)
    close = (q < 2 * play) & (play < 2 * q)
    integral = move**2 * (slope_along(jnp.where(close, move, 0)) @ (weights * (1 - nodes)))
    # Downwards on a scale that is logarithmic beyond the length on which psi changes.
    length = play / potential.derivative(u)
    down = jnp.maximum(move, 0)
    span = jnp.log1p(down / length)
    many_nodes, many_weights = unit_quadrature(64, play.dtype)
    steps = length[:, None] * jnp.expm1(jnp.outer(span, many_nodes))
    stretch = (span * length)[:, None] + span[:, None] * steps
    lost = play[:, None] - potential.psi(u[:, None] - steps)
    up = potential.divergence(play, jnp.maximum(q, play))
    far = jnp.where(move > 0, (lost * stretch) @ many_weights, up)
    return arm_sum(jnp.where(close, integral, far))


def leading_arm(scores: Array) -> Array:
    """An arm whose score is the smallest up to rounding, int32 [].

    A compiler may round the scores differently where it finds their minimum and where it compares
    them with it, so they are not compared for equality; which of two near-equals is taken does
    not matter.
    """
    lowest = jnp.min(scores)
    slack = 8 * jnp.finfo(scores.dtype).eps * jnp.abs(lowest)
    places = jnp.arange(len(scores), dtype=jnp.int32)
    return jnp.min(jnp.where(scores <= lowest + slack, places, len(scores) - 1))
