"""Cells cut into blocks of seeds and spans of rounds."""

from typing import NamedTuple

import numpy as np

from sfmab_jax.engine.layout import cpu_games_per_call
from sfmab_jax.study.cells import Cell

__all__ = ["CORE_SPEED", "Block", "block_seeds", "call_work", "cut_into_blocks", "span_rounds"]

# Rounds of games in a block: some seconds of one core.
_BLOCK_WORK = 4e7
# Work, as in `Block.work`, that a core does in a second; roughly, for Algorithm 1.
CORE_SPEED = 5e7
# Seconds that a core takes for a span of rounds.
_SPAN_SECONDS = 15.0


class Block(NamedTuple):
    """Seeds first_seed ... first_seed + num_seeds - 1 of a cell."""

    cell: Cell
    first_seed: int
    num_seeds: int

    @property
    def num_rounds(self) -> int:
        """Rounds of all its games together."""
        return self.cell.num_rounds * self.cell.num_sequences * self.num_seeds

    @property
    def num_calls(self) -> int:
        """Calls of the engine that play its games; each plays its full number of games."""
        games = self.cell.num_sequences * self.num_seeds
        return -(-games // cpu_games_per_call(self.cell.num_arms))

    @property
    def work(self) -> int:
        """Work, roughly in proportion to time: a round costs more with more arms."""
        return self.num_calls * call_work(self.cell) * self.cell.num_rounds


def call_work(cell: Cell) -> int:
    """Return the work in one round of the games of a call."""
    size = 2 if cell.dtype == "float64" else 1
    return cpu_games_per_call(cell.num_arms) * (cell.num_arms + 5) * size


def block_seeds(cell: Cell) -> int:
    """Return the seeds in a block: some seconds of work, and games for at least two calls.

    A rule on the cell alone, so that a study with more seeds keeps the blocks that it has.
    """
    per_seed = cell.num_rounds * cell.num_sequences
    least = -(-2 * cpu_games_per_call(cell.num_arms) // cell.num_sequences)
    return int(np.clip(2 ** np.ceil(np.log2(_BLOCK_WORK / per_seed)), least, 2**16))


def cut_into_blocks(cell: Cell, num_seeds: int) -> list[Block]:
    """Return the blocks of a cell's first ``num_seeds`` seeds."""
    size = block_seeds(cell)
    return [Block(cell, s, min(size, num_seeds - s)) for s in range(0, num_seeds, size)]


def span_rounds(cell: Cell) -> int:
    """Return the rounds between two bookmarks of a block, see `spans`.

    A core plays them in about a quarter of a minute; most blocks have fewer.
    """
    return int(_SPAN_SECONDS * CORE_SPEED / call_work(cell))
