"""One game as many: the lanes against a game alone and `jax.vmap`, and on functions of a user's.

`fuzz_lanes.py` tries thousands of random functions; here are those that were once wrong.
"""

import os
import sys
import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.tree_util import Partial
from simulated import run_python
from tiers import each_archetype, each_strategy, some_in_default

import sfmab_jax as sf
from sfmab_jax.base import static_functions, with_static_functions
from sfmab_jax.checks import horizon_argument
from sfmab_jax.engine import run
from sfmab_jax.engine.lanes import compile_loop, over_lanes, transform
from sfmab_jax.engine.rounds import play_round_of_game
from sfmab_jax.numerics.threefry import game_key, root_key
from sfmab_jax.strategies import STRATEGIES

ROUNDS = 40


def bandit_of(name):
    return STRATEGIES[name](**horizon_argument(STRATEGIES[name], ROUNDS))


@jax.jit
def play_alone(bandit, key, table):
    """The losses of one game, round by round: that of the arm played, and the mean over the law."""

    def step(state, now):
        round_, losses = now
        played = play_round_of_game(bandit, None, round_, state, key, losses, ())
        return played[0], (played[2], played[2] + played[3])

    start = bandit.init(table.shape[1], table.dtype, jnp.ones((), table.dtype))
    rounds = jnp.arange(1, len(table) + 1, dtype=jnp.int32)
    return jax.lax.scan(step, start, (rounds, table))[1]


@jax.jit
def keys_of_games(root):
    """Of three seeds on each of two sequences."""
    arms_key = jax.random.split(root)[0]
    return [[game_key(arms_key, jnp.uint32(k), jnp.uint32(s)) for s in range(3)] for k in range(2)]


