"""The figures of a report, each with the data it shows.

They can be read without colour: lines differ in dashes and markers, matrices show their numbers.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from sfmab_jax.results import statistics
from sfmab_jax.results.curves import about
from sfmab_jax.results.plot_style import add_shared_legend, line_style, literal, mark_doubtful
from sfmab_jax.study.analysis import DifferenceRow, SummaryRow, count_wins, proven_bound
from sfmab_jax.study.study import CellResult, Setting, Study

__all__ = ["Drawing", "draw_all"]

_MOST_COLUMNS = 3
_MOST_BANDS = 3  # of single games; more would hide each other


@dataclass(frozen=True)
class Drawing:
    """A figure with its caption and its data, as rows under columns."""

    name: str
    caption: str
    figure: Figure
    columns: tuple[str, ...]
    rows: list[tuple]


def draw_all(
    study: Study, summaries: list[SummaryRow], comparisons: list[DifferenceRow]
) -> list[Drawing]:
    """Draw regret curves for each n at its largest T, scale sensitivity, wins and losses."""
    drawings = []
    for num_arms in dict.fromkeys(setting[1] for setting in study.settings):
        num_rounds = max(setting[2] for setting in study.settings if setting[1] == num_arms)
        settings = [s for s in study.settings if s[1:3] == (num_arms, num_rounds)]
        for logarithmic in (False, True):
            drawings.append(_draw_curves(study, settings, logarithmic))
    if len({setting[3] for setting in study.settings}) > 1:
        drawings.append(_draw_scale_sensitivity(study, summaries))
    if len(study.strategies) > 1:
        drawings.append(_draw_wins(study, comparisons))
    return drawings


def _line_style(study: Study, strategy: str) -> dict[str, Any]:
    return line_style(study.strategies.index(strategy))


def _make_panels(number: int) -> tuple[Figure, list[Any]]:
    """Return a figure with this number of panels, three to a row, and the panels."""
    columns = min(_MOST_COLUMNS, number)
    rows = -(-number // columns)
    figure = Figure(figsize=(3.3 * columns + 0.3, 2.6 * rows + 0.6), layout="constrained")
    panels = figure.subplots(rows, columns, squeeze=False).ravel()
    for spare in panels[number:]:
        spare.remove()
    return figure, list(panels[:number])


def _pick_settings(settings: list[Setting]) -> list[Setting]:
    """Return the settings with the first, the middle and the last scale of each loss family."""
    families: dict[str, list[Setting]] = {}
    for setting in sorted(settings, key=lambda setting: setting[3]):
        families.setdefault(setting[0], []).append(setting)
    return [s for f in families.values() for s in dict.fromkeys((f[0], f[len(f) // 2], f[-1]))]


def _draw_curves(study: Study, settings: list[Setting], logarithmic: bool) -> Drawing:
    """Draw mean regret / scale against the rounds; a panel for each family and scale."""
    _, num_arms, num_rounds, _ = settings[0]
    shown = _pick_settings(settings)
    figure, panels = _make_panels(len(shown))
    rows: list[tuple] = []
    for entry in study.cells:
        if entry.cell.setting in settings:
            curve = _curve_data(entry)
            labels = (*entry.cell.setting, entry.cell.strategy)
            rows += [(*labels, *numbers) for numbers in zip(*curve)]
            if entry.cell.setting in shown:
                axes = panels[shown.index(entry.cell.setting)]
                _draw_curve(axes, study, entry, curve, logarithmic)
    for axes, (losses, _, _, scale) in zip(panels, shown):
        axes.set_title(literal(f"{losses}, scale {scale:g}"), fontsize=9)
        _finish_axes(axes, "round", "regret / scale", logarithmic)
    add_shared_legend(figure, panels, last=("bound,",))
    kind = "log-log axes, with proven bounds where known (thin dotted)" if logarithmic else "linear"
    games = "" if logarithmic or len(study.strategies) > _MOST_BANDS else _GAMES
    results = (entry.result for entry in study.cells if entry.cell.setting in shown)
    of_what = " or ".join(dict.fromkeys(about(result) for result in results))
    rest = "" if len(shown) == len(settings) else "; data of all scales beside it"
    if logarithmic and any(row[6] <= 0 for row in rows if row[:4] in shown):
        rest += "; what is not positive is drawn at a ten-thousandth of the strategy's largest mean"
    return Drawing(
        f"regret_n{num_arms}_{'loglog' if logarithmic else 'linear'}",
        f"Mean regret over the rounds, {num_arms} arms, {num_rounds} rounds, divided by the scale "
        f"of the losses; {kind}. Bands: 95% interval of the mean {of_what}{games}{rest}.",
        figure,
        (*_SETTING, "strategy", "round", "mean", "low", "high", "game_05", "game_95", "bound"),
        rows,
    )


_GAMES = ", and lightly the middle 90% of single games"
_SETTING = ("losses", "num_arms", "num_rounds", "scale")


def _curve_data(entry: CellResult) -> tuple[np.ndarray, ...]:
    """Return round, mean, low, high, 5% and 95% quantiles of games, and bound; each [C]."""
    result = entry.result
    interval = statistics.student_interval(statistics.units_of(result.expected_regret)[:, 0])
    games = result.regret.reshape(-1, len(result.rounds))
    quantiles = np.quantile(games, [0.05, 0.95], axis=0)
    bound = proven_bound(entry)
    bound = np.full(len(result.rounds), np.nan) if bound is None else bound
    return result.rounds, *interval, *quantiles, bound


def _draw_curve(axes, study: Study, entry: CellResult, curve, logarithmic: bool) -> None:
    rounds, mean, low, high, games_low, games_high, bound = curve
    scale, style = entry.cell.scale, _line_style(study, entry.cell.strategy)
    floor = np.nanmax(np.abs(mean)) / scale * 1e-4 if logarithmic else -np.inf

    def band(low: np.ndarray, high: np.ndarray, alpha: float) -> None:
        edges = (np.maximum(edge / scale, floor) for edge in (low, high))
        axes.fill_between(rounds, *edges, color=style["color"], alpha=alpha, lw=0)

    label = literal(entry.cell.strategy)
    axes.plot(rounds, np.maximum(mean / scale, floor), label=label, lw=1.4, **style)
    band(low, high, 0.3)
    if np.isfinite(low[-1]) and entry.result.is_doubtful()[0, -1]:
        mark_doubtful(axes, rounds[-1:], np.maximum(mean[-1:] / scale, floor), style["color"])
    if not logarithmic and len(study.strategies) <= _MOST_BANDS:
        band(games_low, games_high, 0.08)
    if logarithmic and np.isfinite(bound).any():
        axes.plot(rounds, bound / scale, color=style["color"], linestyle=":", lw=0.9)
        axes.plot([], [], color="0.4", linestyle=":", lw=0.9, label="bound, in its colour")


def _draw_scale_sensitivity(study: Study, summaries: list[SummaryRow]) -> Drawing:
    """Draw final regret / scale against the scale: a flat line does not mind the scale."""
    families = list(dict.fromkeys((r.losses, r.num_arms, r.num_rounds) for r in summaries))
    families = [f for f in families if len({r.scale for r in summaries if r[:3] == f}) > 1]
    figure, panels = _make_panels(len(families))
    rows = []
    for axes, family in zip(panels, families):
        for strategy in study.strategies:
            line = [r for r in summaries if r[:3] == family and r.strategy == strategy]
            line.sort(key=lambda row: row.scale)
            scale, mean, low, high = (
                np.array([getattr(row, key) for row in line])
                for key in ("scale", "mean", "low", "high")
            )
            style = _line_style(study, strategy) | {"markevery": 1}
            axes.plot(scale, mean / scale, label=literal(strategy), lw=1.4, **style)
            axes.fill_between(scale, low / scale, high / scale, color=style["color"], alpha=0.25)
            doubtful = np.array([row.doubtful and row.units > 1 for row in line])
            if doubtful.any():
                mark_doubtful(axes, scale[doubtful], (mean / scale)[doubtful], style["color"])
            rows += [(*family, r.scale, strategy, r.mean, r.low, r.high) for r in line]
        axes.set_title(literal(f"{family[0]}, n = {family[1]}, T = {family[2]}"), fontsize=9)
        positive = all(r.mean > 0 for r in summaries if r[:3] == family)
        _finish_axes(axes, "scale of the losses", "final regret / scale", positive)
        axes.set_xscale("log")
    add_shared_legend(figure, panels)
    return Drawing(
        "scale_sensitivity",
        "Final regret divided by the scale of the losses: the flatter, the less the strategy minds "
        "the unit. Bands: 95% interval of the mean.",
        figure,
        (*_SETTING, "strategy", "mean", "low", "high"),
        rows,
    )


def _draw_wins(study: Study, comparisons: list[DifferenceRow]) -> Drawing:
    """Draw a matrix of wins, with the numbers in it."""
    counts = count_wins(study, comparisons)
    labels, size = study.strategies, len(study.strategies)
    side = 0.5 * size + 2
    figure = Figure(figsize=(side + 1, side), layout="constrained")
    axes = figure.subplots()
    axes.imshow(counts, cmap="Greys", vmin=0, vmax=max(1, 2 * counts.max()))
    for i, j in np.ndindex(counts.shape):
        axes.text(j, i, "" if i == j else str(counts[i, j]), ha="center", va="center")
    axes.set_xticks(range(size), labels, rotation=40, ha="right", fontsize=8)
    axes.set_yticks(range(size), labels, fontsize=8)
    axes.set_xlabel("... than this one")
    axes.set_ylabel("this one has less regret ...")
    num_settings = len(study.settings)
    return Drawing(
        "win_loss",
        f"On how many of the {num_settings} settings the row's strategy has significantly less "
        "final regret than the column's: paired t-tests under common random numbers, 5% after "
        "Holm's correction over all comparisons of the study.",
        figure,
        ("strategy", "other", "wins", "settings"),
        [
            (labels[i], labels[j], int(counts[i, j]), num_settings)
            for i, j in np.ndindex(counts.shape)
            if i != j
        ],
    )


def _finish_axes(axes, x: str, y: str, logarithmic: bool) -> None:
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    axes.grid(alpha=0.3)
    if logarithmic:
        axes.set_xscale("log")
        axes.set_yscale("log")
