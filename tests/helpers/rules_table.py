"""Every operation that the lanes know, in every form that JAX offers, against `jax.vmap`.

    python tests/helpers/rules_table.py               # the whole table, some minutes
    python tests/helpers/rules_table.py sort reshape  # these parts of it

Where `fuzz_lanes.py` draws functions at random, this goes through them: every integer width,
negative and out-of-range indices, empty axes, ranks 0 to 4, all orders and modes, all sets of axes.
"""

import itertools
import sys
import warnings
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from fuzz_lanes import agree
from jax import lax

from sfmab_jax.engine.lanes import over_lanes, transform

WIDTH = 3
INTEGERS = tuple(f"{sign}int{bits}" for bits in (8, 16, 32, 64) for sign in ("", "u"))
FLOATS = ("float16", "bfloat16", "float32", "float64")
SHAPES = ((), (4,), (2, 3), (2, 1, 3), (2, 1, 3, 2))
EMPTY = ((0,), (2, 0), (0, 3, 2), (2, 1, 0, 2))
# So many functions are compiled together.
PER_PROGRAM = 150
CHEAP = {"xla_backend_optimization_level": 0}


class Case(NamedTuple):
    """A function of one game, and arrays [..., WIDTH] of games."""

    name: str
    function: Callable[..., Any]
    arguments: tuple


def numbers(shape: tuple[int, ...], dtype: str = "float32", seed: int = 0) -> np.ndarray:
    """Small numbers [*shape, WIDTH] whose sums and products are exact in every type but float16."""
    rng = np.random.default_rng([seed, *shape])
    whole = rng.integers(0 if dtype.startswith("u") else -6, 7, (*shape, WIDTH))
    if dtype == "bool":
        return whole > 0
    return np.asarray(whole / 2 if "float" in dtype else whole).astype(jnp.dtype(dtype))


