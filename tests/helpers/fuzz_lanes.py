"""Random functions of one game, mapped by the lanes and by `jax.vmap`: they must agree.

    python tests/helpers/fuzz_lanes.py 5000            # so many functions, some minutes
    python tests/helpers/fuzz_lanes.py 1 --first 1234  # one of them again

Functions are made of all that `jnp` and `lax` offer to a part of a strategy: every integer width,
NaN, infinities and signed zeros, empty axes, ranks 0 to 4, negative and out-of-range indices, all
orders and modes, branches and loops. Some are put together into one program, which is compiled as
the engine compiles a round (in one piece, where that is allowed) in a process of its own, so that
a program that ends the process is found and named.
"""

import argparse
import os
import subprocess
import sys
import warnings

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from sfmab_jax.engine.lanes import compile_loop, over_lanes

WIDTH = 8
PER_PROGRAM = 20
PER_PROCESS = 200
# Printed before a program is compiled by `jax.vmap` alone.
REFERENCE = "reference"
INTEGERS = (np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32)
SPECIAL = (np.nan, np.inf, -np.inf, -0.0, 0.0)


def make_arguments(seed: int) -> tuple:
    """The state of a game: arrays [..., WIDTH] of many shapes and types, some with odd numbers."""
    rng = np.random.default_rng(seed)
    n = int(rng.choice([1, 2, 3, 5, 17, 40, 70, 300], p=[0.1, 0.2, 0.2, 0.2, 0.1, 0.1, 0.05, 0.05]))
    shapes = [(), (n,), (n,), (2, n), (1,), (2, 1, 3), (2, 1, 1, 2)]
    if not is_plain(seed):
        shapes.append((0, 3))
    floats = [rng.integers(-8, 9, (*shape, WIDTH)) / 4 for shape in shapes]
    if rng.random() < 0.3:
        odd = rng.random(floats[1].shape) < 0.2
        floats[1] = np.where(odd, rng.choice(SPECIAL, floats[1].shape), floats[1])
    values = [x.astype(np.float32) for x in floats]
    integers = INTEGERS[4:] if is_plain(seed) else rng.permutation(INTEGERS)[:3]
    for dtype in integers:
        kind = np.iinfo(dtype)
        small = rng.integers(max(kind.min, -n - 2), min(kind.max, n + 3), (WIDTH,))
        values.append(small.astype(dtype))
    values.append(rng.integers(-3, 200, (n, WIDTH)).astype(np.int32))
    values.append(rng.random((n, WIDTH)) < 0.5)
    values.append(rng.random((WIDTH,)) < 0.5)
    values.append(rng.integers(0, 2**32, (2, WIDTH)).astype(np.uint32))
    return tuple(values)


def is_plain(seed: int) -> bool:
    """Whether the program of this function has only what goes into one piece of machine code."""
    return seed // PER_PROGRAM % 2 == 0


def is_kind(x, kinds: str) -> bool:
    return jnp.asarray(x).dtype.kind in kinds


class Maker:
    """Chooses operations and their operands; the same choices whenever it is run again."""

    def __init__(self, seed: int, pool: list):
        self.rng = np.random.default_rng(seed)
        self.pool = pool
        self.plain = is_plain(seed)

    def pick(self, kinds: str = "fiub", least_rank: int = 0, nonempty: bool = False):
        fit = [
            x
            for x in self.pool
            if is_kind(x, kinds) and jnp.ndim(x) >= least_rank and (jnp.size(x) or not nonempty)
        ]
        return fit[self.rng.integers(len(fit))] if fit else None

    def like(self, x, kinds: str):
        """An operand that broadcasts with x."""
        fit = [
            y
            for y in self.pool
            if is_kind(y, kinds) and (jnp.shape(y) == jnp.shape(x) or not jnp.ndim(y))
        ]
        return fit[self.rng.integers(len(fit))] if fit else None

    def choose(self, *options):
        return options[self.rng.integers(len(options))]

    def axis(self, x):
        rank = jnp.ndim(x)
        return self.choose(None, (), *range(-rank, rank)) if rank else self.choose(None, ())


