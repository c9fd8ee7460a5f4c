"""Plots of regret and of losses, in colours for colour-blind readers and with distinct dashes."""

import warnings
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from sfmab_jax.losses import LossSequence
from sfmab_jax.results.hardness import loss_chunks
from sfmab_jax.results.result import Result
from sfmab_jax.results.statistics import normal_interval

__all__ = ["LINE_STYLES", "grid", "literal", "losses", "regret"]

# The lines of a result by label, each [C], and why some or all are missing.
BoundsOf = Callable[[Result], tuple[Mapping[str, np.ndarray], str]]

# Okabe and Ito's palette, with a dash pattern each.
LINE_STYLES: list[dict[str, Any]] = [
    {"color": "#0072B2", "linestyle": "-"},
    {"color": "#D55E00", "linestyle": "--"},
    {"color": "#009E73", "linestyle": "-."},
    {"color": "#CC79A7", "linestyle": ":"},
    {"color": "#E69F00", "linestyle": (0, (5, 1))},
    {"color": "#56B4E9", "linestyle": (0, (3, 1, 1, 1))},
]


def literal(name: str) -> str:
    """Return a name such that Matplotlib draws it as it is: not as a formula, and in the legend.

    Dollars are escaped; a space of no width stands before an underscore, which would hide a line.
    """
    return ("\u200b" if name.startswith("_") else "") + name.replace("$", r"\$")


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
    results: Mapping[str, Result],
    *,
    axes: Any = None,
    level: float = 0.95,
    unit: float = 1.0,
    bounds: Mapping[str, np.ndarray] | bool = False,
):
    """Plot mean expected regret against the rounds, with its interval, a line for each strategy.

    Over several loss sequences the line is the mean over them all, and the interval that of the
    sequences' means.

    Args:
      results: by name, as `simulate` returns them.
      axes: Matplotlib axes to draw on; new ones by default.
      level: of the interval.
      unit: regret is divided by it.
      bounds: True draws the bounds that are proven for what was played and the losses it met
        (`theory.guarantees`), on a logarithmic scale, and warns where there is none; or the lines
        to draw, by label, each [C].

    Returns:
      The axes; ``axes.figure.savefig(path)`` writes the picture.

    >>> import sfmab_jax as sf
    >>> result = sf.simulate(sf.strategies.uniform(), [[1.0, 0.0], [0.0, 0.5]], num_seeds=4)
    >>> print(regret({"uniform": result}).get_ylabel())
    regret (mean, 95% interval)
    """
    import matplotlib.pyplot as plt

    if axes is None:
        _, axes = plt.subplots(figsize=(6.4, 4.2), layout="constrained")
    for number, (name, result) in enumerate(results.items()):
        style = LINE_STYLES[number % len(LINE_STYLES)]
        pooled = result.expected_regret / unit
        if pooled.shape[0] > 1:
            pooled = pooled.mean(axis=1)[None]
        low, high = normal_interval(pooled, level)
        axes.plot(result.rounds, pooled.mean(axis=1)[0], label=literal(name), **style)
        axes.fill_between(result.rounds, low[0], high[0], color=style["color"], alpha=0.2, lw=0)
    if bounds is True:
        _draw_bounds(results, axes, unit)
    for number, (name, line) in enumerate(bounds.items() if bounds and bounds is not True else ()):
        rounds = next(iter(results.values())).rounds
        grey = ("0.35", "0.6")[number % 2]
        axes.plot(rounds, line, label=name, color=grey, linestyle=(0, (1, 1)), lw=1)
    axes.set_xlabel("round")
    axes.set_ylabel(f"regret (mean, {level:.0%} interval)")
    axes.set_xscale("log")
    axes.legend(frameon=False)
    axes.grid(alpha=0.3)
    return axes


def _draw_bounds(results: Mapping[str, Result], axes: Any, unit: float) -> None:
    """Draw what is proven for each strategy, in its colour, the tighter bounds thinner."""
    found = {name: _bounds_of(result) for name, result in results.items()}
    bounds = {name: lines for name, (lines, _) in found.items()}
    reasons = "; ".join(f"{name} {reason}" for name, (_, reason) in found.items() if reason)
    if not any(bounds.values()):
        raise ValueError(
            f"bounds=True, but no bound holds: {reasons}. Give others as bounds={{label: [C]}}"
        )
    if reasons:
        warnings.warn(f"some bounds are not drawn: {reasons}", RuntimeWarning, stacklevel=4)
    for number, (name, result) in enumerate(results.items()):
        colour = LINE_STYLES[number % len(LINE_STYLES)]["color"]
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
    low, high = axes.get_ylim()
    axes.set_ylim(low, high * (high / low) ** 0.4)  # room for the legend


