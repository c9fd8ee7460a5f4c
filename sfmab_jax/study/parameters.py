"""Check the parameters of strategies and loss families in a study file by their signatures."""

import inspect
import math
import types
import typing
from collections.abc import Callable, Iterable, Mapping, Sequence
from difflib import get_close_matches
from functools import cache
from typing import Any, Literal, NoReturn

__all__ = ["check_parameter", "fail", "fill_defaults", "parameters_of", "suggest"]

# Annotations of parameters that take a list.
_LISTS = (tuple, list, Sequence, Iterable)


def fail(source: str, key: str, value: Any, fix: str) -> NoReturn:
    """Raise an error in one line that names the file, the key, the value and what to do."""
    shown = repr(value)
    if len(shown) > 60:
        shown = f"{shown[:57]}..."
    raise ValueError(f"{source}: {key} = {shown}: {fix}")


def suggest(name: str, known: Iterable[str]) -> str:
    """Return a hint with the nearest known name, or with all of them."""
    known = list(known)
    near = get_close_matches(name, known, n=1, cutoff=0.5)
    return f"did you mean {near[0]}?" if near else f"choose from {', '.join(known) or 'nothing'}"


@cache
def parameters_of(factory: Callable) -> Mapping[str, inspect.Parameter]:
    """Return the named parameters of a factory, with their annotations evaluated."""
    parameters = inspect.signature(factory, eval_str=True).parameters
    unnamed = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    return {key: p for key, p in parameters.items() if p.kind not in unnamed}


def fill_defaults(factory: Callable, values: dict[str, Any]) -> dict[str, Any]:
    """Return all parameters of a factory: those in ``values``, and the defaults of the others."""
    return {key: values.get(key, p.default) for key, p in parameters_of(factory).items()}


def check_parameter(source: str, key: str, value: Any, annotation: Any) -> Any:
    """Return ``value`` in the type of the annotation: 1 becomes 1.0 where a float is expected.

    Without an annotation, as in a user's function, the value stays as it is.

    Args:
      source, key: the file and the place in it, for messages.
      value: as TOML has it.
      annotation: of the parameter; `inspect.Parameter.empty` if it has none.
    """
    if annotation is inspect.Parameter.empty:
        return _check_any(source, key, value)
    kinds = _kinds(annotation)
    choices = [c for kind in kinds if typing.get_origin(kind) is Literal for c in kind.__args__]
    if choices:
        if not isinstance(value, str) or value not in choices:
            fail(source, key, value, suggest(str(value), choices))
        return value
    if isinstance(value, list):
        return _check_tuple(source, key, value, kinds)
    if bool in kinds and isinstance(value, bool):
        return value
    if str in kinds and isinstance(value, str):
        return value
    numeric = float in kinds or int in kinds
    if numeric and isinstance(value, int | float) and not isinstance(value, bool):
        return _check_number(source, key, value, kinds)
    fail(source, key, value, f"give {_describe(kinds)}")


def _check_any(source: str, key: str, value: Any) -> Any:
    if isinstance(value, list):
        return tuple(_check_any(source, key, member) for member in value)
    if not isinstance(value, bool | str | int | float):
        fail(source, key, value, "give true or false, a text, a number or a list of them")
    if isinstance(value, float) and not math.isfinite(value):
        fail(source, key, value, "give a finite number")
    return value


def _kinds(annotation: Any) -> list[Any]:
    """Return the members of a union, or the annotation itself."""
    if typing.get_origin(annotation) in (typing.Union, types.UnionType):
        return list(typing.get_args(annotation))
    return [annotation]


def _check_number(source: str, key: str, value: int | float, kinds: list[Any]) -> int | float:
    if float not in kinds:
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


def _check_tuple(source: str, key: str, value: list, kinds: list[Any]) -> tuple:
    for kind in kinds:
        if typing.get_origin(kind) in _LISTS:
            inner = typing.get_args(kind)[0]
            return tuple(check_parameter(source, key, member, inner) for member in value)
    fail(source, key, value, f"give {_describe(kinds)}; a list within a list is one value")


def _describe(kinds: list[Any]) -> str:
    names = {bool: "true or false", str: "a text", int: "an integer", float: "a number"}
    words = [names[kind] for kind in (bool, str, float, int) if kind in kinds]
    if any(typing.get_origin(kind) in _LISTS for kind in kinds):
        words.append("a list of values")
    return " or ".join(words) or "nothing: it cannot be set in a study file"
