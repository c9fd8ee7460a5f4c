"""Users' parts that are wrong, settings of JAX that change things, losses of every size."""

import gc
import json
import os
import sys
import warnings
import weakref
from types import ModuleType

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.tree_util import Partial
from simulated import run_python
from tiers import some_in_default

import sfmab_jax as sf
from sfmab_jax.base import Sampling
from sfmab_jax.engine.lanes import compile_cpu

HOW = {"num_rounds": 40, "num_sequences": 1, "num_seeds": 6, "checkpoints": 4, "progress": False}
LOSSES = sf.losses.uniform(num_arms=3)


def law_of(wrong, t, p):
    """In rounds ``first`` to ``last`` the play times and plus something, else the play."""
    is_wrong = (wrong["first"] <= t) & (t <= wrong["last"])
    return jnp.where(is_wrong, p * wrong["times"] + wrong["plus"], p)


def first_round(num_arms, dtype, loss_unit):
    return jnp.ones((), jnp.int32)


def next_round(t, seen):
    return t + 1


def composed(times=1.0, plus=(0.0, 0.0, 0.0), first=1, last=1000):
    """A strategy that counts rounds and has the law above: one program for all numbers."""
    numbers = {"times": np.float32(times), "plus": np.float32(plus)}
    wrong = {**numbers, "first": np.int32(first), "last": np.int32(last)}
    scheme = Sampling(
        init=Partial(first_round),
        probabilities=Partial(law_of, wrong),
        update=Partial(next_round),
    )
    return sf.compose(
        scheme,
        sf.estimation.importance_weighted(),
        sf.full_information.ftrl(sf.potentials.negative_entropy(), 0.05),
    )


NO_LAWS = {
    "double": {"times": 2},
    "less_a_half": {"plus": [-0.5] * 3},
    "nan": {"times": np.inf, "plus": [-np.inf] * 3},
    "nan_midway": {"times": np.inf, "plus": [-np.inf] * 3, "first": 17, "last": 17},
    "infinite": {"times": np.inf, "first": 9},
    "negative": {"plus": [-1, 1, 0]},
}


@pytest.mark.parametrize("name", NO_LAWS)
@pytest.mark.parametrize("batching", ["lanes", "vmap"])
def test_a_law_that_is_none(name, batching):
    wrong = {"wrong": composed(**NO_LAWS[name])}
    says = f"'wrong'.*probabilities.* round {NO_LAWS[name].get('first', 1)} .* 6 of 6 games"
    with pytest.warns(RuntimeWarning, match=says):
        sf.simulate(wrong, LOSSES, batching=batching, chunk_rounds=16, **HOW)


def test_a_law_that_is_none_of_a_bandit_without_parts():
    """Whose state is no BanditState, and which is found in one strategy of two."""
    right = sf.strategies.exp3(0.1)
    wrong = sf.Bandit(
        init=lambda num_arms, dtype=jnp.float32, loss_unit=1.0: jnp.ones(num_arms, dtype),
        probabilities=lambda weights: weights,
        update=lambda weights, arm, loss: weights,
    )
    with pytest.warns(RuntimeWarning, match="'wrong'") as caught:
        sf.simulate({"right": right, "wrong": wrong}, LOSSES, **HOW)
    assert len(caught) == 1


def test_a_law_is_watched_beside_certificates():
    base = sf.strategies.scale_free()
    wrong = base._replace(probabilities=lambda state: base.probabilities(state) * 2)
    with pytest.warns(RuntimeWarning, match="6 of 6 games"):
        sf.simulate(wrong, LOSSES, certificate=True, **HOW)


