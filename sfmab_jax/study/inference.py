"""Statistics a referee accepts, on units: the independent numbers behind a mean.

With one loss sequence the units are the seeds, and the mean is the expected regret on that
sequence. With several the units are the means of the sequences, and the mean is over the family:
games on one sequence are not independent.

Measured on 1,000 studies of 32 units (200 rounds, 3 arms, Algorithm 1), 95% intervals cover the
expected regret of one sequence in 93.4 to 95.5% (t) and 93.8 to 96.4% (bootstrap-t) on Bernoulli,
sparse, Student, Pareto and log-normal losses alike. Over drawn sequences it is 93 to 95% for
Bernoulli and Student's t with 2.5 degrees, but 90 and 92% for log-normal losses (sigma 2), and 76
and 83% for Pareto ones of index 1.5, which have no variance: `too_few` is there to mark such means.
"""

from typing import NamedTuple

import numpy as np
from scipy import stats  # type: ignore[import-untyped]  # a requirement of JAX itself

__all__ = [
    "Growth",
    "Interval",
    "bootstrap_mean",
    "conditional_value_at_risk",
    "growth_exponent",
    "holm",
    "mean_interval",
    "paired_p_value",
    "too_few",
    "units",
]

_RESAMPLES = 1000


class Interval(NamedTuple):
    """An estimate with its interval; numbers, or arrays [C]."""

    estimate: np.ndarray
    low: np.ndarray
    high: np.ndarray


def units(samples: np.ndarray) -> np.ndarray:
    """[K, S, C] -> [U, C]: the seeds of the one sequence, or the means of several."""
    return samples[0] if len(samples) == 1 else samples.mean(axis=1)


def mean_interval(values: np.ndarray, level: float = 0.95) -> Interval:
    """mean -+ t s / sqrt(U), [U, C] -> [C]: the normal interval with Student's t for few units."""
    mean = values.mean(axis=0)
    count = len(values)
    if count < 2:
        return Interval(mean, mean * np.nan, mean * np.nan)
    half = stats.t.ppf((1 + level) / 2, count - 1) * values.std(axis=0, ddof=1) / np.sqrt(count)
    return Interval(mean, mean - half, mean + half)


def bootstrap_mean(values: np.ndarray, level: float = 0.95, seed: int = 0) -> Interval:
    """Bootstrap-t interval of the mean (Efron and Tibshirani 1993, section 12.5), [U, C] -> [C].

    From resamples with mean m* and standard error s*, the quantiles of (m* - m) / s* take the
    place of Student's: a skewed law, as regret has, gets an interval with a longer side. The
    percentile bootstrap misses that.
    """
    mean, count = values.mean(axis=0), len(values)
    if count < 3:
        return Interval(mean, mean * np.nan, mean * np.nan)
    centred = values - mean
    ratios = np.empty((_RESAMPLES, *mean.shape))
    for ratio, counts in zip(ratios, _resamples(count, seed)):
        shift = counts @ centred
        spread = counts @ centred**2 - shift**2
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio[:] = shift / np.sqrt(spread / (count - 1))
    ratios[~np.isfinite(ratios)] = 0.0  # all resampled units equal: nothing to say
    error = values.std(axis=0, ddof=1) / np.sqrt(count)
    low, high = np.quantile(ratios, [(1 - level) / 2, (1 + level) / 2], axis=0)
    return Interval(mean, mean - high * error, mean - low * error)


def too_few(values: np.ndarray) -> bool:
    """Whether a mean of these units [U] may have an interval that covers less than it says.

    Cochran's rule (Sampling Techniques, 1977, section 2.15): with skewness G the normal interval
    is trusted from 25 G^2 units on.
    """
    spread = values.std()
    if len(values) < 2 or spread == 0:
        return len(values) < 2
    skewness = np.mean(((values - values.mean()) / spread) ** 3)
    return bool(len(values) < 25 * skewness**2)


def _resamples(count: int, seed: int):
    """Weights [U] of each resample, summing to 1."""
    generator = np.random.default_rng(seed)
    for _ in range(_RESAMPLES):
        drawn = generator.integers(count, size=count)
        yield np.bincount(drawn, minlength=count) / count


def conditional_value_at_risk(values: np.ndarray, level: float = 0.95) -> np.ndarray:
    """Mean of the worst 1 - level part of the values, [U, ...] -> [...].

    Rockafellar and Uryasev (2000): the value at the edge counts by the part of it that is needed.
    """
    ordered = np.sort(values, axis=0)[::-1]
    wanted = (1 - level) * len(ordered)
    weights = np.clip(wanted - np.arange(len(ordered)), 0, 1)
    return np.tensordot(weights, ordered, axes=1) / weights.sum()


def paired_p_value(difference: np.ndarray) -> float:
    """Two-sided p-value of the paired t-test that the mean of the differences [U] is 0."""
    if len(difference) < 2:
        return float("nan")
    spread = difference.std(ddof=1)
    if spread == 0:
        return 1.0 if difference[0] == 0 else 0.0
    t = difference.mean() / spread * np.sqrt(len(difference))
    return float(2 * stats.t.sf(abs(t), len(difference) - 1))


def holm(p_values: np.ndarray) -> np.ndarray:
    """Holm's adjusted p-values (1979): below a, the chance of any false claim is at most a."""
    order = np.argsort(p_values)
    ranked = p_values[order] * np.arange(len(p_values), 0, -1)
    adjusted = np.empty(len(p_values))
    adjusted[order] = np.minimum(np.maximum.accumulate(ranked), 1)
    return adjusted


class Growth(NamedTuple):
    """regret ~ x^exponent, by least squares on logarithms, with its bootstrap interval."""

    exponent: float
    low: float
    high: float


def growth_exponent(
    x: np.ndarray, values: np.ndarray, level: float = 0.95, seed: int = 0
) -> Growth:
    """The slope of log mean regret against log x, from units [U, X] at the points x [X].

    Points share their games, so whole units are resampled: the interval holds what chance does to
    the slope, not how far a power is the wrong shape. NaN where a mean regret is not positive.
    """
    mean = values.mean(axis=0)
    if len(x) < 2 or not (mean > 0).all():
        return Growth(np.nan, np.nan, np.nan)
    logs = np.log(x) - np.log(x).mean()
    weights = logs / (logs @ logs)
    slope = float(weights @ np.log(mean))
    if len(values) < 3:
        return Growth(slope, np.nan, np.nan)
    means = np.array([counts @ values for counts in _resamples(len(values), seed)])
    means = means[(means > 0).all(axis=1)]
    if len(means) < 0.99 * _RESAMPLES:  # chance alone makes the regret negative at times
        return Growth(slope, np.nan, np.nan)
    low, high = np.quantile(np.log(means) @ weights, [(1 - level) / 2, (1 + level) / 2])
    return Growth(slope, float(low), float(high))
