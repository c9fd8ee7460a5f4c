"""A check that blocks with the same losses were played on the same ones, by their norms.

Other random-number settings of JAX draw other losses from the same seed. Blocks of both kinds in
one cell would be neither one sample nor the other, and cells on different losses cannot be paired.
"""

import json
from pathlib import Path

import numpy as np

from sfmab_jax.results.norms import Norms
from sfmab_jax.results.result import Result
from sfmab_jax.study.blocks import Block
from sfmab_jax.study.cells import Cell

__all__ = ["SameLosses"]

# Another kind of processor rounds otherwise; other losses are further away, at least early on.
_ROUNDING = 1e-5


class SameLosses:
    """The norms of the losses that a study's blocks were played on, each kept from its first block.

    Args:
      folder: the folder of the study, for messages.
    """

    def __init__(self, folder: Path):
        self._folder = folder
        self._known: dict[str, tuple[Block, Norms]] = {}

    def check(self, block: Block, result: Result) -> None:
        """Refuse a block that was not played on the losses of those before it."""
        first, norms = self._known.setdefault(_losses_of(block.cell), (block, result.norms))
        difference = _describe_difference(norms, result.norms)
        if difference is None:
            return
        cells = dict.fromkeys(self._folder / "cells" / b.cell.identity for b in (first, block))
        raise ValueError(
            f"{first.cell.label}, seeds from {first.first_seed}, and {block.cell.label}, seeds "
            f"from {block.first_seed}, have different losses ({difference}), as from other "
            f"random-number settings of JAX; remove {' and '.join(map(str, cells))}, unset "
            "JAX_THREEFRY_PARTITIONABLE and JAX_DEFAULT_PRNG_IMPL, and run the study again"
        )


def _losses_of(cell: Cell) -> str:
    """Return all that the losses of a cell and their norms depend on, as a text."""
    family = (cell.family, cell.loss_parameters, cell.num_arms)
    games = (cell.num_rounds, cell.num_sequences, cell.seed, cell.checkpoints, cell.dtype)
    return json.dumps((family, games), sort_keys=True, default=repr)


def _describe_difference(norms: Norms, others: Norms) -> str | None:
    """Return the first norm that differs by more than rounding, in words; None if none does."""
    for name in ("l_1", "l_2", "l_inf", "s_inf", "best", "mean"):
        one, other = getattr(norms, name), getattr(others, name)
        if one.shape != other.shape:
            return f"{name} has shape {one.shape} and {other.shape}"
        # Sums that may cancel are as accurate as their terms.
        size = norms.l_1 if name in ("s_inf", "best", "mean") else np.abs(one)
        with np.errstate(invalid="ignore"):
            same = (one == other) | (np.abs(one - other) <= _ROUNDING * size)
        same |= np.isnan(one) & np.isnan(other)
        if not same.all():
            place = tuple(np.argwhere(~same)[-1])
            return f"{name} is {one[place]:.9g} and {other[place]:.9g}"
    return None
