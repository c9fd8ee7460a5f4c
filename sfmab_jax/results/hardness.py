"""How hard a loss sequence is: the quantities that regret bounds are stated in, streamed."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from sfmab_jax.checks import check_integer
from sfmab_jax.engine.loss_stream import LossStream
from sfmab_jax.losses import LossSequence, as_loss_sequence
from sfmab_jax.losses.sequence import MOST_ROUNDS

__all__ = ["Hardness", "hardness", "loss_chunks"]

# Losses in a chunk, and the number of largest losses kept for Hill's estimate.
_CHUNK_LOSSES = 2**20
_MOST_EXTREMES = 1000


class Hardness(NamedTuple):
    """Measures of K loss sequences over T rounds, each float64 [K].

    The norms of Theorem 1 of the paper first, then what other bounds depend on.

    Attributes:
      l_1: sum_t ||l_t||_1.
      l_2: sum_t ||l_t||_2^2.
      l_inf: max_t ||l_t||_inf.
      s_inf: max_i |sum_t l_t(i)|.
      small_loss: L* = min_i sum_t l_t(i).
      variance: Q = sum_t ||l_t - mean_s l_s||_2^2.
      path_length: sum_{t>=2} ||l_t - l_{t-1}||_inf.
      effective_range: max_t (max_i l_t(i) - min_i l_t(i)).
      sparsity: max_t, the number of arms with l_t(i) != 0.
      tail_index: Hill's estimate, P(|l| > x) falls like x^-index.
    """

    l_1: np.ndarray
    l_2: np.ndarray
    l_inf: np.ndarray
    s_inf: np.ndarray
    small_loss: np.ndarray
    variance: np.ndarray
    path_length: np.ndarray
    effective_range: np.ndarray
    sparsity: np.ndarray
    tail_index: np.ndarray


def hardness(
    losses: LossSequence | Any,
    *,
    num_rounds: int | None = None,
    num_sequences: int | None = None,
    seed: int = 0,
) -> Hardness:
    """Measure the sequences that `simulate` plays on with the same ``seed``.

    Memory does not grow with the rounds. Hill's estimate is 1 / mean(log(X_j / X_k)), j < k, of
    the k = min(1000, sqrt(n T)) largest |l|; infinite where they are all equal, nan where fewer
    are not zero.

    Args:
      losses: a loss sequence or an array, as for `simulate`.
      num_rounds: T; by default that of the sequence, or 10,000.
      num_sequences: K; by default that of the sequence, or 1.
      seed: of the losses.

    >>> import sfmab_jax as sf
    >>> measured = hardness(sf.losses.cyclic(num_arms=4), num_rounds=8)
    >>> print(measured.l_1, measured.small_loss, measured.sparsity)
    [24.] [6.] [3.]
    """
    sequence = as_loss_sequence(losses)
    rounds = num_rounds if num_rounds is not None else sequence.num_rounds or 10_000
    rounds = check_integer("num_rounds", rounds, 1, sequence.num_rounds or MOST_ROUNDS)
    number = num_sequences if num_sequences is not None else sequence.num_sequences or 1
    number = check_integer("num_sequences", number, 1, sequence.num_sequences or 2**31 - 1)
    seed = check_integer("seed", seed, 0, 2**32 - 1)
    measured = [_measure_one(sequence, rounds, k, seed) for k in range(number)]
    return Hardness(*(np.array(values, np.float64) for values in zip(*measured, strict=True)))


def loss_chunks(
    sequence: LossSequence, num_rounds: int, index: int = 0, seed: int = 0
) -> Iterator[np.ndarray]:
    """Losses of one member of a family, some rounds at a time: float64 [rounds, n]."""
    rows = int(np.clip(_CHUNK_LOSSES // sequence.num_arms // 16 * 16, 16, 4096))
    stream = None
    if sequence.table is None:
        stream = LossStream(
            sequence,
            np.array([index]),
            seed=seed,
            unit=1.0,
            dtype=np.dtype(np.float32),
            chunk_rounds=rows,
        )
    for first in range(0, num_rounds, rows):
        length = min(rows, num_rounds - first)
        if stream is None:
            assert sequence.table is not None
            yield np.asarray(sequence.table[index, first : first + length], np.float64)
        else:
            yield np.asarray(stream.chunk(first + 1))[:length, :, 0].astype(np.float64)


def _measure_one(sequence: LossSequence, num_rounds: int, index: int, seed: int) -> tuple:
    """The fields of `Hardness` for one sequence."""
    n = sequence.num_arms
    num_extremes = min(_MOST_EXTREMES, max(2, int(np.sqrt(n * num_rounds))))
    l_1 = l_2 = l_inf = path = widest = densest = 0.0
    totals, mean, squares, count = np.zeros(n), np.zeros(n), np.zeros(n), 0
    extremes, last_row = np.zeros(0), None
    for rows in loss_chunks(sequence, num_rounds, index, seed):
        size = np.abs(rows)
        l_1 += size.sum()
        l_2 += (size**2).sum()
        l_inf = max(l_inf, size.max())
        totals += rows.sum(axis=0)
        widest = max(widest, np.ptp(rows, axis=1).max())
        densest = max(densest, np.count_nonzero(rows, axis=1).max())
        joined = rows if last_row is None else np.concatenate([last_row, rows])
        path += np.abs(np.diff(joined, axis=0)).max(axis=1).sum()
        last_row = rows[-1:]
        # Chan, Golub and LeVeque's update of the mean and the squares around it.
        chunk_mean = rows.mean(axis=0)
        shift, total = chunk_mean - mean, count + len(rows)
        squares += ((rows - chunk_mean) ** 2).sum(axis=0) + shift**2 * count * len(rows) / total
        mean += shift * len(rows) / total
        count = total
        extremes = np.concatenate([extremes, size.ravel()])
        if len(extremes) > num_extremes:
            extremes = np.partition(extremes, -num_extremes)[-num_extremes:]
    s_inf, small_loss = np.abs(totals).max(), totals.min()
    spread = (squares.sum(), path, widest, densest, _hill(extremes))
    return (l_1, l_2, l_inf, s_inf, small_loss, *spread)


def _hill(extremes: np.ndarray) -> float:
    """Hill's estimate of the tail index from the largest losses."""
    lowest = extremes.min()
    if lowest <= 0 or len(extremes) < 2:
        return float("nan")
    spread = np.log(extremes / lowest).sum() / (len(extremes) - 1)
    return float("inf") if spread == 0 else float(1 / spread)
