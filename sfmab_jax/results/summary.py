"""`Summary` and `Summaries`: the regret of very many games, by its moments and a histogram."""

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Literal

import numpy as np

from sfmab_jax.losses.sequence import Sees
from sfmab_jax.results import statistics
from sfmab_jax.results.files import check_ending, write_atomically
from sfmab_jax.results.moments import LARGEST, NUM_BINS, Moments, bin_edges, tail_index
from sfmab_jax.results.statistics import Over, check_level, check_levels, student_quantile

__all__ = ["SUMMARIES_FORMAT", "Summaries", "Summary", "rebuild_summaries"]

Kind = Literal["expected", "realised"]
_KINDS = ("realised", "expected")
# Of a file; `result.load` reads it.
SUMMARIES_FORMAT = "summaries 1"


@dataclass(frozen=True)
class Summary:
    """Regret of one strategy over K loss sequences and S seeds, at C checkpoints.

    Attributes:
      name: of the strategy.
      rounds: the checkpoints [C].
      num_sequences, num_seeds, num_arms: K, S and n.
      losses, seed, first_sequence, first_seed, dtype, seconds, unit, sees, delay: of the run, as in
        `Result`.
      games: moments of the regret of all games, realised and expected: [2, C] each.
      units: the same of the independent numbers behind the mean: of the seeds of one sequence, or
        of the means of several.
      counts: how many games have regret in each of the bins of a histogram, int64 [2, C, bins].
      smallest, largest: regret of any game, [2, C].
      largest_loss: the size of the largest loss of any sequence, [C].
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
    games: Moments
    units: Moments
    counts: np.ndarray
    smallest: np.ndarray
    largest: np.ndarray
    largest_loss: np.ndarray
    sees: Sees = "nothing"
    delay: str | None = None

    def __repr__(self) -> str:
        return f"Summary({self.name} on {self.losses}: {self.size_in_words()}, {self.in_words()})"

    def size_in_words(self) -> str:
        """Return how many arms, rounds and games were played."""
        games = f"{self.num_sequences} x {self.num_seeds} games"
        late = statistics.delay_in_words(self.delay)
        return f"{self.num_arms} arms, {self.rounds[-1]} rounds{late}, {games}"

    def in_words(self) -> str:
        """Return the final mean regret with its 95% interval, of what it is, and how sure."""
        low, high = self._interval(0.95, "expected")
        mean, doubtful = self.mean()[:, -1], self.is_doubtful()[:, -1]
        how = (self.num_sequences, self.sees == "nothing")
        return statistics.in_words(mean, low[:, -1], high[:, -1], doubtful, *how)

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
        half = student_quantile(level, count) * self._standard_error(kind)
        return mean - half, mean + half

    def _standard_error(self, kind: Kind) -> np.ndarray:
        count = self.units.number
        return np.sqrt(self.units.squares[_place(kind)] / max(1, count - 1) / count)

    def is_doubtful(self, kind: Kind = "expected", over: Over | None = None) -> np.ndarray:
        """Whether the interval may cover less than it says, bool [1, C]; see `Result`."""
        self._check_over(over)
        place = _place(kind)
        edges = np.clip(bin_edges(), -LARGEST, LARGEST)
        middles = (edges[1:] + edges[:-1]) / 2
        index = np.array([tail_index(middles, counts) for counts in self.counts[place]])
        skewness = self.units.skewness[place]
        count = self.units.number
        doubtful = statistics.spread_is_doubtful(count, skewness, index)
        error = self._standard_error(kind)
        return (doubtful | statistics.may_miss_a_loss(count, error, self.largest_loss))[None]

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
        edges = bin_edges() * self.unit
        # The first bin with more games up to its end than the rank, and the place within it.
        bins = np.array([np.searchsorted(row, ranks[:, 0], side="right") for row in below]).T
        columns = np.arange(len(self.rounds))
        inside = self.counts[place][columns, bins]
        part = (ranks - (below[columns, bins] - inside) + 0.5) / inside
        values = edges[bins] + np.clip(part, 0, 1) * (edges[bins + 1] - edges[bins])
        values = np.where(ranks == 0, self.smallest[place], values)
        values = np.where(ranks == self.games.number - 1, self.largest[place], values)
        return np.clip(values, self.smallest[place], self.largest[place])[:, None]

    def plot(self, **options: Any):
        """Plot mean regret with a band against the rounds; see `plotting.regret`."""
        return Summaries({self.name: self}).plot(**options)

    def save(self, path: str | os.PathLike) -> Path:
        """Write an .npz file, complete or not at all. `load` reads it."""
        return Summaries({self.name: self}).save(path)


def _place(kind: str) -> int:
    if kind not in _KINDS:
        raise ValueError(f"kind is {kind!r}; choose 'expected' or 'realised'")
    return _KINDS.index(kind)


# What a file holds of each strategy: as it is written there, arrays, moments; and the histogram.
_MOMENTS = ("games", "units")
_ARRAYS = ("rounds", "smallest", "largest", "largest_loss")
_DESCRIPTION = tuple(
    field.name for field in fields(Summary) if field.name not in (*_MOMENTS, *_ARRAYS, "counts")
)


class Summaries(Mapping[str, Summary]):
    """The `Summary` of each strategy, by name, on the same losses and random numbers."""

    def __init__(self, summaries: Mapping[str, Summary]):
        self._summaries = dict(summaries)

    def __getitem__(self, name: str) -> Summary:
        return self._summaries[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._summaries)

    def __len__(self) -> int:
        return len(self._summaries)

    def __repr__(self) -> str:
        lines = [f"  {name!r}: {summary.in_words()}" for name, summary in self.items()]
        if not lines:
            return "Summaries({})"
        first = next(iter(self.values()))
        return "\n".join([f"Summaries({first.losses}, {first.size_in_words()})", *lines])

    def plot(self, **options: Any):
        """Plot mean regret with a band against the rounds; see `plotting.regret`."""
        from sfmab_jax.results import plotting

        return plotting.regret(self, **options)

    def save(self, path: str | os.PathLike) -> Path:
        """Write an .npz file, complete or not at all. `load` reads it.

        Of the histograms only the bins with games in them.

        >>> import tempfile
        >>> import sfmab_jax as sf
        >>> uniform = {"uniform": sf.strategies.uniform()}
        >>> found = sf.simulate(uniform, [[1.0, 0.0], [0.0, 0.5]], num_seeds=4, keep="moments")
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     again = sf.load(found.save(Path(folder) / "mine.npz"))
        >>> again["uniform"].mean().tolist() == found["uniform"].mean().tolist()
        True
        """
        path = check_ending(path)
        arrays: dict[str, Any] = {}
        for number, summary in enumerate(self.values()):
            for key in _ARRAYS:
                arrays[f"{number}/{key}"] = getattr(summary, key)
            for key in _MOMENTS:
                for name, value in getattr(summary, key)._asdict().items():
                    arrays[f"{number}/{key}/{name}"] = np.asarray(value)
            places = np.flatnonzero(summary.counts)
            arrays[f"{number}/places"] = places
            arrays[f"{number}/counts"] = summary.counts.ravel()[places]
        descriptions = [{key: getattr(one, key) for key in _DESCRIPTION} for one in self.values()]
        header = json.dumps({"format": SUMMARIES_FORMAT, "results": descriptions})
        write_atomically(path, lambda file: np.savez(file, header=np.array(header), **arrays))
        return path


def rebuild_summaries(header: Mapping[str, Any], stored: Mapping[str, np.ndarray]) -> Summaries:
    """Return what `Summaries.save` wrote, from the header and the arrays of the file."""
    summaries = {}
    for number, description in enumerate(header["results"]):
        counts = np.zeros((2, len(stored[f"{number}/rounds"]), NUM_BINS), np.int64)
        counts.ravel()[stored[f"{number}/places"]] = stored[f"{number}/counts"]
        moments: dict[str, Any] = {}
        for key in _MOMENTS:
            count, *values = (stored[f"{number}/{key}/{name}"] for name in Moments._fields)
            moments[key] = Moments(int(count), *values)
        arrays: dict[str, Any] = {key: stored[f"{number}/{key}"] for key in _ARRAYS}
        summaries[description["name"]] = Summary(**description, **arrays, **moments, counts=counts)
    return Summaries(summaries)
