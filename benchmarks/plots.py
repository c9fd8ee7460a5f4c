"""Pictures of what was measured, from the records that are kept in JSON."""

from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from sfmab_jax.results.files import write_atomically

__all__ = ["contest_figure", "save_figure", "sweep_figure"]

_NUMBERS = ("arms", "seeds", "rounds", "sequences")  # sweeps along a number, drawn as lines


def contest_figure(records: list[dict[str, Any]]) -> Figure:
    """Rounds per second of every contender, and how much faster ours is than each."""
    rows = [(record, row) for record in records for row in record["rows"]][::-1]
    figure = Figure(figsize=(10, 1.5 + 0.36 * len(rows)), layout="constrained")
    speed, ratio = figure.subplots(1, 2, sharey=True)
    places = np.arange(len(rows))
    speeds = [row["million_rounds_per_second"] for _, row in rows]
    is_ours = [row is record["rows"][0] for record, row in rows]
    colours = ["C0" if mine else "0.6" for mine in is_ours]
    speed.barh(places, speeds, color=colours, height=0.7)
    for place, value in zip(places, speeds):
        speed.annotate(f" {value:.3g}", (value, place), va="center", fontsize=9)
    speed.set(xscale="log", xlabel="million rounds per second")
    first = [record["rows"][0] for record, _ in rows]
    labels = [
        f"{row['name']}\n{record['title']}, {ours['games']:,}, {ours['rounds']:,}"
        for (record, row), ours in zip(rows, first)
    ]
    speed.set_yticks(places, labels)
    speed.set_title("contender, strategy, games, rounds", loc="right", x=-0.02, fontsize=8)
    speed.tick_params(axis="y", labelsize=8)
    speed.margins(x=0.2)
    for place, (_, row), mine in zip(places, rows, is_ours):
        if mine:
            continue
        middle, low, high = row["ratio_median"], min(row["ratios"]), max(row["ratios"])
        ratio.errorbar(middle, place, xerr=[[middle - low], [high - middle]], fmt="o", color="C0")
        ratio.annotate(
            f"{middle:.3g}", (middle, place), (0, 6), textcoords="offset points", ha="center"
        )
    ratio.axvline(1, color="0.5", linewidth=1)
    ratio.set(xscale="log", xlabel="sfmab_jax is faster by (median, range)")
    ratio.margins(x=0.15)
    for axes in (speed, ratio):
        axes.grid(axis="x", color="0.9")
        axes.set_axisbelow(True)
    return figure


def sweep_figure(record: dict[str, Any]) -> Figure:
    """Cost per round along the sweep, and peak memory."""
    rows = record["rows"]
    costs = np.array([row["nanoseconds_per_round"] for row in rows])
    middle = np.median(costs, axis=1)
    spread = np.abs(np.stack([costs.min(axis=1), costs.max(axis=1)]) - middle)
    memory = [row["peak_megabytes"] for row in rows]
    if record["along"] in _NUMBERS:
        figure = Figure(figsize=(9, 3.6), layout="constrained")
        cost_axes, memory_axes = figure.subplots(1, 2)
        along = np.array([row[record["along"]] for row in rows], float)
        cost_axes.errorbar(along, middle, yerr=spread, marker="o", capsize=3)
        cost_axes.set(yscale="log", ylabel="nanoseconds per round")
        if record["along"] == "arms":
            anchor = int(np.argmin(np.abs(along - 10)))
            line = middle[anchor] * along / along[anchor]
            cost_axes.plot(along, line, color="0.6", linestyle="--", label="linear from n = 10")
            cost_axes.legend(frameon=False)
        memory_axes.plot(along, memory, marker="o")
        memory_axes.set(ylabel="peak memory of the process, MB", ylim=(0, 1.15 * max(memory)))
        for axes in (cost_axes, memory_axes):
            axes.set(xscale="log", xlabel=f"number of {record['along']}")
            axes.grid(color="0.9")
    else:
        figure = Figure(figsize=(8, 1.5 + 0.28 * len(rows)), layout="constrained")
        axes = figure.subplots()
        places = np.arange(len(rows))[::-1]
        axes.barh(places, middle, xerr=spread, color="C0", height=0.7, capsize=3)
        axes.set_yticks(places, [row["label"] for row in rows])
        axes.set(xlabel="nanoseconds per round")
        axes.grid(axis="x", color="0.9")
        axes.set_axisbelow(True)
    figure.suptitle(record["title"])
    return figure


def save_figure(figure: Figure, path: Path) -> None:
    write_atomically(path, lambda file: figure.savefig(file, format="png", dpi=150))
