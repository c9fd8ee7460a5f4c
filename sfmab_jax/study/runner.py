"""Plays a study block after block; stopped at any moment, it continues where it was.

What is stopped, by Ctrl-C, SIGTERM, SIGKILL or a full disk, loses the block under way at most, and
of a long block no more than its last span of rounds. The engine plays a game the same alone or in
a batch, in one go or in spans, so the results are bitwise those of a run without a stop.
"""

import json
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import sfmab_jax
from sfmab_jax.bookmarks import Bookmarks
from sfmab_jax.results import Result
from sfmab_jax.simulate import simulate
from sfmab_jax.study.blocks import Block, blocks
from sfmab_jax.study.config import StudyFile
from sfmab_jax.study.display import Display
from sfmab_jax.study.lock import hold
from sfmab_jax.study.plan import Cell, plan_cells
from sfmab_jax.study.provenance import commit_of, now, platform_now, versions_now
from sfmab_jax.study.spans import forget_spans, keep_spans
from sfmab_jax.study.store import (
    FORMAT,
    clear_leftovers,
    read_block,
    read_manifest,
    write_block,
    write_json,
)

__all__ = ["run_study"]

_OWN_FILES = ("manifest.json", "lock", "cells", "report")


def run_study(
    study: StudyFile,
    folder: Path,
    say: Callable[[str], None] = lambda line: None,
    show: bool | None = False,
) -> int:
    """Plays what is not yet there of a study; returns the number of blocks played now.

    Args:
      study: the checked study file.
      folder: where its blocks are kept, see `store`.
      say: told in single lines what is reused, changed or damaged.
      show: whether to draw progress bars; None draws them in a terminal and lines elsewhere.
    """
    cells = plan_cells(study)
    _check_folder(folder)
    with hold(folder), _sigterm_as_interrupt():
        clear_leftovers(folder)
        earlier = _earlier_manifest(folder, say)
        if earlier is not None:
            _tell_changes(folder, cells, earlier, say)
        manifest = _manifest(study, cells, earlier)
        run: dict[str, Any] = {"started": now(), "ended": None, "blocks": 0, "seconds": 0.0}
        manifest["runs"].append(run)
        write_json(folder / "manifest.json", manifest)
        start = time.perf_counter()
        try:
            for _ in _play(study, cells, folder, say, show):
                run["blocks"] += 1
        except KeyboardInterrupt:
            raise KeyboardInterrupt(
                f"stopped after {run['blocks']} blocks, which are kept in {folder}; "
                "the same command continues"
            ) from None
        except OSError as error:
            raise OSError(
                f"{error}; the blocks before are kept in {folder}, and the same command continues"
            ) from None
        finally:
            run["ended"] = now()
            run["seconds"] = round(time.perf_counter() - start, 3)
            with suppress(OSError):  # a full disk again: the blocks themselves say what is there
                write_json(folder / "manifest.json", manifest)
    return run["blocks"]


def _play(
    study: StudyFile, cells: tuple[Cell, ...], folder: Path, say, show: bool | None
) -> Iterator[Block]:
    """Plays and writes the blocks that are not there, and yields each."""
    work = [blocks(cell, study.seeds) for cell in cells]
    missing, sums = [], [np.zeros(2) for _ in cells]
    totals = [sum(block.num_rounds for block in mine) for mine in work]
    with Display(cells, totals, show) as display:
        for number, mine in enumerate(work):
            for block in mine:
                kept = read_block(folder, block)
                if isinstance(kept, Result):
                    forget_spans(folder, block)
                    display.found(number, block.num_rounds)
                    sums[number] += _sum_of_final(kept)
                    continue
                if kept != "missing":
                    say(f"{block.cell.label}, seeds from {block.first_seed}: {kept}; played again")
                missing.append((block.first_seed, number, block))
        # The first seeds of all cells first: what is there early shows all of the study.
        for _, number, block in sorted(missing, key=lambda item: item[:2]):
            display.begin(number)
            spans = keep_spans(folder, block, say, partial(display.found, number))
            result = _played(block, partial(display.advance, number), spans)
            write_block(folder, block, result)
            forget_spans(folder, block)
            sums[number] += _sum_of_final(result)
            total, seeds = sums[number]
            display.mean(number, total / seeds, int(seeds), seeds == study.seeds)
            yield block


