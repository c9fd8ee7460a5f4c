"""Claims about every path of Algorithm 1: sections 2 and 6 of the paper."""

import numpy as np

from sfmab_jax.theory import regret
from sfmab_jax.theory.trajectories import Trajectory
from sfmab_jax.theory.verify.claim import Claim, equal
from sfmab_jax.theory.verify.sample_games import (
    BARRIER,
    algorithm_games,
    at_arm,
    exploration_masses,
)

__all__ = ["CLAIMS"]

# Algorithm 1.


def _start(option: str, game: Trajectory) -> np.ndarray:
    n = game.play.shape[1]
    first = [game.learning_rate[0] / n, 2 * game.exploration[0]]
    return equal([*first, *(n * game.play[0])], 1, 1)


def _mixture(option: str, game: Trajectory) -> np.ndarray:
    n, gamma = game.play.shape[1], game.exploration[:-1, None]
    p, mixed = game.play[:-1], game.probabilities
    expected = (1 - gamma) * p + gamma / n
    parts = [equal(mixed, expected, expected), mixed / (gamma / n) - 1, mixed - (1 - gamma) * p]
    return np.concatenate([*(part.ravel() for part in parts), equal(mixed.sum(axis=1), 1, 1)])


def _unbiased(option: str, game: Trajectory) -> np.ndarray:
    """l~ has one non-zero entry, and its mean over the arm drawn from p' is the loss vector."""
    others = np.where(np.arange(game.play.shape[1]) == game.arms[:, None], 0, game.estimates)
    mixed = game.probabilities
    expected = sum(mixed[:, [i]] * np.eye(len(mixed[0]))[i] * game.losses / mixed[:, [i]]
                   for i in range(len(mixed[0])))  # fmt: skip
    _, chance, loss, weighted, _, _ = at_arm(game)
    drawn = equal(weighted * chance, loss, 1e-30 + np.abs(loss))
    sizes = 1e-30 + np.abs(game.losses)
    return np.concatenate(
        [-np.abs(others).ravel(), equal(expected, game.losses, sizes).ravel(), drawn]
    )


def _exploration(option: str, game: Trajectory) -> np.ndarray:
    n, t = game.play.shape[1], np.arange(1, len(game.arms) + 1)
    if option == "decaying":
        expected = np.minimum(0.5, np.sqrt(n / t))
    else:
        expected = 1 / (2 + np.cumsum(exploration_masses(game)) / n)
    return equal(game.exploration[1:], expected, expected)


def _mass_bounds(option: str, game: Trajectory) -> np.ndarray:
    _, chance, loss, _, gamma, _ = at_arm(game)
    masses, n = exploration_masses(game), game.play.shape[1]
    sizes = 1e-30 + n * np.abs(loss)
    ratio = equal(masses * chance, gamma * np.abs(loss), 1e-30 + np.abs(loss))
    return np.concatenate([masses / sizes, (n * np.abs(loss) - masses) / sizes, ratio])


def _exploration_falls(option: str, game: Trajectory) -> np.ndarray:
    gamma = game.exploration
    return np.concatenate([gamma, 0.5 - gamma, gamma[:-1] - gamma[1:]])


# What Theorem 1 needs of every path.


def _star(option: str, game: Trajectory) -> np.ndarray:
    size, n = regret.size(game, BARRIER), game.play.shape[1]
    pairs = [
        regret.inequality_star(game, i, epsilon)
        for i in range(n)
        for epsilon in (1, 0.1, 1e-3, 1e-9)
    ]
    return np.array([(right - left) / size for left, right in pairs])


def _estimate_range(option: str, game: Trajectory) -> np.ndarray:
    _, _, loss, weighted, gamma, _ = at_arm(game)
    most = game.play.shape[1] * np.abs(loss) / gamma
    return (most - np.abs(weighted)) / (1e-30 + most)


def _second_moment(option: str, game: Trajectory) -> np.ndarray:
    a, chance, loss, weighted, gamma, _ = at_arm(game)
    middle, high = loss**2 / ((1 - gamma) * chance), 2 * loss**2 / chance
    below = 1e-30 + high
    return np.concatenate([(middle - a * weighted**2) / below, (high - middle) / below])


def _exploring(option: str, game: Trajectory) -> np.ndarray:
    a, chance, loss, _, gamma, _ = at_arm(game)
    n = game.play.shape[1]
    left = (game.estimates * (game.probabilities - game.play[:-1])).sum(axis=1)
    middle, mass = gamma * loss / chance * (1 / n - a), exploration_masses(game)
    sizes = 1e-30 + np.abs(loss) / chance
    return np.concatenate([equal(left, middle, sizes), ((1 - 1 / n) * mass - middle) / sizes])


CLAIMS = (
    Claim(1, "eta_0 = n, gamma_0 = 1/2, p_1 uniform", "Algorithm 1", algorithm_games, _start),
    Claim(2, "p' >= gamma/n, p' >= (1-gamma)p, sum p' = 1", "section 2", algorithm_games, _mixture),
    Claim(3, "l~ has one entry; E[l~ | past] = l", "section 2", algorithm_games, _unbiased),
    Claim(4, "gamma_t of both options; 1/gamma_T = 2 + sum Gamma/n", "Algorithm 1",
          algorithm_games, _exploration),
    Claim(5, "0 <= Gamma <= n|l|, Gamma/gamma = |l|/p'", "section 6.2",
          algorithm_games, _mass_bounds),
    Claim(6, "0 < gamma <= 1/2, not increasing", "section 6", algorithm_games, _exploration_falls),
    Claim(38, "inequality (*), all i and epsilon", "section 6", algorithm_games, _star),
    Claim(39, "|l~| <= n|l|/gamma", "section 6", algorithm_games, _estimate_range),
    Claim(40, "a l~^2 <= l^2/((1-gamma)p') <= 2l^2/p'", "section 6",
          algorithm_games, _second_moment),
    Claim(45, "l~.(p'-p) = gamma (l/p')(1/n - a) <= (1-1/n) Gamma", "section 6.2, corrected",
          algorithm_games, _exploring),
)  # fmt: skip
