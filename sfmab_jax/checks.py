"""Checks of what users give, with messages that name the value and the fix."""

import operator
from typing import Any

import jax
import numpy as np

__all__ = ["check_integer", "check_number", "check_probability"]


def check_integer(name: str, value: Any, least: int, most: int) -> int:
    """``value`` as an int between the two limits."""
    try:
        number = operator.index(value)
    except TypeError:
        raise ValueError(f"{name} is {value!r}; give an integer") from None
    if isinstance(value, bool) or not least <= number <= most:
        raise ValueError(f"{name} is {value!r}; give an integer from {least} to {most}")
    return number


_LARGEST, _SMALLEST = float(np.finfo(np.float32).max), float(np.finfo(np.float32).tiny)


def check_number(name: str, value: Any, *, positive: bool = False) -> None:
    """Refuses what is not a finite number, and a positive one if asked; JAX arrays pass.

    Finite and positive in float32, as nothing else is said of the precision here.
    """
    if isinstance(value, jax.Array):
        return
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        raise ValueError(f"{name} is {value!r}; give a number") from None
    if not np.isfinite(number) or (positive and number <= 0):
        raise ValueError(f"{name} is {value!r}; give a {'positive ' * positive}finite number")
    if abs(number) > _LARGEST or (positive and number < _SMALLEST):
        raise ValueError(f"{name} is {value!r}, beyond the range of float32; give another number")


def check_probability(name: str, value: Any) -> None:
    """Refuses what does not lie between 0 and 1; JAX arrays pass."""
    check_number(name, value)
    if not isinstance(value, jax.Array) and not 0 <= value <= 1:
        raise ValueError(f"{name} is {value!r}; it lies between 0 and 1")
