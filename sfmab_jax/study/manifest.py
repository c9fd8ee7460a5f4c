"""The manifest of a study: read and checked, so that nothing after it meets a missing field."""

import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from sfmab_jax.losses.sequence import MOST_ARMS, MOST_ROUNDS
from sfmab_jax.study.cells import Cell
from sfmab_jax.study.parameters import fail
from sfmab_jax.study.settings import SETTINGS
from sfmab_jax.study.store import FORMAT

__all__ = ["IDENTITY", "cell_from_manifest", "read_manifest"]

IDENTITY = "[0-9a-f]{16}"  # of a cell, as in `Cell.identity`
_WRONG = "no study writes this"


def read_manifest(folder: Path) -> dict[str, Any] | None:
    """Return the checked manifest of a study's folder; None if there is none."""
    path = folder / "manifest.json"
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, RecursionError) as error:
        raise ValueError(f"{path} cannot be read: {error}") from None
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise ValueError(f"{path} is not the manifest of a study of format {FORMAT}")
    _check_table(str(path), "", content, _MANIFEST)
    return content


def cell_from_manifest(entry: Mapping[str, Any]) -> Cell:
    """Return a cell as the manifest describes it, with the identity it was played under."""
    values = dict(entry["cell"])
    if isinstance(values["checkpoints"], list):
        values["checkpoints"] = tuple(values["checkpoints"])
    cell = Cell(**values)
    # Another version of the software would compute another identity; the stored one counts.
    cell.__dict__["identity"] = entry["identity"]
    return cell


Check = Callable[[str, str, Any], Any]  # (file, place in it, value), as in `settings`


def _check_table(source: str, prefix: str, table: Any, checks: Mapping[str, Check]) -> None:
    """Refuse a table without one of these keys, or with a value that its check refuses."""
    if not isinstance(table, dict):
        fail(source, prefix.rstrip("."), table, _WRONG)
    for key, check in checks.items():
        if key not in table:
            raise ValueError(f"{source}: {prefix}{key} is missing")
        check(source, f"{prefix}{key}", table[key])


def _is(*kinds: type) -> Check:
    def check(source: str, key: str, value: Any) -> None:
        if type(value) not in kinds:  # true and false are no numbers here
            fail(source, key, value, _WRONG)

    return check


def _number(most: int) -> Check:
    def check(source: str, key: str, value: Any) -> None:
        if type(value) is not int or not 1 <= value <= most:
            fail(source, key, value, _WRONG)

    return check


def _identity(source: str, key: str, value: Any) -> None:
    if not isinstance(value, str) or not re.fullmatch(IDENTITY, value):
        fail(source, key, value, _WRONG)


def _tables(checks: Mapping[str, Check]) -> Check:
    def check(source: str, key: str, value: Any) -> None:
        _is(list)(source, key, value)
        for number, table in enumerate(value):
            _check_table(source, f"{key}[{number}].", table, checks)

    return check


def _cell(source: str, key: str, value: Any) -> None:
    _check_table(source, f"{key}.", value, _CELL)
    for name in value.keys() - {*_CELL, "digests", "pseudo_regret"}:
        fail(source, f"{key}.{name}", value[name], _WRONG)
    _is(bool)(source, f"{key}.pseudo_regret", value.get("pseudo_regret", False))
    _is(dict)(source, f"{key}.digests", value.get("digests", {}))


def _setting(name: str) -> Check:
    def check(source: str, key: str, value: Any) -> None:
        try:
            SETTINGS[name][0](source, key, value)
        except ValueError:
            fail(source, key, value, _WRONG)

    return check


def _or_none(check: Check) -> Check:
    return lambda source, key, value: None if value is None else check(source, key, value)


# What every cell has; those with files of the user have their digests, too, and those that keep
# the pseudo-regret say so.
_CELL: dict[str, Check] = {
    "strategy": _is(str),
    "losses": _is(str),
    "num_arms": _number(MOST_ARMS),
    "num_rounds": _number(MOST_ROUNDS),
    "scale": _is(float, int),
    "strategy_name": _is(str),
    "strategy_parameters": _is(dict),
    "family": _is(str),
    "loss_parameters": _is(dict),
    "num_sequences": _or_none(_setting("sequences")),
    "seed": _setting("seed"),
    "checkpoints": _setting("checkpoints"),
    "dtype": _setting("dtype"),
    "certificates": _is(bool),
}
_MANIFEST: dict[str, Check] = {
    **{key: _setting(key) for key in ("title", "question", "seeds", "seed", "dtype")},
    "sequences": _or_none(_setting("sequences")),
    **{key: _is(str) for key in ("source", "study", "created")},
    "quick": _is(bool),
    **{key: _is(dict) for key in ("versions", "platform", "commits")},
    "cells": _tables({"identity": _identity, "label": _is(str), "cell": _cell}),
    "runs": _tables({"started": _is(str), "ended": _is(str, type(None)), "blocks": _is(int)}),
}
