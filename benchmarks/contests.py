"""Who is timed against whom: for each strategy the engine first, then its rivals."""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np

import sfmab_jax as sf
from benchmarks.rivals.c_lanes import c_free, c_own_free, c_own_same_work, c_same_work
from benchmarks.rivals.numba_prange import numba_own_losses, numba_prange
from benchmarks.rivals.numpy_loop import numpy_loop
from benchmarks.rivals.numpy_over_seeds import numpy_over_seeds
from benchmarks.rivals.pymab_exp3 import pymab_exp3
from benchmarks.rivals.smpybandits_tsallis_inf import smpybandits_tsallis_inf
from benchmarks.rivals.vmap_own_losses import vmap_own_losses
from sfmab_jax.cli.bench import Contender, engine, losses_for_bench, vmap_scan_while_loop

__all__ = ["CONTESTS", "Contest"]

_GAP = 0.2  # by which the first arm is better


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


def algorithm_1_own_losses(num_arms: int, num_rounds: int) -> Contest:
    """The same on uniform losses that every game draws for itself, float32."""
    family = sf.losses.uniform(num_arms=num_arms, gap=_GAP)
    play = partial(_engine, sf.strategies.scale_free("adaptive"), family, num_rounds)
    game = (num_arms, num_rounds, _GAP)
    return Contest(
        "Algorithm 1, losses of its own for every game",
        [
            Contender("sfmab_jax", partial(play, None)),
            Contender("C, same work", partial(c_own_same_work, *game)),
            Contender("C, free", partial(c_own_free, *game)),
            Contender("Numba prange", partial(numba_own_losses, *game)),
            Contender("vmap(scan(while_loop))", partial(vmap_own_losses, *game), 4096),
            Contender("sfmab_jax, 64 sequences", partial(play, 64)),
            Contender("sfmab_jax, 1 sequence", partial(play, 1)),
        ],
    )


def exp3(num_arms: int, num_rounds: int) -> Contest:
    """Exp3 as first published, on Bernoulli losses that every game draws for itself."""
    gamma = float(min(1, np.sqrt(num_arms * np.log(num_arms) / ((np.e - 1) * num_rounds))))
    family, means = _bernoulli(num_arms)
    bandit = sf.strategies.exp3_gamma_horizon(num_rounds=num_rounds)
    play = partial(_engine, bandit, family, num_rounds)
    return Contest(
        "Exp3",
        [
            Contender("sfmab_jax", partial(play, None)),
            Contender("pymab (Rust)", partial(pymab_exp3, means, gamma, num_rounds), 64),
            Contender("sfmab_jax, 64 sequences", partial(play, 64)),
        ],
    )


def tsallis_inf(num_arms: int, num_rounds: int) -> Contest:
    """Tsallis-INF with importance weighting, on Bernoulli losses of each game's own."""
    family, means = _bernoulli(num_arms)
    play = partial(_engine, sf.strategies.tsallis_inf(), family, num_rounds)
    return Contest(
        "Tsallis-INF",
        [
            Contender("sfmab_jax", partial(play, None)),
            Contender("SMPyBandits", partial(smpybandits_tsallis_inf, means, num_rounds), 16),
            Contender("sfmab_jax, 64 sequences", partial(play, 64)),
        ],
    )


def _bernoulli(num_arms: int) -> tuple[sf.losses.LossSequence, np.ndarray]:
    """The family, and the means of the arms for rivals to draw from."""
    means = np.full(num_arms, 0.5)
    means[0] -= _GAP
    return sf.losses.bernoulli(num_arms=num_arms, gap=_GAP), means


def _engine(
    bandit: sf.Bandit,
    family: sf.losses.LossSequence,
    num_rounds: int,
    num_sequences: int | None,
    games: int,
) -> Callable[[int], np.ndarray]:
    """The engine on so many loss sequences, or one for each game: each one's mean total loss."""
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


CONTESTS = {
    "algorithm_1": algorithm_1,
    "algorithm_1_own_losses": algorithm_1_own_losses,
    "exp3": exp3,
    "tsallis_inf": tsallis_inf,
}
