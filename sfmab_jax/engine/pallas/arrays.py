"""The layout of values in the arrays that go into a kernel and come out.

Arms are padded to a power of two; one number in each lane is a row [1, W], as TPUs like two axes;
truth values are integers. Numbers without lanes come packed, one array for each dtype.
"""

from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

from sfmab_jax.engine.layout import padded_shape

__all__ = [
    "PackedNumber",
    "held_shape",
    "held_type",
    "hold",
    "lane_spec",
    "load",
    "loss_spec",
    "pack_numbers",
    "pad_to",
    "release",
    "scalar_spec",
    "store",
    "whole_spec",
]


def held_shape(shape: Sequence[int]) -> tuple[int, ...]:
    """Return the shape in a kernel's array, without lanes, of a value of one game."""
    return padded_shape(shape) or (1,)


def held_type(dtype) -> np.dtype:
    """Return the dtype in a kernel's array."""
    return np.dtype(np.int32 if dtype == np.bool_ else dtype)


def hold(value: Array) -> Array:
    """Lay out [..., W] as [*held, W], before the kernel."""
    held = held_shape(value.shape[:-1])
    if value.ndim == 1:
        value = value[None]
    return pad_to(value, (*held, value.shape[-1])).astype(held_type(value.dtype))


def release(held: Array, shape: Sequence[int], dtype) -> Array:
    """Cut an array from the kernel to ``shape``, its whole shape outside with the lanes last."""
    if held.ndim > len(shape):  # one number in each lane was held as a row
        held = held[..., 0, :]
    value = held[tuple(map(slice, shape))]
    return value != 0 if dtype == np.bool_ else value.astype(dtype)


def pad_to(value: Array, shape: Sequence[int]) -> Array:
    """Add zeros at the end of every axis."""
    return jnp.pad(value, [(0, wanted - size) for size, wanted in zip(value.shape, shape)])


def load(ref, shape: Sequence[int], dtype) -> Array:
    """Return a value of the tile [*padded, W] from the kernel's array."""
    value = ref[...]
    if not shape:
        value = value.reshape(value.shape[1:])
    return value != 0 if dtype == np.bool_ else value


def store(value: Array, shape: Sequence[int], dtype) -> Array:
    """Return a value of the tile as the kernel's array has it."""
    return value.reshape(*held_shape(shape), value.shape[-1]).astype(dtype)


class PackedNumber(NamedTuple):
    """Where a number without lanes is found."""

    variable: int
    array: int
    place: int
    dtype: Any


def pack_numbers(shared: dict[int, Any]) -> tuple[list[Array], tuple[PackedNumber, ...]]:
    """Pack the numbers among the values, one array for each dtype; return where each is."""
    by_dtype: dict[Any, list[Array]] = {}
    found: list[tuple[int, Any, int, Any]] = []
    for variable, value in shared.items():
        if jnp.ndim(value) == 0:
            dtype = jnp.result_type(value)
            held = held_type(dtype)
            column = by_dtype.setdefault(held, [])
            found.append((variable, held, len(column), dtype))
            column.append(jnp.asarray(value).astype(held))
    order = list(by_dtype)
    packed = tuple(PackedNumber(x, order.index(held), i, dtype) for x, held, i, dtype in found)
    return [jnp.stack(column) for column in by_dtype.values()], packed


def scalar_spec(platform: str) -> pl.BlockSpec:
    """Return the spec of an array read number by number; TPUs have a memory for those."""
    return pl.BlockSpec(memory_space=pltpu.SMEM) if platform == "tpu" else pl.BlockSpec()


def lane_spec(shape: Sequence[int], tile: int) -> pl.BlockSpec:
    """Return the spec of an array [..., W] of which each tile has its own lanes."""
    return pl.BlockSpec((*shape[:-1], tile), partial(_last, len(shape)))


def loss_spec(shape: Sequence[int], tile: int) -> pl.BlockSpec:
    """Return the spec of losses [rounds, N, W], or [rounds, N, 1] if lanes share a sequence."""
    return lane_spec(shape, tile) if shape[-1] > 1 else whole_spec(shape)


def whole_spec(shape: Sequence[int]) -> pl.BlockSpec:
    """Return the spec of an array that all tiles see."""
    return pl.BlockSpec(tuple(shape), lambda tile: (0,) * len(shape))


def _last(rank: int, tile):
    return (*(0,) * (rank - 1), tile)
