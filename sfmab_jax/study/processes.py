"""Several processes on one study: who plays which blocks, and who is alive.

    DIR/processes/RUN.work.json    from process 0: the blocks of each process
    DIR/processes/RUN.2.json       from process 2, every few seconds: how far it is
    DIR/processes/2.lock           held by process 2 as long as it lives

RUN names the run. The folder, on a disk that all machines see, is all that the processes share.
Each writes its own blocks. Process 0 also plays some, counts those of the others as they appear,
and names a process that fails or falls silent; another run, of any number of processes, then plays
what is missing.
"""

import heapq
import json
import os
import platform
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from sfmab_jax.results.result import Result
from sfmab_jax.study.blocks import Block
from sfmab_jax.study.cells import Cell
from sfmab_jax.study.folder import remove_process_files
from sfmab_jax.study.hosts import PATIENCE, Process
from sfmab_jax.study.lock import hold, holder_of
from sfmab_jax.study.play_block import play_block
from sfmab_jax.study.same_losses import SameLosses
from sfmab_jax.study.store import block_path, read_block, write_json

__all__ = ["OtherProcesses", "check_unused", "dismiss_others", "play_share", "share_out"]

_BEAT = 2.0  # seconds between signs of life
_SILENCE = 120.0  # seconds without one: dead. Network disks may show files a minute late.


def share_out(missing: Sequence[Block], count: int) -> list[list[Block]]:
    """Return the blocks of each of ``count`` processes, in the order of ``missing``.

    The longest block is dealt first, always to the process with the least work.
    """
    shares: list[list[int]] = [[] for _ in range(count)]
    loads = [(0, process) for process in range(count)]  # a heap
    for number in sorted(range(len(missing)), key=lambda k: -missing[k].work):
        load, process = loads[0]
        heapq.heapreplace(loads, (load + missing[number].work, process))
        shares[process].append(number)
    return [[missing[number] for number in sorted(share)] for share in shares]


def play_share(
    folder: Path, cells: Iterable[Cell], process: Process, say: Callable[[str], None]
) -> int:
    """Play the blocks that process 0 deals to this process; return how many.

    Args:
      folder: the folder of the study, which all processes see.
      cells: all cells of the study.
      process: this one, which is not process 0.
      say: told in single lines what is damaged.
    """
    known = {cell.identity: cell for cell in cells}
    same_losses = SameLosses(folder)
    work = _await_work(folder, process)
    with hold(folder, f"processes/{process.number}.lock"), _Heartbeat(folder, process) as heartbeat:
        for identity, first_seed, num_seeds in work:
            if identity not in known:
                raise ValueError(
                    f"process {process.number} on {platform.node()} does not know cell {identity}; "
                    "give all processes the same study, software and kind of device"
                )
            play_block(folder, Block(known[identity], first_seed, num_seeds), same_losses, say)
            heartbeat.blocks += 1
    return len(work)


def dismiss_others(folder: Path, process: Process, reason: str) -> None:
    """End the wait of the others because process 0 cannot begin; no effect once they have work."""
    path = _path(folder, process, "work")
    if process.total > 1 and not path.exists():
        with suppress(OSError):
            write_json(path, {"refused": reason})


def check_unused(folder: Path) -> None:
    """Refuse a folder where processes of an earlier run, whose process 0 died, still play."""
    for path in sorted(folder.glob("processes/*.lock")):
        holder = holder_of(path)
        if holder is not None:
            raise OSError(
                f"{folder} is in use by {holder}, of an earlier run; wait until it has finished "
                "its blocks, or stop it"
            )
    remove_process_files(folder)


class OtherProcesses:
    """The other processes as process 0 sees them; deals them their shares of the blocks."""

    def __init__(self, folder: Path, process: Process, shares: Sequence[Sequence[Block]]):
        work = [[(b.cell.identity, b.first_seed, b.num_seeds) for b in share] for share in shares]
        if process.total > 1:
            write_json(_path(folder, process, "work"), {"shares": work})
        self._folder = folder
        self._all = [
            _OtherProcess(folder, process, number, share)
            for number, share in enumerate(shares)
            if number != process.number
        ]

    def collect(self) -> Iterator[tuple[Block, Result]]:
        """Yield the blocks that have appeared since the last call."""
        for other in self._all:
            yield from other.collect()

    def busy(self) -> bool:
        """Whether blocks may still appear."""
        return any(other.busy() for other in self._all)

    def busy_names(self) -> str:
        """Return who is still playing, in words."""
        return ", ".join(str(other) for other in self._all if other.busy())

    def failures(self) -> list[str]:
        """Return a sentence on each process that did not play its blocks."""
        return [other.describe_failure() for other in self._all if other.waiting]

    def remove_files(self) -> None:
        """Remove the files that only this run needs."""
        remove_process_files(self._folder)


