"""C with OpenMP, seeds in vector lanes: `scale_free.c`, compiled for this machine when asked for.

"c_same_work" owes what the engine owes: a counter-based generator, two-word sums, the checkpoints,
realised and conditional losses. "c_free" owes nothing: xorshift, plain sums, -ffast-math.
"""

import ctypes
import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np

from benchmarks.rivals.missing import Missing

__all__ = ["c_free", "c_same_work", "play_in_c"]

_SOURCE = Path(__file__).with_name("scale_free.c")
_OPTIONS = ("-O3", "-march=native", "-fopenmp", "-shared", "-fPIC")
# No result changes by these; they only let the compiler use vector instructions freely.
_SAME_WORK = ("-fno-math-errno", "-fno-trapping-math")
_FREE = ("-DFREE", "-ffast-math")


def c_same_work(losses: np.ndarray, num_seeds: int) -> Callable[[int], np.ndarray]:
    """The engine's work in C: a function of the seed, giving the realised losses [seeds]."""
    return _contender(losses, num_seeds, _SAME_WORK)


def c_free(losses: np.ndarray, num_seeds: int) -> Callable[[int], np.ndarray]:
    """As little work as the algorithm needs: a function of the seed, as above."""
    return _contender(losses, num_seeds, _FREE)


def _contender(losses, num_seeds: int, options) -> Callable[[int], np.ndarray]:
    from sfmab_jax.simulate import _checkpoints  # the engine's own list

    library = _compiled(losses.shape[1], options)
    checkpoints = _checkpoints(64, len(losses))

    def run(seed: int) -> np.ndarray:
        return play_in_c(library, losses, num_seeds, seed, checkpoints)[:, -1, 0]

    return run


def play_in_c(library, losses, num_seeds: int, seed: int, checkpoints) -> np.ndarray:
    """Realised and conditional losses up to the checkpoints, [seeds, C, 2]."""
    losses = np.ascontiguousarray(losses, np.float32)
    checkpoints = np.ascontiguousarray(checkpoints, np.int32)
    totals = np.zeros((num_seeds, len(checkpoints), 2))
    address = [array.ctypes.data_as(ctypes.c_void_p) for array in (losses, checkpoints, totals)]
    library.play(
        address[0],
        ctypes.c_int32(len(losses)),
        ctypes.c_int64(num_seeds),
        ctypes.c_uint32(seed),
        address[1],
        ctypes.c_int32(len(checkpoints)),
        address[2],
    )
    return totals


def _compiled(num_arms: int, options) -> ctypes.CDLL:
    """The library for so many arms, compiled once for each state of the source and machine."""
    compiler = os.environ.get("CC") or shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        raise Missing("C: no compiler found; install gcc or clang, or set CC")
    command = [compiler, *_OPTIONS, *options, f"-DARMS={num_arms}", str(_SOURCE)]
    mark = hashlib.sha256("\0".join(command).encode() + _SOURCE.read_bytes()).hexdigest()[:16]
    folder = Path(tempfile.gettempdir()) / f"sfmab_benchmarks_{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    library = folder / f"scale_free_{mark}.so"
    if not library.exists():
        with tempfile.TemporaryDirectory(dir=folder) as place:
            made = Path(place) / library.name
            finished = subprocess.run([*command, "-o", str(made)], capture_output=True, text=True)
            if finished.returncode:
                first = finished.stderr.strip().splitlines()[:1]
                raise Missing(f"C: {compiler} failed: {' '.join(first)}")
            made.rename(library)
    return ctypes.CDLL(str(library))
