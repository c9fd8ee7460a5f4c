"""Rows of results: one for each checkpoint."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array, lax

__all__ = ["checkpoint_rows", "write_row"]


def checkpoint_rows(checkpoints: Array, rounds: Array) -> tuple[Array, Array]:
    """Return the number of checkpoints before each round, and whether the round is one.

    So a checkpoint is told its own row.

    Args:
      checkpoints: increasing, int32 [C].
      rounds: int32 [R].

    Returns:
      int32 [R], bool [R].
    """
    rows = jnp.sum(checkpoints[:, None] < rounds[None, :], axis=0, dtype=jnp.int32)
    return rows, jnp.any(checkpoints[:, None] == rounds[None, :], axis=0)


def write_row(rows: Any, row: Array, is_checkpoint: Array, make: Callable[[], Any]) -> Any:
    """Write what ``make`` returns to one row, at a checkpoint only.

    Args:
      rows: a tree with leaves [C, ...].
      row: which, int32 [].
      is_checkpoint: bool [].
      make: returns the same tree with leaves [...].
    """

    def write(rows: Any) -> Any:
        return jax.tree.map(lambda leaf, new: leaf.at[row].set(new), rows, make())

    return lax.cond(is_checkpoint, write, lambda rows: rows, rows)
