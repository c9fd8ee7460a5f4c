"""Keep compiled programs between runs of the command line."""

import hashlib
import os
import platform
import stat
from contextlib import suppress
from pathlib import Path
from typing import Any

import jax

__all__ = ["cache_folder", "enable_cache"]

# Programs that compile faster are not kept, unless JAX's own variable says otherwise.
_LEAST_SECONDS = 0.3
_MOST_BYTES = 2**30
_LEAST_SECONDS_VARIABLE = "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS"


def enable_cache() -> None:
    """Let JAX keep the machine code it compiles, so that the next run starts at once.

    JAX's own variables are respected: `JAX_COMPILATION_CACHE_DIR` names another folder,
    `JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS` another threshold, and
    `JAX_ENABLE_COMPILATION_CACHE=false` turns it off. What is kept is run, so a folder serves only
    if no one else can write to it; without one nothing is kept. Of more than 1 GiB the oldest
    programs are removed.
    """
    config: Any = jax.config
    if not config.jax_enable_compilation_cache or config.jax_compilation_cache_dir:
        return
    folder = cache_folder()
    try:
        folder.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        folder.mkdir(exist_ok=True, mode=0o700)
        is_private = _is_private(folder.parent) and _is_private(folder)
    except OSError:
        return
    if is_private and os.access(folder, os.W_OK):
        _trim(folder)
        config.update("jax_compilation_cache_dir", str(folder))
        if _LEAST_SECONDS_VARIABLE not in os.environ:
            config.update("jax_persistent_cache_min_compile_time_secs", _LEAST_SECONDS)


def _is_private(folder: Path) -> bool:
    """Whether it is a folder of the user's, no link, that no one else may write to."""
    status = folder.lstat()
    is_own = not hasattr(os, "geteuid") or status.st_uid == os.geteuid()
    return stat.S_ISDIR(status.st_mode) and is_own and not status.st_mode & 0o022


def _trim(folder: Path) -> None:
    """Remove the oldest programs above the limit; JAX's own limit needs another package."""
    files = []
    for path in folder.iterdir():
        with suppress(OSError):  # another process removes them, too
            files.append((path.stat().st_mtime, path.stat().st_size, path))
    total = 0
    for _, size, path in sorted(files, reverse=True):
        total += size
        if total > _MOST_BYTES:
            with suppress(OSError):
                path.unlink()


def cache_folder() -> Path:
    """Return the folder of this kind of processor; another may not know the instructions."""
    root = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(root) / "sfmab_jax" / _processor_name()


def _processor_name() -> str:
    """Return a short name for the instructions of this processor."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    features = {line for line in lines if line.startswith(("model name", "flags", "Features"))}
    description = "\n".join([platform.machine(), platform.processor(), *sorted(features)])
    return hashlib.sha256(description.encode()).hexdigest()[:16]
