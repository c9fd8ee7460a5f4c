"""Bookmarks: from time to time a long run keeps all that its games carry.

Stopped and given the same bookmarks, it goes on from the last of them. What is kept is exact and
rounds may be cut into chunks anywhere, so the results are bitwise those of a run without a stop.
"""

from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from sfmab_jax.engine.loss_stream import LossStream

__all__ = ["Bookmark", "Bookmarks"]

Tree = TypeVar("Tree")


class Bookmarks(NamedTuple):
    """Where the jobs of a run keep their places; called from several threads, see `threads`."""

    span_rounds: int  # a place is kept about every so many rounds
    read: Callable[[str], tuple[int, list[np.ndarray]] | None]  # place -> (rounds done, arrays)
    write: Callable[[str, int, list[np.ndarray]], None]  # (place, rounds done, arrays)
    resumed: Callable[[int], None]  # told the rounds of games that need not be played again


class Bookmark:
    """The place of one job, which plays or measures a batch from the first to the last round.

    Runs of a single span, and runs without bookmarks, keep nothing.
    """

    def __init__(
        self, bookmarks: Bookmarks | None, place: str, *, num_rounds: int, num_games: int = 0
    ):
        several = bookmarks is not None and bookmarks.span_rounds < num_rounds
        self._bookmarks = bookmarks if several else None
        self._place = place
        self._num_rounds, self._num_games = num_rounds, num_games
        self._done = 0  # rounds, when last kept

    def resume(self, carried: Tree, stream: LossStream | None) -> tuple[Tree, int]:
        """Return (state, next round) at the bookmark and move the stream there.

        (carried, 1) if there is none.
        """
        found = None if self._bookmarks is None else self._bookmarks.read(self._place)
        if self._bookmarks is None or found is None:
            return carried, 1
        done, arrays = found
        leaves, structure = jax.tree.flatten(carried)
        if not _alike(arrays, [*leaves, *_state_of(stream)]):  # left by another layout of the games
            return carried, 1
        if stream is not None:
            stream.restore(arrays[len(leaves) :])
        self._done = done
        self._bookmarks.resumed(done * self._num_games)
        # Copies, as the engine donates its buffers.
        copies = [jnp.array(array) for array in arrays[: len(leaves)]]
        return jax.tree.unflatten(structure, copies), done + 1

    def keep(self, done: int, carried: Any, stream: LossStream | None) -> None:
        """Keep the place after ``done`` rounds if that ends a span or the run."""
        if self._bookmarks is None:
            return
        span = self._bookmarks.span_rounds
        if done // span > self._done // span or done == self._num_rounds:
            # Copied first, since NumPy would hold on to buffers that the engine donates.
            state = [
                np.asarray(jnp.copy(x)) for x in (*jax.tree.leaves(carried), *_state_of(stream))
            ]
            self._bookmarks.write(self._place, done, state)
            self._done = done


def _state_of(stream: LossStream | None) -> list[Array]:
    """Return what a stream of losses carries; games that make their own have none."""
    return [] if stream is None else stream.state()


def _alike(arrays: list[np.ndarray], templates: list[Any]) -> bool:
    """Whether the arrays begin with arrays of the templates' shapes and dtypes."""
    pairs = zip(arrays, templates)
    return len(arrays) >= len(templates) and all(
        a.shape == b.shape and a.dtype == b.dtype for a, b in pairs
    )
