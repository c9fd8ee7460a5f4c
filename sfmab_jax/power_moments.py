"""The stability term for a loss of one arm that moves the others little: one sweep over the arms.

In the terms of `power_stability`, a shift e takes from the other arms together

    A(e) = sum (p - q) = a_1 e + a_2 e^2 + ...,  a_j = -binom(-r, j) sum p w^j,

and as d Breg_f(p || q) / d e = p - q, their part of Psi is the integral of A. So once the moments
sum p w^j are known, the shift with A(e) + p(i) - q(i) = 0 is a matter of single numbers.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import jax.numpy as jnp
from jax import Array, lax

from sfmab_jax.floating import arm_sum

if TYPE_CHECKING:
    from sfmab_jax.power_stability import Power

__all__ = ["Moved", "moved_little"]

_MOMENTS = 6
_STEPS = 2


class Moved(NamedTuple):
    """The maximiser q, as far as it is needed."""

    close: Array  # whether the shift is right to a percent or so, bool []
    holds: Array  # and whether it and the rest are right up to rounding, bool []
    shift: Array  # e []
    others: Array  # Breg_F(p || q) over the other arms []
    slope: Array  # sum psi' at q over all arms []


def moved_little(
    power: "Power", play: Array, others: Array, arm: tuple[Array, Array], y: Array, start: Array
) -> Moved:
    """Where sum(q) = sum(p) after a loss y [] of one arm.

    Args:
      power: see `sfmab_jax.power_stability`.
      play: p [n].
      others: w [n], and 0 for the arm with the loss.
      arm: its own p and w, [] each.
      y: its loss times eta.
      start: a guess of the shift e.
    """
    p, w = arm
    factors = _binomials(power.exponent, y.dtype)
    series = [
        # Powers by squaring: every sum is a loop of its own and forms them anew.
        (j, -factors[j] * arm_sum(play * lax.integer_pow(others, j)))
        for j in range(1, _MOMENTS + 1)
    ]
    # Where the first term left out is so much of the first of all: a good guess, or rounding.
    unit = 1 / jnp.maximum(jnp.max(others), jnp.finfo(y.dtype).tiny)
    growth = jnp.abs(factors[_MOMENTS + 1] / factors[1])
    furthest = unit * (0.01 / growth) ** (1 / _MOMENTS)
    reach = unit * (32 * jnp.finfo(y.dtype).eps / growth) ** (1 / _MOMENTS)

    def own(e: Array) -> tuple[Array, Array]:
        """p - q of the arm itself, and psi' at q."""
        z = jnp.maximum(w * (y + e), -0.5)
        kept, lost, inverse_ratio = power.shrink(z, 1 + z)
        return p * lost, power.exponent * p * kept * (w * inverse_ratio)

    e = jnp.clip(start, -furthest, furthest)
    step = e
    for _ in range(_STEPS):
        lost, slope = own(e)
        slope = slope + _sum([j * a for j, a in series], e)
        step = (e * _sum([a for _, a in series], e) + lost) / slope
        e = jnp.clip(e - step, -furthest, furthest)
    # By the envelope theorem the shift may be held fixed in a derivative.
    e, slope = lax.stop_gradient((e, slope))
    value = e * (e * _sum([a / (j + 1) for j, a in series], e))
    distance, last = jnp.abs(e), jnp.abs(step)
    close = (distance < furthest) & (w * (y + e) > -0.5) & (last <= 0.1 * distance)
    # Newton squares the error of e, and Psi feels but the square of what is left.
    settled = last <= jnp.finfo(y.dtype).eps ** 0.25 * distance
    return Moved(close, close & settled & (distance < reach), e, value, slope)


def _binomials(exponent: Array | float, dtype) -> list[Array]:
    """binom(-r, j) for j = 0, ..., _MOMENTS + 1, [] each."""
    factors = [jnp.ones((), dtype)]
    for j in range(1, _MOMENTS + 2):
        factors.append(factors[-1] * jnp.asarray((1 - exponent - j) / j, dtype))
    return factors


def _sum(coefficients: Sequence[Array], e: Array) -> Array:
    """c_1 + c_2 e + c_3 e^2 + ..., by Horner's rule."""
    total = coefficients[-1]
    for coefficient in coefficients[-2::-1]:
        total = total * e + coefficient
    return total
