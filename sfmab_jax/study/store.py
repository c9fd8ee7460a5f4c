"""A study's folder: blocks of results and a manifest; nothing in it is pickled.

    DIR/manifest.json                         the study's text, plan, versions, dates, commits
    DIR/cells/IDENTITY/cell.json              what determines the cell's numbers
    DIR/cells/IDENTITY/FIRST_NUMBER.npz       a block: seeds FIRST ... FIRST + NUMBER - 1
    DIR/cells/IDENTITY/FIRST_NUMBER.*.state   where an unfinished block stands, see `spans`
    DIR/lock                                  who wrote here last
    DIR/report/                               what `sfmab study report` made of it

A block is an .npz file with ``regret`` and ``expected_regret`` [K, S, C] (float64), the norms of
the losses [K, C] as ``norms/...``, and ``header``, a JSON text with the block's cell and seeds and
the SHA-256 of all other arrays. Files are written beside their place and renamed, so each is
complete or not there; a block that was damaged later does not match its checksum and counts as not
there. Equal blocks are equal files, to the byte.
"""

import hashlib
import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from sfmab_jax.certificate import Certificate
from sfmab_jax.norms import Norms
from sfmab_jax.results import Result, write_atomically
from sfmab_jax.study.blocks import Block
from sfmab_jax.study.plan import Cell

__all__ = [
    "FORMAT",
    "block_header",
    "block_path",
    "clear_leftovers",
    "read_arrays",
    "read_block",
    "read_manifest",
    "write_arrays",
    "write_block",
]

FORMAT = 1
# Fields of a block's norms that are arrays [K, C]; the others are the cell's.
_NORMS = ("l_1", "l_2", "l_inf", "s_inf", "best", "mean")


def block_path(folder: Path, block: Block) -> Path:
    name = f"{block.first_seed:08d}_{block.num_seeds:06d}.npz"
    return folder / "cells" / block.cell.identity / name


def write_durably(path: Path, write: Callable[[Any], Any]) -> None:
    """`write_atomically`, and on the disk when it returns."""

    def write_and_sync(file) -> None:
        write(file)
        file.flush()
        os.fsync(file.fileno())

    write_atomically(path, write_and_sync)


def write_json(path: Path, content: Any) -> None:
    text = json.dumps(content, indent=1, default=repr) + "\n"
    write_durably(path, lambda file: file.write(text.encode()))


def write_block(folder: Path, block: Block, result: Result) -> None:
    """Writes what was played of a block, complete or not at all."""
    path = block_path(folder, block)
    described = path.parent / "cell.json"
    if not described.exists():
        write_json(described, block.cell.determinants())
    arrays = {
        "regret": result.regret,
        "expected_regret": result.expected_regret,
        "rounds": np.asarray(result.rounds, np.int64),
        **{f"norms/{key}": getattr(result.norms, key) for key in _NORMS},
    }
    if result.certificate is not None:
        arrays |= {f"certificate/{k}": v for k, v in result.certificate._asdict().items()}
    write_arrays(path, block_header(block) | {"unit": result.unit}, arrays)


def read_block(folder: Path, block: Block) -> Result | str:
    """A block that is there and whole; otherwise what is wrong with it, "missing" or more."""
    found = read_arrays(block_path(folder, block), block_header(block))
    if isinstance(found, str):
        return found
    header, arrays = found
    return _result(block, arrays, header["unit"])


def write_arrays(path: Path, header: dict[str, Any], arrays: Mapping[str, Any]) -> None:
    """An .npz file of arrays and their header, with a checksum over both."""
    header = header | {"sha256": _checksum(header, arrays)}
    text = np.array(json.dumps(header, sort_keys=True))
    write_durably(path, lambda file: np.savez(file, header=text, **arrays))


def read_arrays(
    path: Path, expected: Mapping[str, Any]
) -> tuple[dict[str, Any], dict[str, np.ndarray]] | str:
    """(Header, arrays) of a whole file whose header agrees; otherwise what is wrong with it."""
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


def _result(block: Block, arrays: Mapping[str, np.ndarray], unit: float) -> Result:
    cell = block.cell
    norms: dict[str, Any] = {key: arrays[f"norms/{key}"] for key in _NORMS}
    known = {k[12:]: v for k, v in arrays.items() if k.startswith("certificate/")}
    return Result(
        name=cell.strategy,
        rounds=arrays["rounds"],
        regret=arrays["regret"],
        expected_regret=arrays["expected_regret"],
        norms=Norms(num_arms=cell.num_arms, rounds=arrays["rounds"], **norms),
        seed=cell.seed,
        first_seed=block.first_seed,
        losses=cell.losses,
        dtype=cell.dtype,
        seconds=float("nan"),
        unit=unit,
        certificate=Certificate(**known) if known else None,
    )


def read_manifest(folder: Path) -> dict[str, Any] | None:
    """The manifest of a study's folder; None if there is none."""
    path = folder / "manifest.json"
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise ValueError(f"{path} cannot be read: {error}") from None
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise ValueError(f"{path} is not the manifest of a study of format {FORMAT}")
    return content


def clear_leftovers(folder: Path) -> None:
    """Removes the unfinished files of a process that was killed. Only for who holds the lock."""
    for pattern in ("manifest.json*.tmp", "cells/*/*.tmp"):
        for path in folder.glob(pattern):
            path.unlink()


def cell_from_manifest(entry: Mapping[str, Any]) -> Cell:
    """A `Cell` as the manifest describes it, with the identity it was played under."""
    fields = dict(entry["cell"])
    if isinstance(fields["checkpoints"], list):
        fields["checkpoints"] = tuple(fields["checkpoints"])
    cell = Cell(**fields)
    # Another version of the software would give another identity: the stored one is the right one.
    cell.__dict__["identity"] = entry["identity"]
    return cell