def grid(cells: Mapping[tuple[str, str], Mapping[str, Result]]):
    """Plot a panel of `regret` for each (loss family, scale): a row a family, a column a scale.

    Regret is divided by the scale, so that a scale-free method has the same curves in every column.

    Args:
      cells: the results by strategy, of each (family, scale).

    Returns:
      The Matplotlib figure.
    """
    from matplotlib.figure import Figure

    families = list(dict.fromkeys(family for family, _ in cells))
    scales = list(dict.fromkeys(scale for _, scale in cells))
    width = max(3.4 * len(scales) + 0.6, 5.5)
    figure = Figure(figsize=(width, 2.6 * len(families) + 0.9), layout="constrained")
    panels = figure.subplots(len(families), len(scales), sharex=True, sharey="row", squeeze=False)
    for (family, scale), results in cells.items():
        axes = panels[families.index(family)][scales.index(scale)]
        regret(results, axes=axes, unit=float(scale))
        axes.set_title(literal(f"{family}, losses times {scale}"), fontsize=10)
        axes.get_legend().remove()
        axes.label_outer()
    for row in panels:
        row[0].set_ylabel("regret / scale")
    result = next(iter(next(iter(cells.values())).values()))
    figure.supxlabel(
        f"{result.norms.num_arms} arms; means over {result.regret.shape[1]:,} games, bands: their "
        "95% intervals",
        fontsize=9,
    )
    handles, labels = panels[0][0].get_legend_handles_labels()
    # As many columns as fit: a letter is about 0.08 inches wide.
    columns = max(1, int(width / (0.08 * max(map(len, labels)) + 0.7)))
    figure.legend(handles, labels, loc="outside upper center", ncols=columns, frameon=False)
    return figure


def losses(sequence: LossSequence, *, num_rounds: int, seed: int = 0, num_columns: int = 300):
    """Plot a loss sequence: its losses over time, and what each arm costs in total.

    Above is a map of the losses, averaged over the rounds of a column; below are the totals of
    the arms that lead at some time, six at most, less that of uniform play.

    Returns:
      The Matplotlib figure.
    """
    from matplotlib.colors import Normalize, SymLogNorm
    from matplotlib.figure import Figure

    columns = min(num_columns, num_rounds)
    sums, count = np.zeros((columns, sequence.num_arms)), 0
    sizes = np.bincount(np.arange(num_rounds) * columns // num_rounds, minlength=columns)
    for rows in loss_chunks(sequence, num_rounds, seed=seed):
        places = np.arange(count, count + len(rows)) * columns // num_rounds
        np.add.at(sums, places, rows)
        count += len(rows)
    averages = sums / sizes[:, None]
    rounds = np.cumsum(sizes)
    relative = np.cumsum(sums - sums.mean(axis=1, keepdims=True), axis=0)

    figure = Figure(figsize=(6.4, 5.6), layout="constrained")
    above, below = figure.subplots(2, 1, sharex=True)
    largest = np.abs(averages).max() or 1.0
    typical = np.median(np.abs(averages)[averages != 0]) if averages.any() else 1.0
    lowest = 0.0 if averages.min() >= 0 else -largest
    norm, ticks = Normalize(lowest, largest), None
    if largest > 100 * typical:  # logarithmic only where the sizes ask for it
        norm = SymLogNorm(typical, vmin=lowest, vmax=largest)
        powers = 10.0 ** np.arange(np.ceil(np.log10(typical)) + 1, np.log10(largest))
        ticks = np.concatenate([-powers[::-1] if lowest else [], [0], powers])
    picture = above.imshow(
        averages.T,
        aspect="auto",
        interpolation="nearest",
        cmap="RdBu_r" if lowest else "Reds",
        norm=norm,
        extent=(0.5, num_rounds + 0.5, sequence.num_arms - 0.5, -0.5),
    )
    label = "loss" if columns == num_rounds else f"loss, mean of {num_rounds / columns:.3g} rounds"
    figure.colorbar(picture, ax=above, label=label, ticks=ticks, pad=0.01)
    above.set_ylabel("arm")
    above.yaxis.get_major_locator().set_params(integer=True)
    above.set_title(literal(f"{sequence.name}, {sequence.num_arms} arms"))
    # The arms that lead at some time, as many as there are line styles.
    leading = np.argsort(relative.min(axis=0), kind="stable")[: len(LINE_STYLES)]
    for arm, style in zip(sorted(leading), LINE_STYLES, strict=False):
        below.plot(rounds, relative[:, arm], label=f"arm {arm}", lw=1.2, **style)
    below.axhline(0, color="0.5", lw=0.5)
    below.set_xlabel("round")
    below.set_ylabel("total loss less the arms' mean")
    figure.legend(loc="outside lower center", ncols=len(LINE_STYLES), fontsize=8, frameon=False)
    return figure
