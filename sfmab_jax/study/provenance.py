"""Where results come from: versions, platform, dates and commits."""

import os
import platform
import subprocess
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import jax
import jaxlib
import numpy as np

import sfmab_jax

__all__ = ["commit_of", "now", "platform_now", "versions_now"]


def now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def versions_now() -> dict[str, str]:
    return {
        "sfmab_jax": sfmab_jax.__version__,
        "jax": jax.__version__,
        "jaxlib": jaxlib.version.__version__,
        "numpy": np.__version__,
        "python": platform.python_version(),
    }


def platform_now() -> dict[str, Any]:
    return {
        "system": platform.platform(),
        "machine": platform.machine(),
        "cores": os.cpu_count(),
        "backend": jax.default_backend(),
        "devices": [str(device) for device in jax.local_devices()],
    }


def commit_of(folder: Path) -> str | None:
    """The git commit checked out in a folder, with "+" if files were changed; None if none."""
    if not folder.is_dir():
        return None
    try:
        commit = _git(folder, "rev-parse", "HEAD")
        return commit + ("+" if _git(folder, "status", "--porcelain", "-uno") else "")
    except (OSError, subprocess.SubprocessError):  # no git, or no repository
        return None


def _git(folder: Path, *arguments: str) -> str:
    command = ["git", "-C", str(folder), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=10, check=True)
    return done.stdout.strip()
