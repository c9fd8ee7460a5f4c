"""Plots of regret: its mean over the rounds, its tails, differences of strategies, grids of panels.

Lines differ without colour, too; labels say what a band is, and which means are doubtful.
"""

import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

import numpy as np

from sfmab_jax.results import statistics
from sfmab_jax.results.curves import (
    Band,
    Curve,
    about,
    band_words,
    check_names,
    draw_curves,
    has_several_units,
    label_y,
    mean_curves,
    name_lines,
    new_axes,
    per,
)
from sfmab_jax.results.loss_picture import losses
from sfmab_jax.results.plot_style import (
    LINE_STYLES,
    add_legend,
    add_shared_legend,
    literal,
    mark_doubtful,
    paper,
    wrapped,
)
from sfmab_jax.results.result import Kind, Result, Results
from sfmab_jax.results.statistics import Over
from sfmab_jax.results.summary import Summary

__all__ = ["LINE_STYLES", "difference", "grid", "literal", "losses", "paper", "regret", "tails"]

# The lines of a result by label, each [C], and why some or all are missing.
BoundsOf = Callable[[Result], tuple[Mapping[str, np.ndarray], str]]
# Thresholds at which a tail is drawn, and games that are compared with them at a time.
_THRESHOLDS = 200
_COMPARISONS = 2**23


def _no_bounds(result: Result) -> tuple[Mapping[str, np.ndarray], str]:
    return {}, "has no known bound"


_bounds_of: BoundsOf = _no_bounds


def register_bounds(bounds_of: BoundsOf) -> None:
    """Set the function whose bounds `regret(bounds=True)` draws; `theory.guarantees` calls it.

    Args:
      bounds_of: ``bounds_of(result)`` gives the lines by label, each [C] with NaN where nothing is
        proven, and the reason why something is missing, "" if nothing is.
    """
    global _bounds_of
    _bounds_of = bounds_of


def regret(
    results: Mapping[str, Result | Summary],
    *,
    axes: Any = None,
    band: Band | None = "interval",
    kind: Kind | None = None,
    over: Over | None = None,
    level: float | None = None,
    yscale: Literal["linear", "log"] | None = None,
    unit: float = 1.0,
    bounds: Mapping[str, np.ndarray] | bool = False,
    labels: Mapping[str, str] | None = None,
    style: Mapping[str, Mapping[str, Any]] | None = None,
):
    """Plot mean regret against the rounds, with a band, a line for each strategy.

    The axis says what the band is and of what; where bands differ, the legend. Means whose interval
    cannot be trusted are marked; see `Result.is_doubtful`. A long legend goes below the axes, and
    the figure grows by it.

    Args:
      results: by name, as `simulate` returns them; bounds=True needs the norms of the losses, which
        a `Summary` has not.
      axes: Matplotlib axes to draw on; new ones by default.
      band: "interval" of the mean; "std", one standard deviation of single games to either side;
        "quantiles" of single games; or None.
      kind: of regret; by default the mean and its interval are of the expected regret, which has
        less noise, and the spread of games is that of the realised.
      over: the family, by default if there are several sequences; or given each "sequence", with a
        line for each.
      level: of the interval, 0.95 by default, or how many games lie between the quantiles, 0.9.
      yscale: "linear", by default without bounds, or "log".
      unit: regret is divided by it.
      bounds: True draws the bounds that are proven for what was played and the losses it met
        (`theory.guarantees`), on a logarithmic scale, and warns where there is none; or the lines
        to draw, by label, each [C].
      labels: the text for the legend by the strategy's name; formulas between dollars.
      style: Matplotlib's properties of the line by the strategy's name.

    Returns:
      The axes; ``axes.figure.savefig(path)`` writes the picture.

    >>> import sfmab_jax as sf
    >>> result = sf.simulate(sf.strategies.uniform(), [[1.0, 0.0], [0.0, 0.5]], num_seeds=4)
    >>> axes = regret({"uniform": result}, band="quantiles", style={"uniform": {"color": "red"}})
    >>> print(axes.get_ylabel())
    mean regret
    5% to 95% of games given this sequence
    """
    if band not in ("interval", "std", "quantiles", None):
        raise ValueError(f"band is {band!r}; choose 'interval', 'std', 'quantiles' or None")
    if yscale not in ("linear", "log", None):
        raise ValueError(f"yscale is {yscale!r}; choose 'linear' or 'log'")
    if bounds is True and kind == "tracking":
        raise ValueError(
            "bounds=True draws bounds on the regret against the best fixed arm, but kind is "
            "'tracking'; give the lines, as bounds={label: [C]}"
        )
    check_names(results, labels=labels, style=style)
    level = (0.9 if band == "quantiles" else 0.95) if level is None else level
    curves = mean_curves(results, band, kind, over, level, unit)
    largest = max(np.max(c.y, initial=0, where=np.isfinite(c.y)) for c in curves)
    if yscale == "log" and largest <= 0:
        raise ValueError("yscale is 'log', but no mean regret is positive; give 'linear'")
    axes = new_axes() if axes is None else axes
    lines = draw_curves(axes, curves, style)
    words = name_lines(lines, curves, labels)
    if bounds is True:
        _draw_bounds(results, axes, unit, [line.get_color() for line in lines])
    for number, (name, line) in enumerate(bounds.items() if bounds and bounds is not True else ()):
        rounds = next(iter(results.values())).rounds
        grey = ("0.35", "0.6")[number % 2]
        axes.plot(rounds, line, label=name, color=grey, linestyle=(0, (1, 1)), lw=1)
    axes.set_xlabel("round")
    which = f"{kind} " if kind in ("expected", "realised") else ""
    label_y(axes, f"mean {which}{_regret(kind, results)}{per(unit)}\n{words}")
    axes.set_xscale("log")
    if yscale is not None:
        axes.set_yscale(yscale)
        axes.autoscale(axis="y")
    if yscale == "log":  # the lower edge of a band may come arbitrarily close to zero
        axes.set_ylim(bottom=max(axes.get_ylim()[0], 1e-4 * largest))
    axes.grid(alpha=0.3)
    part = add_legend(axes)
    if bounds is True and axes.get_yscale() == "log":  # lines everywhere: room for the legend
        low, high = axes.get_ylim()
        axes.set_ylim(low, high * (high / low) ** (part / (1 - part)))
    return axes


