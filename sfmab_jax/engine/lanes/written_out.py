"""Random draws of one game, written out: keys become pairs of words, draws arithmetic on them.

On CPU `jax.random` runs the twenty rounds of its generator as a loop, in operations of its own that
no other operation is compiled together with: ten uniform numbers of one game take 190 ns. Written
out over the lanes, with the same bits, they take 11. The inverse error function, of which it makes
normal numbers, is ours, too: more precise than that of XLA on CPU, in a third of the time.

Only draws of the default generator under JAX's default settings are written out; others stay.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array, lax
from jax.extend.core import ClosedJaxpr, Jaxpr
from jax.extend.core import Literal as JaxLiteral

from sfmab_jax.engine.lanes.jaxpr import (
    CALLS,
    bind_of,
    held_jaxprs,
    parts_of_scan,
    parts_of_while,
)
from sfmab_jax.numerics.hints import keep
from sfmab_jax.numerics.inverse_erf import inverse_erf
from sfmab_jax.numerics.threefry import GENERATOR, threefry_2x32

__all__ = ["write_out_draws"]

# Operations that move numbers and mean the same for each word of a key.
_MOVES = frozenset(
    """
    broadcast_in_dim concatenate copy dynamic_slice dynamic_update_slice expand_dims gather
    optimization_barrier reshape rev select_n slice split squeeze stack stop_gradient tile transpose
    """.split()
)


class _Key(NamedTuple):
    """Keys of any shape, word by word."""

    first: Array  # uint32
    second: Array  # uint32


def write_out_draws(closed: ClosedJaxpr, arguments: Sequence[Any]) -> ClosedJaxpr:
    """Return the function of one game with its random draws written out.

    Args:
      closed: the function.
      arguments: their shapes and dtypes.
    """
    if not _draws(closed.jaxpr) or not _has_default_draws_only(closed.jaxpr):
        return closed

    def written_out(*values):
        results = _evaluate(closed, [_as_words(x) if _is_key(x) else x for x in values])
        return [_as_key(x) if isinstance(x, _Key) else x for x in results]

    return jax.make_jaxpr(written_out)(*arguments)


def _draws(jaxpr: Jaxpr) -> bool:
    """Whether there are random draws, here or in functions that operations hold."""
    return any(
        eqn.primitive.name in _RULES or any(map(_draws, held_jaxprs(eqn))) for eqn in jaxpr.eqns
    )


def _has_default_draws_only(jaxpr: Jaxpr) -> bool:
    """Whether all keys are of the default generator, and all draws made as it makes them."""
    return all(
        all(map(_is_default_key, (*eqn.invars, *eqn.outvars)))
        and getattr(getattr(eqn, "ctx", None), "threefry_partitionable", True)
        and all(map(_has_default_draws_only, held_jaxprs(eqn)))
        for eqn in jaxpr.eqns
    )


def _is_default_key(atom: Any) -> bool:
    """Whether an operand is a key of the default generator, or no key at all."""
    return not _is_key(atom.aval) or str(atom.aval.dtype) == "key<fry>"


def _is_key(x: Any) -> bool:
    return hasattr(x, "dtype") and jax.dtypes.issubdtype(x.dtype, jax.dtypes.prng_key)


def _as_words(keys: Array) -> _Key:
    return _of_data(jax.random.key_data(keys))


def _as_key(key: _Key) -> Array:
    return jax.random.wrap_key_data(_data_of(key), impl=GENERATOR)


def _of_data(data: Array) -> _Key:
    return _Key(*(lax.index_in_dim(data, word, -1, keepdims=False) for word in range(2)))


def _data_of(key: _Key) -> Array:
    return jnp.stack([key.first, key.second], axis=-1)


def _evaluate(closed: ClosedJaxpr, arguments: Sequence[Any]) -> list[Any]:
    """Run the operations of a function; keys are pairs of words."""
    jaxpr = closed.jaxpr
    values = dict(zip((*jaxpr.constvars, *jaxpr.invars), (*closed.consts, *arguments), strict=True))

    def read(atom) -> Any:
        return atom.val if isinstance(atom, JaxLiteral) else values[atom]

    for eqn in jaxpr.eqns:
        results = _apply(eqn, [read(atom) for atom in eqn.invars])
        values.update(zip(eqn.outvars, results, strict=True))
    return [read(atom) for atom in jaxpr.outvars]


def _apply(eqn, operands: list[Any]) -> Sequence[Any]:
    """Do one operation."""
    name = eqn.primitive.name
    if name in _RULES:
        return _RULES[name](eqn, *operands)
    has_keys = any(isinstance(x, _Key) for x in operands)
    if has_keys or any(map(_draws, held_jaxprs(eqn))):
        if name in CALLS:
            return _evaluate(eqn.params[CALLS[name]], operands)
        if name in _CONTROL:
            return _CONTROL[name](eqn, operands)
    if has_keys and name in _MOVES:
        words = [
            _bind(eqn, [x[word] if isinstance(x, _Key) else x for x in operands])
            for word in range(2)
        ]
        return [
            _Key(*pair) if _is_key(var.aval) else pair[0]
            for var, pair in zip(eqn.outvars, zip(*words, strict=True), strict=True)
        ]
    results = _bind(eqn, [_as_key(x) if isinstance(x, _Key) else x for x in operands])
    return [_as_words(x) if _is_key(x) else x for x in results]


def _bind(eqn, operands: Sequence[Any]) -> Sequence[Any]:
    result = bind_of(eqn)(*operands)
    return result if eqn.primitive.multiple_results else [result]


def _fold_in(eqn, key: _Key, number: Array) -> list[_Key]:
    words = _block(key, jnp.zeros_like(number), number)
    return [_Key(*keep(*words))]


def _split(eqn, key: _Key) -> list[_Key]:
    return [_Key(*keep(*_block_of_each(key, eqn.params["shape"])))]


def _bits(eqn, key: _Key) -> list[Array]:
    first, second = _block_of_each(key, eqn.params["shape"])
    width = eqn.params["bit_width"]
    if width == 64:
        wide = jnp.dtype("uint64")
        return [(first.astype(wide) << wide.type(32)) | second.astype(wide)]
    (bits,) = keep(first ^ second)  # lest they be drawn again for every use
    return [bits.astype(f"uint{width}")]


def _block_of_each(key: _Key, shape: tuple[int, ...]) -> tuple[Array, Array]:
    """Return the blocks of a key [*outer] at the numbers 0, 1, ... of an array [*shape].

    The result is [*outer, *shape].
    """
    outer = key.first.shape
    # The high word of the number is 0 up to 2^32 draws.
    number = lax.iota(jnp.uint32, math.prod(shape)).reshape((1,) * len(outer) + shape)
    number = jnp.broadcast_to(number, (*outer, *shape))
    spread = _Key(*(lax.broadcast_in_dim(x, number.shape, range(len(outer))) for x in key))
    return _block(spread, jnp.zeros_like(number), number)


def _block(key: _Key, *counter: Array) -> tuple[Array, Array]:
    """Return Threefry's words, all operands of one shape or broadcast to it."""
    words = jnp.broadcast_arrays(*key, *counter)
    return threefry_2x32((words[0], words[1]), (words[2], words[3]))


