"""Moments and histograms of the regret of very many games, collected batch by batch.

Memory does not grow with the number of games. Games are added in their order, in blocks whose size
is a rule of the arms alone, so that the sums are the same bits whatever the batches and devices.
"""

import threading
from typing import Any, NamedTuple

import numpy as np

__all__ = ["LARGEST", "NUM_BINS", "Moments", "Summarizer", "bin_edges", "tail_index"]

# Leading bits of a float32 that name its bin: sign, exponent, six of the mantissa. So a bin reaches
# from a number to at most 1.6% beyond.
_DROPPED_BITS = 17
NUM_BINS = 2 ** (32 - _DROPPED_BITS)
LARGEST = float(np.finfo(np.float32).max)


class Moments(NamedTuple):
    """Moments of numbers added so far; arrays [...]."""

    number: int
    mean: np.ndarray
    squares: np.ndarray  # sum of the squared distances from the mean
    cubes: np.ndarray  # sum of their cubes

    def with_values(self, values: np.ndarray) -> "Moments":
        """Add values [m, ...] (Chan, Golub and LeVeque 1979; cubes by Pebay 2008)."""
        if not len(values):
            return self
        mean = values.mean(axis=0)
        before, added = self.number, len(values)
        number = before + added
        shift = mean - self.mean
        distances = values - mean
        squares = (distances**2).sum(axis=0)
        return Moments(
            number,
            self.mean + shift * (added / number),
            self.squares + squares + shift**2 * (before * added / number),
            self.cubes
            + (distances**3).sum(axis=0)
            + shift**3 * (before * added * (before - added) / number**2)
            + 3 * shift * (before * squares - added * self.squares) / number,
        )

    @property
    def skewness(self) -> np.ndarray:
        """Skewness of the numbers, [...]; 0 where they are all equal."""
        spread = np.sqrt(self.squares / max(1, self.number))
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(spread == 0, 0.0, self.cubes / self.number / spread**3)


class Summarizer:
    """Collects the games of one strategy, batch by batch in any order, from several threads.

    Args:
      num_seeds: S; games are in the order of the sequences, then of the seeds.
      num_sequences: K.
      num_checkpoints: C.
      block: games that are summed together, a divisor of the size of every batch but the last.
      unit: that losses were counted in.
    """

    def __init__(
        self, *, num_sequences: int, num_seeds: int, num_checkpoints: int, block: int, unit: float
    ):
        self._several = num_sequences > 1
        self._num_seeds, self._block, self._unit = num_seeds, block, unit
        self._lock = threading.Lock()
        self._waiting: dict[int, np.ndarray] = {}  # batches that came before their turn
        self._next_game = 0
        zero = np.zeros((2, num_checkpoints))
        self._games = self._units = Moments(0, zero, zero, zero)
        self._unfinished = zero  # the sum of the last sequence's regret so far
        self._counts = np.zeros((2, num_checkpoints, NUM_BINS), np.int64)
        self._smallest, self._largest = zero + np.inf, zero - np.inf

    def collected(self) -> dict[str, Any]:
        """Return the fields of a `Summary` that were collected."""
        return {
            "games": self._games,
            "units": self._units,
            "counts": self._counts,
            "smallest": self._smallest,
            "largest": self._largest,
        }

    def add(self, first_game: int, regret: np.ndarray) -> None:
        """Add a batch, ``regret`` [games, 2, C] from number ``first_game`` on."""
        with self._lock:
            self._waiting[first_game] = regret
            while self._next_game in self._waiting:
                batch = self._waiting.pop(self._next_game)
                for start in range(0, len(batch), self._block):
                    self._add_block(batch[start : start + self._block])

    def _add_block(self, regret: np.ndarray) -> None:
        self._games = self._games.with_values(regret)
        self._units = self._units.with_values(self._finished(regret) if self._several else regret)
        bins = _bin_of(regret / self._unit)
        kinds, checkpoints = np.ix_(*map(np.arange, regret.shape[1:]))
        np.add.at(self._counts, (kinds, checkpoints, bins), 1)
        self._smallest = np.minimum(self._smallest, regret.min(axis=0))
        self._largest = np.maximum(self._largest, regret.max(axis=0))
        self._next_game += len(regret)

    def _finished(self, regret: np.ndarray) -> np.ndarray:
        """Return the mean regret of the sequences whose last game is in the block, [u, 2, C]."""
        games = self._next_game + np.arange(len(regret))
        starts = np.flatnonzero(games % self._num_seeds == 0)
        if not len(starts) or starts[0] > 0:
            starts = np.append(0, starts)
        sums = np.add.reduceat(regret, starts, axis=0)
        if games[0] % self._num_seeds:
            sums[0] += self._unfinished
        ends_whole = (games[-1] + 1) % self._num_seeds == 0
        self._unfinished = sums[-1]
        return (sums if ends_whole else sums[:-1]) / self._num_seeds


def _bin_of(values: np.ndarray) -> np.ndarray:
    """Return the bin of each number, 0 ... bins - 1, in the order of the numbers."""
    bits = values.astype(np.float32).view(np.int32)
    # Integers in the order of the floats: those of negative floats run backwards.
    size = (bits & 0x7FFFFFFF) >> _DROPPED_BITS
    return np.where(bits < 0, -1 - size, size) + NUM_BINS // 2


def bin_edges() -> np.ndarray:
    """Return where the bins begin, and where the last one ends, [bins + 1]."""
    bits = np.arange(NUM_BINS // 2 + 1, dtype=np.int64) << _DROPPED_BITS
    with np.errstate(invalid="ignore"):  # the last bins have no numbers, but NaN
        positive = bits.astype(np.uint32).view(np.float32).astype(np.float64)
    positive[~np.isfinite(positive)] = np.inf
    positive[-1] = np.inf  # past the largest number the bits are those of -0
    return np.concatenate([-positive[:0:-1], positive])


def tail_index(values: np.ndarray, counts: np.ndarray) -> float:
    """Return Hill's index of the largest tenth of the distances from the median.

    Args:
      values: increasing [bins].
      counts: how often each occurs [bins].
    """
    present = np.flatnonzero(counts)
    values, counts = values[present], counts[present]
    number = int(counts.sum())
    median = values[np.searchsorted(np.cumsum(counts), number / 2)]
    sizes = np.abs(values - median)
    order = np.argsort(sizes)[::-1]
    sizes, counts = sizes[order], counts[order]
    largest = min(max(5, number // 10), number - 1)
    up_to = np.cumsum(counts)
    threshold = sizes[np.searchsorted(up_to, largest + 1)] if largest else 0.0
    if threshold <= 0:
        return np.inf
    above = np.clip(largest - (up_to - counts), 0, counts)
    inverse = above @ np.log(np.maximum(sizes / threshold, 1)) / largest
    return 1 / inverse if inverse > 0 else np.inf
