"""Which columns of a file are arms, and columns that are none: counts of the rows, dates, text."""

import operator
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np

__all__ = ["Column", "check_counting", "choose_columns", "is_date", "label", "refuse_columns"]

Column = str | int
_DATE = re.compile(r"\d{1,4}([-/.])\d{1,2}\1\d{1,4}([T ].*)?")


def choose_columns(
    path: Path,
    names: Sequence[str] | None,
    num_columns: int,
    columns: Iterable[Column] | None,
    index: Column | None,
) -> list[int]:
    """Return the numbers of the columns that are arms, in the order of the arms.

    Args:
      path: of the file, for messages.
      names: of its columns, if they have any.
      num_columns: how many there are.
      columns: the arms by name or number, counted from 0; None takes all but ``index``.
      index: the column that is no arm; None if all are arms.
    """
    left_out = None if index is None else _number_of(path, names, num_columns, "index", index)
    if columns is None:
        _check_names_differ(path, names)
        chosen = [j for j in range(num_columns) if j != left_out]
    else:
        if isinstance(columns, str) or not isinstance(columns, Iterable):
            raise ValueError(f"columns is {columns!r}; give a list, as columns=[{columns!r}]")
        chosen = [_number_of(path, names, num_columns, "columns", column) for column in columns]
    if not chosen:
        raise ValueError(f"{path} has no column left that is an arm; give one or more in columns=")
    if len(set(chosen)) < len(chosen):
        twice = next(j for j in chosen if chosen.count(j) > 1)
        raise ValueError(f"columns has {label(names, twice)} twice; give each arm once")
    if left_out is not None and left_out in chosen:
        raise ValueError(f"{label(names, left_out)} is in columns= and in index=; give it in one")
    return chosen


def _number_of(
    path: Path, names: Sequence[str] | None, num_columns: int, option: str, column: Column
) -> int:
    """Return the number of a column that an option names, or counts from 0."""
    if isinstance(column, str):
        if names is None:
            raise ValueError(
                f"{option} has {column!r}; the columns of {path} have no names, give numbers from "
                f"0 to {num_columns - 1}"
            )
        found = [j for j, name in enumerate(names) if name == column]
        if not found:
            raise ValueError(f"{option} has {column!r}; {path} has the columns {_some(names)}")
        if len(found) > 1:
            raise ValueError(
                f"{option} has {column!r}, the name of columns {_and(found)} of {path} (the first "
                "is 0); give a number"
            )
        return found[0]
    try:
        number = operator.index(column)
    except TypeError:
        raise ValueError(f"{option} has {column!r}; give a name or a number") from None
    if isinstance(column, bool) or not 0 <= number < num_columns:
        raise ValueError(
            f"{option} has {column!r}; {path} has {num_columns} columns, give a number from 0 to "
            f"{num_columns - 1}"
        )
    return number


def _check_names_differ(path: Path, names: Sequence[str] | None) -> None:
    places: dict[str, list[int]] = {}
    for j, name in enumerate(names or ()):
        places.setdefault(name, []).append(j)
    for name, found in places.items():
        if name and len(found) > 1:
            raise ValueError(
                f"{path} has the name {name!r} for columns {_and(found)} (the first is 0); choose "
                f"the arms by number, columns=range({len(names or ())}) for all"
            )


def label(names: Sequence[str] | None, j: int) -> str:
    """Return how messages call column ``j``: by its name if it has one."""
    if names is not None and names[j]:
        return f"column {names[j]!r}"
    return f"column {j} (the first is 0)"


def _option(names: Sequence[str] | None, j: int) -> str:
    """Return what to give as ``index`` for column ``j``."""
    has_own_name = names is not None and names[j] and list(names).count(names[j]) == 1
    return repr(names[j]) if names is not None and has_own_name else str(j)


def is_date(text: str) -> bool:
    """Whether a text is a date, with or without a time."""
    return _DATE.fullmatch(text.strip()) is not None


def refuse_columns(
    path: Path, names: Sequence[str] | None, chosen: Sequence[int], texts: Mapping[int, str]
) -> None:
    """Raise ValueError if columns hold texts or dates, with the option that leaves them out.

    Args:
      path: of the file.
      names: of its columns, if they have any.
      chosen: the columns that are to be arms.
      texts: one of the texts in each column that holds nothing else.
    """
    if not texts:
        return
    first, text = next(iter(texts.items()))
    kind = "dates" if is_date(text) else "text"
    what = f"holds {kind}, as {text!r}" if text else "begins with empty cells"
    arms = [j for j in chosen if j not in texts]
    if not arms:
        fix = "give a table of numbers"
    elif len(texts) == 1:
        fix = f"give index={_option(names, first)} to leave it out"
    else:
        fix = f"choose the arms by columns=[{_list(names, arms)}]"
    raise ValueError(f"{path}: {label(names, first)} {what}; {fix}")


def check_counting(
    path: Path, names: Sequence[str] | None, chosen: Sequence[int], table: np.ndarray
) -> None:
    """Raise ValueError if the first or last column counts the rows or holds days as 20240131.

    The first counts if it goes up by 1. Other even steps, such as those of seconds, and the last
    column need five rows, and another column that does not go by even steps.

    Args:
      path: of the file.
      names: of its columns, if they have any.
      chosen: the numbers of those that are read.
      table: what they hold, [rows, columns].
    """
    if len(chosen) < 2:
        return
    for place in (0, -1):
        cells = table[:, place]
        if len(cells) < 3 or not (cells == np.trunc(cells)).all():
            continue
        is_count = place == 0 and (np.diff(cells) == 1).all()
        if is_count or (_steps_evenly(cells) and not _all_step_evenly(table)):
            what = f"counts the rows: {', '.join(f'{cell:.0f}' for cell in cells[:3])}, ..."
        elif _are_days(cells):
            what = f"holds dates, as {cells[0]:.0f}"
        else:
            continue
        column = chosen[place]
        raise ValueError(
            f"{path}: {label(names, column)} {what}; give index={_option(names, column)} to leave "
            "it out, or list all arms in columns= to keep it"
        )


def _steps_evenly(cells: np.ndarray) -> bool:
    """Whether five numbers or more go up or down by one step."""
    steps = np.diff(cells)
    return len(cells) >= 5 and bool(steps[0] != 0 and (steps == steps[0]).all())


def _all_step_evenly(table: np.ndarray) -> bool:
    """Whether all columns do, as those of a made-up table."""
    steps = np.diff(table, axis=0)
    return bool((steps == steps[0]).all())


def _are_days(cells: np.ndarray) -> bool:
    month, day = cells // 100 % 100, cells % 100
    are_days = (cells >= 1900_01_01) & (cells <= 2100_12_31)
    return bool((are_days & (month >= 1) & (month <= 12) & (day >= 1) & (day <= 31)).all())


def _list(names: Sequence[str] | None, numbers: Sequence[int]) -> str:
    """Return what to give as ``columns``, shortened if there are many."""
    shown = [_option(names, j) for j in numbers]
    return ", ".join(shown if len(shown) <= 8 else [*shown[:3], "...", shown[-1]])


def _some(names: Sequence[str]) -> str:
    return ", ".join(map(repr, names[:8])) + ", ..." * (len(names) > 8)


def _and(items: Iterable[object]) -> str:
    *most, last = map(str, items)
    return f"{', '.join(most)} and {last}" if most else last
