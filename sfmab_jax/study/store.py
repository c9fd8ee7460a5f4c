"""A study's folder: blocks of results and a manifest; nothing in it is pickled.

    DIR/manifest.json                         the study's text, cells, versions, dates, commits;
                                              see `manifest`
    DIR/cells/IDENTITY/cell.json              what determines the cell's numbers
    DIR/cells/IDENTITY/FIRST_NUMBER.npz       a block: seeds FIRST ... FIRST + NUMBER - 1, which
                                              are sequences where each has its own losses
    DIR/cells/IDENTITY/FIRST_NUMBER.*.state   bookmarks of an unfinished block, see `spans`
    DIR/lock                                  who wrote here last
    DIR/report/                               written by `sfmab study report`

A block is an .npz file with ``regret`` and ``expected_regret`` [K, S, C] (float64), the norms of
the losses [K, C] as ``norms/...``, ``kept/pseudo_regret`` [K, S, C] where the study asks for it,
the ``identity`` of the strategy, and ``header``, a JSON text with the block's cell and seeds and
the SHA-256 of all other arrays. Files are written beside their
place and renamed, so that each is complete or missing; a block that was damaged later does not
match its checksum and counts as missing. Equal blocks are equal files, to the byte.
"""

import hashlib
import json
import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from sfmab_jax.losses.sequence import Sees
from sfmab_jax.results.certificate import Certificate
from sfmab_jax.results.files import write_atomically
from sfmab_jax.results.identity import read_identity, stored_identity
from sfmab_jax.results.norms import Norms
from sfmab_jax.results.result import Result
from sfmab_jax.study.blocks import Block
from sfmab_jax.study.cells import Cell

__all__ = [
    "FORMAT",
    "block_header",
    "block_path",
    "kept_blocks",
    "read_arrays",
    "read_block",
    "write_arrays",
    "write_block",
    "write_durably",
    "write_json",
]

FORMAT = 1
# Fields of a block's norms that are arrays [K, C]; the others are the cell's.
_NORMS = ("l_1", "l_2", "l_inf", "s_inf", "best", "mean", "smallest", "best_arm")


def block_path(folder: Path, block: Block) -> Path:
    name = f"{block.first_seed:08d}_{block.num_seeds:06d}.npz"
    return folder / "cells" / block.cell.identity / name


def kept_blocks(folder: Path, cell: Cell) -> list[tuple[int, int]]:
    """Return (first seed, number of seeds) of a cell's blocks on disk, damaged or not."""
    names = [path.stem for path in (folder / "cells" / cell.identity).glob("*_*.npz")]
    found = [re.fullmatch(r"(\d{8,})_(\d{6,})", name) for name in names]
    pairs = [(int(match[1]), int(match[2])) for match in found if match]
    return sorted(pair for pair in pairs if pair[1] > 0)


def write_durably(path: Path, write: Callable[[Any], Any]) -> None:
    """Write a file as `write_atomically` does, and return when it is on the disk."""

    def write_and_sync(file) -> None:
        write(file)
        file.flush()
        os.fsync(file.fileno())

    write_atomically(path, write_and_sync)


def write_json(path: Path, content: Any) -> None:
    text = json.dumps(content, indent=1, default=repr) + "\n"
    write_durably(path, lambda file: file.write(text.encode()))


def write_block(folder: Path, block: Block, result: Result) -> None:
    """Write the result of a block, complete or not at all."""
    path = block_path(folder, block)
    description = path.parent / "cell.json"
    if not description.exists():
        write_json(description, block.cell.determinants())
    arrays = {
        "regret": result.regret,
        "expected_regret": result.expected_regret,
        "rounds": np.asarray(result.rounds, np.int64),
        **{f"norms/{key}": getattr(result.norms, key) for key in _NORMS},
        "identity": stored_identity(result.identity),
    }
    arrays |= {f"kept/{key}": array for key, array in result.kept.items()}
    if result.certificate is not None:
        arrays |= {f"certificate/{k}": v for k, v in result.certificate._asdict().items()}
    write_arrays(path, block_header(block) | {"unit": result.unit, "sees": result.sees}, arrays)


