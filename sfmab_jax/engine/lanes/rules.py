"""One operation of one game, for many games with the games as the last axis of every array.

A rule covers operations with just the parameters that it names; any other is mapped by `jax.vmap`,
operation by operation. Operations outside `KNOWN` and `CONTROL` are not touched: see `transform`.
"""

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array, lax

from sfmab_jax.engine.lanes.jaxpr import Laned, bind_of

__all__ = ["ELEMENTWISE", "KNOWN", "REDUCTIONS", "apply_operation", "choose", "spread"]

ELEMENTWISE = frozenset(
    """
    abs add add_any and asin asinh atan atan2 atanh bitcast_convert_type cbrt ceil clamp
    convert_element_type copy cos cosh digamma div eq erf erf_inv erfc exp exp2 expm1 floor ge gt
    integer_pow is_finite le lgamma log log1p log2 logistic lt max min mul ne neg nextafter not or
    population_count pow rem round rsqrt select_n shift_left shift_right_arithmetic
    shift_right_logical sign sin sinh sqrt square stop_gradient sub tan tanh xor
    """.split()
)
REDUCTIONS = frozenset(
    "argmax argmin reduce_and reduce_max reduce_min reduce_or reduce_prod reduce_sum".split()
)
# Operations that move numbers, with the parameters that their rules know.
_MOVES = {
    "broadcast_in_dim": {"shape", "broadcast_dimensions", "sharding"},
    "concatenate": {"dimension"},
    "dynamic_slice": {"slice_sizes"},
    "dynamic_update_slice": set(),
    "pad": {"padding_config"},
    "reshape": {"new_sizes", "dimensions", "sharding"},
    "slice": {"start_indices", "limit_indices", "strides"},
    "squeeze": {"dimensions"},
    "transpose": {"permutation"},
    "unstack": {"axis"},  # what unpacking an array is, from jax 0.12 on
}
_REDUCTION_PARAMETERS = {"axes", "index_dtype", "out_sharding"}
# Mapped by `jax.vmap`, each by itself; tried by the tests and the fuzz of the transform.
_MAPPED = frozenset(
    """
    acos acosh checkpoint clz complex conj copy_p cumlogsumexp cummax cummin cumprod cumsum
    debug_callback dot_general dynamic_update_slice empty empty2 eq_to expand_dims
    gather imag io_callback iota le_to lt_to pure_callback random_bits random_fold_in random_seed
    random_split random_unwrap random_wrap real reduce reduce_precision reduce_xor remat2 rev
    scatter scatter-add scatter-max scatter-min scatter-mul scatter_add sort split stack
    threefry2x32 tile top_k
    """.split()
)
# Prints the first lane: where one game is asked for, all lanes play it.
_PRINT = "debug_print"
KNOWN = ELEMENTWISE | REDUCTIONS | _MAPPED | frozenset(_MOVES) | {_PRINT}


def apply_operation(eqn, operands, flags, width: int) -> list[Laned]:
    """Do one operation with the lanes last.

    Args:
      eqn: the equation of one game's jaxpr.
      operands: its values, [*shape, width] or without lanes.
      flags: whether each has lanes.
      width: the number of lanes.
    """
    in_lanes = any(flags)
    result = _with_lanes(eqn, operands, flags, width) if in_lanes else bind_of(eqn)(*operands)
    results = result if eqn.primitive.multiple_results else [result]
    return [Laned(value, in_lanes) for value in results]


