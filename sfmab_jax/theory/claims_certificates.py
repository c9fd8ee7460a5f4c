"""Certificates along every path of simulated games, on every loss family, both options."""

from collections.abc import Iterator

import numpy as np

from sfmab_jax.theory.certificates import Row, certified_families
from sfmab_jax.theory.claim import Claim, Setting

__all__ = ["CLAIMS"]


def _rows(setting: Setting) -> Iterator[tuple]:
    rows = certified_families(
        num_rounds=500,
        num_seeds=128 * setting.effort,
        seed=setting.seed,
        dtype=setting.dtype,
    )
    for row in rows:
        yield (row,)


def _certified(row: Row) -> np.ndarray:
    """The least on any path, one number standing for all rounds and games; -1 if one is short."""
    return np.array([row.worst, -float(row.violations > 0)])


def _ordered(row: Row) -> np.ndarray:
    """Each rung against the next. The means share their games, so noise does not come between."""
    return row.rises


CLAIMS = (
    Claim(49, "along every path: 0 <= refined <= comparator <= epsilon <= (*)", "new, section 6",
          _rows, _certified),
    Claim(50, "regret <= certificates <= (*), tight <= corrected, in the mean", "new, section 6",
          _rows, _ordered),
)  # fmt: skip
