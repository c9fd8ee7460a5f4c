"""Measure loss sequences: their norms and what to compare with at the checkpoints."""

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from sfmab_jax.engine.lanes import OverGames, compile_loop, keep_shared, over_lanes
from sfmab_jax.engine.rows import checkpoint_rows, write_row
from sfmab_jax.engine.switching import add_to_paths, begin_paths, least_path
from sfmab_jax.numerics.arms import arm_sum, least_total
from sfmab_jax.numerics.double_word import Sum, add
from sfmab_jax.numerics.hints import keep

__all__ = [
    "Measure",
    "Row",
    "begin_measure",
    "compiled_measure",
    "measure_chunk",
    "measure_round",
    "rescale_squares",
    "unit_of_squares",
]


class Row(NamedTuple):
    """What is kept of a sequence at a checkpoint, in the order of the columns of `Measure.rows`.

    The last two are of the best sequence of arms with few switches, None if nobody asked for it.
    """

    lowest: Any  # the leading word of min_i S_i
    excess: Any  # min_i S_i less that
    mean_excess: Any  # mean_i S_i less that
    s_inf: Any
    l_1: Any
    l_1_error: Any
    l_2: Any
    l_inf: Any
    smallest: Any
    best_arm: Any  # a float, exact: there are at most 2^24 arms
    least_path: Any = None  # the leading word of min_i V(i, m), see `switching`
    path_excess: Any = None  # min_i V(i, m) less that


class _Sums(NamedTuple):
    """Of the rounds so far."""

    totals: Sum  # S_i [n]
    l_1: Sum
    l_2: Sum  # in units of the square of `unit_of_squares`
    l_inf: Array
    smallest: Array  # min_t min_i l_t(i)


class Measure(NamedTuple):
    """Running measures of some sequences; all leaves [..., sequences]."""

    sums: _Sums
    rows: Array  # at the checkpoints [C, 10], or [C, 12] with paths
    paths: Sum | tuple[()] = ()  # V [n, m + 1, sequences] of `switching`; () if not asked for


def begin_measure(
    *,
    num_arms: int,
    num_sequences: int,
    num_checkpoints: int,
    dtype,
    switches: int | None = None,
) -> Measure:
    """Return the measures before round 1, in host memory.

    Args:
      num_arms, num_sequences, num_checkpoints: n, K and C.
      dtype: of the losses.
      switches: m, of the sequences of arms to compare with, if any.
    """
    num_columns = len(Row._fields) - len(Row._field_defaults)
    paths: Sum | tuple[()] = ()
    if switches is not None:
        num_columns = len(Row._fields)
        sizes = {"num_arms": num_arms, "num_sequences": num_sequences}
        paths = begin_paths(**sizes, switches=switches, dtype=dtype)

    def zeros(*shape: int) -> Any:
        return np.zeros((*shape, num_sequences), dtype)

    return Measure(
        _Sums(
            totals=Sum(zeros(num_arms), zeros(num_arms)),
            l_1=Sum(zeros(), zeros()),
            l_2=Sum(zeros(), zeros()),
            l_inf=zeros(),
            smallest=np.full_like(zeros(), np.inf),
        ),
        rows=zeros(num_checkpoints, num_columns),
        paths=paths,
    )


def measure_round(
    mapped: OverGames, measure: Measure, losses: Array, row: Array, is_checkpoint: Array
) -> Measure:
    """Measure one round of all sequences.

    Args:
      mapped: the transform that maps one sequence over all.
      measure: of the rounds before.
      losses: l_t [n, sequences].
      row, is_checkpoint: where the round belongs, see `checkpoint_rows`.
    """
    sums, paths = mapped(_add_round)(measure.sums, losses), measure.paths
    if isinstance(paths, Sum):
        paths = mapped(add_to_paths)(paths, losses)
    kept = write_row(measure.rows, row, is_checkpoint, lambda: mapped(_row)(sums, paths))
    return Measure(sums, kept, paths)


