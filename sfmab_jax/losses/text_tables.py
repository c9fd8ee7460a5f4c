"""Tables in text files: read by NumPy, and explained in their own terms where that fails."""

import codecs
import csv
import gzip
import math
import re
import warnings
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import IO, Any

import numpy as np

from sfmab_jax.losses.columns import (
    Column,
    check_counting,
    choose_columns,
    is_date,
    label,
    refuse_columns,
)

__all__ = ["read_text_table"]

# Characters in a line, and in all lines of a packed file that is small.
_LONGEST_LINE, _MOST_UNPACKED = 2**28, 2**28
# How many characters a byte of a large packed file may stand for.
_MOST_PACKING = 100
# Rows and cells that are looked at before a file is read.
_FIRST_ROWS, _FIRST_CELLS = 100, 10_000

_STRONG, _WEAK = ";\t|", " ,"
_WITH_COMMAS = re.compile(r"[-+]?\d+(,\d+)+(\.\d+)?([eE][-+]?\d+)?")
_MISSING = {"", "-", "?", "na", "n/a", "#n/a", "null"}
_HAS_COMMAS = (
    "write numbers with a decimal point and nothing between thousands, or read the file with "
    "pandas.read_csv, which has decimal=',' and thousands=',', and give the values to from_array"
)


@dataclass(frozen=True)
class _Head:
    """What the first lines of a file tell.

    Attributes:
      names: of the columns, without spaces around them; None if they have none.
      last_line: of the file that belongs to the names, 0 without them.
      rows: the first rows below the names.
    """

    names: list[str] | None
    last_line: int
    rows: list[list[str]]


def read_text_table(
    path: Path, separator: str, columns: Iterable[Column] | None, index: Column | None
) -> np.ndarray:
    """Return the arms of a table in a text file, finite float64 [rows, arms].

    Lines that are empty or begin with # are skipped. The names of the columns are the first line
    that is left if it holds no numbers, or numbers that count the columns.

    Args:
      path: the file; it is unpacked on the way if it ends in .gz.
      separator: the character between cells.
      columns, index: as in `from_file`.

    Raises:
      ValueError: if a column holds no losses, or a cell no finite number; rows and lines are
        counted from 1.
    """
    try:
        head = _read_head(path, separator)
        width = len(head.rows[0])
        chosen = choose_columns(path, head.names, width, columns, index)
        refuse_columns(path, head.names, chosen, _texts(head, chosen))
        _refuse_half_names(path, head, chosen)
        try:
            table = _load(path, separator, head, chosen)
        except ValueError:
            _refuse_first_bad_row(path, separator, head, chosen)
            raise ValueError(f"{path} is no table of numbers; give a row for each round") from None
        if not np.isfinite(table).all():
            _refuse_first_bad_row(path, separator, head, chosen)
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise ValueError(f"{path} is not a complete .gz file: {error}") from None
    except OverflowError as error:
        raise ValueError(f"{path} {error}") from None
    except csv.Error as error:
        raise ValueError(f"{path}: {error}; give numbers, with {separator!r} between") from None
    if columns is None:
        check_counting(path, head.names, chosen, table)
    first = [head.rows[0][j].strip() for j in chosen]
    if head.names is None and len(head.rows) > 1 and len(first) > 2 and _counts(first):
        warnings.warn(
            f"{path}: row 1 counts the columns, {', '.join(first[:3])}, ..., and is read as "
            "losses; if it holds names, delete it, or write names that are no numbers",
            stacklevel=3,
        )
    return table


@contextmanager
def _opened(path: Path) -> Iterator[Iterator[str]]:
    """Open a text file as its lines, unpacked a little at a time."""
    is_packed = path.name.lower().endswith(".gz")
    opened: Callable[..., Any] = gzip.open if is_packed else open
    with opened(path, "rb") as raw:
        if raw.read(2) in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE):
            raise ValueError(f"{path} is in UTF-16; write it in UTF-8")
    most = max(_MOST_UNPACKED, _MOST_PACKING * path.stat().st_size) if is_packed else None
    with opened(path, "rt", encoding="utf-8-sig", errors="replace") as file:
        yield _lines(file, most)


