"""Curves of a plot: the numbers with their bands, how they are drawn, and what is said of them."""

import warnings
from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np

from sfmab_jax.results import statistics
from sfmab_jax.results.plot_style import inches, line_style, literal, shade, wrapped
from sfmab_jax.results.result import Kind, Result
from sfmab_jax.results.statistics import Over
from sfmab_jax.results.summary import Summary

__all__ = [
    "Band",
    "Curve",
    "about",
    "band_words",
    "check_names",
    "draw_curves",
    "has_several_units",
    "label_y",
    "mean_curves",
    "name_lines",
    "new_axes",
    "per",
]

Band = Literal["interval", "std", "quantiles"]


class Curve(NamedTuple):
    """A strategy's curves with their bands, and what is said of them.

    Attributes:
      name: of the strategy.
      x: the points [C].
      y, low, high: [1, C], or [K, C] given each of several sequences; no band where NaN.
      band: what the band is, "" without.
      about: over what the mean is taken.
      doubtful: whether the mean at the last point is.
    """

    name: str
    x: np.ndarray
    y: np.ndarray
    low: np.ndarray
    high: np.ndarray
    band: str
    about: str
    doubtful: bool

    @property
    def words(self) -> str:
        """What the band is and of what; "no ..." if none can be drawn."""
        missing = "no " if self.band and not np.isfinite(self.low).any() else ""
        return f"{missing}{self.band} {self.about}".strip()


def mean_curves(
    results: Mapping[str, Result | Summary],
    band: Band | None = "interval",
    kind: Kind | None = None,
    over: Over | None = None,
    level: float = 0.95,
    unit: float = 1.0,
) -> list[Curve]:
    """Return the mean regret of each strategy with its band; see `plotting.regret`."""
    curves = []
    options: dict[str, Any] = {"over": over} | ({} if kind is None else {"kind": kind})
    for name, result in results.items():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # a single game has no interval
            mean = result.mean(**options) / unit
            low, high = (edge / unit for edge in _band_edges(result, band, level, options))
            in_doubt = result.is_doubtful(**options)[:, -1]
        has_interval = band == "interval" and has_several_units(result, over)
        doubtful = has_interval and bool(in_doubt.any())
        said = (band_words(band, level), about(result, over), doubtful)
        curves.append(Curve(name, result.rounds, mean, low, high, *said))
    return curves


def _band_edges(
    result: Result | Summary, band: Band | None, level: float, options: dict[str, Any]
) -> tuple[np.ndarray, np.ndarray]:
    """Return the edges of a band, each [1 or K, C]; NaN if there is none."""
    if band == "interval":
        return result.interval(level, **options)
    mean = result.mean(**options)
    nothing = np.full_like(mean, np.nan)
    if band == "std":
        spread = result.std(**options)
        return mean - spread, mean + spread
    statistics.check_level(level)
    is_family = statistics.check_over(options["over"], result.num_sequences) == "family"
    games = result.num_seeds * (result.num_sequences if is_family else 1)
    if band == "quantiles" and games > 1:
        low, high = result.quantiles([(1 - level) / 2, (1 + level) / 2], **options)
        return low, high
    return nothing, nothing


def band_words(band: Band | None, level: float) -> str:
    """Return what a band is, for a label."""
    if band is None:
        return ""
    if band == "quantiles":
        return f"{_percent((1 - level) / 2)} to {_percent((1 + level) / 2)} of games"
    return "±1 standard deviation" if band == "std" else f"{_percent(level)} interval"


def _percent(part: float) -> str:
    return f"{100 * part:.4g}%"


def about(result: Result | Summary, over: Over | None = None) -> str:
    """Return over what a mean is taken, for a label."""
    count = result.num_sequences
    if statistics.check_over(over, count) == "family":
        return f"over {count:,} sequences" if count > 1 else "over a single sequence"
    return "given this sequence" if count == 1 else f"given each of {count:,} sequences"


def has_several_units(result: Result | Summary, over: Over | None) -> bool:
    """Whether a mean has several units, so that it has an interval."""
    is_family = statistics.check_over(over, result.num_sequences) == "family"
    return (result.num_sequences if is_family else result.num_seeds) > 1


def draw_curves(
    axes: Any,
    curves: Sequence[Curve],
    style: Mapping[str, Mapping[str, Any]] | None = None,
    steps: bool = False,
) -> list[Any]:
    """Draw curves with their bands; return a line of each.

    Args:
      axes: Matplotlib axes.
      curves: each in the style of its number.
      style: the user's own properties of lines by name.
      steps: a value holds up to the next point.
    """
    from matplotlib.cbook import normalize_kwargs
    from matplotlib.lines import Line2D

    lines = []
    alpha = 0.2 * min(1.0, 6 / len(curves))  # one upon the other they darken
    for number, curve in enumerate(curves):
        own = normalize_kwargs(dict((style or {}).get(curve.name, {})), Line2D)
        looks = line_style(number) | ({"drawstyle": "steps-post"} if steps else {})
        for y, low, high in zip(curve.y, curve.low, curve.high):
            # Markers cannot be spaced along a line without length.
            every = looks["markevery"] if np.isfinite(y).sum() > 1 else None
            (line,) = axes.plot(curve.x, y, label="_", **looks | {"markevery": every} | own)
            if np.isfinite(low).any():
                shade(axes, curve.x, low, high, line.get_color(), alpha, steps)
        lines.append(line)
    return lines


def name_lines(
    lines: Sequence[Any], curves: Sequence[Curve], labels: Mapping[str, str] | None = None
) -> str:
    """Label the lines; return the words for all bands, or where they differ, where to find them."""
    bands = [curve.words for curve in curves if not curve.words.startswith("no ")]
    bands = bands or [curve.words for curve in curves]
    common = bands[0] if len(set(bands)) == 1 else "bands: see the legend"
    for line, curve in zip(lines, curves):
        label = (labels or {}).get(curve.name, literal(curve.name))
        label += "" if curve.words == common else f", {curve.words}"
        line.set_label(label + (" (doubtful)" if curve.doubtful else ""))
    return common


def label_y(axes: Any, text: str) -> None:
    """Label the axis, in lines as long as it is."""
    label = axes.set_ylabel(text)
    label.set_text(wrapped(text, 1.1 * inches(axes)[1], label.get_fontsize()))


def per(unit: float) -> str:
    """Return what the label of an axis says of the unit."""
    return "" if unit == 1 else f" / {unit:g}"


def new_axes() -> Any:
    """Return the axes of a new figure of the size that is set in Matplotlib."""
    import matplotlib.pyplot as plt

    return plt.subplots(layout="constrained")[1]


def check_names(results: Mapping[str, Any], **options: Mapping[str, Any] | None) -> None:
    """Raise ValueError if there is nothing to plot, or an option names what is not among it."""
    if not results:
        raise ValueError("there are no results to plot; give one strategy at least, {name: result}")
    for option, values in options.items():
        for name in values or ():
            if name not in results:
                known = ", ".join(map(repr, results))
                raise ValueError(
                    f"{option} names {name!r}, which was not played; there are {known}"
                )
