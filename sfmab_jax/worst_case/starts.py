"""The built-in adversaries under a constraint: where searches start, and what they have to beat."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from sfmab_jax.base import Bandit, told_rounds
from sfmab_jax.feed import Feed
from sfmab_jax.losses import LOSSES, LossSequence
from sfmab_jax.simulate import simulate
from sfmab_jax.worst_case.constraints import Constraint
from sfmab_jax.worst_case.objectives import Objective, divisor

__all__ = ["Known", "known_tables", "members", "rank", "starts"]

# Of every random family, so that a lucky draw is not missed.
_MEMBERS = 8
_MOST_OF_A_FAMILY = 2


class Known(NamedTuple):
    """Tables with names, K of them."""

    families: tuple[str, ...]  # [K]
    tables: np.ndarray  # [K, T, n]


def members(sequence: LossSequence, num_rounds: int, number: int, seed: int) -> np.ndarray:
    """Members 0 ... number - 1 of a family as tables [number, T, n], as `simulate` plays them."""
    feed = Feed(
        sequence,
        np.arange(number),
        seed=seed,
        unit=1.0,
        dtype=np.dtype(np.float32),
        chunk_rounds=num_rounds,
    )
    return np.asarray(feed.chunk(1), np.float64)[:num_rounds].transpose(2, 0, 1)


def known_tables(
    num_arms: int,
    num_rounds: int,
    constraint: Constraint,
    seed: int,
    wanted: Sequence[str] | None = None,
) -> Known:
    """Members of the families of `sfmab_jax.losses`, all or some, fitted into the constraint."""
    families: list[str] = []
    tables: list[np.ndarray] = []
    for name in LOSSES if wanted is None else wanted:
        if name not in LOSSES:
            raise ValueError(f"rivals have {name!r}; choose from {', '.join(LOSSES)}")
        make: Callable[..., LossSequence] = LOSSES[name]
        sequence = make(num_arms=num_arms, **told_rounds(make, num_rounds))
        drawn = members(sequence, num_rounds, _MEMBERS, seed)
        for rows in np.unique(drawn, axis=0):  # families without chance have one member
            if np.ptp(rows) > 0:
                fitted = constraint.fit((rows - rows.min()) / np.ptp(rows))
                tables += fitted
                families += [name] * len(fitted)
    if not tables:
        raise ValueError(f"rivals are {wanted!r}; none of them has losses that differ")
    return Known(tuple(families), np.array(tables))


def rank(
    bandit: Bandit, known: Known, objective: Objective, num_seeds: int, seed: int
) -> tuple[Known, np.ndarray]:
    """The same with the highest objective first, and the objectives [K], from these games."""
    named = {"strategy": bandit}
    if objective.rival is not None:
        named["rival"] = objective.rival
    results: Any = simulate(
        named, known.tables, num_seeds=num_seeds, seed=seed, checkpoints=1, progress=False
    )
    values = results["strategy"].mean()[:, -1]
    if objective.rival is not None:
        values = values - results["rival"].mean()[:, -1]
    values = values / np.array([divisor(objective, table) for table in known.tables])
    order = np.argsort(-values, kind="stable")
    return Known(tuple(known.families[k] for k in order), known.tables[order]), values[order]


def starts(ranked: Known, number: int, size: float, seed: int) -> np.ndarray:
    """Where to start from, [number, T, n]: the best, no more than two of a family while it lasts.

    Every other start is moved a little at random, by a tenth of the losses' size, since a table
    with equal columns has a gradient that keeps them equal.
    """
    chosen: list[int] = []
    left: list[int] = []
    for k, family in enumerate(ranked.families):
        taken = sum(ranked.families[j] == family for j in chosen)
        (chosen if taken < _MOST_OF_A_FAMILY else left).append(k)
    places = np.resize((chosen + left)[:number], number)
    noise = np.random.default_rng(seed).normal(size=(number, *ranked.tables.shape[1:]))
    noise[::2] = 0
    return ranked.tables[places] + 0.1 * size * noise
