"""C with OpenMP, seeds in vector lanes: `scale_free.c`, compiled for this machine when asked for.

"c_same_work" owes what the engine owes: a counter-based generator, two-word sums, the checkpoints,
realised and conditional losses. "c_free" owes nothing: xorshift, plain sums, -ffast-math. Both play
on a table of losses; "c_own_same_work" and "c_own_free" draw every game's own and measure them.
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

__all__ = [
    "c_free",
    "c_own_free",
    "c_own_same_work",
    "c_same_work",
    "checkpoint_rounds",
    "own_same_work_library",
    "play_in_c",
    "same_work_library",
]

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


def c_own_same_work(
    num_arms: int, num_rounds: int, gap: float, num_games: int
) -> Callable[[int], np.ndarray]:
    """The engine's work on uniform losses of every game's own: a function of the seed, as above."""
    library = own_same_work_library(num_arms, gap)
    checkpoints = checkpoint_rounds(num_rounds)
    return lambda seed: play_in_c(library, None, num_games, seed, checkpoints)[:, -1, 0]


def c_own_free(
    num_arms: int, num_rounds: int, gap: float, num_games: int
) -> Callable[[int], np.ndarray]:
    """As little work as that needs: a function of the seed, as above."""
    library = _compiled(num_arms, (*_FREE, *_own(gap)))
    only_last = np.array([num_rounds])
    return lambda seed: play_in_c(library, None, num_games, seed, only_last)[:, -1, 0]


def same_work_library(num_arms: int) -> ctypes.CDLL:
    """For `play_in_c` with a table of losses."""
    return _compiled(num_arms, _SAME_WORK)


def own_same_work_library(num_arms: int, gap: float) -> ctypes.CDLL:
    """For `play_in_c` without one."""
    return _compiled(num_arms, (*_SAME_WORK, *_own(gap)))


def checkpoint_rounds(num_rounds: int) -> np.ndarray:
    """64 rounds spread as the engine spreads its own, up to rounding; the last is the last."""
    return np.unique(np.rint(np.geomspace(1, num_rounds, 64)).astype(np.int32))


def play_in_c(
    library: ctypes.CDLL,
    losses: np.ndarray | None,
    num_games: int,
    seed: int,
    checkpoints: np.ndarray,
) -> np.ndarray:
    """What is kept at the checkpoints, the last of which is the last round: [games, C, ...].

    Realised and conditional losses; without a table of losses also the least and the mean total of
    an arm, the largest size of one, the sums of |l| and l^2, and the largest |l|.
    """
    table = None if losses is None else np.ascontiguousarray(losses, np.float32)
    checkpoints = np.ascontiguousarray(checkpoints, np.int32)
    kept = ctypes.c_int32.in_dll(library, "kept").value
    totals = np.zeros((num_games, len(checkpoints), kept))
    library.play(
        _address(table),
        ctypes.c_int32(checkpoints[-1]),
        ctypes.c_int64(num_games),
        ctypes.c_uint32(seed),
        _address(checkpoints),
        ctypes.c_int32(len(checkpoints)),
        _address(totals),
    )
    return totals


def _address(array: np.ndarray | None) -> ctypes.c_void_p | None:
    return None if array is None else array.ctypes.data_as(ctypes.c_void_p)


def _own(gap: float) -> tuple[str, ...]:
    return ("-DOWN", f"-DGAP={float(gap)}f")


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
