"""How the engine's cost changes with one thing at a time."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from benchmarks.child import Cell, Child

__all__ = ["SWEEPS", "Point", "Sweep", "run_sweep"]

# Children alive, and so timed in turns, at a time.
_TOGETHER = 8


class Sweep(NamedTuple):
    title: str
    along: str  # what the cells differ in, as a label
    cells: dict[str, Cell]  # by the value of it
    # With the first of all cells (True), or of every so many; these are timed in the same turns.
    compared: bool | int = False


class Point(NamedTuple):
    """What was measured of one cell."""

    label: str
    cell: Cell
    seconds: list[float]
    compile_seconds: float
    peak_megabytes: float

    @property
    def nanoseconds_per_round(self) -> np.ndarray:
        """Of each repeat."""
        games = self.cell.sequences * self.cell.seeds
        return np.array(self.seconds) / (self.cell.rounds * games) * 1e9


def run_sweep(sweep: Sweep, repeats: int, say: Callable[[str], None]) -> list[Point]:
    """Every cell in a process of its own, processes taking turns."""
    labels, points = list(sweep.cells), []
    for first in range(0, len(labels), _TOGETHER):
        points += _measured_in_turns(sweep, labels[first : first + _TOGETHER], repeats, say)
    return points


def _measured_in_turns(sweep: Sweep, labels: list[str], repeats: int, say) -> list[Point]:
    children, firsts = {}, {}
    for label in labels:  # one compiles at a time
        children[label] = Child(sweep.cells[label]._asdict())
        firsts[label] = children[label].play(0)["seconds"]
        say(f"{sweep.along} {label}: first run {firsts[label]:.1f} s")
    seconds: dict[str, list[float]] = {label: [] for label in labels}
    peaks = {}
    for repeat in range(1, repeats + 1):
        for label, child in children.items():
            answer = child.play(repeat)
            seconds[label].append(answer["seconds"])
            peaks[label] = answer["peak_megabytes"]
    for child in children.values():
        child.close()
    return [
        Point(
            label,
            sweep.cells[label],
            seconds[label],
            max(firsts[label] - float(np.median(seconds[label])), 0.0),
            peaks[label],
        )
        for label in labels
    ]


_GAMES_BY_ARMS = {2: 65536, 10: 32768, 100: 4096, 1000: 512, 10_000: 64}


def _arms(quick: bool) -> Sweep:
    # As many rounds of each, as early ones cost more; fewer games of more arms, so that each takes
    # about as long.
    rounds = 64 if quick else 256
    games = {2: 1024, 10: 1024, 100: 512} if quick else _GAMES_BY_ARMS
    cells = {f"{arms}": Cell(arms=arms, seeds=n, rounds=rounds) for arms, n in games.items()}
    return Sweep(f"Cost against the number of arms, {rounds} rounds", "arms", cells)


def _seeds(quick: bool) -> Sweep:
    most = 3 if quick else 6
    numbers = [10**k for k in range(most + 1)]
    cells = {f"{number}": Cell(seeds=number, rounds=100) for number in numbers}
    return Sweep("Cost against the number of seeds, 100 rounds", "seeds", cells)


def _rounds(quick: bool) -> Sweep:
    numbers = [10**k for k in range(2, 4 if quick else 7)]
    cells = {f"{number}": Cell(rounds=number, seeds=1024) for number in numbers}
    return Sweep("Cost against the number of rounds, 1,024 seeds", "rounds", cells)


def _sequences(quick: bool) -> Sweep:
    games, rounds = (1024, 100) if quick else (16384, 1000)
    numbers = (1, 16, 64, games) if quick else (1, 16, 64, 512, 2048, games)
    cells = {f"{n}": Cell(sequences=n, seeds=games // n, rounds=rounds) for n in numbers}
    title = f"Cost against the number of loss sequences, {games:,} games, {rounds:,} rounds"
    return Sweep(title, "sequences", cells, compared=True)


def _precision(quick: bool) -> Sweep:
    size = {"seeds": 1024, "rounds": 200} if quick else {"seeds": 8192}
    cells = {name: Cell(dtype=name, **size) for name in ("float32", "float64")}
    return Sweep("float32 and float64", "dtype", cells, compared=True)


def _devices(quick: bool) -> Sweep:
    size = {"seeds": 2048, "rounds": 200} if quick else {"seeds": 16384}
    cells = {
        "1 device, 1 core": Cell(devices=1, cores=1, **size),
        "1 device, 2 cores": Cell(devices=1, cores=2, **size),
        "2 devices, 2 cores": Cell(devices=2, cores=2, **size),
    }
    return Sweep("Devices and cores", "devices", cells, compared=True)


def _strategies(quick: bool) -> Sweep:
    from sfmab_jax.strategies import STRATEGIES

    size = {"seeds": 512, "rounds": 64} if quick else {}
    names = ("scale_free", "exp3", "tsallis_inf") if quick else STRATEGIES
    cells = {name: Cell(strategy=name, **size) for name in names}
    return Sweep("Strategies", "strategy", cells)


def _certificates(quick: bool) -> Sweep:
    size = {"seeds": 1024, "rounds": 200} if quick else {"seeds": 8192}
    cells = {
        "off": Cell(certificate=False, **size),
        "on": Cell(certificate=True, **size),
    }
    return Sweep("Certificates off and on", "certificates", cells, compared=True)


def _batching(quick: bool) -> Sweep:
    from sfmab_jax.strategies import STRATEGIES

    size = {"seeds": 512, "rounds": 64} if quick else {}
    names = ("scale_free", "exp3") if quick else STRATEGIES
    cells = {
        f"{name}, {batching}": Cell(strategy=name, batching=batching, **size)
        for name in names
        for batching in ("vmap", "lanes")
    }
    return Sweep("Lanes against jax.vmap", "strategy and batching", cells, compared=2)


SWEEPS: dict[str, Callable[[bool], Sweep]] = {
    "arms": _arms,
    "seeds": _seeds,
    "rounds": _rounds,
    "sequences": _sequences,
    "precision": _precision,
    "devices": _devices,
    "strategies": _strategies,
    "certificates": _certificates,
    "batching": _batching,
}
