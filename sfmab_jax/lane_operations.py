"""One operation of one game, for many games with the games as the last axis of every array."""

from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from sfmab_jax.tape import bind_of

__all__ = ["ELEMENTWISE", "REDUCTIONS", "apply_operation", "spread"]

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


def apply_operation(eqn, operands, flags, width: int) -> list[tuple[Any, bool]]:
    """One operation, with the lanes last."""
    bind, params = bind_of(eqn), eqn.params
    name = eqn.primitive.name
    # A callback may return nothing.
    shape: tuple[int, ...] = eqn.outvars[0].aval.shape if eqn.outvars else ()
    if not any(flags):
        result, on_lanes = bind(*operands), False
    else:
        on_lanes = True
        if name in ELEMENTWISE and all(var.aval.shape in ((), shape) for var in eqn.invars):
            laned = [spread(x, f, shape, width) for x, f in zip(operands, flags)]
            result = bind(*laned)
        elif name in REDUCTIONS:
            result = bind(*operands)
        elif name == "broadcast_in_dim" and len(operands) == 1:
            dims = (*params["broadcast_dimensions"], len(shape))
            result = lax.broadcast_in_dim(operands[0], (*shape, width), dims)
        elif name == "squeeze":
            result = lax.squeeze(operands[0], params["dimensions"])
        elif name == "slice":
            start, limit = (*params["start_indices"], 0), (*params["limit_indices"], width)
            strides = None if params["strides"] is None else (*params["strides"], 1)
            result = lax.slice(operands[0], start, limit, strides)
        elif name == "transpose":
            result = lax.transpose(operands[0], (*params["permutation"], len(shape)))
        elif name == "reshape":
            result = operands[0].reshape(*shape, width)
        elif name == "pad" and not flags[1]:
            config = (*params["padding_config"], (0, 0, 0))
            result = lax.pad(operands[0], operands[1], config)
        elif name == "concatenate":
            given = zip(operands, flags, eqn.invars)
            laned = [spread(x, f, var.aval.shape, width) for x, f, var in given]
            result = lax.concatenate(laned, params["dimension"])
        elif name == "dynamic_slice" and len(shape) == 1 and flags[0]:
            result = _slices_of_lanes(operands[0], operands[1], shape[0], width)
        else:
            # Lanes first: not every operation can be mapped over its last axis.
            axes = [0 if flag else None for flag in flags]
            front = [jnp.moveaxis(x, -1, 0) if f else x for x, f in zip(operands, flags)]
            result = jax.vmap(bind, axes, -1)(*front)
    results = result if eqn.primitive.multiple_results else [result]
    return [(value, on_lanes) for value in results]


def _slices_of_lanes(x, start, size: int, width: int):
    """x[start : start + size] of every lane with its own start, [n, W] -> [size, W]."""
    first = jnp.broadcast_to(jnp.clip(start, 0, len(x) - size).astype(jnp.int32), (width,))
    if width == 1:
        return lax.dynamic_slice(x, (first[0], jnp.int32(0)), (size, 1))
    rows = first[None] + jnp.arange(size, dtype=jnp.int32)[:, None]
    places = rows * width + jnp.arange(width, dtype=jnp.int32)[None]
    return x.reshape(-1).at[places].get(mode="promise_in_bounds")


def spread(value: Any, in_lanes: bool, shape: tuple[int, ...], width: int) -> Any:
    """``value``, of the shape given or a number, as [*shape, width]."""
    rank = jnp.ndim(value) - in_lanes
    dims = tuple(range(rank)) + ((len(shape),) if in_lanes else ())
    return lax.broadcast_in_dim(value, (*shape, width), dims)
