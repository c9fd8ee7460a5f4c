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


@partial(jax.jit, static_argnums=(3, 4))
def forced(bandit, arms, losses, num_arms, dtype, loss_unit):
    """The states before round 1, 2, ..., T + 1 when these arms are played at these losses [T]."""
    first = bandit.init(num_arms, dtype, loss_unit)

    def step(state, seen):
        state = bandit.update(state, *seen)
        return state, state

    states = jax.lax.scan(step, first, (arms, losses))[1]
    return jax.tree.map(lambda x, xs: jnp.concatenate([x[None], xs]), first, states)


def cumulative(states):
    """The sums of estimates so far, [..., n]."""
    losses = states.full_information.losses
    return np.asarray(losses.value) + np.asarray(losses.error)


def history(num_arms, num_rounds):
    """Arms and their losses, of either sign and of sizes over several powers of ten, [T] each."""
    generator = np.random.default_rng([0, num_arms])
    arms = generator.integers(num_arms, size=num_rounds).astype(np.int32)
    sizes = np.exp(2 * generator.normal(size=num_rounds))
    return jnp.asarray(arms), generator.normal(size=num_rounds) * sizes
