"""While loops in lanes against jax.vmap: values by properties, kinds of loops by a table."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jax import lax

from sfmab_jax.engine.lanes.transform import over_lanes

WIDTH, NUM_ARMS = 5, 4
SHARED = np.array([0.5, 2.0, 1.0, 3.0])


def doubling(x, limit, count):
    """Each lane to its own limit."""
    start = (jnp.abs(x[0]) + 1, 0)
    return lax.while_loop(lambda s: s[0] < limit, lambda s: (s[0] * 2, s[1] + 1), start)


def never(x, limit, count):
    return lax.while_loop(lambda s: jnp.bool_(False), lambda s: s + 1, x)


def some_never(x, limit, count):
    """Lanes with count 0 do not begin; what they would compute is not a number."""
    return lax.while_loop(lambda s: s[0] < count, lambda s: (s[0] + 1, s[1] / s[0]), (0, x))


def shared_condition(x, limit, count):
    """The condition knows nothing of the lanes."""
    return lax.while_loop(lambda s: s[0] < 3, lambda s: (s[0] + 1, s[1] * limit), (0, x))


def shared_carry(x, limit, count):
    """Carries that begin without lanes: a vector, a number, one never touched."""
    start = (jnp.asarray(SHARED), jnp.int32(0), jnp.asarray(SHARED))
    return lax.while_loop(lambda s: s[1] < count, lambda s: (s[0] + x, s[1] + 1, s[2]), start)


def constants_on_both_sides(x, limit, count):
    """Constants of the condition and of the body, with lanes and without."""
    ends = jnp.asarray(SHARED)
    return lax.while_loop(
        lambda s: (s[0] < jnp.sum(ends) + limit) & (s[1] < 50),
        lambda s: (s[0] + jnp.max(ends * jnp.abs(x)) + 0.5, s[1] + 1),
        (jnp.zeros_like(limit), jnp.int32(0)),
    )


def nested(x, limit, count):
    def outer(s):
        inner = lax.while_loop(lambda r: r[0] < s[0], lambda r: (r[0] + 1, r[1] + x), (0, s[1]))
        return s[0] + 1, inner[1]

    return lax.while_loop(lambda s: s[0] < count, outer, (0, x))


def in_a_scan(x, limit, count):
    def step(total, item):
        return lax.while_loop(lambda s: s < limit, lambda s: s + jnp.abs(item) + 1, total), total

    return lax.scan(step, jnp.zeros_like(limit), x)


def matrices(x, limit, count):
    start, column = (jnp.outer(x, x), 0), jnp.outer(x, jnp.ones_like(x))
    return lax.while_loop(lambda s: s[1] < count, lambda s: (s[0].T + column, s[1] + 1), start)


LOOPS = (
    doubling,
    never,
    some_never,
    shared_condition,
    shared_carry,
    constants_on_both_sides,
    nested,
    in_a_scan,
    matrices,
)
MAPPED = {
    loop: (jax.jit(over_lanes(loop)), jax.jit(jax.vmap(loop, in_axes=-1, out_axes=-1)))
    for loop in LOOPS
}
# Numbers of few digits, so that sums and products are exact in any order.
digits = st.integers(-8, 8)


@pytest.mark.parametrize("loop", LOOPS, ids=lambda loop: loop.__name__)
@settings(max_examples=12, deadline=None, derandomize=True)
@given(
    x=st.lists(digits, min_size=NUM_ARMS * WIDTH, max_size=NUM_ARMS * WIDTH),
    limit=st.lists(digits, min_size=WIDTH, max_size=WIDTH),
    count=st.lists(st.integers(0, 5), min_size=WIDTH, max_size=WIDTH),
)
def test_while_loops(loop, x, limit, count):
    arguments = (
        jnp.asarray(x, jnp.float64).reshape(NUM_ARMS, WIDTH),
        jnp.asarray(limit, jnp.float64),
        jnp.asarray(count, jnp.int32),
    )
    got, wanted = (mapped(*arguments) for mapped in MAPPED[loop])
    assert jax.tree.structure(got) == jax.tree.structure(wanted)
    for left, right in zip(jax.tree.leaves(got), jax.tree.leaves(wanted)):
        assert left.dtype == right.dtype
        np.testing.assert_array_equal(left, right)


def test_operations_without_results():
    """A callback that returns nothing is called for every lane."""
    seen = []

    def tell(x, limit):
        jax.debug.callback(lambda number: seen.append(float(number)), limit)
        return x + limit

    x, limit = jnp.zeros((2, 3)), jnp.arange(3.0)
    np.testing.assert_array_equal(over_lanes(tell)(x, limit), np.tile(np.arange(3.0), (2, 1)))
    jax.effects_barrier()
    assert sorted(seen) == [0, 1, 2]
