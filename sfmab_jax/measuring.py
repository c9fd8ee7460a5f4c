"""Runs the measurement of loss sequences, chunk after chunk: compilation and bookmarks."""

import threading
from collections.abc import Callable
from functools import cache

import jax
import jax.numpy as jnp
import numpy as np

from sfmab_jax.bookmarks import Bookmark, Bookmarks
from sfmab_jax.compiled import jit_loop
from sfmab_jax.engine import Games
from sfmab_jax.norms import Norms, begin_measure, measure_chunk, norms_from_rows

__all__ = ["measure_losses"]

_begin_measure = jax.jit(
    begin_measure, static_argnames=("num_arms", "num_sequences", "num_checkpoints", "dtype")
)


@cache
def _compiled_measure(platform: str) -> Callable:
    return jit_loop(measure_chunk, platform, donate_argnames=("measure",))


def measure_losses(
    games: Games, stop: threading.Event, *, bookmarks: Bookmarks | None = None
) -> Norms | None:
    """The norms of all sequences at the checkpoints; None if stopped."""
    num_arms = games.losses.num_arms
    program_for = _compiled_measure(games.devices[0].platform)
    block = min(games.width, 1 << (games.num_sequences - 1).bit_length())
    rows = []
    for start in range(0, games.num_sequences, block):
        feed = games.feed(np.minimum(start + np.arange(block), games.num_sequences - 1))
        measure = _begin_measure(
            num_arms=num_arms,
            num_sequences=block,
            num_checkpoints=len(games.checkpoints),
            dtype=games.dtype,
        )
        bookmark = Bookmark(bookmarks, f"norms_{start}_{block}", num_rounds=games.num_rounds)
        measure, next_round = bookmark.find(measure, feed)
        for first_round, _ in games.chunks(next_round):
            if stop.is_set():
                return None
            losses = feed.chunk(first_round)
            given = (losses, measure, jnp.int32(games.checkpoints), jnp.int32(first_round))
            measure = program_for(*given)(*given)
            jax.block_until_ready(measure)
            bookmark.keep(first_round - 1 + games.chunk_rounds, measure, feed)
        rows.append(np.asarray(measure.rows)[:-1])
    together = np.concatenate(rows, axis=-1)[..., : games.num_sequences]
    return norms_from_rows(together, num_arms, games.checkpoints, games.unit)