def _regret(kind: Kind | None, results: Mapping[str, Result | Summary]) -> str:
    """Return what is regretted, for the label of an axis."""
    names: dict[Any, str] = {
        "pseudo": "pseudo-regret",
        "policy": "policy regret",
        "tracking": "tracking regret",
    }
    is_oblivious = all(result.sees == "nothing" for result in results.values())
    return names.get(kind, "regret" if is_oblivious else "external regret")


def _draw_bounds(
    results: Mapping[str, Result | Summary], axes: Any, unit: float, colours: Sequence[Any]
) -> None:
    """Draw what is proven for each strategy, in its colour, the tighter bounds thinner."""
    found = {
        name: ({}, "kept only moments: no norms of the losses, in which bounds are stated")
        if isinstance(result, Summary)
        else _bounds_of(result)
        for name, result in results.items()
    }
    bounds = {name: lines for name, (lines, _) in found.items()}
    reasons = "; ".join(f"{name} {reason}" for name, (_, reason) in found.items() if reason)
    if not any(bounds.values()):
        raise ValueError(
            f"bounds=True, but no bound holds: {reasons}. Give others as bounds={{label: [C]}}"
        )
    if reasons:
        warnings.warn(f"some bounds are not drawn: {reasons}", RuntimeWarning, stacklevel=4)
    for (name, result), colour in zip(results.items(), colours, strict=True):
        for place, (label, line) in enumerate(bounds[name].items()):
            width = (1.6, 0.9)[min(place, 1)]
            axes.plot(
                result.rounds,
                line / unit,
                label=label.replace(result.name, literal(result.name), 1),
                color=colour,
                ls=(0, (1, 1)),
                lw=width,
            )
    axes.set_yscale("log")


