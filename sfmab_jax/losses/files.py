"""Losses from files, read a piece at a time."""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from sfmab_jax.losses.base import LossSequence, from_array

__all__ = ["FileTable", "from_file"]

# Bytes of a file that are looked at together.
_PIECE = 2**24


@dataclass(frozen=True)
class FileTable:
    """Losses [K, T, n] in an .npy file, mapped anew for every piece that is read.

    A mapping that stayed would count every page ever read as the process's own.
    """

    path: Path
    shape: tuple[int, ...]

    def __getitem__(self, index: Any) -> np.ndarray:
        return np.array(self.mapped()[index])

    def mapped(self) -> np.ndarray:
        """The whole file as an array [K, T, n], none of it read yet."""
        return np.load(self.path, mmap_mode="r", allow_pickle=False).reshape(self.shape)

    def pieces(self) -> Iterator[tuple[int, int, np.ndarray]]:
        """(sequence, first row, some rows [t, n]), in order."""
        num_sequences, num_rounds, num_arms = self.shape
        rows = max(1, _PIECE // (8 * num_arms))
        for k in range(num_sequences):
            for first in range(0, num_rounds, rows):
                yield k, first, self[k, first : first + rows]


def from_file(path: str | os.PathLike, key: str | None = None) -> LossSequence:
    """Losses [T, n] or [K, T, n] from a file; .npy files are streamed and may exceed the memory.

    The file is read through once to see that every loss is finite.

    Args:
      path: .npy; .npz with one array, or the one named ``key``; .csv with a row for each round,
        a first line of names is passed over; .parquet likewise, if pandas can read it.
      key: which array of an .npz file.

    Raises:
      ValueError: if the file is truncated, misshapen or has a loss that is not finite; it names
        the file and the row, counted from 1.
    """
    path = Path(path)
    readers = {".npz": _read_npz, ".csv": _read_csv, ".parquet": _read_parquet}
    if path.suffix != ".npy" and path.suffix not in readers:
        raise ValueError(f"{path} is of no known kind; give {', '.join(['.npy', *readers])}")
    if not path.is_file():
        raise ValueError(f"{path} does not exist, or is not a file")
    if key is not None and path.suffix != ".npz":
        raise ValueError(f"key is {key!r}; only .npz files have named arrays")
    if path.suffix == ".npy":
        return _from_npy(path)
    table = _read_npz(path, key) if path.suffix == ".npz" else readers[path.suffix](path)
    try:
        return from_array(table, name=path.name)
    except ValueError as error:
        raise ValueError(f"{path}: {str(error).replace('round', 'row', 1)}") from None


def _from_npy(path: Path) -> LossSequence:
    table = FileTable(path, _checked_shape(path))
    largest = 0.0
    for k, first, rows in table.pieces():
        if not np.isfinite(rows).all():
            t, i = np.argwhere(~np.isfinite(rows))[0]
            raise ValueError(
                f"{path} holds {rows[t, i]} at sequence {k}, row {first + t + 1}, arm {i}; every "
                "loss must be finite"
            )
        largest = max(largest, float(np.max(np.abs(rows.astype(np.float64)))))
    return LossSequence(
        num_arms=table.shape[2],
        magnitude=largest if largest > 0 else 1.0,
        table=table,
        name=path.name,
    )


def _checked_shape(path: Path) -> tuple[int, ...]:
    """[K, T, n] from the header, after checking that the file has all of it."""
    with path.open("rb") as file:
        try:
            version = np.lib.format.read_magic(file)
            read_header = {
                (1, 0): np.lib.format.read_array_header_1_0,
                (2, 0): np.lib.format.read_array_header_2_0,
            }[version]
            shape, _, dtype = read_header(file)
        except (ValueError, KeyError, EOFError) as error:
            raise ValueError(f"{path} is not an .npy file: {error}") from None
        present = path.stat().st_size - file.tell()
    if dtype.kind not in "fiub":
        raise ValueError(f"{path} has dtype {dtype}; give real numbers")
    if len(shape) not in (2, 3) or 0 in shape:
        raise ValueError(
            f"{path} has shape {shape}; give [rounds, arms] or [sequences, rounds, arms], none of "
            "them empty"
        )
    needed = int(np.prod(shape, dtype=object)) * dtype.itemsize
    if present < needed:
        row = present // (dtype.itemsize * shape[-1]) + 1
        rows = int(np.prod(shape[:-1], dtype=object))
        raise ValueError(f"{path} is truncated: it ends in row {row} of {rows}")
    return (1, *shape) if len(shape) == 2 else tuple(shape)


def _read_npz(path: Path, key: str | None = None) -> np.ndarray:
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as stored:
            names = stored.files
            if key is None and len(names) != 1:
                raise ValueError(f"{path} has {len(names)} arrays; choose one of {names} by key=")
            if key is not None and key not in names:
                raise ValueError(f"{path} has no array {key!r}; choose one of {names}")
            return stored[names[0] if key is None else key]
    except ValueError as error:
        raise ValueError(str(error) if str(path) in str(error) else f"{path}: {error}") from None
    except Exception as error:  # zipfile and zlib have their own
        raise ValueError(f"{path} is not a complete .npz file: {error}") from None


def _read_csv(path: Path) -> np.ndarray:
    with path.open() as file:
        first = file.readline().split(",")
    if first == [""]:
        raise ValueError(f"{path} is empty; give a row for each round")
    try:
        [float(cell) for cell in first]
        names = 0
    except ValueError:
        names = 1
    try:
        return np.loadtxt(path, delimiter=",", skiprows=names, ndmin=2)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None


def _read_parquet(path: Path) -> np.ndarray:
    try:
        import pandas as pd

        return pd.read_parquet(path).to_numpy()
    except ImportError as error:
        raise ValueError(f"{path} needs pandas and pyarrow: pip install pandas pyarrow") from error
