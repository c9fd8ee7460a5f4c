"""The progress of a running study: overall and per cell, speed, time left, mean regret so far."""

import sys
import threading
import time
from collections.abc import Sequence

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn
from rich.table import Column

from sfmab_jax.results.result import Result
from sfmab_jax.study.cells import Cell

__all__ = ["Display", "describe_games", "format_duration", "format_size"]

_MOST_CELLS = 8  # shown at a time


class Display:
    """Bars in a terminal, elsewhere a line for each finished cell. Safe to call from any thread.

    Args:
      cells: the cells of the study; the methods name them by their place here.
      rounds: rounds of all games of each cell.
      seeds: seeds of each cell.
      show: whether to draw bars; None draws them in a terminal and lines elsewhere.
    """

    def __init__(
        self, cells: Sequence[Cell], rounds: Sequence[int], seeds: Sequence[int], show: bool | None
    ):
        self._cells, self._seeds = list(cells), list(seeds)
        self._sums = [np.zeros(2) for _ in cells]
        self._lock = threading.Lock()
        self._played, self._left = 0, sum(rounds)
        self._start = time.perf_counter()
        self._bars = sys.stderr.isatty() if show is None else show
        self._lines = not self._bars and show is not False
        self._progress = Progress(
            TextColumn(
                "{task.description}",
                markup=False,
                table_column=Column(ratio=1, no_wrap=True, overflow="ellipsis"),
            ),
            BarColumn(bar_width=8, table_column=Column(min_width=8)),
            TextColumn("{task.percentage:3.0f}%", table_column=Column(min_width=4)),
            TextColumn("{task.fields[note]}", markup=False, table_column=Column(min_width=36)),
            expand=True,
            console=Console(stderr=True),
            disable=not self._bars,
            refresh_per_second=4,
        )
        self._all = self._progress.add_task("all cells", total=sum(rounds), note="")
        self._tasks = [
            self._progress.add_task(_short_label(cell), total=total, note="", visible=False)
            for cell, total in zip(cells, rounds)
        ]
        self._shown: list[TaskID] = []

    def __enter__(self) -> "Display":
        self._progress.start()
        return self

    def __exit__(self, *_) -> None:
        self._progress.stop()

    def skip(self, number: int, rounds: int) -> None:
        """Count rounds of a cell that an earlier run has played, which say nothing of the speed."""
        with self._lock:
            self._left -= rounds
        self._progress.advance(self._tasks[number], rounds)
        self._progress.advance(self._all, rounds)

    def begin(self, number: int) -> None:
        """Show a cell, of which a block is next."""
        task = self._tasks[number]
        if task not in self._shown:
            self._shown.append(task)
            self._progress.update(task, visible=True)
        if len(self._shown) > _MOST_CELLS:
            self._progress.update(self._shown.pop(0), visible=False)

    def advance(self, number: int, rounds: int) -> None:
        """Count rounds of a cell that have been played now."""
        with self._lock:
            self._played += rounds
            self._left -= rounds
            speed = self._played / (time.perf_counter() - self._start)
            left = format_duration(self._left / speed)
        note = f"{speed / 1e6:.2f} M rounds/s, {left} left"
        self._progress.advance(self._tasks[number], rounds)
        self._progress.update(self._all, advance=rounds, note=note)

    def add_result(self, number: int, result: Result) -> None:
        """Add a block to the mean regret of its cell."""
        final = result.expected_regret[:, :, -1]
        seeds = final.shape[0 if self._cells[number].num_sequences is None else 1]
        self._sums[number] += final.mean() * seeds, seeds
        total, seeds = self._sums[number]
        note = f"mean regret {total / seeds:.4g}, {seeds:.0f} seeds"
        self._progress.update(self._tasks[number], note=note)
        if seeds == self._seeds[number] and self._lines and self._played:
            print(f"{self._cells[number].label}: {note}", file=sys.stderr)

    def wait(self, names: str) -> None:
        """Show that only these other processes still play."""
        self._progress.update(self._all, note=f"waits for {names}")


def _short_label(cell: Cell) -> str:
    """Return a label whose beginning tells cells apart, as terminals are narrow."""
    scale = f"{cell.scale:g}"
    return f"{cell.strategy}, {cell.losses} x {scale}, n={cell.num_arms}, T={cell.num_rounds}"


def describe_games(seeds: int, sequences: int | None) -> str:
    """Return on how many loss sequences a study plays how many seeds, in words."""
    if sequences is None:
        return f"{seeds:,} seeds, each with its own losses if they are random"
    return f"{seeds:,} seeds on {sequences:,} loss sequence{'s each' * (sequences > 1)}"


def format_duration(seconds: float) -> str:
    """Return a rough duration in words, as "2.5 hours"."""
    for unit, name in ((86400, "days"), (3600, "hours"), (60, "minutes")):
        if seconds >= 2 * unit:
            return f"{seconds / unit:.1f} {name}"
    return f"{seconds:.0f} seconds"


def format_size(number: float) -> str:
    """Return a number of bytes in words, as "1.5 GB"."""
    for unit in ("bytes", "kB", "MB", "GB"):
        if number < 1000:
            return f"{number:.3g} {unit}"
        number /= 1000
    return f"{number:.3g} TB"
