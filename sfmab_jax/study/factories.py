"""Strategies and loss families by name: the package's own, and a user's by import path.

`mymodule:my_strategy` is the function `my_strategy` of `mymodule.py` beside the study file, or of a
module that is installed. What a user's files hold, with the files beside them that they import,
belongs to the identity of a cell.
"""

import ast
import hashlib
import importlib
import importlib.util
import sys
from collections import ChainMap
from collections.abc import Callable, Mapping
from functools import cache, lru_cache
from inspect import Parameter
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

from sfmab_jax.losses import ADVERSARIES, LOSSES
from sfmab_jax.losses.files import from_file
from sfmab_jax.study.parameters import parameters_of, suggest

__all__ = ["FAMILIES", "Factory", "call_factory", "digest_of", "find_factory", "is_import_path"]

# What a study file may name beside import paths.
FAMILIES: Mapping[str, Callable] = ChainMap(LOSSES, ADVERSARIES, {"from_file": from_file})

# Files beside study files that their modules import, of all studies of this process.
_HELPERS: set[str] = set()


class Factory(NamedTuple):
    """A function that makes strategies or loss families, and what tells versions of it apart."""

    make: Callable
    digest: str | None  # of the files that it is from; None for the package's own


def is_import_path(name: str) -> bool:
    return ":" in name


def find_factory(name: str, known: Mapping[str, Callable], folder: Path) -> Factory:
    """Return the factory of this name; ValueError says why there is none, and the fix.

    Args:
      name: a name in ``known``, or "module:attribute".
      known: factories by name.
      folder: of the study file, where a user's modules are looked for first.
    """
    if not is_import_path(name):
        if name not in known:
            raise ValueError(f"unknown; {suggest(name, known)}")
        return Factory(known[name], None)
    module_name, _, attribute = name.partition(":")
    module = _import(module_name, folder)
    make = getattr(module, attribute, None)
    if make is None:
        functions = [key for key, value in vars(module).items() if _may_be_factory(key, value)]
        raise ValueError(f"{module_name} has no {attribute!r}; {suggest(attribute, functions)}")
    if not callable(make):
        kind = type(make).__name__
        raise ValueError(f"it is a {kind}; give a function that returns the strategy or the losses")
    try:
        parameters = parameters_of(make)
    except Exception as error:  # no signature, or annotations that cannot be evaluated
        raise ValueError(f"its parameters cannot be read: {error}") from None
    for key, parameter in parameters.items():
        if parameter.kind is Parameter.POSITIONAL_ONLY:
            raise ValueError(f"its parameter {key!r} has no name for callers; remove the '/'")
    files = _files_of(Path(module.__file__), folder.resolve()) if module.__file__ else []
    return Factory(make, _digest_of_all(files))


def call_factory(make: Callable, parameters: Mapping[str, Any], folder: Path) -> Any:
    """Return what a factory makes; paths are relative to the folder of the study file."""
    if make is from_file:
        parameters = {**parameters, "path": folder / parameters["path"]}
    return make(**parameters)


def digest_of(path: Path) -> str:
    """Return a hash of a file's content: 16 hexadecimal digits."""
    state = path.stat()
    return _digest(path, state.st_ino, state.st_size, state.st_mtime_ns)


@lru_cache(maxsize=256)
def _digest(path: Path, *state: int) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()[:16]


def _digest_of_all(paths: list[Path]) -> str:
    digests = " ".join(digest_of(path) for path in paths)
    return hashlib.sha256(digests.encode()).hexdigest()[:16]


def _files_of(path: Path, folder: Path) -> list[Path]:
    """Return a module's file and, in order, the files in the folder that it imports, at any depth.

    Imports by statements are found, wherever they stand.
    """
    found, waiting = [], [path]
    while waiting:
        file = waiting.pop()
        if file in found:
            continue
        found.append(file)
        try:
            tree = ast.parse(file.read_bytes())
        except (SyntaxError, ValueError):  # its import will say so
            continue
        names = set()
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                names |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                names |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
        for name in names:
            start = folder.joinpath(*name.split("."))
            candidates = (start.with_name(f"{start.name}.py"), start / "__init__.py")
            waiting += [candidate for candidate in candidates if candidate.is_file()]
    return [path, *sorted(set(found) - {path})]


def _may_be_factory(key: str, value: Any) -> bool:
    return callable(value) and not key.startswith("_") and not isinstance(value, type)


def _import(name: str, folder: Path) -> ModuleType:
    """Import a module: a file beside the study file as it is now, or what Python finds."""
    if not all(part.isidentifier() for part in name.split(".")):
        raise ValueError(f"{name!r} is no name of a module; give module:function")
    place = folder.resolve()
    if str(place) not in sys.path[:1]:  # for what it imports, perhaps only when it is called
        sys.path.insert(0, str(place))
    path = place / f"{name}.py"
    try:
        if path.is_file():
            return _load(name, path, _digest_of_all(_files_of(path, place)))
        importlib.invalidate_caches()
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name != name.split(".")[0]:
            raise ValueError(f"{name} needs {error.name}, which is not installed") from None
        raise ValueError(
            f"there is no module {name}; put {name}.py beside the study file, or install it"
        ) from None
    except Exception as error:  # whatever a user's module raises
        raise ValueError(
            f"{name} cannot be imported: {type(error).__name__}: {error}; mend it"
        ) from None


@cache
def _load(name: str, path: Path, digest: str) -> ModuleType:
    """Run a module's file; once for each content, so that an edited file counts at once.

    Modules beside it that it imports are imported anew.
    """
    _HELPERS.update(map(str, _files_of(path, path.parent)))
    for key, module in list(sys.modules.items()):
        if key != "__main__" and getattr(module, "__file__", None) in _HELPERS:
            del sys.modules[key]
    importlib.invalidate_caches()
    own_name = f"{name}_{digest}"
    spec = importlib.util.spec_from_file_location(own_name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[own_name] = module  # dataclasses look their module up
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[own_name]
        raise
    return module
