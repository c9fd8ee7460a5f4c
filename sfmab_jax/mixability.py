"""The mixability gap M_t(eta) and the stability term Psi, without cancellation.

Psi_p(y) = sup_q [ y.(p - q) - Breg_F(q || p) ] over the simplex, and M_t(eta) =
Psi_{p_t}(eta l_t) / eta (section 5 of the paper). At the maximiser q, psi^{-1}(q) =
psi^{-1}(p) - y - shift, and Psi = Breg_F(p || q): a sum of n non-negative terms. An error in the
shift costs only its square, and any shift gives an upper bound.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

import chex
import jax.numpy as jnp
from jax import Array, lax

from sfmab_jax.divergences import RADIUS, exp_remainder, unit_quadrature
from sfmab_jax.floating import arm_sum, pick
from sfmab_jax.simplex import MOST_STEPS

if TYPE_CHECKING:
    from sfmab_jax.potentials import Potential

__all__ = ["entropy_stability", "general_stability", "mixability_gap", "power_stability"]

# Below this bound on |p/q - 1| the maximiser is sought relative to p, above it absolutely.
_RELATIVE = 0.5


def mixability_gap(
    potential: "Potential", play: Array, loss: Array, learning_rate: Array | float
) -> Array:
    """M(eta) = sup_q [ l.(p - q) - Breg_F(q || p) / eta ] over the simplex; never negative.

    Algorithm 1, line "Compute eta_t", and section 5. For the built-in potentials the relative
    error is below 1e-5 in float32 and 1e-12 in float64 for eta |l| from 1e-12 to 1e12. The
    exception is inherent: where eta l(i) all but cancels psi^{-1}(p(i)) of a rare arm, the gap
    depends on digits that p, which sums to 1 only up to rounding, does not have; there the error
    is that of rounding the arguments four times.

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
    loss = loss - lax.stop_gradient(jnp.clip(arm_sum(play * loss), lowest, highest))
    # M is within 1e-29 of its limit beyond this rate, and eta * l must not overflow.
    ceiling = 1e30 / jnp.maximum(highest - lowest, jnp.finfo(loss.dtype).tiny)
    rate = jnp.minimum(learning_rate, ceiling)
    return potential.stability(play, rate * loss) / rate


def power_stability(
    play: Array,
    dual_loss: Array,
    *,
    inverse_dual: Callable[[Array], Array],
    shrink: Callable[[Array, Array], tuple[Array, Array, Array]],
    newton_step: Callable[[Array, Array], Array],
    divergence_near: Callable[[Array, Array], Array],
    divergence: Callable[[Array, Array, Array], Array],
    exponent: Array | float,
    coefficient: Array | float,
) -> Array:
    """Psi_p(y) for psi(u) = (-u / c)^(-r): the log barrier (r = c = 1) and the Tsallis family.

    With w = 1 / |psi^{-1}(p)|, a shift e moves p to q = p (1 + z)^(-r), z = w (y + e). The unknown
    is e; or, where an arm rises so far that 1 + z would cancel, m = e + min(1/w + y), which is
    1 / w(q) of the leader of q, and 1 + z = w (x + m) with x the gaps of 1/w + y to its minimum.
    Both read 1 + z = o + w (base + v) with o = 1 or 0, so one Newton iteration serves both.

    Args:
      play: p [n].
      dual_loss: y [n].
      inverse_dual: p -> w.
      shrink: (z, 1 + z) -> (q / p, 1 - q / p, 1 / (1 + z)).
      newton_step: as in `simplex.newton_root`.
      divergence_near: (p, z) -> Breg_f(p || q) for |z| <= RADIUS.
      divergence: (p, z, 1 + z) -> Breg_f(p || q) where some |z| > RADIUS.
      exponent: r.
      coefficient: c.
    """
    dual_loss = _rounded(dual_loss)
    w = inverse_dual(play)
    inverse = 1 / w
    # Large losses must not drown the 1/w of the arms that matter: where the leader of q would
    # leave the domain, count from its score.
    dual_loss = dual_loss - jnp.minimum(jnp.min(inverse + dual_loss), 0)
    scores = inverse + dual_loss
    leading = jnp.min(scores)
    # Newton moves up from below the root: to first order in the shift sum(q - p) = 0, and psi is
    # convex; and no arm ends above 1.
    weight = play * w
    shift = -arm_sum(weight * dual_loss) / arm_sum(weight)
    m = jnp.maximum(coefficient, leading + shift)
    shift = jnp.maximum(shift, m - leading)
    near = jnp.min(w * (scores + shift)) >= _RELATIVE

    origin = jnp.where(near, jnp.ones_like(shift), jnp.zeros_like(shift))
    base = jnp.where(near, dual_loss, scores - leading)
    v = jnp.where(near, shift, m)
    floor = jnp.where(near, -jnp.inf, coefficient)
    small = jnp.finfo(play.dtype).eps ** 0.75

    def move(v):
        scaled = w * (base + v)
        return scaled - (1 - origin), origin + scaled

    def newton(carry):
        v, _, steps_left = carry
        z, ratio = move(v)
        kept, lost, inverse_ratio = shrink(z, ratio)
        slope = exponent * arm_sum(play * kept * (w * inverse_ratio))
        next_v = jnp.maximum(v + newton_step(-arm_sum(play * lost), slope), floor)
        # Twice what the step takes off Psi, against about twice Psi: what it would still be off
        # by without this step, and is not.
        drop, size = slope * (next_v - v) ** 2, arm_sum(play * inverse * (z * lost))
        return next_v, (drop > small * size) & (steps_left > 0), steps_left - 1

    start = (v, v == v, jnp.int32(MOST_STEPS))
    # By the envelope theorem the shift may be held fixed in a derivative.
    v = lax.stop_gradient(lax.while_loop(lambda carry: carry[1], newton, start)[0])
    z, ratio = move(v)
    # One choice for all arms, as a sum over a choice would not become a vector loop.
    close = jnp.max(jnp.abs(z)) <= RADIUS
    near_sum = arm_sum(divergence_near(play, jnp.where(close, z, 0)))
    return jnp.where(close, near_sum, arm_sum(divergence(play, z, ratio)))


