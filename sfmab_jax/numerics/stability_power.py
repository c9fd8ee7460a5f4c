"""The stability term of the potentials that are powers: the log barrier and the Tsallis family.

psi(u) = (-u / c)^(-r), the log barrier with r = c = 1. With w = 1 / |psi^{-1}(p)|, a shift e moves
p to q = p (1 + z)^(-r), z = w (y + e), and sum(q) = sum(p) is solved for e by Newton's method:

- `stability_series` where a loss of one arm moves the others little, from a few moments;
- `_relative` to p where no arm rises far, with the shift e as the unknown;
- `_absolute` where an arm rises so far that 1 + z would cancel, with 1 / w(q) of the leader of q
  as the unknown.

Psi is a sum of Bregman divergences, none negative, in which an error d of the unknown costs d^2.
Since u psi'(u) = -r psi(u) and sum(q) = 1, the mean of u weighted with psi' is -r / sum psi'.
"""

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
from jax import Array, lax

from sfmab_jax.numerics import hints
from sfmab_jax.numerics.arms import arm_sum, is_arm, leading_arm, pick
from sfmab_jax.numerics.double_word import Sum, add, add_sums
from sfmab_jax.numerics.potential import Power, Stability
from sfmab_jax.numerics.root_finding import MOST_STEPS
from sfmab_jax.numerics.stability_series import SmallMove, small_move

__all__ = ["power_stability", "power_stability_on_arm"]

# `_relative` is used while every 1 + z is at least _RELATIVE; below it, 1 + w (y + e) cancels. With
# a loss of one arm only that arm's term cancels, so three lost bits are allowed. Its 1 + z must
# then also stay below 8: the stopping rule compares a step with the sum of all terms, which a
# term that large would dominate.
_RELATIVE = 0.5
_RELATIVE_OF_ARM = 0.125


def power_stability(
    power: Power, play: Array, dual_loss: Array, error: Array | float = 0.0
) -> Array:
    """Return Psi_p(y) for losses of all arms.

    Args:
      power: the potential.
      play: p [n].
      dual_loss: y [n], eta times the losses, rounded.
      error: what rounding took from y, [n] or 0.
    """
    y_exact = Sum(dual_loss, error + jnp.zeros_like(dual_loss))
    w = power.inverse_dual(play)
    dual = power.dual(play)
    scores = add_sums(dual, y_exact)
    # Psi does not change with an offset common to all arms. Where the smallest score 1/w + y is
    # negative, its size is added to all, so that 1/w of the arms that matter keeps its digits.
    lift = -jnp.minimum(jnp.min(scores.value), 0)
    scores = add(scores, lift)
    lifted = add_sums(scores, Sum(-dual.value, -dual.error)).value
    # Stored: several sums over the arms read y.
    (y,) = hints.keep(jnp.where(lift > 0, lifted, dual_loss))
    leader = leading_arm(scores.value)
    score_of_leader = Sum(*(pick(word, leader) for word in scores))
    gaps = add_sums(scores, Sum(-score_of_leader.value, -score_of_leader.error)).value
    # The leading arm is the least up to rounding: its gap may be slightly above the least.
    lowest_score, gaps = score_of_leader.value + jnp.min(gaps), gaps - jnp.min(gaps)
    weight = play * w
    shift = -arm_sum(weight * y) / arm_sum(weight)
    shift, m = _below_the_root(power, shift, lowest_score)
    near = jnp.min(w * (scores.value + shift)) >= _RELATIVE
    return lax.cond(
        near,
        lambda: _relative(power, play, w, y, shift, lowest_score),
        lambda: _absolute(power, play, w, 0.0, gaps, m),
    ).value


def power_stability_on_arm(
    power: Power, play: Array, arm: Array, dual_loss: Array, error: Array | float = 0.0
) -> Stability:
    """Return Psi_p(y) for a loss y [] of one arm, and 0 of all others: two scores instead of n.

    Args:
      power: the potential.
      play: p [n].
      arm: int32 [].
      dual_loss: y [], eta times the loss, rounded.
      error: what rounding took from y, [].
    """
    y = dual_loss
    w = power.inverse_dual(play)
    here = is_arm(arm, play)
    w_others = jnp.where(here, 0, w)
    p_arm, p_best = pick(play, arm), jnp.max(jnp.where(here, 0, play))
    p_best = jnp.maximum(p_best, jnp.finfo(w.dtype).tiny)
    w_arm, w_best = power.inverse_dual(p_arm), power.inverse_dual(p_best)
    small = small_move(power, play, w_others, (p_arm, w_arm), y, w_best)

    def sweep() -> Stability:
        own, best = power.dual(p_arm), power.dual(p_best)
        own = add_sums(own, Sum(y, jnp.asarray(error, y.dtype)))
        lowest_score = jnp.minimum(own.value, best.value)
        first_order = -p_arm * w_arm * y / arm_sum(play * w)
        shift, m = _below_the_root(power, first_order, lowest_score)
        shift = jnp.where(small.close, small.shift, shift)

        def absolute() -> Stability:
            # 1 + z = w (1/w + y - lowest + m), in terms that are not negative: for the arm 0 and
            # own - lowest, for the others 1 - w / w_best and best - lowest.
            behind = add_sums(own, Sum(-best.value, -best.error)).value
            origin = jnp.where(here, 0, (w_best - w_others) * best.value)
            base = jnp.where(here, jnp.maximum(behind, 0), jnp.maximum(-behind, 0))
            return _absolute(power, play, w, origin, base, m)

        ratio = w_arm * (own.value + shift)
        lowest = jnp.minimum(1 + w_best * shift, ratio)
        return lax.cond(
            (lowest >= _RELATIVE_OF_ARM) & (ratio <= 1 / _RELATIVE_OF_ARM),
            lambda: _relative(power, play, w, jnp.where(here, y, 0), shift, lowest_score),
            absolute,
        )

    by_moments = _from_small_move(power, small, p_arm, w_arm, w_best, y)
    return lax.cond(small.holds, lambda: by_moments, sweep)


