"""Several reductions in one pass, values made together, and operations that are done once."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from sfmab_jax.engine.lanes.jaxpr import tape_of
from sfmab_jax.engine.lanes.reductions import keep_alike
from sfmab_jax.engine.lanes.transform import over_lanes
from sfmab_jax.numerics.arms import pick
from sfmab_jax.numerics.hints import keep

WIDTH = 5


def operations(function, *args) -> list[str]:
    """Names of all operations, those of calls and loops included."""
    names = []

    def walk(jaxpr):
        for eqn in jaxpr.eqns:
            names.append(eqn.primitive.name)
            for value in jax.tree.leaves(eqn.params, is_leaf=lambda x: hasattr(x, "eqns")):
                inner = getattr(value, "jaxpr", value)
                if hasattr(inner, "eqns") and eqn.primitive.name != "reduce":
                    walk(inner)

    walk(jax.make_jaxpr(function)(*args).jaxpr)
    return names


def many(x, y):
    """Seven reductions of three kinds, two of which wait for another."""
    total = jnp.sum(x)
    centred = x - total
    return (
        total,
        jnp.max(x * y),
        jnp.min(y),
        jnp.sum(x * x),
        jnp.sum(jnp.where(y > 0, x, 0)),
        jnp.max(centred),
        jnp.sum(centred * centred),
    )


def numbers(num_arms, dtype):
    rng = np.random.default_rng(num_arms)
    return [jnp.asarray(rng.normal(size=(num_arms, WIDTH)).astype(dtype)) for _ in range(2)]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("num_arms", [1, 2, 10, 16, 17, 100, 131, 1000])
def test_equal_to_numpy(num_arms, dtype):
    x, y = numbers(num_arms, dtype)
    got = jax.jit(over_lanes(many))(x, y)
    x, y = (np.asarray(z, np.float64) for z in (x, y))
    total = x.sum(axis=0)
    wanted = (
        total,
        (x * y).max(axis=0),
        y.min(axis=0),
        (x * x).sum(axis=0),
        np.where(y > 0, x, 0).sum(axis=0),
        (x - total).max(axis=0),
        ((x - total) ** 2).sum(axis=0),
    )
    # Sums of up to 1000 squares of size up to 100^2, in blocks of at most 16, each rounded.
    tolerance = 100 * float(np.finfo(dtype).eps)
    for one, other in zip(got, wanted, strict=True):
        assert one.dtype == dtype
        np.testing.assert_allclose(one, other, rtol=tolerance, atol=tolerance)


def test_those_that_are_ready_together_go_in_one_pass():
    """Five are ready at first, three at a time; a hundred arms are ten rows, then ten numbers."""
    names = operations(over_lanes(many), *numbers(10, np.float32))
    assert names.count("reduce") == 3
    assert not {"reduce_sum", "reduce_max", "reduce_min"}.intersection(names)
    names = operations(over_lanes(many), *numbers(100, np.float32))
    assert names.count("reduce") == 6
    assert not {"reduce_sum", "reduce_max", "reduce_min"}.intersection(names)


def test_derivatives_pass_through():
    def value(mapped, x, y):
        return sum(jnp.sum(jnp.sin(out)) for out in mapped(x, y))

    x, y = numbers(10, np.float64)
    mapped = over_lanes(lambda x, y: keep(*many(x, y)))
    wanted = jax.vmap(many, in_axes=-1, out_axes=-1)
    slopes = [
        jax.jit(jax.grad(partial(value, function), argnums=(0, 1)))(x, y)
        for function in (mapped, wanted)
    ]
    for got, expected in zip(*slopes, strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32, np.uint32])
def test_made_together_is_what_it_was(dtype):
    values = [np.array([0, 1, 2, 3, 4], dtype), np.array([7, 0, 5, 1, 9], dtype)] * 3
    if np.issubdtype(dtype, np.floating):
        values[0] = np.array([-0.0, np.inf, -np.inf, np.nan, np.finfo(dtype).max], dtype)
    for one, other in zip(jax.jit(keep_alike)(*values), values, strict=True):
        assert one.dtype == dtype
        np.testing.assert_array_equal(one, other)
        np.testing.assert_array_equal(np.signbit(one), np.signbit(other))


def test_lanes_make_numbers_of_a_barrier_in_one_pass():
    def function(x, arm):
        a = jnp.exp(x[0])
        low, high, place = keep(a - 1, a + 1, arm)
        return low * high, place

    args = (numbers(3, np.float32)[0], jnp.arange(WIDTH, dtype=jnp.int32))
    got = jax.jit(over_lanes(function))(*args)
    wanted = jax.vmap(function, in_axes=-1, out_axes=-1)(*args)
    np.testing.assert_allclose(got[0], wanted[0], rtol=1e-6)
    np.testing.assert_array_equal(got[1], wanted[1])
    names = operations(over_lanes(function), *args)
    assert "optimization_barrier" not in names
    assert names.count("reduce") == 1


def test_the_same_is_done_once():
    def twice(x, arm):
        return jnp.sum(x * x) + pick(x, arm), jnp.sum(x * x) - pick(x, arm)

    tape, _, _ = tape_of(twice, jnp.ones(4), jnp.int32(2))
    names = [operation.eqn.primitive.name for operation in tape.operations]
    assert names.count("mul") == 1
    assert names.count("reduce_sum") == 2  # the sum and the pick


@jax.jit
def with_traced_numbers(a, b, x):
    """Sums with two traced numbers that the functions close over, one more call deep."""
    return over_lanes(lambda x: (jax.jit(lambda y: y + a)(x), jax.jit(lambda y: y + b)(x)))(x)


def test_traced_numbers_are_told_apart():
    x = numbers(3, np.float32)[0]
    first, second = with_traced_numbers(jnp.float32(1), jnp.float32(2), x)
    np.testing.assert_array_equal(first, x + jnp.float32(1))
    np.testing.assert_array_equal(second, x + jnp.float32(2))


def test_what_only_looks_the_same_is_done_twice():
    def function(x):
        rows, columns = jnp.sum(x, axis=0), jnp.sum(x, axis=1)
        return rows + 1, rows + 2, columns, lax.broadcast(x[0, 0], (2,)), x[0, 0] + 1.0

    tape, _, shapes = tape_of(function, jnp.ones((3, 3)))
    names = [operation.eqn.primitive.name for operation in tape.operations]
    assert names.count("reduce_sum") == 2
    assert names.count("add") == 3
    assert len(shapes) == 5
