"""NumPy with all games side by side: arrays [n, seeds], one Python loop over the rounds."""

from collections.abc import Callable

import numpy as np

__all__ = ["MOST_STEPS", "numpy_over_seeds"]

# Never reached but where float32 sums over very many arms are too coarse to get there.
MOST_STEPS = 30


def numpy_over_seeds(losses: np.ndarray, num_games: int) -> Callable[[int], np.ndarray]:
    """Adaptive exploration, float32: a function of the seed, giving the total losses [games]."""
    rows = losses.astype(np.float32)
    n = rows.shape[1]
    arms = np.arange(n)[:, None]
    games = np.arange(num_games)

    def run(seed: int) -> np.ndarray:
        generator = np.random.default_rng(seed)
        p = np.full((n, num_games), 1 / n, np.float32)
        totals = np.zeros((n, num_games), np.float32)
        rate = np.full(num_games, n, np.float32)
        exploration = np.full(num_games, 0.5, np.float32)
        sum_gap = np.ones(num_games)
        sum_mass = np.full(num_games, 2.0 * n)
        realised = np.zeros(num_games)
        for loss in rows:
            mixed = (1 - exploration) * p + exploration / np.float32(n)
            uniform = generator.random(num_games, np.float32)
            arm = np.minimum((np.cumsum(mixed, axis=0) <= uniform).sum(axis=0), n - 1)
            seen = loss[arm]
            estimate = seen / mixed[arm, games]
            moved = 1 / p + np.where(arms == arm, rate * estimate, np.float32(0))
            q = _normalised(moved - moved.min(axis=0))
            z = p / q - 1
            sum_gap += np.maximum((z - np.log1p(z)).sum(axis=0), 0) / rate
            sum_mass += exploration * np.abs(estimate)
            rate = (n / sum_gap).astype(np.float32)
            exploration = (n / sum_mass).astype(np.float32)
            totals[arm, games] += estimate
            p = _normalised(rate * (totals - totals.min(axis=0)))
            realised += seen
        return realised

    return run


def _normalised(gaps: np.ndarray) -> np.ndarray:
    """1 / (x + mu) with sum 1 over the arms, by Newton until the last game is there."""
    mu = np.maximum(np.float32(1), len(gaps) - gaps.mean(axis=0))
    for _ in range(MOST_STEPS):
        p = 1 / (gaps + mu)
        total = p.sum(axis=0)
        step = total * (total - 1) / np.einsum("ij,ij->j", p, p)
        mu = mu + step
        # A step squares the error: this one leaves it below float32's own.
        if np.all(np.abs(step) <= 2e-4 * mu):
            break
    return p - p * p * step
