"""Norms of loss sequences at the checkpoints, in which bounds are stated."""

from functools import partial
from typing import NamedTuple

import numpy as np

from sfmab_jax.checks import warn_user
from sfmab_jax.engine.measure import Row, unit_of_squares
from sfmab_jax.losses import LossSequence

__all__ = [
    "Norms",
    "best_switching_from_row",
    "norms_from_row",
    "warn_if_no_regret",
    "warn_if_not_finite",
]


class Norms(NamedTuple):
    """Norms of K loss sequences over their first tau rounds, tau the C checkpoints.

    As in Theorem 1 of the paper, with S_i = sum_{t <= tau} l_t(i). NumPy float64 [K, C], in the
    losses' own units.

    Attributes:
      num_arms: n.
      rounds: tau [C].
      l_1: sum_t ||l_t||_1.
      l_2: sum_t ||l_t||_2^2.
      l_inf: max_t ||l_t||_inf.
      s_inf: max_i |S_i|.
      best: min_i S_i, the total loss of the best fixed arm.
      mean: mean_i S_i, the total loss of uniform play.
      smallest: min_t min_i l_t(i); NaN where it is not known, as in files of earlier versions.
      best_arm: argmin_i S_i, the lowest number of those that tie, int64; -1 where losses are not
        finite. None where it is not known, as in files of earlier versions.
    """

    num_arms: int
    rounds: np.ndarray
    l_1: np.ndarray
    l_2: np.ndarray
    l_inf: np.ndarray
    s_inf: np.ndarray
    best: np.ndarray
    mean: np.ndarray
    smallest: np.ndarray = np.array(np.nan)
    best_arm: np.ndarray | None = None


def norms_from_row(row: Row, num_arms: int, rounds: np.ndarray, unit: float) -> Norms:
    """`Norms` from a `Row` of arrays [K, C]; ``unit`` is the size of 1 in true losses."""
    in_true_units = partial(_in_true_units, unit)
    l_2 = row.l_2.astype(np.float64)
    unit_of_l_2 = unit * unit_of_squares(row.l_inf, np).astype(np.float64)
    with np.errstate(over="ignore"):  # float64 may hold losses but not their squares
        l_2 *= unit_of_l_2
        l_2 *= unit_of_l_2
    return Norms(
        num_arms=num_arms,
        rounds=rounds,
        l_1=in_true_units(row.l_1, row.l_1_error),
        l_2=l_2,
        l_inf=in_true_units(row.l_inf),
        s_inf=in_true_units(row.s_inf),
        best=in_true_units(row.lowest, row.excess),
        mean=in_true_units(row.lowest, row.mean_excess),
        smallest=in_true_units(row.smallest),
        best_arm=np.where(np.isfinite(row.l_1), row.best_arm, -1).astype(np.int64),
    )


def best_switching_from_row(row: Row, unit: float) -> np.ndarray | None:
    """Return the total loss of the best sequence of arms with few switches, [K, C]; see `Result`.

    None if nobody asked for it.
    """
    if row.least_path is None:
        return None
    return _in_true_units(unit, row.least_path, row.path_excess)


def _in_true_units(unit: float, *words: np.ndarray) -> np.ndarray:
    """Return the sum of the words; in place, as there may be very many sequences."""
    total = words[0].astype(np.float64)
    for word in words[1:]:
        total += word
    total *= unit
    return total


def warn_if_not_finite(norms: Norms, losses: LossSequence, sequences: np.ndarray) -> None:
    """Warn if a loss is not finite, though it was when checked, or was generated unchecked.

    Args:
      norms: of some sequences [K, C].
      losses: that they are of.
      sequences: their numbers [K].
    """
    bad = ~np.isfinite(norms.l_1)
    if bad.any():
        k = int(np.argmax(bad.any(axis=1)))
        slot = int(np.argmax(bad[k]))
        first, last = int(norms.rounds[slot - 1]) + 1 if slot else 1, int(norms.rounds[slot])
        where = f"in rounds {first} to {last}" if first < last else f"in round {last}"
        if losses.table is not None:
            (rows,) = losses.table[sequences[[k]], slice(first - 1, last)]
            row = first + int(np.argmax(~np.isfinite(rows).all(axis=1)))
            where = f"in row {row}, which has changed since it was checked"
        warn_user(
            f"{losses.name}: sequence {sequences[k]} has a loss that is not finite, or too "
            f"large for its magnitude, {where}; results from there on are not numbers, those "
            "before are kept"
        )


def warn_if_no_regret(name: str, regret: np.ndarray) -> None:
    """Warn if a strategy broke down, on losses that are finite.

    Args:
      name: of the strategy.
      regret: of any shape, on such losses.
    """
    if not np.isfinite(regret).all():
        warn_user(
            f"strategy {name!r} has regret that is not finite, on losses that are: its "
            "parameters do not fit them; give it the scale of the losses"
        )
