"""Games on which claims are tried: of Algorithm 1, of AdaFTRL, and of FTRL at any rates."""

from collections.abc import Iterator
from functools import cache

import numpy as np

from sfmab_jax import estimation, full_information, sampling, strategies
from sfmab_jax.compose import compose
from sfmab_jax.theory.claim import Setting
from sfmab_jax.theory.claims_potentials import POTENTIALS
from sfmab_jax.theory.trajectories import Trajectory, follow_losses, play_games

__all__ = [
    "BARRIER",
    "ROUNDS",
    "algorithm_games",
    "bandit_games",
    "exploration_masses",
    "ftrl_games",
    "on_arm_played",
    "uneven_games",
]

BARRIER, ENTROPY, TSALLIS = POTENTIALS.values()
ROUNDS = 60
_ARMS = 4


def _losses(setting: Setting, number: int) -> np.ndarray:
    """Losses of games of all kinds: mixed sizes, sparse and large, tiny, drifting, one-signed."""
    generator = setting.generator(number)
    shape = (ROUNDS, _ARMS)
    games = []
    for _ in range(setting.effort):
        noise = generator.normal(size=(5, *shape))
        games += [
            noise[0] * np.exp(2 * generator.normal(size=(ROUNDS, 1))),
            100 * np.sign(noise[1]) * (generator.uniform(size=shape) < 0.05),
            1e-3 * noise[2],
            np.abs(noise[3]) * (1 + np.arange(ROUNDS)[:, None] / 10) - [2.0, 0, 0, 0],
            -np.abs(noise[4]) - [0, 0, 0, 1.0],
        ]
    return np.array(games).astype(setting.dtype)


def _arms(setting: Setting, games: int) -> np.ndarray:
    """Every second game has arms forced on it: what sampling would hardly ever show."""
    arms = setting.generator(2).integers(_ARMS, size=(games, ROUNDS))
    return np.where(np.arange(games)[:, None] % 2 == 1, arms, -1)


@cache
def _played(setting: Setting) -> dict[str, list[Trajectory]]:
    """Games of Algorithm 1, both options."""
    losses = _losses(setting, 1)
    arms = _arms(setting, len(losses))
    return {
        option: play_games(strategies.scale_free(option), BARRIER, losses, setting.seed, arms)
        for option in ("decaying", "adaptive")
    }


def algorithm_games(setting: Setting) -> Iterator[tuple]:
    """(option, trajectory) of Algorithm 1."""
    for option, games in _played(setting).items():
        for game in games:
            yield option, game


@cache
def _others(setting: Setting) -> list[tuple]:
    """(potential, trajectory) of AdaFTRL with the other potentials, on bandit feedback."""
    found = []
    for potential, largest in ((TSALLIS, 30.0), (ENTROPY, 0.3)):
        losses = np.clip(_losses(setting, 3), -largest, largest)
        adaptive = full_information.ada_ftrl(potential)
        bandit = compose(sampling.decaying(), estimation.importance_weighted(), adaptive)
        found += [(potential, g) for g in play_games(bandit, potential, losses, setting.seed)]
    return found


def bandit_games(setting: Setting) -> Iterator[tuple]:
    """(potential, trajectory) of AdaFTRL with alpha = n, beta = 1 on importance-weighted losses."""
    for _, game in algorithm_games(setting):
        yield BARRIER, game
    if setting.effort > 1:
        yield from _others(setting)


@cache
def uneven_games(setting: Setting) -> list[tuple]:
    """(potential, trajectory) of FTRL with rates that go up and down, in full information.

    Entropy has small losses, lest probabilities underflow to zero, where F is not smooth.
    """
    rates = 0.6 + 0.5 * np.sin(np.arange(ROUNDS + 1) ** 2)
    found = []
    for potential, largest in ((BARRIER, 30.0), (TSALLIS, 30.0), (ENTROPY, 1.0)):
        losses = np.clip(_losses(setting, 4), -largest, largest)
        found += [(potential, game) for game in follow_losses(potential, losses, rates)]
    return found


def ftrl_games(setting: Setting) -> Iterator[tuple]:
    """(potential, trajectory) with any positive learning rates."""
    yield from bandit_games(setting)
    yield from uneven_games(setting)


def on_arm_played(game: Trajectory) -> tuple[np.ndarray, ...]:
    """a = p_t(i_t), p'_t(i_t), l_t(i_t), l~_t(i_t), gamma_{t-1}, eta_{t-1}, [T] each."""
    rows = np.arange(len(game.arms))
    columns = (game.play[:-1], game.probabilities, game.losses, game.estimates)
    seen = (column[rows, game.arms] for column in columns)
    return (*seen, game.exploration[:-1], game.learning_rate[:-1])


def exploration_masses(game: Trajectory) -> np.ndarray:
    """Gamma_t(gamma_{t-1}) from its definition, [T]."""
    a, _, loss, _, gamma, _ = on_arm_played(game)
    return gamma * np.abs(loss) / ((1 - gamma) * a + gamma / game.play.shape[1])