def unary(m: Maker):
    x = m.pick("f")
    tame = jnp.clip(x, -3, 3)
    return m.choose(
        lambda: jnp.abs(x), lambda: jnp.exp(tame), lambda: jnp.sqrt(jnp.abs(x)),
        lambda: jnp.log1p(jnp.abs(x)), lambda: jnp.floor(x), lambda: jnp.round(x),
        lambda: jnp.sign(x), lambda: -x, lambda: jnp.square(x), lambda: jnp.tanh(x),
        lambda: jnp.isnan(x), lambda: jnp.isfinite(x), lambda: lax.integer_pow(tame, m_power(m)),
        lambda: jnp.expm1(tame), lambda: lax.erf(tame), lambda: 1 / x, lambda: jnp.cbrt(x),
        lambda: jnp.nan_to_num(x), lambda: lax.reduce_precision(x, 8, 7), lambda: jnp.signbit(x),
        lambda: lax.stop_gradient(x), lambda: jnp.copysign(1.0, x), lambda: jax.nn.relu(x),
    )()  # fmt: skip


def m_power(m: Maker) -> int:
    return int(m.rng.integers(-3, 5))


def binary(m: Maker):
    x = m.pick("f")
    y = m.like(x, "f")
    return m.choose(
        lambda: x + y, lambda: x - y, lambda: x * y, lambda: x / y, lambda: jnp.maximum(x, y),
        lambda: jnp.minimum(x, y), lambda: jnp.arctan2(x, y), lambda: x < y, lambda: x == y,
        lambda: jnp.fmod(x, 1.5), lambda: jnp.where(x > y, x, y), lambda: x != y,
        lambda: jnp.clip(x, -1, y), lambda: jnp.power(jnp.abs(x) + 0.5, jnp.clip(y, -2, 2)),
        lambda: jnp.nextafter(x, y), lambda: jnp.hypot(x, y),
    )()  # fmt: skip


def integer(m: Maker):
    x = m.pick("iu")
    y = m.like(x, "iu")
    y = jnp.asarray(y).astype(jnp.asarray(x).dtype)
    return m.choose(
        lambda: x + y, lambda: x * y, lambda: x - y, lambda: x & y, lambda: x | y, lambda: x ^ y,
        lambda: x // jnp.where(y == 0, jnp.ones_like(y), y), lambda: x % jnp.ones_like(y),
        lambda: x >> 1, lambda: x << 1, lambda: ~x, lambda: lax.population_count(x),
        lambda: lax.clz(x), lambda: x < y, lambda: jnp.maximum(x, y), lambda: jnp.abs(x),
    )()  # fmt: skip


def boolean(m: Maker):
    x = m.pick("b")
    y = m.like(x, "b")
    return m.choose(lambda: x & y, lambda: x | y, lambda: x ^ y, lambda: ~x, lambda: x == y)()


def convert(m: Maker):
    x = m.pick("fiub")
    tame = jnp.clip(jnp.nan_to_num(x), 0, 100) if is_kind(x, "f") else x
    if m.plain:
        return jnp.asarray(tame).astype(m.choose(np.int32, np.uint32, np.float32, np.bool_))
    wanted = m.choose(*INTEGERS, np.float32, np.bool_, jnp.bfloat16, np.float16)
    return (
        jnp.asarray(tame)
        .astype(wanted)
        .astype(wanted if wanted not in (jnp.bfloat16, np.float16) else np.float32)
    )


def bitcast(m: Maker):
    x = m.pick("f")
    if jnp.asarray(x).dtype != jnp.float32:
        return None
    narrow = () if m.plain else (jnp.uint8, jnp.int16)
    return lax.bitcast_convert_type(x, m.choose(jnp.uint32, jnp.int32, *narrow))


def reduction(m: Maker):
    kind = m.choose("f", "f", "iu", "b")
    x = m.pick(kind, nonempty=True)
    axis, keep = m.axis(x), bool(m.rng.integers(2))
    if kind == "b":
        return m.choose(jnp.any, jnp.all)(x, axis=axis, keepdims=keep)
    return m.choose(jnp.sum, jnp.min, jnp.max, jnp.prod, jnp.mean)(x, axis=axis, keepdims=keep)


def empty_reduction(m: Maker):
    x = m.pick("f")
    return m.choose(
        lambda: jnp.sum(x[:0]) if jnp.ndim(x) else x,
        lambda: jnp.max(x, initial=-5.0), lambda: jnp.min(x, initial=5.0),
        lambda: jnp.prod(x), lambda: jnp.sum(x, axis=()),
        lambda: jnp.max(x, where=jnp.ones(jnp.shape(x), bool), initial=0.0),
    )()  # fmt: skip


def extreme_place(m: Maker):
    x = m.pick("f", 1, nonempty=True)
    axis = m.choose(None, *range(-jnp.ndim(x), jnp.ndim(x)))
    return m.choose(jnp.argmin, jnp.argmax)(x, axis=axis)