def _inverse_erf(eqn, x: Array) -> list[Array]:
    """Return erf^-1(x), infinite at -1 and 1 as `lax.erf_inv` is."""
    if x.dtype != jnp.float32:
        return list(_bind(eqn, [x]))
    return [jnp.where(jnp.abs(x) == 1, x * jnp.inf, inverse_erf(x))]


def _scan(eqn, operands: list[Any]) -> Sequence[Any]:
    consts, start, inputs = parts_of_scan(eqn, operands)

    def body(carry, inputs):
        results = _evaluate(eqn.params["jaxpr"], [*consts, *carry, *inputs])
        return results[: len(start)], results[len(start) :]

    how = {name: eqn.params[name] for name in ("length", "reverse", "unroll")}
    carry, stacked = lax.scan(body, list(start), list(inputs), **how)
    return [*carry, *stacked]


def _while(eqn, operands: list[Any]) -> Sequence[Any]:
    cond_consts, body_consts, start = parts_of_while(eqn, operands)
    return lax.while_loop(
        lambda carry: _evaluate(eqn.params["cond_jaxpr"], [*cond_consts, *carry])[0],
        lambda carry: _evaluate(eqn.params["body_jaxpr"], [*body_consts, *carry]),
        list(start),
    )


def _cond(eqn, operands: list[Any]) -> Sequence[Any]:
    branches = [
        lambda *values, branch=branch: _evaluate(branch, values)
        for branch in eqn.params["branches"]
    ]
    return lax.switch(operands[0], branches, *operands[1:])


_RULES: dict[str, Callable[..., Sequence[Any]]] = {
    "erf_inv": _inverse_erf,
    "random_bits": _bits,
    "random_fold_in": _fold_in,
    "random_split": _split,
    "random_unwrap": lambda eqn, key: [_data_of(key)],
    "random_wrap": lambda eqn, data: [_of_data(data)],
    "threefry2x32": lambda eqn, *words: _block(_Key(*words[:2]), *words[2:]),
}
_CONTROL = {"cond": _cond, "scan": _scan, "while": _while}