def read_block(folder: Path, block: Block) -> Result | str:
    """Return the result of a block; if it is missing or damaged, say so in words."""
    found = read_arrays(block_path(folder, block), block_header(block))
    if isinstance(found, str):
        return found
    header, arrays = found
    games = (block.games.num_sequences, block.games.num_seeds)
    if "regret" in arrays and arrays["regret"].shape[:2] != games:
        return "of other games"
    try:
        return _result(block, arrays, header["unit"], header.get("sees", "nothing"))
    except (KeyError, TypeError) as error:  # whole, but not what `write_block` writes
        return f"damaged: no {error}"


def write_arrays(path: Path, header: dict[str, Any], arrays: Mapping[str, Any]) -> None:
    """Write arrays and their header as an .npz file, with a checksum over both."""
    header = header | {"sha256": _checksum(header, arrays)}
    text = np.array(json.dumps(header, sort_keys=True))
    write_durably(path, lambda file: np.savez(file, header=text, **arrays))


def read_arrays(
    path: Path, expected: Mapping[str, Any]
) -> tuple[dict[str, Any], dict[str, np.ndarray]] | str:
    """Return the header and the arrays of a file, or what is wrong with it, in words.

    Args:
      path: an .npz file that `write_arrays` wrote.
      expected: entries that its header must have.
    """
    try:
        with open(path, "rb") as raw, np.load(raw, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
        header = json.loads(str(arrays.pop("header")))
    except FileNotFoundError:
        return "missing"
    except Exception as error:  # whatever a damaged file makes the readers of zip and npy raise
        return f"damaged: {type(error).__name__}"
    if not isinstance(header, dict):
        return "damaged: no header"
    stored = header.pop("sha256", None)
    if stored != _checksum(header, arrays):
        return "damaged: wrong checksum"
    if not expected.items() <= header.items():
        return "of another block"
    return header, arrays


def block_header(block: Block) -> dict[str, Any]:
    return {
        "format": FORMAT,
        "cell": block.cell.identity,
        "first_seed": block.first_seed,
        "num_seeds": block.num_seeds,
    }


def _checksum(header: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> str:
    digest = hashlib.sha256(json.dumps(header, sort_keys=True).encode())
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name])
        digest.update(f"{name} {array.dtype.str} {array.shape}".encode())
        digest.update(array.tobytes())
    return digest.hexdigest()


def _result(block: Block, arrays: Mapping[str, np.ndarray], unit: float, sees: Sees) -> Result:
    cell = block.cell
    # Blocks of earlier versions have neither the smallest loss, the best arm nor what was played.
    unknown = {"smallest": np.full_like(arrays["norms/l_inf"], np.nan), "best_arm": None}
    norms: dict[str, Any] = {
        key: arrays.get(f"norms/{key}", unknown[key]) if key in unknown else arrays[f"norms/{key}"]
        for key in _NORMS
    }

    def within(prefix: str) -> dict[str, np.ndarray]:
        return {k.removeprefix(prefix): v for k, v in arrays.items() if k.startswith(prefix)}

    certificate = within("certificate/")
    return Result(
        name=cell.strategy,
        rounds=arrays["rounds"],
        regret=arrays["regret"],
        expected_regret=arrays["expected_regret"],
        norms=Norms(num_arms=cell.num_arms, rounds=arrays["rounds"], **norms),
        seed=cell.seed,
        first_seed=block.games.first_seed,
        first_sequence=block.games.first_sequence,
        losses=cell.losses,
        dtype=cell.dtype,
        seconds=float("nan"),
        unit=unit,
        sees=sees,
        saved_identity=read_identity(arrays["identity"]) if "identity" in arrays else None,
        certificate=Certificate(**certificate) if certificate else None,
        kept=within("kept/"),
    )