def layout(m: Maker):
    x = m.pick("fiub", 1)
    rank = jnp.ndim(x)
    order = m.choose("C", "F")
    axis = int(m.rng.integers(rank))
    return m.choose(
        lambda: jnp.ravel(x, order=order),
        lambda: jnp.reshape(x, (-1,), order=order) if x.size else x,
        lambda: jnp.reshape(x, (x.shape[-1], *x.shape[:-1]), order=order), lambda: jnp.transpose(x),
        lambda: jnp.expand_dims(x, axis), lambda: jnp.squeeze(x), lambda: jnp.flip(x, axis),
        lambda: jnp.roll(x, 1, axis), lambda: jnp.tile(x, 2), lambda: jnp.repeat(x, 2, axis=axis),
        lambda: jnp.broadcast_to(x, (2, *x.shape)), lambda: jnp.stack([x, x], axis),
        lambda: jnp.concatenate([x, x], axis), lambda: jnp.moveaxis(x, axis, 0),
        lambda: jnp.pad(x, 1) if not is_kind(x, "b") else x,
        lambda: jnp.pad(x, [(0, 1)] * rank, mode=m.choose("edge", "wrap")) if x.size else x,
        lambda: lax.pad(x, x.dtype.type(0), [(-int(len(x) > 1), 1, 1), *[(0, 0, 0)] * (rank - 1)]),
        lambda: x[::2], lambda: x[::-1], lambda: x[..., 1:], lambda: x[:0], lambda: x[None],
    )()  # fmt: skip


def index(m: Maker):
    x = m.pick("fiub", 1, nonempty=True)
    i = [y for y in m.pool if is_kind(y, "iu") and not jnp.ndim(y)]
    i = i[m.rng.integers(len(i))]
    mode = m.choose("clip", "wrap", "fill")
    return m.choose(
        lambda: x[i], lambda: jnp.take(x, i, axis=0, mode=mode),
        lambda: jnp.take(x, jnp.stack([i, i]), axis=-1, mode=mode),
        lambda: lax.dynamic_index_in_dim(x, i, 0), lambda: lax.dynamic_slice_in_dim(x, i, 1, 0),
        lambda: lax.dynamic_slice_in_dim(x, i, x.shape[0], 0),
        lambda: x.at[i].get(mode="fill"),
        lambda: jnp.take_along_axis(x, jnp.zeros((1,) * x.ndim, int), 0),
    )()  # fmt: skip


def update(m: Maker):
    x = m.pick("fi", 1, nonempty=True)
    i = [y for y in m.pool if is_kind(y, "iu") and not jnp.ndim(y)]
    i = i[m.rng.integers(len(i))]
    new = jnp.asarray(m.choose(1, 2)).astype(x.dtype)
    mode = m.choose("drop", "clip", None)
    row = jnp.broadcast_to(new, (1, *x.shape[1:]))
    return m.choose(
        lambda: x.at[i].set(new, mode=mode), lambda: x.at[i].add(new, mode=mode),
        lambda: x.at[i].max(new, mode=mode), lambda: x.at[i].min(new, mode=mode),
        lambda: x.at[i].multiply(new, mode=mode), lambda: x.at[0].set(new),
        lambda: lax.dynamic_update_slice_in_dim(x, row, i, 0),
    )()  # fmt: skip


def order(m: Maker):
    x = m.pick("fi", 1, nonempty=True)
    axis = int(m.rng.integers(jnp.ndim(x)))
    return m.choose(
        lambda: jnp.sort(x, axis), lambda: jnp.argsort(x, axis), lambda: jnp.cumsum(x, axis),
        lambda: lax.cummax(x, axis), lambda: lax.cummin(x, axis, reverse=True),
        lambda: jnp.cumprod(x, axis), lambda: lax.top_k(x, 1)[0], lambda: jnp.median(x),
        lambda: lax.sort((x, x), num_keys=2)[1], lambda: jnp.diff(x, axis=axis),
    )()  # fmt: skip


