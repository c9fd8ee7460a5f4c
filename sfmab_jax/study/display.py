"""What a running study shows: overall and per cell, speed, time left, running mean regret."""

import sys
import threading
import time
from collections.abc import Sequence

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

from sfmab_jax.study.plan import Cell

__all__ = ["Display"]

_MOST_CELLS = 8  # shown at a time


class Display:
    """Bars in a terminal; elsewhere a line for each cell that is done. Fed from many threads."""

    def __init__(self, cells: Sequence[Cell], rounds: Sequence[int], show: bool | None):
        self._cells = list(cells)
        self._lock = threading.Lock()
        self._played = 0
        self._start = time.perf_counter()
        self._bars = sys.stderr.isatty() if show is None else show
        self._lines = not self._bars and show is not False
        self._progress = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=20),
            TextColumn("{task.percentage:3.0f}%"),
            TextColumn("{task.fields[note]}", markup=False),
            TimeRemainingColumn(),
            console=Console(stderr=True),
            disable=not self._bars,
            refresh_per_second=4,
            speed_estimate_period=600,
        )
        self._all = self._progress.add_task("all cells", total=sum(rounds), note="")
        self._tasks = [
            self._progress.add_task(cell.label, total=total, note="", visible=False)
            for cell, total in zip(cells, rounds)
        ]
        self._shown: list[TaskID] = []

    def __enter__(self) -> "Display":
        self._progress.start()
        return self

    def __exit__(self, *_) -> None:
        self._progress.stop()

    def found(self, number: int, rounds: int) -> None:
        """Rounds of a cell that an earlier run has played."""
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
            speed = self._played / (time.perf_counter() - self._start) / 1e6
        self._progress.advance(self._tasks[number], rounds)
        self._progress.update(self._all, advance=rounds, note=f"{speed:.2f} million rounds/s")

    def mean(self, number: int, mean: float, seeds: int, done: bool) -> None:
        """The mean regret of the cell's seeds so far."""
        note = f"mean regret {mean:.4g}, {seeds} seeds"
        self._progress.update(self._tasks[number], note=note)
        if done and self._lines:
            print(f"{self._cells[number].label}: {note}", file=sys.stderr)
