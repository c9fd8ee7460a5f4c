"""The built-in adversaries under a constraint: where searches start, and what they have to beat."""

from typing import NamedTuple

import numpy as np

from sfmab_jax.base import Bandit, told_rounds
from sfmab_jax.hardness import loss_chunks
from sfmab_jax.losses import LOSSES
from sfmab_jax.simulate import simulate
from sfmab_jax.worst_case.constraints import Constraint

__all__ = ["Known", "known_tables", "rank", "starts"]

# Of every random family, so that a lucky draw is not missed.
_MEMBERS = 8
# Seeds that rank the built-in adversaries; their score comes from others.
_RANKING_SEEDS = 256
_MOST_OF_A_FAMILY = 2


class Known(NamedTuple):
    """Built-in adversaries; K tables."""

    families: tuple[str, ...]  # [K]
    tables: np.ndarray  # [K, T, n]


def known_tables(num_arms: int, num_rounds: int, constraint: Constraint, seed: int) -> Known:
    """Members of every family of `sfmab_jax.losses`, fitted into the constraint."""
    families, tables = [], []
    for name, make in LOSSES.items():
        sequence = make(num_arms=num_arms, **told_rounds(make, num_rounds))
        drawn: list[np.ndarray] = []
        for member in range(_MEMBERS):
            rows = np.concatenate(list(loss_chunks(sequence, num_rounds, member, seed)))
            lowest, width = rows.min(), np.ptp(rows)
            if width > 0 and not any(np.array_equal(rows, other) for other in drawn):
                drawn.append(rows)
                fitted = constraint.fit((rows - lowest) / width)
                tables += fitted
                families += [name] * len(fitted)
    return Known(tuple(families), np.array(tables))


def rank(bandit: Bandit, known: Known, rival: Bandit | None, seed: int) -> Known:
    """The same, those with the highest regret first (less the rival's, if there is one)."""
    bandits = {"strategy": bandit} if rival is None else {"strategy": bandit, "rival": rival}
    results = simulate(
        bandits, known.tables, num_seeds=_RANKING_SEEDS, seed=seed, checkpoints=1, progress=False
    )
    worth = results["strategy"].mean()[:, -1]
    if rival is not None:
        worth = worth - results["rival"].mean()[:, -1]
    order = np.argsort(-worth, kind="stable")
    return Known(tuple(known.families[k] for k in order), known.tables[order])


def starts(ranked: Known, number: int, size: float, seed: int) -> np.ndarray:
    """Where to start from, [number, T, n]: the best, no more than two of a family while it lasts.

    Every other start is moved a little at random, by a tenth of the losses' size, since a table
    with equal columns has a gradient that keeps them equal.
    """
    chosen, left = [], []
    for k, family in enumerate(ranked.families):
        taken = sum(ranked.families[j] == family for j in chosen)
        (chosen if taken < _MOST_OF_A_FAMILY else left).append(k)
    places = np.resize((chosen + left)[:number], number)
    noise = np.random.default_rng(seed).normal(size=(number, *ranked.tables.shape[1:]))
    noise[::2] = 0
    return ranked.tables[places] + 0.1 * size * noise
