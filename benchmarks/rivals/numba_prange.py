"""Numba: compiled scalar code for one game, `prange` over the seeds."""

from collections.abc import Callable

import numpy as np

from benchmarks.rivals.numpy_over_seeds import MOST_STEPS
from sfmab_jax.cli.bench import MissingRivalError

__all__ = ["numba_prange"]


def numba_prange(losses: np.ndarray, num_seeds: int) -> Callable[[int], np.ndarray]:
    """Algorithm 1, adaptive exploration, float32: a function of the seed, as the other rivals.

    Newton's method warm: the maximiser of the mixability gap from p_t, p_{t+1} from there.
    """
    try:
        import numba
    except ImportError:
        raise MissingRivalError("Numba is not installed; pip install '.[bench]'") from None
    # Without a test for zero at every division.
    options = {"fastmath": True, "error_model": "numpy"}
    f32 = np.float32
    num_arms = losses.shape[1]
    n, one = f32(num_arms), f32(1)
    table = np.ascontiguousarray(losses, np.float32)

    @numba.njit(**options, inline="always")
    def draw(play, exploration):
        target = f32(np.random.random())  # noqa: NPY002, what Numba has in parallel code
        running = f32(0)
        for i in range(num_arms):
            running += (one - exploration) * play[i] + exploration / n
            if target < running:
                return i
        return num_arms - 1

    @numba.njit(**options, inline="always")
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

    @numba.njit(**options, inline="always")
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

    @numba.njit(**options)
    def game(losses, seed):
        np.random.seed(seed)  # noqa: NPY002
        play = np.full(num_arms, one / n, np.float32)
        gaps = np.zeros(num_arms, np.float32)
        totals = np.zeros(num_arms, np.float32)
        mu, square, rate, exploration = n, one / n, n, f32(0.5)
        sum_gap, sum_mass, realised = one, f32(2) * n, 0.0
        for t in range(len(losses)):
            arm = draw(play, exploration)
            loss, p = losses[t, arm], play[arm]
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
        return realised

    @numba.njit(parallel=True, **options)
    def games(losses, seed):
        realised = np.empty(num_seeds)
        for s in numba.prange(num_seeds):
            realised[s] = game(losses, seed * num_seeds + s)
        return realised

    return lambda seed: games(table, seed)
