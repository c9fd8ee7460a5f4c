"""C with OpenMP, seeds in vector lanes: `scale_free.c`, compiled for this machine when asked for.

"c_same_work" owes what the engine owes: a counter-based generator, two-word sums, the checkpoints,
realised and conditional losses. "c_free" owes nothing: xorshift, plain sums, -ffast-math.
"""

import ctypes
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np

from sfmab_jax.cli.bench import MissingRivalError

__all__ = ["c_free", "c_same_work", "checkpoint_rounds", "play_in_c", "same_work_library"]

_SOURCE = Path(__file__).with_name("scale_free.c")
_OPTIONS = ("-O3", "-march=native", "-fopenmp", "-fPIC")
# No result changes by these; they only let the compiler use vector instructions freely.
_SAME_WORK = ("-fno-math-errno", "-fno-trapping-math")
_FREE = ("-DFREE", "-ffast-math")


def c_same_work(losses: np.ndarray, num_games: int) -> Callable[[int], np.ndarray]:
    """The engine's work in C: a function of the seed, giving the total losses [games]."""
    library = _compiled(losses.shape[1], _SAME_WORK)
    checkpoints = checkpoint_rounds(len(losses))
    return lambda seed: play_in_c(library, losses, num_games, seed, checkpoints)[:, -1, 0]


def c_free(losses: np.ndarray, num_games: int) -> Callable[[int], np.ndarray]:
    """As little work as the algorithm needs: a function of the seed, as above."""
    library = _compiled(losses.shape[1], _FREE)
    only_last = np.array([len(losses)])
    return lambda seed: play_in_c(library, losses, num_games, seed, only_last)[:, -1, 0]


def same_work_library(num_arms: int) -> ctypes.CDLL:
    """For `play_in_c`."""
    return _compiled(num_arms, _SAME_WORK)


def checkpoint_rounds(num_rounds: int) -> np.ndarray:
    """64 rounds spread as the engine spreads its own, up to rounding; the last is the last."""
    return np.unique(np.rint(np.geomspace(1, num_rounds, 64)).astype(np.int32))


def play_in_c(
    library: ctypes.CDLL, losses: np.ndarray, num_seeds: int, seed: int, checkpoints: np.ndarray
) -> np.ndarray:
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


@cache
def _compiled(num_arms: int, options: tuple[str, ...]) -> ctypes.CDLL:
    """The library for so many arms; compiled anew in each process, so that it can be timed."""
    compiler = os.environ.get("CC") or shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        raise MissingRivalError("C: no compiler found; install gcc or clang, or set CC")
    command = [compiler, *_OPTIONS, *options, f"-DARMS={num_arms}", str(_SOURCE)]
    # A loaded library stays when its file is gone.
    # Linked in a step of its own: with -ffast-math GCC would link in a start-up that flushes
    # subnormal numbers to zero, for all that runs in this process.
    with tempfile.TemporaryDirectory() as place:
        made, library = Path(place) / "scale_free.o", Path(place) / "scale_free.so"
        link = [compiler, "-shared", "-fopenmp", str(made), "-o", str(library)]
        for step in ([*command, "-c", "-o", str(made)], link):
            finished = subprocess.run(step, capture_output=True, text=True)
            if finished.returncode:
                first = finished.stderr.strip().splitlines()[:1]
                raise MissingRivalError(f"C: {compiler} failed: {' '.join(first)}")
        return ctypes.CDLL(str(library))
