"""The Tsallis entropies, -x^c, whose potentials are powers: the INF family.

`square_root` is `tsallis(0.5)` written without general powers, and so faster.
"""

from typing import Any

import jax.numpy as jnp
from jax import Array, lax
from jax.tree_util import Partial

from sfmab_jax.checks import check_number, is_known
from sfmab_jax.numerics.double_word import Sum, start_sum, two_product
from sfmab_jax.numerics.potential import Potential, Power, Stability
from sfmab_jax.numerics.remainders import log_one_plus, log_ratio, power_remainder
from sfmab_jax.numerics.root_finding import monotone_solve
from sfmab_jax.numerics.stability_power import power_stability, power_stability_on_arm

__all__ = ["square_root", "tsallis", "tsallis_of"]


def tsallis(power: Array | float = 0.5) -> Potential:
    """A Tsallis entropy, the regulariser of INF: psi(u) = (-u/c)^(-1/(1-c)) on u < 0, f(x) = -x^c.

    The INF potentials of Audibert and Bubeck (2009) have q = 1/(1-c). At c = 1/2, the regulariser
    of Tsallis-INF, psi(u) = 1/(4 u^2).

    Args:
      power: c, between 0 and 1.

    >>> print(tsallis(0.5).psi(jnp.float32(-1.0)))
    0.25
    """
    check_number("power", power)
    if is_known(power) and not 0 < power < 1:
        raise ValueError(f"power is {power!r}; a Tsallis power lies strictly between 0 and 1")
    c = power
    return Potential(
        psi=Partial(_psi, c),
        inverse=Partial(_inverse, c),
        derivative=Partial(_derivative, c),
        primitive=Partial(_primitive, c),
        conjugate=Partial(_conjugate, c),
        divergence=Partial(_divergence, c),
        solve=Partial(_solve, c),
        stability=Partial(_stability, c),
        stability_on_arm=Partial(_stability_on_arm, c),
    )


def square_root() -> Potential:
    """The regulariser of Tsallis-INF: psi(u) = 1 / (4 u^2) on u < 0, f(x) = -sqrt(x).

    >>> print(square_root().psi(jnp.float32(-1.0)))
    0.25
    """
    return Potential(
        psi=Partial(_root_psi),
        inverse=Partial(_root_inverse),
        derivative=Partial(_root_derivative),
        primitive=Partial(_root_primitive),
        conjugate=Partial(_root_conjugate),
        divergence=Partial(_root_divergence),
        solve=Partial(_root_solve),
        stability=Partial(_root_stability),
        stability_on_arm=Partial(_root_stability_on_arm),
    )


def tsallis_of(power: Array | float) -> Potential:
    """Return `tsallis(power)`, in its faster form if the power is 1/2."""
    return square_root() if not isinstance(power, Array) and power == 0.5 else tsallis(power)


# Any power. With r = 1/(1-c), psi(u) = (-u/c)^(-r).


def _psi(c: Array | float, u: Array) -> Array:
    return (-u / c) ** (-1 / (1 - c))


def _inverse(c: Array | float, x: Array) -> Array:
    return -c * x ** (c - 1)


def _derivative(c: Array | float, u: Array) -> Array:
    return _psi(c, u) / (-u * (1 - c))


def _primitive(c: Array | float, x: Array) -> Array:
    return -(x**c)


def _conjugate(c: Array | float, u: Array) -> Array:
    x = _psi(c, u)
    return u * x + x**c


def _divergence(c: Array | float, y: Array, x: Array) -> Array:
    z = jnp.expm1((c - 1) * log_ratio(x, y))
    return y**c * power_remainder(z, (x / y) ** (c - 1), 1 / (1 - c))


def _step(c: Array | float, excess: Array, slope: Array) -> Array:
    """Take a Newton step on s^(-1/r) - 1, a power mean; the log barrier's step has r = 1."""
    growth = jnp.expm1((1 - c) * jnp.log1p(excess))
    return (1 + excess) * growth / ((1 - c) * slope)


def _q_over_p(exponent: Array | float, z: Array, one_plus_z: Array) -> tuple[Array, Array, Array]:
    """Return (1 + z)^(-r), 1 less that, and 1 / (1 + z).

    By logarithms, as a rounding of 1 + z would count r times.
    """
    log_q_over_p = -exponent * log_one_plus(z, one_plus_z)
    return jnp.exp(log_q_over_p), -jnp.expm1(log_q_over_p), 1 / one_plus_z


def _solve(c: Array | float, gaps: Array, start: Array) -> tuple[Array, Array]:
    def value_and_slope(u):
        p = _psi(c, u)
        return p, p / (-u * (1 - c))

    lowest = _inverse(c, jnp.full_like(gaps[0], 1 / len(gaps)))
    highest = jnp.full_like(gaps[0], 1) * -c
    step, exponent = Partial(_step, c), 1 / (1 - c)
    return monotone_solve(gaps, value_and_slope, step, lowest, highest, start, exponent)


