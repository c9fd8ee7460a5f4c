"""Numba: compiled scalar code for one game, `prange` over the seeds."""

from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np

from benchmarks.rivals.numpy_over_seeds import MOST_STEPS
from sfmab_jax.cli.bench import MissingRivalError

__all__ = ["numba_own_losses", "numba_prange"]

# Without a test for zero at every division.
_OPTIONS = {"fastmath": True, "error_model": "numpy"}


def numba_prange(losses: np.ndarray, num_seeds: int) -> Callable[[int], np.ndarray]:
    """Algorithm 1, adaptive exploration, float32: a function of the seed, as the other rivals."""
    numba = _numba()
    table = np.ascontiguousarray(losses, np.float32)
    num_rounds, num_arms = table.shape

    @numba.njit(**_OPTIONS, inline="always")
    def loss_of(table, t, arm, sums):
        return table[t, arm]

    games = _games(numba, loss_of, num_arms, num_rounds, num_seeds)
    return lambda seed: games(table, seed)[0]


def numba_own_losses(
    num_arms: int, num_rounds: int, gap: float, num_seeds: int
) -> Callable[[int], np.ndarray]:
    """The same on uniform losses that every game draws for itself, with the best arm's total."""
    numba = _numba()
    f32 = np.float32
    lowest = np.full(num_arms, -1, np.float32)
    lowest[0] -= f32(gap)

    @numba.njit(**_OPTIONS, inline="always")
    def loss_of(lowest, t, arm, sums):
        seen = f32(0)
        for i in range(num_arms):
            loss = f32(2) * f32(np.random.random()) + lowest[i]  # noqa: NPY002
            sums[i] += loss
            if i == arm:
                seen = loss
        return seen

    games = _games(numba, loss_of, num_arms, num_rounds, num_seeds)
    return lambda seed: games(lowest, seed)[0]


def _numba() -> ModuleType:
    try:
        import numba
    except ImportError:
        raise MissingRivalError("Numba is not installed; pip install '.[bench]'") from None
    return numba


def _games(numba: Any, loss_of: Callable, num_arms: int, num_rounds: int, num_seeds: int):
    """Compile (losses, seed) -> realised and best total losses [games].

    Newton's method warm: the maximiser of the mixability gap from p_t, p_{t+1} from there.

    Args:
      numba: the module.
      loss_of: (losses, t, arm, sums) -> the loss seen. Of a game's own losses it also adds up
        each arm's, in sums [n].
      num_arms, num_rounds, num_seeds: the size.
    """
    f32 = np.float32
    n, one = f32(num_arms), f32(1)

    @numba.njit(**_OPTIONS, inline="always")
    def draw(play, exploration):
        target = f32(np.random.random())  # noqa: NPY002, what Numba has in parallel code
        running = f32(0)
        for i in range(num_arms):
            running += (one - exploration) * play[i] + exploration / n
            if target < running:
                return i
        return num_arms - 1

    @numba.njit(**_OPTIONS, inline="always")
    def mixability(play, arm, y, shift, floor):
        """eta M, the shift of the maximiser q = p / (1 + p (y + shift)), and sum q^2."""
        for _ in range(MOST_STEPS):
            shift = max(shift, floor)
            excess, slope, size = f32(0), f32(0), f32(0)
            for i in range(num_arms):
                z = play[i] * (shift + (y if i == arm else f32(0)))
                q = play[i] / (one + z)
                excess -= q * z
                slope += q * q
                size += z * z
            step = (one + excess) * excess / slope
            shift = max(shift + step, floor)
            if slope * step * step <= f32(1e-3) * size:
                break
        gap = f32(0)
        for i in range(num_arms):
            z = play[i] * (shift + (y if i == arm else f32(0)))
            if abs(z) < f32(0.01):
                gap += z * z * (f32(0.5) - z * (f32(1 / 3) - z * (f32(0.25) - z * f32(0.2))))
            else:
                gap += z - np.log(one + z)
        return gap, shift, slope

    @numba.njit(**_OPTIONS, inline="always")
    def follow(play, gaps, mu):
        """p = 1 / (gaps + mu) with sum p = 1; returns mu and sum p^2."""
        for _ in range(MOST_STEPS):
            total, square = f32(0), f32(0)
            for i in range(num_arms):
                play[i] = one / (gaps[i] + mu)
                total += play[i]
                square += play[i] * play[i]
            step = total * (total - one) / square
            following = max(mu + step, one)
            step, mu = following - mu, following
            if abs(step) <= f32(2e-4) * mu:
                break
        square = f32(0)
        for i in range(num_arms):
            play[i] -= play[i] * play[i] * step  # a small step needs no more division
            square += play[i] * play[i]
        return mu, square

    @numba.njit(**_OPTIONS)
    def game(losses, seed):
        np.random.seed(seed)  # noqa: NPY002
        play = np.full(num_arms, one / n, np.float32)
        gaps = np.zeros(num_arms, np.float32)
        totals = np.zeros(num_arms, np.float32)
        sums = np.zeros(num_arms, np.float32)
        mu, square, rate, exploration = n, one / n, n, f32(0.5)
        sum_gap, sum_mass, realised = one, f32(2) * n, 0.0
        for t in range(num_rounds):
            arm = draw(play, exploration)
            loss, p = loss_of(losses, t, arm, sums), play[arm]
            estimate = loss / ((one - exploration) * p + exploration / n)
            realised += loss
            y = rate * estimate
            top = f32(np.inf)
            for i in range(num_arms):
                top = min(top, gaps[i] + mu + (y if i == arm else f32(0)))
            gap, shift, slope = mixability(play, arm, y, -p * p * y / square, one - top)
            sum_gap += gap / rate
            sum_mass += exploration * abs(estimate)
            kept = n / sum_gap / rate
            rate, exploration = n / sum_gap, n / sum_mass
            totals[arm] += estimate
            lowest = totals.min()
            for i in range(num_arms):
                gaps[i] = rate * (totals[i] - lowest)
            start = max(kept * (top + shift) + (one - kept) / slope, one)
            mu, square = follow(play, gaps, start)
        return realised, sums.min()

    @numba.njit(parallel=True, **_OPTIONS)
    def games(losses, seed):
        realised, best = np.empty(num_seeds), np.empty(num_seeds)
        for s in numba.prange(num_seeds):
            realised[s], best[s] = game(losses, seed * num_seeds + s)
        return realised, best

    return games
