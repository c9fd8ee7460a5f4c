"""`Summary`: the regret of very many games, of which only moments and a histogram are kept.

Memory does not grow with the number of games. Games are added in their order, in blocks whose size
is a rule of the arms alone, so that the sums are the same bits whatever the batches and devices.
"""

import threading
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np

from sfmab_jax.results import statistics
from sfmab_jax.results.statistics import Over, check_level, check_levels, student_quantile

__all__ = ["Summarizer", "Summary"]

Kind = Literal["expected", "realised"]
_KINDS = ("realised", "expected")
# Leading bits of a float32 that name its bin: sign, exponent, six of the mantissa. So a bin reaches
# from a number to at most 1.6% beyond.
_DROPPED_BITS = 17
_BINS = 2 ** (32 - _DROPPED_BITS)
_LARGEST = float(np.finfo(np.float32).max)


class _Moments(NamedTuple):
    """Of numbers added so far; arrays [...]."""

    number: int
    mean: np.ndarray
    squares: np.ndarray  # sum of the squared distances from the mean
    cubes: np.ndarray  # sum of their cubes

    def with_values(self, values: np.ndarray) -> "_Moments":
        """Add values [m, ...] (Chan, Golub and LeVeque 1979; cubes by Pebay 2008)."""
        if not len(values):
            return self
        mean = values.mean(axis=0)
        before, added = self.number, len(values)
        number = before + added
        shift = mean - self.mean
        distances = values - mean
        squares = (distances**2).sum(axis=0)
        return _Moments(
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


@dataclass(frozen=True)
class Summary:
    """Regret of one strategy over K loss sequences and S seeds, at C checkpoints.

    Attributes:
      name: of the strategy.
      rounds: the checkpoints [C].
      num_sequences, num_seeds, num_arms: K, S and n.
      losses, seed, first_sequence, first_seed, dtype, seconds, unit: of the run, as in `Result`.
      games: moments of the regret of all games, realised and expected: [2, C] each.
      units: the same of the independent numbers behind the mean: of the seeds of one sequence, or
        of the means of several.
      counts: how many games have regret in each of the bins of a histogram, int64 [2, C, bins].
      smallest, largest: regret of any game, [2, C].
    """

    name: str
    rounds: np.ndarray
    num_sequences: int
    num_seeds: int
    num_arms: int
    losses: str
    seed: int
    first_sequence: int
    first_seed: int
    dtype: str
    seconds: float
    unit: float
    games: _Moments
    units: _Moments
    counts: np.ndarray
    smallest: np.ndarray
    largest: np.ndarray

    def __repr__(self) -> str:
        low, high = self._interval(0.95, "expected")
        mean, doubtful = self.mean()[:, -1], self.is_doubtful()[:, -1]
        words = statistics.in_words(mean, low[:, -1], high[:, -1], doubtful, self.num_sequences)
        games = f"{self.num_sequences} x {self.num_seeds} games"
        return (
            f"Summary({self.name} on {self.losses}: {self.num_arms} arms, {self.rounds[-1]} rounds,"
            f" {games}, {words})"
        )

    def mean(self, kind: Kind = "expected", over: Over | None = None) -> np.ndarray:
        """Mean over all games, [1, C]."""
        self._check_over(over)
        return self.games.mean[_place(kind)][None]

    def std(self, kind: Kind = "realised", over: Over | None = None) -> np.ndarray:
        """Standard deviation of single games, [1, C]; NaN for a single one."""
        self._check_over(over)
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.sqrt(self.games.squares[_place(kind)] / (self.games.number - 1))[None]

    def interval(
        self, level: float = 0.95, kind: Kind = "expected", over: Over | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Student's confidence interval for the mean: low and high, each [1, C].

        Over the family if there are several loss sequences, otherwise given the one. NaN, with a
        warning, for a single unit.
        """
        check_level(level)
        statistics.warn_if_no_interval(self.units.number, self._check_over(over))
        return self._interval(level, kind)

    def _interval(self, level: float, kind: Kind) -> tuple[np.ndarray, np.ndarray]:
        place, count = _place(kind), self.units.number
        mean = self.units.mean[place][None]
        if count < 2:
            return mean * np.nan, mean * np.nan
        error = np.sqrt(self.units.squares[place] / (count - 1) / count)
        half = student_quantile(level, count) * error
        return mean - half, mean + half

    def is_doubtful(self, kind: Kind = "expected", over: Over | None = None) -> np.ndarray:
        """Whether the interval may cover less than it says, bool [1, C]; see `Result`."""
        self._check_over(over)
        place = _place(kind)
        edges = np.clip(_bin_edges(), -_LARGEST, _LARGEST)
        middles = (edges[1:] + edges[:-1]) / 2
        index = np.array([_tail_index(middles, counts) for counts in self.counts[place]])
        skewness = self.units.skewness[place]
        return statistics.spread_is_doubtful(self.units.number, skewness, index)[None]

    def _check_over(self, over: str | None) -> Over:
        kept = statistics.check_over(None, self.num_sequences)
        if statistics.check_over(over, self.num_sequences) != kept:
            raise ValueError(
                f"over is {over!r}; of {self.num_sequences} loss sequences this keeps only what "
                f"over={kept!r} needs: play with keep='games', or other num_sequences"
            )
        return kept

    def quantiles(
        self, levels: Any, kind: Kind = "realised", over: Over | None = None
    ) -> np.ndarray:
        """Quantiles of single games, [Q, 1, C], right to 1.6% of their size."""
        self._check_over(over)
        place = _place(kind)
        ranks = check_levels(levels)[:, None] * (self.games.number - 1)
        below = np.cumsum(self.counts[place], axis=1)
        edges = _bin_edges() * self.unit
        # The first bin with more games up to its end than the rank, and the place within it.
        bins = np.array([np.searchsorted(row, ranks[:, 0], side="right") for row in below]).T
        columns = np.arange(len(self.rounds))
        inside = self.counts[place][columns, bins]
        part = (ranks - (below[columns, bins] - inside) + 0.5) / inside
        values = edges[bins] + np.clip(part, 0, 1) * (edges[bins + 1] - edges[bins])
        values = np.where(ranks == 0, self.smallest[place], values)
        values = np.where(ranks == self.games.number - 1, self.largest[place], values)
        return np.clip(values, self.smallest[place], self.largest[place])[:, None]


def _place(kind: str) -> int:
    if kind not in _KINDS:
        raise ValueError(f"kind is {kind!r}; choose 'expected' or 'realised'")
    return _KINDS.index(kind)


def _bin_of(values: np.ndarray) -> np.ndarray:
    """Return the bin of each number, 0 ... bins - 1, in the order of the numbers."""
    bits = values.astype(np.float32).view(np.int32)
    # Integers in the order of the floats: those of negative floats run backwards.
    size = (bits & 0x7FFFFFFF) >> _DROPPED_BITS
    return np.where(bits < 0, -1 - size, size) + _BINS // 2


def _bin_edges() -> np.ndarray:
    """Return where the bins begin, and where the last one ends, [bins + 1]."""
    bits = np.arange(_BINS // 2 + 1, dtype=np.int64) << _DROPPED_BITS
    with np.errstate(invalid="ignore"):  # the last bins have no numbers, but NaN
        positive = bits.astype(np.uint32).view(np.float32).astype(np.float64)
    positive[~np.isfinite(positive)] = np.inf
    positive[-1] = np.inf  # past the largest number the bits are those of -0
    return np.concatenate([-positive[:0:-1], positive])


def _tail_index(values: np.ndarray, counts: np.ndarray) -> float:
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
        self._games = self._units = _Moments(0, zero, zero, zero)
        self._unfinished = zero  # the sum of the last sequence's regret so far
        self._counts = np.zeros((2, num_checkpoints, _BINS), np.int64)
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
