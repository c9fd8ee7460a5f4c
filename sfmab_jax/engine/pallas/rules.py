"""The operations that a round may have inside a kernel, on arrays [*padded shape, W].

A row is taken by a sum over the arms in which all others are zero, as kernels for GPUs can take
neither slices nor single elements of a value. What spare rows hold is never looked at: reductions
leave them out.
"""

from collections.abc import Callable, Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from sfmab_jax.engine.layout import padded_shape

__all__ = ["RULES", "TPU_FUNCTIONS", "has_rule", "row_of", "with_row"]


def has_rule(eqn) -> bool:
    """Whether a rule covers this use of the operation."""
    if eqn.primitive.name not in RULES:
        return False
    params, shapes = eqn.params, [var.aval.shape for var in eqn.invars]
    out = eqn.outvars[0].aval.shape
    match eqn.primitive.name:
        case "slice":
            return params["strides"] is None and _slices_one_axis(shapes[0], out)
        case "dynamic_slice":
            return len(shapes[0]) == 1 and out == (1,)
        case "pad":
            # Rows at the end that the padding to a power of two has already.
            at_the_end = all(
                low == inner == 0 <= high for low, high, inner in params["padding_config"]
            )
            return at_the_end and padded_shape(shapes[0]) == padded_shape(out)
        case "reshape":
            return _splits_evenly(shapes[0], out)
        case "concatenate":
            return all(shape[params["dimension"]] == 1 for shape in shapes)
        case "argmin" | "argmax":
            return len(params["axes"]) == 1
    return True


def _slices_one_axis(shape, out) -> bool:
    """Whether one row is taken, or all: anything else would move rows."""
    return sum(a != b for a, b in zip(shape, out)) <= 1 and all(
        b in (1, a) for a, b in zip(shape, out)
    )


def _splits_evenly(shape, out) -> bool:
    """Whether it is the same for the padded shapes: [1] and [], or powers of two."""
    dense = tuple(size for size in shape if size != 1)
    same = dense == tuple(size for size in out if size != 1)
    return same or (padded_shape(shape) == tuple(shape) and padded_shape(out) == tuple(out))


def _place(like: Array, axis: int) -> Array:
    """Return the index along an axis, int32 of the shape of ``like``."""
    return lax.broadcasted_iota(jnp.int32, like.shape, axis)


def row_of(x: Array, index: Any) -> Array:
    """Return x[index], the index one number or one per lane: [N, ..., W] -> [..., W]."""
    is_row = _place(x, 0) == jnp.broadcast_to(index, x.shape)
    if x.dtype == jnp.bool_:
        return row_of(x.astype(jnp.int32), index) != 0
    zero = jnp.zeros(x.shape, x.dtype)
    return _sum_of_rows(jnp.where(is_row, x, zero))


def _sum_of_rows(x: Array) -> Array:
    if x.dtype == jnp.uint32:  # kernels add signed integers only
        return lax.bitcast_convert_type(
            _sum_of_rows(lax.bitcast_convert_type(x, jnp.int32)), x.dtype
        )
    return jnp.sum(x, axis=0, dtype=x.dtype)


def with_row(x: Array, index: Any, row: Array) -> Array:
    """Return ``x`` with x[index] = row."""
    is_row = _place(x, 0) == jnp.broadcast_to(index, x.shape)
    return jnp.where(is_row, jnp.broadcast_to(row[None], x.shape), x)


def _identity(name: str, dtype) -> Any:
    """Return the number that a reduction ignores."""
    if name in ("reduce_sum", "reduce_or"):
        return np.zeros((), dtype)
    if name == "reduce_and":
        return np.ones((), dtype)
    limits = jnp.finfo(dtype) if jnp.issubdtype(dtype, jnp.floating) else jnp.iinfo(dtype)
    low, high = (-np.inf, np.inf) if isinstance(limits, jnp.finfo) else (limits.min, limits.max)
    return np.asarray(low if name.endswith("max") else high, dtype)


def _mask(x: Array, shape: tuple[int, ...], axes: Sequence[int], identity: Any) -> Array:
    """Return ``x`` with the identity in its spare rows."""
    for axis in axes:
        if shape[axis] != x.shape[axis]:
            spare = jnp.full(x.shape, identity, x.dtype)
            x = jnp.where(_place(x, axis) < shape[axis], x, spare)
    return x


def _reduce(eqn, width: int, x: Array) -> Array:
    name, axes, shape = eqn.primitive.name, eqn.params["axes"], eqn.invars[0].aval.shape
    if name in ("reduce_and", "reduce_or"):
        number = x.astype(jnp.int32)
        number = _mask(number, shape, axes, _identity(name, np.int32))
        extreme: Any = jnp.min if name == "reduce_and" else jnp.max
        return extreme(number, axis=axes) != 0
    reduce: Any = {"reduce_sum": jnp.sum, "reduce_max": jnp.max, "reduce_min": jnp.min}[name]
    return reduce(_mask(x, shape, axes, _identity(name, x.dtype)), axis=axes).astype(x.dtype)