def measure_chunk(
    losses: Array, measure: Measure, checkpoints: Array, first_round: Array
) -> Measure:
    """Measure a chunk of rounds, ``losses`` [rounds, n, sequences], from ``first_round`` on."""

    def step(measure: Measure, now) -> tuple[Measure, None]:
        losses, row, is_checkpoint = now
        # Read from the chunk once: a loop that looks them up for itself is not vectorised.
        losses = keep_shared(losses)
        return measure_round(over_lanes, measure, losses, row, is_checkpoint), None

    rounds = first_round + jnp.arange(len(losses), dtype=jnp.int32)
    rows = checkpoint_rows(checkpoints, rounds)
    return lax.scan(step, measure, (losses, *rows))[0]


@cache
def compiled_measure(platform: str) -> Callable:
    """Return a function of arguments that gives `measure_chunk` compiled for them."""
    return compile_loop(measure_chunk, platform, donate_argnames=("measure",))


def unit_of_squares(l_inf: Any, numpy: Any) -> Any:
    """Return the power of two, [...], that losses are counted in to be squared.

    The squares of float32 losses above 1e19 or below 1e-19 leave its range. So losses above 2^40
    are counted in units of 2^80 before they are squared, and losses below 2^-40 in units of 2^-80.
    A power of two changes no digit.

    Args:
      l_inf: the size of the largest loss so far, [...].
      numpy: the module of l_inf, `numpy` or `jax.numpy`.
    """
    small, large = _ends_of_unit_1(l_inf.dtype)
    one = numpy.ones_like(l_inf)
    return numpy.where(l_inf > large, large**2, numpy.where(l_inf < small, small**2, one))


def _ends_of_unit_1(dtype: np.dtype) -> tuple[Any, Any]:
    """Return the least and the largest l_inf at which `unit_of_squares` is 1."""
    exponent = int(np.finfo(dtype).maxexp) * 5 // 16  # 40 in float32
    return dtype.type(2.0**-exponent), dtype.type(2.0**exponent)


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


def _add_round(sums: _Sums, loss: Array) -> _Sums:
    """Add a round of one sequence, ``loss`` [n]."""
    size = jnp.abs(loss)
    l_inf = jnp.maximum(sums.l_inf, jnp.max(size))
    smallest = jnp.minimum(sums.smallest, jnp.min(loss))
    l_1, squares = arm_sum(size), arm_sum(size * size)

    def in_new_unit() -> tuple[Array, Sum]:
        l_2, per_unit = rescale_squares(sums.l_2, sums.l_inf, l_inf)
        scaled = jnp.abs(loss) * per_unit  # again, lest it be stored for this branch
        return arm_sum(scaled * scaled), l_2

    # All but always the unit of the squares is 1, before and now; and l_inf never falls.
    small, large = _ends_of_unit_1(l_inf.dtype)
    is_one = ~((sums.l_inf < small) | (l_inf > large))
    squares, l_2 = lax.cond(is_one, lambda: (squares, sums.l_2), in_new_unit)
    totals = Sum(*keep(*add(sums.totals, loss)))  # both words in one pass over the arms
    return _Sums(totals, add(sums.l_1, l_1), add(l_2, squares), l_inf, smallest)


def _row(sums: _Sums, paths: Sum | tuple[()] = ()) -> Array:
    """Return what is kept of one sequence at a checkpoint, [10], or [12] with paths."""
    totals, l_1, l_2, l_inf, smallest = sums
    lowest = jnp.min(totals.value)
    excess = jnp.min((totals.value - lowest) + totals.error)
    mean_excess = arm_sum((totals.value - lowest) + totals.error) / len(totals.value)
    s_inf = jnp.max(jnp.abs(totals.value))
    best_arm = least_total(totals).astype(lowest.dtype)
    sizes = (s_inf, l_1.value, l_1.error, l_2.value, l_inf, smallest)
    of_paths = least_path(paths) if isinstance(paths, Sum) else ()
    return jnp.stack([lowest, excess, mean_excess, *sizes, best_arm, *of_paths])
