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
from typing import Any, NamedTuple

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
    w = power.w(play)
    inverse_w = power.inverse_w(play)
    scores = add_sums(inverse_w, y_exact)
    # Psi does not change with an offset common to all arms. Where the smallest score 1/w + y is
    # negative, its size is added to all, so that 1/w of the arms that matter keeps its digits.
    lift = -jnp.minimum(jnp.min(scores.value), 0)
    scores = add(scores, lift)
    lifted = add_sums(scores, Sum(-inverse_w.value, -inverse_w.error)).value
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
    w = power.w(play)
    is_the_arm = is_arm(arm, play)
    w_others = jnp.where(is_the_arm, 0, w)
    # The best of the other arms; with one arm there is none.
    p_best = jnp.maximum(jnp.max(jnp.where(is_the_arm, 0, play)), jnp.finfo(w.dtype).tiny)
    p_arm = pick(play, arm)
    w_arm, w_best = power.w(p_arm), power.w(p_best)
    series = small_move(power, play, w_others, (p_arm, w_arm), y, w_best)

    def sweep() -> Stability:
        best_score = power.inverse_w(p_best)
        arm_score = add_sums(power.inverse_w(p_arm), Sum(y, jnp.asarray(error, y.dtype)))
        lowest_score = jnp.minimum(arm_score.value, best_score.value)
        first_order = -p_arm * w_arm * y / arm_sum(play * w)
        shift, m = _below_the_root(power, first_order, lowest_score)
        shift = jnp.where(series.is_close, series.shift, shift)

        def absolute() -> Stability:
            # 1 + z = w (score - lowest_score + m), score = 1/w + y, as terms that are not negative:
            #   the arm:       0              + w (arm_score  - lowest_score + m)
            #   another arm:   (1 - w/w_best) + w (best_score - lowest_score + m)
            arm_behind = add_sums(arm_score, Sum(-best_score.value, -best_score.error)).value
            origin = jnp.where(is_the_arm, 0, (w_best - w_others) * best_score.value)
            base = jnp.where(is_the_arm, jnp.maximum(arm_behind, 0), jnp.maximum(-arm_behind, 0))
            return _absolute(power, play, w, origin, base, m)

        one_plus_z = w_arm * (arm_score.value + shift)
        lowest = jnp.minimum(1 + w_best * shift, one_plus_z)
        return lax.cond(
            (lowest >= _RELATIVE_OF_ARM) & (one_plus_z <= 1 / _RELATIVE_OF_ARM),
            lambda: _relative(power, play, w, jnp.where(is_the_arm, y, 0), shift, lowest_score),
            absolute,
        )

    # Outside the choice: most rounds take this branch, and one that computes nothing is free.
    from_series = _from_series(power, series, p_arm, w_arm, w_best, y)
    return lax.cond(series.is_exact, lambda: from_series, sweep)


def _from_series(
    power: Power, series: SmallMove, p_arm: Array, w_arm: Array, w_best: Array, y: Array
) -> Stability:
    """Return Psi and the next start where the series is exact."""
    z = jnp.where(series.is_exact, w_arm * (y + series.shift), 0)
    # The smaller of 1 / w(i) + y and 1 / w of the best of the others.
    lowest_score = jnp.minimum(w_best * (1 + w_arm * y), w_arm) / (w_arm * w_best)
    return Stability(
        power.divergence_near(p_arm, z) + series.divergence,
        -(lax.stop_gradient(lowest_score) + series.shift),
        -power.exponent * series.inverse_slope,
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
        one_plus_z = origin + w * (base + m)
        return one_plus_z - 1, one_plus_z

    def size_of(z, lost):
        return jnp.minimum(z * z, z * lost)  # of arms that rise far the first, of others the second

    # A margin over `_relative`: where arms rise far, a step leaves a larger multiple of its square.
    tolerance = jnp.finfo(play.dtype).eps ** 0.75
    m, slope = _newton(power, play, w, move, size_of, m, power.coefficient, tolerance)
    # Stored: computed inside the sum, it would make the terms too long to be vectorised.
    (one_plus_z,) = hints.keep(move(m)[1])
    value = arm_sum(power.divergence(play, one_plus_z - 1, one_plus_z))
    return Stability(value, -m, -power.exponent / slope)


class _Step(NamedTuple):
    """What a step of `_newton` leaves; all []."""

    unknown: Array
    slope: Array  # sum psi' before the step
    goes_on: Array  # whether another step is due, bool
    steps_left: Array


def _newton(
    power: Power,
    play: Array,
    w: Array,
    move: Callable[[Array], tuple[Array, Array]],
    size_of: Callable[[Array, Array], Array],
    start: Array,
    lowest: Array | float,
    tolerance: Any,
) -> tuple[Array, Array]:
    """Solve sum(q) = sum(p) for the unknown v.

    Stop when the predicted decrease of Psi, slope * step^2 / 2, is below ``tolerance`` times Psi;
    the step then leaves a relative error of about tolerance^2 in Psi. q falls as v rises.

    Args:
      power: the potential.
      play: p [n].
      w: w(p) [n].
      move: v -> (z, 1 + z), [n] each.
      size_of: (z, 1 - q / p) -> twice Breg_f(p || q) w / p up to a small factor; near p it is their
        product.
      start: v not above the root, or close to it: from above, the first step goes below it.
      lowest: a lower limit of v.
      tolerance: see above.

    Returns:
      v, and sum psi' before the last step, close enough for the next start.
    """
    scale = power.scale(play)

    def newton(v: Array, steps_left: Array) -> _Step:
        z, one_plus_z = move(v)
        remaining, lost, inverse = power.q_over_p(z, one_plus_z)
        slope = power.exponent * arm_sum(play * remaining * (w * inverse))
        next_v = jnp.maximum(v + power.newton_step(-arm_sum(play * lost), slope), lowest)
        # Twice the decrease, and twice Psi.
        decrease, size = slope * (next_v - v) ** 2, arm_sum(scale * size_of(z, lost))
        goes_on = (decrease > tolerance * size) & (steps_left > 0)
        return _Step(next_v, slope, goes_on, steps_left - 1)

    # The first step is always due, and often the last.
    first = newton(start, jnp.int32(MOST_STEPS))
    last = lax.while_loop(
        lambda step: step.goes_on, lambda step: newton(step.unknown, step.steps_left), first
    )
    # By the envelope theorem the shift may be held fixed in a derivative.
    return lax.stop_gradient((last.unknown, last.slope))
