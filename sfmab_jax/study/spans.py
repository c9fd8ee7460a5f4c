"""Bookmarks of long blocks: where each part of a block stood after its last span of rounds.

    DIR/cells/IDENTITY/FIRST_NUMBER.PLACE.state

is the bookmark of the games of one batch: an .npz file with the carried arrays as ``0``, ``1``,
..., and the header of the block with ``rounds_done`` and a checksum. The next span replaces it, and
the finished block removes it. A damaged bookmark counts as missing: those games begin again.
"""

from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np

from sfmab_jax.engine.resume import Bookmarks
from sfmab_jax.study import blocks
from sfmab_jax.study.blocks import Block
from sfmab_jax.study.store import block_header, block_path, read_arrays, write_arrays

__all__ = ["make_bookmarks", "remove_bookmarks"]


def make_bookmarks(
    folder: Path, block: Block, say: Callable[[str], None], resumed: Callable[[int], None]
) -> Bookmarks:
    """Return the bookmarks of a block for `simulate`.

    Args:
      folder: the folder of the study.
      block: which block.
      say: told in single lines which bookmarks are damaged.
      resumed: told the rounds of games that an earlier run has played.
    """
    return Bookmarks(
        span_rounds=blocks.span_rounds(block.cell),
        read=partial(_read_place, folder, block, say),
        write=partial(_write_place, folder, block),
        resumed=resumed,
    )


def remove_bookmarks(folder: Path, block: Block) -> None:
    """Remove the bookmarks of a block that is now whole."""
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
            part = f"{block.cell.label}, seeds from {block.first_seed}, {place}"
            say(f"{part}: its bookmark is {found}; begun again")
        return None
    header, arrays = found
    return header["rounds_done"], [arrays[str(number)] for number in range(len(arrays))]


def _place_path(folder: Path, block: Block, place: str) -> Path:
    whole = block_path(folder, block)
    return whole.with_name(f"{whole.stem}.{place}.state")
