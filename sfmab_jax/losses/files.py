"""Losses from files; .npy files are read a piece at a time."""

import os
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np

from sfmab_jax.losses.columns import (
    Column,
    check_counting,
    choose_columns,
    label,
    refuse_columns,
)
from sfmab_jax.losses.sequence import LossSequence, check_table, from_array, place_of_loss
from sfmab_jax.losses.text_tables import read_text_table

__all__ = ["FileTable", "from_file", "read_npy_header"]

# The kinds of text files, with what stands between their cells; then all kinds.
_SEPARATORS = {".csv": ",", ".csv.gz": ",", ".tsv": "\t", ".tsv.gz": "\t"}
_KINDS = [".npy", ".npz", *_SEPARATORS, ".parquet"]
# Bytes of a file that are checked at a time, as float64.
_PIECE = 2**24


@dataclass(frozen=True)
class FileTable:
    """Losses [K, T, n] in an .npy file, mapped into memory anew for every piece that is read.

    With one mapping for all, every page ever read would count as memory of the process.

    Attributes:
      path: of the file.
      shape: [K, T, n].
      transpose: whether the file has the arms before the rounds.
    """

    path: Path
    shape: tuple[int, ...]
    transpose: bool = False

    def __getitem__(self, index: Any) -> np.ndarray:
        return np.array(self.mapped()[index], order="C")

    def mapped(self) -> np.ndarray:
        """Map the file as an array [K, T, n], without reading it."""
        stored = np.load(self.path, mmap_mode="r", allow_pickle=False)
        return (_turned(stored) if self.transpose else stored).reshape(self.shape)

    def pieces(self) -> Iterator[tuple[int, int, np.ndarray]]:
        """Yield (sequence, first row, some rows [t, n]), in order."""
        num_sequences, num_rounds, num_arms = self.shape
        rows = max(1, _PIECE // (8 * num_arms))
        for k in range(num_sequences):
            for first in range(0, num_rounds, rows):
                yield k, first, self[k, first : first + rows]


def from_file(
    path: str | os.PathLike,
    key: str | None = None,
    *,
    columns: Iterable[Column] | None = None,
    index: Column | None = None,
    separator: str | None = None,
    transpose: bool = False,
) -> LossSequence:
    """Make a sequence of the losses [T, n] or [K, T, n] in a file.

    The file is read once to check that every loss is finite. Files .npy are streamed and may
    exceed the memory. Warns if there are more arms than rounds.

    Args:
      path: .npy; .npz; .csv, .tsv, .csv.gz or .tsv.gz with a row for each round and a column for
        each arm, perhaps with the names of the columns first; .parquet likewise, if pandas can
        read it.
      key: the name of the array in an .npz file that has several.
      columns: the columns that are arms, in their order, by name or by number, counted from 0; by
        default all but ``index``. For files of text and .parquet.
      index: the column that is no arm, such as a date or the number of the round, by name or
        number. For files of text and .parquet.
      separator: the character between the cells of a text file; by default "," in .csv and a tab
        in .tsv.
      transpose: whether the file has a row for each arm and a column for each round; ``columns``
        and ``index`` then still are columns of the file.

    Raises:
      ValueError: if the file is truncated, misshapen, has a loss that is not finite or a column
        that is no arm; it names the file and the row, counted from 1, and the option that helps.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "mine.csv"
    ...     _ = path.write_text("day;left;right\\n2024-01-01;1;0\\n2024-01-02;0;-3\\n")
    ...     losses = from_file(path, separator=";", index="day")
    >>> losses.table[0].tolist()
    [[1.0, 0.0], [0.0, -3.0]]
    """
    path = Path(path)
    kind = next((kind for kind in _KINDS if path.name.lower().endswith(kind)), None)
    if kind is None:
        raise ValueError(f"{path} is of no known kind; give {', '.join(_KINDS)}")
    if not path.is_file():
        raise ValueError(f"{path} does not exist, or is not a file")
    if key is not None and kind != ".npz":
        raise ValueError(f"key is {key!r}; only .npz files have named arrays")
    if kind in (".npy", ".npz") and not (columns is None and index is None):
        option = f"index is {index!r}" if columns is None else f"columns is {columns!r}"
        raise ValueError(
            f"{option}; {kind} files hold arrays: choose arms by from_array(losses[..., [0, 2]])"
        )
    if separator is not None and kind not in _SEPARATORS:
        raise ValueError(f"separator is {separator!r}; only .csv and .tsv files have one")
    if not isinstance(transpose, bool):
        raise ValueError(f"transpose is {transpose!r}; give True or False")
    if kind == ".npy":
        losses = _from_npy(path, transpose)
    else:
        if kind == ".npz":
            table = _read_npz(path, key)
        elif kind == ".parquet":
            table = _read_parquet(path, columns, index)
        else:
            table = read_text_table(
                path, _checked_separator(separator, _SEPARATORS[kind]), columns, index
            )
        try:
            losses = from_array(_turned(table) if transpose else table, name=path.name)
        except ValueError as error:
            raise ValueError(f"{path}: {error}") from None
    _warn_of_many_arms(path, losses, transpose)
    return losses


def _checked_separator(separator: str | None, default: str) -> str:
    if separator is None:
        return default
    is_character = isinstance(separator, str) and len(separator) == 1
    if not is_character or separator.isalnum() or separator in '\r\n"#.+-_':
        raise ValueError(f"separator is {separator!r}; give one character, as ';' or '\\t'")
    return separator


def _turned(table: np.ndarray) -> np.ndarray:
    """Exchange rounds and arms, without a copy."""
    return table if table.ndim < 2 else np.swapaxes(table, -1, -2)


def _warn_of_many_arms(path: Path, losses: LossSequence, transpose: bool) -> None:
    num_rounds = losses.num_rounds or 0
    if losses.num_arms > num_rounds:
        fix = "give transpose=False, the default" if transpose else "give transpose=True"
        side = "column" if transpose else "row"
        warnings.warn(
            f"{path} has {losses.num_arms} arms and {num_rounds} rounds; if each {side} is an arm, "
            f"{fix}",
            stacklevel=3,
        )


def _from_npy(path: Path, transpose: bool) -> LossSequence:
    shape = _checked_shape(path)
    if transpose:
        shape = (shape[0], shape[2], shape[1])
    table = FileTable(path, shape, transpose)
    largest = 0.0
    for k, first, rows in table.pieces():
        if not np.isfinite(rows).all():
            t, i = np.argwhere(~np.isfinite(rows))[0]
            raise ValueError(
                f"{path} holds {rows[t, i]} at {place_of_loss(k, first + t, i, shape[0])}; every "
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


def _read_parquet(path: Path, columns: Iterable[Column] | None, index: Column | None) -> np.ndarray:
    """Return the arms of a table, [rows, arms]."""
    try:
        import pandas as pd

        frame = pd.read_parquet(path)
    except ImportError as error:
        raise ValueError(f"{path} needs pandas and pyarrow: pip install pandas pyarrow") from error
    except Exception as error:  # pyarrow raises its own
        raise ValueError(f"{path} is not a complete .parquet file: {error}") from None
    names = [str(name) for name in frame.columns]
    chosen = choose_columns(path, names, len(names), columns, index)
    texts = {}
    for j in chosen:
        values = frame.iloc[:, j]
        if not pd.api.types.is_numeric_dtype(values.dtype):
            texts[j] = str(values.iloc[0]) if len(values) else str(values.dtype)
    refuse_columns(path, names, chosen, texts)
    table = frame.iloc[:, chosen].to_numpy()
    if table.dtype.kind not in "fiub":  # pandas' own types, in which numbers can be missing
        table = frame.iloc[:, chosen].to_numpy(np.float64, na_value=np.nan)
    if not np.isfinite(table).all():
        t, i = np.argwhere(~np.isfinite(table))[0]
        raise ValueError(
            f"{path} has {table[t, i]} in row {t + 1}, {label(names, chosen[i])}; give a finite "
            "number, or leave out the row, or the column by index= or columns="
        )
    if columns is None:
        check_counting(path, names, chosen, table.astype(np.float64))
    return table