def _with_lanes(eqn, operands, flags, width: int) -> Any:
    name, params = eqn.primitive.name, eqn.params
    # A callback may return nothing.
    shape: tuple[int, ...] = eqn.outvars[0].aval.shape if eqn.outvars else ()
    if name == _PRINT:
        return bind_of(eqn)(*(x[..., 0] if f else x for x, f in zip(operands, flags)))
    if _knows_parameters(name, params):
        if name in ELEMENTWISE and _keeps_shape(eqn, shape):
            laned = [spread(x, f, shape, width) for x, f in zip(operands, flags)]
            return bind_of(eqn)(*laned)
        if name in REDUCTIONS:
            return bind_of(eqn)(*operands)
        if name == "broadcast_in_dim" and len(operands) == 1:
            dims = (*params["broadcast_dimensions"], len(shape))
            return lax.broadcast_in_dim(operands[0], (*shape, width), dims)
        if name == "squeeze":
            return lax.squeeze(operands[0], params["dimensions"])
        if name == "unstack":
            rows = range(len(eqn.outvars))
            return [lax.index_in_dim(operands[0], k, params["axis"], False) for k in rows]
        if name == "slice":
            start, limit = (*params["start_indices"], 0), (*params["limit_indices"], width)
            strides = None if params["strides"] is None else (*params["strides"], 1)
            return lax.slice(operands[0], start, limit, strides)
        if name == "transpose":
            return lax.transpose(operands[0], (*params["permutation"], len(shape)))
        if name == "reshape" and params["dimensions"] is None:
            return operands[0].reshape(*shape, width)
        if name == "pad" and not flags[1]:
            config = (*params["padding_config"], (0, 0, 0))
            return lax.pad(operands[0], operands[1], config)
        if name == "concatenate":
            triples = zip(operands, flags, eqn.invars)
            laned = [spread(x, f, var.aval.shape, width) for x, f, var in triples]
            return lax.concatenate(laned, params["dimension"])
        if name == "dynamic_slice" and shape and not any(flags[1:]):
            sizes, zero = params["slice_sizes"], jnp.zeros_like(operands[-1])
            return lax.dynamic_slice(operands[0], (*operands[1:], zero), (*sizes, width))
        if name == "dynamic_update_slice" and shape and not any(flags[2:]):
            pairs = zip(operands[:2], flags, eqn.invars)
            x, update = (spread(x, f, var.aval.shape, width) for x, f, var in pairs)
            zero = jnp.zeros_like(operands[-1])
            return lax.dynamic_update_slice(x, update, (*operands[2:], zero))
        if name == "dynamic_slice" and len(shape) == 1 and flags[0] and shape[0]:
            return _slices_of_lanes(operands[0], operands[1], shape[0], width)
    # Lanes first: not every operation can be mapped over its last axis.
    axes = [0 if flag else None for flag in flags]
    front = [jnp.moveaxis(x, -1, 0) if f else x for x, f in zip(operands, flags)]
    return jax.vmap(bind_of(eqn), axes, -1)(*front)


def _knows_parameters(name: str, params: dict[str, Any]) -> bool:
    """Whether a rule covers these parameters; those of elementwise operations are handed on."""
    known = _REDUCTION_PARAMETERS if name in REDUCTIONS else _MOVES.get(name, set(params))
    sharded = any(params.get(key) is not None for key in ("sharding", "out_sharding"))
    return known.issuperset(params) and not sharded


def _keeps_shape(eqn, shape: tuple[int, ...]) -> bool:
    """Whether every operand has the shape of the result, or is a number.

    A bitcast to a narrower type gives one number an axis.
    """
    shapes = [var.aval.shape for var in eqn.invars]
    if eqn.primitive.name == "bitcast_convert_type":
        return shapes == [shape]
    return all(one in ((), shape) for one in shapes)


def _slices_of_lanes(x: Array, start: Any, size: int, width: int) -> Array:
    """x[start : start + size] of every lane with its own start, [n, W] -> [size, W]."""
    last = len(x) - size
    if jnp.result_type(start).itemsize < 4:  # the limits might not fit into a narrow integer
        start = lax.convert_element_type(start, jnp.int32)
    first = jnp.broadcast_to(jnp.clip(start, 0, last).astype(jnp.int32), (width,))
    if width == 1:
        return lax.dynamic_slice(x, (first[0], jnp.int32(0)), (size, 1))
    rows = first[None] + jnp.arange(size, dtype=jnp.int32)[:, None]
    places = rows * width + jnp.arange(width, dtype=jnp.int32)[None]
    return x.reshape(-1).at[places].get(mode="promise_in_bounds")


def choose(takes: Array, new: Array, old: Array, exact: bool) -> Array:
    """Return ``new`` where ``takes``, else ``old``; for results that overwrite ``old``.

    There LLVM turns a plain choice into a masked store, which takes several times as long on some
    processors. It does not recognise this sum with zeros, which equals the choice except that it
    turns -0.0 into 0.0.
    """
    if exact or not jnp.issubdtype(new.dtype, jnp.floating):
        return jnp.where(takes, new, old)
    zero = jnp.zeros_like(new)
    return jnp.where(takes, new, zero) + jnp.where(takes, zero, old)


def spread(value: Any, in_lanes: bool, shape: Sequence[int], width: int) -> Any:
    """Return ``value``, of the shape given or a number, as [*shape, width]."""
    rank = jnp.ndim(value) - in_lanes
    dims = tuple(range(rank)) + ((len(shape),) if in_lanes else ())
    return lax.broadcast_in_dim(value, (*shape, width), dims)
