"""Means, intervals and tests that a referee accepts.

Everything is of units, the independent numbers behind a mean. Given a loss sequence the units are
the seeds, and the mean is the expected regret on that sequence. Over the family they are the means
of the sequences: games on one sequence are not independent. Units are the first axis of an array.

Measured coverage of 95% intervals (Student's t; bootstrap-t covers as much) on eight families, 200
rounds, 3 arms, from 50 to 1,000 units: 93 to 96% over families with light tails and given a
sequence of most families. Over families without variance, or with hardly one, it is less: 79 to 91%
for Pareto losses of index 1.5, 89 to 95% for log-normal ones with sigma 2; and 67% for 50 units
given a sequence of these with a loss of 7,000 that few games meet. `is_doubtful` is there to mark
such means, and marks every mean of fewer than 50 units. What is not marked misses in 7% of all
cases at most, means and differences, tail probabilities and worst parts.
"""

from typing import Any, Literal, NamedTuple

import numpy as np

from sfmab_jax.checks import warn_user

__all__ = [
    "FEW_UNITS",
    "Growth",
    "Interval",
    "Over",
    "bootstrap_t_interval",
    "check_level",
    "check_levels",
    "check_over",
    "conditional_value_at_risk",
    "delay_in_words",
    "games_of",
    "growth_exponent",
    "holm",
    "in_words",
    "is_doubtful",
    "may_miss_a_loss",
    "paired_p_value",
    "sequential_interval",
    "share_interval",
    "shares_are_doubtful",
    "spread_is_doubtful",
    "standard_error",
    "student_interval",
    "student_quantile",
    "units_of",
    "warn_if_no_interval",
    "worst_units_of",
]

Over = Literal["family", "sequence"]

_RESAMPLES = 1000
# Means of fewer units are marked, whatever the units are.
FEW_UNITS = 50
# Tails with a smaller index have no variance.
_LEAST_TAIL_INDEX = 2.0
# Numbers of a bootstrap that are held at a time.
_MOST_RATIOS = 2**24


class Interval(NamedTuple):
    """An estimate with its interval; numbers, or arrays [C]."""

    estimate: np.ndarray
    low: np.ndarray
    high: np.ndarray


class Growth(NamedTuple):
    """regret ~ x^exponent, by least squares on logarithms, with its bootstrap interval."""

    exponent: float
    low: float
    high: float


def check_level(level: float) -> None:
    if not 0 < level < 1:
        raise ValueError(f"level is {level}; it lies strictly between 0 and 1")


def check_levels(levels: Any) -> np.ndarray:
    """Return levels of quantiles as an array [Q]; raise ValueError unless they are such."""
    array = np.atleast_1d(np.asarray(levels, np.float64))
    if array.size == 0 or not ((array >= 0) & (array <= 1)).all():
        raise ValueError(f"levels are {levels}; quantile levels lie between 0 and 1")
    return array


def check_over(over: str | None, num_sequences: int) -> Over:
    """Return over what is averaged, by default over the family if there are several sequences."""
    if over is None:
        return "family" if num_sequences > 1 else "sequence"
    if over not in ("family", "sequence"):
        raise ValueError(f"over is {over!r}; choose 'family' or 'sequence'")
    return "family" if over == "family" else "sequence"


def units_of(samples: np.ndarray, over: str | None = None) -> np.ndarray:
    """Return the units of samples [K, S, ...].

    Over the family they are the means of the sequences, [K, 1, ...]; given each sequence its seeds,
    [S, K, ...].
    """
    if check_over(over, len(samples)) == "family":
        return samples.mean(axis=1, keepdims=True)
    return samples.swapaxes(0, 1)


def games_of(samples: np.ndarray, over: str | None = None) -> np.ndarray:
    """Return the single games of samples [K, S, ...].

    Over the family they are all games, [K S, 1, ...]; given each sequence those on it, [S, K, ...].
    """
    if check_over(over, len(samples)) == "family":
        return samples.reshape(-1, 1, *samples.shape[2:])
    return samples.swapaxes(0, 1)


