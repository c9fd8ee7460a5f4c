"""Rows of results: one for each checkpoint, and one more for the rounds after the last."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array, lax

__all__ = ["checkpoint_rows", "write_row"]


def checkpoint_rows(checkpoints: Array, rounds: Array) -> tuple[Array, Array]:
    """Return the row that each round writes to, and whether the round is a checkpoint.

    A round writes to the row of the next checkpoint, or to row C after the last. Later rounds
    overwrite earlier ones, so the checkpoint's own values remain.

    Args:
      checkpoints: increasing, int32 [C].
      rounds: int32 [R].

    Returns:
      int32 [R], bool [R].
    """
    rows = jnp.sum(checkpoints[:, None] < rounds[None, :], axis=0, dtype=jnp.int32)
    return rows, jnp.any(checkpoints[:, None] == rounds[None, :], axis=0)


def write_row(rows: Any, row: Array, is_checkpoint: Array, make: Callable[[], Any]) -> Any:
    """Write one row: what ``make`` returns at a checkpoint, else zeros, to be overwritten.

    Args:
      rows: a tree with leaves [C + 1, ...].
      row: which, int32 [].
      is_checkpoint: bool [].
      make: returns the same tree with leaves [...].
    """
    nothing = jax.tree.map(lambda leaf: jnp.zeros_like(leaf[0]), rows)
    new = lax.cond(is_checkpoint, make, lambda: nothing)
    return jax.tree.map(lambda leaf, new: leaf.at[row].set(new), rows, new)