def product(m: Maker):
    x = jnp.nan_to_num(jnp.clip(m.pick("f", 1), -4, 4))
    return m.choose(
        lambda: jnp.dot(x.ravel(), x.ravel()), lambda: jnp.outer(x.ravel()[:3], x.ravel()[:3]),
        lambda: jnp.einsum("i,i->i", x.ravel(), x.ravel()),
        lambda: x @ jnp.swapaxes(x, -1, -2) if x.ndim > 1 else x,
        lambda: jnp.linalg.norm(x),
        lambda: jax.nn.softmax(x, axis=-1),
        lambda: jax.nn.logsumexp(x) if x.size else x,
        lambda: jnp.searchsorted(jnp.arange(5.0), x),
        lambda: jax.nn.one_hot(jnp.int32(2), 4) * x.sum(),
    )()  # fmt: skip


def branch(m: Maker):
    which = m.pick("b")
    which = which if not jnp.ndim(which) else jnp.any(which)
    x = m.pick("f")
    y = m.pick("f")
    return m.choose(
        lambda: lax.cond(which, lambda: x * 2, lambda: x),
        lambda: lax.cond(which, lambda: x, lambda: -x),
        lambda: lax.cond(which, lambda a: (a, jnp.sum(a)), lambda a: (a * 0, jnp.sum(y)), x)[1],
        lambda: lax.switch(jnp.int32(jnp.sum(which) + 1), [lambda: x, lambda: x + 1, lambda: -x]),
        lambda: lax.select(jnp.broadcast_to(which, jnp.shape(x)), x, -x),
        lambda: lax.cond(which, lambda: jnp.sum(y * 3) + x, lambda: x),
    )()  # fmt: skip


def loop(m: Maker):
    x = m.pick("f")
    small = jnp.nan_to_num(jnp.clip(jnp.sum(x), 0, 5)) if jnp.size(x) else jnp.float32(2)

    def grow(carry):
        return carry[0] + 1, carry[1] * 0.5 + x

    return m.choose(
        lambda: lax.while_loop(lambda c: c[0] < small, grow, (jnp.zeros_like(small), x))[1],
        lambda: lax.fori_loop(0, 3, lambda i, c: c * 0.5 + i, x),
        lambda: lax.scan(lambda c, _: (c * 0.5, c), x, None, length=3)[1],
        lambda: lax.scan(lambda c, t: (c + t, c), x * 0, jnp.stack([x, x]), reverse=True)[0],
        lambda: lax.map(lambda t: t + 1, jnp.stack([x, x])),
        lambda: lax.while_loop(lambda c: c < 3, lambda c: c + 1, jnp.float32(0)) + x,
    )()  # fmt: skip


def barrier(m: Maker):
    x, y, z = m.pick("f"), m.pick("b"), m.pick("iu")
    kept = lax.optimization_barrier((x * 2, y, z, 3.0, x + 1))
    return kept[m.rng.integers(5)]


def random_numbers(m: Maker):
    words = next(x for x in m.pool if jnp.shape(x) == (2,) and x.dtype == jnp.uint32)
    key = jax.random.wrap_key_data(words, impl="threefry2x32")
    return m.choose(
        lambda: jax.random.uniform(key, (3,)), lambda: jax.random.bits(key, (2,)),
        lambda: jax.random.key_data(jax.random.fold_in(key, 7)),
        lambda: jax.random.randint(key, (), 0, 9), lambda: jax.random.bernoulli(key, 0.3, (4,)),
        lambda: jax.random.key_data(jax.random.split(key)),
    )()  # fmt: skip


def complex_numbers(m: Maker):
    x = jnp.nan_to_num(m.pick("f"))
    return m.choose(
        lambda: jnp.abs(x + 2j * x), lambda: jnp.real(jnp.exp(1j * jnp.clip(x, -3, 3))),
        lambda: jnp.imag(lax.optimization_barrier(x * 1j)),
    )()  # fmt: skip


# Operations that never go into one piece of machine code.
ODD = (extreme_place, empty_reduction, order, product, random_numbers, complex_numbers)
OPERATIONS = (
    unary, unary, binary, binary, binary, integer, integer, boolean, convert, bitcast, reduction,
    reduction, empty_reduction, extreme_place, layout, layout, layout, index, index, update, order,
    product, branch, branch, loop, loop, barrier, random_numbers, complex_numbers,
)  # fmt: skip


def one_game(seed: int, *arguments):
    """A random function of the state of one game: the results of some operations."""
    maker = Maker(seed, list(arguments))
    for _ in range(int(maker.rng.integers(2, 8))):
        operation = OPERATIONS[maker.rng.integers(len(OPERATIONS))]
        result = None if maker.plain and operation in ODD else operation(maker)
        if result is not None:
            maker.pool.append(jnp.asarray(result))
    return tuple(maker.pool[len(arguments) :])


