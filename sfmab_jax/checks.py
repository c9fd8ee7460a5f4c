"""Checks of arguments, with messages that name the value and the fix."""

import inspect
import operator
from collections.abc import Callable
from typing import Any

import numpy as np
from jax.core import Tracer

__all__ = [
    "check_functions",
    "check_horizon",
    "check_integer",
    "check_number",
    "check_positive",
    "check_probability",
    "horizon_argument",
    "is_known",
]

_LARGEST, _SMALLEST = float(np.finfo(np.float32).max), float(np.finfo(np.float32).tiny)


def check_integer(name: str, value: Any, least: int, most: int) -> int:
    """Return ``value`` as an int; raise ValueError unless it is one from ``least`` to ``most``."""
    try:
        number = operator.index(value)
    except TypeError:
        raise ValueError(f"{name} is {value!r}; give an integer") from None
    if isinstance(value, bool) or not least <= number <= most:
        raise ValueError(f"{name} is {value!r}; give an integer from {least} to {most}")
    return number


def is_known(value: Any) -> bool:
    """Whether a value can be looked at, as all can but those that JAX traces."""
    return not isinstance(value, Tracer)


def check_number(name: str, value: Any, *, positive: bool = False) -> None:
    """Raise ValueError unless ``value`` is one finite number in float32; what is traced passes."""
    try:
        if np.ndim(value) or isinstance(value, bool | np.bool_ | str | bytes):
            raise TypeError
        if not is_known(value):
            return
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        raise ValueError(f"{name} is {value!r}; give a number") from None
    if not np.isfinite(number) or (positive and number <= 0):
        raise ValueError(f"{name} is {value!r}; give a {'positive ' * positive}finite number")
    if abs(number) > _LARGEST or (positive and number < _SMALLEST):
        raise ValueError(f"{name} is {value!r}, beyond the range of float32; give another number")


def check_positive(**values: Any) -> None:
    """Raise ValueError unless every value is a positive finite number; what is traced passes."""
    for name, value in values.items():
        check_number(name, value, positive=True)


def check_probability(name: str, value: Any) -> None:
    """Raise ValueError unless ``value`` lies between 0 and 1; what is traced passes."""
    check_number(name, value)
    if is_known(value) and not 0 <= value <= 1:
        raise ValueError(f"{name} is {value!r}; it lies between 0 and 1")


def check_functions(**values: Any) -> None:
    """Raise ValueError unless every value is a function."""
    for name, value in values.items():
        if not callable(value):
            raise ValueError(f"{name} is {value!r}; give a function")


def check_horizon(num_rounds: Any, least: int = 1) -> None:
    """Raise ValueError unless ``num_rounds`` is a finite number from ``least`` on.

    Args:
      num_rounds: T as a strategy is told it, any number that bounds the rounds; traced it passes.
      least: 2 for rules that divide by ln T.
    """
    check_number("num_rounds", num_rounds, positive=True)
    if is_known(num_rounds) and num_rounds < least:
        raise ValueError(f"num_rounds is {num_rounds!r}; give {least} or more")


def horizon_argument(factory: Callable[..., Any], num_rounds: int) -> dict[str, int]:
    """Return ``num_rounds`` as a keyword for a strategy or loss family that takes it, else {}."""
    takes_it = "num_rounds" in inspect.signature(factory).parameters
    return {"num_rounds": num_rounds} if takes_it else {}
