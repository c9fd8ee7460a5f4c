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
from sfmab_jax.played import GamesPlayed, games_played
from sfmab_jax.random_bits import game_key
from sfmab_jax.rounds import Block, begin_block, group_width, in_groups, play_chunk
from sfmab_jax.sizes import games_per_device, window_rounds

__all__ = ["Games", "play_games", "sequences_per_vector"]

# The most numbers that a vector over the arms has in all games of a block on CPU.
_BLOCK_NUMBERS = 2**18


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
        """Games of a block on each device.

        On CPU more where there are many on one sequence of losses, which are then made less often;
        what a call plays, and so every bit of a game, is the group's.
        """
        width = games_per_device(self.losses.num_arms, self.devices[0])
        while self.group_games < width * len(self.devices) and self._takes(2 * width):
            width *= 2
        return width

    def _takes(self, width: int) -> bool:
        """Whether blocks so wide are small enough, enough, and of one sequence."""
        enough = self.num_games >= 4 * width * len(self.devices)
        small = width * self.losses.num_arms <= _BLOCK_NUMBERS
        one = sequences_per_vector(self.num_sequences, self.num_seeds, width) == 1
        return enough and small and one

    @property
    def block_games(self) -> int:
        return self.width * len(self.devices)

    @property
    def group_games(self) -> int:
        """Games that are played side by side."""
        width = games_per_device(self.losses.num_arms, self.devices[0])
        if self.devices[0].platform == "cpu" and self.engine == "scan":
            width = min(width, group_width(self.losses.num_arms))
        return width * len(self.devices)

    @property
    def groups_per_call(self) -> int:
        """Whatever the number of games, lest there be several programs."""
        width = games_per_device(self.losses.num_arms, self.devices[0])
        return width * len(self.devices) // self.group_games

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


_begin_block = jax.jit(
    begin_block, static_argnames=("num_arms", "width", "num_checkpoints", "dtype")
)


@cache
def _compiled_play(devices: tuple, engine: str) -> Callable:
    """Gives the engine compiled for some arguments, see `jit_loop`.

    Its lanes are split evenly over the devices if there are several.
    """
    platform = devices[0].platform
    mesh = Mesh(np.array(devices), ("lanes",), axis_types=(AxisType.Auto,))
    wrap = partial(_sharded, mesh) if len(devices) > 1 else lambda play: play
    static, donated = ("window",), ("blocks",)
    if engine == "fused":
        from sfmab_jax.fused import play_chunk_fused  # Pallas takes its time to import

        play = wrap(in_groups(partial(play_chunk_fused, platform=platform)))
        program = jax.jit(play, static_argnames=static, donate_argnames=donated)
        return lambda *args, **kwargs: program
    # Losses that are no numbers are found when they are measured.
    return jit_loop(
        in_groups(play_chunk),
        platform,
        wrap=wrap,
        static_argnames=static,
        donate_argnames=donated,
        no_nans=True,
    )


def _sharded(mesh: Mesh, play: Callable) -> Callable:
    """``play`` with every device playing its own lanes."""
    everywhere = PartitionSpec()

    def by_lane(tree):
        return jax.tree.map(lambda x: PartitionSpec(*[None] * (x.ndim - 1), "lanes"), tree)

    def sharded_play(
        bandit, record, watch, losses, blocks, game_keys, lane_sequence, *shared, window: int
    ) -> Block:
        in_lanes = (losses, blocks, game_keys, lane_sequence)
        return jax.shard_map(
            partial(play, window=window),
            mesh=mesh,
            in_specs=(*[everywhere] * 3, *by_lane(in_lanes), *[everywhere] * len(shared)),
            out_specs=by_lane(blocks),
            check_vma=False,
        )(bandit, record, watch, *in_lanes, *shared)

    return sharded_play


@jax.jit
def _game_keys(root: Array, sequence: Array, seed_index: Array) -> Array:
    """Key words [2, games]. Losses draw from the other half of the split."""
    mine = jax.random.split(root)[0]
    return jax.vmap(partial(game_key, mine), out_axes=-1)(sequence, seed_index)


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
    program_for = _compiled_play(games.devices, games.engine)
    groups = _lanes_of_groups(games)
    groups = groups[groups.min(axis=1) < num_here]
    together = games.groups_per_call
    calls = [groups[first : first + together] for first in range(0, len(groups), together)]
    begun = _begin_block(
        bandit,
        record,
        watch,
        jnp.asarray(1 / games.unit, games.dtype),
        num_arms=games.losses.num_arms,
        width=games.group_games,
        num_checkpoints=len(games.checkpoints),
        dtype=games.dtype,
    )
    # All begin alike; from here each call copies what it is given.
    alike = jax.tree.map(lambda x: np.broadcast_to(np.asarray(x), (together, *x.shape)), begun)
    blocks: list[Block] = [alike] * len(calls)
    whose = (jnp.uint32(sequence), jnp.uint32(seed + games.first_seed))
    keys = np.asarray(_game_keys(jax.random.key(games.seed), *whose))
    lane_sequence = (by_device - first).ravel().astype(np.int32)
    spare = [np.resize(lanes, (together, lanes.shape[1])) for lanes in calls]
    per_lane = [(keys[:, lanes].swapaxes(0, 1), lane_sequence[lanes]) for lanes in spare]
    checkpoints = jnp.int32(games.checkpoints)
    bookmark = Bookmark(
        bookmarks,
        f"{place}_{first_game}_{games.block_games}",
        num_rounds=games.num_rounds,
        num_games=num_here,
    )
    blocks, start = bookmark.find(blocks, feed)

    def finish(number: int, rounds: int) -> None:
        """Waits for a call."""
        jax.block_until_ready(blocks[number])
        advance(rounds * int(np.count_nonzero(calls[number] < num_here)))

    for first_round, num_windows in games.chunks(start):
        if stop.is_set():
            return None
        losses = feed.chunk(first_round)
        when = (checkpoints, np.int32(first_round), np.int32(num_windows))
        given = [
            (bandit, record, watch, losses, block, *own, *when, np.int32(len(lanes)))
            for block, own, lanes in zip(blocks, per_lane, calls, strict=True)
        ]
        play = program_for(*given[0], window=games.window)
        rounds = min(games.chunk_rounds, games.num_rounds - first_round + 1)
        # One call waits while another is played: of many at once the last may be the first to end.
        for number, arguments in enumerate(given):
            blocks[number] = play(*arguments, window=games.window)
            if number:
                finish(number - 1, rounds)
        finish(len(given) - 1, rounds)
        bookmark.keep(first_round - 1 + games.chunk_rounds, blocks, feed)
    return games_played(blocks, calls, num_here, games.unit)


def _lanes_of_groups(games: Games) -> np.ndarray:
    """Which lanes of a block each call plays, [groups, lanes]: as many of every device."""
    num_devices = len(games.devices)
    by_device = np.arange(games.block_games).reshape(
        num_devices, -1, games.group_games // num_devices
    )
    return by_device.swapaxes(0, 1).reshape(-1, games.group_games)


def sequences_per_vector(num_sequences: int, num_seeds: int, width: int) -> int:
    """The most loss sequences that the lanes of one device meet, rounded up to a power of two."""
    if num_seeds % width == 0 or num_sequences == 1:
        return 1
    most = min(num_sequences, (width - 1) // num_seeds + 2)
    return 1 << (most - 1).bit_length()
