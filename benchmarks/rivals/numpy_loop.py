"""Plain NumPy, one game at a time: Algorithm 1 as one writes it down from the paper."""

from collections.abc import Callable

import numpy as np

__all__ = ["numpy_loop"]


def numpy_loop(losses: np.ndarray, num_games: int) -> Callable[[int], np.ndarray]:
    """Adaptive exploration, float64: a function of the seed, giving the total losses [games]."""
    rows = losses.astype(np.float64)

    def run(seed: int) -> np.ndarray:
        generator = np.random.default_rng(seed)
        return np.array([_game(rows, generator) for _ in range(num_games)])

    return run


def _game(losses: np.ndarray, generator: np.random.Generator) -> float:
    num_rounds, n = losses.shape
    p = np.full(n, 1 / n)
    totals = np.zeros(n)
    rate, exploration, sum_gap, sum_mass, realised = float(n), 0.5, 1.0, 2.0 * n, 0.0
    uniforms = generator.random(num_rounds)
    for loss, uniform in zip(losses, uniforms):
        mixed = (1 - exploration) * p + exploration / n
        arm = min(int(np.searchsorted(np.cumsum(mixed), uniform, side="right")), n - 1)
        estimate = loss[arm] / mixed[arm]
        moved = 1 / p
        moved[arm] += rate * estimate
        q = _normalised(moved - moved.min())
        z = p / q - 1  # Breg(p || q) of the log barrier is the sum of z - log(1 + z)
        sum_gap += np.sum(z - np.log1p(z)) / rate
        sum_mass += exploration * abs(estimate)
        rate, exploration = n / sum_gap, n / sum_mass
        totals[arm] += estimate
        p = _normalised(rate * (totals - totals.min()))
        realised += loss[arm]
    return realised


def _normalised(gaps: np.ndarray) -> np.ndarray:
    """1 / (x + mu) with sum 1: Newton on 1 / sum - 1 rises to the root from the left."""
    mu = max(1.0, len(gaps) - gaps.mean())
    while True:
        p = 1 / (gaps + mu)
        total = p.sum()
        step = total * (total - 1) / np.dot(p, p)
        mu += step
        if abs(step) <= 1e-9 * mu:
            return p / total
