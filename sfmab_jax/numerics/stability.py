"""The mixability gap M_t(eta) and the stability term Psi, without cancellation.

Psi_p(y) = sup_q [ y.(p - q) - Breg_F(q || p) ] over the simplex, and M_t(eta) =
Psi_{p_t}(eta l_t) / eta (section 5 of the paper). At the maximiser q, psi^{-1}(q) =
psi^{-1}(p) - y - shift, and Psi = Breg_F(p || q): a sum of n non-negative terms. An error in the
shift costs only its square, and any shift gives an upper bound.
"""

import chex
import jax.numpy as jnp
from jax import Array, lax

from sfmab_jax.numerics import hints
from sfmab_jax.numerics.arms import arm_sum, leading_arm, pick
from sfmab_jax.numerics.bits import inverse_power, rounded
from sfmab_jax.numerics.double_word import Sum, two_product, two_sum
from sfmab_jax.numerics.potential import Potential, Stability
from sfmab_jax.numerics.remainders import exp_remainder, unit_quadrature

__all__ = [
    "entropy_stability",
    "general_stability",
    "mixability_gap",
    "mixability_gap_on_arm",
]

# Points of quadrature over a move by less than a factor two, and over one of any length.
_FEW_NODES = 12
_MANY_NODES = 64


def mixability_gap(
    potential: Potential, play: Array, loss: Array, learning_rate: Array | float
) -> Array:
    """Return M(eta) = sup_q [ l.(p - q) - Breg_F(q || p) / eta ] over the simplex, >= 0.

    Algorithm 1, line "Compute eta_t", and section 5. For the built-in potentials the relative
    error is below 1e-5 in float32 and 1e-12 in float64 for eta |l| from 1e-12 to 1e12, against
    the exact M of p, eta and l as they are stored, with q summing to sum(p). Where eta l(i) all but
    cancels psi^{-1}(p(i)) of an arm of 1e-9, the rounding in sum(p) shows; there `tsallis` errs by
    four roundings of its arguments more than `square_root`.

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
    # M does not change if all losses move by one offset. The offset taken out, before eta l is
    # rounded, is the mean loss, so that differences between likely arms keep their digits. It is
    # clipped to the range of the losses, so that equal losses become exactly 0. M depends on
    # neither offset nor ceiling, so no derivative passes through them.
    lowest, highest = lax.stop_gradient((jnp.min(loss), jnp.max(loss)))
    mean = lax.stop_gradient(jnp.clip(arm_sum(play * loss), lowest, highest))
    # M is within 1e-29 of its limit beyond this rate, and eta * l must not overflow.
    ceiling = 1e30 / jnp.maximum(highest - lowest, jnp.finfo(loss.dtype).tiny)
    rate = jnp.minimum(learning_rate, ceiling)
    value, error = two_sum(loss, -mean)
    y = two_product(rate, value)
    y = Sum(y.value, lax.stop_gradient(y.error + rate * error))
    return potential.stability(play, *y) / rate


def mixability_gap_on_arm(
    potential: Potential, play: Array, arm: Array, loss: Array, learning_rate: Array
) -> tuple[Array, Stability]:
    """Return the mixability gap M(eta) for a loss [] of one arm and 0 of the others, and its Psi.

    For potentials that have ``stability_on_arm``. The `Stability` also gives a start for the search
    of the next play.
    """
    largest = jnp.maximum(jnp.abs(lax.stop_gradient(loss)), jnp.finfo(loss.dtype).tiny)
    # As in `mixability_gap`: M is at its limit beyond this rate. By a power of two near 1 / |l|, as
    # a division would take longer.
    rate = jnp.minimum(learning_rate, 5e29 * inverse_power(largest))
    assert potential.stability_on_arm is not None
    # eta l in two words, written apart as only the first is worth storing.
    rate, y = hints.keep(rate, rounded(rate * loss))
    error = two_product(rate, loss).error
    stability = potential.stability_on_arm(play, arm, y, error)
    return stability.value / rate, stability


def entropy_stability(play: Array, dual_loss: Array, dual_error: Array | float = 0.0) -> Array:
    """Return Psi_p(y) for psi = exp, in closed form: q = p exp(-y) / sum(p exp(-y)).

    psi^{-1}(p) is never so large that the rounding error of y, ``dual_error``, would count.
    """
    dual_loss = rounded(dual_loss)
    # Arms whose probability has underflowed to zero are left out.
    alive = play > 0
    scores = jnp.where(alive, dual_loss - jnp.log(jnp.where(alive, play, 1)), jnp.inf)
    offsets = jnp.where(alive, dual_loss - pick(dual_loss, leading_arm(scores)), 0)
    # `leading_arm` allows eight roundings, at scores of 1e8 about 100: the arm may be that far from
    # the least. Offsets are raised to -60 at least, lest exp(-offset) overflow.
    offsets = offsets - jnp.minimum(jnp.min(offsets) + 60, 0)
    # Terms with an exponential are stored: inside their sum they would not be vectorised.
    changes, masses = hints.keep(play * jnp.expm1(-offsets), play * jnp.exp(-offsets))
    change, mass = arm_sum(changes), arm_sum(masses)
    # Each logarithm gets arguments of its own range only: the derivative of a branch that is not
    # taken would be NaN where it is infinite.
    is_small = jnp.abs(change) < 0.5
    log_small = jnp.log1p(jnp.where(is_small, change, 0))
    log_mass = jnp.where(is_small, log_small, jnp.log(jnp.where(is_small, 1, mass)))
    (terms,) = hints.keep(play * exp_remainder(-(offsets + log_mass)))
    return arm_sum(terms)


def general_stability(
    play: Array, dual_loss: Array, dual_error: Array | float = 0.0, *, potential: Potential
) -> Array:
    """Return Psi_p(y) for any potential, from psi, its inverse and their derivatives.

    Newton on the shift e in psi^{-1}(q) = psi^{-1}(p) - (y - y(k) + e), k the leader of q; the
    rounding error of y is not used. Where a point moves by less than a factor two, p - q and the
    divergence are integrals of psi' over the move, by quadrature: relatively accurate for small y.
    Further down the divergence is the integral of p - psi, which allows for q = 0; further up it
    is the potential's own.
    """
    dual_loss = rounded(dual_loss)
    u = potential.inverse(play)
    leader = leading_arm(dual_loss - u)
    u_leader = pick(u, leader)
    offsets = dual_loss - pick(dual_loss, leader)
    gaps = offsets + (u_leader - u)
    gaps = gaps - jnp.min(gaps)
    u_q = potential.solve(gaps, u_leader)[1] - gaps
    q = potential.psi(u_q)
    all_near = jnp.all((q < 2 * play) & (play < 2 * q))
    shift = _settle_shift(potential, u, offsets, u_leader - pick(u_q, leader), all_near)
    move = jnp.where(all_near, offsets + shift, u - u_q)
    q = jnp.where(all_near, potential.psi(u - jnp.where(all_near, move, 0)), q)
    is_near = (q < 2 * play) & (play < 2 * q)
    nodes, weights = unit_quadrature(_FEW_NODES, play.dtype)
    slopes = _slopes_along(potential, u, jnp.where(is_near, move, 0), nodes)
    near = move**2 * (slopes @ (weights * (1 - nodes)))
    up = potential.divergence(play, jnp.maximum(q, play))
    far = jnp.where(move > 0, _divergence_down(potential, play, u, move), up)
    return arm_sum(jnp.where(is_near, near, far))


def _slopes_along(potential: Potential, u: Array, move: Array, nodes: Array) -> Array:
    """Return psi' at u - move * nodes, [n, nodes]."""
    return potential.derivative(u[:, None] - jnp.outer(move, nodes))