def entropy_stability(play: Array, dual_loss: Array) -> Array:
    """Psi_p(y) for psi = exp, in closed form: q = p exp(-y) / sum(p exp(-y))."""
    dual_loss = _rounded(dual_loss)
    # Arms whose probability has underflowed to zero are left out.
    alive = play > 0
    moved = jnp.where(alive, dual_loss - jnp.log(jnp.where(alive, play, 1)), jnp.inf)
    offsets = jnp.where(alive, dual_loss - pick(dual_loss, _leader(moved)), 0)
    change = arm_sum(play * jnp.expm1(-offsets))
    mass = arm_sum(play * jnp.exp(-offsets))
    # Each logarithm is kept from the other's arguments, where its derivative may be infinite.
    near = jnp.abs(change) < _RELATIVE
    log_near = jnp.log1p(jnp.where(near, change, 0))
    log_mass = jnp.where(near, log_near, jnp.log(jnp.where(near, 1, mass)))
    return arm_sum(play * exp_remainder(-(offsets + log_mass)))


def general_stability(play: Array, dual_loss: Array, *, potential: "Potential") -> Array:
    """Psi_p(y) for any potential, from psi, its inverse and their derivatives.

    Newton on the shift e in u = psi^{-1}(p) - (y - y(k) + e). Where a point moves by less than
    a factor two, p - q and the divergence are integrals of psi' over the move, by quadrature:
    relatively accurate for small y. Further down the divergence is the integral of p - psi, which
    allows for q = 0; further up it is the potential's own.
    """
    dual_loss = _rounded(dual_loss)
    u = potential.inverse(play)
    leader = _leader(dual_loss - u)
    u_leader = pick(u, leader)
    offsets = dual_loss - pick(dual_loss, leader)
    gaps = offsets + (u_leader - u)
    gaps = gaps - jnp.min(gaps)
    moved = potential.root(gaps, u_leader) - gaps
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


def _rounded(x: Array) -> Array:
    """``x`` itself. A product that passes through cannot be contracted with a later sum to an FMA.

    Contracted, y(k) - y(k) is not zero but the rounding error of y(k) = eta l(k).
    """
    largest = jnp.finfo(x.dtype).max
    return jnp.clip(x, -largest, largest)


def _leader(scores: Array) -> Array:
    """An arm whose score is the smallest up to rounding, int32 [].

    A compiler may round the scores differently where it finds their minimum and where it compares
    them with it, so they are not compared for equality; which of two near-equals is taken does
    not matter.
    """
    lowest = jnp.min(scores)
    slack = 8 * jnp.finfo(scores.dtype).eps * jnp.abs(lowest)
    places = jnp.arange(len(scores), dtype=jnp.int32)
    return jnp.min(jnp.where(scores <= lowest + slack, places, len(scores) - 1))
