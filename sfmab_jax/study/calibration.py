"""How fast this machine is: some rounds of every strategy of a study, timed."""

import time
from collections.abc import Callable, Sequence

import jax

from sfmab_jax.rounds import block_width
from sfmab_jax.simulate import simulate
from sfmab_jax.sizes import chunk_rounds_for
from sfmab_jax.study.blocks import vector_work
from sfmab_jax.study.cost import Machine, num_checkpoints
from sfmab_jax.study.plan import Cell

__all__ = ["measured"]

_SECONDS = 1.0  # to be timed, about


def measured(machine: Machine, cells: Sequence[Cell], say: Callable[[str], None]) -> Machine:
    """The machine with the speed of each strategy, and the time of a compilation and a call.

    Of each strategy the cell with the most work is played for some rounds, in as many vectors as
    a device plays at a time. With other numbers of arms the speed is in proportion, as
    `Block.work` has it.
    """
    chosen: dict[str, Cell] = {}
    for cell in sorted(cells, key=lambda cell: cell.num_arms * cell.num_rounds):
        chosen[cell.strategy_name] = cell
    speeds, compilations, overheads = {}, [], []
    for name, cell in chosen.items():
        chunk = min(cell.num_rounds, _chunk(cell))
        first, again = _timed(cell, machine, chunk), _timed(cell, machine, chunk)
        compilations.append(max(0.0, first - again))
        many = min(cell.num_rounds, chunk * max(1, int(_SECONDS / again)))
        few = max(1, many // 4)
        # The better of two, by turns: other work on the machine can only add.
        timed = [(_timed(cell, machine, many), _timed(cell, machine, few)) for _ in range(2)]
        long, short = (min(times) for times in zip(*timed))
        per_round = max((long - short) / max(many - few, 1), 0.5 * long / many)
        overheads.append(max(0.0, long - per_round * many))
        speeds[name] = machine.vectors * vector_work(cell) / per_round
        say(f"{name}: {many:,} rounds of {cell.num_arms} arms took {long:.2f} seconds")
    return machine._replace(
        speed=sum(speeds.values()) / len(speeds),
        speeds=speeds,
        # A first call compiles two programs: one to play, one to make losses.
        compilation=sum(compilations) / len(compilations) / 2,
        overhead=sum(overheads) / len(overheads),
    )


def _timed(cell: Cell, machine: Machine, num_rounds: int) -> float:
    """Seconds for some rounds."""
    games = machine.vectors * block_width(cell.num_arms)
    start = time.perf_counter()
    simulate(
        cell.bandit(),
        cell.sequence(),
        num_rounds=num_rounds,
        num_seeds=-(-games // cell.num_sequences),
        num_sequences=cell.num_sequences,
        checkpoints=num_checkpoints(cell),
        dtype=cell.dtype,
        chunk_rounds=_chunk(cell),
        certificate=cell.certificates,
        progress=False,
    )
    return time.perf_counter() - start


def _chunk(cell: Cell) -> int:
    return chunk_rounds_for(cell.num_arms, cell.num_rounds, jax.local_devices()[0])
