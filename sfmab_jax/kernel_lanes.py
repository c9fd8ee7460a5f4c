"""`over_lanes` for the inside of a kernel, which allows fewer operations and shapes.

A vector over the arms is held as [N, W], N the next power of two and W the lanes, because Triton
has arrays of such sizes only. What the spare rows hold is never looked at: reductions leave them
out. A row is taken by a sum over the arms in which all others are zero, as kernels for GPUs can
take neither slices nor single elements of a value.
"""

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from sfmab_jax.lanes import ELEMENTWISE, bind_of, parts_of_scan
from sfmab_jax.tape import Known, Operation, Tape, tape_of_jaxpr

__all__ = ["padded_shape", "run_tape", "unsupported_operation"]

Value = tuple[Any, bool]  # and whether it has lanes; without them it is one number


def padded_shape(shape: Sequence[int]) -> tuple[int, ...]:
    """Every size rounded up to a power of two."""
    return tuple(1 << (size - 1).bit_length() for size in shape)


def run_tape(tape: Tape, known: dict[int, Value], width: int, platform: str) -> list[Any]:
    """The outputs of a tape, all with lanes, from the values of its inputs and what it closes over.

    Args:
      tape: see `sfmab_jax.tape`.
      known: of each variable given, its value [*padded shape, W] and True, or a number and False.
      width: W.
      platform: "tpu" has its own way with some functions.
    """
    known = dict(known)

    def read(operand) -> Value:
        return (operand.value, False) if isinstance(operand, Known) else known[operand]

    for operation in tape.operations:
        values, flags = zip(*map(read, operation.operands)) if operation.operands else ((), ())
        results = _apply(operation.eqn, values, flags, width, platform)
        known.update(zip(operation.results, results, strict=True))
    return [_spread(*read(output), (), width) for output in tape.outputs]


def unsupported_operation(operations: Sequence[Operation]) -> str | None:
    """The name of an operation, with its shapes, that kernels do not have here; or None."""
    for eqn, _, _ in operations:
        name = eqn.primitive.name
        if name == "scan":
            found = unsupported_operation(tape_of_jaxpr(eqn.params["jaxpr"].jaxpr).operations)
            found = "scan in reverse" if eqn.params["reverse"] else found
            if found is not None:
                return found
        elif name not in ELEMENTWISE and not (name in _RULES and _allowed(eqn)):
            shapes = ", ".join(str(list(var.aval.shape)) for var in eqn.invars)
            return f"{name} of {shapes}"
    return None


def _allowed(eqn) -> bool:
    """Whether a rule covers this use of the operation."""
    params, shapes = eqn.params, [var.aval.shape for var in eqn.invars]
    out = eqn.outvars[0].aval.shape
    match eqn.primitive.name:
        case "slice":
            return params["strides"] is None and _slices_one_axis(shapes[0], out)
        case "dynamic_slice":
            return len(shapes[0]) == 1 and out == (1,)
        case "pad":
            places = params["padding_config"]
            return all(low == 0 and high >= 0 and inner == 0 for low, high, inner in places)
        case "reshape":
            return _splits_evenly(shapes[0], out)
        case "concatenate":
            return all(shape[params["dimension"]] == 1 for shape in shapes)
        case "argmin" | "argmax":
            return len(params["axes"]) == 1
    return True


def _slices_one_axis(shape, out) -> bool:
    """Single rows, or from the start on: all else would move rows."""
    return sum(a != b for a, b in zip(shape, out)) <= 1 and all(
        b in (1, a) for a, b in zip(shape, out)
    )


def _splits_evenly(shape, out) -> bool:
    """Whether it is the same for the padded shapes: [1] and [], or powers of two."""
    dense = tuple(size for size in shape if size != 1)
    same = dense == tuple(size for size in out if size != 1)
    return same or (padded_shape(shape) == tuple(shape) and padded_shape(out) == tuple(out))


