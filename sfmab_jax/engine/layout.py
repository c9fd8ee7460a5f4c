"""How a run is cut into batches, groups, chunks and windows; see the map in `sfmab_jax.engine`.

The widths of groups and calls are rules of the arms, the engine, the platform and the class of
memory alone: code of another width may round differently, and a game must have the same bits alone
or among a million. Batches and chunks may depend on the number of games and rounds, as no
arithmetic crosses them.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any, NamedTuple

import numpy as np

from sfmab_jax.base import with_static_functions
from sfmab_jax.delays import Delay
from sfmab_jax.engine.delayed import DelayProcess
from sfmab_jax.engine.loss_stream import MOST_WINDOW_LOSSES, LossProcess, LossStream
from sfmab_jax.losses import LossSequence

__all__ = [
    "Chunk",
    "Run",
    "chunk_rounds_for",
    "cpu_games_per_call",
    "games_per_call",
    "group_width",
    "makes_own_losses",
    "padded_shape",
    "sequences_per_device",
    "streamed_sequences",
    "window_rounds",
]

# On CPU, the most arms and checkpoints, times games, of a batch that is wider than a call.
_BATCH_NUMBERS = 2**18
# On CPU, about the rounds times arms times games of one call: some tenths of a second.
_CHUNK_WORK = 2**26
# On CPU, the most losses that are streamed to a call: 8 MiB of float32.
_CHUNK_LOSSES = 2**21
# The most rounds in a window.
_WINDOW = 16
# The most sequences of a batch that is wider than a call, if there are several.
_FEW_SEQUENCES = 32
# From so many seeds of each sequence on, losses are made once for all of them.
_SHARING_SEEDS = 8
# On accelerators, numbers of state and scratch for each arm of a game.
_NUMBERS_PER_ARM = 64
# The losses of a chunk for a tile of a TPU stay in its vector memory: 4 MiB of float32.
_TPU_LOSSES = 2**20


class Chunk(NamedTuple):
    """The rounds that one call of the compiled program plays."""

    first_round: int
    last_round: int  # of the run; a last window may play rounds beyond it
    num_windows: int


@dataclass(frozen=True)
class Run:
    """Everything about a run but the strategy: which games are played, on what, and how.

    In its attributes, a width counts the games on one device, and games those on all devices.

    Attributes:
      losses: the sequences, or the family they are drawn from.
      num_rounds, num_sequences, num_seeds: T, K and S.
      first_sequence, first_seed: the numbers of the first sequence and of the first seed.
      seed: names the run; losses and arms are drawn from it.
      checkpoints: the rounds at which results are kept [C].
      dtype: float32 or float64.
      unit: a power of two, in which losses are counted.
      chunk_rounds: rounds in one call of the compiled program.
      devices: JAX devices of one platform.
      engine: "scan" or "fused".
      batching: "lanes" or "vmap".
      arm_counts, pseudo_regret: whether these are kept, too.
      switches: m, if games are also compared with sequences of arms that switch at most m times.
      delay: of the feedback; None if it is not delayed.
    """

    losses: LossSequence
    num_rounds: int
    num_sequences: int
    num_seeds: int
    first_sequence: int
    first_seed: int
    seed: int
    checkpoints: np.ndarray
    dtype: np.dtype
    unit: float
    chunk_rounds: int
    devices: tuple[Any, ...]
    engine: str
    batching: str = "lanes"
    arm_counts: bool = False
    pseudo_regret: bool = False
    switches: int | None = None
    delay: Delay | None = None

    @property
    def num_games(self) -> int:
        return self.num_sequences * self.num_seeds

    @property
    def has_own_losses(self) -> bool:
        """Whether every lane makes the losses of its game; otherwise they come in a stream."""
        if not self.losses.is_oblivious:
            return True
        are_made = self.losses.table is None and self.engine == "scan"
        return are_made and makes_own_losses(self.num_sequences, self.num_seeds)

    @property
    def loss_process(self) -> LossProcess:
        """The process by which a lane makes its losses."""
        return LossProcess(with_static_functions(self.losses.next), self.to_units)

    @cached_property
    def delay_process(self) -> DelayProcess | None:
        """How the delays of any game are made; None if feedback is not delayed."""
        if self.delay is None:
            return None
        function = self.delay.function(self.num_rounds)
        return DelayProcess(with_static_functions(function), np.int32(self.delay.most))

    @property
    def waiting_places(self) -> int:
        """Of how many rounds a game keeps what was observed, if feedback is delayed."""
        return 0 if self.delay is None else self.delay.largest(self.num_rounds) + 1

    @property
    def most_waiting_bytes(self) -> int:
        """The most that late observations may take on a device: an eighth of it, 1 GiB on CPU."""
        return _memory_class(self.devices[0]) // 8

    @property
    def to_units(self) -> np.ndarray:
        """What a loss is multiplied by to be counted in units of the run."""
        return np.asarray(1 / self.unit, self.dtype)

    @property
    def sequences_in_row(self) -> int | None:
        """How many sequences in a row the lanes of a group play on, on each device.

        Equally many lanes play on each. None if that is not so, or if losses are not streamed.
        """
        width = self.group_games // len(self.devices)
        if self.engine != "scan" or self.has_own_losses:
            return None
        if self.num_seeds % width == 0:
            return 1
        return width // self.num_seeds if width % self.num_seeds == 0 else None

    @property
    def sequences_per_device(self) -> int:
        """The most loss sequences that the lanes of one device play on in a batch.

        A power of two, unless each group has its own.
        """
        in_row, width = self.sequences_in_row, self.batch_width
        if in_row and width % self.num_seeds == 0:
            return min(width // self.num_seeds, -(-self.num_sequences // in_row) * in_row)
        return sequences_per_device(self.num_sequences, self.num_seeds, width)

    @property
    def batch_width(self) -> int:
        """Games of a batch on each device.

        On CPU a batch is wider than a call where many games share few sequences of losses, which
        are then made less often and measured side by side, and where none are streamed.
        """
        width = self._call_width
        # A call is one group, and so is a batch, in the fused engine, on accelerators, and on CPU
        # from 65 to 256 arms.
        while self.groups_per_call > 1 and self._may_widen_to(2 * width):
            width *= 2
        return width

    def _may_widen_to(self, width: int) -> bool:
        """Whether batches so wide are numerous and small enough, and stream few sequences.

        Small in the arms, checkpoints and late observations of all games. Few: one, or some that
        lie in a row, of which each group is handed its own.
        """
        are_many = self.num_games >= 4 * width * len(self.devices)
        waiting = self.waiting_places * (2 * self.losses.num_arms + 4)
        numbers = self.losses.num_arms + len(self.checkpoints) + waiting
        are_small = width * numbers <= _BATCH_NUMBERS
        streamed = sequences_per_device(self.num_sequences, self.num_seeds, width)
        are_few = streamed <= (_FEW_SEQUENCES if self.sequences_in_row else 1)
        return are_many and are_small and (are_few or self.has_own_losses)

    @property
    def _call_width(self) -> int:
        return games_per_call(self.losses.num_arms, self.devices[0])

    @property
    def batch_games(self) -> int:
        return self.batch_width * len(self.devices)

    @property
    def num_batches(self) -> int:
        return -(-self.num_games // self.batch_games)

    @property
    def group_games(self) -> int:
        """Games that are played side by side."""
        width = self._call_width
        if self.devices[0].platform == "cpu" and self.engine == "scan":
            width = min(width, group_width(self.losses.num_arms))
        return width * len(self.devices)

    @property
    def groups_per_call(self) -> int:
        """Groups that one call plays in turn.

        Independent of the number of games, so that one program serves all.
        """
        return self._call_width * len(self.devices) // self.group_games

    @property
    def window(self) -> int:
        return window_rounds(self.losses.num_arms, self.chunk_rounds)

    def chunks(self, start: int = 1) -> Iterator[Chunk]:
        """Yield the chunks from round ``start`` on."""
        for first in range(start, self.num_rounds + 1, self.chunk_rounds):
            last = min(first - 1 + self.chunk_rounds, self.num_rounds)
            yield Chunk(first, last, -(-(last - first + 1) // self.window))

    def loss_stream(self, sequences: np.ndarray) -> LossStream:
        """Return the losses of these sequences."""
        return LossStream(
            self.losses,
            sequences,
            seed=self.seed,
            unit=self.unit,
            dtype=self.dtype,
            chunk_rounds=self.chunk_rounds,
        )


@cache
def cpu_games_per_call(num_arms: int) -> int:
    """Return the games that one call plays on a CPU device, from 32 to 512."""
    return int(np.clip(2 ** np.floor(np.log2(16384 / num_arms)), 32, 512))


def games_per_call(num_arms: int, device: Any) -> int:
    """Return the games that one call plays on a device, a power of two.

    On GPU and TPU width is what pays: as many as take a sixty-fourth of the memory, from 32 to
    32,768. With 8 GiB or more and up to 16 arms that is 32,768 on every device.
    """
    if device.platform == "cpu":
        return cpu_games_per_call(num_arms)
    games = _memory_class(device) / 64 / (4 * _NUMBERS_PER_ARM * num_arms)
    return int(np.clip(_power_of_two(games), 32, 2**15))


def group_width(num_arms: int) -> int:
    """Return the most games that a CPU plays side by side: 128 up to 256 arms, then one.

    With few arms vectors are of games, as many as stay in the cache. With many arms they are of
    the arms of one game: then no game waits for the Newton steps of another.
    """
    return 128 if num_arms <= 256 else 1


def makes_own_losses(num_sequences: int, num_seeds: int) -> bool:
    """Return whether every lane of the scan engine makes the losses of its game, if none are given.

    That pays where few games share a sequence. Measured for Algorithm 1 with 10 arms (ns for a
    round of a game on one core, own and streamed): uniform losses, 4 seeds 39 and 48, 8 seeds 33
    and 32, 16 seeds 38 and 31; normal losses, 2 seeds 49 and 75, 4 seeds 47 and 44, 8 seeds 45 and
    32.
    """
    return num_sequences > 1 and num_seeds < _SHARING_SEEDS


def streamed_sequences(num_arms: int, num_sequences: int, num_seeds: int) -> int:
    """Return the most sequences of a family that are streamed to a call on CPU.

    0 if the lanes make their own losses.
    """
    if makes_own_losses(num_sequences, num_seeds):
        return 0
    return sequences_per_device(num_sequences, num_seeds, cpu_games_per_call(num_arms))


def sequences_per_device(num_sequences: int, num_seeds: int, width: int) -> int:
    """Return the most loss sequences that the lanes of one device play on, as a power of two."""
    if num_seeds % width == 0 or num_sequences == 1:
        return 1
    most = min(num_sequences, (width - 1) // num_seeds + 2)
    return 1 << (most - 1).bit_length()


def chunk_rounds_for(
    num_arms: int,
    num_rounds: int,
    device: Any,
    engine: str = "scan",
    num_sequences: int | None = None,
) -> int:
    """Return the rounds in one call of the compiled program; results do not depend on it.

    On CPU a call takes some tenths of a second, and the losses streamed to it stay in the cache. On
    accelerators the losses of a chunk, should every lane have its own, take at most a sixteenth of
    the memory.

    Args:
      num_arms: n.
      num_rounds: T.
      device: one of those that play.
      engine: "scan" or "fused".
      num_sequences: how many are streamed to a device, 0 if its lanes make their own losses; None
        for as many as it has lanes.
    """
    width = games_per_call(num_arms, device)
    if device.platform == "cpu":
        streamed = width if num_sequences is None else max(1, num_sequences)
        rounds = _power_of_two(min(_CHUNK_WORK / width, _CHUNK_LOSSES / streamed) / num_arms)
        rounds, most = max(_WINDOW, rounds), 8192
    else:
        padded, most = padded_shape((num_arms,))[0], 4096
        rounds = max(1, _power_of_two(_memory_class(device) / 16 / (4 * padded * width)))
        if engine == "fused" and device.platform == "tpu":
            rounds = max(1, min(rounds, _TPU_LOSSES // (128 * padded)))
    return int(min(rounds, most, -(-num_rounds // _WINDOW) * _WINDOW))


def window_rounds(num_arms: int, chunk_rounds: int) -> int:
    """Return the rounds in a window.

    The largest divisor of ``chunk_rounds`` up to 16 that keeps a window within MOST_WINDOW_LOSSES
    losses of a sequence.
    """
    most = max(1, min(_WINDOW, MOST_WINDOW_LOSSES // num_arms))
    return max(d for d in range(1, most + 1) if chunk_rounds % d == 0)


def padded_shape(shape: Sequence[int]) -> tuple[int, ...]:
    """Round every size up to a power of two, as arrays in kernels are."""
    return tuple(1 << (size - 1).bit_length() for size in shape)


def _memory_class(device: Any) -> int:
    """Return the memory JAX may use, rounded down to a power of two; 8 GiB if JAX does not say."""
    stats = device.memory_stats() or {}
    return _power_of_two(stats.get("bytes_limit", 2**33))


def _power_of_two(number: float) -> int:
    """Return the largest power of two that is not above ``number``, or 0."""
    return 2 ** int(np.floor(np.log2(number))) if number >= 1 else 0
