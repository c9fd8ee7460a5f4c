"""Parameters of strategies and loss families as a study file gives them, checked by signature."""

import inspect
import math
import types
import typing
from collections.abc import Callable, Iterable
from difflib import get_close_matches
from typing import Any, Literal, NoReturn

__all__ = ["checked_parameter", "complete", "fail", "nearest", "signature_of"]


def fail(source: str, key: str, value: Any, fix: str) -> NoReturn:
    """One line that names the file, the key, the value and what to do."""
    shown = repr(value)
    if len(shown) > 60:
        shown = f"{shown[:57]}..."
    raise ValueError(f"{source}: {key} = {shown}: {fix}")


def nearest(name: str, known: Iterable[str]) -> str:
    """A hint with the nearest right name, or with all of them."""
    known = list(known)
    near = get_close_matches(name, known, n=1, cutoff=0.5)
    return f"did you mean {near[0]}?" if near else f"choose from {', '.join(known) or 'nothing'}"


def signature_of(factory: Callable) -> dict[str, inspect.Parameter]:
    """The keyword parameters of a factory, with their annotations evaluated."""
    return dict(inspect.signature(factory, eval_str=True).parameters)


def complete(factory: Callable, given: dict[str, Any]) -> dict[str, Any]:
    """All parameters of a factory: those given, and the defaults of the others."""
    defaults = {key: p.default for key, p in signature_of(factory).items()}
    return {key: given.get(key, default) for key, default in defaults.items()}


def checked_parameter(source: str, key: str, value: Any, annotation: Any) -> Any:
    """``value`` as the annotation wants it: 1 becomes 1.0 where a float is asked for."""
    kinds = _kinds(annotation)
    choices = [c for kind in kinds if typing.get_origin(kind) is Literal for c in kind.__args__]
    if choices:
        if not isinstance(value, str) or value not in choices:
            fail(source, key, value, nearest(str(value), choices))
        return value
    if isinstance(value, list):
        return _checked_tuple(source, key, value, kinds)
    if bool in kinds and isinstance(value, bool):
        return value
    if str in kinds and isinstance(value, str):
        return value
    wanted = [kind for kind in (float, int) if kind in kinds]
    if wanted and isinstance(value, int | float) and not isinstance(value, bool):
        return _checked_number(source, key, value, wanted)
    fail(source, key, value, f"give {_described(kinds)}")


def _kinds(annotation: Any) -> list[Any]:
    """The members of a union; the one annotation itself otherwise."""
    if typing.get_origin(annotation) in (typing.Union, types.UnionType):
        return list(typing.get_args(annotation))
    return [annotation]


def _checked_number(source: str, key: str, value: int | float, wanted: list[Any]) -> int | float:
    if float not in wanted:
        if not isinstance(value, int):
            fail(source, key, value, "give an integer")
        return value
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        fail(source, key, value, "give a finite number")
    return number


def _checked_tuple(source: str, key: str, value: list, kinds: list[Any]) -> tuple:
    for kind in kinds:
        if typing.get_origin(kind) is tuple:
            inner = typing.get_args(kind)[0]
            return tuple(checked_parameter(source, key, member, inner) for member in value)
    fail(source, key, value, f"give {_described(kinds)}; a list within a list is one value")


def _described(kinds: list[Any]) -> str:
    names = {bool: "true or false", str: "a text", int: "an integer", float: "a number"}
    known = [names[kind] for kind in (bool, str, float, int) if kind in kinds]
    if any(typing.get_origin(kind) is tuple for kind in kinds):
        known.append("a list of numbers")
    return " or ".join(known) or "nothing: it cannot be set in a study file"
