"""Blocks of many rounds, played span by span: what is carried over is kept beside the block.

    DIR/cells/IDENTITY/FIRST_NUMBER.PLACE.state

is where one vector of a block's games, or the measuring of its losses, stood at the end of its
last span: an .npz file with the carried arrays as ``0``, ``1``, ..., and a header as a block has,
with ``rounds_done`` and a checksum. The next span replaces it, the finished block removes it. One
that is damaged counts as not there: those games begin again.
"""

from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np

from sfmab_jax.bookmarks import Bookmarks
from sfmab_jax.study import blocks
from sfmab_jax.study.blocks import Block
from sfmab_jax.study.store import block_header, block_path, read_arrays, write_arrays

__all__ = ["forget_spans", "keep_spans"]


def keep_spans(
    folder: Path, block: Block, say: Callable[[str], None], resumed: Callable[[int], None]
) -> Bookmarks:
    """Bookmarks of a block for `simulate`.

    Args:
      folder, block: which.
      say: told of places that are damaged, in single lines.
      resumed: told the rounds of games that need not be played again.
    """
    return Bookmarks(
        span_rounds=blocks.span_rounds(block.cell),
        read=partial(_read_place, folder, block, say),
        write=partial(_write_place, folder, block),
        resumed=resumed,
    )


def forget_spans(folder: Path, block: Block) -> None:
    """Removes what was kept of a block that is now whole."""
    if blocks.span_rounds(block.cell) < block.cell.num_rounds:
        whole = block_path(folder, block)
        for path in whole.parent.glob(f"{whole.stem}.*.state"):
            path.unlink(missing_ok=True)


def _write_place(
    folder: Path, block: Block, place: str, rounds_done: int, arrays: list[np.ndarray]
) -> None:
    header = block_header(block) | {"place": place, "rounds_done": rounds_done}
    numbered = {str(number): array for number, array in enumerate(arrays)}
    write_arrays(_place_path(folder, block, place), header, numbered)


def _read_place(
    folder: Path, block: Block, say: Callable[[str], None], place: str
) -> tuple[int, list[np.ndarray]] | None:
    found = read_arrays(_place_path(folder, block, place), block_header(block) | {"place": place})
    if isinstance(found, str):
        if found != "missing":
            begun = f"{block.cell.label}, seeds from {block.first_seed}, {place}"
            say(f"{begun}: where it stood is {found}; begun again")
        return None
    header, arrays = found
    return header["rounds_done"], [arrays[str(number)] for number in range(len(arrays))]


def _place_path(folder: Path, block: Block, place: str) -> Path:
    whole = block_path(folder, block)
    return whole.with_name(f"{whole.stem}.{place}.state")