def test_good_laws_raise_no_warning():
    """Up to rounding, with zeros, and with 5,000 arms."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for right in (composed(), composed(times=1 + 1e-5), composed(times=0, plus=[0, 1, 0])):
            sf.simulate(right, LOSSES, chunk_rounds=16, **HOW)
        many = sf.losses.uniform(num_arms=5000)
        sf.simulate(composed(plus=np.zeros(5000)), many, **{**HOW, "num_rounds": 4})


@pytest.mark.parametrize("name", NO_LAWS)
def test_a_law_that_is_none_in_the_fused_engine(name):
    wrong = {"wrong": composed(**NO_LAWS[name])}
    says = f"'wrong'.*probabilities.* round {NO_LAWS[name].get('first', 1)} .* 6 of 6 games"
    with pytest.warns(RuntimeWarning, match=says):
        sf.simulate(wrong, LOSSES, engine="fused", chunk_rounds=16, **HOW)


PLAYED = """
import json, sys, warnings
import jax
warnings.simplefilter("error")
from test_hostile_engine import bits_of_games
for name, value in json.loads(sys.argv[1]).items():
    jax.config.update(name, value)
print(bits_of_games())
"""


def bits_of_games():
    """The bits of some results on losses that are drawn in many ways."""
    gaussian, uniform = sf.losses.gaussian(num_arms=3), sf.losses.uniform(num_arms=3)
    both = [sf.losses.student_t(num_arms=3), sf.losses.random_walk(num_arms=3)]
    how = {**HOW, "num_seeds": 3, "num_sequences": 2}
    results = [
        sf.simulate(sf.strategies.scale_free(), gaussian, **how),
        sf.simulate(sf.strategies.uniform(), sf.losses.permuted(uniform), **how),
        sf.simulate(sf.strategies.uniform(), sf.losses.mixed(both, [1, 2]), **how),
    ]
    arrays = [(r.regret, r.expected_regret, r.norms.l_2, r.norms.best) for r in results]
    return " ".join(array.tobytes().hex() for four in arrays for array in four)


def played(config=None, environment=None):
    """These bits under settings of JAX, in a process of their own."""
    done = run_python(
        PLAYED,
        json.dumps(config or {}),
        PYTHONPATH=os.pathsep.join(sys.path),
        **environment or {},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.fixture(scope="module")
def in_this_process():
    return bits_of_games()


SETTINGS_OF_JAX = [
    {
        "JAX_DEFAULT_PRNG_IMPL": "unsafe_rbg",
        "JAX_THREEFRY_PARTITIONABLE": "0",
        "JAX_DISABLE_JIT": "1",
    },
    {},
    {"JAX_DISABLE_JIT": "1"},
    {"JAX_THREEFRY_PARTITIONABLE": "0"},
    {"JAX_DEFAULT_PRNG_IMPL": "rbg"},
    {"JAX_NUMPY_DTYPE_PROMOTION": "strict", "JAX_NUMPY_RANK_PROMOTION": "raise"},
    {"JAX_DEFAULT_MATMUL_PRECISION": "bfloat16"},
    {"JAX_DEBUG_NANS": "1"},
]


@pytest.mark.parametrize(
    "environment",
    some_in_default(SETTINGS_OF_JAX, SETTINGS_OF_JAX[:1]),
    ids=lambda told: "-".join(f"{k[4:]}={v}".lower() for k, v in told.items()),
)
def test_the_settings_of_jax_change_no_bit(in_this_process, environment):
    """Here float64 is at hand and promotions are errors, there not."""
    assert played(environment=environment) == in_this_process


def wide_table(small, large):
    """Losses of one size, then of another, with noise."""
    sizes = np.repeat(np.float64([small, large, small]), [50, 50, 50])[:, None]
    return sizes * np.random.default_rng(1).uniform(-1, 1, (150, 3))


def l_2_of(losses):
    rounds = [1, 40, 50, 51, 99, 150]
    how = {"num_seeds": 2, "checkpoints": rounds, "dtype": "float32", "progress": False}
    norms = sf.simulate(sf.strategies.uniform(), losses, num_rounds=150, **how).norms
    return norms.l_2[0], norms.l_1[0], np.array(rounds) - 1


@pytest.mark.parametrize("large", [1e-6, 1.0, 1e15, 1e25, 1e30])
def test_squares_of_losses_of_all_sizes(large):
    """In a table, whose unit is that of the largest."""
    table = wide_table(1.0, large)
    l_2, _, rows = l_2_of(table)
    np.testing.assert_allclose(l_2, np.cumsum((table**2).sum(axis=1))[rows], rtol=1e-6)


@pytest.mark.parametrize(
    ("small", "large"),
    [(1e-30, 1e-30), (1e30, 1e30), (1e-30, 1e30), (1e30, 1e-30), (1e-22, 1.0), (1e-30, 1e-9)],
)
def test_squares_of_generated_losses_of_undeclared_size(small, large):
    table = wide_table(small, large).astype(np.float32)
    losses = sf.losses.from_function(
        lambda key, t, table: jnp.asarray(table)[t - 1], 3, table=table
    )
    l_2, l_1, rows = l_2_of(losses)
    wide = table.astype(np.float64)
    np.testing.assert_allclose(l_2, np.cumsum((wide**2).sum(axis=1))[rows], rtol=1e-6)
    np.testing.assert_allclose(l_1, np.cumsum(np.abs(wide).sum(axis=1))[rows], rtol=1e-6)


def test_the_generator_is_pinned_against_later_updates(in_this_process):
    config = {"jax_threefry_partitionable": False, "jax_default_prng_impl": "rbg"}
    assert played(config) == in_this_process


def test_programs_are_forgotten(monkeypatch):
    """Those used least of late, and what JAX keeps of them."""
    monkeypatch.setattr(compile_cpu, "_MOST_PROGRAMS", 3)
    traced = []

    def sums(rows, total):
        traced.append(len(rows))
        return jax.lax.fori_loop(0, len(rows), lambda i, s: s + jnp.min(rows[i]), total)

    program_for = compile_cpu.compile_loop(sums, "cpu", donate_argnames=("total",))

    def call(length):
        given = (np.ones((length, 2), np.float32), np.float32(0))
        program = program_for(*given)
        assert program(*given) == length
        return weakref.ref(program.__wrapped__)

    held = {length: call(length) for length in (1, 2, 3)}
    held[1] = call(1)
    call(4)
    gc.collect()
    assert [length for length, ref in held.items() if ref() is None] == [2]
    traced.clear()
    for length in (1, 3, 4):
        call(length)
    assert not traced
    call(2)
    assert traced


def test_a_record_written_in_a_loop_is_compiled_once(monkeypatch):
    tried = []
    name, compiles = "_try_to_compile", compile_cpu._try_to_compile
    monkeypatch.setattr(compile_cpu, name, lambda x: tried.append(x) or compiles(x))
    for turn in range(3):
        result = sf.simulate(
            sf.strategies.uniform(),
            LOSSES,
            record=lambda state: jnp.sqrt(state.full_information.play),
            **HOW,
        )
        assert result.records.shape == (1, 6, 4, 3)
        assert bool(tried) == (turn == 0)
        tried.clear()


FACTOR = 1.0
SETTINGS = ModuleType("settings")
SETTINGS.factor = 1.0  # type: ignore[attr-defined]


def test_records_that_differ_are_told_apart(monkeypatch):
    """By what they close over, their defaults, globals and modules, though the text is the same."""

    def last(record):
        return sf.simulate(sf.strategies.uniform(), LOSSES, record=record, **HOW).records[0, 0, -1]

    def times(factor):
        return lambda state: state.full_information.play[0] * 3 * factor

    for factor in (1.0, 2.0):
        assert last(times(factor)) == factor
        assert last(lambda state, by=factor: state.full_information.play[0] * 3 * by) == factor
        monkeypatch.setitem(globals(), "FACTOR", factor)
        assert last(lambda state: state.full_information.play[0] * 3 * FACTOR) == factor
        monkeypatch.setattr(SETTINGS, "factor", factor)
        assert last(lambda state: state.full_information.play[0] * 3 * SETTINGS.factor) == factor
