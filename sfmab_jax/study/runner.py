"""Play a study block by block; stopped at any moment, it continues where it was.

A study that is stopped, by Ctrl-C, SIGTERM, SIGKILL or a full disk, loses at most the block under
way, and of a long block no more than its last span of rounds. The engine plays a game the same
alone or in a batch, in one go or in spans, so the results are bitwise those of a run without a
stop.
"""

import itertools
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from sfmab_jax.results.result import Result
from sfmab_jax.study.blocks import Block, cut_into_blocks
from sfmab_jax.study.cells import Cell, plan_cells
from sfmab_jax.study.changes import WrittenBlocks, refuse_other_study, report_changes
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
from sfmab_jax.study.store import FORMAT, kept_blocks, read_block, write_json

__all__ = ["run_study"]

Work = list[list[Block]]  # the blocks of each cell
_POLL_SECONDS = 0.2  # between looks at the other processes


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
    with sigterm_as_interrupt():
        if process.number > 0:
            return play_share(folder, cells, process, say)
        try:
            return _lead(study, cells, folder, say, show, process)
        except BaseException as error:
            dismiss_others(folder, process, str(error) or "stopped")
            raise


def _lead(
    study: StudyFile, cells: tuple[Cell, ...], folder: Path, say, show, process: Process
) -> int:
    """Play as process 0, which is the only one if there are no others."""
    refuse_other_study(study, cells, folder)
    with hold(folder):
        check_unused(folder)
        clear_leftovers(folder)
        earlier = _read_earlier_manifest(folder, say)
        work = [cut_into_blocks(c, study.seeds, kept_blocks(folder, c)) for c in cells]
        if earlier is not None:
            report_changes(study, work, folder, earlier, say)
        manifest = _make_manifest(study, cells, earlier)
        written = WrittenBlocks(folder, itertools.chain(*work))
        run: dict[str, Any] = {"started": timestamp(), "ended": None, "blocks": 0, "seconds": 0.0}
        run["processes"] = process.total
        manifest["runs"].append(run)
        write_json(folder / "manifest.json", manifest)
        start = time.perf_counter()
        try:
            _play(cells, work, folder, say, show, process)
        except KeyboardInterrupt:
            raise KeyboardInterrupt(
                f"stopped after {written.count()} blocks, which are kept in {folder}; "
                "the same command continues"
            ) from None
        except OSError as error:
            raise OSError(
                f"{error}; the blocks before are kept in {folder}, and the same command continues"
            ) from None
        finally:
            run["blocks"] = written.count()
            run["ended"] = timestamp()
            run["seconds"] = round(time.perf_counter() - start, 3)
            with suppress(OSError):  # a full disk again; the blocks speak for themselves
                write_json(folder / "manifest.json", manifest)
    return run["blocks"]


def _play(
    cells: tuple[Cell, ...], work: Work, folder: Path, say, show: bool | None, process: Process
) -> None:
    """Play and write the missing blocks."""
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
            _collect(others, numbers, same_losses, display)
        while others.busy():
            display.wait(others.busy_names())
            time.sleep(_POLL_SECONDS)
            _collect(others, numbers, same_losses, display)
    if failures := others.failures():
        raise OSError("; ".join(failures))
    others.remove_files()


def _collect(
    others: OtherProcesses, numbers: dict[str, int], same_losses: SameLosses, display: Display
) -> None:
    """Count the blocks that other processes have finished meanwhile."""
    for block, result in others.collect():
        same_losses.check(block, result)
        number = numbers[block.cell.label]
        display.advance(number, block.num_rounds)
        display.add_result(number, result)


def _read_earlier_manifest(folder: Path, say) -> dict[str, Any] | None:
    try:
        return read_manifest(folder)
    except ValueError as error:
        say(f"{error}; a new one is written, blocks are kept")
        return None


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
            {"identity": cell.identity, "label": cell.label, "cell": cell.as_table()}
            for cell in cells
        ],
        "runs": list(earlier["runs"]) if earlier else [],
    }