def difference(
    results: Mapping[str, Result],
    one: str,
    other: str,
    *,
    axes: Any = None,
    kind: Kind = "expected",
    over: Over | None = None,
    level: float = 0.95,
    unit: float = 1.0,
    labels: Mapping[str, str] | None = None,
):
    """Plot how much more one strategy regrets than another, with the paired interval.

    Both play the same losses with the same random numbers, so that much of the chance cancels; see
    `Results.difference`. Where the band keeps clear of the zero line, one is better than the other.

    Args:
      results: by name, as `simulate` returns them.
      one, other: names; the first less the second is drawn.
      axes: Matplotlib axes to draw on; new ones by default.
      kind, over, level: as in `Results.difference`.
      unit: regret is divided by it.
      labels: the text for the legend by the strategy's name; formulas between dollars.

    Returns:
      The axes.

    >>> import sfmab_jax as sf
    >>> rivals = {name: sf.strategies.STRATEGIES[name]() for name in ("uniform", "exp3_ix")}
    >>> results = sf.simulate(rivals, [[1.0, 0.0], [0.0, 0.5]], num_seeds=4)
    >>> print(difference(results, "uniform", "exp3_ix").get_ylabel())
    difference of regret
    paired 95% interval given this sequence
    """
    check_names(results, labels=labels)
    pairs = Results(results)
    values = statistics.units_of(pairs.paired_samples(one, other, kind), over)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        interval = pairs.difference(one, other, level=level, kind=kind, over=over)
        doubtful = len(values) > 1 and pairs.is_doubtful(one, other, kind, over)[:, -1].any()
    mean, low, high = (side / unit for side in interval)
    said = (f"paired {band_words('interval', level)}", about(results[one], over), bool(doubtful))
    first, second = ((labels or {}).get(name, literal(name)) for name in (one, other))
    name = f"{first} less {second}"
    curves = [Curve(name, results[one].rounds, mean, low, high, *said)]
    axes = new_axes() if axes is None else axes
    axes.axhline(0, color="0.4", lw=0.8)
    words = name_lines(draw_curves(axes, curves), curves, {name: name})
    axes.set_xscale("log")
    axes.set_xlabel("round")
    label_y(axes, f"difference of {_regret(kind, results)}{per(unit)}\n{words}")
    axes.grid(alpha=0.3)
    add_legend(axes)
    return axes


def tails(
    results: Mapping[str, Result],
    *,
    axes: Any = None,
    kind: Kind = "realised",
    over: Over | None = None,
    level: float = 0.95,
    unit: float = 1.0,
    bounds: Mapping[str, Any] | None = None,
    labels: Mapping[str, str] | None = None,
    style: Mapping[str, Mapping[str, Any]] | None = None,
):
    """Plot P(regret > x) of the final regret on logarithmic axes, a line for each strategy.

    Bands are those of `Result.tail_probability`, where they can be trusted: not where too few
    sequences with several games each have a regret as high.

    Args:
      results: by name, as `simulate` returns them.
      axes: Matplotlib axes to draw on; new ones by default.
      kind, over, level: as in `Result.tail_probability`.
      unit: regret is divided by it.
      bounds: with high probability, by label: a number is drawn as a vertical line, a pair (x, p)
        of arrays as the curve of the probabilities p of regret above x.
      labels, style: as in `regret`.

    Returns:
      The axes.

    >>> import sfmab_jax as sf
    >>> result = sf.simulate(sf.strategies.uniform(), [[1.0, 0.0], [0.0, 0.5]], num_seeds=40)
    >>> print(tails({"uniform": result}, bounds={"bound with 95%": 1.5}).get_ylabel())
    P(regret > x)
    95% interval given this sequence
    """
    check_names(results, labels=labels, style=style)
    statistics.check_level(level)
    final = {name: result.samples(kind)[..., -1] for name, result in results.items()}
    positive = {name: np.sort(x[np.isfinite(x) & (x > 0)]) for name, x in final.items()}
    if not any(len(values) for values in positive.values()):
        raise ValueError("no game has a positive regret, which logarithmic axes could show")
    # Not where a regret happens to be almost zero.
    left = 0.9 * min(max(x[0], np.median(x) / 100) for x in positive.values() if len(x))
    curves = []
    for name, samples in final.items():
        x = _thresholds(positive[name], left)
        # The last step reaches the largest regret.
        steps = np.append(x, max([left, *positive[name][-1:]])) / unit
        sides = _shares(samples, x, level, over)
        share, low, high = (np.append(side, side[:, -1:], axis=1) for side in sides)
        doubtful = has_several_units(results[name], over) and not np.isfinite(low).any()
        said = (band_words("interval", level), about(results[name], over), doubtful)
        curves.append(Curve(name, steps, share, low, high, *said))
    axes = new_axes() if axes is None else axes
    words = name_lines(draw_curves(axes, curves, style, steps=True), curves, labels)
    for number, (label, bound) in enumerate((bounds or {}).items()):
        grey = ("0.35", "0.6")[number % 2]
        looks = {"label": label, "color": grey, "linestyle": (0, (1, 1)), "lw": 1}
        if np.ndim(bound) == 0:
            axes.axvline(float(bound) / unit, **looks)
        else:
            place, probability = (np.asarray(side, np.float64) for side in bound)
            axes.plot(place / unit, probability, **looks)
    axes.set(xscale="log", yscale="log")
    games = max(samples.size for samples in final.values())
    axes.set_ylim(0.3 / games, 1.5)
    rounds = "/".join(dict.fromkeys(f"{result.rounds[-1]:,}" for result in results.values()))
    regretted = _regret(kind, results)
    axes.set_xlabel(f"{regretted} x after {rounds} rounds{per(unit)}")
    label_y(axes, f"P({regretted} > x)\n{words}")
    axes.grid(alpha=0.3)
    add_legend(axes)
    return axes


