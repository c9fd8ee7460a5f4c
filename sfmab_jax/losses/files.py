"""Losses from files; .npy files are read a piece at a time."""

import csv
import os
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np

from sfmab_jax.losses.sequence import LossSequence, check_table, from_array

__all__ = ["FileTable", "from_file", "read_npy_header"]

# Bytes of a file that are checked at a time, as float64.
_PIECE = 2**24


@dataclass(frozen=True)
class FileTable:
    """Losses [K, T, n] in an .npy file, mapped into memory anew for every piece that is read.

    With one mapping for all, every page ever read would count as memory of the process.
    """

    path: Path
    shape: tuple[int, ...]

    def __getitem__(self, index: Any) -> np.ndarray:
        return np.array(self.mapped()[index])

    def mapped(self) -> np.ndarray:
        """Map the file as an array [K, T, n], without reading it."""
        return np.load(self.path, mmap_mode="r", allow_pickle=False).reshape(self.shape)

    def pieces(self) -> Iterator[tuple[int, int, np.ndarray]]:
        """Yield (sequence, first row, some rows [t, n]), in order."""
        num_sequences, num_rounds, num_arms = self.shape
        rows = max(1, _PIECE // (8 * num_arms))
        for k in range(num_sequences):
            for first in range(0, num_rounds, rows):
                yield k, first, self[k, first : first + rows]


def from_file(path: str | os.PathLike, key: str | None = None) -> LossSequence:
    """Make a sequence of the losses [T, n] or [K, T, n] in a file.

    The file is read once to check that every loss is finite. Files .npy are streamed and may
    exceed the memory.

    Args:
      path: .npy; .npz; .csv with a row for each round, a first line of names is skipped; .parquet
        likewise, if pandas can read it.
      key: the name of the array in an .npz file that has several.

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
    """Return [K, T, n] from the header, after checking that the file is complete."""
    with path.open("rb") as file:
        try:
            shape, dtype = read_npy_header(file)
        except (ValueError, KeyError, EOFError) as error:
            raise ValueError(f"{path} is not an .npy file: {error}") from None
        size = path.stat().st_size - file.tell()
    table_shape = check_table(f"{path} has", shape, dtype)
    needed = int(np.prod(shape, dtype=object)) * dtype.itemsize
    if size < needed:
        row = size // (dtype.itemsize * shape[-1]) + 1
        rows = int(np.prod(shape[:-1], dtype=object))
        raise ValueError(f"{path} is truncated: it ends in row {row} of {rows}")
    return table_shape


def read_npy_header(file: IO[bytes]) -> tuple[tuple[int, ...], np.dtype]:
    """Return the shape and dtype of an .npy file, read up to its data."""
    version = np.lib.format.read_magic(file)
    read_header = {
        (1, 0): np.lib.format.read_array_header_1_0,
        (2, 0): np.lib.format.read_array_header_2_0,
    }[version]
    shape, _, dtype = read_header(file)
    return shape, dtype


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
    except Exception as error:  # zipfile and zlib raise their own
        raise ValueError(f"{path} is not a complete .npz file: {error}") from None


def _read_csv(path: Path) -> np.ndarray:
    """Read a table with or without a row of names; a byte-order mark and quotes do no harm."""
    with path.open(encoding="utf-8-sig", errors="replace") as file:
        rows = csv.reader(file)
        try:
            cells = next((row for row in rows if row), [])
        except csv.Error as error:
            raise ValueError(f"{path}: {error}") from None
        if not cells:
            raise ValueError(f"{path} is empty; give a row for each round")
        numbers = [cell for cell in cells if _is_number(cell)]
        if numbers and len(numbers) < len(cells):
            other = next(cell for cell in cells if not _is_number(cell))
            raise ValueError(f"{path} has {other!r} in row 1; give numbers only, or names only")
        skipped = 0 if numbers else rows.line_num
        file.seek(0)
        try:
            with warnings.catch_warnings(action="error", category=UserWarning):
                return np.loadtxt(file, delimiter=",", skiprows=skipped, ndmin=2, quotechar='"')
        except UserWarning:
            raise ValueError(f"{path} has no numbers; give a row for each round") from None
        except ValueError as error:
            raise ValueError(f"{path}: {error}; give numbers with commas between them") from None


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _read_parquet(path: Path) -> np.ndarray:
    try:
        import pandas as pd

        return pd.read_parquet(path).to_numpy()
    except ImportError as error:
        raise ValueError(f"{path} needs pandas and pyarrow: pip install pandas pyarrow") from error
