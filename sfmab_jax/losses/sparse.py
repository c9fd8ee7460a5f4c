"""Sparse losses of large size, the motivating case of the paper (section 1.2)."""

import jax.numpy as jnp
from jax import Array

from sfmab_jax.checks import check_integer, check_positive, check_probability
from sfmab_jax.losses import draws
from sfmab_jax.losses.combinators import scaled
from sfmab_jax.losses.draws import Draw
from sfmab_jax.losses.sequence import LossSequence, best_arm_gap, from_draws

__all__ = ["sparse"]


def sparse(
    num_arms: int = 10,
    rate: float = 0.1,
    size: float = 100.0,
    gap: float = 0.5,
    num_nonzero: int = 1,
    scale: float = 1.0,
) -> LossSequence:
    """Sparse losses: with probability ``rate`` a round has s losses of size G, else none.

    They fall on the arms a, a + 1, ..., a + s - 1 (mod n), a drawn uniformly. Each is +G or -G with
    equal probability, except that arm 0's is -G with probability (1 + gap) / 2. So L_inf = G while
    L_2 is about rate s G^2 T, far below n T L_inf^2. The mean of l_t is -rate gap G s / n on arm 0,
    the best, and 0 on the others.

    Args:
      num_arms: n.
      rate: the probability that a round has losses.
      size: G, in units of ``scale``.
      gap: between 0 and 1.
      num_nonzero: s, from 1 to n.
      scale: the unit of the losses.

    >>> sparse(num_arms=4).magnitude
    100.0
    """
    bias = best_arm_gap(num_arms, gap)
    check_probability("rate", rate)
    check_probability("gap", gap)
    check_positive(size=size)
    check_integer("num_nonzero", num_nonzero, 1, num_arms)
    return scaled(
        from_draws(
            _sparse,
            num_arms,
            size,
            "sparse",
            _sparse_mean,
            bias=bias,
            rate=rate,
            size=size,
            num_nonzero=num_nonzero,
        ),
        scale,
    )


def _sparse(draw: Draw, round_: Array, *, bias, rate, size, num_nonzero) -> Array:
    num_arms = len(bias)
    words = draw(2 + draws.bernoulli_words(num_arms))
    happens = draws.unit(words[0]) < rate
    first = draws.below(words[1], num_arms)
    # The arms from the first on, round the circle.
    place = jnp.arange(num_arms, dtype=jnp.int32) - first
    is_hit = jnp.where(place < 0, place + num_arms, place) < num_nonzero
    positive = draws.bernoulli(words[2:], (1 - bias) / 2)
    return jnp.where(happens & is_hit, jnp.where(positive, size, -size), 0).astype(bias.dtype)


def _sparse_mean(round_: Array, *, bias, rate, size, num_nonzero) -> Array:
    return -rate * size * num_nonzero / len(bias) * bias