def _thresholds(positive: np.ndarray, left: float) -> np.ndarray:
    """Return where a tail is measured: at ``left`` and at regrets that are ever rarer.

    Args:
      positive: regrets of games, sorted.
      left: the least threshold.
    """
    beyond = positive[positive > left][::-1]
    if len(beyond) < 2:
        return np.array([left])
    ranks = np.unique(np.geomspace(1, len(beyond) - 1, _THRESHOLDS).astype(int))
    return np.append(left, beyond[ranks][::-1])


def _shares(
    samples: np.ndarray, x: np.ndarray, level: float, over: Over | None
) -> tuple[np.ndarray, ...]:
    """Return P(regret > x), low and high, each [1 or K, Q], from samples [K, S].

    Where no game is beyond, all are NaN; the edges also where they cannot be trusted.
    """
    parts = []
    for block in np.array_split(x, max(1, samples.size * len(x) // _COMPARISONS)):
        values = statistics.units_of((samples[..., None] > block).astype(np.float64), over)
        share, low, high = statistics.share_interval(values, level)
        unsure = statistics.shares_are_doubtful(values)
        if unsure.any() and len(values) < statistics.FEW_UNITS:
            unsure[:] = True  # a band at thresholds that no game or every game exceeds says little
        none = share <= 0
        parts.append(
            [np.where(none, np.nan, share)]
            + [np.where(none | unsure, np.nan, edge) for edge in (low, high)]
        )
    return tuple(np.concatenate(side, axis=1) for side in zip(*parts))


def grid(cells: Mapping[tuple[str, str], Mapping[str, Result]]):
    """Plot a panel of `regret` for each (loss family, scale): a row a family, a column a scale.

    Regret is divided by the scale, so that a scale-free method has the same curves in every column.

    Args:
      cells: the results by strategy, of each (family, scale).

    Returns:
      The Matplotlib figure.
    """
    from matplotlib.figure import Figure

    for results in cells.values() or ({},):
        check_names(results)
    families = list(dict.fromkeys(family for family, _ in cells))
    scales = list(dict.fromkeys(scale for _, scale in cells))
    width = max(3.4 * len(scales) + 0.6, 5.5)
    figure = Figure(figsize=(width, 2.6 * len(families) + 0.9), layout="constrained")
    panels = figure.subplots(len(families), len(scales), sharex=True, sharey="row", squeeze=False)
    bands: dict[str, list[str]] = {}
    for (family, scale), results in cells.items():
        axes = panels[families.index(family)][scales.index(scale)]
        curves = mean_curves(results, unit=float(scale))
        for line, curve in zip(draw_curves(axes, curves), curves):
            line.set_label(literal(curve.name))
            if curve.doubtful:
                mark_doubtful(axes, curve.x[-1:], curve.y[0, -1:], line.get_color())
        bands.setdefault(curves[0].words, []).append(family)
        axes.set_xscale("log")
        axes.set_xlabel("round")
        axes.grid(alpha=0.3)
        axes.set_title(literal(f"{family}, losses times {scale}"), fontsize=10)
        axes.label_outer()
    for row in panels:
        row[0].set_ylabel("regret / scale")
    result = next(iter(next(iter(cells.values())).values()))
    words = [
        band if len(bands) == 1 else f"{band} ({', '.join(dict.fromkeys(some))})"
        for band, some in bands.items()
    ]
    text = f"{result.norms.num_arms} arms; means and bands: {'; '.join(words)}"
    figure.supxlabel(literal(wrapped(text, width, 9)), fontsize=9)
    add_shared_legend(figure, panels.ravel())
    return figure
