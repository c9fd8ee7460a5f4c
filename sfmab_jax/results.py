"""What a simulation gives back: regret arrays with their statistics, saved and drawn."""

import json
import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import jax
import numpy as np

from sfmab_jax import statistics
from sfmab_jax.base import Bandit
from sfmab_jax.certificate import Certificate
from sfmab_jax.norms import Norms

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
      certificate: what `sfmab_jax.certificate` followed along every path, if it was asked for.
      bandit: the strategy itself; files do not keep it.
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

    def __repr__(self) -> str:
        sequences, seeds, _ = self.regret.shape
        return (
            f"Result({self.name} on {self.losses}: {self.norms.num_arms} arms, "
            f"{self.rounds[-1]} rounds, {sequences} x {seeds} games, "
            f"mean regret {self.mean()[:, -1].mean():.4g})"
        )

    def samples(self, kind: Kind = "expected") -> np.ndarray:
        """``expected_regret`` or ``regret``, by name."""
        if kind not in ("expected", "realised"):
            raise ValueError(f"kind is {kind!r}; choose 'expected' or 'realised'")
        return self.expected_regret if kind == "expected" else self.regret

    def mean(self, kind: Kind = "expected") -> np.ndarray:
        """Mean over the seeds, [K, C]; both kinds estimate the expected regret."""
        return statistics.mean(self.samples(kind))

    def interval(
        self,
        level: float = 0.95,
        method: Literal["normal", "bootstrap"] = "normal",
        kind: Kind = "expected",
    ) -> tuple[np.ndarray, np.ndarray]:
        """Confidence interval for the mean over the seeds: low and high, each [K, C]."""
        if not 0 < level < 1:
            raise ValueError(f"level is {level}; it lies strictly between 0 and 1")
        methods = {
            "normal": statistics.normal_interval,
            "bootstrap": statistics.bootstrap_interval,
        }
        if method not in methods:
            raise ValueError(f"method is {method!r}; choose 'normal' or 'bootstrap'")
        return methods[method](self.samples(kind), level)

    def quantiles(self, levels: Sequence[float], kind: Kind = "realised") -> np.ndarray:
        """Quantiles over the seeds, [Q, K, C]; of the realised regret unless asked otherwise."""
        wanted = np.atleast_1d(np.asarray(levels, np.float64))
        if wanted.size == 0 or not ((wanted >= 0) & (wanted <= 1)).all():
            raise ValueError(f"levels are {levels}; quantile levels lie between 0 and 1")
        return statistics.quantiles(self.samples(kind), wanted)

    def save(self, path: str | os.PathLike) -> Path:
        """Writes an .npz file, complete or not at all. `load` reads it."""
        return Results({self.name: self}).save(path)

    def to_pandas(self):
        """A data frame with a row for each strategy, sequence, seed and checkpoint."""
        return Results({self.name: self}).to_pandas()

    def to_xarray(self):
        """A labelled dataset with dimensions strategy, sequence, seed and round."""
        return Results({self.name: self}).to_xarray()

    def plot(self, **options: Any):
        """Mean regret with its 95% interval against the rounds; see `plotting.regret`."""
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
        """Writes an .npz file, complete or not at all. `load` reads it."""
        path = Path(path)
        arrays: dict[str, Any] = {}
        described = []
        for number, result in enumerate(self.values()):
            described.append(
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
                arrays[f"{number}/records/{place}"] = np.asarray(leaf)
        first = next(iter(self.values()))
        arrays |= {f"norms/{key}": np.asarray(v) for key, v in first.norms._asdict().items()}
        header = json.dumps({"format": _FORMAT, "results": described})
        write_atomically(path, lambda file: np.savez(file, header=np.array(header), **arrays))
        return path

    def to_pandas(self):
        """A data frame with a row for each strategy, sequence, seed and checkpoint."""
        return self.to_xarray().to_dataframe().reset_index()

    def to_xarray(self):
        """A labelled dataset with dimensions strategy, sequence, seed and round."""
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
        """Mean regret with its 95% interval against the rounds; see `plotting.regret`."""
        from sfmab_jax import plotting

        return plotting.regret(self, **options)


def load(path: str | os.PathLike) -> Results:
    """Reads what ``save`` wrote; nothing is unpickled. Records come back as a list of arrays.

    >>> import sfmab_jax as sf
    >>> result = sf.simulate(sf.strategies.uniform(), [[1.0, 0.0], [0.0, 0.5]], num_seeds=4)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     again = load(result.save(Path(folder) / "mine.npz"))
    >>> again["strategy"].mean().tolist() == result.mean().tolist()
    True
    """
    try:
        with open(path, "rb") as raw, np.load(raw, allow_pickle=False) as file:
            stored = {name: file[name] for name in file.files}
        header = json.loads(str(stored["header"]))
        if header["format"] == _FORMAT:
            return _rebuild(header, stored)
    except FileNotFoundError:
        raise
    except Exception as error:
        raise ValueError(f"{path} is not a results file, or is damaged: {error!r}") from None
    raise ValueError(f"{path} has format {header['format']}; this version reads format {_FORMAT}")


def _rebuild(header: dict[str, Any], stored: dict[str, np.ndarray]) -> Results:
    norms: dict[str, Any] = {key: stored[f"norms/{key}"] for key in Norms._fields}
    norms["num_arms"] = int(norms["num_arms"])
    results = {}
    for number, described in enumerate(header["results"]):
        prefix = f"{number}/records/"
        results[described["name"]] = Result(
            rounds=norms["rounds"],
            regret=stored[f"{number}/regret"],
            expected_regret=stored[f"{number}/expected_regret"],
            norms=Norms(**norms),
            records=[stored[name] for name in stored if name.startswith(prefix)],
            certificate=_stored_certificate(stored, number),
            **described,
        )
    return Results(results)


def _stored_certificate(stored: dict[str, np.ndarray], number: int) -> Certificate | None:
    names = [f"{number}/certificate/{key}" for key in Certificate._fields]
    return Certificate(*(stored[name] for name in names)) if names[0] in stored else None


def write_atomically(path: Path, write) -> None:
    """Calls ``write(file)`` on a new file beside ``path``, then renames it to ``path``."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=path.name, suffix=".tmp")
    try:
        os.chmod(temporary, 0o666 & ~_umask())  # temporary files are for their owner alone
        with os.fdopen(handle, "wb") as file:
            write(file)
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise


def _umask() -> int:
    """What the system takes from the rights of new files; it can only be read by setting it."""
    mask = os.umask(0o022)
    os.umask(mask)
    return mask
