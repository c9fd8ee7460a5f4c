"""Tally what is played: how often each arm, and the losses that were to be expected of it.

The expected losses of a round are those of a `LossProcess` that has no chance: they depend on what
was drawn at the start of the sequence, and on the round.
"""

from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.tree_util import Partial

from sfmab_jax.base import with_static_functions
from sfmab_jax.engine.lanes import OverGames
from sfmab_jax.engine.loss_stream import LossProcess, RoundMaker
from sfmab_jax.engine.rows import write_row
from sfmab_jax.losses.sequence import LossSequence
from sfmab_jax.numerics.arms import is_arm, pick
from sfmab_jax.numerics.double_word import Sum, add

__all__ = ["Expected", "Tally", "begin_tally", "mean_process", "pseudo_regret", "tally_round"]


class Expected(NamedTuple):
    """Sums of the expected losses mu_t."""

    start: Any  # the states of the sequences before round 1, leaves [..., W]
    played: Sum  # sum of mu_t(i_t) [W]
    arms: Sum  # sum of mu_t(i) [n, W]
    rows: Array  # at the checkpoints [C, 4, W], see `pseudo_regret`


class Tally(NamedTuple):
    """What was played so far in a group of W games; () is what nobody asked for."""

    counts: Any  # how often each arm, int32 [n, W]
    count_rows: Any  # the same at the checkpoints [C, n, W]
    expected: Expected | tuple[()]


def mean_process(losses: LossSequence, to_units: Any) -> LossProcess:
    """Return the process whose losses are the expected losses of a family."""
    return LossProcess(with_static_functions(Partial(_next_mean, losses.mean)), to_units)


def _next_mean(mean, start: Any, key: Array, round_: Array) -> tuple[Any, Array]:
    return start, mean(start, round_)


def begin_tally(
    start: Any,
    *,
    counts: bool,
    expected: bool,
    num_groups: int,
    num_arms: int,
    num_games: int,
    num_checkpoints: int,
    dtype: np.dtype,
) -> Tally:
    """Return the tally of G groups before round 1, in host memory; leaves [G, ..., W].

    Args:
      start: the states of the sequences before round 1, leaves [G, ..., W].
      counts, expected: what is asked for.
      num_groups, num_arms, num_games, num_checkpoints: G, n, W and C.
      dtype: of the losses.
    """

    def zeros(*shape: int, dtype: Any = dtype) -> Any:
        return np.zeros((num_groups, *shape), dtype)

    def zero_sum(*shape: int) -> Sum:
        return Sum(zeros(*shape), zeros(*shape))

    sums: Expected | tuple[()] = ()
    if expected:
        rows = zeros(num_checkpoints, 4, num_games)
        sums = Expected(start, zero_sum(num_games), zero_sum(num_arms, num_games), rows)
    return Tally(
        counts=zeros(num_arms, num_games, dtype=np.int32) if counts else (),
        count_rows=zeros(num_checkpoints, num_arms, num_games, dtype=np.int32) if counts else (),
        expected=sums,
    )


def tally_round(
    mapped: OverGames,
    maker: RoundMaker | None,
    early: Any,
    tally: Tally,
    arms: Array,
    row: Array,
    is_checkpoint: Array,
) -> Tally:
    """Add a round of all games.

    Args:
      mapped: the transform that maps one game over the lanes.
      maker: of the expected losses, if they are asked for.
      early: what of them depends on the round alone.
      tally: of the rounds before.
      arms: i_t, int32 [W].
      row, is_checkpoint: where the round belongs, see `checkpoint_rows`.
    """
    if isinstance(tally.counts, Array):
        counts = mapped(_count)(tally.counts, arms)
        rows = write_row(tally.count_rows, row, is_checkpoint, lambda: counts)
        tally = tally._replace(counts=counts, count_rows=rows)
    if maker is not None and isinstance(tally.expected, Expected):

        def add_game(start: Any, played: Sum, totals: Sum, arm: Array) -> tuple[Sum, Sum]:
            _, means = maker.late(early, start, jnp.zeros(2, jnp.uint32))  # no key is drawn from
            return add(played, pick(means, arm)), add(totals, means)

        start, played, totals, rows = tally.expected
        played, totals = mapped(add_game)(start, played, totals, arms)
        rows = write_row(rows, row, is_checkpoint, lambda: mapped(_row)(played, totals))
        tally = tally._replace(expected=Expected(start, played, totals, rows))
    return tally


def _count(counts: Array, arm: Array) -> Array:
    return counts + is_arm(arm, counts).astype(counts.dtype)


def _row(played: Sum, arms: Sum) -> Array:
    """Return sum mu_t(i_t) and min_i sum mu_t(i) of one game, each in two words: [4]."""
    lowest = jnp.min(arms.value)
    excess = jnp.min((arms.value - lowest) + arms.error)
    return jnp.stack([*played, lowest, excess])


def pseudo_regret(rows: np.ndarray, unit: float) -> np.ndarray:
    """Return sum mu_t(i_t) - min_i sum mu_t(i), float64 [..., C], from rows [..., C, 4]."""
    played, played_error, lowest, excess = np.moveaxis(rows.astype(np.float64), -1, 0)
    return unit * ((played - lowest) + (played_error - excess))