def _settle_shift(
    potential: Potential, u: Array, offsets: Array, guess: Array, all_near: Array
) -> Array:
    """Return the shift e with sum(q - p) = 0 to full relative accuracy if q is near p, else 0.

    Args:
      potential: psi.
      u: psi^{-1}(p) [n].
      offsets: y - y(k) [n].
      guess: e up to the rounding of u [].
      all_near: whether every arm moves by less than a factor two, bool [].
    """
    nodes, weights = unit_quadrature(_FEW_NODES, u.dtype)
    shift = jnp.where(all_near, guess, 0)
    # The guess is right to some digits, and each Newton step doubles them.
    for _ in range(3):
        move = jnp.where(all_near, offsets + shift, 0)
        deficit = arm_sum(move * (_slopes_along(potential, u, move, nodes) @ weights))
        shift = shift - deficit / arm_sum(potential.derivative(u - move))
    return shift


def _divergence_down(potential: Potential, play: Array, u: Array, move: Array) -> Array:
    """Return the integral of p - psi(u - s) over s from 0 to ``move`` [n], 0 where it is negative.

    By quadrature on a scale that is logarithmic beyond the length on which psi changes.
    """
    length = play / potential.derivative(u)
    log_length = jnp.log1p(jnp.maximum(move, 0) / length)
    nodes, weights = unit_quadrature(_MANY_NODES, play.dtype)
    steps = length[:, None] * jnp.expm1(jnp.outer(log_length, nodes))
    stretch = (log_length * length)[:, None] + log_length[:, None] * steps
    lost = play[:, None] - potential.psi(u[:, None] - steps)
    return (lost * stretch) @ weights