def _apply(eqn, values, flags, width: int, platform: str) -> list[Value]:
    """One operation with the lanes last."""
    name = eqn.primitive.name
    shapes = [var.aval.shape for var in eqn.invars]
    out = eqn.outvars[0].aval.shape
    if name == "scan":
        return _scan(eqn, values, flags, width, platform)
    if not any(flags) and out == () and not any(shapes):
        return [(bind_of(eqn)(*values), False)]
    if name in ELEMENTWISE:
        spread = [_spread(x, f, out, width) for x, f in zip(values, flags)]
        function = _TPU.get(name) if platform == "tpu" else None
        return [((function or bind_of(eqn))(*spread), True)]
    spread = [_spread(x, f, shape, width) for x, f, shape in zip(values, flags, shapes)]
    return [(_RULES[name](eqn, width, *spread), True)]


def _spread(value: Any, laned: bool, shape: tuple[int, ...], width: int) -> Array:
    """``value`` as [*padded shape, W]; it has that shape or is a number in each lane."""
    target = (*padded_shape(shape), width)
    if jnp.shape(value) == target or (laned and jnp.ndim(value) > 1):
        return value
    return lax.broadcast_in_dim(value, target, (len(target) - 1,) if laned else ())


def _place(like: Array, axis: int) -> Array:
    """The index along an axis, int32 of the shape of ``like``."""
    return lax.broadcasted_iota(jnp.int32, like.shape, axis)


def _row(x: Array, index: Any) -> Array:
    """x[index], the index one number or one for each lane: [N, ..., W] -> [..., W]."""
    here = _place(x, 0) == jnp.broadcast_to(index, x.shape)
    if x.dtype == jnp.bool_:
        return _row(x.astype(jnp.int32), index) != 0
    zero = jnp.zeros(x.shape, x.dtype)
    return _sum_of_rows(jnp.where(here, x, zero))


def _sum_of_rows(x: Array) -> Array:
    if x.dtype == jnp.uint32:  # kernels add signed integers only
        return lax.bitcast_convert_type(_sum_of_rows(lax.bitcast_convert_type(x, jnp.int32)), x.dtype)
    return jnp.sum(x, axis=0, dtype=x.dtype)


def _with_row(x: Array, index: Any, row: Array) -> Array:
    """``x`` with x[index] = row."""
    here = _place(x, 0) == jnp.broadcast_to(index, x.shape)
    return jnp.where(here, jnp.broadcast_to(row[None], x.shape), x)


def _identity(name: str, dtype) -> Any:
    """What a reduction leaves out of account."""
    if name in ("reduce_sum", "reduce_or"):
        return np.zeros((), dtype)
    if name == "reduce_and":
        return np.ones((), dtype)
    limits = jnp.finfo(dtype) if jnp.issubdtype(dtype, jnp.floating) else jnp.iinfo(dtype)
    low, high = (-np.inf, np.inf) if isinstance(limits, jnp.finfo) else (limits.min, limits.max)
    return np.asarray(low if name.endswith("max") else high, dtype)


def _masked(x: Array, shape: tuple[int, ...], axes: Sequence[int], identity: Any) -> Array:
    """``x`` with the identity in its spare rows."""
    for axis in axes:
        if shape[axis] != x.shape[axis]:
            spare = jnp.full(x.shape, identity, x.dtype)
            x = jnp.where(_place(x, axis) < shape[axis], x, spare)
    return x


def _reduce(eqn, width: int, x: Array) -> Array:
    name, axes, shape = eqn.primitive.name, eqn.params["axes"], eqn.invars[0].aval.shape
    if name in ("reduce_and", "reduce_or"):
        number = x.astype(jnp.int32)
        number = _masked(number, shape, axes, _identity(name, np.int32))
        reduce = jnp.min if name == "reduce_and" else jnp.max
        return reduce(number, axis=axes) != 0
    reduce = {"reduce_sum": jnp.sum, "reduce_max": jnp.max, "reduce_min": jnp.min}[name]
    return reduce(_masked(x, shape, axes, _identity(name, x.dtype)), axis=axes).astype(x.dtype)