def _p_over_q(exponent: Array | float, z: Array, one_plus_z: Array) -> tuple[Array, Array, Array]:
    """Return (1 + z)^r, that less 1, and r (1 + z)^(r - 1)."""
    log_p_over_qth = exponent * log_one_plus(z, one_plus_z)
    growth = jnp.exp(log_p_over_qth)
    return growth, jnp.expm1(log_p_over_qth), exponent * growth / one_plus_z


def _power(c: Array | float) -> Power:
    r = 1 / (1 - c)
    return Power(
        w=lambda p: p ** (1 - c) / c,
        inverse_w=lambda p: start_sum(c / p ** (1 - c)),
        scale=lambda p: c * p**c,
        moment=lambda p, w, j: p * lax.integer_pow(w, j),
        q_over_p=Partial(_q_over_p, r),
        p_over_q=Partial(_p_over_q, r),
        newton_step=Partial(_step, c),
        divergence_near=lambda p, z: p**c * power_remainder(z, 1 + z, r),
        divergence=lambda p, z, one_plus_z: p**c * power_remainder(z, one_plus_z, r),
        exponent=r,
        coefficient=c,
    )


def _stability(c: Array | float, *play_and_loss: Array) -> Array:
    return power_stability(_power(c), *play_and_loss)


def _stability_on_arm(c: Array | float, *play_and_loss: Any) -> Stability:
    return power_stability_on_arm(_power(c), *play_and_loss)


# The square root.


def _root_psi(u: Array) -> Array:
    return (0.5 / u) ** 2


def _root_inverse(x: Array) -> Array:
    return -0.5 / jnp.sqrt(x)


def _root_derivative(u: Array) -> Array:
    return -2 * _root_psi(u) / u


def _root_primitive(x: Array) -> Array:
    return -jnp.sqrt(x)


def _root_conjugate(u: Array) -> Array:
    return -0.25 / u


def _root_divergence(y: Array, x: Array) -> Array:
    """Return (sqrt(y) - sqrt(x))^2 / (2 sqrt(x)), the difference of roots taken from y - x."""
    difference = (y - x) / (jnp.sqrt(y) + jnp.sqrt(x))
    return difference * difference / (2 * jnp.sqrt(x))


def _root_step(excess: Array, slope: Array) -> Array:
    """Take the step of `_step` with sqrt(1 + e) - 1 = e / (1 + sqrt(1 + e))."""
    return 2 * (1 + excess) * (excess / (1 + jnp.sqrt(1 + excess))) / slope


def _root_solve(gaps: Array, start: Array) -> tuple[Array, Array]:
    def value_and_slope(u):
        p = _root_psi(u)
        return p, -2 * p / u

    lowest = jnp.full_like(gaps[0], -0.5 * len(gaps) ** 0.5)
    highest = jnp.full_like(gaps[0], -0.5)
    return monotone_solve(gaps, value_and_slope, _root_step, lowest, highest, start, 2.0)


def _root_q_over_p(z: Array, one_plus_z: Array) -> tuple[Array, Array, Array]:
    """Return (1 + z)^(-2), 1 less that, and 1 / (1 + z)."""
    inverse = 1 / one_plus_z
    return inverse * inverse, z * inverse * (1 + inverse), inverse


def _root_inverse_w(p: Array) -> Sum:
    """Return d = 1 / (2 sqrt(p)) in two words: d (1 + (1 - 4 p d^2) / 2)."""
    value = 0.5 / jnp.sqrt(p)
    square = two_product(value, value)
    product = two_product(square.value, 4 * p)
    missing = (1 - product.value) - (product.error + square.error * (4 * p))
    return Sum(value, lax.stop_gradient(value * missing / 2))


# At q = p (1 + z)^(-2), Breg_f(p || q) = sqrt(p) z^2 / (2 (1 + z)): nothing cancels.
_ROOT_POWER = Power(
    w=lambda p: 2 * jnp.sqrt(p),
    inverse_w=_root_inverse_w,
    scale=lambda p: jnp.sqrt(p) / 2,
    moment=lambda p, w, j: p * lax.integer_pow(w, j),
    q_over_p=_root_q_over_p,
    p_over_q=lambda z, one_plus_z: (one_plus_z * one_plus_z, z * (1 + one_plus_z), 2 * one_plus_z),
    newton_step=_root_step,
    divergence_near=lambda p, z: jnp.sqrt(p) * z * (z / (2 * (1 + z))),
    divergence=lambda p, z, one_plus_z: jnp.sqrt(p) * z * (z / (2 * one_plus_z)),
    exponent=2.0,
    coefficient=0.5,
)


def _root_stability(*play_and_loss: Array) -> Array:
    return power_stability(_ROOT_POWER, *play_and_loss)


def _root_stability_on_arm(*play_and_loss: Any) -> Stability:
    return power_stability_on_arm(_ROOT_POWER, *play_and_loss)
