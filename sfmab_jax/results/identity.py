"""The identity of a strategy and of losses, as plain data that a file can hold.

Names say nothing: any strategy can be played under any name. What a strategy is are the functions
of its parts and the numbers that they were given.
"""

import hashlib
import inspect
import json
from types import CellType, CodeType
from typing import Any

import jax
import numpy as np
from jax.tree_util import Partial

from sfmab_jax.base import Bandit
from sfmab_jax.compose import compose, parts_of
from sfmab_jax.losses.sequence import LossSequence

__all__ = ["identity_of", "identity_of_losses", "read_identity", "stored_identity"]

# Functions of these packages are known by their names; of all others the code counts, too.
_KNOWN_PACKAGES = ("sfmab_jax", "jax", "math")
# Larger arrays are told apart by a digest.
_MOST_NUMBERS = 64


def identity_of(bandit: Bandit) -> dict[str, Any]:
    """Return what a strategy is: S, E, F and the feedback, as dictionaries, lists, texts, numbers.

    Functions are given by module and name, numbers by value, large arrays by a digest. The same
    parts with the same numbers have equal identities, in any process, before and after JSON; what
    differs has not. Functions that are not of this package, of JAX or of `math` count with their
    code and all that they enclose, so that none is taken for a built-in one; two that differ only
    in global variables of their module look the same.

    >>> import sfmab_jax as sf
    >>> one, other = sf.strategies.exp3(scale=2.0), sf.strategies.exp3(scale=3.0)
    >>> identity_of(one) == identity_of(sf.strategies.exp3(scale=2.0))
    True
    >>> identity_of(one) == identity_of(other)
    False
    >>> identity_of(one)["full_information"]["update"]["function"]
    'sfmab_jax.full_information.ftrl:_update'
    """
    try:
        parts = parts_of(bandit)
    except ValueError:
        return _describe(bandit)
    if not _is_composed_of(bandit, parts):
        return _describe(bandit)
    names = ("sampling", "estimation", "full_information")
    described = {name: _describe(part) for name, part in zip(names, parts, strict=True)}
    if parts[2].wait is None:  # as in files of versions that did not know it
        del described["full_information"]["wait"]
    return described | {"feedback": _describe(bandit.feedback)}


def identity_of_losses(losses: LossSequence) -> str:
    """Return a digest of what a loss sequence is: 16 hexadecimal digits.

    Of a family its functions and parameters, of a table its shape and the size of its losses.
    """
    described = (
        _describe([losses.init, losses.next])
        if losses.table is None
        else [list(losses.table.shape), losses.magnitude]
    )
    return hashlib.sha256(json.dumps(described).encode()).hexdigest()[:16]


def stored_identity(identity: Any) -> np.ndarray:
    """Return an identity, or a list of them, as an array [] of bytes for a file."""
    return np.array(json.dumps(identity, allow_nan=False).encode())


def read_identity(stored: np.ndarray) -> Any:
    """Return what `stored_identity` made an array of."""
    return json.loads(stored.item())


def _is_composed_of(bandit: Bandit, parts: tuple) -> bool:
    """Whether all functions of a bandit are those that `compose` makes of the parts."""
    functions: Any = zip(bandit[:3], compose(*parts)[:3], strict=True)
    return all(
        (isinstance(own, Partial) and own.func is made.func and own.args[0] is parts)
        or _describe(own) == _describe(made)
        for own, made in functions
    )


def _describe(value: Any, inside: frozenset[int] = frozenset()) -> Any:
    """Return a part of a strategy as plain data.

    Args:
      value: a part, a function, a number, or a collection of them.
      inside: the `id` of the functions that enclose it.
    """
    if value is None or isinstance(value, bool | str):
        return value
    if hasattr(value, "_asdict"):  # a NamedTuple
        return {"type": _name_of(type(value))} | _describe(value._asdict(), inside)
    if isinstance(value, tuple | list):
        return [_describe(entry, inside) for entry in value]
    if isinstance(value, dict):
        return {str(key): _describe(entry, inside) for key, entry in value.items()}
    if callable(value):
        return _describe_function(value, inside)
    is_number = isinstance(value, int | float | np.ndarray | np.generic | jax.Array)
    return _describe_numbers(np.asarray(value)) if is_number else repr(value)


def _describe_numbers(array: np.ndarray) -> Any:
    """Return a number as itself, a small array as lists, a large one by a digest."""
    if array.size > _MOST_NUMBERS:
        digest = hashlib.sha256(array.tobytes()).hexdigest()
        return {"shape": list(array.shape), "dtype": array.dtype.name, "sha256": digest}
    if array.dtype.kind == "V":  # bfloat16 and its like
        array = array.astype(np.float64)
    return _with_texts(array.tolist())


def _with_texts(numbers: Any) -> Any:
    """Return nested lists of numbers with NaN and infinity, which JSON lacks, as texts."""
    if isinstance(numbers, list):
        return [_with_texts(number) for number in numbers]
    return numbers if isinstance(numbers, int) or np.isfinite(numbers) else str(numbers)


def _describe_function(function: Any, inside: frozenset[int]) -> Any:
    if all(hasattr(function, name) for name in ("func", "args", "keywords")):  # a `partial`
        inner = _describe(function.func, inside)
        if not function.args and not function.keywords:
            return inner
        given = {"arguments": function.args, "keywords": function.keywords}
        return (inner if len(inner) == 1 else {"function": inner}) | _describe(given, inside)
    name = _name_of(function)
    is_local = "<locals>" in name
    is_known = name.split(".")[0].split(":")[0] in _KNOWN_PACKAGES
    if is_known and not (is_local and function.__closure__):
        return {"function": name}
    if id(function) in inside:
        return {"function": name, "calls": "itself"}
    plain = inspect.unwrap(function)
    code = getattr(plain, "__code__", None)
    if code is None:  # an object that is called; its address tells it from all others
        return {"function": name, "object": repr(function)}
    described = {"function": name} if is_known else {"function": name, "code": _digest(code)}
    cells = {"encloses": [_contents(cell) for cell in plain.__closure__ or ()]}
    defaults = {"defaults": [plain.__defaults__, plain.__kwdefaults__]}
    return described | _describe(cells | defaults, inside | {id(function)})


def _name_of(value: Any) -> str:
    """Return the module and the name of a function or a type."""
    kind = value if hasattr(value, "__qualname__") else type(value)
    return f"{kind.__module__}:{kind.__qualname__}"


def _contents(cell: CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # of a variable that is not set
        return None


def _digest(code: CodeType) -> str:
    """Return a digest of what a function does, whatever its place in a file."""
    constants = [
        _digest(constant)
        if isinstance(constant, CodeType)
        else sorted(map(repr, constant))  # a set has no order
        if isinstance(constant, frozenset)
        else repr(constant)
        for constant in code.co_consts
    ]
    names = (code.co_names, code.co_varnames, code.co_freevars)
    text = repr((code.co_code, code.co_argcount, names, constants))
    return hashlib.sha256(text.encode()).hexdigest()