def _lines(file: IO[str], most: int | None) -> Iterator[str]:
    """Yield the lines; raise OverflowError if one is endless, or all exceed ``most`` characters.

    A few bytes of a packed file can stand for any number of characters.
    """
    size = 0
    while line := file.readline(_LONGEST_LINE):
        size += len(line)
        if len(line) == _LONGEST_LINE:
            raise OverflowError(f"has a line of {_LONGEST_LINE:,} characters or more; end the rows")
        if most is not None and size > most:
            raise OverflowError(f"unpacks to more than {most:,} characters; unpack it first")
        yield line


def _rows(lines: Iterable[str], separator: str) -> Iterator[tuple[int, list[str]]]:
    """Yield the rows of cells, comments among them, each with the last of its lines."""
    reader = csv.reader(lines, delimiter=separator)
    for cells in reader:
        if len(cells) > 1 or any(cell.strip() for cell in cells):
            yield reader.line_num, cells


def _is_comment(cells: Sequence[str]) -> bool:
    return cells[0].startswith("#")


def _read_head(path: Path, separator: str) -> _Head:
    comment: list[str] = []
    first: list[tuple[int, list[str]]] = []
    num_cells = 0
    with _opened(path) as lines:
        for line, cells in _rows(lines, separator):
            if _is_comment(cells):
                comment = comment if first else [cells[0].lstrip("#"), *cells[1:]]
                continue
            first.append((line, cells))
            num_cells += len(cells)
            if len(first) == _FIRST_ROWS or (len(first) > 2 and num_cells > _FIRST_CELLS):
                break
    if not first:
        what = "has no numbers" if comment else "is empty"
        raise ValueError(f"{path} {what}; give a row for each round")
    rows = [cells for _, cells in first]
    _check_separator(path, separator, rows[-1])
    if _are_names(rows):
        head = _Head([name.strip() for name in rows[0]], first[0][0], rows[1:])
    elif len(comment) == len(rows[0]) and _are_names([comment, *rows]):
        head = _Head([name.strip() for name in comment], 0, rows)
    else:
        head = _Head(None, 0, rows)
    if not head.rows:
        raise ValueError(f"{path} has no numbers, only names; give a row for each round")
    if head.names is not None and len(head.names) != len(head.rows[0]):
        raise ValueError(
            f"{path} has {_cells(len(head.names))} in the line of names and "
            f"{_cells(len(head.rows[0]))} in row 1; give every column one name"
        )
    return head


def _check_separator(path: Path, separator: str, cells: Sequence[str]) -> None:
    """Raise ValueError if a row of the file falls into numbers at another character."""
    text = separator.join(cells).strip()
    for other in _STRONG + _WEAK * (len(cells) == 1):
        parts = text.split(other)
        numbers = [part for part in parts if _is_number(part) or _has_commas(part)]
        dates = [part for part in parts if is_date(part)]
        is_table = len(cells) == 1 or 2 * len(numbers + dates) > len(parts)
        if other != separator and len(parts) > 1 and numbers and is_table:
            commas = [part for part in parts if _has_commas(part)]
            fix = f"give separator={other!r}"
            if other == " " and "" in parts:
                fix += ", and write one space between cells"
            if commas:
                fix = f"it also has {commas[0]!r}; {_HAS_COMMAS}"
            raise ValueError(f"{path} is separated by {other!r}, not by {separator!r}; {fix}")


def _are_names(rows: Sequence[Sequence[str]]) -> bool:
    """Whether the first of some rows holds the names of the columns."""
    first, *below = [[cell.strip() for cell in row] for row in rows]
    if set(map(str.lower, first)) - _MISSING and not any(map(_is_number, first)):
        return True
    # As pandas writes columns without names: the name of its index, or nothing, then 0, 1, 2, ...
    index = [row[0] for row in below]
    is_index = _counts(index) or not any(map(_is_number, index))
    is_name = not _is_number(first[0]) and not is_date(first[0])
    return is_name and is_index and all(index) and len(first) > 2 and _counts(first[1:])


