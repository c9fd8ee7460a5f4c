"""Several sums, minima and maxima over the arms in one pass over them.

XLA on CPU makes every reduction a loop of its own, which reads the arms anew and works out again
what it shares with the others. A reduction of several operands is one loop: three sums in one take
half the time of three.
"""

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array, lax

__all__ = ["Reduction", "few_rows", "in_any_lane", "made_together", "reduced_together"]

_COMBINE = {"reduce_sum": lax.add, "reduce_max": lax.max, "reduce_min": lax.min}
# The compiler writes out the loop over few arms, and makes vectors of it only if it does.
_MOST_ARMS = 16
# More operands than these make the loop too large for that.
_MOST_TOGETHER = 3


class Reduction(NamedTuple):
    """A reduction of vectors in lanes that is due."""

    eqn: Any  # over the first axis
    operand: Array  # [n, W]
    result: int  # the number of its result
    place: int  # among the operations

    @property
    def joins(self) -> bool:
        """Whether it can be made together with others."""
        floats = jnp.issubdtype(self.operand.dtype, jnp.floating)
        return self.operand.ndim == 2 and floats and self.eqn.primitive.name in _COMBINE


def reduced_together(reductions: Sequence[Reduction]) -> Iterator[tuple[int, Array]]:
    """(number, result [W]) of each."""
    alike: dict[Any, list[Reduction]] = {}
    for reduction in reductions:
        kind = (reduction.operand.shape, reduction.operand.dtype)
        alike.setdefault(kind, []).append(reduction)
    for group in alike.values():
        for few in _neighbours(group):
            names = tuple(one.eqn.primitive.name for one in few)
            results = _reduce(names, *(one.operand for one in few))
            yield from zip((one.result for one in few), results, strict=True)


def made_together(*values: Array) -> list[Array]:
    """Values of one shape as they are, made in one loop and kept.

    XLA on CPU works out cheap operations again for every use, but no reduction; here it is the
    bits of a value or those of a zero, which costs nothing.
    """
    kept: list[Array] = []
    for first in range(0, len(values), _MOST_TOGETHER):
        few = values[first : first + _MOST_TOGETHER]
        kept += _kept(*few)
    return kept


def in_any_lane(truth: Any) -> Any:
    """Whether it is true in one lane or more; halved first, as XLA goes through a vector singly."""
    counts = truth.astype(jnp.int32)
    while counts.shape[0] > 16 and counts.shape[0] % 2 == 0:
        half = counts.shape[0] // 2
        counts = counts[:half] | counts[half:]
    return jnp.max(counts) > 0


@jax.custom_jvp
def _kept(*values: Array) -> list[Array]:
    word = {4: jnp.uint32, 8: jnp.uint64}[values[0].dtype.itemsize]
    bits = [lax.bitcast_convert_type(x, word) for x in values]
    first = lax.broadcasted_iota(jnp.int32, (2, *values[0].shape), 0) == 0
    rows = [jnp.where(first, x[None], jnp.zeros_like(x)[None]) for x in bits]

    def combine(left, right):
        return tuple(lax.bitwise_or(a, b) for a, b in zip(left, right, strict=True))

    made = lax.reduce(tuple(rows), (word(0),) * len(rows), combine, (0,))
    return [lax.bitcast_convert_type(x, old.dtype) for x, old in zip(made, values, strict=True)]


@_kept.defjvp
def _kept_jvp(primals, tangents):
    return _kept(*primals), list(tangents)


def _neighbours(group: list[Reduction]) -> list[list[Reduction]]:
    """As few parts as possible, none too large, cut where the operations are furthest apart."""
    # Of the first 0, 1, 2, ...: how many parts, less the gaps between them, and where they begin.
    best: list[tuple[int, int, list[int]]] = [(0, 0, [])]
    for end in range(1, len(group) + 1):
        found = []
        for start in range(max(0, end - _MOST_TOGETHER), end):
            parts, gaps, starts = best[start]
            gap = group[start].place - group[start - 1].place if start else 0
            found.append((parts + 1, gaps - gap, [*starts, start]))
        best.append(min(found))
    return [group[start:end] for start, end in pairwise([*best[-1][2], len(group)])]


def _reduce(names: tuple[str, ...], *operands: Array) -> Sequence[Array]:
    """Over the first axis, [n, W] -> [W] each.

    Many arms are taken as some rows of many, [n] = [rows, n / rows], and the rows reduced to one:
    the loop is long and what it writes is short. What is left over is added in the end.
    """
    num_arms, *rest = operands[0].shape
    if num_arms <= _MOST_ARMS:
        reduce = _one_by_one if len(operands) == 1 else _in_one_pass
        return reduce(names, *operands)
    rows = few_rows(num_arms)
    length = num_arms // rows
    cut = [lax.slice_in_dim(x, 0, rows * length).reshape(rows, length, *rest) for x in operands]
    results = _reduce(names, *_reduce(names, *cut))
    if rows * length == num_arms:
        return results
    ends = _reduce(names, *(lax.slice_in_dim(x, rows * length, num_arms) for x in operands))
    return [_COMBINE[name](x, end) for name, x, end in zip(names, results, ends, strict=True)]


def few_rows(num_arms: int) -> int:
    """From 8 to 16, so that nothing is left over if that can be."""
    divisors = [rows for rows in range(8, _MOST_ARMS + 1) if num_arms % rows == 0]
    return divisors[0] if divisors else 8


def _one_by_one(names: tuple[str, ...], *operands: Array) -> list[Array]:
    functions: dict[str, Any] = {
        "reduce_sum": jnp.sum,
        "reduce_max": jnp.max,
        "reduce_min": jnp.min,
    }
    return [functions[name](x, axis=0) for name, x in zip(names, operands, strict=True)]


@partial(jax.custom_jvp, nondiff_argnums=(0,))
def _in_one_pass(names: tuple[str, ...], *operands: Array) -> Sequence[Array]:
    dtype = operands[0].dtype
    least = {"reduce_sum": 0.0, "reduce_max": -jnp.inf, "reduce_min": jnp.inf}

    def combine(left, right):
        return tuple(_COMBINE[name](a, b) for name, a, b in zip(names, left, right, strict=True))

    return lax.reduce(operands, tuple(dtype.type(least[name]) for name in names), combine, (0,))


@_in_one_pass.defjvp
def _in_one_pass_jvp(names, primals, tangents):
    primal, tangent = jax.jvp(lambda *xs: _one_by_one(names, *xs), primals, tangents)
    return tuple(primal), tuple(tangent)
