"""Where results come from: versions, platform, dates and commits."""

import os
import platform
import subprocess
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import jax
import jaxlib
import numpy as np

__all__ = ["commit_of", "describe_platform", "software_versions", "timestamp"]


def timestamp() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def software_versions() -> dict[str, str]:
    return {
        "sfmab_jax": version("sfmab-jax"),
        "jax": jax.__version__,
        "jaxlib": jaxlib.version.__version__,
        "numpy": np.__version__,
        "python": platform.python_version(),
    }


def describe_platform() -> dict[str, Any]:
    return {
        "system": platform.platform(),
        "machine": platform.machine(),
        "cores": os.cpu_count(),
        "backend": jax.default_backend(),
        "devices": [str(device) for device in jax.local_devices()],
    }


def commit_of(folder: Path) -> str | None:
    """Return the git commit of a folder, with "+" if files were changed; None without git."""
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
