"""Losses drawn anew in every round, with heavy tails."""

import math

import jax
import jax.numpy as jnp
from jax import Array

from sfmab_jax.checks import check_number, check_probability
from sfmab_jax.losses.base import LossSequence, best_arm, from_function
from sfmab_jax.losses.combinators import scaled

__all__ = ["log_normal", "pareto", "student_t"]

# The chance that a loss is beyond the magnitude of its family.
_RARE = 1e-6
# Beyond these the rare losses, and soon the others, leave float32's range.
_HEAVIEST = 0.2
_WIDEST = 16.0


def student_t(
    num_arms: int = 10, degrees: float = 3.0, gap: float = 0.5, scale: float = 1.0
) -> LossSequence:
    """l_t(i) = scale * (T_t(i) - gap [i = 0]) with T Student's t: moments below ``degrees`` only.

    Drawn by Bailey's polar method (Mathematics of Computation 62, 1994): from U, V uniform,
    T = sqrt(d (U^(-2/d) - 1)) cos(2 pi V). Arm 0 is the best, by scale * gap a round, if
    degrees > 1.
    """
    best = best_arm(num_arms)
    _check_tail("degrees", degrees)
    check_number("gap", gap)
    largest = math.sqrt(degrees * (_RARE ** (-2 / degrees) - 1)) + abs(gap)
    return scaled(
        from_function(
            _student_t,
            num_arms,
            largest,
            "student_t",
            _advantage_mean if degrees > 1 else None,
            advantage=(gap * best).astype(best.dtype),
            degrees=degrees,
        ),
        scale,
    )


def pareto(
    num_arms: int = 10, index: float = 1.5, gap: float = 0.5, scale: float = 1.0
) -> LossSequence:
    """l_t(i) = scale * (X_t(i) - gap [i = 0]) with P(X > x) = x^(-index) for x >= 1.

    Positive losses with moments below ``index`` only; the mean is index / (index - 1) if it
    exists, and arm 0 is then the best, by scale * gap a round.
    """
    best = best_arm(num_arms)
    _check_tail("index", index)
    check_number("gap", gap)
    return scaled(
        from_function(
            _pareto,
            num_arms,
            _RARE ** (-1 / index) + abs(gap),
            "pareto",
            _pareto_mean if index > 1 else None,
            advantage=(gap * best).astype(best.dtype),
            index=index,
        ),
        scale,
    )


def log_normal(
    num_arms: int = 10, sigma: float = 2.0, gap: float = 0.5, scale: float = 1.0
) -> LossSequence:
    """l_t(i) = +- scale * exp(sigma Z_t(i)), Z standard normal: all moments, tails of every size.

    The sign is fair, but for arm 0 negative with probability (1 + gap) / 2. Arm 0 is the best,
    by scale * gap * exp(sigma^2 / 2) a round.
    """
    best = best_arm(num_arms)
    check_number("sigma", sigma, positive=True)
    if sigma > _WIDEST:
        raise ValueError(f"sigma is {sigma!r}; beyond {_WIDEST:g} losses leave float32's range")
    check_probability("gap", gap)
    return scaled(
        from_function(
            _log_normal,
            num_arms,
            math.exp(4.8 * sigma),
            "log_normal",
            _log_normal_mean,
            bias=(gap * best).astype(best.dtype),
            sigma=sigma,
        ),
        scale,
    )


def _check_tail(name: str, value: float) -> None:
    """Refuses tails so heavy that float32 does not hold a loss of chance 1e-6."""
    check_number(name, value, positive=True)
    if value < _HEAVIEST:
        raise ValueError(
            f"{name} is {value!r}; losses leave float32's range: give {_HEAVIEST:g} up"
        )


def _positive_uniform(key: Array, like: Array) -> Array:
    """Uniform on (0, 1] in steps of 2^-32, so that tails reach that far."""
    bits = jax.random.bits(key, like.shape, jnp.uint32)
    return (bits.astype(like.dtype) + 0.5) * 2.0**-32


def _student_t(key: Array, round_: Array, *, advantage: Array, degrees: Array) -> Array:
    radius_key, angle_key = jax.random.split(key)
    # U^(-2/d) - 1 without cancellation where U is close to 1.
    spread = jnp.expm1(-2 / degrees * jnp.log(_positive_uniform(radius_key, advantage)))
    turn = jax.random.uniform(angle_key, advantage.shape, advantage.dtype)
    return jnp.sqrt(degrees * spread) * jnp.cos(2 * math.pi * turn) - advantage


def _advantage_mean(round_: Array, *, advantage: Array, degrees: Array) -> Array:
    return -advantage


def _pareto(key: Array, round_: Array, *, advantage: Array, index: Array) -> Array:
    return jnp.exp(-jnp.log(_positive_uniform(key, advantage)) / index) - advantage


def _pareto_mean(round_: Array, *, advantage: Array, index: Array) -> Array:
    return index / (index - 1) - advantage


def _log_normal(key: Array, round_: Array, *, bias: Array, sigma: Array) -> Array:
    size_key, sign_key = jax.random.split(key)
    size = jnp.exp(sigma * jax.random.normal(size_key, bias.shape, bias.dtype))
    positive = jax.random.uniform(sign_key, bias.shape, bias.dtype) < (1 - bias) / 2
    return jnp.where(positive, size, -size)


def _log_normal_mean(round_: Array, *, bias: Array, sigma: Array) -> Array:
    return -bias * jnp.exp(sigma * sigma / 2)