def _argreduce(eqn, width: int, x: Array) -> Array:
    """Return the first place of the extreme, as a least index: all kernels have that."""
    name, (axis,) = eqn.primitive.name, eqn.params["axes"]
    shape, dtype = eqn.invars[0].aval.shape, eqn.params["index_dtype"]
    x = _mask(x, shape, (axis,), _identity(name, x.dtype))
    extreme = (jnp.min if name == "argmin" else jnp.max)(x, axis=axis, keepdims=True)
    last = jnp.full(x.shape, shape[axis] - 1, jnp.int32)
    places = jnp.where(x == jnp.broadcast_to(extreme, x.shape), _place(x, axis), last)
    return jnp.minimum(jnp.min(places, axis=axis), shape[axis] - 1).astype(dtype)


def _broadcast_in_dim(eqn, width: int, x: Array) -> Array:
    shape, dims = eqn.outvars[0].aval.shape, eqn.params["broadcast_dimensions"]
    return lax.broadcast_in_dim(x, (*padded_shape(shape), width), (*dims, len(shape)))


def _reshape(eqn, width: int, x: Array) -> Array:
    return x.reshape(*padded_shape(eqn.outvars[0].aval.shape), width)


def _slice(eqn, width: int, x: Array) -> Array:
    shape, out = eqn.invars[0].aval.shape, eqn.outvars[0].aval.shape
    for axis, (size, length) in enumerate(zip(shape, out)):
        if length != size:
            row = row_of(jnp.moveaxis(x, axis, 0) if axis else x, eqn.params["start_indices"][axis])
            return jnp.expand_dims(row, axis)
    return x


def _dynamic_slice(eqn, width: int, x: Array, index: Array) -> Array:
    last = eqn.invars[0].aval.shape[0] - 1
    return row_of(x, jnp.clip(index, 0, last).astype(jnp.int32))[None]


def _pad(eqn, width: int, x: Array, filling: Array) -> Array:
    """Add rows at the end: some of the spare ones."""
    shape, out = eqn.invars[0].aval.shape, eqn.outvars[0].aval.shape
    for axis, size in enumerate(shape):
        if size != out[axis]:
            inside = _place(x, axis) < size
            x = jnp.where(inside, x, jnp.broadcast_to(filling, x.shape))
    return x


def _concatenate(eqn, width: int, *operands: Array) -> Array:
    return _join(eqn, width, operands, eqn.params["dimension"])


def _stack(eqn, width: int, *operands: Array) -> Array:
    axis = eqn.params["axis"]
    return _join(eqn, width, [jnp.expand_dims(x, axis) for x in operands], axis)


def _join(eqn, width: int, operands: Sequence[Array], axis: int) -> Array:
    """Put operands of one row each side by side."""
    target = (*padded_shape(eqn.outvars[0].aval.shape), width)
    joined = jnp.broadcast_to(operands[0], target)
    for place, row in enumerate(operands[1:], 1):
        joined = jnp.where(_place(joined, axis) == place, jnp.broadcast_to(row, target), joined)
    return joined


def _iota(eqn, width: int) -> Array:
    shape = (*padded_shape(eqn.params["shape"]), width)
    number = lax.broadcasted_iota(jnp.int32, shape, eqn.params["dimension"])
    return number.astype(eqn.params["dtype"])


def _expm1(x: Array) -> Array:
    """By tanh, relatively accurate near zero: exp(x) - 1 = 2 h / (1 - h), h = tanh(x / 2)."""
    half = jnp.tanh(x / 2)
    return jnp.where(jnp.abs(x) < 1, 2 * half / (1 - half), jnp.exp(x) - 1)


# What kernels for TPUs lack.
TPU_FUNCTIONS: dict[str, Callable[..., Any]] = {"expm1": _expm1}

RULES: dict[str, Callable[..., Any]] = {
    "argmax": _argreduce,
    "argmin": _argreduce,
    "broadcast_in_dim": _broadcast_in_dim,
    "concatenate": _concatenate,
    "dynamic_slice": _dynamic_slice,
    "expand_dims": _reshape,
    "iota": _iota,
    "pad": _pad,
    "reduce_and": _reduce,
    "reduce_max": _reduce,
    "reduce_min": _reduce,
    "reduce_or": _reduce,
    "reduce_sum": _reduce,
    "reshape": _reshape,
    "slice": _slice,
    "squeeze": _reshape,
    "stack": _stack,
    "stop_gradient": lambda eqn, width, x: x,
    "transpose": lambda eqn, width, x: jnp.transpose(x, (*eqn.params["permutation"], x.ndim - 1)),
}
