"""Users' parts that are wrong, settings of JAX that change things, losses of every size."""

import gc
import json
import subprocess
import sys
import warnings
import weakref
from types import ModuleType

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from simulated import without_settings
from tiers import some_in_default

import sfmab_jax as sf
from sfmab_jax.base import Sampling
from sfmab_jax.engine.lanes import compile_cpu

HOW = {"num_rounds": 40, "num_seeds": 6, "checkpoints": 4, "dtype": "float32", "progress": False}
LOSSES = sf.losses.uniform(num_arms=3)


def composed(law):
    """A strategy that counts rounds and has the law ``law(t, p_t)``."""
    scheme = Sampling(
        init=lambda num_arms, dtype, loss_unit: jnp.ones((), jnp.int32),
        probabilities=law,
        update=lambda t, seen: t + 1,
    )
    return sf.compose(
        scheme,
        sf.estimation.importance_weighted(),
        sf.full_information.ftrl(sf.potentials.negative_entropy(), 0.05),
    )


NO_LAWS = {
    "double": (lambda t, p: 2 * p, 1),
    "less_a_half": (lambda t, p: p - 0.5, 1),
    "nan": (lambda t, p: p * jnp.nan, 1),
    "nan_midway": (lambda t, p: jnp.where(t == 17, jnp.nan, p), 17),
    "infinite": (lambda t, p: jnp.where(t >= 9, p / 0, p), 9),
    "negative": (lambda t, p: p + jnp.array([-1, 1, 0], p.dtype), 1),
}


@pytest.mark.parametrize(
    ("name", "batching"),
    some_in_default(
        [(name, batching) for name in NO_LAWS for batching in ("lanes", "vmap")],
        [*((name, "lanes") for name in NO_LAWS), ("nan_midway", "vmap")],
    ),
)
def test_a_law_that_is_none(name, batching):
    law, first = NO_LAWS[name]
    says = f"'wrong'.*probabilities.* round {first} .* 6 of 6 games"
    with pytest.warns(RuntimeWarning, match=says):
        sf.simulate({"wrong": composed(law)}, LOSSES, batching=batching, chunk_rounds=16, **HOW)


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
        sf.simulate(composed(lambda t, p: p), LOSSES, **HOW)
        sf.simulate(composed(lambda t, p: p * (1 + 1e-5)), LOSSES, **HOW)
        sf.simulate(composed(lambda t, p: (jnp.arange(3) == 1).astype(p.dtype)), LOSSES, **HOW)
        many = sf.losses.uniform(num_arms=5000)
        sf.simulate(composed(lambda t, p: p), many, **{**HOW, "num_rounds": 4})


@pytest.mark.parametrize("name", some_in_default(NO_LAWS, ["nan_midway", "negative"]))
def test_a_law_that_is_none_in_the_fused_engine(name):
    law, first = NO_LAWS[name]
    says = f"'wrong'.*probabilities.* round {first} .* 6 of 6 games"
    with pytest.warns(RuntimeWarning, match=says):
        sf.simulate({"wrong": composed(law)}, LOSSES, engine="fused", chunk_rounds=16, **HOW)


PLAYED = """
import json, sys, warnings
import jax, numpy as np
warnings.simplefilter("error")
import sfmab_jax as sf
for name, value in json.loads(sys.argv[1]).items():
    jax.config.update(name, value)
families = [
    sf.losses.gaussian(num_arms=3),
    sf.losses.permuted(sf.losses.uniform(num_arms=3)),
    sf.losses.mixed([sf.losses.student_t(num_arms=3), sf.losses.random_walk(num_arms=3)], [1, 2]),
]
bandits = [sf.strategies.scale_free(), sf.strategies.exp3(0.1), sf.strategies.uniform()]
for bandit, losses in zip(bandits, families, strict=True):
    result = sf.simulate(bandit, losses, num_rounds=40, num_seeds=3, num_sequences=2,
                         checkpoints=4, dtype="float32", progress=False)
    print(result.regret.tobytes().hex(), result.expected_regret.tobytes().hex(),
          result.norms.l_2.tobytes().hex(), result.norms.best.tobytes().hex())
"""


def played(config=None, environment=None):
    """The bits of some results under settings of JAX."""
    environment = environment or {}
    told = without_settings() | environment
    done = subprocess.run(
        [sys.executable, "-c", PLAYED, json.dumps(config or {})],
        env=told,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def by_default():
    return played()


SETTINGS_OF_JAX = [
    {"JAX_DEFAULT_PRNG_IMPL": "unsafe_rbg", "JAX_THREEFRY_PARTITIONABLE": "0"},
    {"JAX_DISABLE_JIT": "1"},
    {"JAX_THREEFRY_PARTITIONABLE": "0"},
    {"JAX_DEFAULT_PRNG_IMPL": "rbg"},
    {"JAX_NUMPY_DTYPE_PROMOTION": "strict", "JAX_NUMPY_RANK_PROMOTION": "raise"},
    {"JAX_DEFAULT_MATMUL_PRECISION": "bfloat16"},
    {"JAX_DEBUG_NANS": "1"},
]


@pytest.mark.parametrize(
    "environment",
    some_in_default(SETTINGS_OF_JAX, SETTINGS_OF_JAX[:2]),
    ids=lambda told: "-".join(f"{k[4:]}={v}".lower() for k, v in told.items()),
)
def test_the_settings_of_jax_change_no_bit(by_default, environment):
    assert played(environment=environment) == by_default


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


def test_certificates_hold_for_losses_that_grow_beyond_squares():
    """Where float32 has no squares of the losses, the certificates are bounds all the same."""
    table = np.random.default_rng(0).random((400, 3))
    table[200:] *= 1e30
    result = sf.simulate(
        sf.strategies.scale_free(), table, num_seeds=50, certificate=True, dtype="float32"
    )
    assert result.certificate.violations.max() == 0
    assert np.isfinite(result.certificate.star).all()


def test_the_generator_is_pinned_against_later_updates(by_default):
    config = {"jax_threefry_partitionable": False, "jax_default_prng_impl": "rbg"}
    assert played(config) == by_default


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
