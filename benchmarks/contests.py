"""Who is timed against whom: for each strategy the engine first, then its rivals."""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np

import sfmab_jax as sf
from benchmarks.rivals.c_lanes import c_free, c_same_work
from benchmarks.rivals.numba_prange import numba_prange
from benchmarks.rivals.numpy_loop import numpy_loop
from benchmarks.rivals.numpy_over_seeds import numpy_over_seeds
from benchmarks.rivals.pymab_exp3 import pymab_exp3
from benchmarks.rivals.smpybandits_tsallis_inf import smpybandits_tsallis_inf
from sfmab_jax.cli.bench import Contender, engine, losses_for_bench, vmap_scan_while_loop

__all__ = ["CONTESTS", "Contest"]

_GAP = 0.2  # by which the first arm is better, in the Bernoulli games
_SEQUENCES = 64  # independent loss sequences among which the engine's games are shared


class Contest(NamedTuple):
    title: str
    contenders: list[Contender]  # the first is the engine


def algorithm_1(num_arms: int, num_rounds: int) -> Contest:
    """Algorithm 1 with adaptive exploration on a table of losses, float32."""
    losses = losses_for_bench(num_rounds, num_arms)
    return Contest(
        "Algorithm 1, adaptive exploration",
        [
            Contender("sfmab_jax", partial(engine, losses)),
            Contender("C, same work", partial(c_same_work, losses)),
            Contender("C, free", partial(c_free, losses)),
            Contender("Numba prange", partial(numba_prange, losses)),
            Contender("vmap(scan(while_loop))", partial(vmap_scan_while_loop, losses), 4096),
            Contender("NumPy over seeds", partial(numpy_over_seeds, losses), 1024),
            Contender("NumPy loop", partial(numpy_loop, losses), 16),
        ],
    )


def exp3(num_arms: int, num_rounds: int) -> Contest:
    """Exp3 as first published, on Bernoulli losses that both make for themselves."""
    bandit = sf.strategies.exp3_gamma_horizon(num_rounds=num_rounds)
    gamma = float(min(1, np.sqrt(num_arms * np.log(num_arms) / ((np.e - 1) * num_rounds))))
    means = np.full(num_arms, 0.5)
    means[0] -= _GAP
    play = partial(_bernoulli_games, bandit, num_arms, num_rounds)
    return Contest(
        "Exp3",
        [
            Contender("sfmab_jax", partial(play, _SEQUENCES)),
            Contender("pymab (Rust)", partial(pymab_exp3, means, gamma, num_rounds), 64),
            # As pymab does it: no two games share their losses.
            Contender("sfmab_jax, losses for each game", partial(play, None)),
        ],
    )


def tsallis_inf(num_arms: int, num_rounds: int) -> Contest:
    """Tsallis-INF with importance weighting, on a table of Bernoulli losses."""
    generator = np.random.default_rng(0)
    means = np.full(num_arms, 0.5)
    means[0] -= _GAP
    losses = (generator.random((num_rounds, num_arms)) < means).astype(np.float32)

    def ours(num_games: int) -> Callable[[int], np.ndarray]:
        bandit = sf.strategies.tsallis_inf()

        def run(seed: int) -> np.ndarray:
            result = sf.simulate(bandit, losses, num_seeds=num_games, seed=seed, progress=False)
            return result.regret[0, :, -1] + result.norms.best[0, -1]

        return run

    return Contest(
        "Tsallis-INF",
        [
            Contender("sfmab_jax", ours),
            Contender("SMPyBandits", partial(smpybandits_tsallis_inf, losses), 16),
        ],
    )


def _bernoulli_games(bandit, num_arms: int, num_rounds: int, num_sequences: int | None, games: int):
    """The engine on its own Bernoulli losses; the mean total loss of each sequence."""
    family = sf.losses.bernoulli(num_arms=num_arms, gap=_GAP)
    sequences = games if num_sequences is None else min(num_sequences, games)

    def run(seed: int) -> np.ndarray:
        result = sf.simulate(
            bandit,
            family,
            num_rounds=num_rounds,
            num_sequences=sequences,
            num_seeds=games // sequences,
            seed=seed,
            progress=False,
        )
        return result.regret[:, :, -1].mean(axis=1) + result.norms.best[:, -1]

    return run


CONTESTS = {"algorithm_1": algorithm_1, "exp3": exp3, "tsallis_inf": tsallis_inf}
