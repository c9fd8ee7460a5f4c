"""One process at a time may hold a lock in a study's folder."""

import getpass
import json
import os
import platform
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

__all__ = ["hold", "holder_of"]


@contextmanager
def hold(folder: Path, name: str = "lock") -> Iterator[None]:
    """Holds the folder's lock of this name, or says who does.

    The lock is the kernel's (``flock``), so it ends with the process, however that ends. The file
    is left behind; its text only names the last holder.
    """
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "a+", encoding="utf-8") as file:
        if not _locked(file):
            raise OSError(f"{folder} is in use by {_named(file)}; wait, or stop it")
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
    """Who holds this lock; None if nobody does."""
    if not path.exists():
        return None
    with open(path, "a+", encoding="utf-8") as file:
        return None if _locked(file) else _named(file)


def _locked(file) -> bool:
    """Whether the lock could be taken."""
    try:
        import fcntl
    except ImportError:
        raise OSError("studies are run with file locks, which this system lacks") from None
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


def _named(file) -> str:
    file.seek(0)
    try:
        holder = json.loads(file.read())
        return "{user} on {host}, process {process}, since {since}".format(**holder)
    except (ValueError, KeyError):  # it has the lock, but has not yet written who it is
        return "another process"
