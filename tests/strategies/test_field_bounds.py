"""Bounds that were derived for this package, against games on hard and on easy losses."""

import numpy as np
import pytest

import sfmab_jax as sf

NUM_ROUNDS, NUM_ARMS = 1_000, 5


def tables():
    """Losses in [-1, 1] [T, n] by name: dense, sparse, of gains, and with a change of leader."""
    generator = np.random.default_rng(0)
    shape = (NUM_ROUNDS, NUM_ARMS)
    sparse = (generator.random((NUM_ROUNDS, 1)) < 0.05) * generator.choice([0.0, 1.0], shape)
    sparse[:, 0] = 0
    switch = np.full(shape, 0.5)
    switch[: NUM_ROUNDS // 2, 0] = -1
    switch[NUM_ROUNDS // 2 :, :2] = [1, -1]
    extreme = np.ones(shape)
    extreme[:, 3] = -1
    return {
        "dense": generator.choice([-1.0, 1.0], shape, p=[0.4, 0.6]),
        "sparse": sparse,
        "gains": -1.0 * (generator.random(shape) < [0.3, 0.1, 0.1, 0.1, 0.1]),
        "switch": switch,
        "extreme": extreme,
    }


@pytest.mark.parametrize("name", tables())
def test_the_hybrid_barrier_is_below_its_bound(name):
    """sqrt(3 S ln n) + 4 n ln T + 2 at S = L_2: four standard errors of 100 games below it."""
    losses = tables()[name]
    squares = float((losses**2).sum())
    bound = np.sqrt(3 * squares * np.log(NUM_ARMS)) + 4 * NUM_ARMS * np.log(NUM_ROUNDS) + 2
    for bandit in (
        sf.strategies.hybrid_barrier_horizon(squares),
        sf.strategies.hybrid_barrier(),
    ):
        regret = sf.simulate(bandit, losses, num_seeds=100).regret[0, :, -1]
        assert regret.mean() + 4 * regret.std() / 10 < bound
