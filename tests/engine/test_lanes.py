"""over_lanes(f) against jax.vmap(f, in_axes=-1, out_axes=-1), for many kinds of f."""

from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from lane_functions import CALLS, NUM_ARMS, OUTPUTS, WIDTH, ZOO, State, scan_with_everything

from sfmab_jax.engine.lanes.transform import over_lanes


def arguments():
    rng = np.random.default_rng(1)
    x = rng.normal(size=(NUM_ARMS, WIDTH))
    a = rng.normal(size=WIDTH)
    i = rng.permutation(WIDTH).astype(np.int32)
    return jnp.asarray(x), jnp.asarray(a), jnp.asarray(i)


def assert_same(got, wanted):
    """Equal trees, shapes and types; numbers to two roundings, of up to 12 added terms of size 3.

    Operations are the same, but sums over arms may be taken in another order. Integers and
    truth values are equal.
    """
    assert jax.tree.structure(got) == jax.tree.structure(wanted)
    for left, right in zip(jax.tree.leaves(got), jax.tree.leaves(wanted)):
        assert left.shape == right.shape
        assert left.dtype == right.dtype
        if jnp.issubdtype(right.dtype, jnp.floating):
            eps = float(np.finfo(right.dtype).eps)
            np.testing.assert_allclose(left, right, rtol=2 * eps, atol=4 * eps)
        else:
            np.testing.assert_array_equal(left, right)


def by_vmap(function):
    return jax.vmap(function, in_axes=-1, out_axes=-1)


@cache
def zoo_mapped(mapped):
    """The results of all functions by one transform, in one program."""
    return jax.jit(lambda *given: {name: mapped(f)(*given) for name, f in ZOO.items()})(
        *arguments()
    )


@pytest.mark.parametrize("name", ZOO)
def test_equal_to_vmap(name):
    assert_same(zoo_mapped(over_lanes)[name], zoo_mapped(by_vmap)[name])


@pytest.mark.parametrize("name", CALLS | OUTPUTS)
def test_one_operation_at_a_time(name):
    """Without jit, which is slow; where lanes come and go it is worth while."""
    assert_same(over_lanes(ZOO[name])(*arguments()), zoo_mapped(by_vmap)[name])


def test_single_operations_are_correctly_rounded():
    """Bit for bit those of NumPy. (jax.vmap's division by a number per lane need not be.)"""
    x, a, _ = arguments()
    for name in ("add", "multiply", "divide", "minimum"):
        got = over_lanes(getattr(jnp, name))(x, a)
        np.testing.assert_array_equal(got, getattr(np, name)(np.asarray(x), np.asarray(a)))


@pytest.mark.parametrize("width", [1, 2, 17])
def test_any_number_of_lanes(width):
    def function(tree, number):
        vector, arm = tree
        return {"picked": vector[arm] * number, "rest": jnp.delete(vector, 0) - number}

    rng = np.random.default_rng(width)
    tree = (rng.normal(size=(4, width)), rng.integers(0, 4, width))
    number = rng.normal(size=width)
    wanted = jax.jit(by_vmap(function))(tree, number)
    assert_same(jax.jit(over_lanes(function))(tree, number), wanted)


def test_arguments_may_be_pytrees_and_numpy_arrays():
    def function(state):
        return State(state.vector + state.number, state.nested["arm"], {"arm": state.vector[0]})

    x, a, i = map(np.asarray, arguments())
    state = State(x, a, {"arm": i})
    assert_same(over_lanes(function)(state), by_vmap(function)(state))


def test_lanes_do_not_leak_into_each_other():
    """Each lane has what the function gives for it alone."""
    x, a, i = arguments()
    got = over_lanes(scan_with_everything)(x, a, i)
    for lane in range(WIDTH):
        alone = scan_with_everything(x[:, lane], a[lane], i[lane])
        assert_same(jax.tree.map(lambda leaf, k=lane: leaf[..., k], got), alone)


def test_lanes_within_lanes():
    """The inner axis is the one before last."""
    rng = np.random.default_rng(2)
    x, a = rng.normal(size=(4, 3, 2)), rng.normal(size=(3, 2))

    def function(vector, number):
        return jnp.sum(vector * number), jnp.where(number > 0, vector, 0.0)

    got = jax.jit(over_lanes(over_lanes(function)))(x, a)
    wanted = jax.jit(by_vmap(by_vmap(function)))(x, a)
    assert_same(got, wanted)


def test_under_a_jitted_scan_over_rounds():
    """As games are played: a scan over rounds around the mapped function, inside jit."""

    def one_round(state, number):
        state = jnp.where(number > 0, state * 0.9, state + number)
        return state, jnp.argmin(state)

    def play(mapped):
        return jax.jit(lambda state, numbers: lax.scan(mapped, state, numbers))

    x, _, _ = arguments()
    numbers = jnp.asarray(np.random.default_rng(3).normal(size=(50, WIDTH)))
    wanted = play(by_vmap(one_round))(x, numbers)
    assert_same(play(over_lanes(one_round))(x, numbers), wanted)


def test_an_array_that_is_unpacked():
    """Rows of a vector and of a matrix; from jax 0.12 on an operation of its own."""
    x, _, _ = arguments()
    rows = jnp.stack([x[:2], 2 * x[:2]])

    def function(vector, matrix):
        first, second = vector
        upper, lower = matrix
        return first - second, upper * lower, [column * first for column in matrix.T]

    got = over_lanes(function)(x[:2], rows)
    assert_same(got, by_vmap(function)(x[:2], rows))
