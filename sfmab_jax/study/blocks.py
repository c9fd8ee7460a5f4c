"""Cells cut into blocks of seeds and spans of rounds, and what they will cost."""

import os
from typing import NamedTuple

import numpy as np

from sfmab_jax.rounds import block_width
from sfmab_jax.study.plan import Cell

__all__ = ["Block", "Estimate", "block_seeds", "blocks", "estimate", "span_rounds"]

# Rounds of games in a block: some seconds of one core.
_BLOCK_WORK = 4e7
# Rough figures for the estimate: rounds of one arm per second on a core, and a compilation.
_SPEED = 5e7
_COMPILATION = 5.0
# Seconds in a span of rounds, by the same figures.
_SPAN = 15.0


class Block(NamedTuple):
    """Seeds first_seed ... first_seed + num_seeds - 1 of a cell."""

    cell: Cell
    first_seed: int
    num_seeds: int

    @property
    def num_rounds(self) -> int:
        """Rounds of all its games."""
        return self.cell.num_rounds * self.cell.num_sequences * self.num_seeds

    @property
    def work(self) -> int:
        """In proportion to the time it takes, roughly: a round costs more with more arms."""
        return self.num_rounds * (self.cell.num_arms + 5)


def block_seeds(cell: Cell) -> int:
    """Seeds in a block, by a rule on the cell alone, so that more seeds leave blocks as they are.

    Some seconds of work, and no fewer games than fill two vectors of the engine, which plays
    whole vectors only.
    """
    per_seed = cell.num_rounds * cell.num_sequences
    least = -(-2 * block_width(cell.num_arms) // cell.num_sequences)
    return int(np.clip(2 ** np.ceil(np.log2(_BLOCK_WORK / per_seed)), least, 2**16))


def blocks(cell: Cell, num_seeds: int) -> list[Block]:
    """The blocks of a cell's first ``num_seeds`` seeds."""
    size = block_seeds(cell)
    return [Block(cell, s, min(size, num_seeds - s)) for s in range(0, num_seeds, size)]


def span_rounds(cell: Cell) -> int:
    """Rounds after which a block that is being played is kept, see `spans`.

    A core plays them in about a quarter of a minute; most blocks have fewer.
    """
    return int(_SPAN / _seconds_per_round(cell))


def _seconds_per_round(cell: Cell) -> float:
    """Of one vector of games on one core, roughly."""
    size = 2 if cell.dtype == "float64" else 1
    return block_width(cell.num_arms) * (cell.num_arms + 5) * size / _SPEED


class Estimate(NamedTuple):
    """What a study will cost, roughly."""

    num_rounds: int  # of all games
    seconds: float
    memory: int  # bytes, beyond what JAX itself takes
    disk: int  # bytes


def estimate(cells: tuple[Cell, ...], num_seeds: int) -> Estimate:
    """Rounds are counted; the time is a guess from a figure for one core, and compilations."""
    rounds, seconds, memory, disk = 0, 0.0, 0, 0
    cores = os.cpu_count() or 1
    for cell in cells:
        width = block_width(cell.num_arms)
        size = 8 if cell.dtype == "float64" else 4
        given = cell.checkpoints
        kept = min(given, cell.num_rounds) if isinstance(given, int) else len(given)
        for block in blocks(cell, num_seeds):
            games = block.num_seeds * cell.num_sequences
            vectors = -(-games // width)
            waves = -(-vectors // cores)
            rounds += block.num_rounds
            seconds += waves * cell.num_rounds * _seconds_per_round(cell)
            written = 16 * games * kept
            working = size * min(vectors, cores) * width * (32 * cell.num_arms + 8 * kept)
            memory = max(memory, 3 * written + working)
            disk += written
    # Numbers do not need another program, other choices do.
    programs = {(c.num_arms, c.strategy_name, *map(type, c.strategy_parameters.values()),
                 *(v for v in c.strategy_parameters.values() if isinstance(v, str)))
                for c in cells}  # fmt: skip
    programs |= {(c.num_arms, c.family) for c in cells}
    return Estimate(rounds, seconds + _COMPILATION * len(programs), memory, disk)
