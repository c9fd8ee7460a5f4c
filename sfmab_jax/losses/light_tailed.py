"""Independent losses with light tails."""

from jax import Array

from sfmab_jax.checks import check_number, check_probability
from sfmab_jax.losses import draws
from sfmab_jax.losses.combinators import scaled
from sfmab_jax.losses.draws import Draw
from sfmab_jax.losses.sequence import (
    LossSequence,
    best_arm,
    best_arm_gap,
    constant_mean,
    from_draws,
)

__all__ = ["bernoulli", "bernoulli_losses", "gaussian", "uniform"]


def bernoulli(
    num_arms: int = 10, gap: float = 0.1, mean: float = 0.5, scale: float = 1.0
) -> LossSequence:
    """Bernoulli losses: l_t(i) = scale with probability mean - gap [i = 0], else 0.

    Args:
      num_arms: n.
      gap: by how much arm 0 is the best in each round, in units of ``scale``.
      mean: of the other arms, between 0 and 1, in the same units.
      scale: the size of a loss.

    >>> bernoulli(num_arms=4).num_arms
    4
    """
    best = best_arm(num_arms)
    check_number("gap", gap)
    check_probability("mean", mean)
    if not 0 <= mean - gap <= 1:
        raise ValueError(f"gap is {gap} and mean is {mean}; mean - gap must lie between 0 and 1")
    means = (mean - gap * best).astype(best.dtype)
    return scaled(
        from_draws(_bernoulli, num_arms, name="bernoulli", mean=constant_mean, means=means),
        scale,
    )


def uniform(num_arms: int = 10, gap: float = 0.2, scale: float = 1.0) -> LossSequence:
    """Uniform losses: l_t(i) = scale * (U_t(i) - gap [i = 0]), U_t(i) uniform on [-1, 1].

    Args:
      num_arms: n.
      gap: by how much arm 0 is the best in each round, in units of ``scale``.
      scale: the unit of the losses.

    >>> uniform(num_arms=4).num_arms
    4
    """
    means = -best_arm_gap(num_arms, gap)
    return scaled(
        from_draws(_uniform, num_arms, 1 + abs(gap), "uniform", constant_mean, means=means),
        scale,
    )


def gaussian(num_arms: int = 10, gap: float = 0.5, scale: float = 1.0) -> LossSequence:
    """Normal losses: l_t(i) = scale * (Z_t(i) - gap [i = 0]), Z_t(i) standard normal.

    Args:
      num_arms: n.
      gap: by how much arm 0 is the best in each round, in units of ``scale``.
      scale: the standard deviation.

    >>> gaussian(num_arms=4, scale=1e6).magnitude
    4500000.0
    """
    means = -best_arm_gap(num_arms, gap)
    return scaled(
        from_draws(_gaussian, num_arms, 4 + abs(gap), "gaussian", constant_mean, means=means),
        scale,
    )


def bernoulli_losses(draw: Draw, means: Array) -> Array:
    """Draw independent losses of 0 and 1 with these means, [n] -> [n]."""
    words = draw(draws.bernoulli_words(len(means)))
    return draws.bernoulli(words, means).astype(means.dtype)


def _bernoulli(draw: Draw, round_: Array, *, means: Array) -> Array:
    return bernoulli_losses(draw, means)


def _uniform(draw: Draw, round_: Array, *, means: Array) -> Array:
    return means + draws.symmetric(draw(len(means)))


def _gaussian(draw: Draw, round_: Array, *, means: Array) -> Array:
    return means + draws.normal(draw(len(means)))
