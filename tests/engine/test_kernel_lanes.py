"""Operations inside a kernel, with rubbish in the spare rows, against `jax.vmap`."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from sfmab_jax.engine.lanes.jaxpr import tape_of
from sfmab_jax.engine.layout import padded_shape
from sfmab_jax.engine.pallas.hoist import hoist
from sfmab_jax.engine.pallas.interpreter import run_tape, unsupported_operation
from sfmab_jax.engine.pallas.rules import TPU_FUNCTIONS

ARMS, LANES = 5, 3


def running(x, y):
    """A scan with rows in and out."""
    total, sums = lax.scan(lambda s, row: (s + row, s * y), jnp.zeros_like(y), x)
    return sums, total


def grouped(x, y):
    """As the draw of an arm: filled up, in groups, side by side."""
    members = jnp.pad(x, (0, 3), constant_values=2.0).reshape(4, 2).T
    return lax.scan(lambda s, row: (s + row, None), jnp.zeros(4, x.dtype), members)[0] + y


def until(x, y):
    """A loop that ends at another step in each lane, with a truth value carried."""

    def step(carry):
        v, _, steps = carry
        return v * 2 + jnp.max(x), v < 40, steps + 1

    return lax.while_loop(lambda carry: carry[1], step, (y, y > 0.6, jnp.int32(0)))


FUNCTIONS = {
    "elementwise": lambda x, y: jnp.where(x > y, jnp.exp(x) / y, -x),
    "sum": lambda x, y: jnp.sum(x) * y,
    "extremes": lambda x, y: jnp.max(x) - jnp.min(x * y),
    "truth": lambda x, y: (jnp.any(x > y), jnp.all(x > -9.0), x < y),
    "places": lambda x, y: (jnp.argmin(x), jnp.argmax(x * y), jnp.arange(ARMS) * 2),
    "one row": lambda x, y: x[3] + y,
    "a row by number": lambda x, y: x[(y * 2).astype(jnp.int32)],
    "joined": lambda x, y: jnp.stack([y, jnp.sum(x), 2 * y]),
    "running": running,
    "grouped": grouped,
    "loop": lambda x, y: lax.fori_loop(0, 4, lambda i, v: v + jnp.sum(x / v), y),
    "until": until,
    "without gradient": lambda x, y: lax.stop_gradient(x) * y,
    "called": lambda x, y: jax.jit(lambda v: jnp.clip(v, -1.0, 1.0))(x) * y,
    "two axes": lambda x, y: jnp.sum(x[:, None] * jnp.arange(3.0, dtype=x.dtype)[None] * y, axis=0),
}


def through_a_tape(function, x, y):
    """``function`` over the lanes of x [n, W] and y [W], as a kernel would."""
    game = [jax.ShapeDtypeStruct(value.shape[:-1], value.dtype) for value in (x, y)]
    tape, outside, shapes = tape_of(function, *game)
    tape, shared = hoist(tape, outside)
    assert unsupported_operation(tape.operations) is None
    spare = padded_shape(x.shape[:1])[0] - len(x)
    held = jnp.pad(x, ((0, spare), (0, 0)), constant_values=jnp.nan)
    known = {variable: (value, False) for variable, value in shared.items()}
    known |= dict(zip(tape.inputs, [(held, True), (y, True)], strict=True))
    outputs = run_tape(tape, known, x.shape[-1], "cpu")
    leaves, tree = jax.tree.flatten(shapes)
    for output, leaf in zip(outputs, leaves, strict=True):
        assert output.shape == (*padded_shape(leaf.shape), x.shape[-1])
    cut = [out[tuple(map(slice, leaf.shape))] for out, leaf in zip(outputs, leaves)]
    return jax.tree.unflatten(tree, cut)


def example():
    generator = np.random.default_rng(0)
    x = generator.normal(size=(ARMS, LANES))
    return jnp.asarray(x), jnp.asarray(generator.uniform(0.5, 2.4, size=LANES))


@pytest.mark.parametrize("name", FUNCTIONS)
def test_as_vmap_does(name):
    x, y = example()
    function = FUNCTIONS[name]
    wanted = jax.jit(jax.vmap(function, in_axes=-1, out_axes=-1))(x, y)
    given = jax.jit(partial(through_a_tape, function))(x, y)
    assert jax.tree.structure(given) == jax.tree.structure(wanted)
    for one, other in zip(jax.tree.leaves(given), jax.tree.leaves(wanted), strict=True):
        assert one.dtype == other.dtype
        np.testing.assert_allclose(one, other, rtol=1e-14)


def test_parameters_are_worked_out_before():
    """What depends on no game is done once, not in every round; vectors of numbers are remade."""

    def function(rate, x):
        return x * jnp.exp(rate) + jnp.arange(3.0)

    def given(rate):
        tape, outside, _ = tape_of(lambda x: function(rate, x), jax.ShapeDtypeStruct((3,), float))
        left, shared = hoist(tape, outside)
        assert [value.shape for value in shared.values()] == [()]
        names = {operation.eqn.primitive.name for operation in left.operations}
        assert "exp" not in names
        assert "iota" in names
        return rate

    jax.jit(given)(0.5)


@pytest.mark.parametrize(
    ("function", "operation"),
    [
        (lambda x, y: x @ jnp.outer(x, x), "dot_general"),
        (lambda x, y: jnp.sort(x), "sort"),
        (lambda x, y: x[1:4], "slice"),
        (lambda x, y: x[:4].reshape(2, 2), "slice"),
        (lambda x, y: lax.while_loop(lambda v: v < 3, lambda v: v + jnp.sort(x)[0], y), "sort"),
        (lambda x, y: lax.scan(lambda s, v: (s + jnp.sort(x)[0], v), y, x)[0], "sort"),
    ],
)
def test_what_has_no_rule_is_named(function, operation):
    tape, outside, _ = tape_of(function, *(jnp.zeros(ARMS), jnp.zeros(())))
    assert operation in unsupported_operation(hoist(tape, outside)[0].operations)


def test_expm1_for_tpu():
    """Relative error of some roundings from 1e-30 to 80, against NumPy in float64."""
    x = np.concatenate([np.geomspace(1e-30, 80, 400), -np.geomspace(1e-30, 80, 400)])
    given = TPU_FUNCTIONS["expm1"](jnp.asarray(x, jnp.float32))
    wanted = np.expm1(np.asarray(x, np.float32).astype(np.float64))
    np.testing.assert_allclose(given, wanted, rtol=1e-6)