def _argreduce(eqn, width: int, x: Array) -> Array:
    """The first place of the extreme, as a least index: all kernels have that."""
    name, (axis,) = eqn.primitive.name, eqn.params["axes"]
    shape, dtype = eqn.invars[0].aval.shape, eqn.params["index_dtype"]
    x = _masked(x, shape, (axis,), _identity(name, x.dtype))
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
    for axis, (size, kept) in enumerate(zip(shape, out)):
        if kept != size:
            row = _row(jnp.moveaxis(x, axis, 0) if axis else x, eqn.params["start_indices"][axis])
            return jnp.expand_dims(row, axis)
    return x


def _dynamic_slice(eqn, width: int, x: Array, index: Array) -> Array:
    last = eqn.invars[0].aval.shape[0] - 1
    return _row(x, jnp.clip(index, 0, last).astype(jnp.int32))[None]


def _pad(eqn, width: int, x: Array, filling: Array) -> Array:
    """Rows added at the end: of the spare ones as far as they reach."""
    shape, out = eqn.invars[0].aval.shape, eqn.outvars[0].aval.shape
    for axis, (size, wanted) in enumerate(zip(shape, padded_shape(out))):
        if x.shape[axis] != wanted:
            raise NotImplementedError("pad beyond the next power of two")
        if size != out[axis]:
            inside = _place(x, axis) < size
            x = jnp.where(inside, x, jnp.broadcast_to(filling, x.shape))
    return x


def _concatenate(eqn, width: int, *pieces: Array) -> Array:
    axis = eqn.params["dimension"]
    target = (*padded_shape(eqn.outvars[0].aval.shape), width)
    joined = jnp.broadcast_to(pieces[0], target)
    for place, piece in enumerate(pieces[1:], 1):
        joined = jnp.where(_place(joined, axis) == place, jnp.broadcast_to(piece, target), joined)
    return joined


def _iota(eqn, width: int) -> Array:
    shape = (*padded_shape(eqn.params["shape"]), width)
    number = lax.broadcasted_iota(jnp.int32, shape, eqn.params["dimension"])
    return number.astype(eqn.params["dtype"])


def _scan(eqn, values, flags, width: int, platform: str) -> list[Value]:
    """A scan as a loop in which rows are taken and set."""
    num_consts, num_carry = parts_of_scan(eqn)
    shapes = [var.aval.shape for var in eqn.invars]
    tape = tape_of_jaxpr(eqn.params["jaxpr"].jaxpr)
    consts = list(zip(values[:num_consts], flags[:num_consts]))
    spread = [_spread(x, f, shape, width) for x, f, shape in zip(values, flags, shapes)]
    carry, rows = spread[num_consts : num_consts + num_carry], spread[num_consts + num_carry :]
    made = [
        jnp.zeros((*padded_shape(var.aval.shape), width), var.aval.dtype)
        for var in eqn.outvars[num_carry:]
    ]

    def body(index, carried):
        carry, made = carried
        given = [*consts, *((x, True) for x in carry), *((_row(x, index), True) for x in rows)]
        outputs = run_tape(tape, dict(zip(tape.inputs, given, strict=True)), width, platform)
        made = [_with_row(x, index, row) for x, row in zip(made, outputs[num_carry:])]
        return outputs[:num_carry], made

    length = eqn.params["length"]
    carry, made = lax.fori_loop(jnp.int32(0), jnp.int32(length), body, (list(carry), made))
    return [(value, True) for value in (*carry, *made)]


def _expm1(x: Array) -> Array:
    """By tanh, relatively accurate near zero: exp(x) - 1 = 2 h / (1 - h), h = tanh(x / 2)."""
    half = jnp.tanh(x / 2)
    return jnp.where(jnp.abs(x) < 1, 2 * half / (1 - half), jnp.exp(x) - 1)


# What kernels for TPUs lack.
_TPU: dict[str, Callable[..., Any]] = {"expm1": _expm1}

_RULES: dict[str, Callable[..., Any]] = {
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
    "transpose": lambda eqn, width, x: jnp.transpose(
        x, (*eqn.params["permutation"], x.ndim - 1)
    ),
}
