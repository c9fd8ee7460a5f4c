"""Losses drawn from a family, and tests of their mean and law."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.tree_util import Partial
from scipy import stats
from tiers import some_in_default

import sfmab_jax as sf

FAMILIES = sf.losses.LOSSES
# One of each kind: from a function of the round, with memory, with a random beginning, in turns.
ARCHETYPES = ("gaussian", "random_walk", "switching", "scale_regimes")
each_family = pytest.mark.parametrize("name", FAMILIES)
each_archetype = pytest.mark.parametrize("name", some_in_default(FAMILIES, ARCHETYPES))
NUM_ROUNDS = 30_000


@jax.jit
def _draw(init, next_loss, key, first_round, num_rounds):
    """Losses in the first rows of [T, n]: one program, whatever the number of rounds."""
    state = init(key)
    loss = jax.eval_shape(next_loss, state, key, first_round)[1]

    def step(t, carry):
        state, losses = carry
        state, loss = next_loss(state, key, first_round + t)
        return state, losses.at[t].set(loss)

    losses = jnp.zeros((NUM_ROUNDS, *loss.shape), loss.dtype)
    return jax.lax.fori_loop(0, num_rounds, step, (state, losses))[1]


@jax.jit
def _draw_means(init, mean, key):
    state = init(key)
    rounds = jnp.arange(1, NUM_ROUNDS + 1, dtype=jnp.int32)
    return jax.vmap(lambda t: mean(state, t))(rounds)


def _as_tree(function):
    """A function that `jit` takes as an argument, with its numbers as leaves."""
    return function if isinstance(function, Partial) else Partial(function)


def rows(sequence, num_rounds=NUM_ROUNDS, seed=0, first_round=1):
    """The losses of a sequence, [T, n], from a round that it meets in its first state."""
    parts = (_as_tree(sequence.init), _as_tree(sequence.next))
    losses = _draw(*parts, jax.random.key(seed), np.int32(first_round), np.int32(num_rounds))
    return np.asarray(losses)[:num_rounds]


def means(sequence, num_rounds=NUM_ROUNDS, seed=0):
    """The stated means of the first losses, [T, n]."""
    parts = (_as_tree(sequence.init), _as_tree(sequence.mean))
    drawn = _draw_means(*parts, jax.random.key(seed))
    return np.asarray(drawn)[:num_rounds]


def assert_mean(samples, wanted):
    """The mean over axis 0 is the one wanted, within four standard errors."""
    samples = np.asarray(samples, np.float64)
    error = samples.std(axis=0, ddof=1) / np.sqrt(len(samples))
    np.testing.assert_array_less(np.abs(samples.mean(axis=0) - wanted), 4 * error + 1e-12)


def assert_law(samples, cdf):
    """Kolmogorov and Smirnov's distance; above 2 / sqrt(T) it has a probability of 7e-4."""
    samples = np.asarray(samples, np.float64).ravel()
    assert stats.kstest(samples, cdf).statistic < 2 / np.sqrt(len(samples))
