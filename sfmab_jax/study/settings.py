"""The settings of a study file beside strategies and losses: their checks and defaults."""

from collections.abc import Callable
from typing import Any

from sfmab_jax.losses.sequence import MOST_ARMS, MOST_ROUNDS
from sfmab_jax.study.parameters import fail, suggest

__all__ = ["QUICK", "SETTINGS"]


def _text(most: int) -> Callable[[str, str, Any], str]:
    def check(source: str, key: str, value: Any) -> str:
        if not isinstance(value, str) or len(value) > most or "\0" in value:
            fail(source, key, value, f"give a text of at most {most} characters")
        return value

    return check


def _integer(least: int, most: int) -> Callable[[str, str, Any], int]:
    def check(source: str, key: str, value: Any) -> int:
        if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
            fail(source, key, value, f"give an integer from {least} to {most}")
        return value

    return check


def _integers(least: int, most: int) -> Callable[[str, str, Any], tuple[int, ...]]:
    def check(source: str, key: str, value: Any) -> tuple[int, ...]:
        values = value if isinstance(value, list) else [value]
        if not values:
            fail(source, key, value, "the grid is empty; give at least one value")
        checked = tuple(_integer(least, most)(source, key, member) for member in values)
        if len(set(checked)) < len(checked):
            fail(source, key, value, "a value is there twice")
        return checked

    return check


def _checkpoints(source: str, key: str, value: Any) -> int | tuple[int, ...]:
    if isinstance(value, list):
        return tuple(sorted(_integers(1, MOST_ROUNDS)(source, key, value)))
    return _integer(1, 10_000)(source, key, value)


def _dtype(source: str, key: str, value: Any) -> str:
    if value not in ("float32", "float64"):
        fail(source, key, value, suggest(str(value), ("float32", "float64")))
    return value


def _boolean(source: str, key: str, value: Any) -> bool:
    if not isinstance(value, bool):
        fail(source, key, value, "give true or false")
    return value


# Every setting of a study file with its check and its default.
SETTINGS: dict[str, tuple[Callable[[str, str, Any], Any], Any]] = {
    "title": (_text(200), "A study"),
    "question": (_text(2000), ""),
    "arms": (_integers(1, MOST_ARMS), (10,)),
    "rounds": (_integers(1, MOST_ROUNDS), (10_000,)),
    "seeds": (_integer(1, 2**31 - 1), 256),
    "sequences": (_integer(1, 2**20), None),  # by default one for each seed of a random family
    "seed": (_integer(0, 2**32 - 1), 0),
    "checkpoints": (_checkpoints, 48),
    "dtype": (_dtype, "float32"),
    "certificates": (_boolean, False),
    "pseudo_regret": (_boolean, False),
    "output": (_text(1000), ""),
}
# Those that [quick] may change.
QUICK = ("arms", "rounds", "seeds", "sequences", "checkpoints")
