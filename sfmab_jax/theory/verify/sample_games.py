"""Games on which claims are tried: Algorithm 1, AdaFTRL, and FTRL at any rates."""

from collections.abc import Iterator
from functools import cache

import numpy as np

from sfmab_jax import estimation, full_information, sampling, strategies
from sfmab_jax.compose import compose
from sfmab_jax.theory.trajectories import Trajectory, follow_losses, play_games
from sfmab_jax.theory.verify.claim import Setting
from sfmab_jax.theory.verify.claims_potentials import POTENTIALS

__all__ = [
    "BARRIER",
    "ROUNDS",
    "algorithm_games",
    "at_arm",
    "bandit_games",
    "exploration_masses",
    "ftrl_games",
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
    """Forced arms of every second game, which sampling would hardly ever draw; -1 draws."""
    arms = setting.generator(2).integers(_ARMS, size=(games, ROUNDS))
    return np.where(np.arange(games)[:, None] % 2 == 1, arms, -1)


@cache
def _algorithm_games(setting: Setting) -> dict[str, list[Trajectory]]:
    """Games of Algorithm 1 by option."""
    losses = _losses(setting, 1)
    arms = _arms(setting, len(losses))
    return {
        option: play_games(strategies.scale_free(option), BARRIER, losses, setting.seed, arms)
        for option in ("decaying", "adaptive")
    }


def algorithm_games(setting: Setting) -> Iterator[tuple]:
    """(option, trajectory) of Algorithm 1."""
    for option, games in _algorithm_games(setting).items():
        for game in games:
            yield option, game


@cache
def _other_bandit_games(setting: Setting) -> list[tuple]:
    """(potential, trajectory) of AdaFTRL with the other potentials, on bandit feedback."""
    pairs = []
    for potential, largest in ((TSALLIS, 30.0), (ENTROPY, 0.3)):
        losses = np.clip(_losses(setting, 3), -largest, largest)
        adaptive = full_information.ada_ftrl(potential)
        bandit = compose(sampling.decaying(), estimation.importance_weighted(), adaptive)
        pairs += [(potential, g) for g in play_games(bandit, potential, losses, setting.seed)]
    return pairs


def bandit_games(setting: Setting) -> Iterator[tuple]:
    """(potential, trajectory) of AdaFTRL with alpha = n, beta = 1 on importance-weighted losses."""
    for _, game in algorithm_games(setting):
        yield BARRIER, game
    if setting.effort > 1:
        yield from _other_bandit_games(setting)


@cache
def uneven_games(setting: Setting) -> list[tuple]:
    """(potential, trajectory) of FTRL with rates that go up and down, in full information.

    Entropy gets small losses, so that no probability underflows to zero, where F is not smooth.
    """
    rates = 0.6 + 0.5 * np.sin(np.arange(ROUNDS + 1) ** 2)
    pairs = []
    for potential, largest in ((BARRIER, 30.0), (TSALLIS, 30.0), (ENTROPY, 1.0)):
        losses = np.clip(_losses(setting, 4), -largest, largest)
        pairs += [(potential, game) for game in follow_losses(potential, losses, rates)]
    return pairs


def ftrl_games(setting: Setting) -> Iterator[tuple]:
    """(potential, trajectory) with any positive learning rates."""
    yield from bandit_games(setting)
    yield from uneven_games(setting)


def at_arm(game: Trajectory) -> tuple[np.ndarray, ...]:
    """a = p_t(i_t), p'_t(i_t), l_t(i_t), l~_t(i_t), gamma_{t-1}, eta_{t-1}, [T] each."""
    rows = np.arange(len(game.arms))
    columns = (game.play[:-1], game.probabilities, game.losses, game.estimates)
    entries = (column[rows, game.arms] for column in columns)
    return (*entries, game.exploration[:-1], game.learning_rate[:-1])


def exploration_masses(game: Trajectory) -> np.ndarray:
    """Gamma_t(gamma_{t-1}) from its definition, [T]."""
    a, _, loss, _, gamma, _ = at_arm(game)
    return gamma * np.abs(loss) / ((1 - gamma) * a + gamma / game.play.shape[1])
