"""Built-in adversaries under a constraint: the start of a search, and its rivals."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from sfmab_jax.base import Bandit
from sfmab_jax.checks import horizon_argument
from sfmab_jax.engine.loss_stream import LossStream
from sfmab_jax.losses import LOSSES, LossSequence
from sfmab_jax.simulate import simulate
from sfmab_jax.worst_case.constraints import Constraint
from sfmab_jax.worst_case.objectives import Objective, divisor

__all__ = ["NamedTables", "known_tables", "members", "rank", "start_tables"]

# Members of every random family, so that a lucky draw is not missed.
_MEMBERS = 8
_MOST_STARTS_OF_A_FAMILY = 2


class NamedTables(NamedTuple):
    """K loss tables with the names of their families."""

    families: tuple[str, ...]  # [K]
    tables: np.ndarray  # [K, T, n]


def members(sequence: LossSequence, num_rounds: int, number: int, seed: int) -> np.ndarray:
    """Return members 0 ... number - 1 of a family [number, T, n], as `simulate` plays them."""
    stream = LossStream(
        sequence,
        np.arange(number),
        seed=seed,
        unit=1.0,
        dtype=np.dtype(np.float32),
        chunk_rounds=num_rounds,
    )
    return np.asarray(stream.chunk(1), np.float64)[:num_rounds].transpose(2, 0, 1)


def known_tables(
    num_arms: int,
    num_rounds: int,
    constraint: Constraint,
    seed: int,
    names: Sequence[str] | None = None,
) -> NamedTables:
    """Fit members of the families of `sfmab_jax.losses`, all or some, into the constraint."""
    families: list[str] = []
    tables: list[np.ndarray] = []
    for name in LOSSES if names is None else names:
        if name not in LOSSES:
            raise ValueError(f"rivals have {name!r}; choose from {', '.join(LOSSES)}")
        make: Callable[..., LossSequence] = LOSSES[name]
        sequence = make(num_arms=num_arms, **horizon_argument(make, num_rounds))
        every = members(sequence, num_rounds, _MEMBERS, seed)
        for rows in np.unique(every, axis=0):  # families without chance have one member
            if np.ptp(rows) > 0:
                fitted = constraint.fit((rows - rows.min()) / np.ptp(rows))
                tables += fitted
                families += [name] * len(fitted)
    if not tables:
        raise ValueError(f"rivals are {names!r}; none of them has losses that differ")
    return NamedTables(tuple(families), np.array(tables))


def rank(
    bandit: Bandit, known: NamedTables, objective: Objective, num_seeds: int, seed: int
) -> tuple[NamedTables, np.ndarray]:
    """Sort tables by objective, highest first; return them and their objectives [K]."""
    bandits = {"strategy": bandit}
    if objective.rival is not None:
        bandits["rival"] = objective.rival
    results: Any = simulate(
        bandits, known.tables, num_seeds=num_seeds, seed=seed, checkpoints=1, progress=False
    )
    values = results["strategy"].mean(over="sequence")[:, -1]
    if objective.rival is not None:
        values = values - results["rival"].mean(over="sequence")[:, -1]
    values = values / np.array([divisor(objective, table) for table in known.tables])
    order = np.argsort(-values, kind="stable")
    return NamedTables(tuple(known.families[k] for k in order), known.tables[order]), values[order]


def start_tables(ranked: NamedTables, number: int, size: float, seed: int) -> np.ndarray:
    """Choose the tables to start from, [number, T, n]: the hardest, at most two of a family.

    If these are too few, the rest follow. Every other start is moved at random by a tenth of the
    losses' size, since a table with equal columns has a gradient that keeps them equal.
    """
    first: list[int] = []
    rest: list[int] = []
    for k, family in enumerate(ranked.families):
        count = sum(ranked.families[j] == family for j in first)
        (first if count < _MOST_STARTS_OF_A_FAMILY else rest).append(k)
    places = np.resize((first + rest)[:number], number)
    noise = np.random.default_rng(seed).normal(size=(number, *ranked.tables.shape[1:]))
    noise[::2] = 0
    return ranked.tables[places] + 0.1 * size * noise
