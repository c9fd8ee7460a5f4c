"""The stability term of the potentials that are powers: the log barrier and the Tsallis family.

psi(u) = (-u / c)^(-r), the log barrier with r = c = 1. With w = 1 / |psi^{-1}(p)|, a shift e moves
p to q = p (1 + z)^(-r), z = w (y + e), and sum(q) = sum(p) is solved for e by Newton's method.
Where an arm rises so far that 1 + z would cancel, the unknown is 1 / w(q) of the leader of q
instead.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax.numpy as jnp
from jax import Array, lax

from sfmab_jax.floating import Sum, add, add_sums, arm_sum, is_arm, once, pick
from sfmab_jax.mixability import Stability, leading_arm
from sfmab_jax.power_moments import moved_little
from sfmab_jax.simplex import MOST_STEPS

__all__ = ["Power", "power_stability", "power_stability_on_arm"]

# From this 1 + z on the maximiser is sought relative to p, below it absolutely. With a loss of one
# arm it may be less, as that costs three bits of one term; but not where 1 + z of the arm is large,
# since the relative search ends when its step is small against the sum of all terms.
_RELATIVE = 0.5
_RELATIVE_OF_ARM = 0.125


class Power(NamedTuple):
    """What is particular to a power."""

    inverse_dual: Callable[[Array], Array]  # p -> w
    dual: Callable[[Array], Sum]  # p -> 1 / w, in two words
    scale: Callable[[Array], Array | float]  # p -> p / w
    # (p, w, j) -> p w^j, and 0 where w has been set to 0
    moment: Callable[[Array, Array, int], Array]
    # (z, 1 + z) -> (q / p, 1 - q / p, 1 / (1 + z))
    shrink: Callable[[Array, Array], tuple[Array, Array, Array]]
    # (z, 1 + z) -> ((1 + z)^r, (1 + z)^r - 1, r (1 + z)^(r - 1))
    grow: Callable[[Array, Array], tuple[Array, Array, Array | float]]
    newton_step: Callable[[Array, Array], Array]  # as in `simplex.newton_root`
    divergence_near: Callable[[Array, Array], Array]  # (p, z) -> Breg_f(p || q), |z| <= RADIUS
    divergence: Callable[[Array, Array, Array], Array]  # (p, z, 1 + z) -> the same for any z
    exponent: Array | float  # r
    coefficient: Array | float  # c


def power_stability(
    power: Power, play: Array, dual_loss: Array, error: Array | float = 0.0
) -> Array:
    """Psi_p(y) for y [n] and what rounding took from it; see the head of this file."""
    y_exact = Sum(dual_loss, error + jnp.zeros_like(dual_loss))
    w = power.inverse_dual(play)
    dual = power.dual(play)
    scores = add_sums(dual, y_exact)
    # Large losses must not drown the 1/w of the arms that matter: where the leader of q would
    # leave the domain, count from its score.
    lift = -jnp.minimum(jnp.min(scores.value), 0)
    scores = add(scores, lift)
    lifted = add_sums(scores, Sum(-dual.value, -dual.error)).value
    # Made once: every sum would work it out again, and be too long to become a vector loop.
    (y,) = once(jnp.where(lift > 0, lifted, dual_loss))
    first = leading_arm(scores.value)
    near_leading = Sum(*(pick(word, first) for word in scores))
    gaps = add_sums(scores, Sum(-near_leading.value, -near_leading.error)).value
    leading, gaps = near_leading.value + jnp.min(gaps), gaps - jnp.min(gaps)
    weight = play * w
    shift = -arm_sum(weight * y) / arm_sum(weight)
    shift, m = _below_the_root(power, shift, leading)
    near = jnp.min(w * (scores.value + shift)) >= _RELATIVE
    return lax.cond(
        near,
        lambda: _relative(power, play, w, y, shift, leading),
        lambda: _absolute(power, play, w, 0.0, gaps, m),
    ).value


def power_stability_on_arm(
    power: Power, play: Array, arm: Array, dual_loss: Array, error: Callable[[], Array]
) -> Stability:
    """Psi_p(y) for a loss y [] of one arm, and 0 of all others: two scores instead of n.

    ``error`` gives what rounding took from y; it is asked for where that counts.
    """
    y = dual_loss
    w = power.inverse_dual(play)

    def others() -> Array:
        # Anew wherever it is used, lest it be stored in every round.
        return jnp.where(is_arm(arm, play), 0, w)

    p_arm, p_best = pick(play, arm), jnp.max(jnp.where(is_arm(arm, play), 0, play))
    p_best = jnp.maximum(p_best, jnp.finfo(w.dtype).tiny)
    w_arm, w_best = power.inverse_dual(p_arm), power.inverse_dual(p_best)
    moved = moved_little(power, play, others, (p_arm, w_arm), y, w_best)

    def sweep():
        here = is_arm(arm, play)
        own, of_best = power.dual(p_arm), power.dual(p_best)
        own = add_sums(own, Sum(y, error()))
        leading = jnp.minimum(own.value, of_best.value)
        first_order = -p_arm * w_arm * y / arm_sum(play * w)
        shift, m = _below_the_root(power, first_order, leading)
        shift = jnp.where(moved.close, moved.shift, shift)

        def absolute():
            # 1 + z = w (1/w + y - leading + v), in terms that are not negative.
            behind = add_sums(own, Sum(-of_best.value, -of_best.error)).value
            origin = jnp.where(here, 0, (w_best - others()) * of_best.value)
            base = jnp.where(here, jnp.maximum(behind, 0), jnp.maximum(-behind, 0))
            return _absolute(power, play, w, origin, base, m)

        ratio = w_arm * (own.value + shift)
        lowest = jnp.minimum(1 + w_best * shift, ratio)
        return lax.cond(
            (lowest >= _RELATIVE_OF_ARM) & (ratio <= 1 / _RELATIVE_OF_ARM),
            lambda: _relative(power, play, w, jnp.where(here, y, 0), shift, leading),
            absolute,
        )

    z = jnp.where(moved.holds, w_arm * (y + moved.shift), 0)
    # The smaller of 1 / w(i) + y and 1 / w of the best of the others.
    leading = jnp.minimum(w_best * (1 + w_arm * y), w_arm) / (w_arm * w_best)
    by_moments = Stability(
        power.divergence_near(p_arm, z) + moved.others,
        -(lax.stop_gradient(leading) + moved.shift),
        -power.exponent * moved.inverse_slope,
    )
    # What only the sweeps need is made in them: they are rare but in the first rounds.
    return lax.cond(moved.holds, lambda: by_moments, sweep)


def _below_the_root(power: Power, shift: Array, leading: Array) -> tuple[Array, Array]:
    """A start (e, e + leading) from which Newton moves up.

    To first order in the shift sum(q - p) = 0, and psi is convex; and no arm ends above 1.
    """
    m = jnp.maximum(power.coefficient, leading + shift)
    return jnp.maximum(shift, m - leading), m


def _relative(power: Power, play, w, y, shift, leading) -> Stability:
    """From 1 + z = 1 + w (y + e)."""

    def move(e):
        z = w * (y + e)
        return z, 1 + z

    eps = jnp.finfo(play.dtype).eps
    e, slope = _newton(power, play, w, move, jnp.multiply, shift, -jnp.inf, eps**0.5)
    value = arm_sum(power.divergence(play, *move(e)))
    return Stability(value, -(lax.stop_gradient(leading) + e), -power.exponent / slope)


def _absolute(power: Power, play, w, origin, base, m) -> Stability:
    """From 1 + z = origin + w (base + m)."""

    def move(m):
        ratio = origin + w * (base + m)
        return ratio - 1, ratio

    def size_of(z, lost):
        return jnp.minimum(z * z, z * lost)  # of arms that rise far the first, of others the second

    eps = jnp.finfo(play.dtype).eps
    m, slope = _newton(power, play, w, move, size_of, m, power.coefficient, eps**0.75)
    (ratio,) = once(move(m)[1])  # else too long to become a vector loop
    value = arm_sum(power.divergence(play, ratio - 1, ratio))
    return Stability(value, -m, -power.exponent / slope)


def _newton(power: Power, play, w, move, size_of, start, lowest, small) -> tuple[Array, Array]:
    """The unknown of ``move``: v -> (z, 1 + z) at which sum(q) = sum(p), and sum psi' there.

    ``size_of``, (z, 1 - q / p) -> about twice Breg_f(p || q) w / p, or less.
    """
    scale = power.scale(play)

    def newton(carry):
        v, _, _, steps_left = carry
        z, ratio = move(v)
        kept, lost, inverse_ratio = power.shrink(z, ratio)
        slope = power.exponent * arm_sum(play * kept * (w * inverse_ratio))
        next_v = jnp.maximum(v + power.newton_step(-arm_sum(play * lost), slope), lowest)
        # Twice what the step takes off Psi, against about twice Psi: what it would still be off
        # by without this step, and is not.
        drop, size = slope * (next_v - v) ** 2, arm_sum(scale * size_of(z, lost))
        return next_v, slope, (drop > small * size) & (steps_left > 0), steps_left - 1

    # The first step is always due, and often the last.
    carry = newton((start, start, start == start, jnp.int32(MOST_STEPS)))
    end = lax.while_loop(lambda carry: carry[2], newton, carry)
    # By the envelope theorem the shift may be held fixed in a derivative.
    return lax.stop_gradient(end[:2])
