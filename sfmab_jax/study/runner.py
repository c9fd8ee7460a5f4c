"""Play a study block by block; stopped at any moment, it continues where it was.

A study that is stopped, by Ctrl-C, SIGTERM, SIGKILL or a full disk, loses at most the block under
way, and of a long block no more than its last span of rounds. The engine plays a game the same
alone or in a batch, in one go or in spans, so the results are bitwise those of a run without a
stop.
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

from sfmab_jax.results.result import Result
from sfmab_jax.study.blocks import Block, cut_into_blocks
from sfmab_jax.study.cells import Cell, plan_cells
from sfmab_jax.study.config import StudyFile
from sfmab_jax.study.display import Display
from sfmab_jax.study.folder import check_output, clear_leftovers
from sfmab_jax.study.hosts import ALONE, Process
from sfmab_jax.study.lock import hold
from sfmab_jax.study.manifest import read_manifest
from sfmab_jax.study.play_block import play_block, sigterm_as_interrupt
from sfmab_jax.study.processes import (
    OtherProcesses,
    check_unused,
    dismiss_others,
    play_share,
    share_out,
)
from sfmab_jax.study.provenance import commit_of, describe_platform, software_versions, timestamp
from sfmab_jax.study.same_losses import SameLosses
from sfmab_jax.study.spans import remove_bookmarks
from sfmab_jax.study.store import FORMAT, read_block, write_json

__all__ = ["run_study"]

Work = list[list[Block]]  # the blocks of each cell
_POLL_SECONDS = 0.2  # between looks at the other processes
_MOST_CHANGES = 12  # that are told one by one


def run_study(
    study: StudyFile,
    folder: Path,
    say: Callable[[str], None] = lambda line: None,
    show: bool | None = False,
    process: Process = ALONE,
) -> int:
    """Play the missing blocks of a study; return the number of blocks played now.

    Process 0 counts the blocks of all processes and ends when all have ended; the others count
    their own, see `processes`.

    Args:
      study: the checked study file.
      folder: the folder of its results, see `store`.
      say: told in single lines what is reused, changed or damaged.
      show: whether to draw progress bars; None draws them in a terminal and lines elsewhere.
      process: which of several processes this one is.
    """
    cells = plan_cells(study)
    check_output(folder)
    work = [cut_into_blocks(cell, study.seeds) for cell in cells]
    with sigterm_as_interrupt():
        if process.number > 0:
            return play_share(folder, itertools.chain(*work), process, say)
        try:
            return _lead(study, cells, work, folder, say, show, process)
        except BaseException as error:
            dismiss_others(folder, process, str(error) or "stopped")
            raise


def _lead(
    study: StudyFile, cells: tuple[Cell, ...], work: Work, folder: Path, say, show, process: Process
) -> int:
    """Play as process 0, which is the only one if there are no others."""
    with hold(folder):
        check_unused(folder)
        clear_leftovers(folder)
        earlier = _read_earlier_manifest(folder, say)
        if earlier is not None:
            _report_changes(folder, cells, earlier, say)
        manifest = _make_manifest(study, cells, earlier)
        run: dict[str, Any] = {"started": timestamp(), "ended": None, "blocks": 0, "seconds": 0.0}
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
            run["ended"] = timestamp()
            run["seconds"] = round(time.perf_counter() - start, 3)
            with suppress(OSError):  # a full disk again; the blocks speak for themselves
                write_json(folder / "manifest.json", manifest)
    return run["blocks"]


def _play(
    cells: tuple[Cell, ...], work: Work, folder: Path, say, show: bool | None, process: Process
) -> Iterator[Block]:
    """Play and write the missing blocks, and yield each, also those of other processes."""
    numbers = {cell.label: number for number, cell in enumerate(cells)}
    rounds = [sum(block.num_rounds for block in blocks) for blocks in work]
    seeds = [sum(block.num_seeds for block in blocks) for blocks in work]
    same_losses = SameLosses(folder)
    with Display(cells, rounds, seeds, show) as display:
        missing = []
        for block in itertools.chain(*work):
            number = numbers[block.cell.label]
            stored = read_block(folder, block)
            if isinstance(stored, Result):
                same_losses.check(block, stored)
                remove_bookmarks(folder, block)
                display.skip(number, block.num_rounds)
                display.add_result(number, stored)
                continue
            if stored != "missing":
                say(f"{block.cell.label}, seeds from {block.first_seed}: {stored}; played again")
            missing.append((block.first_seed, number, block))
        # The first seeds of all cells first, so that early results show all of the study.
        ordered = [block for _, _, block in sorted(missing, key=lambda item: item[:2])]
        shares = share_out(ordered, process.total)
        others = OtherProcesses(folder, process, shares)
        for block in shares[process.number]:
            number = numbers[block.cell.label]
            display.begin(number)
            advance, skip = partial(display.advance, number), partial(display.skip, number)
            result = play_block(folder, block, same_losses, say, advance, skip)
            display.add_result(number, result)
            yield block
            yield from _collect(others, numbers, same_losses, display)
        while others.busy():
            display.wait(others.busy_names())
            time.sleep(_POLL_SECONDS)
            yield from _collect(others, numbers, same_losses, display)
    if failures := others.failures():
        raise OSError("; ".join(failures))
    others.remove_files()


def _collect(
    others: OtherProcesses, numbers: dict[str, int], same_losses: SameLosses, display: Display
) -> Iterator[Block]:
    """Yield the blocks that other processes have finished meanwhile."""
    for block, result in others.collect():
        same_losses.check(block, result)
        number = numbers[block.cell.label]
        display.advance(number, block.num_rounds)
        display.add_result(number, result)
        yield block


def _read_earlier_manifest(folder: Path, say) -> dict[str, Any] | None:
    try:
        return read_manifest(folder)
    except ValueError as error:
        say(f"{error}; a new one is written, blocks are kept")
        return None


def _report_changes(folder: Path, cells: tuple[Cell, ...], earlier: dict[str, Any], say) -> None:
    """Say which cells are the same as before, which are not and why."""
    before = {entry["identity"]: entry["label"] for entry in earlier["cells"]}
    wanted = {cell.identity for cell in cells}
    fresh = [cell for cell in cells if cell.identity not in before]
    dropped = {label: name for name, label in before.items() if name not in wanted}
    if not fresh and not dropped:
        return
    say(f"the study has changed: {len(cells) - len(fresh)} of {len(cells)} cells are as before")
    lines = []
    for cell in fresh:
        old = dropped.pop(cell.label, None)
        kind = "new" if old is None else "changed"
        lines.append(f"{kind}: {cell.label}{_describe_change(folder, cell, old)}")
    lines += [f"no longer asked for, left on disk: {label}" for label in dropped]
    for line in lines[:_MOST_CHANGES]:
        say(line)
    if len(lines) > _MOST_CHANGES:
        say(f"... and {len(lines) - _MOST_CHANGES} more changes")


def _describe_change(folder: Path, cell: Cell, identity: str | None) -> str:
    """Return what differs from the cell of this identity, which had the same label before."""
    try:
        old = dict(json.loads((folder / "cells" / str(identity) / "cell.json").read_text()))
    except (OSError, ValueError, TypeError, RecursionError):  # missing or damaged
        return ""
    new = json.loads(json.dumps(cell.determinants(), default=repr))
    differing = [f"{key} was {old.get(key)}" for key in new if old.get(key) != new[key]]
    return f" ({'; '.join(differing)})"


def _make_manifest(
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
        "created": earlier["created"] if earlier else timestamp(),
        "versions": software_versions(),
        "platform": describe_platform(),
        "commits": {
            "study": commit_of(Path(study.source).resolve().parent),
            "sfmab_jax": commit_of(Path(__file__).parent),
        },
        "cells": [
            {"identity": cell.identity, "label": cell.label, "cell": asdict(cell)} for cell in cells
        ],
        "runs": list(earlier["runs"]) if earlier else [],
    }
