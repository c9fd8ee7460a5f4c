"""How fast this machine is: time some rounds of every strategy of a study."""

import time
from collections.abc import Callable, Sequence

import jax

from sfmab_jax.engine.layout import chunk_rounds_for, cpu_games_per_call, streamed_sequences
from sfmab_jax.simulate import simulate
from sfmab_jax.study.blocks import block_seeds, call_work
from sfmab_jax.study.cells import Cell
from sfmab_jax.study.cost import Machine, num_checkpoints

__all__ = ["measure_speed"]

_SECONDS = 1.0  # that the timed rounds take, about


def measure_speed(
    machine: Machine, cells: Sequence[Cell], num_seeds: int, say: Callable[[str], None]
) -> Machine:
    """Return the machine with the speed of each strategy and the time of a compilation and a block.

    Of each strategy the cell with the most work is played for some rounds, in as many calls as a
    device plays at a time. For other numbers of arms the speed is scaled as in `Block.work`.

    Args:
      machine: what is known of this machine.
      cells: the cells of a study.
      num_seeds: the seeds of the study.
      say: told in a line how long the rounds of each strategy took.
    """
    largest: dict[str, Cell] = {}
    for cell in sorted(cells, key=lambda cell: cell.num_arms * cell.num_rounds):
        largest[cell.strategy_name] = cell
    speeds, compilations, overheads = {}, [], []
    for name, cell in largest.items():
        games = _games(cell, num_seeds, machine)
        chunk = min(cell.num_rounds, _chunk(cell, *games))
        first, again = (_time_rounds(cell, games, chunk) for _ in range(2))
        compilations.append(max(0.0, first - again))
        many = min(cell.num_rounds, chunk * max(1, int(_SECONDS / again)))
        few = max(1, many // 4)
        # The better of two, by turns: other work on the machine can only add.
        times = [[_time_rounds(cell, games, rounds) for rounds in (many, few)] for _ in range(2)]
        long, short = map(min, zip(*times))
        per_round = max((long - short) / max(many - few, 1), 0.5 * long / many)
        overheads.append(max(0.0, long - per_round * many))
        speeds[name] = machine.vectors * call_work(cell) / per_round
        say(f"{name}: {many:,} rounds of {cell.num_arms} arms took {long:.2f} seconds")
    return machine._replace(
        speed=sum(speeds.values()) / len(speeds),
        speeds=speeds,
        # A first call compiles two programs: one to play, one to make losses.
        compilation=sum(compilations) / len(compilations) / 2,
        overhead=sum(overheads) / len(overheads),
    )


def _time_rounds(cell: Cell, games: tuple[int, int], num_rounds: int) -> float:
    num_sequences, num_seeds = games
    start = time.perf_counter()
    simulate(
        cell.bandit(),
        cell.sequence(),
        num_rounds=num_rounds,
        num_seeds=num_seeds,
        num_sequences=num_sequences,
        checkpoints=num_checkpoints(cell),
        dtype=cell.dtype,
        chunk_rounds=_chunk(cell, num_sequences, num_seeds),
        certificate=cell.certificates,
        pseudo_regret=cell.pseudo_regret,
        progress=False,
    )
    return time.perf_counter() - start


def _games(cell: Cell, num_seeds: int, machine: Machine) -> tuple[int, int]:
    """Return the sequences and seeds of so many games as a device plays at a time.

    If possible as many seeds of each sequence as a block has: games that share losses are faster.
    """
    games = machine.vectors * cpu_games_per_call(cell.num_arms)
    if cell.num_sequences is None:
        return games, 1
    num_sequences = min(cell.num_sequences, -(-games // min(num_seeds, block_seeds(cell))))
    return num_sequences, -(-games // num_sequences)


def _chunk(cell: Cell, num_sequences: int, num_seeds: int) -> int:
    streamed = streamed_sequences(cell.num_arms, num_sequences, num_seeds)
    device = jax.local_devices()[0]
    return chunk_rounds_for(cell.num_arms, cell.num_rounds, device, num_sequences=streamed)