@each_archetype
def test_every_strategy_plays_in_lanes_as_alone(name):
    """In float64, where rounding cannot move an arm in so few rounds."""
    bandit = bandit_of(name)
    losses = np.random.default_rng(5).normal(size=(2, ROUNDS, 4))
    lanes = sf.simulate(bandit, losses, num_seeds=3, seed=9, checkpoints=5, dtype=jnp.float64)
    keys = keys_of_games(root_key(9))
    at = lanes.rounds - 1
    for k, s in np.ndindex(2, 3):
        suffered, meant = play_alone(with_static_functions(bandit), keys[k][s], losses[k])
        best = np.cumsum(losses[k], axis=0).min(axis=1)
        regret, expected = np.cumsum(suffered) - best, np.cumsum(meant) - best
        np.testing.assert_allclose(lanes.regret[k, s], regret[at], rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(lanes.expected_regret[k, s], expected[at], rtol=1e-7, atol=1e-7)


@pytest.mark.parametrize("name", some_in_default(STRATEGIES, ["exp3_plus_plus"]))
def test_every_strategy_plays_alike_both_ways(name):
    """In float64, as above; scale_free is below."""
    losses = np.random.default_rng(5).normal(size=(2, ROUNDS, 4))
    given = {"num_seeds": 3, "checkpoints": 5, "dtype": jnp.float64}
    lanes = sf.simulate(bandit_of(name), losses, **given)
    vmap = sf.simulate(bandit_of(name), losses, batching="vmap", **given)
    np.testing.assert_allclose(lanes.regret, vmap.regret, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(lanes.expected_regret, vmap.expected_regret, rtol=1e-7, atol=1e-7)


@each_strategy
def test_own_strategies_do_not_pay_for_exactness(name):
    """Only parts that a user wrote are compiled with care for NaN and signed zeros."""
    bandit = bandit_of(name)
    assert run._is_own(bandit)
    own_probabilities = bandit._replace(probabilities=Partial(lambda state: state))
    assert not run._is_own(own_probabilities)


def test_certificates_and_records_both_ways():
    losses = np.random.default_rng(6).normal(size=(1, ROUNDS, 4))
    given = {"num_seeds": 3, "dtype": jnp.float64, "certificate": True}
    record = Partial(lambda state: state.full_information.play)
    lanes, vmap = (
        sf.simulate(sf.strategies.scale_free(), losses, record=record, batching=way, **given)
        for way in ("lanes", "vmap")
    )
    np.testing.assert_allclose(lanes.records, vmap.records, rtol=1e-7)
    np.testing.assert_allclose(lanes.certificate.refined, vmap.certificate.refined, rtol=1e-6)


def both_ways(function, *arguments):
    """The results in lanes, compiled as a round is, and by `jax.vmap`."""

    def looped(mapped, *given):
        def step(carry, _):
            return carry, mapped(function)(*carry)

        return lax.scan(step, given, None, length=2)[1]

    def by_vmap(function):
        return jax.vmap(function, in_axes=-1, out_axes=-1)

    ours = compile_loop(lambda *given: looped(over_lanes, *given), "cpu")(*arguments)(*arguments)
    theirs = jax.jit(lambda *given: looped(by_vmap, *given))(*arguments)
    return jax.tree.map(np.asarray, (ours, theirs))


MATRIX = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
VECTOR = np.arange(12, dtype=np.float32).reshape(3, 4)
WITH_NAN = np.where(VECTOR == 5, np.nan, VECTOR).astype(np.float32)
SIGNED = np.array([[-0.0, 0.0, -0.0, 0.0], [1, -0.0, 2, 0.0]], np.float32)
TRUTH = np.array([True, False, True, False])
FUNCTIONS = {
    "a reshape with another order": (lambda x: jnp.ravel(x, order="F"), MATRIX),
    "a sum over no axes": (lambda x: jnp.sum(x, axis=()), VECTOR),
    "several reductions, some over no axes": (
        lambda x: (jnp.sum(x, axis=()), jnp.sum(x), jnp.max(x, axis=())),
        VECTOR,
    ),
    "a guard against NaN": (lambda x: jnp.isnan(jnp.min(x)), WITH_NAN),
    "a maximum with NaN": (lambda x: (jnp.max(x), jnp.maximum(x, 1), jnp.min(x)), WITH_NAN),
    "an empty array": (lambda x: (x, jnp.zeros((0, 3)), jnp.sum(x[3:])), VECTOR),
    "an empty maximum": (lambda x: jnp.max(x[:0], initial=2.0), VECTOR),
    "a barrier with a literal": (lambda x: lax.optimization_barrier((x, 3.0))[1] + x, VECTOR),
    "a barrier with truth values": (lambda x: lax.optimization_barrier((x, x > 2, x < 1)), VECTOR),
    "complex numbers": (lambda x: jnp.abs(lax.optimization_barrier(lax.complex(x, x))), VECTOR),
    "a barrier with a key": (
        lambda words: jax.random.uniform(lax.optimization_barrier(jax.random.wrap_key_data(words))),
        np.arange(8, dtype=np.uint32).reshape(2, 4),
    ),
    "a narrower bitcast": (lambda x: lax.bitcast_convert_type(x[0], jnp.uint8), VECTOR),
    "the sign of a zero through a branch": (
        lambda x, which: 1 / lax.cond(which, lambda: x, lambda: -x),
        SIGNED,
        TRUTH,
    ),
    "the sign of a zero through a loop": (
        lambda x, which: 1 / lax.while_loop(lambda c: c[0], lambda c: (~c[0], c[1]), (which, x))[1],
        SIGNED,
        TRUTH,
    ),
    "a state written back": (lambda x, which: jnp.where(which, 1 / x, x), SIGNED, TRUTH),
    "work for one branch only": (
        lambda x, which: lax.cond(which, lambda y, z: y + z, lambda y, z: y, x, jnp.exp(x) * 2),
        VECTOR,
        TRUTH,
    ),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_that_were_wrong_once(name):
    function, *arguments = FUNCTIONS[name]
    ours, theirs = both_ways(function, *arguments)
    for a, b in zip(jax.tree.leaves(ours), jax.tree.leaves(theirs), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6)


def test_indices_of_every_width():
    """With 300 entries an index of 8 bits cannot reach the last, nor hold their number."""
    table = np.repeat(np.arange(300, dtype=np.float32)[:, None], 6, axis=1)
    dtypes = (np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32)
    indices = [np.array([0, 1, 100, 119, 127, 126], dtype) for dtype in dtypes]

    def look_up(x, *places):
        return [
            (x[i], lax.dynamic_slice_in_dim(x, i, 2), jnp.take(x, i, mode="clip")) for i in places
        ]

    ours, theirs = both_ways(look_up, table, *indices)
    for index, mine, other in zip(indices, ours, theirs, strict=True):
        for a, b in zip(mine, other, strict=True):
            np.testing.assert_array_equal(a, b)
        np.testing.assert_array_equal(mine[0][0], index.astype(np.float32))


def test_random_functions():
    """A few of the fuzz, of both kinds of program, in a process with JAX's own settings."""
    script = (
        "import sys, fuzz_lanes as f; sys.exit(f.run_here(0, 5) + f.run_here(f.PER_PROGRAM, 5))"
    )
    done = run_python(script, PYTHONPATH=os.pathsep.join(sys.path))
    assert done.returncode == 0, done.stdout + done.stderr[-2000:]
    assert done.stdout.count("functions ") == 2


def test_an_unknown_operation_goes_to_vmap_and_says_so_once(monkeypatch):
    monkeypatch.setattr(transform, "_NAMED", set())
    solve = over_lanes(lambda x: jnp.linalg.cholesky(jnp.outer(x, x) + jnp.eye(2, dtype=x.dtype)))
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    with pytest.warns(RuntimeWarning, match="'cholesky' cannot be replayed.*batching='vmap'"):
        first = solve(x)
    second = solve(x)  # a second warning would be an error
    np.testing.assert_array_equal(first, second)
    np.testing.assert_allclose(
        first[..., 1], np.linalg.cholesky(np.outer(x[:, 1], x[:, 1]) + np.eye(2)), rtol=1e-5
    )


def test_a_choice_of_batching_that_there_is_not():
    with pytest.raises(ValueError, match="batching is 'loops'; choose 'lanes' or 'vmap'"):
        sf.simulate(sf.strategies.uniform(), [[1.0, 0.0]], batching="loops")


def test_empty_arrays_in_states_and_records_do_not_end_the_process():
    script = """
import jax.numpy as jnp, sfmab_jax as sf
base = sf.strategies.uniform()
bandit = sf.Bandit(
    init=lambda *args: (base.init(*args), jnp.zeros((0, 3))),
    probabilities=lambda s: base.probabilities(s[0]),
    update=lambda s, arm, loss: (base.update(s[0], arm, loss), s[1]),
)
losses = [[1.0, 0.0, 0.5, 0.2]] * 40
result = sf.simulate(bandit, losses, num_seeds=5, record=lambda s: s[0].full_information.play[4:])
plain = sf.simulate(base, losses, num_seeds=5)
print(result.records.shape, (result.regret == plain.regret).all())
"""
    done = run_python(script)
    assert (done.returncode, done.stdout.strip()) == (0, "(1, 5, 40, 0) True"), done.stderr[-2000:]


def test_own_parts_are_told_from_a_users():
    def module_of(bandit):
        return {f.__module__.split(".")[0] for f in static_functions(with_static_functions(bandit))}

    assert module_of(sf.strategies.scale_free()) <= {"sfmab_jax", "jax"}
    mine = sf.potentials.potential(lambda u: jnp.exp(2 * u), lambda p: jnp.log(p) / 2)
    bandit = sf.compose(
        sf.sampling.as_played(),
        sf.estimation.importance_weighted(),
        sf.full_information.ftrl(mine, 0.1),
    )
    assert "test_batching" in module_of(bandit)


def test_work_for_a_branch_takes_linear_time():
    """Each value is used twice: done anew for every use it would take 2^40 operations."""

    def long_way(x, which):
        y = x
        for _ in range(40):
            y = jnp.sin(y) * y
        return lax.cond(which, lambda: y + 1, lambda: x)

    ours, theirs = both_ways(long_way, VECTOR, TRUTH)
    np.testing.assert_allclose(ours, theirs, rtol=1e-5)


def test_arguments_that_are_no_jax_arrays():
    mapped = over_lanes(lambda x, i: lax.dynamic_slice(x, (i,), (1,)))
    np.testing.assert_array_equal(mapped(VECTOR, np.array([0, 1, 2, 2])), [[0, 5, 10, 11]])
    with pytest.raises(ValueError, match="give one width"):
        over_lanes(lambda a, b: a * b)(np.ones((3, 4)), np.ones(1))


def test_many_truth_values_in_a_barrier():
    many, theirs = both_ways(
        lambda x: lax.optimization_barrier((x, *[x > i for i in range(40)])), VECTOR
    )
    for a, b in zip(many, theirs, strict=True):
        np.testing.assert_array_equal(a, b)


def test_random_bits_of_another_setting():
    def draw(words):
        with jax.threefry_partitionable(False):
            return jax.random.bits(jax.random.wrap_key_data(words), (3,))

    words = np.arange(8, dtype=np.uint32).reshape(2, 4)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ours = over_lanes(draw)(words)
    np.testing.assert_array_equal(ours, jax.vmap(draw, in_axes=-1, out_axes=-1)(words))
