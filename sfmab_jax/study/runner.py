"""Plays a study block after block; stopped at any moment, it continues where it was.

What is stopped, by Ctrl-C, SIGTERM, SIGKILL or a full disk, loses the block under way at most, and
of a long block no more than its last span of rounds. The engine plays a game the same alone or in
a batch, in one go or in spans, so the results are bitwise those of a run without a stop.
"""

import itertools
import json
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

import sfmab_jax
from sfmab_jax.hosts import ALONE, Process
from sfmab_jax.results import Result
from sfmab_jax.study.blocks import Block, blocks
from sfmab_jax.study.config import StudyFile
from sfmab_jax.study.display import Display
from sfmab_jax.study.lock import hold
from sfmab_jax.study.plan import Cell, plan_cells
from sfmab_jax.study.playing import play_block, sigterm_as_interrupt
from sfmab_jax.study.provenance import commit_of, now, platform_now, versions_now
from sfmab_jax.study.spans import forget_spans
from sfmab_jax.study.store import (
    FORMAT,
    clear_leftovers,
    read_block,
    read_manifest,
    write_json,
)
from sfmab_jax.study.together import Others, assist, check_nobody_else, refuse, share_out

__all__ = ["run_study"]

Work = list[list[Block]]  # the blocks of each cell
_POLL = 0.2  # seconds between looks at the others

_MOST_CHANGES = 12  # told of one by one

_OWN_FILES = ("manifest.json", "lock", "cells", "report", "processes")


def run_study(
    study: StudyFile,
    folder: Path,
    say: Callable[[str], None] = lambda line: None,
    show: bool | None = False,
    process: Process = ALONE,
) -> int:
    """Plays what is not yet there of a study; returns the number of blocks played now.

    Process 0 counts the blocks of all processes and ends when all have ended, the others count
    their own, see `together`.

    Args:
      study: the checked study file.
      folder: where its blocks are kept, see `store`.
      say: told in single lines what is reused, changed or damaged.
      show: whether to draw progress bars; None draws them in a terminal and lines elsewhere.
      process: which of several processes this one is.
    """
    cells = plan_cells(study)
    _check_folder(folder)
    work = [blocks(cell, study.seeds) for cell in cells]
    with sigterm_as_interrupt():
        if process.number > 0:
            return assist(folder, itertools.chain(*work), process, say)
        try:
            return _lead(study, cells, work, folder, say, show, process)
        except BaseException as error:
            refuse(folder, process, str(error) or "stopped")
            raise


def _lead(
    study: StudyFile, cells: tuple[Cell, ...], work: Work, folder: Path, say, show, process: Process
) -> int:
    """What process 0 does, and the only one if there are no others."""
    with hold(folder):
        check_nobody_else(folder)
        clear_leftovers(folder)
        earlier = _earlier_manifest(folder, say)
        if earlier is not None:
            _tell_changes(folder, cells, earlier, say)
        manifest = _manifest(study, cells, earlier)
        run: dict[str, Any] = {"started": now(), "ended": None, "blocks": 0, "seconds": 0.0}
        run["processes"] = process.total
        manifest["runs"].append(run)
        write_json(folder / "manifest.json", manifest)
        start = time.perf_counter()
        try:
            for _ in _play(cells, work, folder, say, show, process):
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
    cells: tuple[Cell, ...], work: Work, folder: Path, say, show: bool | None, process: Process
) -> Iterator[Block]:
    """Plays and writes the blocks that are not there, and yields each; all processes do theirs."""
    place = {cell.label: number for number, cell in enumerate(cells)}
    totals = [sum(block.num_rounds for block in mine) for mine in work]
    with Display(cells, totals, [sum(b.num_seeds for b in mine) for mine in work], show) as display:
        missing = []
        for block in itertools.chain(*work):
            number = place[block.cell.label]
            kept = read_block(folder, block)
            if isinstance(kept, Result):
                forget_spans(folder, block)
                display.found(number, block.num_rounds)
                display.count(number, kept)
                continue
            if kept != "missing":
                say(f"{block.cell.label}, seeds from {block.first_seed}: {kept}; played again")
            missing.append((block.first_seed, number, block))
        # The first seeds of all cells first: what is there early shows all of the study.
        ordered = [block for _, _, block in sorted(missing, key=lambda item: item[:2])]
        shares = share_out(ordered, process.total)
        others = Others(folder, process, shares)
        for block in shares[process.number]:
            number = place[block.cell.label]
            display.begin(number)
            moved = (partial(display.advance, number), partial(display.found, number))
            display.count(number, play_block(folder, block, say, *moved))
            yield block
            yield from _of_others(others, place, display)
        while others.busy():
            display.wait(others.waited_for())
            time.sleep(_POLL)
            yield from _of_others(others, place, display)
    if lost := others.losses():
        raise OSError("; ".join(lost))
    others.forget()


def _of_others(others: Others, place: dict[str, int], display: Display) -> Iterator[Block]:
    """The blocks that other processes have finished meanwhile."""
    for block, result in others.finished():
        number = place[block.cell.label]
        display.advance(number, block.num_rounds)
        display.count(number, result)
        yield block


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
    lines = []
    for cell in fresh:
        other = dropped.pop(cell.label, None)
        kind = "new" if other is None else "changed"
        lines.append(f"{kind}: {cell.label}{_why(folder, cell, other)}")
    lines += [f"no longer asked for, left on disk: {label}" for label in dropped]
    for line in lines[:_MOST_CHANGES]:
        say(line)
    if len(lines) > _MOST_CHANGES:
        say(f"... and {len(lines) - _MOST_CHANGES} more changes")


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
