"""Several sums, minima and maxima over the arms in one pass over them.

XLA on CPU makes every reduction a loop of its own, which reads the arms anew and works out again
what it shares with the others. A reduction of several operands is one loop: three sums in one take
half the time of three.

Values are kept along the same lines: `numerics.hints.keep` becomes `keep_values`, which hands those
of one shape and size to `keep_alike`, and that at most three at a time to `_keep_few`, one loop.
"""

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array, lax

from sfmab_jax.engine.lanes.jaxpr import Laned
from sfmab_jax.numerics.arms import block_factor

__all__ = ["Reduction", "in_any_lane", "keep_shared", "keep_values", "reduce_together"]

_COMBINE = {"reduce_sum": lax.add, "reduce_max": lax.max, "reduce_min": lax.min}
# XLA unrolls the loop over at most this many arms, and vectorises it over games only then.
_MOST_ARMS = 16
# More operands than these make the loop too large for that.
_MOST_TOGETHER = 3


class Reduction(NamedTuple):
    """A reduction that is due."""

    eqn: Any
    operands: Sequence[Laned]
    result: int  # the number of its result
    place: int  # among the operations

    @property
    def operand(self) -> Array:
        """[n, W]."""
        return self.operands[0].value

    @property
    def joins(self) -> bool:
        """Whether it reduces float vectors in lanes over their arms, as `_reduce` does."""
        if self.eqn.primitive.name not in _COMBINE or not self.operands[0].in_lanes:
            return False
        params, kind = self.eqn.params, (self.operand.ndim, self.operand.dtype.kind)
        over_arms = params["axes"] == (0,) and params.get("out_sharding") is None
        return over_arms and kind == (2, "f") and self.operand.shape[0] > 0


def reduce_together(reductions: Sequence[Reduction]) -> Iterator[tuple[int, Array]]:
    """Yield the number and the result [W] of each."""
    by_kind: dict[Any, list[Reduction]] = {}
    for reduction in reductions:
        kind = (reduction.operand.shape, reduction.operand.dtype)
        by_kind.setdefault(kind, []).append(reduction)
    for alike in by_kind.values():
        for part in _neighbours(alike):
            names = tuple(one.eqn.primitive.name for one in part)
            results = _reduce(names, *(one.operand for one in part))
            yield from zip((one.result for one in part), results, strict=True)


def keep_alike(*values: Array) -> list[Array]:
    """Return values of one shape and size, computed in one loop and stored.

    XLA on CPU repeats cheap operations for every use of their result, but never a reduction. So the
    bits of each value are OR-ed with zeros along a new axis of length 2, which changes none.
    """
    kept: list[Array] = []
    for first in range(0, len(values), _MOST_TOGETHER):
        kept += _keep_few(*values[first : first + _MOST_TOGETHER])
    return kept


def keep_shared(value: Array) -> Array:
    """Return a value that all lanes share, stored if it is of numbers that can be."""
    is_word = value.dtype.kind in "fiu" and value.dtype.itemsize in (4, 8)
    return keep_alike(value)[0] if is_word else value


def keep_values(operands: Sequence[Laned]) -> list[Laned]:
    """Compute values of the games once and together; see `numerics.hints.keep`.

    Those of the shape and size of the first go in one loop, truth values of that shape as the bits
    of one more word.
    """
    results = list(operands)
    words = [
        place
        for place, (x, in_lanes) in enumerate(results)
        if in_lanes
        and getattr(x.dtype, "kind", "key") in ("f", "i", "u")
        and x.dtype.itemsize in (4, 8)
    ]
    if not words:
        return results
    first = operands[words[0]].value
    kind = first.shape, first.dtype.itemsize
    words = [k for k in words if (results[k].value.shape, results[k].value.dtype.itemsize) == kind]
    truths = [
        k
        for k, (x, in_lanes) in enumerate(results)
        if in_lanes and x.dtype == jnp.bool_ and x.shape == first.shape
    ][:32]
    values = [operands[k].value for k in words]
    if truths:
        integer = {4: jnp.uint32, 8: jnp.uint64}[kind[1]]
        bits = [operands[k].value.astype(integer) << integer(n) for n, k in enumerate(truths)]
        values.append(sum(bits[1:], bits[0]))
    kept = keep_alike(*values)
    for place, value in zip(words, kept):
        results[place] = Laned(value, True)
    for number, place in enumerate(truths):
        results[place] = Laned((kept[-1] & integer(1 << number)) != 0, True)
    return results


