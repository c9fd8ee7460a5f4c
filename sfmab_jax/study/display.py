"""What a running study shows: overall and per cell, speed, time left, running mean regret."""

import sys
import threading
import time
from collections.abc import Sequence

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn
from rich.table import Column

from sfmab_jax.results import Result
from sfmab_jax.study.plan import Cell

__all__ = ["Display", "duration", "size"]

_MOST_CELLS = 8  # shown at a time


class Display:
    """Bars in a terminal; elsewhere a line for each cell that is done. Fed from many threads."""

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
            self._progress.add_task(_short(cell), total=total, note="", visible=False)
            for cell, total in zip(cells, rounds)
        ]
        self._shown: list[TaskID] = []

    def __enter__(self) -> "Display":
        self._progress.start()
        return self

    def __exit__(self, *_) -> None:
        self._progress.stop()

    def found(self, number: int, rounds: int) -> None:
        """Rounds of a cell that an earlier run has played; they do not count for the speed."""
        with self._lock:
            self._left -= rounds
        self._progress.advance(self._tasks[number], rounds)
        self._progress.advance(self._all, rounds)

    def begin(self, number: int) -> None:
        """A block of this cell is next."""
        task = self._tasks[number]
        if task not in self._shown:
            self._shown.append(task)
            self._progress.update(task, visible=True)
        if len(self._shown) > _MOST_CELLS:
            self._progress.update(self._shown.pop(0), visible=False)

    def advance(self, number: int, rounds: int) -> None:
        """Rounds of this cell have been played."""
        with self._lock:
            self._played += rounds
            self._left -= rounds
            speed = self._played / (time.perf_counter() - self._start)
            left = duration(self._left / speed)
        note = f"{speed / 1e6:.2f} M rounds/s, {left} left"
        self._progress.advance(self._tasks[number], rounds)
        self._progress.update(self._all, advance=rounds, note=note)

    def count(self, number: int, result: Result) -> None:
        """A block of this cell is there: the mean regret of its seeds so far."""
        final = result.expected_regret[:, :, -1].mean(axis=0)
        self._sums[number] += final.sum(), len(final)
        total, seeds = self._sums[number]
        note = f"mean regret {total / seeds:.4g}, {seeds:.0f} seeds"
        self._progress.update(self._tasks[number], note=note)
        if seeds == self._seeds[number] and self._lines and self._played:
            print(f"{self._cells[number].label}: {note}", file=sys.stderr)

    def wait(self, whom: str) -> None:
        """Only other processes still play."""
        self._progress.update(self._all, note=f"waits for {whom}")


def _short(cell: Cell) -> str:
    """A label whose beginning tells cells apart, as terminals are narrow."""
    scale = f"{cell.scale:g}"
    return f"{cell.strategy}, {cell.losses} x {scale}, n={cell.num_arms}, T={cell.num_rounds}"


def duration(seconds: float) -> str:
    """About how long, for people."""
    for unit, name in ((86400, "days"), (3600, "hours"), (60, "minutes")):
        if seconds >= 2 * unit:
            return f"{seconds / unit:.1f} {name}"
    return f"{seconds:.0f} seconds"


def size(number: float) -> str:
    """Of so many bytes, for people."""
    for unit in ("bytes", "kB", "MB", "GB"):
        if number < 1000:
            return f"{number:.3g} {unit}"
        number /= 1000
    return f"{number:.3g} TB"
