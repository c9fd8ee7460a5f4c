"""The stability term for a loss of one arm that moves the others little: one sweep over the arms.

In the terms of `power_stability`, a shift -t gives to the other arms together

    A(t) = sum (q - p) = a_1 t + a_2 t^2 + ...,  a_j = binom(r + j - 1, j) sum p w^j,

and as d Breg_f(p || q) / d t = q - p, their part of Psi is the integral of A. So once the moments
sum p w^j are known, the t with A(t) + q(i) - p(i) = 0 is a matter of single numbers.
"""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

import jax.numpy as jnp
from jax import Array, lax

from sfmab_jax.divergences import RADIUS
from sfmab_jax.floating import arm_sum, once

if TYPE_CHECKING:
    from sfmab_jax.power_stability import Power

__all__ = ["Moved", "moved_little"]

_MOMENTS = 6
_LOW_MOMENTS = 3
_STEPS = 2


class Moved(NamedTuple):
    """The maximiser q, as far as it is needed."""

    close: Array  # whether the shift is right to a percent or so, bool []
    holds: Array  # and whether it and the rest are right up to rounding, and |z| <= RADIUS, bool []
    shift: Array  # -t [], 0 where it is not close
    others: Array  # Breg_F(p || q) over the other arms []
    inverse_slope: Array  # 1 over sum psi' at q over all arms []


def moved_little(
    power: "Power",
    play: Array,
    others: Callable[[], Array],
    arm: tuple[Array, Array],
    y: Array,
    largest: Array,
) -> Moved:
    """Where sum(q) = sum(p) after a loss y [] of one arm.

    With rho = (1 + z)^r of that arm, A + p / rho - p = 0 is p (rho - 1) - A rho = 0: Newton on
    this needs no division but that by its first slope, as 1 over the next ones is close.

    Args:
      power: see `sfmab_jax.power_stability`.
      play: p [n].
      others: gives w [n], and 0 for the arm with the loss; made anew where it is needed.
      arm: its own p and w, [] each.
      y: its loss times eta.
      largest: max(others()).
    """
    p, w = arm
    factors = _binomials(power.exponent, y.dtype)
    tiny = jnp.finfo(y.dtype).tiny

    def moments(first: int, last: int) -> list[Array]:
        w_others = others()
        return [
            factors[j - 1] * arm_sum(power.moment(play, w_others, j))
            for j in range(first, last + 1)
        ]

    def reach(moments: int, left_out: float) -> Array:
        """How far a shift may move w where the first term left out is so much of the first."""
        return (left_out * factors[0] / factors[moments]) ** (1 / moments)

    def grown(t: Array | float) -> tuple[Array, Array, Array]:
        """rho, rho - 1 and what they lose with t, of the arm itself."""
        z = jnp.maximum(w * (y - t), -0.75)
        rho, more, slope = power.grow(z, 1 + z)
        return rho, more, w * slope

    low = moments(1, _LOW_MOMENTS)
    # From the root to first order, and 1 over the slope there.
    own = power.exponent * p * w
    t = own * y / jnp.maximum(low[0] + own, tiny)
    rho, _, slope = grown(t)
    inverse = 1 / jnp.maximum(low[0] * rho + p * slope, tiny)
    rounding = 32 * float(jnp.finfo(y.dtype).eps)
    all_due = largest * jnp.abs(t) > 0.5 * reach(_LOW_MOMENTS, rounding)
    # In late rounds no game needs them all.
    high = lax.cond(
        all_due,
        lambda: moments(_LOW_MOMENTS + 1, _MOMENTS),
        lambda: [jnp.zeros_like(y)] * (_MOMENTS - _LOW_MOMENTS),
    )
    series = [*low, *high]
    step = t
    for _ in range(_STEPS):
        rho, more, slope = grown(t)
        given, growing = _value_and_slope(series, t)
        tilt = growing * rho + (p - given) * slope
        inverse = inverse * (2 - tilt * inverse)
        step = (p * more - given * rho) * inverse
        t = t + step
    inverse_slope = rho * inverse
    near, z = largest * jnp.abs(t), w * (y - t)
    furthest = reach(_MOMENTS, 0.01)
    close = (near < furthest) & (z > -0.75) & (jnp.abs(step) <= 0.1 * jnp.abs(t))
    # Newton squares the error of t, and Psi, of which the others have a_1 t^2 / 2, feels but the
    # square of what is left, divided by the inverse slope.
    small = jnp.finfo(y.dtype).eps ** 0.5
    settled = step * step <= small * (low[0] * inverse_slope) * (t * t)
    near_enough = near < jnp.where(
        all_due, reach(_MOMENTS, rounding), reach(_LOW_MOMENTS, rounding)
    )
    holds = settled & near_enough & (jnp.abs(z) <= RADIUS)
    t, inverse_slope, marks = once(
        jnp.where(close, t, 0), inverse_slope, jnp.where(close, jnp.where(holds, 2.0, 1.0), 0.0)
    )
    # By the envelope theorem the shift may be held fixed in a derivative.
    t, inverse_slope = lax.stop_gradient((t, inverse_slope))
    value = jnp.zeros_like(t)
    for j in range(_MOMENTS, 0, -1):
        value = value * t + series[j - 1] * (1 / (j + 1))
    return Moved(marks >= 1, marks >= 2, -t, t * t * value, inverse_slope)


def _binomials(exponent: Array | float, dtype) -> list[Array]:
    """binom(r + j - 1, j) for j = 1, ..., _MOMENTS + 1, [] each."""
    factors = [jnp.asarray(exponent, dtype)]
    for j in range(2, _MOMENTS + 2):
        factors.append(factors[-1] * jnp.asarray((exponent + j - 1) / j, dtype))
    return factors


def _value_and_slope(series: Sequence[Array], t: Array) -> tuple[Array, Array]:
    """a_1 t + a_2 t^2 + ... and its derivative, by Horner's rule.

    The derivative leaves out the moments that few games need: it is right to a percent then.
    """
    value, slope = series[-1], jnp.zeros_like(t)
    for place in range(len(series) - 2, -1, -1):
        if place < _LOW_MOMENTS:
            slope = slope * t + (place + 1) * series[place]
        value = value * t + series[place]
    return value * t, slope
