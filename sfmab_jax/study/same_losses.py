"""A check that blocks with the same losses were played on the same ones, by their norms.

Other random-number settings of JAX draw other losses from the same seed. Blocks of both kinds in
one cell would be neither one sample nor the other, and cells on different losses cannot be paired.
"""

import json
from pathlib import Path
from typing import Any

import numpy as np

from sfmab_jax.results.norms import Norms
from sfmab_jax.results.result import Result
from sfmab_jax.study.blocks import Block

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
        if result.sees != "nothing":  # every strategy has other losses
            return
        own = _compared(block, result.norms)
        first, norms = self._known.setdefault(_losses_of(block), (block, own))
        difference = _describe_difference(norms, own)
        if difference is None:
            return
        cells = dict.fromkeys(self._folder / "cells" / b.cell.identity for b in (first, block))
        raise ValueError(
            f"{first.cell.label}, seeds from {first.first_seed}, and {block.cell.label}, seeds "
            f"from {block.first_seed}, have different losses ({difference}), as from other "
            f"random-number settings of JAX; remove {' and '.join(map(str, cells))}, unset "
            "JAX_THREEFRY_PARTITIONABLE and JAX_DEFAULT_PRNG_IMPL, and run the study again"
        )


def _losses_of(block: Block) -> str:
    """Return all that the losses of a block and their norms depend on, as a text.

    Where each seed has its own losses, blocks share them with those of other strategies alone.
    """
    cell = block.cell
    family = (cell.family, cell.loss_parameters, cell.num_arms)
    games = (cell.num_rounds, cell.num_sequences, cell.seed, cell.checkpoints, cell.dtype)
    first = block.games.first_sequence
    return json.dumps((family, games, first), sort_keys=True, default=repr)


def _compared(block: Block, norms: Norms) -> Norms:
    """Return the norms that are compared: of all sequences, or of the first of many of seeds."""
    if block.cell.num_sequences is not None:
        return norms
    first: dict[str, Any] = {
        name: value[:1].copy() for name, value in norms._asdict().items() if np.ndim(value) == 2
    }
    return norms._replace(**first)


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
