"""One process at a time may write into a study's folder."""

import getpass
import json
import os
import platform
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

__all__ = ["hold"]


@contextmanager
def hold(folder: Path) -> Iterator[None]:
    """Holds the folder's lock, or says who does.

    The lock is the kernel's (``flock``), so it ends with the process, however that ends. The file
    is left behind; its text only names the last holder.
    """
    try:
        import fcntl
    except ImportError:
        raise OSError("studies are run with file locks, which this system lacks") from None
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / "lock", "a+", encoding="utf-8") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise OSError(f"{folder} is in use by {_holder(file)}; wait, or stop it") from None
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


def _user() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError):  # a user without a name, as in some containers
        return str(os.getuid())


def _holder(file) -> str:
    file.seek(0)
    try:
        holder = json.loads(file.read())
        return "{user} on {host}, process {process}, since {since}".format(**holder)
    except (ValueError, KeyError):  # it has the lock, but has not yet written who it is
        return "another process"
