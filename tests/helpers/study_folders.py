"""Folders of studies for tests: one to play, its blocks, damage, a full disk and a stop."""

import errno
import os
from pathlib import Path

import pytest

from sfmab_jax.study.config import parse_study
from sfmab_jax.study.runner import run_study

# Four cells, quick to compile.
FOUR_SCALES = """
arms = 3
rounds = 64
seeds = 24
sequences = 2
checkpoints = 5
[strategies.exp3_ix]
[losses.dense]
family = "uniform"
scale = [0.5, 1.0, 2.0, 4.0]
"""


class StoppedError(Exception):
    """Raised in place of a kill."""


def play_in_blocks(folder: Path, seeds: int) -> Path:
    """Play `FOUR_SCALES` in blocks of so many seeds; return the folder."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sfmab_jax.study.blocks.block_seeds", lambda cell: seeds)
        assert run_study(parse_study(FOUR_SCALES, "study.toml"), folder) == 4 * -(-24 // seeds)
    return folder


def block_files(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.glob("cells/*/*.npz")}


def damage_file(damage: str, path: Path, other: Path) -> None:
    """Truncated, emptied, one bit flipped, removed, or swapped for the other file."""
    content = bytearray(path.read_bytes())
    if damage == "truncated":
        path.write_bytes(content[: len(content) // 2])
    elif damage == "emptied":
        path.write_bytes(b"")
    elif damage == "flipped":
        content[len(content) // 2] ^= 1
        path.write_bytes(content)
    elif damage == "removed":
        path.unlink()
    else:
        path.write_bytes(other.read_bytes())


def fill_disk(patch: pytest.MonkeyPatch, after: int) -> None:
    """No space is left once so many files have been written."""
    sync, written = os.fsync, []

    def fsync(handle):
        if len(written) >= after:
            raise OSError(errno.ENOSPC, "No space left on device")
        written.append(handle)
        sync(handle)

    patch.setattr(os, "fsync", fsync)
