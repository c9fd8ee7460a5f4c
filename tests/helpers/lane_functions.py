"""Functions of many kinds of one lane: a vector [NUM_ARMS], a number and an arm."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

WIDTH = 5
NUM_ARMS = 6


class State(NamedTuple):
    vector: jax.Array
    number: jax.Array
    nested: dict


@jax.custom_jvp
def doubled(x):
    return 2 * jnp.sin(x)


@doubled.defjvp
def _doubled_jvp(primals, tangents):
    return doubled(*primals), 2 * jnp.cos(primals[0]) * tangents[0]


@jax.custom_vjp
def halved(x):
    return jnp.tanh(x) / 2


halved.defvjp(lambda x: (halved(x), x), lambda x, g: ((1 - jnp.tanh(x) ** 2) / 2 * g,))

TABLE = np.linspace(-1, 1, NUM_ARMS)
MATRIX = np.random.default_rng(0).normal(size=(NUM_ARMS, NUM_ARMS))


def scan_with_everything(x, a, i):
    """A scan with shared and mapped constants, carries, inputs and outputs."""

    def step(carry, inputs):
        total, count, fixed = carry
        item, shared = inputs
        total = total * a + item * shared + jnp.sum(x)
        return (total, count + 1, fixed), (total, shared, jnp.int32(3))

    start = (jnp.zeros((), x.dtype), jnp.int32(0), jnp.asarray(TABLE))
    return lax.scan(step, start, (x, jnp.asarray(TABLE)))


def scan_in_reverse(x, a, i):
    return lax.scan(lambda c, item: (c * a + item, c), a, x, reverse=True, unroll=2)


def scan_without_inputs(x, a, i):
    return lax.scan(lambda c, _: (c * 0.5 + x, c[0]), x, None, length=4)


def scan_of_a_shared_carry(x, a, i):
    """The carry begins without lanes and gets them in the first step."""
    return lax.scan(lambda c, item: (c + item, None), jnp.float64(0), x)[0]


def fori_loop(x, a, i):
    return lax.fori_loop(0, 4, lambda k, v: v * a + x[0] * k, x)


def fori_loop_to_a_mapped_end(x, a, i):
    return lax.fori_loop(0, i, lambda k, v: v + x * a, x)


def while_loop(x, a, i):
    """Each lane stops in its own time."""
    start = (jnp.abs(a) + 0.1, jnp.int32(0))
    return lax.while_loop(lambda s: s[0] < 10, lambda s: (s[0] * 2, s[1] + 1), start)


def nested_jit(x, a, i):
    inner = jax.jit(lambda y, b: (y * b, jax.jit(jnp.sum)(y)))
    return inner(x, a), inner(x + 1, a)


def nested_vmap(x, a, i):
    return jax.vmap(lambda row, b: jnp.dot(row, x) + b * a)(jnp.asarray(MATRIX), x)


def differentiated(x, a, i):
    return jax.grad(lambda y: jnp.sum(doubled(y) * halved(y) ** 2) * a)(x)


def by_key(x, a, i):
    """Random numbers from a key made of the lane's own number."""
    return jax.random.normal(jax.random.key(i), (3,))


