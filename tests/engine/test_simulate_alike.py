"""A game of `simulate` is the same, bit for bit, however it is run."""

import os
import sys
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.tree_util import Partial
from simulated import ADAPTIVE, DECAYING, UNIFORM, assert_same, run_python, table_of
from tiers import some_in_default

import sfmab_jax as sf

EXP3 = sf.strategies.exp3()  # quick to compile


def test_a_shorter_run_is_the_beginning_of_a_longer_one():
    table = table_of(96, 3, seed=5)
    options = {"num_seeds": 6, "chunk_rounds": 48}
    long = sf.simulate(ADAPTIVE, table, checkpoints=[48, 96], **options)
    short = sf.simulate(ADAPTIVE, table, num_rounds=48, checkpoints=[20, 48], **options)
    np.testing.assert_array_equal(long.regret[..., 0], short.regret[..., 1])
    np.testing.assert_array_equal(long.expected_regret[..., 0], short.expected_regret[..., 1])


def test_strategies_share_losses_and_random_numbers():
    """The same bandit under two names plays the same games; so does one alone."""
    table = table_of(48, 3, seed=6)
    options = {"num_seeds": 7, "checkpoints": [10, 48], "seed": 4}
    results = sf.simulate({"a": ADAPTIVE, "b": DECAYING, "c": ADAPTIVE}, table, **options)
    assert_same(results["a"], results["c"])
    assert (results["a"].regret != results["b"].regret).any()
    alone = sf.simulate(ADAPTIVE, table, **options)
    assert isinstance(alone, sf.Result)
    assert alone.name == "strategy"
    assert_same(results["a"], alone)


def test_seed_names_the_run():
    options = {"num_rounds": 48, "num_seeds": 5, "checkpoints": [10, 48]}
    losses = sf.losses.gaussian(num_arms=3)
    first, again, other = (
        sf.simulate(ADAPTIVE, losses, seed=seed, **options) for seed in (1, 1, 2)
    )
    assert_same(first, again)
    assert (first.regret != other.regret).all()
    assert (first.norms.l_1 != other.norms.l_1).all()
    assert len(np.unique(first.regret)) == 10


@pytest.mark.optimised
def test_a_seed_alone_is_its_place_in_a_batch():
    losses = sf.losses.gaussian(num_arms=3)
    options = {"num_rounds": 96, "num_sequences": 1, "checkpoints": [50, 96], "chunk_rounds": 48}
    batch = sf.simulate(ADAPTIVE, losses, num_seeds=4096, **options)
    for first_seed, num_seeds in ((17, 1), (4095, 1), (500, 30)):
        alone = sf.simulate(ADAPTIVE, losses, first_seed=first_seed, num_seeds=num_seeds, **options)
        part = slice(first_seed, first_seed + num_seeds)
        np.testing.assert_array_equal(alone.regret, batch.regret[:, part])
        np.testing.assert_array_equal(alone.expected_regret, batch.expected_regret[:, part])


@pytest.mark.parametrize("chunk_rounds", some_in_default([1, 7, 16, 1000], [7]))
@pytest.mark.parametrize("losses", [table_of(48, 3), sf.losses.gaussian(num_arms=3)], ids=type)
def test_chunks_change_nothing(losses, chunk_rounds):
    """With checkpoints at the end of a chunk and after it."""
    run = partial(sf.simulate, ADAPTIVE, losses, num_rounds=48, num_seeds=5)
    for first in (1, 7, 8):
        whole = run(checkpoints=[first, 48])
        assert_same(run(checkpoints=[first, 48], chunk_rounds=chunk_rounds), whole)


@pytest.mark.optimised
def test_many_arms_whose_games_are_played_one_by_one():
    """Two of eighty games, in other chunks."""
    table = table_of(2, 48, 300, seed=3)
    run = partial(sf.simulate, ADAPTIVE, checkpoints=[5, 48])
    whole = run(table, num_seeds=40)
    some = run(table[:1], num_seeds=2, first_seed=17, chunk_rounds=7)
    np.testing.assert_array_equal(some.regret, whole.regret[:1, 17:19])
    np.testing.assert_array_equal(some.expected_regret, whole.expected_regret[:1, 17:19])


