"""What the figures were measured on."""

import importlib.metadata
import os
import platform
import re
import shutil
import subprocess
from pathlib import Path

__all__ = ["describe_in_words", "describe_machine"]

_PACKAGES = ("jax", "numpy", "numba", "pymab", "SMPyBandits")


def describe_machine() -> dict[str, str]:
    """Processor, cores, load, versions."""
    described = {
        "processor": _processor(),
        "cores": str(os.cpu_count() or 1),
        "vectors": _vectors(),
        "load at the start": f"{os.getloadavg()[0]:.1f}",
        "system": platform.platform(terse=True),
        "Python": platform.python_version(),
        "C compiler": _compiler(),
    }
    for package in _PACKAGES:
        try:
            described[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            described[package] = "not installed"
    return described


def describe_in_words(machine: dict[str, str]) -> str:
    return ", ".join(
        [
            f"{machine['cores']} cores of {machine['processor']} ({machine['vectors']})",
            f"load {machine['load at the start']} at the start",
            machine["system"],
            f"Python {machine['Python']}",
            machine["C compiler"],
            *(f"{name} {machine[name]}" for name in _PACKAGES),
        ]
    )


def _cpu_information() -> str:
    try:
        return Path("/proc/cpuinfo").read_text()
    except OSError:  # not Linux
        return ""


def _processor() -> str:
    match = re.search(r"model name\s*:\s*(.+)", _cpu_information())
    return match[1].strip() if match else platform.processor() or platform.machine()


def _vectors() -> str:
    known = _cpu_information()
    for flag, name in (("avx512f", "AVX-512"), ("avx2", "AVX2"), ("asimd", "NEON")):
        if re.search(rf"\b{flag}\b", known):
            return name
    return "vector width not known"


def _compiler() -> str:
    compiler = os.environ.get("CC") or shutil.which("cc")
    if compiler is None:
        return "no C compiler"
    shown = subprocess.run([compiler, "--version"], capture_output=True, text=True).stdout
    return shown.splitlines()[0] if shown else compiler
