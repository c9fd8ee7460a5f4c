"""Checks of arguments, with messages that name the value and the fix."""

import contextlib
import inspect
import operator
import os
import re
import sys
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from textwrap import shorten
from typing import Any

import jax
import numpy as np
from jax.core import Tracer

__all__ = [
    "PartError",
    "check_arguments",
    "check_batch",
    "check_functions",
    "check_horizon",
    "check_integer",
    "check_kept",
    "check_number",
    "check_positive",
    "check_probability",
    "described",
    "horizon_argument",
    "is_known",
    "naming_errors",
    "refusing",
    "strongly_typed",
    "warn_user",
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


def check_arguments(what: str, function: Callable[..., Any], given: str, hint: str, **parameters):
    """Raise ValueError unless a function of the user's can be called with these arguments.

    Args:
      what: names the function.
      function: of any kind; those that do not tell their arguments pass.
      given: the names of the arguments that it is given, as "key, round".
      hint: what to do.
      **parameters: given by name.
    """
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return
    try:
        signature.bind(*given.split(", "), **parameters)
    except TypeError as error:
        named = ", ".join([given, *(f"{name}=..." for name in parameters)])
        raise ValueError(
            f"{what} takes {signature}, but is given ({named}): {error}; {hint}"
        ) from None


# What it means that JAX cannot go on with a function, by the error; the first that fits.
_MEANINGS = (
    (
        jax.errors.TracerBoolConversionError,
        "decides by a Python `if`, `while`, `and`, `or` or `not` on a number that is known only "
        "when it is played; use jnp.where(condition, this, that)",
    ),
    (
        jax.errors.TracerIntegerConversionError,
        "takes a number that is known only when it is played for an index or a length of Python; "
        "index arrays of jax.numpy, and keep their shapes fixed",
    ),
    (
        jax.errors.TracerArrayConversionError,
        "gives NumPy an array that is known only when it is played; use jax.numpy",
    ),
    (
        jax.errors.NonConcreteBooleanIndexError,
        "selects by a mask, so that a shape is known only when it is played; use "
        "jnp.where(mask, values, 0)",
    ),
    (
        jax.errors.UnexpectedTracerError,
        "reads a number that another call left behind; keep it in the state",
    ),
    (
        jax.errors.ConcretizationTypeError,
        "makes a number of Python, by float(), int() or math, of one that is known only when it "
        "is played; use jax.numpy",
    ),
)
_JAX, _PACKAGE = (str(Path(file).parent) + os.sep for file in (jax.__file__, __file__))
_CONTEXTS = contextlib.__file__  # decorators made of contexts are between functions of the package


def warn_user(message: str) -> None:
    """Give a RuntimeWarning at the line of the user's, however deep in the package this is."""
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and frame.f_code.co_filename.startswith((_PACKAGE, _CONTEXTS)):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, RuntimeWarning, stacklevel=level)


class PartError(ValueError):
    """What a function of the user's does wrong, said while JAX traces it."""


@contextmanager
def refusing() -> Iterator[None]:
    """Raise a `PartError` as a plain ValueError, without the frames and the notes of JAX."""
    try:
        yield
    except PartError as error:
        raise ValueError(str(error)) from None


@contextmanager
def naming_errors(what: str) -> Iterator[None]:
    """Say in words of the user's, not of JAX's, why a function of the user's cannot be traced.

    What goes wrong in the user's lines becomes a `PartError` that names the function and the line.
    Errors that this package raises stay as they are, and so do unusual ones.

    Args:
      what: names the function, as "update of the sampling scheme of strategy 'mine'".
    """
    try:
        yield
    except PartError:
        raise
    except (TypeError, ValueError, LookupError, AttributeError, NameError) as error:
        frames = traceback.extract_tb(error.__traceback__)
        where = [frame for frame in frames if not frame.filename.startswith(_JAX)][-1]
        if where.filename.startswith(_PACKAGE):
            error.add_note(f"in {what}")
            raise
        text = re.sub(r"\w*Tracer\w*", "array", str(error).split("\n")[0].rstrip("."))
        meanings = (text for kind, text in _MEANINGS if isinstance(error, kind))
        meaning = next(meanings, f"fails: {text}")
        place = f"line {where.lineno} of {Path(where.filename).name}"
        raise PartError(f"{what} {meaning} ({place})") from None
    except Exception as error:
        error.add_note(f"in {what}")
        raise


def strongly_typed(state: Any) -> Any:
    """Return the types of a state as games carry it: where it began as Python's 0, int32[]."""
    return jax.tree.map(lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype), state)


class _Type(str):
    """The type of an array, as float32[3]: a text that shows itself without quotes."""

    __slots__ = ()
    __repr__ = str.__str__


def check_kept(what: str, place: str, before: Any, after: Any) -> None:
    """Raise `PartError` unless a state keeps its structure, and its arrays their types and shapes.

    Args:
      what: names the function that returned the state ``after``.
      place: what the state is called.
      before, after: pytrees of `jax.ShapeDtypeStruct`.
    """
    structures: list[Any] = [jax.tree.structure(state) for state in (before, after)]
    if structures[0] != structures[1]:
        raise PartError(
            f"{what} returns {described(after)}, not the structure of init, {described(before)}; "
            "return the next state, made as init makes the first"
        )
    for (path, old), new in zip(jax.tree.leaves_with_path(before), jax.tree.leaves(after)):
        if (old.shape, old.dtype) != (new.shape, new.dtype):
            raise PartError(
                f"{what} makes {place}{jax.tree_util.keystr(path)} {described(new)} of "
                f"{described(old)}; keep its type and shape"
            )


def described(state: Any) -> str:
    """Return a state in words, with the types of its arrays: Floor(num_rounds=float32[])."""

    def of(leaf: Any) -> Any:
        return _Type(f"{leaf.dtype}{list(leaf.shape)}") if hasattr(leaf, "dtype") else leaf

    types = jax.tree.map(of, state)
    return shorten(repr(types), 120)


def check_batch(length: Any) -> None:
    """Raise ValueError unless ``length`` is a positive whole number; what is traced passes."""
    if not is_known(length):
        return
    if isinstance(length, jax.Array):
        length = length.item()
    check_integer("length", length, 1, 2**30)


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
