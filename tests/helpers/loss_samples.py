"""Losses drawn from a family, and tests of their mean and law."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats
from tiers import some_in_default

import sfmab_jax as sf

FAMILIES = sf.losses.LOSSES
# One of each kind: from a function of the round, with memory, with a random beginning, in turns.
ARCHETYPES = ("gaussian", "random_walk", "switching", "scale_regimes")
each_family = pytest.mark.parametrize("name", FAMILIES)
each_archetype = pytest.mark.parametrize("name", some_in_default(FAMILIES, ARCHETYPES))
NUM_ROUNDS = 100_000


@jax.jit
def draw(next_loss, state, key, rounds):
    def step(state, t):
        return next_loss(state, key, t)

    return jax.lax.scan(step, state, rounds)[1]


@jax.jit
def draw_means(mean, state, rounds):
    return jax.lax.map(lambda t: mean(state, t), rounds)


def rounds_to(num_rounds):
    return jnp.arange(1, num_rounds + 1, dtype=jnp.int32)


def rows(sequence, num_rounds=NUM_ROUNDS, seed=0):
    """The first losses of a sequence, [T, n]."""
    key = jax.random.key(seed)
    return draw(sequence.next, sequence.init(key), key, rounds_to(num_rounds))


def assert_mean(samples, wanted):
    """The mean over axis 0 is the one wanted, within four standard errors."""
    samples = np.asarray(samples, np.float64)
    error = samples.std(axis=0, ddof=1) / np.sqrt(len(samples))
    np.testing.assert_array_less(np.abs(samples.mean(axis=0) - wanted), 4 * error + 1e-12)


def assert_law(samples, cdf):
    """Kolmogorov and Smirnov's distance; above 2 / sqrt(T) it has a probability of 7e-4."""
    samples = np.asarray(samples, np.float64).ravel()
    assert stats.kstest(samples, cdf).statistic < 2 / np.sqrt(len(samples))
