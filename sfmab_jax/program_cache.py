"""Compiled programs kept between runs of the command line."""

import hashlib
import os
import platform
from pathlib import Path
from typing import Any

import jax

__all__ = ["keep_programs", "program_folder"]

# What compiles faster than this, in seconds, is compiled again.
_WORTH_KEEPING = 0.3


def keep_programs() -> None:
    """Has JAX keep the machine code it compiles, so that the next run starts at once.

    `JAX_COMPILATION_CACHE_DIR` names another folder, and `JAX_ENABLE_COMPILATION_CACHE=false`
    turns it off: they are JAX's own. Where nothing can be written nothing is kept.
    """
    config: Any = jax.config
    if not config.jax_enable_compilation_cache or config.jax_compilation_cache_dir:
        return
    folder = program_folder()
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError:
        return
    if os.access(folder, os.W_OK):
        config.update("jax_compilation_cache_dir", str(folder))
        config.update("jax_persistent_cache_min_compile_time_secs", _WORTH_KEEPING)


def program_folder() -> Path:
    """Where they are kept, by the kind of processor: another may not know the instructions."""
    root = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(root) / "sfmab_jax" / _processor()


def _processor() -> str:
    """A short name for what this processor can do."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    named = [line for line in lines if line.startswith(("model name", "flags", "Features"))]
    described = "\n".join([platform.machine(), platform.processor(), *sorted(set(named))])
    return hashlib.sha256(described.encode()).hexdigest()[:16]
