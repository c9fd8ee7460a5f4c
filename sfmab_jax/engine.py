"""Runs blocks of games on the devices: compilation, sharding, chunks of rounds, threads."""

import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import nullcontext
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AxisType, Mesh, PartitionSpec

from sfmab_jax.base import Bandit
from sfmab_jax.losses import LossSequence
from sfmab_jax.norms import Norms, begin_measure, measure_chunk, norms_from_rows
from sfmab_jax.random_bits import game_key
from sfmab_jax.rounds import Block, Source, begin_block, block_width, play_chunk

__all__ = ["Games", "GamesPlayed", "chunk_rounds_for", "measure_losses", "play_games", "run_jobs"]

# Sequences are made in vectors of at least this many, so that they never meet scalar code.
_VECTOR = 16
# Rounds whose losses are made together.
_WINDOW = 16
# Held while a program is first called, lest several threads compile it at the same time.
_COMPILING = threading.Lock()
# A chunk is about this many numbers of state touched: some tenths of a second.
_CHUNK_WORK = 2**24


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

    @property
    def num_games(self) -> int:
        return self.num_sequences * self.num_seeds

    @property
    def block_games(self) -> int:
        return block_width(self.losses.num_arms) * len(self.devices)

    @property
    def num_blocks(self) -> int:
        return -(-self.num_games // self.block_games)

    @property
    def window(self) -> int:
        """The largest divisor of a chunk that is at most _WINDOW."""
        return max(d for d in range(1, _WINDOW + 1) if self.chunk_rounds % d == 0)

    def chunks(self) -> Iterator[tuple[int, int]]:
        """(first round, number of windows) of the chunks."""
        for first in range(1, self.num_rounds + 1, self.chunk_rounds):
            rounds = min(self.chunk_rounds, self.num_rounds - first + 1)
            yield first, -(-rounds // self.window)

    def source(self, sequences: np.ndarray, first_round: int) -> Source:
        """The losses of these sequences, from this round on for a chunk."""
        # Losses and games draw from different keys, whatever their numbers.
        root = jax.random.split(jax.random.key(self.seed))[1]
        keys = jax.vmap(partial(jax.random.fold_in, root))(jnp.asarray(sequences, jnp.uint32))
        to_units = jnp.asarray(1 / self.unit, self.dtype)
        if self.losses.table is None:
            return Source(self.losses.next, None, keys, to_units)
        rows = self.losses.table[sequences, first_round - 1 : first_round - 1 + self.chunk_rounds]
        scaled = np.zeros((self.chunk_rounds, rows.shape[2], len(sequences)), self.dtype)
        scaled[: rows.shape[1]] = np.moveaxis(rows.astype(np.float64) / self.unit, 0, -1)
        return Source(None, jnp.asarray(scaled), keys, to_units)


def chunk_rounds_for(num_arms: int, num_rounds: int) -> int:
    """Rounds in one call of the compiled program."""
    work = 2 ** int(np.log2(_CHUNK_WORK / (num_arms * block_width(num_arms))))
    return int(min(np.clip(work, _WINDOW, 4096), -(-num_rounds // _WINDOW) * _WINDOW))


_begin_block = jax.jit(
    begin_block, static_argnames=("num_arms", "width", "num_checkpoints", "dtype")
)
_begin_measure = jax.jit(
    begin_measure, static_argnames=("num_arms", "num_sequences", "num_checkpoints", "dtype")
)


@cache
def _compiler_options(platform: str) -> dict[str, str] | None:
    """On CPU, XLA's library calls for reductions break the fusion of a round: turn them off."""
    options = {"xla_cpu_experimental_ynn_fusion_type": ""}
    if platform != "cpu":
        return None
    try:
        jax.jit(lambda x: x + 1, compiler_options=options).lower(1.0).compile()
    except Exception:  # an XLA that does not know the option refuses in its own way
        return None
    return options


@cache
def _compiled(function: Callable, donated: str, static: tuple, devices: tuple) -> Callable:
    """The jitted program, lanes split evenly over the devices if there are several."""
    if len(devices) == 1:
        run = function
    else:
        mesh = Mesh(np.array(devices), ("lanes",), axis_types=(AxisType.Auto,))
        run = partial(_sharded, function, mesh)
    return jax.jit(
        run,
        static_argnames=static,
        donate_argnames=donated if len(devices) == 1 else None,
        compiler_options=_compiler_options(devices[0].platform),
    )


def _sharded(function, mesh, bandit, record, source, block, game_keys, lane_sequence, *rest, **kw):
    """`play_chunk` with every device playing its own lanes."""
    everywhere = PartitionSpec()

    def by_lane(tree):
        return jax.tree.map(lambda x: PartitionSpec(*[None] * (x.ndim - 1), "lanes"), tree)

    source_specs = Source(everywhere, by_lane(source.table), by_lane(source.keys), everywhere)
    in_specs = (everywhere, everywhere, source_specs, by_lane(block))
    in_specs += (by_lane(game_keys), by_lane(lane_sequence), *[everywhere] * len(rest))
    return jax.shard_map(
        partial(function, **kw),
        mesh=mesh,
        in_specs=in_specs,
        out_specs=by_lane(block),
        check_vma=False,
    )(bandit, record, source, block, game_keys, lane_sequence, *rest)


@dataclass(frozen=True)
class GamesPlayed:
    """What a block of games left: float64 arrays in the losses' own units."""

    realised: np.ndarray  # [games, C]
    expected: np.ndarray  # [games, C]
    records: Any  # leaves [games, C, ...]


def play_games(
    games: Games,
    bandit: Bandit,
    record: Callable | None,
    index: int,
    stop: threading.Event,
    advance: Callable[[int], None],
) -> GamesPlayed | None:
    """Plays block number ``index`` from the first to the last round; None if stopped."""
    width = block_width(games.losses.num_arms)
    first_game = index * games.block_games
    num_here = min(games.block_games, games.num_games - first_game)
    lanes = np.minimum(first_game + np.arange(games.block_games), games.num_games - 1)
    sequence, seed = np.divmod(lanes, games.num_seeds)
    per_device = sequence.reshape(len(games.devices), width)
    num_sequences = _sequences_per_device(games, width)
    padded = num_sequences if games.losses.table is not None else max(num_sequences, _VECTOR)
    first = per_device[:, :1]
    sequences = np.minimum(first + np.arange(padded), games.num_sequences - 1).ravel()
    lane_sequence = jnp.asarray((per_device - first).ravel(), jnp.int32)
    root = jax.random.split(jax.random.key(games.seed))[0]
    game_keys = jax.vmap(partial(game_key, root), out_axes=-1)(
        jnp.asarray(sequence, jnp.uint32), jnp.asarray(seed + games.first_seed, jnp.uint32)
    )
    play = _compiled(play_chunk, "block", ("window", "num_sequences"), games.devices)
    source = games.source(sequences, 1)
    block: Block = _begin_block(
        bandit,
        games.losses.init,
        record,
        source.keys,
        jnp.asarray(1 / games.unit, games.dtype),
        num_arms=games.losses.num_arms,
        width=games.block_games,
        num_checkpoints=len(games.checkpoints),
        dtype=games.dtype,
    )
    checkpoints = jnp.asarray(games.checkpoints, jnp.int32)
    for first_round, num_windows in games.chunks():
        if stop.is_set():
            return None
        if games.losses.table is not None and first_round > 1:
            source = games.source(sequences, first_round)
        with _COMPILING if first_round == 1 else nullcontext():
            block = play(
                bandit,
                record,
                source,
                block,
                game_keys,
                lane_sequence,
                checkpoints,
                jnp.int32(first_round),
                jnp.int32(num_windows),
                window=games.window,
                num_sequences=num_sequences,
            )
        jax.block_until_ready(block)
        advance(min(games.chunk_rounds, games.num_rounds - first_round + 1) * num_here)
    totals = np.asarray(block.totals)[:-1, :, :num_here].astype(np.float64) * games.unit
    realised, realised_error, advantage, advantage_error = np.moveaxis(totals, 1, 0)
    realised = (realised + realised_error).T
    expected = realised + (advantage + advantage_error).T
    records = jax.tree.map(
        lambda leaf: np.moveaxis(np.asarray(leaf)[:-1, ..., :num_here], -1, 0), block.records
    )
    return GamesPlayed(realised, expected, records)


def _sequences_per_device(games: Games, width: int) -> int:
    """The most loss sequences that the lanes of one device meet, rounded up to a power of two."""
    if games.num_seeds % width == 0 or games.num_sequences == 1:
        return 1
    most = min(games.num_sequences, (width - 1) // games.num_seeds + 2)
    return 1 << (most - 1).bit_length()


def measure_losses(games: Games, stop: threading.Event) -> Norms | None:
    """The norms of all sequences at the checkpoints; None if stopped."""
    num_arms = games.losses.num_arms
    measure_program = _compiled(measure_chunk, "measure", ("window",), games.devices[:1])
    checkpoints = jnp.asarray(games.checkpoints, jnp.int32)
    block = max(_VECTOR, min(block_width(num_arms), 1 << (games.num_sequences - 1).bit_length()))
    rows = []
    for start in range(0, games.num_sequences, block):
        sequences = np.minimum(start + np.arange(block), games.num_sequences - 1)
        source = games.source(sequences, 1)
        measure = _begin_measure(
            games.losses.init,
            source.keys,
            num_arms=num_arms,
            num_sequences=block,
            num_checkpoints=len(games.checkpoints),
            dtype=games.dtype,
        )
        for first_round, num_windows in games.chunks():
            if stop.is_set():
                return None
            if games.losses.table is not None and first_round > 1:
                source = games.source(sequences, first_round)
            measure = measure_program(
                source,
                measure,
                checkpoints,
                jnp.int32(first_round),
                jnp.int32(num_windows),
                window=games.window,
            )
            jax.block_until_ready(measure)
        rows.append(np.asarray(measure.rows)[:-1])
    together = np.concatenate(rows, axis=-1)[..., : games.num_sequences]
    return norms_from_rows(together, num_arms, games.checkpoints, games.unit)


def run_jobs(
    jobs: list[Callable[[threading.Event], Any]],
    devices: tuple[Any, ...],
    show: Callable[[], None],
) -> list[Any]:
    """Runs independent jobs, two or more at a time on a lone CPU device, in any order.

    One call on a CPU device keeps about one core busy, so threads share the cores among blocks.
    ``show`` is called a few times a second from the calling thread. On an interruption or an
    error the jobs under way stop at their next chunk.
    """
    lone_cpu = len(devices) == 1 and devices[0].platform == "cpu"
    stop = threading.Event()
    with ThreadPoolExecutor(max(1, (os.cpu_count() or 1) if lone_cpu else 1)) as pool:
        futures: list[Future] = [pool.submit(job, stop) for job in jobs]
        waiting = set(futures)
        try:
            while waiting:
                done, waiting = wait(waiting, timeout=0.2, return_when=FIRST_COMPLETED)
                for future in done:
                    future.result()
                show()
        except BaseException:
            stop.set()
            pool.shutdown(cancel_futures=True)
            raise
    return [future.result() for future in futures]
