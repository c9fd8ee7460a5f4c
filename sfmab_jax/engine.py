"""Runs a block of games on the devices: compilation, sharding, chunks of rounds."""

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.sharding import AxisType, Mesh, PartitionSpec

from sfmab_jax.base import Bandit
from sfmab_jax.bookmarks import Bookmark, Bookmarks
from sfmab_jax.certificate import Watch
from sfmab_jax.compiled import jit_loop
from sfmab_jax.feed import Feed
from sfmab_jax.losses import LossSequence
from sfmab_jax.norms import Norms, begin_measure, measure_chunk, norms_from_rows
from sfmab_jax.random_bits import game_key
from sfmab_jax.rounds import Block, begin_block, in_groups, play_chunk
from sfmab_jax.sizes import games_per_device

__all__ = [
    "Games",
    "GamesPlayed",
    "measure_losses",
    "play_games",
    "sequences_per_vector",
    "window_rounds",
]

# Rounds whose losses are handed to the games together, and the most losses for that.
_WINDOW = 16
_WINDOW_LOSSES = 2**18


@dataclass(frozen=True)
class Games:
    """Everything about a run but the strategy: which games are played, on what, how."""

    losses: LossSequence
    num_rounds: int
    num_sequences: int
    num_seeds: int
    first_seed: int
    seed: int
    checkpoints: np.ndarray  # [C]
    dtype: np.dtype
    unit: float  # a power of two; losses are counted in it
    chunk_rounds: int
    devices: tuple[Any, ...]
    engine: str  # "scan" or "fused"

    @property
    def num_games(self) -> int:
        return self.num_sequences * self.num_seeds

    @property
    def width(self) -> int:
        """Games of a block on each device."""
        return games_per_device(self.losses.num_arms, self.devices[0])

    @property
    def block_games(self) -> int:
        return self.width * len(self.devices)

    @property
    def num_blocks(self) -> int:
        return -(-self.num_games // self.block_games)

    @property
    def window(self) -> int:
        return window_rounds(self.losses.num_arms, self.chunk_rounds)

    def chunks(self, start: int = 1) -> Iterator[tuple[int, int]]:
        """(first round, number of windows) of the chunks from round ``start`` on."""
        for first in range(start, self.num_rounds + 1, self.chunk_rounds):
            rounds = min(self.chunk_rounds, self.num_rounds - first + 1)
            yield first, -(-rounds // self.window)

    def feed(self, sequences: np.ndarray) -> Feed:
        """The losses of these sequences."""
        return Feed(
            self.losses,
            sequences,
            seed=self.seed,
            unit=self.unit,
            dtype=self.dtype,
            chunk_rounds=self.chunk_rounds,
        )


def window_rounds(num_arms: int, chunk_rounds: int) -> int:
    """The largest divisor of a chunk that is not too large for a window."""
    most = max(1, min(_WINDOW, _WINDOW_LOSSES // num_arms))
    return max(d for d in range(1, most + 1) if chunk_rounds % d == 0)


_begin_block = jax.jit(
    begin_block, static_argnames=("num_arms", "width", "num_checkpoints", "dtype")
)
_begin_measure = jax.jit(
    begin_measure, static_argnames=("num_arms", "num_sequences", "num_checkpoints", "dtype")
)


@cache
def _compiled_play(devices: tuple, engine: str) -> Callable:
    """The engine compiled, its lanes split evenly over the devices if there are several."""
    platform = devices[0].platform
    mesh = Mesh(np.array(devices), ("lanes",), axis_types=(AxisType.Auto,))
    wrap = partial(_sharded, mesh) if len(devices) > 1 else lambda play: play
    static, donated = ("window",), ("block",)
    if engine == "fused":
        from sfmab_jax.fused import play_chunk_fused  # Pallas takes its time to import

        play = wrap(partial(play_chunk_fused, platform=platform))
        return jax.jit(play, static_argnames=static, donate_argnames=donated)

    def wrap_groups(play):
        return wrap(in_groups(play))

    return jit_loop(
        play_chunk,
        platform,
        wrap=wrap_groups if platform == "cpu" else wrap,
        static_argnames=static,
        donate_argnames=donated,
    )


def _sharded(mesh: Mesh, play: Callable) -> Callable:
    """``play`` with every device playing its own lanes."""
    everywhere = PartitionSpec()

    def by_lane(tree):
        return jax.tree.map(lambda x: PartitionSpec(*[None] * (x.ndim - 1), "lanes"), tree)

    def sharded_play(
        bandit, record, watch, losses, block, game_keys, lane_sequence, *shared, window: int
    ) -> Block:
        in_lanes = (losses, block, game_keys, lane_sequence)
        return jax.shard_map(
            partial(play, window=window),
            mesh=mesh,
            in_specs=(*[everywhere] * 3, *by_lane(in_lanes), *[everywhere] * len(shared)),
            out_specs=by_lane(block),
            check_vma=False,
        )(bandit, record, watch, *in_lanes, *shared)

    return sharded_play


@cache
def _compiled_measure(platform: str) -> Callable:
    return jit_loop(measure_chunk, platform, donate_argnames=("measure",))


@jax.jit
def _game_keys(root: Array, sequence: Array, seed_index: Array) -> Array:
    """Key words [2, games]. Losses draw from the other half of the split."""
    mine = jax.random.split(root)[0]
    return jax.vmap(partial(game_key, mine), out_axes=-1)(sequence, seed_index)


@dataclass(frozen=True)
class GamesPlayed:
    """What a block of games left: float64 arrays in the losses' own units."""

    realised: np.ndarray  # [games, C]
    expected: np.ndarray  # [games, C]
    records: Any  # leaves [games, C, ...]
    watched: np.ndarray | None  # the rows of the watch [games, C, R], in the games' units


def play_games(
    games: Games,
    bandit: Bandit,
    record: Callable | None,
    watch: Watch | None,
    index: int,
    advance: Callable[[int], None],
    stop: threading.Event,
    *,
    bookmarks: Bookmarks | None = None,
    place: str = "games",
) -> GamesPlayed | None:
    """Plays block number ``index`` to the last round; None if stopped.

    It begins with the first round, or where the bookmark of this ``place`` is.
    """
    width = games.width
    first_game = index * games.block_games
    num_here = min(games.block_games, games.num_games - first_game)
    lanes = np.minimum(first_game + np.arange(games.block_games), games.num_games - 1)
    sequence, seed = np.divmod(lanes, games.num_seeds)
    # Each device has its own run of consecutive sequences.
    by_device = sequence.reshape(len(games.devices), width)
    first = by_device[:, :1]
    run = np.arange(sequences_per_vector(games.num_sequences, games.num_seeds, width))
    feed = games.feed(np.minimum(first + run, games.num_sequences - 1).ravel())
    play = _compiled_play(games.devices, games.engine)
    block: Block = _begin_block(
        bandit,
        record,
        watch,
        jnp.asarray(1 / games.unit, games.dtype),
        num_arms=games.losses.num_arms,
        width=games.block_games,
        num_checkpoints=len(games.checkpoints),
        dtype=games.dtype,
    )
    seed = jnp.uint32(seed + games.first_seed)
    game_keys = _game_keys(jax.random.key(games.seed), jnp.uint32(sequence), seed)
    per_lane = (game_keys, jnp.int32((by_device - first).ravel()))
    checkpoints = jnp.int32(games.checkpoints)
    bookmark = Bookmark(
        bookmarks,
        f"{place}_{first_game}_{games.block_games}",
        num_rounds=games.num_rounds,
        num_games=num_here,
    )
    block, start = bookmark.find(block, feed)
    for first_round, num_windows in games.chunks(start):
        if stop.is_set():
            return None
        losses = feed.chunk(first_round)
        when = (checkpoints, jnp.int32(first_round), jnp.int32(num_windows))
        block = play(bandit, record, watch, losses, block, *per_lane, *when, window=games.window)
        jax.block_until_ready(block)
        advance(min(games.chunk_rounds, games.num_rounds - first_round + 1) * num_here)
        bookmark.keep(first_round - 1 + games.chunk_rounds, block, feed)
    totals = np.asarray(block.totals)[:-1, :, :num_here].astype(np.float64) * games.unit
    realised, realised_error, advantage, advantage_error = np.moveaxis(totals, 1, 0)
    realised = (realised + realised_error).T
    expected = realised + (advantage + advantage_error).T
    records = jax.tree.map(
        lambda leaf: np.moveaxis(np.asarray(leaf)[:-1, ..., :num_here], -1, 0), block.records
    )
    watched = None
    if watch is not None:
        watched = np.asarray(block.watch_rows)[:-1, :, :num_here].transpose(2, 0, 1)
    return GamesPlayed(realised, expected, records, watched)


def sequences_per_vector(num_sequences: int, num_seeds: int, width: int) -> int:
    """The most loss sequences that the lanes of one device meet, rounded up to a power of two."""
    if num_seeds % width == 0 or num_sequences == 1:
        return 1
    most = min(num_sequences, (width - 1) // num_seeds + 2)
    return 1 << (most - 1).bit_length()


def measure_losses(
    games: Games, stop: threading.Event, *, bookmarks: Bookmarks | None = None
) -> Norms | None:
    """The norms of all sequences at the checkpoints; None if stopped."""
    num_arms = games.losses.num_arms
    measure_rounds = _compiled_measure(games.devices[0].platform)
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
            measure = measure_rounds(
                losses, measure, jnp.int32(games.checkpoints), jnp.int32(first_round)
            )
            jax.block_until_ready(measure)
            bookmark.keep(first_round - 1 + games.chunk_rounds, measure, feed)
        rows.append(np.asarray(measure.rows)[:-1])
    together = np.concatenate(rows, axis=-1)[..., : games.num_sequences]
    return norms_from_rows(together, num_arms, games.checkpoints, games.unit)
