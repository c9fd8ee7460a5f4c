"""The stability term for a loss of one arm that moves the others little: one sweep over the arms.

In the terms of `stability_power`, a shift -t gives to the other arms together

    A(t) = sum (q - p) = a_1 t + a_2 t^2 + ...,  a_j = binom(r + j - 1, j) sum p w^j,

and as d Breg_f(p || q) / d t = q - p, their part of Psi is the integral of A. So once the moments
sum p w^j are known, the t with A(t) + q(i) - p(i) = 0 is a matter of single numbers.
"""

from collections.abc import Sequence
from typing import NamedTuple

import jax.numpy as jnp
from jax import Array, lax

from sfmab_jax.numerics import hints
from sfmab_jax.numerics.arms import arm_sum
from sfmab_jax.numerics.potential import Power
from sfmab_jax.numerics.remainders import RADIUS

__all__ = ["SmallMove", "small_move"]

# Terms of A; the first three are enough in late rounds.
_MOMENTS = 6
_LOW_MOMENTS = 3
_STEPS = 2
# Below this z an arm rises so far that the series is not close, and what is made of it not used.
_LEAST_Z = -0.75


class SmallMove(NamedTuple):
    """The maximiser q, as far as it is needed."""

    is_close: Array  # whether the shift is right to a percent or so, bool []
    is_exact: Array  # whether shift and divergence are right up to rounding, |z| <= RADIUS, bool []
    shift: Array  # -t [], 0 where it is not close
    divergence: Array  # Breg_F(p || q) over the other arms []
    inverse_slope: Array  # 1 over sum psi' at q, only for the next start; to a percent if exact []


class _Arm(NamedTuple):
    """The arm that was played."""

    p: Array  # []
    w: Array  # []
    y: Array  # its loss times eta []
    power: Power

    def p_over_q(self, t: Array) -> tuple[Array, Array, Array]:
        """Return rho = p / q at the shift -t, rho - 1, and what rho loses per unit of t."""
        z = jnp.maximum(self.w * (self.y - t), _LEAST_Z)
        rho, rho_less_one, slope = self.power.p_over_q(z, 1 + z)
        return rho, rho_less_one, self.w * slope


def small_move(
    power: Power, play: Array, w_others: Array, arm: tuple[Array, Array], y: Array, largest: Array
) -> SmallMove:
    """Find where sum(q) = sum(p) after a loss y [] of one arm.

    Args:
      power: the potential.
      play: p [n].
      w_others: w [n], with 0 for the arm that was played.
      arm: p and w of that arm, [] each.
      y: its loss times eta.
      largest: max(w_others).
    """
    played = _Arm(*arm, y, power)
    factors = _binomials(power.exponent, y.dtype)

    def moments(first: int, last: int) -> list[Array]:
        return [
            factors[j - 1] * arm_sum(power.moment(play, w_others, j))
            for j in range(first, last + 1)
        ]

    low = moments(1, _LOW_MOMENTS)
    t, inverse = _first_guess(played, low[0])
    # The error of a truncated series is about its first term left out.
    rounding = 32 * float(jnp.finfo(y.dtype).eps)
    # Half of it, as t is still a guess.
    needs_all = largest * jnp.abs(t) > 0.5 * _reach(factors, _LOW_MOMENTS, rounding)
    high = lax.cond(
        needs_all,
        lambda: moments(_LOW_MOMENTS + 1, _MOMENTS),
        lambda: [jnp.zeros_like(y)] * (_MOMENTS - _LOW_MOMENTS),
    )
    series = [*low, *high]
    exact_limit = jnp.where(
        needs_all,
        _reach(factors, _MOMENTS, rounding),
        _reach(factors, _LOW_MOMENTS, rounding),
    )
    percent_limit = _reach(factors, _MOMENTS, 0.01)
    t, inverse_slope, is_close, is_exact = _solve_shift(
        played, series, t, inverse, largest, exact_limit, percent_limit
    )
    # By the envelope theorem the shift may be held fixed in a derivative.
    t, inverse_slope = lax.stop_gradient((t, inverse_slope))
    return SmallMove(is_close, is_exact, -t, _integral(series, t), inverse_slope)