def test_other_sequences_change_nothing():
    """The first member of a family or of an array plays the same among three or forty."""
    options = {"num_seeds": 3, "checkpoints": [5, 48], "num_rounds": 48}
    family = sf.losses.gaussian(num_arms=3)
    many = sf.simulate(EXP3, family, num_sequences=40, **options)
    one = sf.simulate(EXP3, family, num_sequences=1, **options)
    assert many.regret.shape == (40, 3, 2)
    assert one.regret.shape == (1, 3, 2)
    np.testing.assert_array_equal(many.regret[:1], one.regret)
    np.testing.assert_array_equal(many.expected_regret[:1], one.expected_regret)
    np.testing.assert_array_equal(many.norms.l_1[:1], one.norms.l_1)
    assert len(np.unique(many.norms.l_1[:, -1])) == 40

    # The largest loss, which may decide the unit they are counted in, is in the first sequence.
    table = table_of(3, 48, 3, seed=7)
    table[0, 0, 0] = 2 * np.abs(table).max()
    many = sf.simulate(ADAPTIVE, table, **options)
    for one in (
        sf.simulate(ADAPTIVE, table[:1], **options),
        sf.simulate(ADAPTIVE, table[0], **options),
        sf.simulate(ADAPTIVE, table, num_sequences=1, **options),
    ):
        np.testing.assert_array_equal(many.regret[:1], one.regret)
        np.testing.assert_array_equal(many.expected_regret[:1], one.expected_regret)
    assert (many.regret[1] != many.regret[0]).all()


def test_many_sequences_of_one_seed_each():
    """More sequences than a block holds games: each meets its own losses."""
    table = np.random.default_rng(8).choice([-1.0, 1.0], size=(700, 16, 3))
    table += np.arange(700)[:, None, None] * 1000.0  # the loss names the sequence
    result = sf.simulate(UNIFORM, table, num_seeds=1, checkpoints=1, dtype=jnp.float64)
    totals = result.regret[:, 0, 0] + result.norms.best[:, 0]
    np.testing.assert_array_less(np.abs(totals - 16_000.0 * np.arange(700)), 17)
    np.testing.assert_allclose(result.norms.best[:, 0], table.sum(axis=1).min(axis=1), atol=1e-8)


def test_function_and_equal_table_agree():
    table = table_of(48, 3, seed=9).astype(np.float32)
    largest = float(np.abs(table).max())
    rows = jnp.asarray(table)
    function = sf.losses.from_function(lambda key, t: rows[t - 1], 3, magnitude=largest)
    options = {"num_rounds": 48, "num_seeds": 5, "checkpoints": [3, 48]}
    assert_same(sf.simulate(ADAPTIVE, function, **options), sf.simulate(ADAPTIVE, table, **options))


def start_of_walk(key):
    return jnp.zeros((), jnp.float32)


def step_of_walk(state, key, t):
    state = state + jnp.where(t % 5 == 0, jnp.float32(-3), jnp.float32(1))
    return state, jnp.stack([state, -state, jnp.float32(0)])


@pytest.mark.parametrize("wrap", [Partial, lambda function: function], ids=["partial", "bare"])
def test_sequence_with_memory_and_equal_table_agree(wrap):
    """The state is carried from chunk to chunk, whatever their length."""
    steps = np.where(np.arange(1, 49) % 5 == 0, -3.0, 1.0)
    table = np.stack([np.cumsum(steps), -np.cumsum(steps), np.zeros(48)], axis=1)
    largest = float(np.abs(table).max())
    sequence = sf.losses.LossSequence(3, wrap(start_of_walk), wrap(step_of_walk), largest)
    options = {"num_rounds": 48, "num_seeds": 5, "checkpoints": [3, 48]}
    wanted = sf.simulate(ADAPTIVE, table, **options)
    for chunk_rounds in (None, 7):
        assert_same(sf.simulate(ADAPTIVE, sequence, chunk_rounds=chunk_rounds, **options), wanted)


