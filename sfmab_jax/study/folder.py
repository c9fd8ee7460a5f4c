"""Which paths in a folder are a study's own, by exact names; all others are left alone.

The names are those of `store`, `spans`, `processes` and `report`. No link is followed to write
behind it: a study's folders and its lock are never links.
"""

import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from sfmab_jax.study.manifest import IDENTITY, read_manifest

__all__ = ["check_output", "clear_leftovers", "refuse_links", "remove_process_files"]

_FOLDERS = re.compile(rf"cells(/{IDENTITY})?|processes|report(/figures|/tables)?")
_CELL = rf"cells/{IDENTITY}/(cell\.json|\d+_\d+\.(npz|[^/]+\.state))"
_PROCESS = r"processes/\w+\.(work|\d+)\.json"
_REPORT = r"report/(index\.html|report\.md|figures/[^/]+\.(svg|png|csv)|tables/\w+\.csv)"
# `write_atomically` adds this to the name of a file that is not whole yet.
_UNFINISHED = r"[a-z0-9_]{8}\.tmp"
_FILES = re.compile(
    rf"lock|processes/\d+\.lock|(manifest\.json|{_CELL}|{_PROCESS}|{_REPORT})({_UNFINISHED})?"
)
_LEFTOVERS = re.compile(rf"(manifest\.json|{_CELL}){_UNFINISHED}")
_PROCESS_FILES = re.compile(rf"processes/\d+\.lock|{_PROCESS}({_UNFINISHED})?")
# These have names that others use, too: without a block beside them they are somebody else's.
_COMMON_NAMES = ("manifest.json", "report/")


def check_output(folder: Path) -> None:
    """Refuse a folder that holds anything but a study, or a study behind links."""
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"--output is {folder}; that is a file, give a folder")
    if not folder.is_dir():
        return
    if not _has_manifest(folder) and (foreign := _find_foreign(folder)):
        raise ValueError(
            f"--output is {folder}; it holds {foreign} and no study, give a new folder"
        )
    cells = (name for name, _ in _list_paths(folder) if name.startswith("cells/"))
    refuse_links(folder, ("lock", "cells", "processes", *cells))


def refuse_links(folder: Path, names: Iterable[str]) -> None:
    """Refuse a study whose folders or lock are links: what is behind them is not its own."""
    for name in names:
        if (folder / name).is_symlink() and (name == "lock" or _FOLDERS.fullmatch(name)):
            raise ValueError(f"{folder / name} is a link; remove it, or give another folder")


def clear_leftovers(folder: Path) -> None:
    """Remove the unfinished files of a process that was killed; the caller holds the lock."""
    _remove_files(folder, _LEFTOVERS)


def remove_process_files(folder: Path) -> None:
    """Remove what the processes of a run have left, and their folder if nothing else is in it."""
    _remove_files(folder, _PROCESS_FILES)
    try:
        (folder / "processes").rmdir()
    except OSError:  # there is none, or it holds files of others
        return


def _remove_files(folder: Path, names: re.Pattern) -> None:
    for name, own in _list_paths(folder):
        if own and names.fullmatch(name):
            (folder / name).unlink(missing_ok=True)


def _has_manifest(folder: Path) -> bool:
    try:
        return read_manifest(folder) is not None
    except ValueError:
        return False


def _find_foreign(folder: Path) -> str | None:
    """Return a path in the folder that no study has written; None if there is none."""
    paths = list(_list_paths(folder))
    has_blocks = any(own and name.startswith("cells/") for name, own in paths)
    for name, own in paths:
        if not own or (name.startswith(_COMMON_NAMES) and not has_blocks):
            return name
    return None


def _list_paths(folder: Path, inside: str = "") -> Iterator[tuple[str, bool]]:
    """Yield all paths but a study's folders, and whether each is a file that a study writes.

    Folders of others are not entered, and links are not followed.
    """
    try:
        with os.scandir(folder / inside) as found:
            entries = sorted(found, key=lambda entry: entry.name)
    except FileNotFoundError:  # another process has removed it meanwhile
        return
    for entry in entries:
        name = f"{inside}{entry.name}"
        if entry.is_dir(follow_symlinks=False) and _FOLDERS.fullmatch(name):
            yield from _list_paths(folder, f"{name}/")
        else:
            yield name, entry.is_file(follow_symlinks=False) and bool(_FILES.fullmatch(name))
