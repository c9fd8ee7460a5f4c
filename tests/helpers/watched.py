"""A bandit that watches another: what its laws and states were like over all rounds.

Tests that run the same watched strategy through the engine share one compiled program, as long
as they keep to the shapes below.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array
from jax.tree_util import Partial

import sfmab_jax as sf

NUM_ARMS = 3


class WatchedState(NamedTuple):
    inner: Any
    worst_sum: Array  # the largest |sum(p') - 1| so far; infinite if one was not a number []
    lowest: Array  # the smallest p' so far []
    all_finite: Array  # 1 while every number in the state has been finite []


def watched(bandit):
    return sf.Bandit(
        init=Partial(_init, bandit),
        probabilities=Partial(_probabilities, bandit),
        update=Partial(_update, bandit),
        feedback=bandit.feedback,
    )


def what_was_seen(state):
    return state.worst_sum, state.lowest, state.all_finite


def simulate(bandits, losses, num_rounds):
    """The engine with shapes that do not depend on the losses or the number of rounds."""
    return sf.simulate(
        {name: watched(bandit) for name, bandit in bandits.items()},
        losses,
        num_rounds=num_rounds,
        num_sequences=1,
        num_seeds=128,
        checkpoints=8,
        chunk_rounds=64,
        dtype="float32",
        record=what_was_seen,
        progress=False,
    )


def _init(bandit, num_arms, dtype=jnp.float32, loss_unit=1.0):
    inner = bandit.init(num_arms, dtype, loss_unit)
    return WatchedState(inner, jnp.zeros((), dtype), jnp.ones((), dtype), jnp.ones((), dtype))


def _probabilities(bandit, state):
    return bandit.probabilities(state.inner)


def _update(bandit, state, arm, loss):
    law = bandit.probabilities(state.inner)
    off = jnp.abs(jnp.sum(law) - 1)
    off = jnp.where(jnp.isnan(off), jnp.inf, off)
    inner = bandit.update(state.inner, arm, loss)
    finite = state.all_finite
    for leaf in jax.tree.leaves(inner):
        finite = finite * jnp.min(jnp.isfinite(leaf).astype(finite.dtype))
    return WatchedState(
        inner,
        jnp.maximum(state.worst_sum, off),
        jnp.minimum(state.lowest, jnp.min(law)),
        finite,
    )