def places(dtype: str, length: int) -> Iterator[np.ndarray]:
    """Places of each game [WIDTH] among ``length``: in range, negative, beyond, the extremes."""
    limits = np.iinfo(dtype)
    within = [0, length - 1, length // 2]
    for wanted in (within, [-1, -length, -length - 1], [length, length + 1, 100]):
        if limits.min <= min(wanted) and max(wanted) <= limits.max:
            yield np.array(wanted, dtype)
    yield np.array([limits.min, limits.max, 1], dtype)


def subsets(rank: int) -> list[tuple[int, ...]]:
    return [s for size in range(rank + 1) for s in itertools.combinations(range(rank), size)]


def table(name: str, functions, *arguments) -> Iterator[Case]:
    for number, function in enumerate(functions):
        yield Case(f"{name} {number}", function, arguments)


UNARY_FLOAT = (
    "abs asin asinh atan atanh acos acosh cbrt ceil cos cosh digamma erf erf_inv erfc exp exp2 "
    "expm1 floor is_finite lgamma log log1p log2 logistic neg round rsqrt sign sin sinh sqrt "
    "square tan tanh stop_gradient"
).split()
UNARY_INTEGER = "abs neg sign square bitwise_not population_count clz".split()
BINARY_FLOAT = "add atan2 div eq ge gt le lt max min mul ne nextafter pow rem sub".split()
BINARY_INTEGER = (
    "add bitwise_and bitwise_or bitwise_xor div eq ge gt le lt max min mul ne pow rem "
    "shift_left shift_right_arithmetic shift_right_logical sub"
).split()


def elementwise() -> Iterator[Case]:
    for name, dtype in itertools.product(UNARY_FLOAT, ("float32", "float64")):
        operation = getattr(lax, name, None) or getattr(jnp, name)
        yield Case(f"{name} {dtype}", operation, (numbers((4,), dtype),))
    for name, dtype in itertools.product(UNARY_INTEGER, INTEGERS):
        operation = getattr(lax, name, None) or getattr(jnp, name)
        yield Case(f"{name} {dtype}", operation, (numbers((4,), dtype),))
    for name, dtype in [
        *itertools.product(BINARY_FLOAT, FLOATS),
        *itertools.product(BINARY_INTEGER, INTEGERS),
    ]:
        both = numbers((4,), dtype), numbers((4,), dtype, 1)
        if name == "nextafter" and dtype not in ("float32", "float64"):
            continue
        yield Case(f"{name} {dtype}", getattr(lax, name), both)
    for shape, name in itertools.product((*SHAPES, *EMPTY), ("add", "max", "lt", "div")):
        operation = getattr(lax, name)
        x, a = numbers(shape), numbers((), seed=1)
        shared = jnp.asarray(numbers(shape, seed=2)[..., 0])
        given = f"{name} {shape}"
        yield Case(f"{given} number", lambda x, a, f=operation: f(x, a), (x, a))
        yield Case(f"{given} by number", lambda x, a, f=operation: f(a, x), (x, a))
        yield Case(f"{given} shared", lambda x, y=shared, f=operation: f(x, y), (x,))
        yield Case(f"{given} literal", lambda x, f=operation: f(x, 0.5), (x,))
        yield Case(f"{given} shared by number", lambda a, y=shared, f=operation: f(y, a), (a,))
    for shape in (*SHAPES, *EMPTY):
        x, low, truth = numbers(shape), numbers((), seed=1), numbers(shape, "bool")
        which = numbers((), "bool", 3)
        yield from table(
            f"choices {shape}",
            [
                lambda x, low, truth, which: lax.clamp(low, x, low + 1),
                lambda x, low, truth, which: lax.clamp(x - 1, x * 2, x + 1),
                lambda x, low, truth, which: jnp.where(truth, x, low),
                lambda x, low, truth, which: jnp.where(which, x, -x),
                lambda x, low, truth, which: lax.select(truth, x, x + 1),
                lambda x, low, truth, which: lax.select_n(which, x, x + 1),
                lambda x, low, truth, which: lax.select_n(truth.astype(jnp.int32), x, -x),
                lambda x, low, truth, which: truth & which | ~truth ^ which,
                lambda x, low, truth, which: lax.integer_pow(x, 3),
                lambda x, low, truth, which: lax.integer_pow(x, -2),
                lambda x, low, truth, which: lax.reduce_precision(x, 5, 2),
                lambda x, low, truth, which: lax.complex(x, x + low).conj().imag,
                lambda x, low, truth, which: jnp.real(lax.complex(x, -x)),
            ],
            x,
            low,
            truth,
            which,
        )
    kinds = (*INTEGERS, *FLOATS, "bool")
    for old, new in itertools.product(kinds, kinds):
        x = np.abs(numbers((4,), old).astype(np.float64)).astype(jnp.dtype(old))
        yield Case(f"convert {old} {new}", lambda x, t=new: lax.convert_element_type(x, t), (x,))
    for old, new in itertools.product((*INTEGERS, *FLOATS), (*INTEGERS, *FLOATS)):
        ratio = jnp.dtype(new).itemsize // jnp.dtype(old).itemsize
        x = numbers((3, 4) if ratio < 2 else (3, ratio), old)
        yield Case(f"bitcast {old} {new}", lambda x, t=new: lax.bitcast_convert_type(x, t), (x,))


def reductions() -> Iterator[Case]:
    names = "sum prod max min".split()
    for shape in (*SHAPES, *EMPTY):
        for axes, name in itertools.product(subsets(len(shape)), names):
            start = {} if name in ("sum", "prod") else {"initial": 1.5}
            for keep in (False, True):
                yield Case(
                    f"{name} {shape} {axes} {keep}",
                    lambda x, f=name, a=axes, k=keep, s=start: getattr(jnp, f)(
                        x, axis=a, keepdims=k, **s
                    ),
                    (numbers(shape),),
                )
        for axes, name in itertools.product(subsets(len(shape)), ("all", "any")):
            truth = numbers(shape, "bool")
            yield Case(
                f"{name} {shape} {axes}",
                lambda x, f=name, a=axes: getattr(jnp, f)(x, axis=a),
                (truth,),
            )
    odd = numbers((2, 3))
    odd[0, 1, 0], odd[1, 2, 1], odd[0, 0, 2], odd[1, 1, 2] = np.nan, np.inf, -0.0, -np.inf
    for name, axis in itertools.product((*names, "mean", "argmax", "argmin"), (None, 0, 1, -1)):
        yield Case(
            f"{name} odd {axis}", lambda x, f=name, a=axis: getattr(jnp, f)(x, axis=a), (odd,)
        )
        yield Case(
            f"nan{name} odd {axis}",
            lambda x, f=f"nan{name}", a=axis: getattr(jnp, f)(jnp.abs(x), axis=a),
            (np.where(np.isinf(odd), 0, odd).astype(np.float32),),
        )
    for dtype, name, axis in itertools.product((*INTEGERS, *FLOATS), names, (None, 0, 1)):
        yield Case(
            f"{name} {dtype} {axis}",
            lambda x, f=name, a=axis: getattr(jnp, f)(x, axis=a),
            (numbers((2, 3), dtype),),
        )
    for shape in SHAPES[1:]:
        for axis, name, index in itertools.product(
            range(len(shape)), ("argmax", "argmin"), INTEGERS
        ):
            yield Case(
                f"{name} {shape} {axis} {index}",
                lambda x, f=name, a=axis, i=index: getattr(lax, f)(x, a, jnp.dtype(i)),
                (numbers(shape),),
            )
    for dtype in (*INTEGERS, *FLOATS, "bool"):
        yield from table(
            f"places {dtype}",
            [
                lambda x: jnp.argmax(x),
                lambda x: jnp.argmin(x, axis=0, keepdims=True),
                lambda x: jnp.argmax(x, axis=-1),
            ],
            numbers((3, 4), dtype),
        )
    combine: dict[str, Any] = {"add": lax.add, "max": lax.max, "mul": lax.mul}
    for (name, operation), axes in itertools.product(combine.items(), subsets(2)):
        yield Case(
            f"reduce {name} {axes}",
            lambda x, f=operation, a=axes: lax.reduce(x, np.float32(1), f, a),
            (numbers((2, 3)),),
        )
    for dtype, axes in itertools.product(INTEGERS, subsets(2)):
        bits = numbers((2, 3), dtype)
        for name in ("bitwise_and", "bitwise_or", "bitwise_xor"):
            yield Case(
                f"reduce {name} {dtype} {axes}",
                lambda x, f=name, a=axes: lax.reduce(x, x.dtype.type(0), getattr(lax, f), a),
                (bits,),
            )
    for length in (1, 2, 15, 16, 17, 33, 100, 257):
        yield Case(
            f"several {length}",
            lambda x: (jnp.sum(x), jnp.max(x), jnp.min(x), jnp.sum(x * x), jnp.mean(x)),
            (numbers((length,)),),
        )


def moves() -> Iterator[Case]:
    for shape in (*SHAPES, *EMPTY):
        x, rank = numbers(shape), len(shape)
        for order in itertools.permutations(range(rank)):
            yield Case(f"transpose {shape} {order}", lambda x, o=order: jnp.transpose(x, o), (x,))
            yield Case(
                f"reshape {shape} {order}",
                lambda x, o=order: lax.reshape(x, (x.size,), o) if o else lax.reshape(x, (1,)),
                (x,),
            )
        for order in "CF":
            yield Case(f"ravel {shape} {order}", lambda x, o=order: jnp.ravel(x, order=o), (x,))
            sizes = {tuple(p) for p in itertools.permutations(shape)} | {(*shape, 1), (1, *shape)}
            for size in sorted(sizes):
                yield Case(
                    f"reshape {shape} {size} {order}",
                    lambda x, s=size, o=order: jnp.reshape(x, s, order=o),
                    (x,),
                )
        for axes in subsets(rank):
            yield from table(
                f"axes {shape} {axes}",
                [
                    lambda x, a=axes: jnp.flip(x, a),
                    lambda x, a=axes: jnp.expand_dims(x, a),
                    lambda x, a=axes: jnp.roll(x, (1,) * len(a), a),
                    lambda x, a=axes: jnp.roll(x, (-5,) * len(a), a),
                    lambda x, a=axes: jnp.squeeze(x, tuple(k for k in a if x.shape[k] == 1)),
                    lambda x, a=axes: jnp.sum(jnp.expand_dims(x, a), a),
                ],
                x,
            )
        for axis in range(-rank, rank):
            shared = jnp.asarray(numbers(shape, seed=4)[..., 0])
            yield from table(
                f"along {shape} {axis}",
                [
                    lambda x, a=axis: (
                        jnp.concatenate([x, x + 1, x[..., :0]], a)
                        if a in (-1, x.ndim - 1)
                        else jnp.concatenate([x, x + 1], a)
                    ),
                    lambda x, a=axis, y=shared: jnp.concatenate([y, x], a),
                    lambda x, a=axis, y=shared: jnp.stack([x, y, x], a),
                    lambda x, a=axis: jnp.repeat(x, 2, axis=a),
                    lambda x, a=axis: jnp.moveaxis(x, a, 0),
                    lambda x, a=axis: jnp.moveaxis(x, 0, a),
                    lambda x, a=axis: jnp.swapaxes(x, a, -1),
                    lambda x, a=axis: jnp.split(x, x.shape[a] or 1, a),
                    lambda x, a=axis: jnp.array_split(x, 2, a),
                    lambda x, a=axis: jnp.delete(x, 0, a),
                    lambda x, a=axis: jnp.insert(x, 0, 1.5, a),
                    lambda x, a=axis: jnp.append(x, x, a),
                    lambda x, a=axis: jnp.diff(x, axis=a),
                    lambda x, a=axis: lax.slice_in_dim(x, 0, None, 2, a),
                    lambda x, a=axis: lax.rev(x, (a % x.ndim,)),
                    lambda x, a=axis: jnp.unstack(x, axis=a),
                ],
                x,
            )
        yield from table(
            f"layout {shape}",
            [
                lambda x: jnp.broadcast_to(x, (2, *x.shape)),
                lambda x: jnp.broadcast_to(x, (0, *x.shape)),
                lambda x: jnp.tile(x, (2,) * x.ndim),
                lambda x: jnp.tile(x, (3, *(1,) * x.ndim)),
                lambda x: jnp.atleast_3d(x),
                lambda x: x[None, ..., None],
                lambda x: jnp.concatenate([x.ravel(), x.ravel()]),
                lambda x: jnp.hstack([x, x]),
                lambda x: jnp.vstack([x, x]),
                lambda x: jnp.dstack([x, x]),
                lambda x: jnp.roll(x, 2),
                lambda x: jnp.fliplr(x),
                lambda x: jnp.rot90(x, 3),
                lambda x: jnp.triu(x),
                lambda x: jnp.tril(x, -1),
                lambda x: jnp.diagonal(x),
                lambda x: jnp.trace(x),
                lambda x: jnp.diag(x),
                lambda x: x[..., ::2],
                lambda x: x[::-1],
                lambda x: x[..., 1:],
                lambda x: x[-2:],
                lambda x: x[:0],
                lambda x: lax.broadcast_in_dim(x, (*x.shape, 2), tuple(range(x.ndim))),
                lambda x: lax.optimization_barrier((x, x > 0, jnp.int8(3), x.size))[0],
                lambda x: lax.split(x, (x.shape[0],), 0),
            ],
            x,
        )
        low_high = itertools.product((-1, 0, 2), (-1, 0, 1), (0, 1, 2))
        for low, high, inner in low_high if rank else ():
            config = [(low, high, inner), *[(0, 1, 0)] * (rank - 1)]
            yield Case(
                f"pad {shape} {config}",
                lambda x, a, c=config: (lax.pad(x, np.float32(2), c), lax.pad(x, a, c)),
                (x, numbers((), seed=7)),
            )
    modes = "edge empty linear_ramp maximum mean median minimum reflect symmetric wrap".split()
    for shape, mode in itertools.product(SHAPES[1:], modes):
        if mode == "empty":
            continue  # holds anything
        width = [(1, 2), *[(0, 1)] * (len(shape) - 1)]
        width = [(min(a, s - 1), min(b, s - 1)) for (a, b), s in zip(width, shape)]
        yield Case(
            f"pad {shape} {mode}", lambda x, w=width, m=mode: jnp.pad(x, w, m), (numbers(shape),)
        )
    for mode in ("reflect", "symmetric"):
        yield Case(
            f"pad odd {mode}",
            lambda x, m=mode: jnp.pad(x, 2, m, reflect_type="odd"),
            (numbers((4,)),),
        )
    for shift_type in INTEGERS:
        shifts = np.array([0, 1, 5], shift_type)
        yield Case(f"roll by {shift_type}", lambda x, s: jnp.roll(x, s), (numbers((4,)), shifts))


def indices() -> Iterator[Case]:
    """Places of every integer width in arrays of every rank."""
    for dtype, shape in itertools.product(INTEGERS, SHAPES[1:]):
        x = numbers(shape)
        shared = jnp.asarray(x[..., 0])
        for place in places(dtype, shape[0]):
            start = [0] * (len(shape) - 1)
            functions = [
                lambda x, i: x[i],
                lambda x, i: lax.dynamic_index_in_dim(x, i, 0),
                lambda x, i: lax.dynamic_index_in_dim(x, i, -1, keepdims=False),
                lambda x, i: lax.dynamic_slice_in_dim(x, i, 1, 0),
                lambda x, i: lax.dynamic_slice_in_dim(x, i, x.shape[0], 0),
                lambda x, i: lax.dynamic_slice_in_dim(x, i, 0, 0),
                lambda x, i: lax.dynamic_slice(x, (i,) * x.ndim, (1,) * x.ndim),
                lambda x, i, y=shared: y[i] + x.sum(),
                lambda x, i, y=shared: lax.dynamic_slice_in_dim(y, i, 1, 0) + x.sum(),
                lambda x, i: lax.dynamic_update_slice_in_dim(x, x[:1] * 2, i, 0),
                lambda x, i, y=shared: lax.dynamic_update_slice_in_dim(y, x[:1] * 2, i, 0),
                lambda x, i, y=shared: lax.dynamic_update_slice_in_dim(x, y[:1] * 2, i, 0),
                lambda x, i: lax.dynamic_update_slice_in_dim(x, x, i, x.ndim - 1),
                lambda x, i, s=start: lax.dynamic_slice(
                    x, (i, *(i.dtype.type(0) for _ in s)), (1, *x.shape[1:])
                ),
            ]
            yield from table(f"index {dtype} {shape} {place}", functions, x, place)
    for dtype in INTEGERS:
        for length in (1, 4, 130, 300):
            for place in places(dtype, length):
                x = np.repeat(np.arange(length, dtype=np.float32)[:, None], WIDTH, 1)
                functions = [
                    lambda x, i: x[i],
                    lambda x, i: lax.dynamic_slice_in_dim(x, i, 1),
                    lambda x, i: jnp.take(x, i, mode="clip"),
                ]
                yield from table(f"long {dtype} {length} {place}", functions, x, place)
    for mode, dtype in itertools.product(("clip", "wrap", "fill", None), INTEGERS):
        for place, axis in itertools.product(places(dtype, 3), (0, 1, -1)):
            functions = [
                lambda x, i, m=mode, a=axis: jnp.take(x, i, a, mode=m),
                lambda x, i, m=mode, a=axis: jnp.take(x, jnp.stack([i, i]), a, mode=m),
                lambda x, i, m=mode, a=axis: jnp.take(x, jnp.stack([i])[:0], a, mode=m),
                lambda x, i, m=mode, a=axis: (
                    jnp.take_along_axis(x, i[None, None], a, mode=m)
                    if m != "wrap"
                    else jnp.take(x, i, mode=m)
                ),
            ]
            yield from table(
                f"take {mode} {dtype} {axis} {place}", functions, numbers((3, 3)), place
            )
    for mode, dtype in itertools.product(("clip", "fill", "drop", None), INTEGERS):
        for place in places(dtype, 3):
            functions = [
                lambda x, i, m=mode: x.at[i].get(mode=m),
                lambda x, i, m=mode: x.at[i].get(mode=m, fill_value=7),
                lambda x, i, m=mode: x.at[:, i].get(mode=m),
                lambda x, i, m=mode: x.at[i, i].get(mode=m),
                lambda x, i, m=mode: x.at[jnp.stack([i, i]), None].get(mode=m),
                lambda x, i, m=mode: x.at[..., i, 1:].get(mode=m),
            ]
            yield from table(f"get {mode} {dtype} {place}", functions, numbers((3, 3)), place)
    for dtype in INTEGERS:
        within = np.array([0, 2, 1], dtype)
        functions = [
            lambda x, i: x.at[i].get(mode="promise_in_bounds"),
            lambda x, i: x.at[i].set(2.0, mode="promise_in_bounds"),
            lambda x, i: x.at[i].get(indices_are_sorted=True, unique_indices=True),
            lambda x, i: x[i, i],
            lambda x, i: x[jnp.stack([i, i]), jnp.stack([i, i])],
            lambda x, i: jnp.choose(i, [x[0], x[1], x[2]], mode="clip"),
            lambda x, i: jnp.bincount(i[None], length=4),
            lambda x, i: jax.nn.one_hot(i, 3),
            lambda x, i: jnp.eye(3)[i],
            lambda x, i: jnp.arange(3) == i,
            lambda x, i: jnp.arange(3, dtype=i.dtype) == i,
            lambda x, i: jnp.unravel_index(i, (2, 2)),
            lambda x, i: jnp.ravel_multi_index((i, i), (3, 3), mode="clip"),
        ]
        yield from table(f"within {dtype}", functions, numbers((3, 3)), within)


def updates() -> Iterator[Case]:
    operations = "set add subtract multiply divide power min max".split()
    for mode, dtype, name in itertools.product(("clip", "drop", None), INTEGERS, operations):
        for place in places(dtype, 3):
            x = np.abs(numbers((3, 2))) + 1
            functions = [
                lambda x, i, f=name, m=mode: getattr(x.at[i], f)(2.0, mode=m),
                lambda x, i, f=name, m=mode: getattr(x.at[jnp.stack([i, i])], f)(x[:2] * 2, mode=m),
                lambda x, i, f=name, m=mode: getattr(x.at[:, i], f)(x[:, 0], mode=m),
            ]
            yield from table(f"{name} {mode} {dtype} {place}", functions, x, place)
    for dtype in (*INTEGERS, *FLOATS, "bool"):
        x = numbers((4,), dtype)
        functions = [
            lambda x: x.at[0].set(x[1]),
            lambda x: x.at[-1].set(x[1]),
            lambda x: x.at[jnp.array([0, 0, 2])].add(x[:3]) if x.dtype != bool else x,
            lambda x: x.at[1:3].set(x[:2]),
            lambda x: x.at[::2].max(x[1]) if x.dtype != bool else x,
            lambda x: x.at[:0].set(x[1]),
            lambda x: x.at[0].apply(lambda y: y * y) if x.dtype != bool else x,
        ]
        yield from table(f"at {dtype}", functions, x)
    for shape in EMPTY:
        functions = [
            lambda x: x.at[:0].set(1.0),
            lambda x: x[jnp.zeros((0,), int)],
            lambda x: jnp.take(x, jnp.zeros((0,), int), axis=-1),
            lambda x: x.at[jnp.zeros((0,), int)].add(1.0),
            lambda x: jnp.take(x, jnp.array([0]), axis=0, mode="fill"),
        ]
        yield from table(f"empty {shape}", functions, numbers(shape))


def orders() -> Iterator[Case]:
    odd = numbers((2, 3))
    odd[0, 1, 0], odd[1, 2, 1], odd[0, 0, 2], odd[0, 2, 2] = np.nan, np.inf, -0.0, 0.0
    given = [(f"{s}", numbers(s)) for s in (*SHAPES[1:], *EMPTY)] + [("odd", odd)]
    given += [(dtype, numbers((2, 3), dtype)) for dtype in (*INTEGERS, *FLOATS, "bool")]
    for name, x in given:
        for axis in range(-(x.ndim - 1), x.ndim - 1):
            flags = itertools.product((False, True), repeat=2)
            for stable, descending in flags:
                how = {"stable": stable, "descending": descending}
                yield Case(
                    f"sort {name} {axis} {how}",
                    lambda x, a=axis, h=how: jnp.sort(x, axis=a, **h),
                    (x,),
                )
                if stable:
                    yield Case(
                        f"argsort {name} {axis} {how}",
                        lambda x, a=axis, h=how: jnp.argsort(x, axis=a, **h),
                        (x,),
                    )
            if x.dtype == bool:
                continue
            for cumulate, reverse in itertools.product(
                ("cumsum", "cumprod", "cummax", "cummin", "cumlogsumexp"), (False, True)
            ):
                if axis < 0 or (cumulate == "cumlogsumexp" and x.dtype.kind != "f"):
                    continue
                yield Case(
                    f"{cumulate} {name} {axis} {reverse}",
                    lambda x, f=cumulate, a=axis, r=reverse: getattr(lax, f)(x, a, reverse=r),
                    (x,),
                )
            for count in (1, 2, 3, 4):
                keys = min(2, count)
                yield Case(
                    f"sort of {count} {name} {axis}",
                    lambda x, a=axis, c=count, k=keys: lax.sort(
                        (jnp.round(x / 2),) * (c - 1) + (x,), dimension=a, num_keys=k
                    ),
                    (x.astype(jnp.dtype("float32")),),
                )
        for most in range(1, 4):
            yield Case(f"top_k {name} {most}", lambda x, k=most: lax.top_k(x, k), (x,))
        if x.dtype == bool or not x.size:
            continue
        yield from table(
            f"ordered {name}",
            [
                lambda x: jnp.median(x),
                lambda x: jnp.unique(x, size=3, fill_value=0),
                lambda x: jnp.nonzero(x, size=2, fill_value=-1),
                lambda x: jnp.argwhere(x > 0, size=2),
                lambda x: jnp.flatnonzero(x, size=3),
                lambda x: jnp.searchsorted(jnp.sort(x.ravel()), x.ravel()[0]),
                lambda x: jnp.searchsorted(jnp.sort(x.ravel()), x.ravel(), side="right"),
                lambda x: jnp.digitize(x.astype(jnp.float32), jnp.arange(-1.0, 2.0)),
                lambda x: jnp.lexsort((x.ravel(), -x.ravel())),
                lambda x: jnp.partition(x.ravel(), 1)[1],
                lambda x: jnp.histogram(x.astype(jnp.float32), 4)[0],
                lambda x: jnp.ptp(x),
                lambda x: jnp.bincount(jnp.abs(x).astype(jnp.int32).ravel(), length=5),
                lambda x: jnp.count_nonzero(x),
            ],
            x,
        )
    for method in ("linear", "lower", "higher", "midpoint", "nearest"):
        for q in (0.0, 0.3, 1.0):
            yield Case(
                f"quantile {method} {q}",
                lambda x, q=q, m=method: jnp.quantile(x, q, method=m),
                (numbers((5,)),),
            )
    for method, side in itertools.product(
        ("scan", "scan_unrolled", "sort", "compare_all"), ("left", "right")
    ):
        yield Case(
            f"searchsorted {method} {side}",
            lambda x, m=method, s=side: jnp.searchsorted(jnp.sort(x), x, method=m, side=s),
            (numbers((5,)),),
        )


def products() -> Iterator[Case]:
    """Every choice of contracted and batched axes of two arrays up to rank 3."""
    for left, right in itertools.product(range(4), repeat=2):
        for taken in range(min(left, right) + 1):
            for pairs in itertools.combinations(
                itertools.product(range(left), range(right)), taken
            ):
                ours, theirs = [p[0] for p in pairs], [p[1] for p in pairs]
                if len(set(ours)) < taken or len(set(theirs)) < taken:
                    continue
                for cut in range(taken + 1):
                    names = ((ours[:cut], theirs[:cut]), (ours[cut:], theirs[cut:]))
                    x, y = numbers((2,) * left), numbers((2,) * right, seed=1)
                    shared = jnp.asarray(y[..., 0])
                    yield Case(
                        f"dot {left} {right} {names}",
                        lambda x, y, n=names, s=shared: (
                            lax.dot_general(x, y, n),
                            lax.dot_general(x, s, n),
                        ),
                        (x, y),
                    )
    for dtype in (*INTEGERS, *FLOATS):
        x, y = numbers((2, 3), dtype), numbers((3, 2), dtype, 1)
        functions = [
            lambda x, y: x @ y,
            lambda x, y: jnp.dot(x[0], y[:, 0]),
            lambda x, y: jnp.outer(x[0], y[0]),
            lambda x, y: jnp.inner(x, x),
            lambda x, y: jnp.vdot(x, y.T),
            lambda x, y: jnp.tensordot(x, y, 1),
            lambda x, y: jnp.tensordot(x, y, ((0, 1), (1, 0))),
            lambda x, y: jnp.kron(x, y),
            lambda x, y: jnp.einsum("ij,jk->ki", x, y),
            lambda x, y: jnp.einsum("ij,ji->", x, y),
            lambda x, y: jnp.einsum("ij->j", x),
            lambda x, y: x[:0] @ y,
            lambda x, y: x[:, :0] @ y[:0],
            lambda x, y: jnp.matvec(x, y[:, 0]),
            lambda x, y: jnp.convolve(x[0], y[:, 0]),
            lambda x, y: (
                lax.dot(x, y, preferred_element_type=jnp.dtype("float64"))
                if x.dtype.kind == "f"
                else x
            ),
        ]
        yield from table(f"product {dtype}", functions, x, y)


def control() -> Iterator[Case]:
    """Branches, loops, barriers and random numbers, with counters of every width."""
    for dtype in INTEGERS:
        for place in places(dtype, 3):
            functions = [
                lambda x, i: lax.switch(i, [lambda y: y, lambda y: y + 1, lambda y: -y], x),
                lambda x, i: lax.switch(i, [lambda y: y * 2, lambda y: y + 1], x),
                lambda x, i: lax.cond(i > 0, lambda y: y, lambda y: y * 2, x),
                lambda x, i: (
                    lax.fori_loop(0, 3, lambda k, y: y + i.astype(y.dtype), x)
                    if i.dtype.itemsize < 4
                    else x
                ),
                lambda x, i: lax.optimization_barrier((x, i, i > 0, i.dtype.type(3))),
                lambda x, i: lax.while_loop(lambda s: s < 3, lambda s: s + 1, jnp.clip(i, 0, 5)),
                lambda x, i: jax.random.key_data(
                    jax.random.fold_in(jax.random.key(3), i.astype(jnp.uint32))
                ),
            ]
            yield from table(f"branch {dtype} {place}", functions, numbers((2,)), place)
        counts = np.array([0, 3, 1], dtype)
        functions = [
            lambda x, n: lax.fori_loop(n.dtype.type(0), n, lambda k, y: y * 0.5 + 1, x),
            lambda x, n: lax.while_loop(lambda s: s[0] > 0, lambda s: (s[0] - 1, -s[1]), (n, x)),
            lambda x, n: lax.scan(lambda c, t: (c + n, t * 2), n, x),
            lambda x, n: lax.scan(lambda c, t: (c + n, c), n, x, reverse=True, unroll=2),
        ]
        yield from table(f"loop {dtype}", functions, numbers((2,)), counts)
    for shape in (*SHAPES, *EMPTY):
        functions = [
            lambda x, w: lax.cond(w, lambda y: y, lambda y: -y, x),
            lambda x, w: lax.cond(w, lambda y: y * 2, lambda y: y, x),
            lambda x, w: lax.cond(w, lambda: (x, w), lambda: (x + 1, ~w)),
            lambda x, w: lax.while_loop(lambda s: s[0], lambda s: (~s[0], s[1] * 2), (w, x)),
            lambda x, w: lax.scan(lambda c, _: (c * 0.5, c), x, None, length=2),
            lambda x, w: lax.scan(lambda c, _: (c * 0.5, c), x, None, length=0),
            lambda x, w: lax.scan(lambda c, t: (c, t), w, x) if x.ndim else x,
            lambda x, w: lax.map(lambda t: t + 1, x) if x.ndim else x,
            lambda x, w: lax.associative_scan(jnp.add, x) if x.ndim else x,
            lambda x, w: lax.optimization_barrier((x, w, x > 0, 3.0, x * 1j))[4].imag,
            lambda x, w: jax.checkpoint(lambda y: jnp.sin(y) * 2)(x),
            lambda x, w: jax.vmap(lambda y: y + 1)(x) if x.ndim else x,
            lambda x, w: jax.grad(lambda y: jnp.sum(y * y))(x),
            lambda x, w: jax.jit(lambda y: y + 1)(x),
        ]
        yield from table(f"flow {shape}", functions, numbers(shape), numbers((), "bool", 5))
    words = np.random.default_rng(0).integers(0, 2**32, (2, WIDTH)).astype(np.uint32)
    for shape, bits in itertools.product((*SHAPES, *EMPTY), (8, 16, 32, 64)):
        yield Case(
            f"bits {shape} {bits}",
            lambda w, s=shape, b=bits: jax.random.bits(jax.random.wrap_key_data(w), s, f"uint{b}"),
            (words,),
        )
    for dtype in INTEGERS:
        yield Case(
            f"randint {dtype}",
            lambda w, t=dtype: jax.random.randint(jax.random.wrap_key_data(w), (3,), 0, 9, t),
            (words,),
        )
    functions = [
        lambda w: jax.random.uniform(jax.random.wrap_key_data(w), (3,)),
        lambda w: jax.random.normal(jax.random.wrap_key_data(w)),
        lambda w: jax.random.bernoulli(jax.random.wrap_key_data(w), 0.3, (4,)),
        lambda w: jax.random.key_data(jax.random.split(jax.random.wrap_key_data(w), 3)),
        lambda w: jax.random.key_data(jax.random.split(jax.random.wrap_key_data(w), (2, 2))),
        lambda w: jax.random.permutation(jax.random.wrap_key_data(w), 5),
        lambda w: jax.random.choice(jax.random.wrap_key_data(w), 5, (3,)),
        lambda w: jax.random.categorical(jax.random.wrap_key_data(w), jnp.arange(4.0)),
        lambda w: jax.random.exponential(jax.random.wrap_key_data(w), (2,)),
        lambda w: jax.random.key_data(lax.optimization_barrier(jax.random.wrap_key_data(w))),
        lambda w: jax.random.key_data(
            lax.cond(w[0] > 2**31, lambda k: k, lambda k: k, jax.random.wrap_key_data(w))
        ),
    ]
    yield from table("random", functions, words)


PARTS: dict[str, Callable[[], Iterator[Case]]] = {
    "elementwise": elementwise,
    "reductions": reductions,
    "moves": moves,
    "indices": indices,
    "updates": updates,
    "orders": orders,
    "products": products,
    "control": control,
}


def by_vmap(function):
    return jax.vmap(function, in_axes=-1, out_axes=-1)


def can_be_mapped(case: Case) -> bool:
    """Whether JAX itself takes the case; some forms are not for every rank or dtype."""
    try:
        jax.eval_shape(by_vmap(case.function), *case.arguments)
    except Exception:
        return False
    return True


def differences(cases: list[Case]) -> list[str]:
    """Say where the lanes and `jax.vmap` differ; all cases go into one program."""
    found, traced = [], []
    for case in cases:
        try:
            jax.eval_shape(over_lanes(case.function), *case.arguments)
            traced.append(case)
        except Exception as error:
            found.append(f"{case.name}: {type(error).__name__}: {error}")

    def play(arguments):
        pairs = zip(traced, arguments, strict=True)
        return [(over_lanes(c.function)(*a), by_vmap(c.function)(*a)) for c, a in pairs]

    given = [case.arguments for case in traced]
    results = jax.jit(play, compiler_options=CHEAP)(given)
    for case, (ours, theirs) in zip(traced, results, strict=True):
        pairs = zip(jax.tree.leaves(ours), jax.tree.leaves(theirs), strict=True)
        if not all(agree(np.asarray(a), np.asarray(b)) for a, b in pairs):
            found.append(f"{case.name}: {ours} is not {theirs}")
    return found


def try_part(name: str, step: int = 1) -> tuple[int, list[str]]:
    """Try every ``step``-th case of a part; return how many JAX takes, and what differs."""
    cases = [case for case in itertools.islice(PARTS[name](), 0, None, step) if can_be_mapped(case)]
    found = []
    for first in range(0, len(cases), PER_PROGRAM):
        found += differences(cases[first : first + PER_PROGRAM])
        if len(cases) > PER_PROGRAM:
            jax.clear_caches()
    return len(cases), found


def main(wanted: list[str]) -> int:
    jax.config.update("jax_enable_x64", True)
    warnings.simplefilter("ignore")
    failed = 0
    for name in wanted or PARTS:
        number, found = try_part(name)
        left = sum(1 for _ in PARTS[name]()) - number
        print(f"{name}: {number} cases, {len(found)} differ; {left} that JAX refuses", flush=True)
        for line in found:
            print(" ".join(line.split())[:300], flush=True)
        failed += len(found)
    print("mapped as a whole by jax.vmap, for lack of a rule:", *sorted(transform._NAMED))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
