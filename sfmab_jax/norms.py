"""What a loss sequence amounts to at the checkpoints: its norms and its best arm."""

import warnings
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from sfmab_jax.floating import Sum, add, arm_sum, start_sum
from sfmab_jax.lanes import over_lanes
from sfmab_jax.losses import LossSequence
from sfmab_jax.rounds import checkpoint_slots

__all__ = [
    "Measure",
    "Norms",
    "begin_measure",
    "measure_chunk",
    "norms_from_rows",
    "warn_of_what_is_not_finite",
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
    """

    num_arms: int
    rounds: np.ndarray
    l_1: np.ndarray
    l_2: np.ndarray
    l_inf: np.ndarray
    s_inf: np.ndarray
    best: np.ndarray
    mean: np.ndarray


class Measure(NamedTuple):
    """Running measures of a block of sequences; all leaves [..., sequences]."""

    totals: Sum  # S_i [n]
    l_1: Sum
    l_2: Sum
    l_inf: Array
    rows: Array  # at the checkpoints [C + 1, 8]


def begin_measure(*, num_arms: int, num_sequences: int, num_checkpoints: int, dtype) -> Measure:
    """The measures before round 1."""
    zero = start_sum(jnp.zeros(num_sequences, dtype))
    return Measure(
        totals=start_sum(jnp.zeros((num_arms, num_sequences), dtype)),
        l_1=zero,
        l_2=zero,
        l_inf=zero.value,
        rows=jnp.zeros((num_checkpoints + 1, 8, num_sequences), dtype),
    )


def measure_chunk(
    losses: Array, measure: Measure, checkpoints: Array, first_round: Array
) -> Measure:
    """Measures a chunk of rounds, ``losses`` [rounds, n, sequences], from ``first_round`` on."""

    def measure_round(measure: Measure, now) -> tuple[Measure, None]:
        slot, losses = now
        totals, l_1, l_2, l_inf, row = over_lanes(_measure_round)(*measure[:-1], losses)
        return Measure(totals, l_1, l_2, l_inf, measure.rows.at[slot].set(row)), None

    rounds = first_round + jnp.arange(len(losses), dtype=jnp.int32)
    slots = checkpoint_slots(checkpoints, rounds)
    return lax.scan(measure_round, measure, (slots, losses))[0]


def _measure_round(totals: Sum, l_1: Sum, l_2: Sum, l_inf: Array, loss: Array):
    """One round of one sequence."""
    size = jnp.abs(loss)
    totals = add(totals, loss)
    l_1 = add(l_1, arm_sum(size))
    l_2 = add(l_2, arm_sum(size * size))
    l_inf = jnp.maximum(l_inf, jnp.max(size))
    lowest = jnp.min(totals.value)
    excess = jnp.min((totals.value - lowest) + totals.error)
    above_lowest = arm_sum((totals.value - lowest) + totals.error) / len(loss)
    s_inf = jnp.max(jnp.abs(totals.value))
    row = jnp.stack([lowest, excess, above_lowest, s_inf, l_1.value, l_1.error, l_2.value, l_inf])
    return totals, l_1, l_2, l_inf, row


def norms_from_rows(rows: np.ndarray, num_arms: int, rounds: np.ndarray, unit: float) -> Norms:
    """`Norms` from the rows [C, 8, K] of `Measure`; ``unit`` is the size of 1 in true losses."""
    lowest, excess, above, s_inf, l_1, l_1_error, l_2, l_inf = np.moveaxis(
        rows.astype(np.float64), 1, 0
    ).transpose(0, 2, 1)
    return Norms(
        num_arms=num_arms,
        rounds=rounds,
        l_1=(l_1 + l_1_error) * unit,
        l_2=l_2 * unit**2,
        l_inf=l_inf * unit,
        s_inf=s_inf * unit,
        best=(lowest + excess) * unit,
        mean=(lowest + above) * unit,
    )


def warn_of_what_is_not_finite(norms: Norms, losses: LossSequence) -> None:
    """A loss made, or changed in its file, since the checks is seen when it is met."""
    bad = ~np.isfinite(norms.l_1)
    if bad.any():
        k = int(np.argmax(bad.any(axis=1)))
        slot = int(np.argmax(bad[k]))
        first, last = int(norms.rounds[slot - 1]) + 1 if slot else 1, int(norms.rounds[slot])
        where = f"in rounds {first} to {last}"
        if losses.table is not None:
            (rows,) = losses.table[np.array([k]), slice(first - 1, last)]
            row = first + int(np.argmax(~np.isfinite(rows).all(axis=1)))
            where = f"in row {row}, which has changed since it was checked"
        warnings.warn(
            f"{losses.name}: sequence {k} has a loss that is not finite, or too large for its "
            f"magnitude, {where}; results from there on are not numbers, those before are kept",
            RuntimeWarning,
            stacklevel=4,
        )
