"""The adversaries of lower bounds, on which no strategy does well."""

import math

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from sfmab_jax.checks import check_integer, check_positive
from sfmab_jax.losses import draws
from sfmab_jax.losses.combinators import scaled
from sfmab_jax.losses.draws import Draw
from sfmab_jax.losses.light_tailed import bernoulli_losses
from sfmab_jax.losses.sequence import MOST_ARMS, MOST_ROUNDS, LossSequence, recurrence_from_draws

__all__ = ["draw_best", "minimax", "shared_noise"]


def minimax(
    num_arms: int = 10, num_rounds: int = 10_000, constant: float = 0.25, scale: float = 1.0
) -> LossSequence:
    """Auer et al. (2002): fair coins, but one arm, drawn at the start, better by c sqrt(n / T).

    Independent losses of 0 and ``scale``, in that unit of mean 1/2, and of mean
    1/2 - min(1/2, c sqrt(n / T)) for the arm drawn: too little a gap to be found in T rounds,
    enough to cost sqrt(n T) if it is not.

    Args:
      num_arms: n.
      num_rounds: T.
      constant: c.
      scale: the size of a loss.
    """
    check_integer("num_arms", num_arms, 1, MOST_ARMS)
    check_integer("num_rounds", num_rounds, 1, MOST_ROUNDS)
    check_positive(constant=constant)
    gap = min(0.5, constant * math.sqrt(num_arms / num_rounds))
    return scaled(
        recurrence_from_draws(
            draw_best,
            _minimax_next,
            num_arms,
            name="minimax",
            mean=_minimax_mean,
            arms=np.zeros(num_arms, np.float32),
            gap=gap,
        ),
        scale,
    )


def shared_noise(
    num_arms: int = 10, gap: float = 0.05, sigma: float = 0.1, scale: float = 1.0
) -> LossSequence:
    """Gerchinovitz and Lattimore (2016): a small effective range hidden by a common noise.

    l_t(i) = scale * clip(Z_t - gap [i = j], 0, 1), Z_t normal of mean 1/2, the same for all arms;
    the best arm j is drawn at the start. The losses of a round differ by at most the gap, which is
    no help to a bandit.

    Args:
      num_arms: n.
      gap: by how much arm j is the best, in units of ``scale``.
      sigma: the standard deviation of Z_t.
      scale: the largest loss.
    """
    check_integer("num_arms", num_arms, 1, MOST_ARMS)
    check_positive(gap=gap, sigma=sigma)
    return scaled(
        recurrence_from_draws(
            draw_best,
            _shared_next,
            num_arms,
            name="shared_noise",
            mean=_shared_mean,
            arms=np.zeros(num_arms, np.float32),
            gap=gap,
            sigma=sigma,
        ),
        scale,
    )


def draw_best(key: Array, *, arms, **parameters) -> Array:
    """Return [i = j] [n] for an arm j drawn uniformly."""
    best = draws.below(draws.first_words(key, 1), len(arms))
    return (jnp.arange(len(arms), dtype=jnp.int32) == best).astype(jnp.float32)


def _minimax_mean(best: Array, round_: Array, *, arms, gap) -> Array:
    return 0.5 - gap * best


def _minimax_next(best: Array, draw: Draw, round_: Array, *, arms, gap):
    return best, bernoulli_losses(draw, _minimax_mean(best, round_, arms=arms, gap=gap))


def _shared_next(best: Array, draw: Draw, round_: Array, *, arms, gap, sigma):
    noise = 0.5 + sigma * draws.normal(draw(1))[0]
    return best, jnp.clip(noise - gap * best, 0, 1)


def _shared_mean(best: Array, round_: Array, *, arms, gap, sigma) -> Array:
    """Return E clip(X, 0, 1) = E max(X, 0) - E max(X - 1, 0) [n], X normal of mean m."""
    centre = 0.5 - gap * best
    return _mean_excess(centre, sigma) - _mean_excess(centre - 1, sigma)


def _mean_excess(centre: Array, sigma: Array) -> Array:
    """Return E max(X, 0) = m Phi(m / sigma) + sigma phi(m / sigma)."""
    z = centre / sigma
    density = jnp.exp(-z * z / 2) / math.sqrt(2 * math.pi)
    return centre * jax.scipy.stats.norm.cdf(z) + sigma * density
