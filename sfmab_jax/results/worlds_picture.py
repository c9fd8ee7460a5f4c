"""The picture of strategies at stations between stochastic and adversarial losses."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from sfmab_jax.results.plot_style import (
    add_shared_legend,
    line_style,
    literal,
    mark_doubtful,
    wrapped,
)

__all__ = ["Regrets", "Side", "both_worlds"]

# The part of a station's place that its strategies share, and the regret below which a symmetric
# logarithmic axis is linear.
_SHARED = 0.72
_LINEAR = 10.0
_MARK = 6.5  # size of a mark, in points


class Regrets(NamedTuple):
    """Final regret of a strategy at the N stations of a side, [N] each.

    Attributes:
      mean, low, high: with its interval; NaN where there is none.
      doubtful: where the interval may cover less than it says.
      above: mean regret less that of the best strategy of the station, 0 for the best itself.
      above_low, above_high: the paired interval of that.
    """

    mean: np.ndarray
    low: np.ndarray
    high: np.ndarray
    doubtful: np.ndarray
    above: np.ndarray
    above_low: np.ndarray
    above_high: np.ndarray


class Side(NamedTuple):
    """Stations that are measured by the same regret.

    Attributes:
      title: what the stations have in common.
      regret: what is shown, "pseudo-regret" or "regret".
      stations: their labels [N].
      joined: how many stations at the beginning lie on one scale, and are joined by a line.
      regrets: by the name of the strategy.
    """

    title: str
    regret: str
    stations: tuple[str, ...]
    joined: int
    regrets: Mapping[str, Regrets]


def both_worlds(sides: Sequence[Side], note: str):
    """Plot who pays what where: a column for each side, a mark with its interval for a strategy.

    Above is the final regret on a logarithmic scale, which is linear around 0 where some mean is
    not positive; below, what a strategy pays above the best of the station. Each column has axes
    of its own, as each side has a regret of its own.

    Args:
      sides: with the same strategies in the same order.
      note: what means and intervals are over, for the foot.

    Returns:
      The Matplotlib figure.
    """
    from matplotlib.figure import Figure

    counts = [len(side.stations) for side in sides]
    width = max(1.15 * sum(counts) + 1.6, 7.0)
    figure = Figure(figsize=(width, 7.0), layout="constrained")
    panels = figure.subplots(2, len(sides), squeeze=False, sharex="col", width_ratios=counts)
    for column, side in enumerate(sides):
        above, below = panels[:, column]
        above.set_title(side.title, fontsize=10)
        _draw_regrets(above, side)
        _draw_above_best(below, side)
    figure.supxlabel(literal(wrapped(note, width, 9)), fontsize=9)
    add_shared_legend(figure, panels.ravel(), last=("least",))
    return figure


def _draw_regrets(axes: Any, side: Side) -> None:
    values = np.concatenate([regrets.mean for regrets in side.regrets.values()])
    if (values > 0).all():
        axes.set_yscale("log", nonpositive="clip")
        axes.set_ylim(0.6 * values.min(), 1.7 * values.max())
    else:
        axes.set_yscale("symlog", linthresh=_LINEAR, linscale=0.5)
        axes.axhline(0, color="0.4", lw=0.8)
    for number, (name, regrets) in enumerate(side.regrets.items()):
        x, colour = _places(side, number), line_style(number)["color"]
        _draw_strategy(axes, side, number, name, regrets.mean, regrets.low, regrets.high)
        if regrets.doubtful.any():
            mark_doubtful(axes, x[regrets.doubtful] + 0.02, regrets.mean[regrets.doubtful], colour)
    axes.set_ylabel(side.regret)
    _finish(axes, side)
    axes.tick_params(labelbottom=False)


def _draw_above_best(axes: Any, side: Side) -> None:
    axes.set_yscale("symlog", linthresh=_LINEAR, linscale=0.5)
    axes.axhline(0, color="0.4", lw=0.8)
    best_x, largest = [], _LINEAR
    for number, (name, regrets) in enumerate(side.regrets.items()):
        _draw_strategy(axes, side, number, name, *regrets[-3:])
        best_x += list(_places(side, number)[regrets.above == 0])
        largest = max(largest, np.nanmax(regrets.above, initial=0))
    ring: dict[str, Any] = {"markerfacecolor": "none", "markeredgewidth": 1.4, "zorder": 4}
    label = "least of its station"
    axes.plot(best_x, np.zeros(len(best_x)), "o", color="black", ms=14, label=label, **ring)
    axes.set_ylim(-0.4 * _LINEAR, 1.7 * largest)
    axes.set_ylabel(f"{side.regret} above the least")
    _finish(axes, side)


def _draw_strategy(axes: Any, side: Side, number: int, name: str, mean, low, high) -> None:
    """Draw a mark with its interval at each station, and a line along those that are joined."""
    looks, x = line_style(number), _places(side, number)
    marks = {key: value for key, value in looks.items() if key in ("marker", "markerfacecolor")}
    marks["markersize"] = _MARK
    bars = np.nan_to_num([mean - low, high - mean])
    axes.errorbar(
        x, mean, bars, fmt="none", ecolor=looks["color"], elinewidth=1.4, capsize=0, zorder=2
    )
    joined = slice(0, side.joined)
    line = {"color": looks["color"], "linestyle": looks["linestyle"], "lw": 0.9}
    axes.plot(x[joined], mean[joined], alpha=0.7, zorder=1, **line)
    axes.plot(x, mean, linestyle="none", color=looks["color"], zorder=3, **marks)
    axes.plot([], [], label=literal(name), **line | marks)


def _places(side: Side, number: int) -> np.ndarray:
    """Return where a strategy's marks are [N], side by side with those of the others."""
    count = len(side.regrets)
    return np.arange(len(side.stations)) + _SHARED * ((number + 0.5) / count - 0.5)


def _finish(axes: Any, side: Side) -> None:
    count = len(side.stations)
    axes.set_xlim(-0.5, count - 0.5)
    axes.set_xticks(range(count), [literal(label) for label in side.stations])
    axes.tick_params(axis="x", length=0)
    axes.grid(axis="y", alpha=0.3)
    for place in range(1, count, 2):
        axes.axvspan(place - 0.5, place + 0.5, color="0.5", alpha=0.1, lw=0, zorder=0)
