"""Several sums, minima and maxima over the arms in one pass over them.

XLA on CPU makes every reduction a loop of its own, which reads the arms anew and works out again
what it shares with the others. A reduction of several operands is one loop: three sums in one take
half the time of three.
"""

from collections.abc import Iterator, Sequence
from itertools import combinations, pairwise
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array, lax

__all__ = ["Reduction", "made_together", "reduced_together"]

_COMBINE = {"reduce_sum": lax.add, "reduce_max": lax.max, "reduce_min": lax.min}
# The compiler writes out the loop over few arms, and makes vectors of it only if it does.
_MOST_ARMS = 16
# More operands than these make the loop too large for that.
_MOST_TOGETHER = 3


class Reduction(NamedTuple):
    eqn: Any  # over the first axis
    operand: Array  # [n, W]
    result: int  # the number of its result
    place: int  # among the operations

    @property
    def joins(self) -> bool:
        """Whether it can be made together with others."""
        small = self.operand.ndim == 2 and len(self.operand) <= _MOST_ARMS
        floats = jnp.issubdtype(self.operand.dtype, jnp.floating)
        return small and floats and self.eqn.primitive.name in _COMBINE


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
    """Floats [W] as they are, made in one loop and kept: XLA on CPU does not repeat a reduction.

    That is of the bits with those of a zero, which costs nothing.
    """
    kept: list[Array] = []
    for first in range(0, len(values), _MOST_TOGETHER):
        few = values[first : first + _MOST_TOGETHER]
        kept += _kept(*few)
    return kept


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
    num_parts = -(-len(group) // _MOST_TOGETHER)
    gaps = [after.place - before.place for before, after in pairwise(group)]

    def best(cuts: tuple[int, ...]) -> int:
        ends = (0, *cuts, len(group))
        fits = all(end - start <= _MOST_TOGETHER for start, end in pairwise(ends))
        return sum(gaps[cut - 1] for cut in cuts) if fits else -1

    cuts = max(combinations(range(1, len(group)), num_parts - 1), key=best)
    return [group[start:end] for start, end in pairwise((0, *cuts, len(group)))]


def _reduce(names: tuple[str, ...], *operands: Array) -> Sequence[Array]:
    if len(operands) == 1:
        return _one_by_one(names, *operands)
    return _in_one_pass(names, *operands)


def _one_by_one(names: tuple[str, ...], *operands: Array) -> list[Array]:
    functions = {"reduce_sum": jnp.sum, "reduce_max": jnp.max, "reduce_min": jnp.min}
    return [functions[name](x, axis=0) for name, x in zip(names, operands, strict=True)]


def _in_one_pass(names, *operands):
    dtype = operands[0].dtype
    least = {"reduce_sum": 0.0, "reduce_max": -jnp.inf, "reduce_min": jnp.inf}

    def combine(left, right):
        return tuple(_COMBINE[name](a, b) for name, a, b in zip(names, left, right, strict=True))

    return lax.reduce(operands, tuple(dtype.type(least[name]) for name in names), combine, (0,))


_in_one_pass = jax.custom_jvp(_in_one_pass, nondiff_argnums=(0,))


@_in_one_pass.defjvp
def _in_one_pass_jvp(names, primals, tangents):
    primal, tangent = jax.jvp(lambda *xs: _one_by_one(names, *xs), primals, tangents)
    return tuple(primal), tuple(tangent)
