"""What a study's folder holds already: of this study, of this study as it was, or of another."""

import itertools
import json
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from sfmab_jax.study.blocks import Block
from sfmab_jax.study.cells import Cell
from sfmab_jax.study.config import StudyFile
from sfmab_jax.study.manifest import read_manifest
from sfmab_jax.study.store import block_path

__all__ = ["WrittenBlocks", "refuse_other_study", "report_changes"]

_MOST_CHANGES = 12  # that are told one by one


class WrittenBlocks:
    """Counts the blocks that are written from now on, by any process, whatever interrupts it.

    Args:
      folder: the folder of the study.
      blocks: all blocks of the study.
    """

    def __init__(self, folder: Path, blocks: Iterable[Block]):
        self._before = {path: _number(path) for path in (block_path(folder, b) for b in blocks)}

    def count(self) -> int:
        now = ((_number(path), before) for path, before in self._before.items())
        return sum(number not in (None, before) for number, before in now)


def _number(path: Path) -> tuple[int, int] | None:
    """Return what tells a file from those before it at the same place; None if there is none."""
    try:
        state = path.stat()
    except OSError:
        return None
    return state.st_ino, state.st_mtime_ns


def refuse_other_study(study: StudyFile, cells: Sequence[Cell], folder: Path) -> None:
    """Refuse a folder with the results of another study.

    It is this study, perhaps changed, if they have a cell in common; or if its file has the same
    name, and it has the same title or plays a strategy on losses of the same labels.
    """
    try:
        held = read_manifest(folder)
    except ValueError:  # damaged, and written anew
        return
    if held is None:
        return
    if {entry["identity"] for entry in held["cells"]} & {cell.identity for cell in cells}:
        return
    if held["source"] == Path(study.source).name:
        labels = {(entry["cell"]["strategy"], entry["cell"]["losses"]) for entry in held["cells"]}
        if held["title"] == study.title or labels & {(c.strategy, c.losses) for c in cells}:
            return
    raise ValueError(
        f"{folder} holds another study, {held['title']!r} of {held['source']}, without a cell of "
        f"{study.source}; give another folder with --output, or remove this one"
    )


def report_changes(
    study: StudyFile,
    work: Sequence[Sequence[Block]],
    folder: Path,
    earlier: dict[str, Any],
    say: Callable[[str], None],
) -> None:
    """Say what of the study is as before, what is not and why.

    Args:
      study: as it is now.
      work: the blocks of each of its cells.
      folder: of its results.
      earlier: the manifest of its last run.
      say: told in single lines.
    """
    cells = [blocks[0].cell for blocks in work]
    before = {entry["identity"]: entry["label"] for entry in earlier["cells"]}
    wanted = {cell.identity for cell in cells}
    fresh = [cell for cell in cells if cell.identity not in before]
    dropped = {label: name for name, label in before.items() if name not in wanted}
    same_seeds = earlier["seeds"] == study.seeds
    if not fresh and not dropped and same_seeds:
        return
    kept = [[b for b in blocks if block_path(folder, b).exists()] for blocks in work]
    games = sum(block.num_games for block in itertools.chain(*kept))
    wanted_games = sum(block.num_games for block in itertools.chain(*work))
    say(
        f"the study has changed: {len(cells) - len(fresh)} of {len(cells)} cells are as before, "
        f"and {games:,} of {wanted_games:,} games are there"
    )
    lines = [] if same_seeds else [f"changed: seeds was {earlier['seeds']}"]
    rounds = {entry["cell"]["num_rounds"] for entry in earlier["cells"]}
    if not {cell.num_rounds for cell in fresh} <= rounds:
        before_rounds = ", ".join(f"{number:,}" for number in sorted(rounds))
        lines.append(
            f"changed: rounds was {before_rounds}; games of more rounds begin anew, as nothing is "
            "kept of where a finished game stood"
        )
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
    differing = [
        f"{key} has changed" if key.startswith("file ") else f"{key} was {old.get(key)}"
        for key in new
        if old.get(key) != new[key]
    ]
    return f" ({'; '.join(differing)})"
