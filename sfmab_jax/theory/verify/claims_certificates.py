"""Claims about certificates: every path of simulated games, every loss family, both options."""

from collections.abc import Iterator

import numpy as np

from sfmab_jax.theory.certificates import Row, certified_families
from sfmab_jax.theory.verify.claim import Claim, Setting

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
    """The least slack of all rounds and games, and -1 if one of them falls short."""
    return np.array([row.worst, -float(row.violations > 0)])


def _ordered(row: Row) -> np.ndarray:
    """Each rung against the next. The means share their games, so noise cannot reorder them."""
    return row.rises


CLAIMS = (
    Claim(49, "along every path: 0 <= refined <= comparator <= epsilon <= (*)", "new, section 6",
          _rows, _certified),
    Claim(50, "regret <= certificates <= (*), tight <= corrected, in the mean", "new, section 6",
          _rows, _ordered),
)  # fmt: skip
