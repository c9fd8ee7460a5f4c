"""From what the compiled program leaves of groups of games to results, game by game."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np
from jax import Array

from sfmab_jax.rounds import Block

__all__ = ["GamesPlayed", "games_played"]


@dataclass(frozen=True)
class GamesPlayed:
    """What a block of games left: float64 arrays in the losses' own units."""

    realised: np.ndarray  # [games, C]
    expected: np.ndarray  # [games, C]
    records: Any  # leaves [games, C, ...]
    watched: np.ndarray | None  # the rows of the watch [games, C, R], in the games' units


def games_played(
    blocks: Sequence[Block], calls: Sequence[np.ndarray], num_games: int, unit: float
) -> GamesPlayed:
    """The results in the order of the games.

    Args:
      blocks: one for each call, leaves [groups, ..., lanes].
      calls: which games these are, [groups, lanes] each; fewer groups where some are spare, and
        numbers from ``num_games`` on for spare lanes.
      num_games: in all.
      unit: in which losses were counted.
    """
    num_checkpoints = blocks[0].totals.shape[1] - 1
    realised, expected = np.empty((2, num_games, num_checkpoints))
    for block, lanes in zip(blocks, calls, strict=True):
        value, error, advantage, its_error = np.moveaxis(np.asarray(block.totals)[:, :-1], 2, 0)
        total = np.add(value, error, dtype=np.float64)
        _put(total * unit, lanes, realised)
        total += np.add(advantage, its_error, dtype=np.float64)
        _put(total * unit, lanes, expected)

    def of_games(*leaves: Array) -> np.ndarray:
        """Rows of the calls [groups, C + 1, ..., lanes] -> [games, C, ...]."""
        shape = (num_games, num_checkpoints, *leaves[0].shape[2:-1])
        games = np.empty(shape, leaves[0].dtype)
        for leaf, lanes in zip(leaves, calls, strict=True):
            _put(np.asarray(leaf)[:, :-1], lanes, games)
        return games

    records, watched = jax.tree.map(
        of_games, *((block.records, block.watch_rows) for block in blocks)
    )
    # Without a watch there are no rows, but an empty tree of them.
    return GamesPlayed(realised, expected, records, None if isinstance(watched, tuple) else watched)


def _put(rows: np.ndarray, lanes: np.ndarray, games: np.ndarray) -> None:
    """Writes rows [groups, C, ..., lanes] to these games of [games, C, ...].

    Spare groups and lanes are left out.
    """
    by_lane = np.moveaxis(rows[: len(lanes)], -1, 1)
    first, end = lanes[0, 0], lanes[0, 0] + lanes.size
    if end <= len(games) and np.array_equal(lanes.ravel(), np.arange(first, end)):
        games[first:end].reshape(by_lane.shape)[...] = by_lane
    else:
        mine = lanes < len(games)
        games[lanes[mine]] = by_lane[mine]