def _played(block: Block, advance: Callable[[int], None], spans: Bookmarks) -> Result:
    cell = block.cell
    options: dict[str, Any] = {"certificate": True} if cell.certificates else {}
    result: Any = simulate(
        {cell.strategy: cell.bandit()},
        cell.sequence(),
        num_rounds=cell.num_rounds,
        num_seeds=block.num_seeds,
        num_sequences=cell.num_sequences,
        seed=cell.seed,
        first_seed=block.first_seed,
        checkpoints=cell.checkpoints,
        dtype=cell.dtype,
        progress=advance,
        bookmarks=spans,
        **options,
    )
    return result[cell.strategy]


def _sum_of_final(result: Result) -> np.ndarray:
    """(Sum over the seeds of the mean over sequences of the final regret, number of seeds)."""
    final = result.expected_regret[:, :, -1].mean(axis=0)
    return np.array([final.sum(), len(final)])


def _check_folder(folder: Path) -> None:
    """Refuses a folder that holds something else."""
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"--output is {folder}; that is a file, give a folder")
    if folder.is_dir() and not (folder / "manifest.json").exists():
        strange = [p.name for p in folder.iterdir() if not p.name.startswith(_OWN_FILES)]
        if strange:
            raise ValueError(
                f"--output is {folder}; it holds {strange[0]} and no study, give a new folder"
            )


def _earlier_manifest(folder: Path, say) -> dict[str, Any] | None:
    try:
        return read_manifest(folder)
    except ValueError as error:
        say(f"{error}; a new one is written, blocks are kept")
        return None


def _tell_changes(folder: Path, cells: tuple[Cell, ...], earlier: dict[str, Any], say) -> None:
    """Which cells are the same as before, which are not and why."""
    before = {entry["identity"]: entry["label"] for entry in earlier["cells"]}
    wanted = {cell.identity for cell in cells}
    fresh = [cell for cell in cells if cell.identity not in before]
    dropped = {label: name for name, label in before.items() if name not in wanted}
    if not fresh and not dropped:
        return
    say(f"the study has changed: {len(cells) - len(fresh)} of {len(cells)} cells are as before")
    for cell in fresh:
        other = dropped.pop(cell.label, None)
        say(f"{'new' if other is None else 'changed'}: {cell.label}{_why(folder, cell, other)}")
    for label in dropped:
        say(f"no longer asked for, left on disk: {label}")


def _why(folder: Path, cell: Cell, other: str | None) -> str:
    """What differs from the cell that had the same label before."""
    try:
        old = json.loads((folder / "cells" / str(other) / "cell.json").read_text())
    except (OSError, ValueError):
        return ""
    new = json.loads(json.dumps(cell.determinants(), default=repr))
    differing = [f"{key} was {old.get(key)}" for key in new if old.get(key) != new[key]]
    return f" ({'; '.join(differing)})"


def _manifest(
    study: StudyFile, cells: tuple[Cell, ...], earlier: dict[str, Any] | None
) -> dict[str, Any]:
    return {
        "format": FORMAT,
        "title": study.title,
        "question": study.question,
        "source": Path(study.source).name,
        "study": study.text,
        "quick": study.quick,
        "seeds": study.seeds,
        "sequences": study.sequences,
        "seed": study.seed,
        "dtype": study.dtype,
        "created": earlier["created"] if earlier else now(),
        "versions": versions_now(),
        "platform": platform_now(),
        "commits": {
            "study": commit_of(Path(study.source).resolve().parent),
            "sfmab_jax": commit_of(Path(sfmab_jax.__file__).parent),
        },
        "cells": [
            {"identity": cell.identity, "label": cell.label, "cell": asdict(cell)} for cell in cells
        ],
        "runs": list(earlier["runs"]) if earlier else [],
    }


@contextmanager
def _sigterm_as_interrupt() -> Iterator[None]:
    """SIGTERM stops as Ctrl-C does. Only the main thread can ask for that."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def interrupt(*_) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