def in_any_lane(truth: Any) -> Any:
    """Whether it is true in any lane.

    It is folded in half first, as XLA reduces a vector element by element.
    """
    counts = truth.astype(jnp.int32)
    while counts.shape[0] > 16 and counts.shape[0] % 2 == 0:
        half = counts.shape[0] // 2
        counts = counts[:half] | counts[half:]
    return jnp.max(counts) > 0


@jax.custom_jvp
def _keep_few(*values: Array) -> list[Array]:
    word = {4: jnp.uint32, 8: jnp.uint64}[values[0].dtype.itemsize]
    bits = [lax.bitcast_convert_type(x, word) for x in values]
    first = lax.broadcasted_iota(jnp.int32, (2, *values[0].shape), 0) == 0
    rows = [jnp.where(first, x[None], jnp.zeros_like(x)[None]) for x in bits]

    def combine(left, right):
        return tuple(lax.bitwise_or(a, b) for a, b in zip(left, right, strict=True))

    kept = lax.reduce(tuple(rows), (word(0),) * len(rows), combine, (0,))
    return [lax.bitcast_convert_type(x, old.dtype) for x, old in zip(kept, values, strict=True)]


@_keep_few.defjvp
def _keep_few_jvp(primals, tangents):
    return _keep_few(*primals), list(tangents)


def _neighbours(alike: list[Reduction]) -> list[list[Reduction]]:
    """Cut reductions into as few parts as possible, where the operations are furthest apart."""
    # best[k], of the first k: the number of parts, minus the gaps cut, and where the parts begin.
    best: list[tuple[int, int, list[int]]] = [(0, 0, [])]
    for end in range(1, len(alike) + 1):
        cuts = []
        for start in range(max(0, end - _MOST_TOGETHER), end):
            parts, gaps, starts = best[start]
            gap = alike[start].place - alike[start - 1].place if start else 0
            cuts.append((parts + 1, gaps - gap, [*starts, start]))
        best.append(min(cuts))
    return [alike[start:end] for start, end in pairwise([*best[-1][2], len(alike)])]


def _reduce(names: tuple[str, ...], *operands: Array) -> Sequence[Array]:
    """Over the first axis, [n, W] -> [W] each.

    Many arms are cut into 8 to 16 rows, [n] = [rows, n / rows]. The rows are combined into one, in
    a long loop that writes little, and that one is reduced the same way; the remainder comes last.
    """
    num_arms, *rest = operands[0].shape
    if num_arms <= _MOST_ARMS:
        reduce = _one_by_one if len(operands) == 1 else _in_one_pass
        return reduce(names, *operands)
    rows = block_factor(num_arms)
    length = num_arms // rows
    cut = [lax.slice_in_dim(x, 0, rows * length).reshape(rows, length, *rest) for x in operands]
    results = _reduce(names, *_reduce(names, *cut))
    if rows * length == num_arms:
        return results
    ends = _reduce(names, *(lax.slice_in_dim(x, rows * length, num_arms) for x in operands))
    return [_COMBINE[name](x, end) for name, x, end in zip(names, results, ends, strict=True)]


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
    identity = {"reduce_sum": 0.0, "reduce_max": -jnp.inf, "reduce_min": jnp.inf}

    def combine(left, right):
        return tuple(_COMBINE[name](a, b) for name, a, b in zip(names, left, right, strict=True))

    return lax.reduce(operands, tuple(dtype.type(identity[name]) for name in names), combine, (0,))


@_in_one_pass.defjvp
def _in_one_pass_jvp(names, primals, tangents):
    primal, tangent = jax.jvp(lambda *xs: _one_by_one(names, *xs), primals, tangents)
    return tuple(primal), tuple(tangent)
