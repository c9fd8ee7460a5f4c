"""Put what the compiled program leaves, group by group, in the order of the games."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np
from jax import Array

from sfmab_jax.engine.delayed import Waiting
from sfmab_jax.engine.measure import Measure, Row
from sfmab_jax.engine.rounds import GroupState
from sfmab_jax.engine.tally import Expected, Tally, pseudo_regret

__all__ = ["BatchResults", "gather_results"]


@dataclass(frozen=True)
class BatchResults:
    """What a batch of games left: totals in float64 and true units, the rest as kept."""

    realised: np.ndarray  # [games, C]
    expected: np.ndarray  # [games, C]
    records: Any  # leaves [games, C, ...]
    observed: np.ndarray | None  # rows of the observer [games, C, R], in units of `Run.unit`
    first_without_law: np.ndarray | None  # int32 [games], see `GroupState`
    loss_rows: Row | None  # of each game's own losses, arrays [games, C], if they are measured
    arm_counts: np.ndarray | None  # int32 [games, C, n], if they were asked for
    pseudo_regret: np.ndarray | None  # [games, C] in true units, likewise
    first_fault: np.ndarray | None = None  # of the delays, int32 [games], see `Waiting`


def gather_results(
    states: Sequence[GroupState], places: Sequence[np.ndarray], num_games: int, unit: float
) -> BatchResults:
    """Return the results in the order of the games.

    Args:
      states: one for each call, leaves [groups, ..., lanes].
      places: of the games of each call in the batch, [groups, lanes]; fewer groups where some are
        spare, and numbers from ``num_games`` on for spare lanes.
      num_games: in the batch.
      unit: that losses were counted in.
    """
    num_checkpoints = states[0].totals.shape[1]
    realised, expected = np.empty((2, num_games, num_checkpoints))
    for state, call_places in zip(states, places, strict=True):
        value, error, advantage, advantage_error = np.moveaxis(np.asarray(state.totals), 2, 0)
        total = np.add(value, error, dtype=np.float64)
        _put(total * unit, call_places, realised)
        expected_total = total + np.add(advantage, advantage_error, dtype=np.float64)
        _put(expected_total * unit, call_places, expected)

    def of_games(*leaves: Any) -> np.ndarray:
        """Leaves of the calls [groups, ..., lanes] -> [games, ...]."""
        rows = list(map(np.asarray, leaves))
        games = np.empty((num_games, *rows[0].shape[1:-1]), rows[0].dtype)
        for row, call_places in zip(rows, places, strict=True):
            _put(row, call_places, games)
        return games

    records, observed = jax.tree.map(
        of_games, *((state.records, state.observer_rows) for state in states)
    )
    # Without an observer there are no rows, but an empty tree of them.
    rows = None if isinstance(observed, tuple) else observed
    without_law = None
    if isinstance(states[0].first_without_law, Array):
        without_law = of_games(*(state.first_without_law for state in states))
    loss_rows = None
    if isinstance(states[0].measure, Measure):
        measures: list[Any] = [state.measure for state in states]
        rows_of_calls = [np.asarray(measure.rows) for measure in measures]
        columns = range(rows_of_calls[0].shape[2])
        loss_rows = Row(*(of_games(*(rows[:, :, k] for rows in rows_of_calls)) for k in columns))
    counts = pseudo = None
    if isinstance(states[0].tally, Tally):
        tallies: list[Any] = [state.tally for state in states]
        if isinstance(tallies[0].count_rows, Array):
            counts = of_games(*(tally.count_rows for tally in tallies))
        if isinstance(tallies[0].expected, Expected):
            pseudo = pseudo_regret(of_games(*(tally.expected.rows for tally in tallies)), unit)
    faults = None
    if isinstance(states[0].waiting, Waiting):
        waiting: list[Any] = [state.waiting for state in states]
        faults = of_games(*(one.first_fault for one in waiting))
    return BatchResults(
        realised, expected, records, rows, without_law, loss_rows, counts, pseudo, faults
    )


def _put(rows: np.ndarray, places: np.ndarray, games: np.ndarray) -> None:
    """Write rows [groups, ..., lanes] to their games of [games, ...].

    Spare groups and lanes are left out.
    """
    by_lane = np.moveaxis(rows[: len(places)], -1, 1)
    first, end = places[0, 0], places[0, 0] + places.size
    if end <= len(games) and np.array_equal(places.ravel(), np.arange(first, end)):
        games[first:end].reshape(by_lane.shape)[...] = by_lane
    else:
        real = places < len(games)
        games[places[real]] = by_lane[real]