class _OtherProcess:
    """One of the other processes, as its files show it."""

    def __init__(self, folder: Path, process: Process, number: int, share: Sequence[Block]):
        self._folder, self._number = folder, number
        self._status_path = _path(folder, process, str(number))
        self._status: dict[str, Any] = {}
        self._changed = time.monotonic()
        self._share = len(share)
        self.waiting = list(share)

    def __str__(self) -> str:
        where = f" on {self._status['host']}" if self._status else ""
        return f"process {self._number}{where}"

    def collect(self) -> Iterator[tuple[Block, Result]]:
        self._read_status()  # before the blocks that it speaks of
        # A process plays its blocks in order.
        while self.waiting and block_path(self._folder, self.waiting[0]).exists():
            result = read_block(self._folder, self.waiting[0])
            if not isinstance(result, Result):
                break
            yield self.waiting.pop(0), result

    def busy(self) -> bool:
        return bool(self.waiting) and not self._failed() and not self._silent()

    def describe_failure(self) -> str:
        done = f"{self._share - len(self.waiting)} of its {self._share} blocks are there"
        if self._failed():
            return f"{self} {self._status['state']}; {done}"
        if self._status.get("state") == "done":
            return f"{self} is done, but {done}; --output must be a folder that all machines share"
        return f"{self} died, or cannot reach {self._folder}; {done}"

    def _read_status(self) -> None:
        status = _read(self._status_path) or self._status
        if status != self._status:
            self._status, self._changed = status, time.monotonic()

    def _failed(self) -> bool:
        return self._status.get("state", "plays") not in ("plays", "done")

    def _silent(self) -> bool:
        if time.monotonic() - self._changed > (_SILENCE if self._status else PATIENCE):
            return True
        # On one machine the kernel knows at once: a living process holds its lock.
        if self._status.get("host") != platform.node():
            return False
        if holder_of(self._folder / "processes" / f"{self._number}.lock") is not None:
            return False
        self._read_status()  # it may have ended in good order meanwhile
        return self._status["state"] == "plays"


class _Heartbeat:
    """Sign of life of a process, written every few seconds and at its end."""

    def __init__(self, folder: Path, process: Process):
        self.blocks = 0
        self._who = {"host": platform.node(), "process": os.getpid()}
        self._path = _path(folder, process, str(process.number))
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._beat, daemon=True)
        self._beats = 0

    def __enter__(self) -> "_Heartbeat":
        self._write("plays")
        self._thread.start()
        return self

    def __exit__(self, kind, error, _) -> None:
        self._over.set()
        self._thread.join()
        if kind is None:
            self._write("done")
        else:
            self._write("was stopped" if kind is KeyboardInterrupt else f"failed: {error}")

    def _beat(self) -> None:
        while not self._over.wait(_BEAT):
            self._beats += 1
            self._write("plays")

    def _write(self, state: str) -> None:
        status = self._who | {"state": state, "blocks": self.blocks, "beats": self._beats}
        with suppress(OSError):  # a full disk: silence says as much
            write_json(self._path, status)


def _await_work(folder: Path, process: Process) -> list[tuple[str, int, int]]:
    """Return this process's blocks, once process 0 has dealt them.

    Each is (identity of the cell, first seed, number of seeds).
    """
    path, start = _path(folder, process, "work"), time.monotonic()
    while (work := _read(path)) is None:
        if time.monotonic() - start > PATIENCE:
            raise OSError(
                f"process {process.number} on {platform.node()} sees no work in {folder}; "
                "--output must be a folder that all machines share"
            )
        time.sleep(0.1)
    if "refused" in work:
        raise OSError(f"process 0 cannot begin: {work['refused']}")
    return [tuple(block) for block in work["shares"][process.number]]


def _path(folder: Path, process: Process, name: str) -> Path:
    return folder / "processes" / f"{process.run}.{name}.json"


def _read(path: Path) -> dict[str, Any] | None:
    try:
        return dict(json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):  # not there, or not yet seen whole
        return None
