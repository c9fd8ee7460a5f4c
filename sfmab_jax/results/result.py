"""`Result` and `Results`: the regret of every game, with its statistics, files and plots."""

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import jax
import numpy as np

from sfmab_jax.base import Bandit
from sfmab_jax.results import statistics
from sfmab_jax.results.certificate import Certificate
from sfmab_jax.results.files import check_archive, write_atomically
from sfmab_jax.results.identity import identity_of, read_identity, stored_identity
from sfmab_jax.results.norms import Norms

__all__ = ["Result", "Results", "load"]

_FORMAT = 1
Kind = Literal["expected", "realised"]


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
      seconds: wall time of the whole simulation, compilation included.
      unit: what the strategies saw as a loss of 1. Not 1 only for losses above 1e6 or below 1e-6.
      records: what ``record`` returned, leaves [K, S, C, ...]; states count losses in ``unit``.
      certificate: bounds along every path, if ``simulate(certificate=True)`` asked for them.
      bandit: the strategy itself; not stored in files.
      saved_identity: the identity of the strategy that was played, in results read from a file.
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

    def __repr__(self) -> str:
        sequences, seeds, _ = self.regret.shape
        return (
            f"Result({self.name} on {self.losses}: {self.norms.num_arms} arms, "
            f"{self.rounds[-1]} rounds, {sequences} x {seeds} games, "
            f"mean regret {self.mean()[:, -1].mean():.4g})"
        )

    @cached_property
    def identity(self) -> Any:
        """What was played, as plain data: see `identity_of`. None if a file does not say."""
        return self.saved_identity if self.bandit is None else identity_of(self.bandit)

    def samples(self, kind: Kind = "expected") -> np.ndarray:
        """``expected_regret`` or ``regret``, by name."""
        if kind not in ("expected", "realised"):
            raise ValueError(f"kind is {kind!r}; choose 'expected' or 'realised'")
        return self.expected_regret if kind == "expected" else self.regret

    def mean(self, kind: Kind = "expected") -> np.ndarray:
        """Mean over the seeds, [K, C]; both kinds estimate the expected regret."""
        return self.samples(kind).mean(axis=1)

    def interval(
        self,
        level: float = 0.95,
        method: Literal["normal", "bootstrap"] = "normal",
        kind: Kind = "expected",
    ) -> tuple[np.ndarray, np.ndarray]:
        """Confidence interval for the mean over the seeds: low and high, each [K, C]."""
        statistics.check_level(level)
        methods = {
            "normal": statistics.normal_interval,
            "bootstrap": statistics.percentile_interval,
        }
        if method not in methods:
            raise ValueError(f"method is {method!r}; choose 'normal' or 'bootstrap'")
        return methods[method](self.samples(kind), level)

    def quantiles(self, levels: Sequence[float], kind: Kind = "realised") -> np.ndarray:
        """Quantiles over the seeds, [Q, K, C]; of the realised regret unless asked otherwise."""
        return np.quantile(self.samples(kind), statistics.check_levels(levels), axis=1)

    def save(self, path: str | os.PathLike) -> Path:
        """Write an .npz file, complete or not at all. `load` reads it."""
        return Results({self.name: self}).save(path)

    def to_pandas(self):
        """Return a data frame with a row for each strategy, sequence, seed and checkpoint."""
        return Results({self.name: self}).to_pandas()

    def to_xarray(self):
        """Return a labelled dataset with dimensions strategy, sequence, seed and round."""
        return Results({self.name: self}).to_xarray()

    def plot(self, **options: Any):
        """Plot mean regret with its 95% interval against the rounds; see `plotting.regret`."""
        return Results({self.name: self}).plot(**options)


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
        return f"Results({', '.join(self)})"

    def save(self, path: str | os.PathLike) -> Path:
        """Write an .npz file, complete or not at all. `load` reads it."""
        path = Path(path)
        arrays: dict[str, Any] = {}
        dtypes: dict[str, str] = {}
        descriptions = []
        for number, result in enumerate(self.values()):
            descriptions.append(
                {
                    key: getattr(result, key)
                    for key in ("name", "seed", "first_seed", "losses", "dtype", "seconds", "unit")
                }
            )
            arrays[f"{number}/regret"] = result.regret
            arrays[f"{number}/expected_regret"] = result.expected_regret
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
        arrays |= {f"norms/{key}": np.asarray(v) for key, v in first.norms._asdict().items()}
        arrays["identities"] = stored_identity([result.identity for result in self.values()])
        header = json.dumps({"format": _FORMAT, "results": descriptions, "dtypes": dtypes})
        write_atomically(path, lambda file: np.savez(file, header=np.array(header), **arrays))
        return path

    def to_pandas(self):
        """Return a data frame with a row for each strategy, sequence, seed and checkpoint."""
        return self.to_xarray().to_dataframe().reset_index()

    def to_xarray(self):
        """Return a labelled dataset with dimensions strategy, sequence, seed and round."""
        try:
            import xarray
        except ImportError:
            raise ImportError("xarray is not installed; run: pip install xarray pandas") from None
        first = next(iter(self.values()))
        dims = ("strategy", "sequence", "seed", "round")
        num_sequences, num_seeds, _ = first.regret.shape
        return xarray.Dataset(
            {
                kind: (dims, np.stack([getattr(result, kind) for result in self.values()]))
                for kind in ("regret", "expected_regret")
            },
            coords={
                "strategy": list(self),
                "sequence": np.arange(num_sequences),
                "seed": first.first_seed + np.arange(num_seeds),
                "round": first.rounds,
            },
            attrs={"losses": first.losses, "seed": first.seed, "dtype": first.dtype},
        )

    def plot(self, **options: Any):
        """Plot mean regret with its 95% interval against the rounds; see `plotting.regret`."""
        from sfmab_jax.results import plotting

        return plotting.regret(self, **options)


def load(path: str | os.PathLike) -> Results:
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
    except FileNotFoundError:
        raise
    except Exception as error:
        raise ValueError(f"{path} is not a results file, or is damaged: {error!r}") from None
    raise ValueError(f"{path} has format {header['format']}; this version reads format {_FORMAT}")


def _rebuild(header: dict[str, Any], stored: dict[str, np.ndarray]) -> Results:
    # Files of earlier versions have neither the smallest loss nor identities.
    stored = {"norms/smallest": np.full_like(stored["norms/l_inf"], np.nan), **stored}
    norms: dict[str, Any] = {key: stored[f"norms/{key}"] for key in Norms._fields}
    norms["num_arms"] = int(norms["num_arms"])
    identities = [None] * len(header["results"])
    if "identities" in stored:
        identities = read_identity(stored["identities"])
    results = {}
    for number, description in enumerate(header["results"]):
        prefix = f"{number}/records/"
        results[description["name"]] = Result(
            rounds=norms["rounds"],
            regret=stored[f"{number}/regret"],
            expected_regret=stored[f"{number}/expected_regret"],
            norms=Norms(**norms),
            records=[stored[name] for name in stored if name.startswith(prefix)],
            certificate=_load_certificate(stored, number),
            saved_identity=identities[number],
            **description,
        )
    return Results(results)


def _load_certificate(stored: dict[str, np.ndarray], number: int) -> Certificate | None:
    names = [f"{number}/certificate/{key}" for key in Certificate._fields]
    return Certificate(*(stored[name] for name in names)) if names[0] in stored else None
