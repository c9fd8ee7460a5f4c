"""Cells cut into blocks of seeds and spans of rounds."""

from typing import NamedTuple

import numpy as np

from sfmab_jax.rounds import block_width
from sfmab_jax.study.plan import Cell

__all__ = ["CORE_SPEED", "Block", "block_seeds", "blocks", "span_rounds", "vector_work"]

# Rounds of games in a block: some seconds of one core.
_BLOCK_WORK = 4e7
# Work that a core does in a second, see `Block.work`; roughly, for Algorithm 1.
CORE_SPEED = 5e7
# Seconds in a span of rounds.
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
    def vectors(self) -> int:
        """Vectors of the engine that hold its games; it plays whole ones only."""
        games = self.cell.num_sequences * self.num_seeds
        return -(-games // block_width(self.cell.num_arms))

    @property
    def work(self) -> int:
        """In proportion to the time it takes, roughly: a round costs more with more arms."""
        return self.vectors * vector_work(self.cell) * self.cell.num_rounds


def vector_work(cell: Cell) -> int:
    """The work in a round of one vector of games."""
    size = 2 if cell.dtype == "float64" else 1
    return block_width(cell.num_arms) * (cell.num_arms + 5) * size


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
    return int(_SPAN * CORE_SPEED / vector_work(cell))