def worst_units_of(
    samples: np.ndarray, part: float, over: str | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Return the units behind the mean of the worst part of games, from samples [K, S, ...].

    Of a game with regret x they have v + max(x - v, 0) / part, with v the value that the worst part
    exceeds: the mean is that of the worst part, and the spread that of its estimate (Rockafellar
    and Uryasev 2000; v need not be known any better).

    Returns:
      The units [U, ...], and how many of them have a game beyond v, [...].
    """
    edge = np.quantile(games_of(samples, over), 1 - part, axis=0)[:, None]
    beyond = units_of(np.maximum(samples - edge, 0), over)
    return units_of(np.broadcast_to(edge, samples.shape), over) + beyond / part, (beyond > 0).sum(0)


def standard_error(values: np.ndarray) -> np.ndarray:
    """Return the standard error of the mean of units, [U, ...] -> [...]; NaN for a single one."""
    count = len(values)
    if count < 2:
        return np.full_like(values.mean(axis=0), np.nan)
    return values.std(axis=0, ddof=1) / np.sqrt(count)


def student_interval(
    values: np.ndarray, level: float = 0.95, informative: np.ndarray | None = None
) -> Interval:
    """Return mean -+ t s / sqrt(U) with Student's t, [U, ...] -> [...]; NaN for a single unit.

    Args:
      values: the units.
      level: of confidence.
      informative: how many of the units tell the spread, [...], by default all.
    """
    mean, count = values.mean(axis=0), len(values)
    if count < 2:
        return Interval(mean, mean * np.nan, mean * np.nan)
    told = count if informative is None else np.clip(informative, 2, count)
    half = student_quantile(level, told) * standard_error(values)
    return Interval(mean, mean - half, mean + half)


def sequential_interval(
    values: np.ndarray, level: float = 0.95, first_look: int | None = None
) -> Interval:
    """Return an interval of the mean that holds at all looks together, [U, ...] -> [...].

    However often one looks, and whenever one stops, all intervals together miss the mean with a
    probability of 1 - level at most, as the number of units of the first look grows (Waudby-Smith
    et al., "Time-uniform central limit theory and asymptotic confidence sequences", 2024). With
    U units the half width is

        s sqrt((2 (U rho^2 + 1) / (U^2 rho^2)) log(sqrt(U rho^2 + 1) / (1 - level))).

    Args:
      values: the units.
      level: of confidence.
      first_look: the number of units for which it is narrowest, by default U.
    """
    mean, count = values.mean(axis=0), len(values)
    if count < 2:
        return Interval(mean, mean * np.nan, mean * np.nan)
    miss = 1 - level
    rho_squared = (-2 * np.log(miss) + np.log(-2 * np.log(miss) + 1)) / (first_look or count)
    grown = count * rho_squared + 1
    half = np.sqrt(2 * grown / (count * rho_squared) * np.log(np.sqrt(grown) / miss))
    half = half * standard_error(values)
    return Interval(mean, mean - half, mean + half)


def share_interval(values: np.ndarray, level: float = 0.95) -> Interval:
    """Return an interval of the mean of shares from 0 to 1, [U, ...] -> [...].

    Exact where all shares are 0 or 1 (Clopper and Pearson 1934), otherwise Student's.
    """
    from scipy import stats  # type: ignore[import-untyped]  # slow to import

    count, hits = len(values), values.sum(axis=0)
    with np.errstate(invalid="ignore"):
        exact_low = stats.beta.ppf((1 - level) / 2, hits, count - hits + 1)
        exact_high = stats.beta.ppf((1 + level) / 2, hits + 1, count - hits)
    mean, low, high = student_interval(values, level)
    is_exact = ((values == 0) | (values == 1)).all(axis=0)
    return Interval(
        mean,
        np.where(is_exact, np.where(hits == 0, 0.0, exact_low), np.clip(low, 0, 1)),
        np.where(is_exact, np.where(hits == count, 1.0, exact_high), np.clip(high, 0, 1)),
    )


def warn_if_no_interval(count: int, over: Over, method: str | None = None) -> None:
    """Warn that a single unit has no interval, and two have none by the bootstrap."""
    if count >= (3 if method == "bootstrap" else 2):
        return
    is_family = over == "family"
    if count == 2:
        few = f"two {'loss sequences' if is_family else 'games'} have no bootstrap-t interval"
    elif is_family:
        few = "a single loss sequence tells nothing of the family"
    else:
        few = "a single game on a sequence has no interval"
    warn_user(f"{few}; play more with {'num_sequences' if is_family else 'num_seeds'}=")


def in_words(
    means: np.ndarray,
    low: np.ndarray,
    high: np.ndarray,
    doubtful: np.ndarray,
    sequences: int,
    is_oblivious: bool,
) -> str:
    """Return mean regret with its interval in words.

    Args:
      means, low, high, doubtful: at one checkpoint, over the family or given one sequence, [1].
      sequences: how many were played.
      is_oblivious: whether the losses are.
    """
    regret = "regret" if is_oblivious else "external regret"
    where = "given this sequence" if sequences == 1 else f"over {sequences:,} sequences"
    if not np.isfinite(means[0]):
        return f"mean {regret} {means[0]:.4g} {where}"
    if not np.isfinite(low[0]):
        return f"{regret} {means[0]:.4g} in a single game {where}"
    if low[0] == high[0]:
        return f"mean {regret} {means[0]:.4g} in every game {where}"
    mark = ", doubtful: few games or heavy tails" if doubtful[0] else ""
    return f"mean {regret} {means[0]:.4g} in [{low[0]:.4g}, {high[0]:.4g}] {where}{mark}"


def delay_in_words(delay: str | None) -> str:
    """Return what a description of results says of the delay of the feedback."""
    return "" if delay is None else f", delay {delay}"


def student_quantile(level: float, count: int | np.ndarray) -> Any:
    """Return how many standard errors a two-sided interval of ``count`` units is wide, halved."""
    from scipy import stats  # slow to import; JAX requires it

    return stats.t.ppf((1 + level) / 2, count - 1)


def bootstrap_t_interval(values: np.ndarray, level: float = 0.95, seed: int = 0) -> Interval:
    """Return the bootstrap-t interval of the mean, [U, ...] -> [...]; NaN for one or two units.

    From resamples with mean m* and standard error s*, the quantiles of (m* - m) / s* take the
    place of Student's (Efron and Tibshirani 1993, section 12.5): a skewed law, as regret has, gets
    an interval with a longer side. The percentile bootstrap misses that.
    """
    mean, count = values.mean(axis=0), len(values)
    if count < 3:
        return Interval(mean, mean * np.nan, mean * np.nan)
    centred = (values - mean).reshape(count, -1)
    columns = max(1, _MOST_RATIOS // _RESAMPLES)
    edges = [
        _ratio_quantiles(centred[:, start : start + columns], level, seed)
        for start in range(0, centred.shape[1], columns)
    ]
    low, high = np.concatenate(edges, axis=1).reshape(2, *mean.shape)
    error = standard_error(values)
    return Interval(mean, mean - high * error, mean - low * error)


def _ratio_quantiles(centred: np.ndarray, level: float, seed: int) -> np.ndarray:
    """Return the quantiles of (m* - m) / s* that hold ``level`` between them, [U, N] -> [2, N]."""
    count, number = centred.shape
    ratios = np.empty((_RESAMPLES, number))
    squares = centred**2
    for ratio, weights in zip(ratios, _resamples(count, seed)):
        shift = weights @ centred
        spread = weights @ squares - shift**2
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio[:] = shift / np.sqrt(spread / (count - 1))
    ratios[~np.isfinite(ratios)] = 0.0  # all resampled units equal: nothing to say
    return np.quantile(ratios, [(1 - level) / 2, (1 + level) / 2], axis=0)


def is_doubtful(values: np.ndarray, largest_loss: Any = None) -> np.ndarray:
    """Return where the interval of a mean may cover less than it says, [U, ...] -> bool [...].

    That is with fewer than 50 units, with too few for their skewness, with tails too heavy for a
    variance, or where a unit is not finite, see `spread_is_doubtful`; and with too few for losses
    as large as the largest, see `may_miss_a_loss`.

    Args:
      values: the units.
      largest_loss: the size of the largest of the losses that they met, [...], if it is known.
    """
    count = len(values)
    if count < FEW_UNITS:
        return np.full(values.shape[1:], True)
    sizes = np.sort(np.abs(values - np.median(values, axis=0)), axis=0)
    largest = sizes[count - max(5, count // 10) - 1 :]
    # 1 / the index: the mean logarithm of the largest tenth over the one below (Hill 1975).
    with np.errstate(divide="ignore", invalid="ignore"):
        inverse = np.log(largest[1:] / largest[0]).mean(axis=0)
    index = np.where(
        (largest[0] > 0) & (inverse > 0), 1 / np.where(inverse > 0, inverse, 1), np.inf
    )
    doubtful = spread_is_doubtful(count, _skewness(values), index)
    if largest_loss is not None:
        doubtful = doubtful | may_miss_a_loss(count, standard_error(values), largest_loss)
    return doubtful


def may_miss_a_loss(count: int, error: np.ndarray, largest_loss: Any) -> np.ndarray:
    """Return whether a loss that none of U units has met could move the mean beyond its interval.

    What happened to none of U units may still have a chance of 3 / U (the rule of three; Hanley and
    Lippman-Hand 1983). To meet the largest loss L that often moves the mean by 3 L / U, which is to
    be less than two standard errors. Of games that are all alike nothing is said.

    Args:
      count: U.
      error: the standard error of the mean, [...].
      largest_loss: L, [...].
    """
    differ = error > 1e-6 * largest_loss  # by more than rounding
    return differ & (3 * largest_loss / count > 2 * error)


def shares_are_doubtful(values: np.ndarray) -> np.ndarray:
    """Return where `share_interval` may cover less than it says, [U, ...] -> bool [...].

    Never where it is exact; otherwise with fewer than 50 units, or too few for their skewness.
    Shares have a variance, whatever their tails look like.
    """
    is_exact = ((values == 0) | (values == 1)).all(axis=0) & (len(values) > 1)
    return ~is_exact & spread_is_doubtful(len(values), _skewness(values), np.array(np.inf))


def _skewness(values: np.ndarray) -> np.ndarray:
    """Return the skewness of units, [U, ...] -> [...]; 0 where they are all equal."""
    spread = values.std(axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        skewness = np.mean(((values - values.mean(axis=0)) / spread) ** 3, axis=0)
    return np.where(spread == 0, 0.0, skewness)


def spread_is_doubtful(count: int, skewness: np.ndarray, index: np.ndarray) -> np.ndarray:
    """Return whether U units are too few for the shape of their law.

    With skewness G the normal interval is trusted from 25 G^2 units on (Cochran, Sampling
    Techniques, 1977, section 2.15). Below an index of 2 a tail has no variance.
    """
    are_enough = (count >= FEW_UNITS) & (count >= 25 * skewness**2)  # not where it is NaN
    return ~are_enough | (index < _LEAST_TAIL_INDEX)


def conditional_value_at_risk(values: np.ndarray, level: float = 0.95) -> np.ndarray:
    """Mean of the worst 1 - level part of the values, [U, ...] -> [...].

    Rockafellar and Uryasev (2000): the value at the edge counts by the part of it that is needed.
    """
    ordered = np.sort(values, axis=0)[::-1]
    part = (1 - level) * len(ordered)
    weights = np.clip(part - np.arange(len(ordered)), 0, 1)
    return np.tensordot(weights, ordered, axes=1) / weights.sum()


def paired_p_value(difference: np.ndarray) -> float:
    """Two-sided p-value of the paired t-test that the mean of the differences [U] is 0."""
    if len(difference) < 2:
        return float("nan")
    spread = difference.std(ddof=1)
    if spread == 0:
        return 1.0 if difference[0] == 0 else 0.0
    from scipy import stats  # slow to import

    t = difference.mean() / spread * np.sqrt(len(difference))
    return float(2 * stats.t.sf(abs(t), len(difference) - 1))


def holm(p_values: np.ndarray) -> np.ndarray:
    """Holm's adjusted p-values (1979): below a, the chance of any false claim is at most a."""
    order = np.argsort(p_values)
    ranked = p_values[order] * np.arange(len(p_values), 0, -1)
    adjusted = np.empty(len(p_values))
    adjusted[order] = np.minimum(np.maximum.accumulate(ranked), 1)
    return adjusted


def growth_exponent(
    x: np.ndarray, values: np.ndarray, level: float = 0.95, seed: int = 0
) -> Growth:
    """Slope of log mean regret against log x, from units [U, X] at the points x [X].

    Points share their games, so whole units are resampled: the interval holds what chance does to
    the slope, not how far a power is the wrong shape. NaN where a mean regret is not positive.
    """
    mean = values.mean(axis=0)
    if len(x) < 2 or not (mean > 0).all():
        return Growth(np.nan, np.nan, np.nan)
    logs = np.log(x) - np.log(x).mean()
    slope_weights = logs / (logs @ logs)
    slope = float(slope_weights @ np.log(mean))
    if len(values) < 3:
        return Growth(slope, np.nan, np.nan)
    means = np.array([weights @ values for weights in _resamples(len(values), seed)])
    means = means[(means > 0).all(axis=1)]
    if len(means) < 0.99 * _RESAMPLES:  # chance alone makes the regret negative at times
        return Growth(slope, np.nan, np.nan)
    low, high = np.quantile(np.log(means) @ slope_weights, [(1 - level) / 2, (1 + level) / 2])
    return Growth(slope, float(low), float(high))


def _resamples(count: int, seed: int):
    """Weights [U] of each resample, summing to 1."""
    generator = np.random.default_rng(seed)
    for _ in range(_RESAMPLES):
        places = generator.integers(count, size=count)
        yield np.bincount(places, minlength=count) / count
