"""Sequences that others are made from, by combinators and adversaries."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.tree_util import Partial

from sfmab_jax.losses.sequence import (
    SEES,
    LossSequence,
    Sees,
    as_loss_sequence,
    from_function,
    shown_of,
)

__all__ = ["blind", "generated", "most_seen"]


def generated(losses: Any) -> LossSequence:
    """Return losses as a generated sequence; a [T, n] array goes to the device as a whole."""
    sequence = as_loss_sequence(losses)
    if sequence.table is None:
        return sequence
    if not isinstance(sequence.table, np.ndarray) or sequence.table.shape[0] != 1:
        raise ValueError(
            f"{sequence.name} is a file or several sequences; combine sequences of a family, or "
            "one array [rounds, arms] in memory"
        )
    table = np.float32(sequence.table[0])
    rows = from_function(_row, sequence.num_arms, sequence.magnitude, sequence.name, table=table)
    return replace(rows, length=sequence.num_rounds)


def most_seen(sequences: Sequence[LossSequence]) -> Sees:
    """Return what the one sees that sees the most of the play."""
    return max((losses.sees for losses in sequences), key=SEES.index)


def blind(base: LossSequence) -> Partial:
    """Return ``next`` of a sequence, which may be given more of the play than it sees."""
    return Partial(
        {"nothing": _see_nothing, "arm": _see_arm, "law": _see_law}[base.sees], base.next
    )


def _see_nothing(next_loss, state, key: Array, round_: Array, *shown: Array):
    return next_loss(state, key, round_)


def _see_arm(next_loss, state, key: Array, round_: Array, *shown: Array):
    return next_loss(state, key, round_, *shown_of("arm", shown))


def _see_law(next_loss, state, key: Array, round_: Array, *shown: Array):
    return next_loss(state, key, round_, *shown)


def _row(key: Array, round_: Array, *, table: Array) -> Array:
    return jnp.asarray(table)[round_ - 1]