def differences(seeds: range) -> list[str]:
    """Say where the lanes and `jax.vmap` differ, for functions that go into one program."""
    arguments = make_arguments(seeds[0])

    def play(mapped, given):
        def step(carry, _):
            # The state goes around, so that nothing is computed before the loop.
            return carry, [mapped(lambda *args, s=s: one_game(s, *args))(*carry) for s in seeds]

        return lax.scan(step, given, None, length=2)[1]

    def by_vmap(function):
        return jax.vmap(function, in_axes=-1, out_axes=-1)

    cheap = {"xla_backend_optimization_level": 0}
    print(REFERENCE, flush=True)
    wanted = jax.jit(lambda given: play(by_vmap, given), compiler_options=cheap)(arguments)
    print("lanes", flush=True)
    program_for = compile_loop(lambda given: play(over_lanes, given), "cpu")
    got = program_for(arguments)(arguments)
    found = []
    for seed, ours, theirs in zip(seeds, got, wanted, strict=True):
        for place, (a, b) in enumerate(zip(ours, theirs, strict=True)):
            if not agree(np.asarray(a), np.asarray(b)):
                found.append(f"function {seed}, result {place}: {a.dtype}{list(a.shape)} differs")
    return found


def agree(a: np.ndarray, b: np.ndarray) -> bool:
    """Equal up to rounding: to 1e-4 of the number, or of the largest beside it."""
    if a.dtype != b.dtype or a.shape != b.shape:
        return False
    if not jnp.issubdtype(a.dtype, jnp.floating):
        return bool(np.array_equal(a, b))
    a, b = a.astype(np.float64), b.astype(np.float64)
    if not np.array_equal(np.signbit(a[a == 0]), np.signbit(b[a == 0])) and np.array_equal(
        a == 0, b == 0
    ):
        return False
    largest = np.abs(b[np.isfinite(b)]).max(initial=0)
    return np.allclose(a, b, rtol=1e-4, atol=1e-5 * largest, equal_nan=True)


def run_here(first: int, number: int) -> int:
    """Compare in this process; print each program before it is tried, so that an abort is named."""
    warnings.simplefilter("ignore")
    failed = 0
    for start in range(first, first + number, PER_PROGRAM):
        seeds = range(start, min(start + PER_PROGRAM, first + number))
        print(f"functions {seeds[0]} to {seeds[-1]}", flush=True)
        for line in differences(seeds):
            print(f"DIFFERS {line}", flush=True)
            failed += 1
        jax.clear_caches()
    return failed


def run_apart(first: int, number: int) -> int:
    """Compare in a process of its own; return how often the lanes differed or ended it.

    Where XLA ends the process over the program of `jax.vmap`, which has all functions of a program
    in one, these functions are tried one by one, and what comes after them goes on.
    """
    command = [sys.executable, __file__, str(number), "--first", str(first), "--here"]
    done = subprocess.run(command, capture_output=True, text=True, env=os.environ)
    lines = done.stdout.splitlines()
    differs = [line for line in lines if line.startswith("DIFFERS")]
    print(*differs, sep="\n", end="\n" if differs else "")
    if done.returncode == 0 or (done.returncode == 1 and differs):
        return len(differs)
    program = next((line for line in reversed(lines) if line.startswith("functions")), "")
    print(f"ENDED with {done.returncode} at the {' '.join(lines[-1:])} of {program}")
    if not lines or lines[-1] != REFERENCE:
        print(*done.stderr.strip().splitlines()[-4:], sep="\n")
        return len(differs) + 1
    if number == 1:
        print("left out: plain jax.vmap ends the process")
        return 0
    start = int(program.split()[1])
    after = min(start + PER_PROGRAM, first + number)
    failed = len(differs) + sum(run_apart(one, 1) for one in range(start, after))
    return failed + (run_apart(after, first + number - after) if after < first + number else 0)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("number", type=int, help="how many functions")
    parser.add_argument("--first", type=int, default=0, help="the number of the first")
    parser.add_argument("--here", action="store_true", help="in this process")
    given = parser.parse_args()
    if given.here:
        return 1 if run_here(given.first, given.number) else 0
    last = given.first + given.number
    failed = 0
    for start in range(given.first, last, PER_PROCESS):
        failed += run_apart(start, min(PER_PROCESS, last - start))
        tried = min(start + PER_PROCESS, last) - given.first
        print(f"{tried} of {given.number} functions tried", flush=True)
    print("all agree" if not failed else f"{failed} differences or ends of a process")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
