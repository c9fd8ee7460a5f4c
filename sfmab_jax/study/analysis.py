"""What a study says: final regrets, paired differences, growth and bounds, as rows of tables.

Every row is a NamedTuple, so that a table, a CSV file and a test read the same names.
"""

import itertools
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from sfmab_jax.results import Result
from sfmab_jax.study import inference
from sfmab_jax.study.loaded import Played, Study
from sfmab_jax.theory import bounds
from sfmab_jax.theory.guarantees import exploration_of

__all__ = [
    "DifferenceRow",
    "GrowthRow",
    "SummaryRow",
    "bound",
    "differences",
    "growth",
    "summary",
    "wins",
]

_SIGNIFICANT = 0.05
# Growth along the rounds is fitted over the last part of the curve, from T / 32 on.
_LAST_PART = 32


class SummaryRow(NamedTuple):
    """A cell at its last round. Mean and intervals are of the expected regret given the play, the
    other columns of the realised regret of single games, all sequences together."""

    losses: str
    num_arms: int
    num_rounds: int
    scale: float
    strategy: str
    units: int
    mean: float
    low: float
    high: float
    doubtful: bool  # too few units for their skewness: the interval may cover less
    bootstrap_low: float
    bootstrap_high: float
    median: float
    quantile_05: float
    quantile_95: float
    cvar_95: float
    bound: float
    ratio_to_bound: float


def summary(study: Study) -> list[SummaryRow]:
    """A row for each cell."""
    rows = []
    for played in study.cells:
        result = played.result
        values = inference.units(result.expected_regret[:, :, -1:])
        normal = inference.mean_interval(values)
        bootstrap = inference.bootstrap_mean(values)
        games = result.regret[:, :, -1].ravel()
        low, median, high = np.quantile(games, [0.05, 0.5, 0.95])
        limit = bound(played)
        at_end = np.nan if limit is None else float(limit[-1])
        rows.append(
            SummaryRow(
                *played.cell.setting,
                strategy=played.cell.strategy,
                units=len(values),
                mean=float(normal.estimate[0]),
                low=float(normal.low[0]),
                high=float(normal.high[0]),
                doubtful=inference.too_few(values[:, 0]),
                bootstrap_low=float(bootstrap.low[0]),
                bootstrap_high=float(bootstrap.high[0]),
                median=float(median),
                quantile_05=float(low),
                quantile_95=float(high),
                cvar_95=float(inference.conditional_value_at_risk(games)),
                bound=at_end,
                ratio_to_bound=float(normal.estimate[0]) / at_end if at_end > 0 else np.nan,
            )
        )
    return rows


def bound(played: Played) -> np.ndarray | None:
    """A proven bound on the expected regret at the checkpoints [C]; None where none is known.

    Theorem 1 of the paper, corrected reading, for Algorithm 1 with the paper's parameters; over
    several sequences the mean of their bounds.
    """
    option = exploration_of(replace(played.result, bandit=played.cell.bandit()))
    if option is None:
        return None
    return bounds.scale_free(played.result.norms, option).corrected.mean(axis=0)


class DifferenceRow(NamedTuple):
    """Final expected regret of ``strategy`` less that of ``other``, on the same random numbers."""

    losses: str
    num_arms: int
    num_rounds: int
    scale: float
    strategy: str
    other: str
    units: int
    difference: float
    low: float
    high: float
    p_value: float
    adjusted_p_value: float  # Holm, over all rows of the study


def differences(study: Study) -> list[DifferenceRow]:
    """A row for each pair of strategies on each setting."""
    rows = []
    for setting in study.settings:
        for (one, a), (other, b) in itertools.combinations(study.on(setting).items(), 2):
            values = _paired(a, b)
            estimate, low, high = (float(x[0]) for x in inference.mean_interval(values))
            p = inference.paired_p_value(values[:, 0])
            row = (*setting, one, other, len(values), estimate, low, high, p, np.nan)
            rows.append(DifferenceRow(*row))
    known = [number for number, row in enumerate(rows) if np.isfinite(row.p_value)]
    adjusted = inference.holm(np.array([rows[number].p_value for number in known]))
    for number, p in zip(known, adjusted):
        rows[number] = rows[number]._replace(adjusted_p_value=float(p))
    return rows


def _paired(a: Result, b: Result) -> np.ndarray:
    """Units [U, 1] of the differences, over the seeds that both have."""
    seeds = min(a.expected_regret.shape[1], b.expected_regret.shape[1])
    return inference.units(a.expected_regret[:, :seeds, -1:] - b.expected_regret[:, :seeds, -1:])


def wins(study: Study, rows: list[DifferenceRow]) -> np.ndarray:
    """[i, j]: on how many settings strategy i has surely less regret than j, after Holm."""
    place = {label: number for number, label in enumerate(study.strategies)}
    counts = np.zeros((len(place), len(place)), int)
    for row in rows:
        if row.adjusted_p_value < _SIGNIFICANT:
            pair = (place[row.strategy], place[row.other])
            counts[pair if row.difference < 0 else pair[::-1]] += 1
    return counts


class GrowthRow(NamedTuple):
    """regret ~ variable^exponent for one strategy, all else in ``fixed`` as it is."""

    strategy: str
    variable: str  # "round", "T", "n" or "scale"
    fixed: str
    points: int
    exponent: float
    low: float
    high: float


def growth(study: Study) -> list[GrowthRow]:
    """Along the rounds of each cell at its largest T, and along each grid of two or more."""
    rows = []
    for played in study.cells:
        cell, result = played.cell, played.result
        if cell.num_rounds == max(p.cell.num_rounds for p in study.cells):
            late = result.rounds * _LAST_PART >= cell.num_rounds
            values = inference.units(result.expected_regret[:, :, late])
            fitted = inference.growth_exponent(result.rounds[late], values)
            fixed = f"{cell.losses}, n = {cell.num_arms}, scale = {cell.scale:g}"
            rows.append(GrowthRow(cell.strategy, "round", fixed, int(late.sum()), *fitted))
    names = {1: "n", 2: "T", 3: "scale"}
    for axis, variable in names.items():
        lines: dict[tuple, list[Played]] = {}
        for played in study.cells:
            rest = tuple(v for k, v in enumerate(played.cell.setting) if k != axis)
            lines.setdefault((played.cell.strategy, rest), []).append(played)
        for (strategy, rest), line in lines.items():
            if len(line) > 1:
                rows.append(_along(strategy, variable, axis, rest, line))
    return rows


def _along(strategy: str, variable: str, axis: int, rest: tuple, line: list[Played]) -> GrowthRow:
    """The growth of final regrets along a grid."""
    line = sorted(line, key=lambda played: played.cell.setting[axis])
    x = np.array([played.cell.setting[axis] for played in line], np.float64)
    seeds = min(played.result.regret.shape[1] for played in line)
    final = [inference.units(p.result.expected_regret[:, :seeds, -1:])[:, 0] for p in line]
    names = [name for k, name in enumerate(("", "n = ", "T = ", "scale = ")) if k != axis]
    fixed = ", ".join(
        f"{name}{value:g}" if name else str(value) for name, value in zip(names, rest)
    )
    fitted = inference.growth_exponent(x, np.stack(final, axis=1))
    return GrowthRow(strategy, variable, fixed, len(x), *fitted)
