"""`Result` and `Results`: the regret of every game, with its statistics, files and plots."""

import json
import os
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import jax
import numpy as np

from sfmab_jax.base import Bandit
from sfmab_jax.losses.sequence import Sees
from sfmab_jax.results import statistics
from sfmab_jax.results.certificate import Certificate
from sfmab_jax.results.files import check_archive, check_ending, write_atomically
from sfmab_jax.results.identity import identity_of, read_identity, stored_identity
from sfmab_jax.results.norms import Norms
from sfmab_jax.results.statistics import Interval, Over
from sfmab_jax.results.summary import SUMMARIES_FORMAT, Summaries, rebuild_summaries

__all__ = ["KEPT_BY_OPTION", "Plots", "Result", "Results", "load"]

_FORMAT = 1
# Fields of a result that are written as they are. Files of earlier versions lack the last six.
_DESCRIPTION = (
    "name",
    "seed",
    "first_seed",
    "losses",
    "dtype",
    "seconds",
    "unit",
    "first_sequence",
    "first_look",
    "losses_identity",
    "sees",
    "switches",
    "delay",
)
Kind = Literal["expected", "realised", "pseudo", "policy", "tracking"]
# What is kept of every game if `simulate` is called with an option, and that option.
KEPT_BY_OPTION = {
    "arm_counts": "arm_counts=True",
    "pseudo_regret": "pseudo_regret=True",
    "policy_regret": "policy_regret=True",
    "tracking_regret": "switches=5",
}


