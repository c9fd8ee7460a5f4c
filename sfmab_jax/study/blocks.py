"""Cells cut into blocks of seeds and spans of rounds."""

from bisect import bisect_right
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from sfmab_jax.engine.layout import cpu_games_per_call
from sfmab_jax.engine.validate import Games
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
    def games(self) -> Games:
        """Which games of the engine these are; seeds with their own losses are sequences there."""
        shared = self.cell.num_sequences
        if shared is None:
            return Games(self.num_seeds, 1, self.first_seed, 0)
        return Games(shared, self.num_seeds, 0, self.first_seed)

    @property
    def num_games(self) -> int:
        return self.games.num_sequences * self.games.num_seeds

    @property
    def num_rounds(self) -> int:
        """Rounds of all its games together."""
        return self.cell.num_rounds * self.num_games

    @property
    def num_calls(self) -> int:
        """Calls of the engine that play its games; each plays its full number of games."""
        return -(-self.num_games // cpu_games_per_call(self.cell.num_arms))

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

    A rule on the cell alone, so that strategies are cut alike.
    """
    games = cell.num_sequences or 1  # of a seed
    least = -(-2 * cpu_games_per_call(cell.num_arms) // games)
    # Seeds with their own losses have norms of their own, too, in the block's file.
    most = 2**14 if cell.num_sequences is None else 2**16
    seeds = 2 ** np.ceil(np.log2(_BLOCK_WORK / (cell.num_rounds * games)))
    return int(np.clip(seeds, least, most))


def cut_into_blocks(
    cell: Cell, num_seeds: int, kept: Iterable[tuple[int, int]] = ()
) -> list[Block]:
    """Return the blocks of a cell's first ``num_seeds`` seeds, in order.

    Blocks that are there stay as they are, whatever number of seeds they were cut for: what is
    missing is cut around them.

    Args:
      cell: the cell.
      num_seeds: how many seeds it is to have.
      kept: (first seed, number of seeds) of the blocks on disk, see `store.kept_blocks`.
    """
    size = block_seeds(cell)
    largest: dict[int, int] = {}  # by first seed, of those within the seeds
    for first, number in kept:
        if first + number <= num_seeds:
            largest[first] = max(number, largest.get(first, 0))
    starts = [*sorted(largest), num_seeds]
    blocks, start = [], 0
    while start < num_seeds:
        end = min(start - start % size + size, starts[bisect_right(starts, start)])
        number = largest.get(start, end - start)
        blocks.append(Block(cell, start, number))
        start += number
    return blocks


def span_rounds(cell: Cell) -> int:
    """Return the rounds between two bookmarks of a block, see `spans`.

    A core plays them in about a quarter of a minute; most blocks have fewer.
    """
    return int(_SPAN_SECONDS * CORE_SPEED / call_work(cell))
