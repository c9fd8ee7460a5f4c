"""A process of its own for one thing to be measured: own devices, precision, cores and memory.

The parent starts `python -m benchmarks.child SPEC`, SPEC in JSON, and writes a seed a line; the
child plays and answers with one line of JSON. Between lines it sleeps, so that several children
can be timed in turns.
"""

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

__all__ = ["Cell", "Child", "contender_spec", "peak_megabytes"]


class Cell(NamedTuple):
    """A run of the engine in a sweep."""

    strategy: str = "scale_free"
    arms: int = 10
    rounds: int = 1000
    sequences: int = 1
    seeds: int = 4096  # of each sequence
    dtype: str = "float32"
    devices: int = 1
    cores: int = 0  # 0: all of the machine
    certificate: bool = False
    batching: str = "lanes"


class Child:
    """The parent's side: started at once, ready after the first `play`."""

    def __init__(self, spec: dict[str, Any]):
        self._process = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.child", json.dumps(spec)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd=Path(__file__).parent.parent,
            text=True,
        )

    def play(self, seed: int) -> dict[str, float]:
        """Plays once: seconds, and the peak memory so far in megabytes."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{seed}\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        if not answer:
            raise RuntimeError(f"a child of the benchmark ended with {self._process.wait()}")
        return json.loads(answer)

    def close(self) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()


def contender_spec(contest: str, name: str, arms: int, rounds: int, games: int) -> dict[str, Any]:
    """What a child is told in order to play as one contender."""
    return {
        "contest": contest,
        "contender": name,
        "arms": arms,
        "rounds": rounds,
        "games": games,
    }


def peak_megabytes() -> float:
    """The most memory that this process has held, libraries included."""
    try:
        status = Path("/proc/self/status").read_text()
    except OSError:  # not Linux
        import resource

        unit = 2**20 if sys.platform == "darwin" else 2**10
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit
    match = re.search(r"VmHWM:\s+(\d+)", status)
    return int(match[1]) / 2**10 if match else float("nan")


def _play_cell(cell: Cell) -> Callable[[int], Any]:
    import jax

    if cell.dtype == "float64":
        jax.config.update("jax_enable_x64", True)
    jax.config.update("jax_num_cpu_devices", cell.devices)
    import sfmab_jax as sf
    from sfmab_jax.checks import horizon_argument

    make = sf.strategies.STRATEGIES[cell.strategy]
    bandit = make(**horizon_argument(make, cell.rounds))
    losses = sf.losses.uniform(num_arms=cell.arms)

    def run(seed: int):
        return sf.simulate(
            bandit,
            losses,
            num_rounds=cell.rounds,
            num_sequences=cell.sequences,
            num_seeds=cell.seeds,
            seed=seed,
            dtype=cell.dtype,
            certificate=cell.certificate,
            batching=cell.batching,
            progress=False,
        )

    return run


def _play_contender(spec: dict[str, Any]) -> Callable[[int], np.ndarray]:
    from benchmarks.contests import CONTESTS

    contest = CONTESTS[spec["contest"]](spec["arms"], spec["rounds"])
    (contender,) = (c for c in contest.contenders if c.name == spec["contender"])
    return contender.make(min(spec["games"], contender.most_games))


def main() -> None:
    spec = json.loads(sys.argv[1])
    answers, sys.stdout = sys.stdout, sys.stderr  # what rivals print must not mix with answers
    if spec.get("cores"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: spec["cores"]])
    start = time.perf_counter()
    run = _play_contender(spec) if "contest" in spec else _play_cell(Cell(**spec))
    making = time.perf_counter() - start
    for line in sys.stdin:
        start = time.perf_counter()
        run(int(line))
        seconds = time.perf_counter() - start + making
        making = 0.0  # counted with the first run
        answer = {"seconds": seconds, "peak_megabytes": peak_megabytes()}
        print(json.dumps(answer), file=answers, flush=True)


if __name__ == "__main__":
    main()
