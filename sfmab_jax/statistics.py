"""Means and quantiles over seeds, with intervals that say how sure they are.

The seeds are axis 1 of ``samples``, [K, S, C]; results keep K sequences and C checkpoints.
"""

from statistics import NormalDist

import numpy as np

__all__ = ["bootstrap_interval", "mean", "normal_interval", "quantiles", "standard_error"]

_RESAMPLES = 1000


def mean(samples: np.ndarray) -> np.ndarray:
    """Mean over the seeds, [K, S, C] -> [K, C]."""
    return samples.mean(axis=1)


def standard_error(samples: np.ndarray) -> np.ndarray:
    """Standard error of the mean over the seeds, [K, S, C] -> [K, C]; NaN for a single seed."""
    num_seeds = samples.shape[1]
    if num_seeds < 2:
        return np.full((samples.shape[0], samples.shape[2]), np.nan)
    return samples.std(axis=1, ddof=1) / np.sqrt(num_seeds)


def normal_interval(samples: np.ndarray, level: float) -> tuple[np.ndarray, np.ndarray]:
    """mean -+ z * standard error, the central limit theorem's interval: two [K, C]."""
    half = NormalDist().inv_cdf((1 + level) / 2) * standard_error(samples)
    return mean(samples) - half, mean(samples) + half


def bootstrap_interval(samples: np.ndarray, level: float) -> tuple[np.ndarray, np.ndarray]:
    """Percentile bootstrap of the mean over the seeds (Efron 1979): two [K, C].

    It needs no normality, which means of few heavy-tailed regrets do not have.
    """
    generator = np.random.default_rng(0)
    num_seeds = samples.shape[1]
    if num_seeds < 2:
        nothing = np.full((samples.shape[0], samples.shape[2]), np.nan)
        return nothing, nothing
    means = np.empty((_RESAMPLES, samples.shape[0], samples.shape[2]))
    for resample in means:
        counts = np.bincount(generator.integers(num_seeds, size=num_seeds), minlength=num_seeds)
        resample[:] = np.einsum("s,ksc->kc", counts / num_seeds, samples)
    low, high = np.quantile(means, [(1 - level) / 2, (1 + level) / 2], axis=0)
    return low, high


def quantiles(samples: np.ndarray, levels: np.ndarray) -> np.ndarray:
    """Quantiles over the seeds, [K, S, C] -> [Q, K, C]."""
    return np.quantile(samples, levels, axis=1)
