"""Games of Algorithm 1 with the arms forced on it, and the exact tables and trajectories kept."""

import json
from functools import partial
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

GOLDEN = json.loads((Path(__file__).parents[1] / "data" / "golden.json").read_text())
OPTIONS = ("decaying", "adaptive")
EACH_OPTION = pytest.mark.parametrize("exploration", OPTIONS)
EACH_DTYPE = pytest.mark.parametrize("dtype", [jnp.float32, jnp.float64], ids=["f32", "f64"])


MOST_ROUNDS = 100


@jax.jit
def _follow(bandit, first, arms, losses):
    def step(state, seen):
        state = bandit.update(state, *seen)
        return state, state

    states = jax.lax.scan(step, first, (arms, losses))[1]
    return jax.tree.map(lambda x, xs: jnp.concatenate([x[None], xs]), first, states)


def follow(bandit, first, arms, losses):
    """The states from ``first`` on when these arms are played at these losses [T], as NumPy.

    Always ``MOST_ROUNDS`` are played and the later cut off, so that few programs are compiled.
    """
    num_rounds, losses = len(arms), np.asarray(losses)
    padded = np.zeros(MOST_ROUNDS, np.int32), np.zeros(MOST_ROUNDS, losses.dtype)
    padded[0][:num_rounds], padded[1][:num_rounds] = arms, losses
    states = _follow(bandit, first, *padded)
    return jax.tree.map(lambda x: np.asarray(x)[: num_rounds + 1], states)


@partial(jax.jit, static_argnums=(1, 2))
def _begin(bandit, num_arms, dtype, loss_unit):
    return bandit.init(num_arms, dtype, loss_unit)


def forced(bandit, arms, losses, num_arms, dtype, loss_unit=1.0):
    """The states before round 1, 2, ..., T + 1 when these arms are played at these losses [T]."""
    return follow(bandit, _begin(bandit, num_arms, dtype, loss_unit), arms, losses)


def cumulative(states):
    """The sums of estimates so far, [..., n]."""
    losses = states.full_information.losses
    return losses.value + losses.error


def history(num_arms, num_rounds):
    """Arms and their losses, of either sign and of sizes over several powers of ten, [T] each."""
    generator = np.random.default_rng([0, num_arms])
    arms = generator.integers(num_arms, size=num_rounds).astype(np.int32)
    sizes = np.exp(2 * generator.normal(size=num_rounds))
    return arms, generator.normal(size=num_rounds) * sizes
