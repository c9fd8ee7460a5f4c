"""A sequence has the same losses, and a game on it the same bits, whoever makes them and how.

Losses come in a stream where many games share a sequence, and are made in the lanes where games
have their own.
"""

import os
import sys
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from loss_samples import ARCHETYPES, FAMILIES
from simulated import UNIFORM, run_python, table_of
from tiers import some_in_default

import sfmab_jax as sf
from sfmab_jax.checks import horizon_argument
from sfmab_jax.engine.layout import makes_own_losses

ROUNDS = 150
EXP3 = sf.strategies.exp3_ix()


def fading(key, t, half_life):
    """A family of the user's own: something of the round alone, and normal numbers."""
    fade = jnp.sin(t.astype(jnp.float32)) * 0.5 ** (t.astype(jnp.float32) / half_life)
    return fade + jax.random.normal(key, (3,), jnp.float32)


def walk(place, key, t):
    """With memory, a split key, and integers."""
    step_key, sign_key = jax.random.split(key)
    sign = 2 * jax.random.bernoulli(sign_key, 0.5, (3,)).astype(jnp.float32) - 1
    place = 0.9 * place + sign * jax.random.exponential(step_key, (3,), jnp.float32)
    return place, place + jnp.log(t.astype(jnp.float32))


USERS = {
    "fading": sf.losses.from_function(fading, num_arms=3, half_life=40.0),
    "walk": sf.losses.from_recurrence(lambda key: jnp.zeros(3, jnp.float32), walk, num_arms=3),
    "mixed": sf.losses.mixed(
        [sf.losses.gaussian(num_arms=3), sf.losses.sparse(num_arms=3)], [1, 2]
    ),
    "permuted": sf.losses.permuted(sf.losses.sinusoidal(num_arms=3)),
}


def family(name):
    make = FAMILIES.get(name)
    return USERS[name] if make is None else make(num_arms=3, **horizon_argument(make, ROUNDS))


def assert_same_games(one, other):
    """The games that two results have in common, from the first sequence and seed on."""
    sequences, seeds = np.minimum(one.regret.shape, other.regret.shape)[:2]
    for field in ("regret", "expected_regret"):
        arrays = (getattr(result, field)[:sequences, :seeds] for result in (one, other))
        np.testing.assert_array_equal(*arrays, err_msg=field)
    for field in ("l_1", "l_2", "l_inf", "s_inf", "best", "mean", "smallest"):
        arrays = (getattr(result.norms, field)[:sequences] for result in (one, other))
        np.testing.assert_array_equal(*arrays, err_msg=field)


def check_both_ways(losses, bandit, any_chunks=False):
    run = partial(sf.simulate, bandit, losses, num_rounds=ROUNDS, checkpoints=[1, 60, ROUNDS])
    own = run(num_sequences=140, num_seeds=2)
    assert makes_own_losses(140, 2)
    assert not makes_own_losses(3, 20)
    assert_same_games(own, run(num_sequences=1, num_seeds=3))
    if any_chunks:
        assert_same_games(own, run(num_sequences=3, num_seeds=20, chunk_rounds=48))
        assert_same_games(own, run(num_sequences=2, num_seeds=1, chunk_rounds=7))
    different = len(np.unique(own.norms.l_1[:, -1]))
    assert different == 1 or different > 15  # a family without chance has one member


@pytest.mark.parametrize("name", some_in_default([*FAMILIES, *USERS], [*ARCHETYPES, *USERS]))
def test_shared_and_own_losses_are_the_same(name):
    check_both_ways(family(name), UNIFORM)


@pytest.mark.parametrize("name", some_in_default([*FAMILIES, *USERS], [*ARCHETYPES, "fading"]))
def test_in_any_chunks(name):
    check_both_ways(family(name), UNIFORM, any_chunks=True)


@pytest.mark.optimised
@pytest.mark.parametrize("name", some_in_default([*FAMILIES, *USERS], ["sinusoidal"]))
def test_compiled_for_speed_they_are_still_the_same(name):
    check_both_ways(family(name), UNIFORM, any_chunks=True)


@pytest.mark.optimised
def test_a_strategy_plays_on_them_alike():
    check_both_ways(sf.losses.gaussian(num_arms=3), EXP3)


@pytest.mark.parametrize("num_seeds", some_in_default([1, 2, 3, 16, 64, 128, 384], [2, 3, 128]))
def test_sequences_of_a_table_in_any_arrangement(num_seeds):
    """Whether lanes play on some sequences in a row, on one, or on any."""
    table = table_of(6, 40, 3, seed=9)
    run = partial(sf.simulate, EXP3, checkpoints=[7, 40])
    together = run(table, num_seeds=num_seeds)
    for k in (0, 5):
        alone = run(table[k], num_seeds=num_seeds)
        np.testing.assert_array_equal(together.norms.best[k], alone.norms.best[0])
        # The games of sequence k draw their arms from keys of their own: compare what they pay.
        totals = together.regret[k] + together.norms.best[k]
        assert (np.abs(totals) <= np.abs(table[k]).max(axis=1).sum() + 1e-4).all()
    np.testing.assert_array_equal(together.regret[:1], run(table[:1], num_seeds=num_seeds).regret)


