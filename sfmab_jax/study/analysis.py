"""The findings of a study: final regrets, paired differences, growth and bounds.

They are rows of tables, each a NamedTuple, so that a report and a CSV file have the same names.
"""

import itertools
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from sfmab_jax.results import statistics
from sfmab_jax.results.result import Result
from sfmab_jax.study.factories import is_import_path
from sfmab_jax.study.study import CellResult, Study
from sfmab_jax.theory import bounds
from sfmab_jax.theory.guarantees import exploration_of

__all__ = [
    "DifferenceRow",
    "GrowthRow",
    "SummaryRow",
    "compare_pairs",
    "count_wins",
    "fit_growth",
    "proven_bound",
    "summarize",
]

_SIGNIFICANT = 0.05
# Growth along the rounds is growth over the last part of the curve, from T / 32 on.
_LAST_PART = 32


class SummaryRow(NamedTuple):
    """A cell at its last round.

    Mean and intervals are of the expected regret given the play, over the family if there are
    several sequences, otherwise given the one; the other columns are of the realised regret of
    single games.
    """

    losses: str
    num_arms: int
    num_rounds: int
    scale: float
    strategy: str
    sequences: int
    units: int
    mean: float
    low: float
    high: float
    doubtful: bool  # the intervals may cover less than they say, see `Result.is_doubtful`
    bootstrap_low: float
    bootstrap_high: float
    median: float
    quantile_05: float
    quantile_95: float
    cvar_95: float
    bound: float
    ratio_to_bound: float
    # The pseudo-regret with its interval, where the study keeps it.
    pseudo_mean: float
    pseudo_low: float
    pseudo_high: float
    pseudo_doubtful: bool


def summarize(study: Study) -> list[SummaryRow]:
    """Return a row for each cell."""
    rows = []
    for entry in study.cells:
        result = entry.result
        values = statistics.units_of(result.expected_regret[:, :, -1])
        student = statistics.student_interval(values)
        bootstrap = statistics.bootstrap_t_interval(values)
        games = result.regret[:, :, -1].ravel()
        low, median, high = np.quantile(games, [0.05, 0.5, 0.95])
        curve = proven_bound(entry)
        bound = np.nan if curve is None else float(curve[-1])
        pseudo = _pseudo_units(result)
        pseudo_interval = statistics.student_interval(pseudo)
        rows.append(
            SummaryRow(
                *entry.cell.setting,
                strategy=entry.cell.strategy,
                sequences=len(result.regret),
                units=len(values),
                mean=float(student.estimate[0]),
                low=float(student.low[0]),
                high=float(student.high[0]),
                doubtful=bool(statistics.is_doubtful(values, _largest_loss(result))[0]),
                bootstrap_low=float(bootstrap.low[0]),
                bootstrap_high=float(bootstrap.high[0]),
                median=float(median),
                quantile_05=float(low),
                quantile_95=float(high),
                cvar_95=float(statistics.conditional_value_at_risk(games)),
                bound=bound,
                ratio_to_bound=float(student.estimate[0]) / bound if bound > 0 else np.nan,
                pseudo_mean=float(pseudo_interval.estimate[0]),
                pseudo_low=float(pseudo_interval.low[0]),
                pseudo_high=float(pseudo_interval.high[0]),
                pseudo_doubtful=bool(statistics.is_doubtful(pseudo)[0]),
            )
        )
    return rows


def _pseudo_units(result: Result) -> np.ndarray:
    """Return the units of the final pseudo-regret, [U, 1]; NaN where it was not kept."""
    if "pseudo_regret" not in result.kept:
        return np.full((1, 1), np.nan)
    return statistics.units_of(result.pseudo_regret[:, :, -1])


def _largest_loss(result: Result) -> float:
    return float(result.norms.l_inf[:, -1].max())


def proven_bound(entry: CellResult) -> np.ndarray | None:
    """Return a proven bound on the expected regret at the checkpoints [C]; None if none is known.

    None is known for strategies of the user's own.

    Theorem 1 of the paper, corrected reading, for Algorithm 1 with the paper's parameters; over
    several sequences the mean of their bounds.
    """
    cell = entry.cell
    if is_import_path(cell.strategy_name):
        return None
    try:
        bandit = cell.bandit()
    except Exception as error:  # a manifest that was changed, or is of another version
        raise ValueError(
            f"{cell.label}: the manifest's {cell.strategy_name} with {cell.strategy_parameters} is "
            f"no strategy ({error}); run the study again, which writes the manifest anew"
        ) from None
    if entry.result.sees != "nothing":  # bounds are for oblivious losses
        return None
    option = exploration_of(replace(entry.result, bandit=bandit))
    if option is None:
        return None
    return bounds.scale_free(entry.result.norms, option).corrected.mean(axis=0)


class DifferenceRow(NamedTuple):
    """Final expected regret of ``strategy`` minus that of ``other``, on common random numbers."""

    losses: str
    num_arms: int
    num_rounds: int
    scale: float
    strategy: str
    other: str
    sequences: int
    units: int
    difference: float
    low: float
    high: float
    doubtful: bool  # as in `SummaryRow`
    p_value: float
    adjusted_p_value: float  # Holm, over all rows of the study