def _counts(cells: Sequence[str]) -> bool:
    """Whether some cells are 0, 1, 2, ... or 1, 2, 3, ..."""
    return any(all(cell == str(i + one) for i, cell in enumerate(cells)) for one in (0, 1))


def _refuse_half_names(path: Path, head: _Head, chosen: Sequence[int]) -> None:
    """Raise ValueError if a column that is left out has a name above numbers or dates.

    The others have numbers there, which may be names as well.
    """
    if head.names is None and len(head.rows) > 1:
        for j in set(range(len(head.rows[0]))).difference(chosen):
            first, *below = [row[j].strip() for row in head.rows if j < len(row)]
            is_name = not _is_number(first) and not is_date(first)
            if is_name and all(_is_number(cell) or is_date(cell) for cell in below):
                raise ValueError(
                    f"{path} has {first!r} above numbers or dates in row 1, {label(None, j)}; give "
                    "numbers only, or names only that are no numbers"
                )


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return "_" not in text  # of Python alone


def _has_commas(text: str) -> bool:
    return _WITH_COMMAS.fullmatch(text.strip()) is not None


def _texts(head: _Head, chosen: Sequence[int]) -> dict[int, str]:
    """Return a text of each chosen column of which the first rows hold no number at all."""
    rows = [cells for cells in head.rows if len(cells) == len(head.rows[0])]
    texts = {}
    for j in chosen:
        cells = [row[j].strip() for row in rows]
        if not any(_is_number(cell) or _has_commas(cell) for cell in cells):
            texts[j] = next(filter(None, cells), "")
    return texts


def _load(path: Path, separator: str, head: _Head, chosen: Sequence[int]) -> np.ndarray:
    """Return the chosen columns, float64 [rows, arms]."""
    width = len(head.rows[0])
    # Converters rather than ``usecols``, which does not notice rows that are too long.
    dropped: Any = dict.fromkeys(set(range(width)).difference(chosen), _zero)
    with _opened(path) as lines:
        table: np.ndarray = np.loadtxt(
            (line for line in islice(lines, head.last_line, None) if line.strip(" \r\n")),
            delimiter=separator,
            quotechar='"',
            converters=dropped or None,
            ndmin=2,
        )
    return table if list(chosen) == list(range(width)) else table[:, chosen]


def _zero(text: str) -> float:
    return 0.0


def _refuse_first_bad_row(path: Path, separator: str, head: _Head, chosen: Sequence[int]) -> None:
    """Raise ValueError for the first row that has cells too few or many, or a cell of no number."""
    width, row = len(head.rows[0]), 0
    with _opened(path) as lines:
        for line, cells in _rows(lines, separator):
            if line <= head.last_line or _is_comment(cells):
                continue
            row += 1
            where = f"row {row} (line {line} of the file)"
            if len(cells) != width:
                raise ValueError(
                    f"{path} has {_cells(len(cells))} in {where} and {_cells(width)} in row 1; "
                    f"give every row as many, and no {separator!r} inside numbers"
                )
            for j in chosen:
                if not _is_number(cells[j]) or not math.isfinite(float(cells[j])):
                    what = repr(cells[j]) if cells[j].strip() else "an empty cell"
                    raise ValueError(
                        f"{path} has {what} in {where}, {label(head.names, j)}; "
                        f"{_fix(cells[j], row == 1 and head.names is None)}"
                    )


def _cells(number: int) -> str:
    return f"{number} cell{'s' * (number != 1)}"


def _fix(cell: str, is_first: bool) -> str:
    """Return what to do about a cell that is no finite number."""
    if _has_commas(cell):
        return _HAS_COMMAS
    if is_first and not _is_number(cell):
        return "give numbers only, or names only, or leave the column out by index= or columns="
    return "give a finite number, or leave out the row, or the column by index= or columns="
