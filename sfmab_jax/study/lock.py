"""Locks in a study's folder, each held by one process at a time."""

import errno
import getpass
import json
import os
import platform
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TextIO

__all__ = ["hold", "holder_of"]

_BEGINNING = '{"user": '  # of the text in a lock


@contextmanager
def hold(folder: Path, name: str = "lock") -> Iterator[None]:
    """Hold the folder's lock of this name, or raise an error that names its holder.

    The lock is the kernel's (``flock``), so it ends with the process, however that ends. The file
    is left behind; its text only names the last holder.
    """
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    with _open(path, os.O_CREAT) as file:
        if not _try_lock(file):
            raise OSError(f"{folder} is in use by {_read_holder(file)}; wait, or stop it")
        file.seek(0)
        if file.read(len(_BEGINNING)) not in ("", _BEGINNING):
            raise ValueError(f"{path} is not the lock of a study; move it, or give another folder")
        file.truncate(0)
        holder = {
            "user": _user(),
            "host": platform.node(),
            "process": os.getpid(),
            "since": datetime.now(UTC).isoformat(timespec="seconds"),
        }
        file.write(json.dumps(holder))
        file.flush()
        yield


def holder_of(path: Path) -> str | None:
    """Return who holds a lock, in words; None if nobody does."""
    try:
        with _open(path) as file:
            return None if _try_lock(file) else _read_holder(file)
    except FileNotFoundError:
        return None


def _open(path: Path, more: int = 0) -> TextIO:
    """Open a lock to read and to append, but nothing behind a link and no pipe or device."""
    try:
        handle = os.open(path, os.O_RDWR | os.O_APPEND | getattr(os, "O_NOFOLLOW", 0) | more, 0o666)
    except OSError as error:
        if error.errno != errno.ELOOP:
            raise
        raise ValueError(f"{path} is a link; remove it, or give another folder") from None
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise ValueError(f"{path} is not a file; remove it, or give another folder")
    return open(handle, "r+", encoding="utf-8", errors="replace")


def _try_lock(file) -> bool:
    try:
        import fcntl
    except ImportError:
        raise OSError("studies need file locks, which this system lacks") from None
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _user() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError):  # a user without a name, as in some containers
        return str(os.getuid())


def _read_holder(file) -> str:
    file.seek(0)
    try:
        holder = json.loads(file.read())
        return "{user} on {host}, process {process}, since {since}".format(**holder)
    except (ValueError, KeyError, TypeError):  # it has the lock, but has not yet written who it is
        return "another process"