def results_on(devices):
    """Arrays of five runs; each divides its games and sequences in another way.

    Two of them tally the arms, and what was to be expected of them; two compare with switches.
    """
    adaptive, quick = sf.strategies.scale_free(), sf.strategies.uniform()
    table = np.random.default_rng(0).normal(size=(3, 40, 3))
    many_arms = np.random.default_rng(1).normal(size=(2, 40, 300))
    run = partial(sf.simulate, num_rounds=40, checkpoints=[1, 9, 40], devices=devices)
    gaussian = sf.losses.permuted(sf.losses.gaussian(num_arms=3))
    tallied = partial(run, quick, gaussian, arm_counts=True, pseudo_regret=True)
    results = {
        "table": run(adaptive, table, num_seeds=700, switches=2),
        "gaussian": tallied(num_seeds=30, num_sequences=50),
        "own": tallied(num_seeds=2, num_sequences=400, switches=2),
        "many_arms": run(quick, many_arms, num_seeds=20),
        "fused": run(quick, table, num_seeds=700, num_rounds=20, checkpoints=1, engine="fused"),
    }
    return {
        f"{name}/{field}": array
        for name, result in results.items()
        for field, array in (
            ("regret", result.regret),
            ("expected", result.expected_regret),
            ("best", result.norms.best),
            ("best_arm", result.best_arm),
            *result.kept.items(),
        )
    }


ON_DEVICES = """
import sys
import jax
import jax.numpy as jnp
import numpy as np
from sfmab_jax.engine.threads import run_jobs
from test_simulate_alike import UNIFORM, results_on
import sfmab_jax as sf

assert len(jax.devices()) == int(sys.argv[2])
np.savez(sys.argv[1], **results_on(None))

# The last device alone, and that it is the one that plays.
how = dict(num_seeds=3, checkpoints=2)
rows = np.random.default_rng(0).normal(size=(16, 3))
alone = sf.simulate(UNIFORM, rows, devices=jax.devices()[-1:], **how)
np.testing.assert_array_equal(alone.regret, sf.simulate(UNIFORM, rows, **how).regret)
where = run_jobs([lambda stop: jnp.arange(3) + 1], tuple(jax.devices()[-1:]), lambda: None)
assert where[0].devices() == {jax.devices()[-1]}
"""


@pytest.mark.parametrize("number", some_in_default([2, 4, 8], [4]))
def test_devices_change_nothing(number, tmp_path):
    """Several devices, in a process of their own, give the same bits as one."""
    flags = f"--xla_force_host_platform_device_count={number} {os.environ['XLA_FLAGS']}"
    path = tmp_path / "several.npz"
    done = run_python(
        ON_DEVICES, str(path), str(number), XLA_FLAGS=flags, PYTHONPATH=os.pathsep.join(sys.path)
    )
    assert done.returncode == 0, done.stderr
    wanted = results_on(jax.devices()[:1])
    assert len(wanted) == 26
    with np.load(path) as several:
        for name, array in wanted.items():
            assert np.isfinite(array).all()
            np.testing.assert_array_equal(several[name], array, err_msg=name)


def test_progress_does_not_change_the_games(capsys):
    table = table_of(48, 3, seed=4)
    options = {"num_seeds": 2, "checkpoints": [3, 48]}
    quiet = sf.simulate(DECAYING, table, progress=False, **options)
    assert capsys.readouterr() == ("", "")
    shown = sf.simulate(DECAYING, table, progress=True, **options)
    assert capsys.readouterr().out == ""
    assert_same(quiet, shown)
