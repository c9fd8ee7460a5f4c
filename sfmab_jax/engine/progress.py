"""A progress bar that appears only when there is something to wait for."""

import sys
import threading
import time
from collections.abc import Callable

from rich.console import Console
from rich.progress import BarColumn, TextColumn, TimeRemainingColumn
from rich.progress import Progress as RichProgress

__all__ = ["Progress"]

_PATIENCE = 2.0  # seconds


class Progress:
    """A count of rounds of all games, advanced by several threads and drawn by one.

    ``show`` says whether to draw a bar; None draws one in a terminal when it takes long. If it is
    a function, it is told the rounds and no bar is drawn.
    """

    def __init__(self, total: int, show: bool | Callable[[int], None] | None):
        self.total = total
        self.done = 0
        self._lock = threading.Lock()
        self._tell = show if callable(show) else None
        self._wanted = sys.stderr.isatty() if show is None else show is True
        self._patience = _PATIENCE if show is None else 0.0
        self._bar: RichProgress | None = None

    def __enter__(self) -> "Progress":
        self._start = time.perf_counter()
        return self

    def __exit__(self, *_) -> None:
        if self._bar is not None:
            self.draw()
            self._bar.stop()

    def advance(self, rounds: int) -> None:
        """Count ``rounds`` more. Called by the threads that play."""
        with self._lock:
            self.done += rounds
            if self._tell is not None:
                self._tell(rounds)

    def draw(self) -> None:
        """Draw the bar; if ``show`` was None, after two seconds. For the thread that waits."""
        elapsed = time.perf_counter() - self._start
        if not self._wanted or elapsed < self._patience:
            return
        if self._bar is None:
            self._bar = RichProgress(
                TextColumn("{task.percentage:3.0f}%"),
                BarColumn(),
                TextColumn("{task.fields[speed]} million rounds/s"),
                TimeRemainingColumn(),
                console=Console(stderr=True),
                transient=True,
            )
            self._bar.start()
            self._task = self._bar.add_task("rounds", total=self.total, speed="0")
        speed = f"{self.done / elapsed / 1e6:.2f}"
        self._bar.update(self._task, completed=self.done, speed=speed)