def _from_small_move(
    power: Power, small: SmallMove, p_arm: Array, w_arm: Array, w_best: Array, y: Array
) -> Stability:
    """Return Psi where the series holds."""
    z = jnp.where(small.holds, w_arm * (y + small.shift), 0)
    # The smaller of 1 / w(i) + y and 1 / w of the best of the others.
    lowest_score = jnp.minimum(w_best * (1 + w_arm * y), w_arm) / (w_arm * w_best)
    return Stability(
        power.divergence_near(p_arm, z) + small.divergence,
        -(lax.stop_gradient(lowest_score) + small.shift),
        -power.exponent * small.inverse_slope,
    )


def _below_the_root(power: Power, shift: Array, lowest_score: Array) -> tuple[Array, Array]:
    """Return a start (e, m = e + lowest_score) that is not above the root.

    The root of the linearised sum(q - p) = 0 is below that of the convex one; and
    m = |psi^{-1}(max q)| >= c, as no arm ends above 1.
    """
    m = jnp.maximum(power.coefficient, lowest_score + shift)
    return jnp.maximum(shift, m - lowest_score), m


def _relative(power: Power, play, w, y, shift, lowest_score) -> Stability:
    """Return Psi with the shift e as the unknown: 1 + z = 1 + w (y + e)."""

    def move(e):
        z = w * (y + e)
        return z, 1 + z

    eps = jnp.finfo(play.dtype).eps
    e, slope = _newton(power, play, w, move, jnp.multiply, shift, -jnp.inf, eps**0.5)
    value = arm_sum(power.divergence(play, *move(e)))
    return Stability(value, -(lax.stop_gradient(lowest_score) + e), -power.exponent / slope)


def _absolute(power: Power, play, w, origin, base, m) -> Stability:
    """Return Psi with m = 1 / w(q) of the leader as the unknown: 1 + z = origin + w (base + m)."""

    def move(m):
        ratio = origin + w * (base + m)
        return ratio - 1, ratio

    def size_of(z, lost):
        return jnp.minimum(z * z, z * lost)  # of arms that rise far the first, of others the second

    eps = jnp.finfo(play.dtype).eps
    m, slope = _newton(power, play, w, move, size_of, m, power.coefficient, eps**0.75)
    (ratio,) = hints.keep(move(m)[1])
    value = arm_sum(power.divergence(play, ratio - 1, ratio))
    return Stability(value, -m, -power.exponent / slope)


def _newton(
    power: Power,
    play: Array,
    w: Array,
    move: Callable[[Array], tuple[Array, Array]],
    size_of: Callable[[Array, Array], Array],
    start: Array,
    lowest: Array | float,
    small: Any,
) -> tuple[Array, Array]:
    """Solve sum(q) = sum(p) for the unknown v.

    Stop when the predicted decrease of Psi, slope * step^2 / 2, is below ``small`` times Psi; the
    step then leaves a relative error of about small^2 in Psi. q falls as v rises.

    Args:
      move: v -> (z, 1 + z), [n] each.
      size_of: (z, 1 - q / p) -> twice Breg_f(p || q) w / p, or less; near p it is their product.
      start: v not above the root, or close to it: from above, the first step goes below it.
      lowest: a lower limit of v.
      small: see above.

    Returns:
      v, and sum psi' there.
    """
    scale = power.scale(play)

    def newton(v: Array, steps_left: Array):
        z, ratio = move(v)
        remaining, lost, inverse_ratio = power.shrink(z, ratio)
        slope = power.exponent * arm_sum(play * remaining * (w * inverse_ratio))
        next_v = jnp.maximum(v + power.newton_step(-arm_sum(play * lost), slope), lowest)
        # Twice the decrease, and twice Psi.
        decrease, size = slope * (next_v - v) ** 2, arm_sum(scale * size_of(z, lost))
        return next_v, slope, (decrease > small * size) & (steps_left > 0), steps_left - 1

    # The first step is always due, and often the last.
    first = newton(start, jnp.int32(MOST_STEPS))
    end = lax.while_loop(lambda carry: carry[2], lambda carry: newton(carry[0], carry[3]), first)
    # By the envelope theorem the shift may be held fixed in a derivative.
    return lax.stop_gradient(end[:2])
