"""What XLA cannot compile as one function runs as the ordinary program, with the same games."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.tree_util import Partial

import sfmab_jax as sf
from sfmab_jax.engine.lanes.compile_cpu import _as_one_function, compile_loop

NUM_ARMS = 3
LOSSES = sf.losses.uniform(num_arms=NUM_ARMS)
# Quick to compile: the law of an arm falls by up to a tenth when its loss is seen.
BASE = sf.Bandit(
    init=lambda num_arms, dtype=jnp.float32, loss_unit=1.0: jnp.ones(num_arms, dtype),
    probabilities=lambda weights: weights / jnp.sum(weights),
    update=lambda weights, arm, loss: jnp.where(
        jnp.arange(NUM_ARMS, dtype=arm.dtype) == arm, weights * (1 - loss / 10), weights
    ),
)
SEEN: list[float] = []


def by_host(p):
    """The law itself, by way of Python."""
    like = jax.ShapeDtypeStruct(p.shape, p.dtype)
    return jax.pure_callback(np.asarray, like, p, vmap_method="expand_dims")


def watched_by_host(p):
    jax.debug.callback(lambda x: SEEN.append(float(x)), p[0])
    return p


def _double_first(pair):
    return pair[0] * 2, pair[1]


# Each leaves the law as it is, to the last bit.
UNCHANGED = {
    "sort": lambda p: jnp.sort(p)[jnp.argsort(jnp.argsort(p))],
    "top_k": lambda p: jnp.minimum(p, lax.top_k(p, 2)[0][0]),
    "scatter": lambda p: p.at[jnp.argmin(p)].add(0.0),
    "scatter_of_all": lambda p: jnp.zeros_like(p).at[jnp.arange(NUM_ARMS)[::-1]].set(p[::-1]),
    "while_loop": lambda p: lax.while_loop(lambda s: s[0] < 1, _double_first, (p[0], p))[1],
    "pure_callback": by_host,
    "debug_callback": watched_by_host,
}


def play(change):
    bandit = BASE._replace(probabilities=Partial(_changed, Partial(change)))
    how = {"num_rounds": 40, "num_sequences": 1, "num_seeds": 6, "checkpoints": 4}
    how["chunk_rounds"] = 16
    return sf.simulate(bandit, LOSSES, dtype="float32", progress=False, **how)


def _changed(change, state):
    return change(BASE.probabilities(state))


@pytest.fixture(scope="module")
def plain():
    return play(lambda p: p)


@pytest.mark.parametrize("name", UNCHANGED)
def test_the_games_are_those_of_the_plain_program(plain, name):
    """Bit for bit, as what was added does not touch the numbers."""
    SEEN.clear()
    got = play(UNCHANGED[name])
    jax.effects_barrier()
    np.testing.assert_array_equal(got.regret, plain.regret)
    np.testing.assert_array_equal(got.expected_regret, plain.expected_regret)
    if name == "debug_callback":
        assert SEEN
        assert all(0 < p < 1 for p in SEEN)


def sums_of_sorted(rows, total):
    return lax.fori_loop(0, len(rows), lambda i, s: s + jnp.sort(rows[i])[0], total)


def sums(rows, total):
    return lax.fori_loop(0, len(rows), lambda i, s: s + jnp.min(rows[i]), total)


@pytest.mark.parametrize("function", [sums, sums_of_sorted])
def test_with_and_without_the_mark(function):
    """The loop as one function, or what stands in for it, against NumPy."""
    rows = np.random.default_rng(0).integers(0, 100, (20, 6)).astype(np.float32)
    program_for = compile_loop(function, "cpu", donate_argnames=("total",))
    for start in (0.0, 5.0):  # the second call knows how the first went
        given = (jnp.asarray(rows), jnp.float32(start))
        assert program_for(*given)(*given) == rows.min(axis=1).sum() + start
    if function is sums:
        assert (
            _as_one_function(function, (), ())(jnp.asarray(rows), jnp.float32(0))
            == rows.min(axis=1).sum()
        )


def test_an_argument_that_is_not_used():
    """XLA ends the process if one is left of a piece, even one that XLA itself found useless."""

    def sums_and_nothing(rows, useless, total):
        return lax.fori_loop(
            0,
            len(rows),
            lambda i, s: s + jnp.min(rows[i]) + (0 * useless[i]).astype(s.dtype),
            total,
        )

    given = (np.ones((4, 3), np.float32), np.arange(4), np.float32(1))
    assert compile_loop(sums_and_nothing, "cpu", donate_argnames=("total",))(*given)(*given) == 5


def test_one_function_can_be_switched_off(monkeypatch):
    """For one whose program makes XLA end the process."""
    wrapped = []

    def wrap(piece):
        wrapped.append(piece)
        return piece

    given = (np.ones((4, 3), np.float32), np.float32(1))
    for value, chosen in (("", 1), ("1", 0)):
        monkeypatch.setenv("SFMAB_PLAIN_PROGRAMS", value)
        program = compile_loop(sums, "cpu", wrap=wrap)(*given)
        assert program.__wrapped__ is wrapped[-2:][chosen]
        assert program(*given) == 5


def test_a_refused_program_is_tried_once():
    """And not again for other numbers of the same kind, Python's or NumPy's."""
    tried = []

    def wrap(piece):
        def counted(*args):
            tried.append(piece)
            return piece(*args)

        return counted

    program_for = compile_loop(sums_of_sorted, "cpu", wrap=wrap)
    for start in (1.0, 2.0, 3.0):
        given = (np.zeros((4, 3), np.float32), np.float32(start))
        assert program_for(*given)(*given) == start
    # Traced once as one function and once as it is.
    assert len(tried) == 2


def test_parameters_may_be_numpy_arrays():
    """They were once taken for static, which arrays cannot be."""
    options = {"num_rounds": 16, "num_sequences": 1, "num_seeds": 2, "chunk_rounds": 16}
    results = [
        sf.simulate(sf.strategies.scale_free(beta=beta), LOSSES, **options).regret
        for beta in (np.array(2.0), np.float32(2), 2.0)
    ]
    np.testing.assert_array_equal(results[0], results[2])
    np.testing.assert_array_equal(results[1], results[2])


def test_an_error_while_running_is_not_hidden():
    """What a callback raises arrives, not a complaint about arrays given away."""

    def broken(p):
        like = jax.ShapeDtypeStruct(p.shape, p.dtype)
        return jax.pure_callback(_raise, like, p, vmap_method="expand_dims")

    with pytest.raises(jax.errors.JaxRuntimeError, match="the reason"):
        play(broken)


def _raise(x):
    raise RuntimeError("the reason")


def test_one_arm():
    """XLA once ended the process over this game as one function."""
    result = sf.simulate(sf.strategies.ucb1(), np.ones((16, 1)), num_seeds=2, dtype="float32")
    assert (result.regret == 0).all()
