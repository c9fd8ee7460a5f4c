"""Measure loss sequences, chunk after chunk: their norms and their best arm at the checkpoints."""

import threading
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from sfmab_jax.engine.lanes import compile_loop, over_lanes
from sfmab_jax.engine.layout import Run
from sfmab_jax.engine.resume import Bookmark, Bookmarks
from sfmab_jax.engine.rounds import checkpoint_rows
from sfmab_jax.numerics.arms import arm_sum
from sfmab_jax.numerics.double_word import Sum, add

__all__ = [
    "Measure",
    "Row",
    "begin_measure",
    "measure_chunk",
    "measure_losses",
    "rescale_squares",
    "unit_of_squares",
]


class Row(NamedTuple):
    """What is kept of a sequence at a checkpoint, in the order of the columns of `Measure.rows`."""

    lowest: Any  # the leading word of min_i S_i
    excess: Any  # min_i S_i less that
    mean_excess: Any  # mean_i S_i less that
    s_inf: Any
    l_1: Any
    l_1_error: Any
    l_2: Any
    l_inf: Any


class Measure(NamedTuple):
    """Running measures of some sequences; all leaves [..., sequences]."""

    totals: Sum  # S_i [n]
    l_1: Sum
    l_2: Sum  # in units of the square of `unit_of_squares`
    l_inf: Array
    rows: Array  # at the checkpoints [C + 1, 8]


def begin_measure(*, num_arms: int, num_sequences: int, num_checkpoints: int, dtype) -> Measure:
    """Return the measures before round 1, in host memory."""

    def zeros(*shape: int) -> Any:
        return np.zeros((*shape, num_sequences), dtype)

    return Measure(
        totals=Sum(zeros(num_arms), zeros(num_arms)),
        l_1=Sum(zeros(), zeros()),
        l_2=Sum(zeros(), zeros()),
        l_inf=zeros(),
        rows=zeros(num_checkpoints + 1, len(Row._fields)),
    )


def measure_chunk(
    losses: Array, measure: Measure, checkpoints: Array, first_round: Array
) -> Measure:
    """Measure a chunk of rounds, ``losses`` [rounds, n, sequences], from ``first_round`` on."""

    def measure_round(measure: Measure, now) -> tuple[Measure, None]:
        row, losses = now
        totals, l_1, l_2, l_inf, numbers = over_lanes(_measure_round)(*measure[:-1], losses)
        return Measure(totals, l_1, l_2, l_inf, measure.rows.at[row].set(numbers)), None

    rounds = first_round + jnp.arange(len(losses), dtype=jnp.int32)
    rows = checkpoint_rows(checkpoints, rounds)
    return lax.scan(measure_round, measure, (rows, losses))[0]


def unit_of_squares(l_inf: Any, numpy: Any) -> Any:
    """Return the power of two, [...], that losses are counted in to be squared.

    The squares of float32 losses above 1e19 or below 1e-19 leave its range. So losses above 2^40
    are counted in units of 2^80 before they are squared, and losses below 2^-40 in units of 2^-80.
    A power of two changes no digit.

    Args:
      l_inf: the size of the largest loss so far, [...].
      numpy: the module of l_inf, `numpy` or `jax.numpy`.
    """
    exponent = numpy.finfo(l_inf.dtype).maxexp * 5 // 16  # 40 in float32
    large, small = (l_inf.dtype.type(2.0**power) for power in (exponent, -exponent))
    one = numpy.ones_like(l_inf)
    return numpy.where(l_inf > large, large**2, numpy.where(l_inf < small, small**2, one))


def rescale_squares(squares: Sum, before: Array, after: Array) -> tuple[Sum, Array]:
    """Return a sum of squares in the unit that fits a new largest loss, and 1 over that unit.

    Args:
      squares: in units of the square of ``unit_of_squares(before)``.
      before, after: the sizes of the largest loss, without and with the present round.
    """
    per_unit = 1 / unit_of_squares(after, jnp)
    change = unit_of_squares(before, jnp) * per_unit
    # Twice, as the square of the change may underflow where the sum times it does not.
    return Sum(*(word * change * change for word in squares)), per_unit


def _measure_round(totals: Sum, l_1: Sum, l_2: Sum, l_inf: Array, loss: Array):
    """Measure one round of one sequence."""
    size = jnp.abs(loss)
    totals = add(totals, loss)
    l_1 = add(l_1, arm_sum(size))
    before, l_inf = l_inf, jnp.maximum(l_inf, jnp.max(size))
    l_2, per_unit = rescale_squares(l_2, before, l_inf)
    scaled = size * per_unit
    l_2 = add(l_2, arm_sum(scaled * scaled))
    lowest = jnp.min(totals.value)
    excess = jnp.min((totals.value - lowest) + totals.error)
    mean_excess = arm_sum((totals.value - lowest) + totals.error) / len(loss)
    s_inf = jnp.max(jnp.abs(totals.value))
    row = Row(lowest, excess, mean_excess, s_inf, l_1.value, l_1.error, l_2.value, l_inf)
    return totals, l_1, l_2, l_inf, jnp.stack(row)


@cache
def _compiled_measure(platform: str) -> Callable:
    return compile_loop(measure_chunk, platform, donate_argnames=("measure",))


def measure_losses(
    run: Run, stop: threading.Event, *, bookmarks: Bookmarks | None = None
) -> np.ndarray | None:
    """Return the rows [C, 8, K] of all sequences at the checkpoints; None if stopped.

    `results.norms.norms_from_rows` makes norms of them.
    """
    num_arms = run.losses.num_arms
    program_for = _compiled_measure(run.devices[0].platform)
    width = min(run.batch_width, 1 << (run.num_sequences - 1).bit_length())
    rows = []
    for start in range(0, run.num_sequences, width):
        stream = run.loss_stream(np.minimum(start + np.arange(width), run.num_sequences - 1))
        measure = begin_measure(
            num_arms=num_arms,
            num_sequences=width,
            num_checkpoints=len(run.checkpoints),
            dtype=run.dtype,
        )
        bookmark = Bookmark(bookmarks, f"norms_{start}_{width}", num_rounds=run.num_rounds)
        measure, next_round = bookmark.resume(measure, stream)
        for chunk in run.chunks(next_round):
            if stop.is_set():
                return None
            losses = stream.chunk(chunk.first_round)
            when = (jnp.int32(run.checkpoints), jnp.int32(chunk.first_round))
            arguments = (losses, measure, *when)
            measure = program_for(*arguments)(*arguments)
            jax.block_until_ready(measure)
            bookmark.keep(chunk.last_round, measure, stream)
        rows.append(np.asarray(measure.rows)[:-1])
    return np.concatenate(rows, axis=-1)[..., : run.num_sequences]