def _first_guess(played: _Arm, first_moment: Array) -> tuple[Array, Array]:
    """Return the root t to first order, and -1 over the slope of p (rho - 1) - A rho there."""
    tiny = jnp.finfo(played.y.dtype).tiny
    own = played.power.exponent * played.p * played.w
    t = own * played.y / jnp.maximum(first_moment + own, tiny)
    rho, _, slope = played.p_over_q(t)
    return t, 1 / jnp.maximum(first_moment * rho + played.p * slope, tiny)


@hints.keeps_results  # numbers of a game that every arm's term would otherwise compute again
def _solve_shift(
    played: _Arm,
    series: Sequence[Array],
    t: Array,
    inverse: Array,
    largest: Array,
    exact_limit: Array,
    percent_limit: Array,
) -> tuple[Array, Array, Array, Array]:
    """Solve A + p / rho - p = 0 for t by two Newton steps on p (rho - 1) - A rho = 0.

    That form needs no division: -1 over the slope is carried along and corrected, from each point
    to the next, by one Newton step x <- x (2 - a x).

    Args:
      played: the arm that was played.
      series: a_1, a_2, ...
      t, inverse: the first guess, and -1 over the slope there.
      largest: the largest w of the other arms.
      exact_limit: up to this ``largest * |t|`` the series is right to rounding.
      percent_limit: up to this one it is right to a percent.

    Returns:
      t, 0 where it is not close; 1 over sum psi'; whether t is close; whether all of it is exact.
    """
    step = t
    for _ in range(_STEPS):
        rho, rho_less_one, slope = played.p_over_q(t)
        gained, gained_slope = _value_and_slope(series, t)  # A and A'
        minus_slope = gained_slope * rho + (played.p - gained) * slope
        inverse = inverse * (2 - minus_slope * inverse)
        step = (played.p * rho_less_one - gained * rho) * inverse
        t = t + step
    # At the root p - A = q = p / rho, so that the slope is -rho sum psi'.
    inverse_slope = rho * inverse
    reached, z = largest * jnp.abs(t), played.w * (played.y - t)
    is_close = (reached < percent_limit) & (z > _LEAST_Z) & (jnp.abs(step) <= 0.1 * jnp.abs(t))
    # After this step t errs by about d = step^2 / t, which changes Psi by d^2 / (2 inverse_slope),
    # and Psi is at least a_1 t^2 / 2: step^4 <= eps a_1 inverse_slope t^4 would do. As a_1 times
    # inverse_slope is at most about 1, the test below is stricter, and needs no square root.
    small = jnp.finfo(t.dtype).eps ** 0.5
    settled = step * step <= small * (series[0] * inverse_slope) * (t * t)
    is_exact = is_close & settled & (reached < exact_limit) & (jnp.abs(z) <= RADIUS)
    return jnp.where(is_close, t, 0), inverse_slope, is_close, is_exact


def _integral(series: Sequence[Array], t: Array) -> Array:
    """Return a_1 t^2 / 2 + a_2 t^3 / 3 + ..., by Horner's rule."""
    value = jnp.zeros_like(t)
    for j in range(len(series), 0, -1):
        value = value * t + series[j - 1] * (1 / (j + 1))
    return t * t * value


def _value_and_slope(series: Sequence[Array], t: Array) -> tuple[Array, Array]:
    """Return a_1 t + a_2 t^2 + ... and its derivative, by Horner's rule.

    The derivative leaves out the moments that few games need: it is right to a percent where the
    series is exact, and elsewhere only slows Newton's method.
    """
    value, slope = series[-1], jnp.zeros_like(t)
    for place in range(len(series) - 2, -1, -1):
        if place < _LOW_MOMENTS:
            slope = slope * t + (place + 1) * series[place]
        value = value * t + series[place]
    return value * t, slope


def _binomials(exponent: Array | float, dtype) -> list[Array]:
    """Return binom(r + j - 1, j) for j = 1, ..., _MOMENTS + 1, [] each."""
    factors = [jnp.asarray(exponent, dtype)]
    for j in range(2, _MOMENTS + 2):
        factors.append(factors[-1] * jnp.asarray((exponent + j - 1) / j, dtype))
    return factors


def _reach(factors: Sequence[Array], num_terms: int, ratio: float) -> Array:
    """Return the w |t| at which the first term left out is ``ratio`` times the first."""
    return (ratio * factors[0] / factors[num_terms]) ** (1 / num_terms)
