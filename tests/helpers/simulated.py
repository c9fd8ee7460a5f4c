"""Strategies, losses and a comparison for the tests of `simulate`."""

import os
import subprocess
import sys

import jax.numpy as jnp
import numpy as np

import sfmab_jax as sf

ADAPTIVE = sf.strategies.scale_free("adaptive")
DECAYING = sf.strategies.scale_free("decaying")
BOTH = {"adaptive": ADAPTIVE, "decaying": DECAYING}
# Bare functions, and quick to compile: plays every arm alike.
UNIFORM = sf.Bandit(
    init=lambda num_arms, dtype=jnp.float32, loss_unit=1.0: jnp.full(num_arms, 1 / num_arms, dtype),
    probabilities=lambda state: state,
    update=lambda state, arm, loss: state,
)


def table_of(*shape, seed=0):
    """Losses of either sign, the sizes varying from round to round."""
    generator = np.random.default_rng(seed)
    sizes = np.exp(generator.normal(size=(*shape[:-1], 1)))
    return generator.normal(size=shape) * sizes


def assert_same(ours, theirs):
    """Bit for bit the same regret and norms."""
    np.testing.assert_array_equal(ours.rounds, theirs.rounds)
    np.testing.assert_array_equal(ours.regret, theirs.regret)
    np.testing.assert_array_equal(ours.expected_regret, theirs.expected_regret)
    for mine, other in zip(ours.norms[1:], theirs.norms[1:], strict=True):
        np.testing.assert_array_equal(mine, other)


def without_settings():
    """The environment without JAX's settings, but for how and where programs are compiled."""
    kept = ("JAX_COMPILATION_CACHE_DIR", "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "XLA_FLAGS")
    return {
        name: value
        for name, value in os.environ.items()
        if name in kept or not name.startswith(("JAX_", "XLA_"))
    }


def run_python(script, *arguments, **variables):
    """Runs a script in a fresh interpreter without this process's JAX configuration."""
    return subprocess.run(
        [sys.executable, "-c", script, *arguments],
        env={**without_settings(), "JAX_PLATFORMS": "cpu", **variables},
        capture_output=True,
        text=True,
        check=False,
    )