def test_a_family_of_the_users_own_draws_from_the_key_of_the_round():
    """Of sequence k, made from the run's seed by `jax.random` alone."""
    losses = USERS["fading"]
    result = sf.simulate(
        UNIFORM, losses, num_rounds=5, num_sequences=3, num_seeds=1, seed=7, checkpoints=5
    )
    family_key = jax.random.split(jax.random.key(7, impl="threefry2x32"))[1]
    for k in range(3):
        key = jax.random.fold_in(family_key, k)
        rows = [
            fading(jax.random.fold_in(key, t), jnp.int32(t), jnp.float32(40.0)) for t in range(1, 6)
        ]
        totals = np.cumsum(np.array(rows, np.float64), axis=0)
        np.testing.assert_allclose(result.norms.best[k], totals.min(axis=1), rtol=1e-5, atol=1e-5)


def test_many_strategies_measure_the_losses_once():
    """The first one does, for all."""
    losses = sf.losses.gaussian(num_arms=3)
    options = {"num_rounds": 40, "num_sequences": 30, "num_seeds": 2, "checkpoints": [40]}
    both = sf.simulate({"a": UNIFORM, "b": EXP3}, losses, **options)
    assert both["a"].norms is both["b"].norms
    alone = sf.simulate(EXP3, losses, **options)
    np.testing.assert_array_equal(both["b"].regret, alone.regret)
    np.testing.assert_array_equal(both["b"].norms.l_2, alone.norms.l_2)


def test_records_and_certificates_of_games_with_their_own_losses():
    losses = sf.losses.uniform(num_arms=3)
    options = {"num_rounds": 48, "num_seeds": 2, "checkpoints": [5, 48], "certificate": True}
    options["record"] = lambda state: state.full_information.learning_rate
    many = sf.simulate(sf.strategies.scale_free(), losses, num_sequences=20, **options)
    one = sf.simulate(sf.strategies.scale_free(), losses, num_sequences=1, **options)
    np.testing.assert_array_equal(many.records[:1], one.records)
    for several, single in zip(many.certificate, one.certificate):
        np.testing.assert_array_equal(several[:1], single)
    assert many.certificate.violations[..., -1].sum() == 0


def test_by_vmap_they_agree_up_to_rounding():
    losses = sf.losses.gaussian(num_arms=3)
    options = {"num_rounds": 60, "num_sequences": 20, "num_seeds": 1, "checkpoints": [60]}
    lanes = sf.simulate(UNIFORM, losses, **options)
    mapped = sf.simulate(UNIFORM, losses, batching="vmap", **options)
    np.testing.assert_allclose(mapped.regret, lanes.regret, rtol=1e-4, atol=1e-4)


ON_DEVICES = """
import sys
import jax
import numpy as np
from test_own_losses import every_family
assert len(jax.devices()) == int(sys.argv[2])
np.savez(sys.argv[1], **every_family(jax.devices()))
"""


def every_family(devices):
    """Regret and norms on own losses of each family, by their names."""
    arrays = {}
    for name in [*FAMILIES, *USERS]:
        result = sf.simulate(
            UNIFORM,
            family(name),
            num_rounds=40,
            num_sequences=700,
            num_seeds=1,
            checkpoints=[7, 40],
            devices=devices,
        )
        arrays[f"{name}/regret"] = result.regret
        arrays |= {f"{name}/{field}": getattr(result.norms, field) for field in ("l_1", "best")}
    return arrays


@pytest.mark.full
@pytest.mark.parametrize("number", [2, 4])
def test_several_devices_give_every_family_the_same_losses(number, tmp_path):
    flags = f"--xla_force_host_platform_device_count={number} {os.environ['XLA_FLAGS']}"
    path = tmp_path / "several.npz"
    settings = {"XLA_FLAGS": flags, "PYTHONPATH": os.pathsep.join(sys.path)}
    settings["JAX_ENABLE_X64"] = "1"  # as here: a user's `bernoulli` draws other bits without
    done = run_python(ON_DEVICES, str(path), str(number), **settings)
    assert done.returncode == 0, done.stderr
    with np.load(path) as several:
        for name, array in every_family(jax.devices()[:1]).items():
            np.testing.assert_array_equal(several[name], array, err_msg=name)
