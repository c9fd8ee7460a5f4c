"""Evaluation of a table on fresh games, beside the best built-in adversary and the bound."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from sfmab_jax.base import Bandit
from sfmab_jax.losses import LossSequence, from_array
from sfmab_jax.results.files import write_atomically
from sfmab_jax.results.result import Result
from sfmab_jax.results.statistics import check_level, standard_error, student_quantile
from sfmab_jax.simulate import simulate
from sfmab_jax.theory.guarantees import guarantee

__all__ = ["Rating", "WorstCase", "bound_of", "play_table", "rate"]


class Rating(NamedTuple):
    """Mean of the objective on fresh games, its standard error, and how many units it is of."""

    value: float
    error: float
    units: int

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """Return Student's confidence interval: low and high; NaN for a single unit."""
        check_level(level)
        if self.units < 2:
            return np.nan, np.nan
        half = student_quantile(level, self.units) * self.error
        return self.value - half, self.value + half


@dataclass(frozen=True)
class WorstCase:
    """A hard loss sequence and how hard it is.

    Attributes:
      name: of the strategy.
      constraint: in words.
      losses: the sequence found, a `LossSequence` like any other.
      table: the same as an array [T, n].
      score: the objective on fresh games.
      rival: the family of the best built-in adversary under the same constraint.
      rival_losses: that adversary's table [T, n].
      rival_score: the objective there, on the same fresh games.
      result, rival_result: the simulations behind the two scores.
      bound: on the expected regret of this strategy on this sequence; None if none holds.
      history: the best score so far after every check, on the games that select [checks].
      num_steps: steps taken.
      finished: False if the search was stopped before its last step.
    """

    name: str
    constraint: str
    losses: LossSequence
    table: np.ndarray
    score: Rating
    rival: str
    rival_losses: np.ndarray
    rival_score: Rating
    result: Result
    rival_result: Result
    bound: float | None
    history: np.ndarray
    num_steps: int
    finished: bool

    def __repr__(self) -> str:
        bound = "" if self.bound is None else f", bound {self.bound:.4g}"
        return (
            f"WorstCase({self.name}, {self.constraint}: {self.score.value:.4g}, best built-in "
            f"{self.rival} {self.rival_score.value:.4g}{bound})"
        )

    @property
    def regret(self) -> float:
        """The mean regret on fresh games."""
        return float(self.result.mean()[0, -1])

    @property
    def ratio(self) -> float | None:
        """Regret over bound."""
        return None if self.bound is None else self.regret / self.bound

    @property
    def lead(self) -> float:
        """How far the score is above the best built-in adversary's, in standard errors."""
        error = float(np.hypot(self.score.error, self.rival_score.error))
        return (self.score.value - self.rival_score.value) / max(error, 1e-300)

    def save(self, path: str | os.PathLike) -> Path:
        """Write the table as an .npy file; `sf.losses.from_file` reads it."""
        path = Path(path)
        if path.suffix != ".npy":
            raise ValueError(f"path is {path}; give a name that ends in .npy")
        write_atomically(path, lambda file: np.save(file, self.table))
        return path


def play_table(
    name: str, bandit: Bandit, table: np.ndarray, rival: Bandit | None, num_seeds: int, seed: int
) -> tuple[Result, np.ndarray]:
    """Simulate a table; return the result and the objective of every game before any bound, [S]."""
    bandits = {name: bandit} if rival is None else {name: bandit, "the rival strategy": rival}
    losses = from_array(table, name=f"worst case of {name}")
    results: Any = simulate(bandits, losses, num_seeds=num_seeds, seed=seed, progress=False)
    values = results[name].expected_regret[0, :, -1]
    if rival is not None:
        values = values - results["the rival strategy"].expected_regret[0, :, -1]
    return results[name], values


def rate(values: np.ndarray, divisor: float) -> Rating:
    """Rate the objective values of units [U], divided by a bound."""
    error = standard_error(values)
    return Rating(float(values.mean() / divisor), float(error / divisor), len(values))


def bound_of(result: Result) -> float | None:
    """Return the corrected bound of Algorithm 1, or the textbook's; None where none holds."""
    lines = [line[-1] for line in guarantee(result).lines.values()]
    return float(lines[0]) if lines and np.isfinite(lines[0]) else None