@dataclass(frozen=True)
class Result:
    """Regret of one strategy: K loss sequences, S seeds, C checkpoints. Arrays are float64.

    Regret at a checkpoint tau compares with the best fixed arm of the first tau rounds.

    Attributes:
      name: of the strategy.
      rounds: the checkpoints [C].
      regret: realised, sum_t l_t(i_t) - min_i sum_t l_t(i), [K, S, C].
      expected_regret: conditional, sum_t l_t.p'_t - min_i sum_t l_t(i), [K, S, C]: the same mean
        with less noise.
      norms: of the loss sequences.
      seed, first_seed, losses, dtype: of the run.
      first_sequence: the number of the first loss sequence.
      seconds: that its games took without compiling, added up over the threads that played them;
        on CPU a thread keeps one core busy.
      unit: what the strategies saw as a loss of 1. Not 1 only for losses above 1e6 or below 1e-6.
      records: what ``record`` returned, leaves [K, S, C, ...]; states count losses in ``unit``.
      certificate: bounds along every path, if ``simulate(certificate=True)`` asked for them.
      bandit: the strategy itself; not stored in files.
      losses_identity: a digest of the loss sequence; "" where it is not known.
      saved_identity: the identity of the strategy that was played, in results read from a file.
      kept: what else was asked for, by name; see `arm_counts`, `pseudo_regret`, `policy_regret` and
        `tracking_regret`.
      first_look: units of the first of several looks, if the run could stop at any of them
        (``simulate(until=...)``); None if its length was fixed beforehand.
      sees: what the losses saw of the play, "nothing" if they are oblivious; see `LossSequence`.
        Others answer each game, so that every game and every strategy has its own: ``regret`` is
        external, and the norms are of the losses that came.
      switches: m of `tracking_regret`; None if it was not asked for.
      best_switching: the least total loss of a sequence of arms with at most m switches in the
        first tau rounds, [K, C]; None if it was not asked for.
      delay: of the feedback, in words, as "fixed 10"; None if it was not delayed.

    Statistics are taken ``over`` the family, whose sequences are the units, [1, C]; or given each
    "sequence", whose seeds are the units, [K, C]. By default over the family if there are several
    sequences.
    """

    name: str
    rounds: np.ndarray
    regret: np.ndarray
    expected_regret: np.ndarray
    norms: Norms
    seed: int
    first_seed: int
    losses: str
    dtype: str
    seconds: float
    unit: float = 1.0
    records: Any = field(default=())
    certificate: Certificate | None = None
    bandit: Bandit | None = None
    saved_identity: Any = None
    losses_identity: str = ""
    kept: Mapping[str, np.ndarray] = field(default_factory=dict)
    first_sequence: int = 0
    first_look: int | None = None
    sees: Sees = "nothing"
    switches: int | None = None
    best_switching: np.ndarray | None = None
    delay: str | None = None

    def __repr__(self) -> str:
        sequences, seeds, _ = self.regret.shape
        return (
            f"Result({self.name} on {self.losses}: {self.norms.num_arms} arms, "
            f"{self.rounds[-1]} rounds{statistics.delay_in_words(self.delay)}, "
            f"{sequences} x {seeds} games, {self.in_words()})"
        )

    @property
    def num_sequences(self) -> int:
        """K."""
        return len(self.regret)

    @property
    def num_seeds(self) -> int:
        """S."""
        return self.regret.shape[1]

    @cached_property
    def identity(self) -> Any:
        """What was played, as plain data: see `identity_of`. None if a file does not say."""
        return self.saved_identity if self.bandit is None else identity_of(self.bandit)

    def in_words(self) -> str:
        """Return the final mean regret with its 95% interval, of what it is, and how sure."""
        last = replace(
            self,
            regret=self.regret[..., -1:],
            expected_regret=self.expected_regret[..., -1:],
            norms=self.norms._replace(l_inf=self.norms.l_inf[:, -1:]),
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # a single game has no interval
            low, high = last.interval()
        mean, doubtful = last.mean()[:, 0], last.is_doubtful()[:, 0]
        how = (len(self.regret), self.sees == "nothing")
        return statistics.in_words(mean, low[:, 0], high[:, 0], doubtful, *how)

    @property
    def pseudo_regret(self) -> np.ndarray:
        """Regret in expected losses, sum_t mu_t(i_t) - min_i sum_t mu_t(i), [K, S, C].

        mu_t is the mean of l_t given what the sequence drew at its start, such as its best arm. The
        best arm is that of the means: other than in ``regret``, it does not follow the noise, and
        the mean is smaller. Kept by ``simulate(pseudo_regret=True)``.

        >>> import sfmab_jax as sf
        >>> losses = sf.losses.bernoulli(num_arms=2, gap=0.25)
        >>> result = sf.simulate(
        ...     sf.strategies.uniform(), losses, num_rounds=9, num_seeds=3, pseudo_regret=True,
        ...     arm_counts=True)
        >>> gaps = [0, 0.25]
        >>> bool((result.pseudo_regret == result.arm_counts @ gaps).all())
        True
        """
        return self._asked_for("pseudo_regret")

    @property
    def policy_regret(self) -> np.ndarray:
        """Regret against what each arm would have met if it were played throughout, [K, S, C].

        sum_t l_t(i_t) - min_i sum_t l^i_t(i), where l^i are the losses with which the same
        adversary, with the same key, answers arm i in every round. On oblivious losses it is the
        regret. Kept by ``simulate(policy_regret=True)``.

        Against an adversary that adds 1 to all arms but the last one, playing another arm each time
        costs 1 a round, which the external regret does not know:

        >>> import sfmab_jax as sf
        >>> losses = sf.losses.switching_costs([[0.0, 0.0]] * 50)
        >>> result = sf.simulate(
        ...     sf.strategies.uniform(), losses, num_seeds=2, policy_regret=True, arm_counts=True)
        >>> bool((result.policy_regret >= result.regret).all())
        True
        """
        return self._asked_for("policy_regret")

    @property
    def arm_counts(self) -> np.ndarray:
        """How often each arm was played, int32 [K, S, C, n].

        Kept by ``simulate(arm_counts=True)``.
        """
        return self._asked_for("arm_counts")

    @property
    def tracking_regret(self) -> np.ndarray:
        """Realised regret against the best sequence of arms with few switches, [K, S, C].

        sum_t l_t(i_t) - min sum_t l_t(j_t), the minimum over all sequences of arms j_1, ..., j_tau
        that change at most m times; with m = 0 it is ``regret``. The minima are
        ``best_switching``. Kept by ``simulate(switches=m)``.

        >>> import sfmab_jax as sf
        >>> losses = [[0.0, 1.0], [0.0, 1.0], [1.0, 0.0], [1.0, 0.0]]
        >>> result = sf.simulate(sf.strategies.fixed_arm(0), losses, num_seeds=1, switches=1)
        >>> print(result.regret[0, 0], result.tracking_regret[0, 0])
        [0. 0. 0. 0.] [0. 0. 1. 2.]
        """
        return self._asked_for("tracking_regret")

    @property
    def best_arm(self) -> np.ndarray:
        """The arm with the least total loss, the lowest number of those that tie, int64 [K, C]."""
        if self.norms.best_arm is None:
            raise ValueError(
                f"{self.name!r}: files of earlier versions do not say which arm was best; play "
                "again with sf.simulate"
            )
        return self.norms.best_arm

    def _asked_for(self, name: str) -> np.ndarray:
        if name not in self.kept:
            raise ValueError(
                f"{self.name!r} has no {name.replace('_', ' ')}; play with "
                f"simulate({KEPT_BY_OPTION[name]})"
            )
        return self.kept[name]

    def samples(self, kind: Kind = "expected") -> np.ndarray:
        """Return one of the regrets, by kind."""
        names = {
            "expected": "expected_regret",
            "realised": "regret",
            "pseudo": "pseudo_regret",
            "policy": "policy_regret",
            "tracking": "tracking_regret",
        }
        if kind not in names:
            raise ValueError(f"kind is {kind!r}; choose {', '.join(map(repr, names))}")
        return getattr(self, names[kind])

    def mean(self, kind: Kind = "expected", over: Over | None = None) -> np.ndarray:
        """Mean over the games, [1 or K, C].

        Both "expected" and "realised" estimate the expected regret; "pseudo", "policy" and
        "tracking" are of the regrets of these names.
        """
        return statistics.games_of(self.samples(kind), over).mean(axis=0)

    def std(self, kind: Kind = "realised", over: Over | None = None) -> np.ndarray:
        """Standard deviation of single games, [1 or K, C]; NaN for a single one."""
        games = statistics.games_of(self.samples(kind), over)
        return games.std(axis=0, ddof=1) if len(games) > 1 else np.full(games.shape[1:], np.nan)

    def interval(
        self,
        level: float = 0.95,
        method: Literal["student", "bootstrap", "sequential"] | None = None,
        kind: Kind = "expected",
        over: Over | None = None,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Confidence interval for the mean: low and high, each [1 or K, C].

        Args:
          level: of confidence.
          method: "student", Student's t; "bootstrap", bootstrap-t, which leans to the side of a
            skewed law; "sequential", which holds whenever one looks. By default the first, or the
            last where the run could stop early.
          kind: of regret; "expected" and "realised" have the same mean, the first less noise.
          over: the family, or given each sequence. NaN, with a warning, for a single unit.
        """
        statistics.check_level(level)
        values = statistics.units_of(self.samples(kind), over)
        self.warn_if_no_interval(over, method)
        if method is None:
            method = "student" if self.first_look is None else "sequential"
        if method == "student":
            interval = statistics.student_interval(values, level)
        elif method == "bootstrap":
            interval = statistics.bootstrap_t_interval(values, level)
        elif method == "sequential":
            interval = statistics.sequential_interval(values, level, self.first_look)
        else:
            raise ValueError(f"method is {method!r}; choose 'student', 'bootstrap' or 'sequential'")
        return interval.low, interval.high

    def is_doubtful(
        self,
        kind: Kind | None = None,
        over: Over | None = None,
        *,
        threshold: Any = None,
        part: float | None = None,
    ) -> np.ndarray:
        """Whether an interval may cover less than it says, bool [1 or K, C].

        So it is with fewer than 50 units, or too few for their skewness, for their heavy tails or
        for the largest loss, which a few games more might meet.

        Args:
          kind, over: as in the interval that is asked about.
          threshold: asks about the interval of ``tail_probability(threshold)``.
          part: asks about that of ``conditional_value_at_risk(part)``, for which 50 units are
            needed in the worst part: 1,000 in all for 5%.
        """
        if threshold is not None and part is not None:
            raise ValueError(f"threshold is {threshold!r} and part is {part!r}; give one of them")
        is_of_mean = threshold is None and part is None
        samples = self.samples(kind or ("expected" if is_of_mean else "realised"))
        if threshold is not None:
            exceeds = statistics.units_of(_exceeds(samples, threshold), over)
            return statistics.shares_are_doubtful(exceeds)
        largest = self.largest_loss(over)
        doubtful = statistics.is_doubtful(statistics.units_of(samples, over), largest)
        if part is not None:
            _check_part(part)
            values, beyond = statistics.worst_units_of(samples, part, over)
            error = statistics.standard_error(values)
            doubtful |= beyond < statistics.FEW_UNITS
            doubtful |= statistics.may_miss_a_loss(len(values), error, largest / part)
        return doubtful

    def largest_loss(self, over: Over | None = None) -> np.ndarray:
        """The size of the largest loss of all sequences, or of each, [1 or K, C]."""
        is_family = statistics.check_over(over, len(self.regret)) == "family"
        sizes = self.norms.l_inf
        return sizes.max(axis=0, keepdims=True) if is_family else sizes

    def quantiles(
        self, levels: Sequence[float], kind: Kind = "realised", over: Over | None = None
    ) -> np.ndarray:
        """Quantiles of single games, [Q, 1 or K, C]; of the realised regret unless asked else."""
        games = statistics.games_of(self.samples(kind), over)
        return np.quantile(games, statistics.check_levels(levels), axis=0)

    def tail_probability(
        self,
        threshold: Any,
        level: float = 0.95,
        kind: Kind = "realised",
        over: Over | None = None,
    ) -> Interval:
        """Probability that a game's regret exceeds a threshold, with its interval, [1 or K, C].

        Exact for independent games (Clopper and Pearson 1934); over the family with several games
        on each sequence Student's, of the sequences' shares. Not sequential: where the run could
        stop early, it holds for one look.

        Args:
          threshold: a number, or one for each checkpoint [C].
          level, kind, over: as in `interval`.
        """
        statistics.check_level(level)
        exceeds = statistics.units_of(_exceeds(self.samples(kind), threshold), over)
        interval = statistics.share_interval(exceeds, level)
        if np.isnan(interval.low).any():
            self.warn_if_no_interval(over)
        return interval

    def conditional_value_at_risk(
        self,
        part: float = 0.05,
        level: float = 0.95,
        kind: Kind = "realised",
        over: Over | None = None,
    ) -> Interval:
        """Mean of the worst part of the games, with its interval, [1 or K, C].

        Student's t, as of the units in that part alone: with fewer than 50 of them it is doubtful,
        see `is_doubtful`. Not sequential: where the run could stop early, it holds for one look.

        Args:
          part: the part of the games, strictly between 0 and 1.
          level, kind, over: as in `interval`.
        """
        statistics.check_level(level)
        _check_part(part)
        samples = self.samples(kind)
        self.warn_if_no_interval(over)
        values, beyond = statistics.worst_units_of(samples, part, over)
        interval = statistics.student_interval(values, level, beyond)
        estimate = statistics.conditional_value_at_risk(
            statistics.games_of(samples, over), 1 - part
        )
        return Interval(estimate, *(side + estimate - interval.estimate for side in interval[1:]))

    def warn_if_no_interval(self, over: Over | None, method: str | None = None) -> None:
        """Warn where there is a single unit, so that intervals are NaN."""
        sequences, seeds, _ = self.regret.shape
        over = statistics.check_over(over, sequences)
        statistics.warn_if_no_interval(sequences if over == "family" else seeds, over, method)

    def save(self, path: str | os.PathLike) -> Path:
        """Write an .npz file, complete or not at all. `load` reads it."""
        return Results({self.name: self}).save(path)

    def to_pandas(self):
        """Return a data frame with a row for each strategy, sequence, seed and checkpoint."""
        return Results({self.name: self}).to_pandas()

    def to_xarray(self):
        """Return a labelled dataset with dimensions strategy, sequence, seed and round."""
        return Results({self.name: self}).to_xarray()

    @property
    def plot(self) -> "Plots":
        """``plot()`` draws the regret against the rounds, ``plot.tails()`` its tails."""
        return Results({self.name: self}).plot


def _check_part(part: Any) -> None:
    if not 0 < part < 1:
        raise ValueError(f"part is {part}; it lies strictly between 0 and 1")


def _exceeds(samples: np.ndarray, threshold: Any) -> np.ndarray:
    """Return 1 where samples [K, S, C] exceed a number, or one for each checkpoint [C], else 0."""
    number = samples.shape[-1]
    if np.shape(threshold) not in ((), (number,)):
        raise ValueError(
            f"threshold has shape {list(np.shape(threshold))}; give a number, or one for each of "
            f"the {number} checkpoints"
        )
    return (samples > np.asarray(threshold)).astype(np.float64)


class Results(Mapping[str, Result]):
    """The `Result` of each strategy, by name, on the same losses and random numbers."""

    def __init__(self, results: Mapping[str, Result]):
        self._results = dict(results)

    def __getitem__(self, name: str) -> Result:
        return self._results[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._results)

    def __len__(self) -> int:
        return len(self._results)

    def __repr__(self) -> str:
        lines = [f"  {name!r}: {result.in_words()}" for name, result in self.items()]
        if not lines:
            return "Results({})"
        first = next(iter(self.values()))
        sequences, seeds, _ = first.regret.shape
        about = (
            f"{first.losses}, {first.norms.num_arms} arms, {first.rounds[-1]} rounds"
            f"{statistics.delay_in_words(first.delay)}, {sequences} x {seeds} games"
        )
        return "\n".join([f"Results({about})", *lines])

    def difference(
        self,
        one: str,
        other: str,
        *,
        level: float = 0.95,
        kind: Kind = "expected",
        over: Over | None = None,
    ) -> Interval:
        """Mean regret of one strategy less that of another, with its interval, [1 or K, C].

        Paired: both play the same losses with the same random numbers, so that much of the chance
        cancels. Student's t, or sequential where the run could stop early. NaN, with a warning,
        for a single unit; see also `is_doubtful`.

        Args:
          one, other: names.
          level, kind, over: as in `Result.interval`.
        """
        statistics.check_level(level)
        values = statistics.units_of(self.paired_samples(one, other, kind), over)
        self[one].warn_if_no_interval(over)
        first_look = self[one].first_look
        if first_look is None:
            return statistics.student_interval(values, level)
        return statistics.sequential_interval(values, level, first_look)

    def is_doubtful(
        self, one: str, other: str, kind: Kind = "expected", over: Over | None = None
    ) -> np.ndarray:
        """Whether the interval of a `difference` may cover less than it says, bool [1 or K, C]."""
        values = statistics.units_of(self.paired_samples(one, other, kind), over)
        return statistics.is_doubtful(values, self[one].largest_loss(over))

    def paired_samples(self, one: str, other: str, kind: Kind = "expected") -> np.ndarray:
        """Regret of one strategy less that of another, game by game, [K, S, C]."""
        for name in (one, other):
            if name not in self:
                raise ValueError(
                    f"there is no strategy {name!r}; there are {', '.join(map(repr, self))}"
                )
        return self[one].samples(kind) - self[other].samples(kind)

    def save(self, path: str | os.PathLike) -> Path:
        """Write an .npz file, complete or not at all. `load` reads it."""
        path = check_ending(path)
        arrays: dict[str, Any] = {}
        dtypes: dict[str, str] = {}
        descriptions = []
        for number, result in enumerate(self.values()):
            descriptions.append({key: getattr(result, key) for key in _DESCRIPTION})
            arrays[f"{number}/regret"] = result.regret
            arrays[f"{number}/expected_regret"] = result.expected_regret
            for key, array in result.kept.items():
                arrays[f"{number}/kept/{key}"] = array
            if result.best_switching is not None:
                arrays[f"{number}/best_switching"] = result.best_switching
            if result.certificate is not None:
                for key, array in result.certificate._asdict().items():
                    arrays[f"{number}/certificate/{key}"] = array
            for place, leaf in enumerate(jax.tree.leaves(result.records)):
                name, array = f"{number}/records/{place}", np.asarray(leaf)
                if array.dtype.isbuiltin == 2:  # bfloat16 and others that NumPy does not know
                    dtypes[name] = array.dtype.name
                    array = array.view(f"u{array.dtype.itemsize}")
                arrays[name] = array
        first = next(iter(self.values()))
        arrays |= _stored_norms("norms", first.norms)
        for number, result in enumerate(self.values()):
            if result.norms is not first.norms:  # of losses that answered this strategy
                arrays |= _stored_norms(f"{number}/norms", result.norms)
        arrays["identities"] = stored_identity([result.identity for result in self.values()])
        header = json.dumps({"format": _FORMAT, "results": descriptions, "dtypes": dtypes})
        write_atomically(path, lambda file: np.savez(file, header=np.array(header), **arrays))
        return path

    def to_pandas(self):
        """Return a data frame with a row for each strategy, sequence, seed and checkpoint.

        ``strategy`` is categorical, in the order of the results; ``run_seed`` is the seed of the
        whole run. Counts of the arms, if they were kept, are in ``arm_0``, ``arm_1``, ...
        """
        data = self.to_xarray()
        frame = data.drop_dims("arm", errors="ignore").to_dataframe().reset_index()
        if "arm_counts" in data:
            for arm in data["arm"].values:
                frame[f"arm_{arm}"] = data["arm_counts"].sel(arm=arm).values.ravel()
        frame["strategy"] = frame["strategy"].astype("category").cat.set_categories(list(self))
        return frame

    def to_xarray(self):
        """Return a labelled dataset with dimensions strategy, sequence, seed and round.

        The coordinate ``run_seed`` is the seed of the whole run; of tracking regret the attributes
        tell the switches.
        """
        try:
            import xarray
        except ImportError:
            raise ImportError("xarray is not installed; run: pip install xarray pandas") from None
        first = next(iter(self.values()))
        dims = ("strategy", "sequence", "seed", "round")
        num_sequences, num_seeds, _ = first.regret.shape
        kept = [
            name for name in KEPT_BY_OPTION if all(name in result.kept for result in self.values())
        ]
        arms = {"arm": np.arange(first.norms.num_arms)} if "arm_counts" in kept else {}
        compared = {"switches": first.switches} if "tracking_regret" in kept else {}
        return xarray.Dataset(
            {
                kind: (
                    (*dims, "arm") if kind == "arm_counts" else dims,
                    np.stack([getattr(result, kind) for result in self.values()]),
                )
                for kind in ("regret", "expected_regret", *kept)
            },
            coords={
                **arms,
                "strategy": list(self),
                "sequence": first.first_sequence + np.arange(num_sequences),
                "seed": first.first_seed + np.arange(num_seeds),
                "round": first.rounds,
                "run_seed": first.seed,
            },
            attrs={"losses": first.losses, "seed": first.seed, "dtype": first.dtype, **compared},
        )

    @property
    def plot(self) -> "Plots":
        """``plot()`` draws the regret against the rounds; see `Plots` for others."""
        return Plots(self)


class Plots:
    """The plots of results: ``results.plot()``, ``results.plot.tails()`` and so on."""

    def __init__(self, results: Results):
        self._results = results

    def __call__(self, **options: Any):
        """Plot mean regret with a band against the rounds; see `plotting.regret`."""
        from sfmab_jax.results import plotting

        return plotting.regret(self._results, **options)

    def tails(self, **options: Any):
        """Plot P(regret > x) of the final regret; see `plotting.tails`."""
        from sfmab_jax.results import plotting

        return plotting.tails(self._results, **options)

    def difference(self, one: str, other: str, **options: Any):
        """Plot the paired difference of two strategies; see `plotting.difference`."""
        from sfmab_jax.results import plotting

        return plotting.difference(self._results, one, other, **options)


def load(path: str | os.PathLike) -> Results | Summaries:
    """Read a file that ``save`` wrote. Records come back as a list of arrays.

    Nothing is unpickled and nothing unpacked, so that a file from elsewhere can do no harm.

    >>> import sfmab_jax as sf
    >>> result = sf.simulate(sf.strategies.uniform(), [[1.0, 0.0], [0.0, 0.5]], num_seeds=4)
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     again = load(result.save(Path(folder) / "mine.npz"))
    >>> again["strategy"].mean().tolist() == result.mean().tolist()
    True
    """
    try:
        with open(path, "rb") as raw:
            check_archive(raw)
            with np.load(raw, allow_pickle=False) as file:
                stored = {name: file[name] for name in file.files}
        header = json.loads(str(stored["header"]))
        for name, dtype in header.get("dtypes", {}).items():
            stored[name] = stored[name].view(dtype)
        if header["format"] == _FORMAT:
            return _rebuild(header, stored)
        if header["format"] == SUMMARIES_FORMAT:
            return rebuild_summaries(header, stored)
    except FileNotFoundError:
        raise
    except Exception as error:
        raise ValueError(f"{path} is not a results file, or is damaged: {error!r}") from None
    raise ValueError(f"{path} has format {header['format']}; this version reads format {_FORMAT}")


def _stored_norms(place: str, norms: Norms) -> dict[str, np.ndarray]:
    """Return the arrays of a file that hold these norms."""
    known = {key: value for key, value in norms._asdict().items() if value is not None}
    return {f"{place}/{key}": np.asarray(value) for key, value in known.items()}


def _load_norms(place: str, stored: dict[str, np.ndarray]) -> Norms:
    # Files of earlier versions lack what has a default.
    norms: dict[str, Any] = {
        key: stored[f"{place}/{key}"]
        for key in Norms._fields
        if f"{place}/{key}" in stored or key not in Norms._field_defaults
    }
    norms["num_arms"] = int(norms["num_arms"])
    norms.setdefault("smallest", np.full_like(norms["l_inf"], np.nan))
    return Norms(**norms)


def _rebuild(header: dict[str, Any], stored: dict[str, np.ndarray]) -> Results:
    # Files of earlier versions lack identities.
    shared = _load_norms("norms", stored)
    identities = [None] * len(header["results"])
    if "identities" in stored:
        identities = read_identity(stored["identities"])
    results = {}
    for number, description in enumerate(header["results"]):
        prefix = f"{number}/records/"
        kept = {key: f"{number}/kept/{key}" for key in KEPT_BY_OPTION}
        results[description["name"]] = Result(
            rounds=shared.rounds,
            regret=stored[f"{number}/regret"],
            expected_regret=stored[f"{number}/expected_regret"],
            norms=_load_norms(f"{number}/norms", stored)
            if f"{number}/norms/l_1" in stored
            else shared,
            records=[stored[name] for name in stored if name.startswith(prefix)],
            certificate=_load_certificate(stored, number),
            kept={key: stored[name] for key, name in kept.items() if name in stored},
            saved_identity=identities[number],
            best_switching=stored.get(f"{number}/best_switching"),
            **description,
        )
    return Results(results)


def _load_certificate(stored: dict[str, np.ndarray], number: int) -> Certificate | None:
    names = [f"{number}/certificate/{key}" for key in Certificate._fields]
    return Certificate(*(stored[name] for name in names)) if names[0] in stored else None