ELEMENTWISE = {
    "number times vector": lambda x, a, i: x * a + 1,
    "vector plus literal": lambda x, a, i: (2 - x) / 3,
    "shared vector": lambda x, a, i: x * jnp.asarray(TABLE) - a,
    "shared vector and number": lambda x, a, i: jnp.asarray(TABLE) * a,
    "functions": lambda x, a, i: jnp.exp(-x) * jnp.log1p(x * x) + jnp.sqrt(jnp.abs(a)) ** 1.5,
    "powers": lambda x, a, i: (x**3, jnp.abs(x) ** a, x**-2, 2.0**x),
    "clip": lambda x, a, i: jnp.clip(x, -0.5, jnp.abs(a)),
    "clamp by numbers": lambda x, a, i: lax.clamp(jnp.float64(-0.1), x, jnp.float64(0.3)),
    "minimum": lambda x, a, i: jnp.minimum(x, a) + jnp.maximum(a, 0.0),
    "casts": lambda x, a, i: (x.astype(jnp.float32), i.astype(x.dtype) * x, x > a),
    "bits": lambda x, a, i: lax.bitcast_convert_type(x, jnp.uint64) >> 12,
    "bits of half the width": lambda x, a, i: lax.bitcast_convert_type(x, jnp.uint32),
    "bits of twice the width": lambda x, a, i: lax.bitcast_convert_type(
        x.astype(jnp.float32).reshape(3, 2), jnp.uint64
    ),
    "integers": lambda x, a, i: (i * 3 % 4, i << 2, -i, i & 1, i ^ 5),
    "where": lambda x, a, i: jnp.where(x > 0, x, -1.0),
    "where with a number for predicate": lambda x, a, i: jnp.where(a > 0, x, 2 * x),
    "where with shared cases": lambda x, a, i: jnp.where(i > 2, jnp.asarray(TABLE), 0.0),
    "where with a shared predicate": lambda x, a, i: jnp.where(jnp.asarray(TABLE) > 0, x, a),
    "finite": lambda x, a, i: jnp.isfinite(x / (a - a[...])),
}
REDUCTIONS = {
    "sum": lambda x, a, i: jnp.sum(x) * a,
    "sums of a matrix": lambda x, a, i: [
        jnp.sum(jnp.outer(x, jnp.asarray(TABLE)), axis=k) for k in (0, 1)
    ],
    "mean and variance": lambda x, a, i: (jnp.mean(x), jnp.var(x)),
    "extremes": lambda x, a, i: (jnp.max(x), jnp.min(x), jnp.prod(x)),
    "any and all": lambda x, a, i: (jnp.any(x > a), jnp.all(x < a)),
    "argmin and argmax": lambda x, a, i: (jnp.argmin(x), jnp.argmax(x)),
    "argmax along an axis": lambda x, a, i: jnp.argmax(x.reshape(2, 3), axis=1),
    "logsumexp": lambda x, a, i: jax.nn.logsumexp(x * a),
    "dot": lambda x, a, i: (jnp.dot(x, x), jnp.asarray(MATRIX) @ x, jnp.outer(x, x)),
}
SHAPES = {
    "slices": lambda x, a, i: (x[1:4], x[::2], x[-1], x[:0]),
    "reversed": lambda x, a, i: x[::-1],
    "concatenate": lambda x, a, i: jnp.concatenate([x, jnp.asarray(TABLE), a[None]]),
    "stack": lambda x, a, i: jnp.stack([x, jnp.asarray(TABLE), x * a]),
    "stack on the last axis": lambda x, a, i: jnp.stack([x, x * a], axis=-1),
    "pad": lambda x, a, i: jnp.pad(x, (1, 2)),
    "pad with a lane's number": lambda x, a, i: lax.pad(x, a, [(1, 1, 1)]),
    "pad shared with a lane's number": lambda x, a, i: lax.pad(jnp.asarray(TABLE), a, [(1, 0, 0)]),
    "reshape": lambda x, a, i: (x.reshape(2, 3), x.reshape(3, 2).ravel(), x.reshape(1, 6, 1)),
    "transpose": lambda x, a, i: x.reshape(2, 3).T * jnp.asarray(TABLE).reshape(3, 2),
    "three axes": lambda x, a, i: jnp.transpose(x.reshape(1, 2, 3), (2, 0, 1)),
    "squeeze": lambda x, a, i: jnp.squeeze(x.reshape(1, 6, 1), axis=(0, 2)),
    "broadcast": lambda x, a, i: (jnp.broadcast_to(x, (2, 6)), jnp.broadcast_to(a, (3,))),
    "broadcast in the middle": lambda x, a, i: jnp.broadcast_to(x.reshape(2, 1, 3), (2, 4, 3)),
    "tile": lambda x, a, i: jnp.tile(x, 2),
    "iota": lambda x, a, i: jnp.arange(NUM_ARMS, dtype=i.dtype) == i,
    "split": lambda x, a, i: jnp.split(x, 3),
}
ORDERS = {
    "sort": lambda x, a, i: jnp.sort(x),
    "argsort": lambda x, a, i: jnp.argsort(x),
    "sort of pairs": lambda x, a, i: lax.sort((x, jnp.asarray(TABLE)), num_keys=1),
    "top k": lambda x, a, i: lax.top_k(x, 2),
    "cumsum": lambda x, a, i: (jnp.cumsum(x), jnp.cumsum(x.reshape(2, 3), axis=0)),
    "cumulative extremes": lambda x, a, i: (lax.cummax(x), lax.cumprod(x, reverse=True)),
    "gather an arm": lambda x, a, i: x[i],
    "gather from a shared vector": lambda x, a, i: jnp.asarray(TABLE)[i],
    "gather several": lambda x, a, i: x[jnp.array([3, 0, 3])],
    "set an arm": lambda x, a, i: x.at[i].set(a),
    "add to an arm of a shared vector": lambda x, a, i: jnp.asarray(TABLE).at[i].add(a),
    "dynamic slice": lambda x, a, i: lax.dynamic_slice(x, (i,), (2,)),
    "dynamic slice of a shared place": lambda x, a, i: lax.dynamic_slice(
        jnp.reshape(x, (3, 2)), (jnp.argmax(jnp.asarray(TABLE)[:2]), 0), (2, 2)
    ),
    "dynamic update": lambda x, a, i: lax.dynamic_update_slice(x, jnp.stack([a, a]), (i,)),
    "dynamic update of a shared place": lambda x, a, i: (
        lax.dynamic_update_slice(x, jnp.asarray(TABLE)[:2], (jnp.argmax(jnp.asarray(TABLE)),)),
        lax.dynamic_update_slice(jnp.asarray(TABLE), a[None], (jnp.argmin(jnp.asarray(TABLE)),)),
    ),
    "searchsorted": lambda x, a, i: jnp.searchsorted(jnp.asarray(TABLE), a),
}
CALLS = {
    "custom_jvp": lambda x, a, i: doubled(x) * doubled(a),
    "custom_vjp": lambda x, a, i: halved(x) + halved(a),
    "nested jit": nested_jit,
    "nested vmap": nested_vmap,
    "derivative": differentiated,
    "checkpoint": lambda x, a, i: jax.checkpoint(lambda y: jnp.sin(y) * a)(x),
    "scan": scan_with_everything,
    "scan in reverse": scan_in_reverse,
    "scan without inputs": scan_without_inputs,
    "scan of a shared carry": scan_of_a_shared_carry,
    "fori_loop": fori_loop,
    "fori_loop to a mapped end": fori_loop_to_a_mapped_end,
    "while_loop": while_loop,
    "cond": lambda x, a, i: lax.cond(a > 0, lambda y: y * 2, lambda y: y - a, x),
    "cond with a shared predicate": lambda x, a, i: lax.cond(
        jnp.asarray(TABLE)[0] > 0, lambda y: y * 2, lambda y: y - a, x
    ),
    "switch": lambda x, a, i: lax.switch(i % 3, [jnp.sin, jnp.cos, jnp.tanh], x),
    "random numbers": by_key,
}
OUTPUTS = {
    "an argument itself": lambda x, a, i: (x, a, i, x),
    "constants": lambda x, a, i: (jnp.asarray(TABLE), jnp.float64(2), jnp.zeros((2, 3))),
    "a Python number": lambda x, a, i: (3.0, x),
    "a constant computed": lambda x, a, i: jnp.cumsum(jnp.asarray(TABLE)) @ jnp.asarray(MATRIX),
    "a pytree": lambda x, a, i: State(x * a, a, {"arm": i, "none": None, "pair": [a, (x,)]}),
    "nothing": lambda x, a, i: (),
}
ZOO = ELEMENTWISE | REDUCTIONS | SHAPES | ORDERS | CALLS | OUTPUTS