def compare_pairs(study: Study) -> list[DifferenceRow]:
    """Return a row for each pair of strategies on each setting."""
    rows = []
    for setting in study.settings:
        for (one, a), (other, b) in itertools.combinations(study.on(setting).items(), 2):
            difference = _paired_final(a, b)
            values = statistics.units_of(difference)
            interval = statistics.student_interval(values)
            rows.append(
                DifferenceRow(
                    *setting,
                    strategy=one,
                    other=other,
                    sequences=len(difference),
                    units=len(values),
                    difference=float(interval.estimate[0]),
                    low=float(interval.low[0]),
                    high=float(interval.high[0]),
                    doubtful=bool(statistics.is_doubtful(values, _largest_loss(a))[0]),
                    p_value=statistics.paired_p_value(values[:, 0]),
                    adjusted_p_value=np.nan,
                )
            )
    known = [number for number, row in enumerate(rows) if np.isfinite(row.p_value)]
    adjusted = statistics.holm(np.array([rows[number].p_value for number in known]))
    for number, p in zip(known, adjusted):
        rows[number] = rows[number]._replace(adjusted_p_value=float(p))
    return rows


def _paired_final(a: Result, b: Result) -> np.ndarray:
    """Return the differences of final regret [K, S], on the sequences and seeds that both have."""
    one, other = _on_common_games([a, b])
    return one - other


def _on_common_games(results: list[Result]) -> list[np.ndarray]:
    """Return the final expected regret of the games that all results have, each [K, S]."""
    shapes = np.array([result.expected_regret.shape for result in results])
    sequences, seeds, _ = shapes.min(axis=0)
    return [result.expected_regret[:sequences, :seeds, -1] for result in results]


def count_wins(study: Study, rows: list[DifferenceRow]) -> np.ndarray:
    """Return on how many settings strategy i has significantly less regret than j: [i, j]."""
    place = {label: number for number, label in enumerate(study.strategies)}
    counts = np.zeros((len(place), len(place)), int)
    for row in rows:
        if row.adjusted_p_value < _SIGNIFICANT:
            pair = (place[row.strategy], place[row.other])
            counts[pair if row.difference < 0 else pair[::-1]] += 1
    return counts


class GrowthRow(NamedTuple):
    """regret ~ variable^exponent for one strategy, with all else ``fixed``."""

    strategy: str
    variable: str  # "round", "T", "n" or "scale"
    fixed: str
    points: int
    exponent: float
    low: float
    high: float
    doubtful: bool  # for the mean regrets at the points, as in `SummaryRow`


def fit_growth(study: Study) -> list[GrowthRow]:
    """Fit growth along the rounds of the cells with the largest T, and along each grid."""
    rows = []
    for entry in study.cells:
        cell, result = entry.cell, entry.result
        if cell.num_rounds == max(e.cell.num_rounds for e in study.cells):
            late = result.rounds * _LAST_PART >= cell.num_rounds
            values = statistics.units_of(result.expected_regret[:, :, late])[:, 0]
            growth = statistics.growth_exponent(result.rounds[late], values)
            fixed = f"{cell.losses}, n = {cell.num_arms}, scale = {cell.scale:g}"
            largest = result.largest_loss()[0, late]
            doubtful = bool(statistics.is_doubtful(values, largest).any())
            points = int(late.sum())
            rows.append(GrowthRow(cell.strategy, "round", fixed, points, *growth, doubtful))
    names = {1: "n", 2: "T", 3: "scale"}
    for axis, variable in names.items():
        lines: dict[tuple, list[CellResult]] = {}
        for entry in study.cells:
            rest = tuple(v for k, v in enumerate(entry.cell.setting) if k != axis)
            lines.setdefault((entry.cell.strategy, rest), []).append(entry)
        for (strategy, rest), line in lines.items():
            if len(line) > 1:
                rows.append(_fit_along_grid(strategy, variable, axis, rest, line))
    return rows


def _fit_along_grid(
    strategy: str, variable: str, axis: int, rest: tuple, line: list[CellResult]
) -> GrowthRow:
    """Fit the growth of final regrets along one axis of `Cell.setting`.

    Args:
      strategy, variable: labels of the row.
      axis: place of the variable in the setting.
      rest: the setting without it.
      line: the cells of the strategy with that rest.
    """
    line = sorted(line, key=lambda entry: entry.cell.setting[axis])
    x = np.array([entry.cell.setting[axis] for entry in line], np.float64)
    common = _on_common_games([entry.result for entry in line])
    values = np.concatenate([statistics.units_of(final) for final in common], axis=1)
    names = [name for k, name in enumerate(("", "n = ", "T = ", "scale = ")) if k != axis]
    fixed = ", ".join(
        f"{name}{value:g}" if name else str(value) for name, value in zip(names, rest)
    )
    growth = statistics.growth_exponent(x, values)
    largest = np.array([_largest_loss(entry.result) for entry in line])
    doubtful = bool(statistics.is_doubtful(values, largest).any())
    return GrowthRow(strategy, variable, fixed, len(x), *growth, doubtful)
