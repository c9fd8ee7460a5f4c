"""Independent losses with heavy tails."""

import math

import jax.numpy as jnp
from jax import Array

from sfmab_jax.checks import check_positive, check_probability
from sfmab_jax.losses import draws
from sfmab_jax.losses.combinators import scaled
from sfmab_jax.losses.draws import Draw
from sfmab_jax.losses.sequence import LossSequence, best_arm_gap, from_draws

__all__ = ["log_normal", "pareto", "student_t"]

# The probability that a loss exceeds the magnitude of its family.
_RARE = 1e-6
# Beyond these parameters rare losses, and soon the others, leave float32's range.
_HEAVIEST = 0.2
_WIDEST = 16.0


def student_t(
    num_arms: int = 10, degrees: float = 3.0, gap: float = 0.5, scale: float = 1.0
) -> LossSequence:
    """Student's t losses: l_t(i) = scale * (T_t(i) - gap [i = 0]), moments below ``degrees`` only.

    Drawn by Bailey's polar method (Mathematics of Computation 62, 1994): from U, V uniform,
    T = sqrt(d (U^(-2/d) - 1)) cos(2 pi V).

    Args:
      num_arms: n.
      degrees: d, the degrees of freedom, 0.2 or more; the mean exists above 1.
      gap: by how much arm 0 is the best in each round, in units of ``scale``.
      scale: the unit of the losses.
    """
    advantage = best_arm_gap(num_arms, gap)
    _check_tail("degrees", degrees)
    largest = math.sqrt(degrees * (_RARE ** (-2 / degrees) - 1)) + abs(gap)
    return scaled(
        from_draws(
            _student_t,
            num_arms,
            largest,
            "student_t",
            _student_t_mean if degrees > 1 else None,
            advantage=advantage,
            degrees=degrees,
        ),
        scale,
    )


def pareto(
    num_arms: int = 10, index: float = 1.5, gap: float = 0.5, scale: float = 1.0
) -> LossSequence:
    """Pareto losses: l_t(i) = scale * (X_t(i) - gap [i = 0]), P(X > x) = x^(-index) for x >= 1.

    Moments exist below ``index`` only; the mean of X is index / (index - 1).

    Args:
      num_arms: n.
      index: of the tail, 0.2 or more; the mean exists above 1.
      gap: by how much arm 0 is the best in each round, in units of ``scale``.
      scale: the unit of the losses.
    """
    advantage = best_arm_gap(num_arms, gap)
    _check_tail("index", index)
    return scaled(
        from_draws(
            _pareto,
            num_arms,
            _RARE ** (-1 / index) + abs(gap),
            "pareto",
            _pareto_mean if index > 1 else None,
            advantage=advantage,
            index=index,
        ),
        scale,
    )


def log_normal(
    num_arms: int = 10, sigma: float = 2.0, gap: float = 0.5, scale: float = 1.0
) -> LossSequence:
    """Log-normal losses of either sign: l_t(i) = +- scale * exp(sigma Z_t(i)), Z standard normal.

    The sign is fair, but for arm 0 negative with probability (1 + gap) / 2. All moments exist; arm
    0 is the best, by scale * gap * exp(sigma^2 / 2) a round.

    Args:
      num_arms: n.
      sigma: the standard deviation of the logarithm, 16 at most.
      gap: between 0 and 1.
      scale: the median size of a loss.
    """
    bias = best_arm_gap(num_arms, gap)
    check_positive(sigma=sigma)
    if sigma > _WIDEST:
        raise ValueError(f"sigma is {sigma!r}; beyond {_WIDEST:g} losses leave float32's range")
    check_probability("gap", gap)
    return scaled(
        from_draws(
            _log_normal,
            num_arms,
            math.exp(4.8 * sigma),
            "log_normal",
            _log_normal_mean,
            bias=bias,
            sigma=sigma,
        ),
        scale,
    )


def _check_tail(name: str, value: float) -> None:
    """Raise ValueError if a loss of probability 1e-6 would leave float32's range."""
    check_positive(**{name: value})
    if value < _HEAVIEST:
        raise ValueError(
            f"{name} is {value!r}; losses leave float32's range: give {_HEAVIEST:g} or more"
        )


def _student_t(draw: Draw, round_: Array, *, advantage: Array, degrees: Array) -> Array:
    radius, angle = draw(2 * len(advantage)).reshape(2, -1)
    # U^(-2/d) - 1 without cancellation where U is close to 1.
    spread = jnp.expm1(-2 / degrees * jnp.log(draws.positive(radius)))
    return jnp.sqrt(degrees * spread) * draws.cosine(angle) - advantage


def _student_t_mean(round_: Array, *, advantage: Array, degrees: Array) -> Array:
    return -advantage


def _pareto(draw: Draw, round_: Array, *, advantage: Array, index: Array) -> Array:
    uniform = draws.positive(draw(len(advantage)))
    return jnp.exp(-jnp.log(uniform) / index) - advantage


def _pareto_mean(round_: Array, *, advantage: Array, index: Array) -> Array:
    return index / (index - 1) - advantage


def _log_normal(draw: Draw, round_: Array, *, bias: Array, sigma: Array) -> Array:
    num_arms = len(bias)
    words = draw(num_arms + draws.bernoulli_words(num_arms))
    size = jnp.exp(sigma * draws.normal(words[:num_arms]))
    return jnp.where(draws.bernoulli(words[num_arms:], (1 - bias) / 2), size, -size)


def _log_normal_mean(round_: Array, *, bias: Array, sigma: Array) -> Array:
    return -bias * jnp.exp(sigma * sigma / 2)
