"""`simulate`: what it reports, that a game is the same however it is run, and what it refuses."""

import os
import re
import subprocess
import sys
import threading
import time
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import paper_loop
import pytest
from jax.tree_util import Partial

import sfmab_jax as sf
from sfmab_jax.progress import Progress

ADAPTIVE = sf.strategies.scale_free("adaptive")
DECAYING = sf.strategies.scale_free("decaying")
BOTH = {"adaptive": ADAPTIVE, "decaying": DECAYING}
# Bare functions, and quick to compile: plays every arm alike.
UNIFORM = sf.Bandit(
    init=lambda num_arms, dtype=jnp.float32, loss_unit=1.0: jnp.full(num_arms, 1 / num_arms, dtype),
    probabilities=lambda state: state,
    update=lambda state, arm, loss: state,
)


def table_of(*shape, seed=0):
    """Losses of either sign, the sizes varying from round to round."""
    generator = np.random.default_rng(seed)
    sizes = np.exp(generator.normal(size=(*shape[:-1], 1)))
    return generator.normal(size=shape) * sizes


def assert_same(ours, theirs):
    """Bit for bit the same regret and norms."""
    np.testing.assert_array_equal(ours.rounds, theirs.rounds)
    np.testing.assert_array_equal(ours.regret, theirs.regret)
    np.testing.assert_array_equal(ours.expected_regret, theirs.expected_regret)
    for mine, other in zip(ours.norms[1:], theirs.norms[1:], strict=True):
        np.testing.assert_array_equal(mine, other)


# What is reported.


@pytest.fixture(scope="module")
def observed():
    """Two sequences of 40 rounds, 5 seeds, float64, the state kept after every round."""
    table = table_of(2, 40, 3, seed=1)
    results = sf.simulate(
        BOTH,
        table,
        num_seeds=5,
        seed=11,
        first_seed=3,
        checkpoints=40,
        dtype=jnp.float64,
        record=lambda state: {
            "play": state.full_information.play,
            "exploration": state.sampling.exploration,
            "learning_rate": state.full_information.learning_rate,
            "estimates": state.full_information.losses.value,
        },
    )
    return table, results


def test_shapes_and_labels(observed):
    """Nothing of the size of the rounds is kept but at the checkpoints asked for."""
    _, results = observed
    assert isinstance(results, sf.Results)
    assert list(results) == ["adaptive", "decaying"]
    for name, result in results.items():
        assert isinstance(result, sf.Result)
        assert result.name == name
        assert (result.seed, result.first_seed, result.dtype) == (11, 3, "float64")
        assert result.losses == "array"
        assert result.seconds > 0
        np.testing.assert_array_equal(result.rounds, np.arange(1, 41))
        assert result.regret.shape == result.expected_regret.shape == (2, 5, 40)
        assert result.regret.dtype == result.expected_regret.dtype == np.float64
        assert result.records["play"].shape == (2, 5, 40, 3)
        assert result.records["exploration"].shape == (2, 5, 40)
        for norm in result.norms[2:]:
            assert norm.shape == (2, 40)
            assert norm.dtype == np.float64


def arms_seen(result):
    """The arms played, [K, S, T], in the growth of the estimates; and that growth."""
    grown = np.diff(result.records["estimates"], axis=2, prepend=0)
    assert (np.count_nonzero(grown, axis=-1) == 1).all()
    return np.argmax(grown != 0, axis=-1), grown


def test_regret_from_the_recorded_states(observed):
    """Laws made from the recorded play and exploration; everything else by NumPy."""
    table, results = observed
    best = np.cumsum(table, axis=1).min(axis=2)[:, None]  # of the first tau rounds
    for result in results.values():
        arms, _ = arms_seen(result)
        seen = np.take_along_axis(table[:, None], arms[..., None], axis=-1)[..., 0]
        # Sums of forty numbers in another order.
        np.testing.assert_allclose(result.regret, np.cumsum(seen, axis=2) - best, atol=1e-12)
        play = np.concatenate([np.full((2, 5, 1, 3), 1 / 3), result.records["play"]], axis=2)
        gamma = np.concatenate([np.full((2, 5, 1), 0.5), result.records["exploration"]], axis=2)
        law = (1 - gamma[..., None]) * play + gamma[..., None] / 3
        meant = np.sum(law[:, :, :-1] * table[:, None], axis=-1)
        np.testing.assert_allclose(
            result.expected_regret, np.cumsum(meant, axis=2) - best, atol=1e-12
        )


def test_recorded_state_is_that_of_the_algorithm(observed):
    """eta_t, gamma_t, p_{t+1} and the estimates in the losses' own unit, as in Algorithm 1."""
    table, results = observed
    for name, result in results.items():
        arms, _ = arms_seen(result)
        for k, s in ((0, 0), (1, 4)):
            loop = paper_loop.play_game(table[k], name, arms=arms[k, s])
            for field in ("play", "exploration", "learning_rate", "estimates"):
                recorded = result.records[field][k, s]
                np.testing.assert_allclose(recorded, getattr(loop, field), rtol=1e-9, err_msg=field)


@pytest.mark.parametrize(("dtype", "accuracy"), [(jnp.float32, 4e-7), (jnp.float64, 1e-14)])
def test_norms_against_numpy(dtype, accuracy):
    """At every checkpoint, to a few roundings: sums over rounds are compensated."""
    table = table_of(5, 96, 3, seed=2).astype(dtype).astype(np.float64)
    checkpoints = [1, 2, 17, 50, 96]
    norms = sf.simulate(UNIFORM, table, num_seeds=1, checkpoints=checkpoints, dtype=dtype).norms
    assert norms.num_arms == 3
    np.testing.assert_array_equal(norms.rounds, checkpoints)
    for column, tau in enumerate(checkpoints):
        first = table[:, :tau]
        totals = first.sum(axis=1)
        wanted = {
            "l_1": np.abs(first).sum(axis=(1, 2)),
            "l_2": (first**2).sum(axis=(1, 2)),
            "l_inf": np.abs(first).max(axis=(1, 2)),
            "s_inf": np.abs(totals).max(axis=1),
        }
        for name, value in wanted.items():
            np.testing.assert_allclose(
                getattr(norms, name)[:, column], value, rtol=accuracy, err_msg=name
            )
        # These two may cancel: their error is measured by the sizes of the totals.
        size = np.abs(totals).max(axis=1)
        np.testing.assert_array_less(
            np.abs(norms.best[:, column] - totals.min(axis=1)), accuracy * size
        )
        np.testing.assert_array_less(
            np.abs(norms.mean[:, column] - totals.mean(axis=1)), accuracy * size
        )


def test_one_arm_has_no_regret():
    losses = table_of(48, 1)
    result = sf.simulate(ADAPTIVE, losses, num_seeds=4, checkpoints=2)
    size = np.abs(losses).sum()
    np.testing.assert_allclose(result.regret, 0, atol=1e-6 * size)
    np.testing.assert_allclose(result.expected_regret, 0, atol=1e-6 * size)


def test_equal_arms_have_no_regret():
    """Whatever is played, the loss is the same."""
    losses = np.repeat(table_of(48, 1, seed=3), 3, axis=1)
    result = sf.simulate(DECAYING, losses, num_seeds=4, checkpoints=2)
    size = np.abs(losses).sum()
    np.testing.assert_allclose(result.regret, 0, atol=1e-6 * size)
    np.testing.assert_allclose(result.expected_regret, 0, atol=1e-6 * size)
    np.testing.assert_allclose(result.norms.best, result.norms.mean, rtol=1e-6)


def test_regret_compares_with_the_best_arm_so_far():
    """Arms 0 and 1 take turns to be the best; arm 2 costs nothing, so totals are known."""
    losses = np.zeros((48, 3))
    losses[:24, 0], losses[24:, 0] = -1.0, 3.0
    losses[:24, 1], losses[24:, 1] = 1.0, -4.0
    result = sf.simulate(DECAYING, losses, num_seeds=3, checkpoints=[24, 30, 40, 48])
    np.testing.assert_array_equal(result.norms.best[0], [-24, -6, -40, -72])
    # From one checkpoint to the next the total moves by at most the largest losses.
    totals = result.regret + result.norms.best[:, None]
    assert (np.abs(totals[0, :, 0]) <= 24).all()
    assert (np.diff(totals, axis=-1) >= -4 * np.diff(result.rounds)).all()
    assert (np.diff(totals, axis=-1) <= 3 * np.diff(result.rounds)).all()
    np.testing.assert_array_equal(totals, np.round(totals))


@pytest.mark.parametrize(
    ("asked", "wanted"),
    [
        ([30, 5, 5, 48, 1], [1, 5, 30, 48]),
        ([7], [7, 48]),
        (np.array([48], np.int32), [48]),
        (range(20, 50, 10), [20, 30, 40, 48]),
        (1, [48]),
        (2, [1, 48]),
        (48, list(range(1, 49))),
        (1000, list(range(1, 49))),
        (np.int64(1), [48]),
    ],
    ids=lambda value: str(value)[:12],
)
def test_checkpoints(asked, wanted):
    """The last round is always one; a checkpoint shows the same whatever the others."""
    table = table_of(48, 3, seed=4)
    result = sf.simulate(DECAYING, table, num_seeds=2, checkpoints=asked)
    np.testing.assert_array_equal(result.rounds, wanted)
    assert result.regret.shape == (1, 2, len(wanted))
    np.testing.assert_array_equal(result.norms.rounds, wanted)
    best = np.cumsum(table, axis=0).min(axis=1)[np.array(wanted) - 1]
    np.testing.assert_allclose(result.norms.best[0], best, atol=1e-6 * np.abs(table).sum())


def test_numbers_of_checkpoints_are_spread_over_the_scales():
    result = sf.simulate(UNIFORM, table_of(1000, 3), num_seeds=1, checkpoints=20)
    rounds = result.rounds
    assert len(rounds) == 20
    assert rounds[0] == 1
    assert rounds[-1] == 1000
    assert (np.diff(rounds) > 0).all()
    # Where the scale is coarser than single rounds, neighbours have about the same ratio.
    late = rounds[rounds > 30]
    ratios = late[1:] / late[:-1]
    np.testing.assert_allclose(ratios, np.median(ratios), rtol=0.05)


def test_nothing_of_the_length_of_the_game_is_kept():
    """Results of 5,000 rounds hold three checkpoints and no more."""
    result = sf.simulate(
        UNIFORM,
        sf.losses.gaussian(num_arms=3),
        num_rounds=5000,
        num_seeds=4,
        num_sequences=2,
        checkpoints=[70, 700],
        record=lambda state: state,
    )
    assert result.regret.shape == result.expected_regret.shape == (2, 4, 3)
    assert result.records.shape == (2, 4, 3, 3)
    for array in (result.rounds, *result.norms[1:]):
        assert array.size <= 6


def test_a_shorter_run_is_the_beginning_of_a_longer_one():
    table = table_of(96, 3, seed=5)
    options = {"num_seeds": 6, "chunk_rounds": 48}
    long = sf.simulate(ADAPTIVE, table, checkpoints=[48, 96], **options)
    short = sf.simulate(ADAPTIVE, table, num_rounds=48, checkpoints=[20, 48], **options)
    np.testing.assert_array_equal(long.regret[..., 0], short.regret[..., 1])
    np.testing.assert_array_equal(long.expected_regret[..., 0], short.expected_regret[..., 1])


def test_record_may_return_anything_of_arrays():
    table = table_of(48, 3, seed=4)
    result = sf.simulate(
        DECAYING,
        table,
        num_seeds=2,
        checkpoints=[3, 48],
        record=lambda state: [state.sampling.num_rounds, (state.full_information.play,)],
    )
    rounds, (play,) = result.records
    np.testing.assert_array_equal(rounds, np.tile([3, 48], (1, 2, 1)))
    assert play.shape == (1, 2, 2, 3)
    np.testing.assert_allclose(play.sum(axis=-1), 1, rtol=1e-6)
    assert sf.simulate(DECAYING, table, num_seeds=2, checkpoints=[3, 48]).records == ()


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


# The same game however it is run, bit for bit.


def test_a_seed_alone_is_its_place_in_a_batch():
    losses = sf.losses.gaussian(num_arms=3)
    options = {"num_rounds": 200, "checkpoints": [50, 200]}
    batch = sf.simulate(BOTH, losses, num_seeds=4096, **options)
    for first_seed, num_seeds in ((17, 1), (4095, 1), (500, 30)):
        alone = sf.simulate(BOTH, losses, first_seed=first_seed, num_seeds=num_seeds, **options)
        for name in BOTH:
            part = slice(first_seed, first_seed + num_seeds)
            np.testing.assert_array_equal(alone[name].regret, batch[name].regret[:, part])
            np.testing.assert_array_equal(
                alone[name].expected_regret, batch[name].expected_regret[:, part]
            )


@pytest.mark.slow
@pytest.mark.parametrize("losses", [table_of(130, 3), sf.losses.gaussian(num_arms=3)], ids=type)
def test_chunks_change_nothing(losses):
    run = partial(
        sf.simulate,
        ADAPTIVE,
        losses,
        num_rounds=130,
        num_seeds=5,
        checkpoints=[1, 7, 64, 65, 130],
    )
    whole = run()
    for chunk_rounds in (1, 7, 64, 1000):
        assert_same(run(chunk_rounds=chunk_rounds), whole)


def test_other_sequences_change_nothing():
    """The first member of a family or of an array plays the same among three or forty."""
    options = {"num_seeds": 3, "checkpoints": [5, 48], "num_rounds": 48}
    family = sf.losses.gaussian(num_arms=3)
    many = sf.simulate(ADAPTIVE, family, num_sequences=40, **options)
    one = sf.simulate(ADAPTIVE, family, **options)
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


ON_DEVICES = """
import sys
import jax
import jax.numpy as jnp
import numpy as np
import sfmab_jax as sf
from sfmab_jax.workers import run_jobs

assert len(jax.devices()) == int(sys.argv[2])
adaptive, decaying = (sf.strategies.scale_free(name) for name in ("adaptive", "decaying"))
table = np.random.default_rng(0).normal(size=(3, 40, 3))
gaussian = sf.losses.gaussian(num_arms=3)
runs = [
    dict(strategies=decaying, losses=table, num_seeds=700),
    dict(strategies=adaptive, losses=gaussian, num_seeds=30, num_sequences=50),
]
arrays = {}
for number, options in enumerate(runs):
    result = sf.simulate(num_rounds=40, checkpoints=[1, 9, 40], **options)
    arrays[f"{number}/regret"] = result.regret
    arrays[f"{number}/expected"] = result.expected_regret
    arrays[f"{number}/best"] = result.norms.best
fused = sf.simulate(decaying, table[:, :20], num_seeds=700, engine="fused", checkpoints=[3, 20])
arrays["fused"] = fused.regret
np.savez(sys.argv[1], **arrays)

# The last device alone, and that it is the one that plays.
chosen = sf.simulate(num_rounds=40, checkpoints=[1, 9, 40], devices=jax.devices()[-1:], **runs[0])
np.testing.assert_array_equal(chosen.regret, arrays["0/regret"])
where = run_jobs([lambda stop: jnp.arange(3) + 1], tuple(jax.devices()[-1:]), lambda: None)
assert where[0].devices() == {jax.devices()[-1]}
"""


def run_python(script, *arguments, **variables):
    """Runs a script in a fresh interpreter without this process's JAX configuration."""
    environment = {
        key: value for key, value in os.environ.items() if not key.startswith(("JAX_", "XLA_"))
    }
    return subprocess.run(
        [sys.executable, "-c", script, *arguments],
        env={**environment, "JAX_PLATFORMS": "cpu", **variables},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.slow
def test_devices_change_nothing(tmp_path):
    """One to eight devices, in processes of their own, give the same bits."""
    saved = {}
    for number in (1, 2, 4, 8):
        path = tmp_path / f"{number}.npz"
        flags = f"--xla_force_host_platform_device_count={number}"
        done = run_python(ON_DEVICES, str(path), str(number), XLA_FLAGS=flags)
        assert done.returncode == 0, done.stderr
        with np.load(path) as file:
            saved[number] = {name: file[name] for name in file.files}
    assert len(saved[1]) == 7
    for name, array in saved[1].items():
        assert np.isfinite(array).all()
        for number in (2, 4, 8):
            np.testing.assert_array_equal(array, saved[number][name], err_msg=f"{name}, {number}")


# Scale.


@pytest.mark.parametrize("power", [-119, -40, 1, 40, 119])
def test_scaling_losses_and_beta_scales_the_regret(power):
    """run(c l, beta = c) = c run(l, beta = 1) for option 1, bit for bit, from 1e-36 to 1e36."""
    table = table_of(48, 3, seed=10).astype(np.float32).astype(np.float64)
    table /= np.abs(table).max()
    options = {"num_seeds": 5, "checkpoints": [3, 48]}
    c = 2.0**power
    one = sf.simulate(sf.strategies.scale_free("decaying", beta=1.0), table, **options)
    scaled = sf.simulate(sf.strategies.scale_free("decaying", beta=c), c * table, **options)
    np.testing.assert_array_equal(scaled.regret, c * one.regret)
    np.testing.assert_array_equal(scaled.expected_regret, c * one.expected_regret)
    for name, degree in {"l_1": 1, "l_2": 2, "l_inf": 1, "s_inf": 1, "best": 1, "mean": 1}.items():
        mine, other = getattr(scaled.norms, name), getattr(one.norms, name)
        np.testing.assert_array_equal(mine, c**degree * other)


@pytest.mark.parametrize(
    ("bandit", "num_arms"),
    [(ADAPTIVE, 3), (DECAYING, 3), (ADAPTIVE, 300)],
    ids=["a3", "d3", "a300"],
)
@pytest.mark.parametrize("scale", [1e-36, 1e36])
def test_extreme_losses_in_float32(scale, bandit, num_arms):
    """Finite, and no larger than the losses allow, with either exploration."""
    table = table_of(48, num_arms, seed=10)
    table *= scale / np.abs(table).max()
    result = sf.simulate(bandit, table, num_seeds=5, checkpoints=[3, 48])
    for samples in (result.regret, result.expected_regret):
        assert np.isfinite(samples).all()
        assert (np.abs(samples) <= 2 * 48 * scale).all()
    # Regret at this scale is not lost among zeros.
    assert (np.abs(result.regret[..., -1]) > 1e-3 * scale).all()
    for norm in result.norms[2:]:
        assert np.isfinite(norm).all()


def test_float64_has_more_digits():
    """The same game in both dtypes, as long as rounding has not led to another arm."""
    table = table_of(48, 3, seed=11)
    narrow, wide = (
        sf.simulate(DECAYING, table, num_seeds=20, checkpoints=[4, 48], dtype=dtype)
        for dtype in ("float32", np.float64)
    )
    assert (narrow.dtype, wide.dtype) == ("float32", "float64")
    gap = np.abs(narrow.expected_regret - wide.expected_regret)
    assert np.median(gap) < 1e-4
    assert gap.max() > 0


# What is refused.

TABLE = np.zeros((20, 2))
FAMILY = sf.losses.uniform(num_arms=2)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"strategies": {}}, "strategies is empty"),
        ({"strategies": sf.strategies.scale_free}, "function scale_free"),
        ({"strategies": "scale_free"}, "'scale_free'"),
        ({"strategies": {"mine": None}}, "'mine' is None"),
        ({"strategies": [ADAPTIVE]}, "give a Bandit"),
        ({"losses": np.zeros(3)}, r"shape \(3,\)"),
        ({"losses": [[1.0, np.nan]]}, "nan at sequence 0, round 1, arm 1"),
        ({"losses": [["a", "b"]]}, "dtype <U1"),
        ({"losses": None}, "dtype object"),
        ({"losses": np.full((20, 2), 1e39)}, "1e[+]39, beyond the range of float32"),
        ({"losses": np.full((20, 2), 1e-39)}, "1e-39, beyond the range of float32"),
        ({"num_rounds": 0}, "num_rounds is 0"),
        ({"num_rounds": -5}, "num_rounds is -5"),
        ({"num_rounds": 21}, "num_rounds is 21; the losses have only 20"),
        ({"num_rounds": 10.0}, "num_rounds is 10.0"),
        ({"num_rounds": "ten"}, "num_rounds is 'ten'"),
        ({"num_rounds": True}, "num_rounds is True"),
        ({"num_rounds": 2**31, "losses": FAMILY}, "num_rounds is 2147483648"),
        ({"num_seeds": 0}, "num_seeds is 0"),
        ({"num_seeds": 1.5}, "num_seeds is 1.5"),
        ({"num_seeds": None}, "num_seeds is None"),
        ({"num_sequences": 0}, "num_sequences is 0"),
        ({"num_sequences": 2}, "num_sequences is 2; the losses have only 1"),
        ({"num_sequences": 2.5, "losses": FAMILY}, "num_sequences is 2.5"),
        ({"seed": -1}, "seed is -1"),
        ({"seed": 0.5}, "seed is 0.5"),
        ({"seed": 2**64}, "seed is 18446744073709551616"),
        ({"first_seed": -1}, "first_seed is -1"),
        ({"first_seed": 2**31}, "first_seed is 2147483648"),
        ({"checkpoints": 0}, "checkpoints is 0"),
        ({"checkpoints": -2}, "checkpoints is -2"),
        ({"checkpoints": 2.5}, "checkpoints is 2.5"),
        ({"checkpoints": None}, "checkpoints is None"),
        ({"checkpoints": "all"}, "checkpoints is 'all'"),
        ({"checkpoints": []}, r"checkpoints are \[\]"),
        ({"checkpoints": [1.5, 3.0]}, r"checkpoints are \[1.5, 3.0\]"),
        ({"checkpoints": [[1, 2], [3, 4]]}, r"checkpoints are \[\[1, 2\], \[3, 4\]\]"),
        ({"checkpoints": [0, 5]}, "checkpoints run from 0 to 20"),
        ({"checkpoints": [5, 21]}, "checkpoints run from 5 to 21"),
        ({"dtype": "float16"}, "dtype is float16"),
        ({"dtype": jnp.int32}, "dtype is int32"),
        ({"dtype": "single precision"}, "dtype is 'single precision'"),
        ({"record": "play"}, "record is 'play'"),
        ({"devices": []}, r"devices is \[\]"),
        ({"devices": ["cpu"]}, "devices has 'cpu'"),
        ({"devices": 2}, "devices is 2"),
        ({"chunk_rounds": 0}, "chunk_rounds is 0"),
        ({"chunk_rounds": -1}, "chunk_rounds is -1"),
        ({"chunk_rounds": 2.5}, "chunk_rounds is 2.5"),
    ],
    ids=lambda value: re.sub(r"0x\w+|\W+", "_", str(value))[:40],
)
def test_bad_arguments_are_refused_by_value(arguments, message):
    """At once: nothing has been compiled when the message comes."""
    arguments = {"strategies": ADAPTIVE, "losses": TABLE, **arguments}
    jax.devices()  # waking JAX up takes its own time
    started = time.perf_counter()
    with pytest.raises(ValueError, match=message):
        sf.simulate(**arguments)
    assert time.perf_counter() - started < 1


def test_float64_must_be_enabled():
    """The message says how."""
    script = """
import sfmab_jax as sf
try:
    sf.simulate(sf.strategies.scale_free(), [[1.0, 2.0]], dtype="float64")
except ValueError as error:
    print(error)
"""
    done = run_python(script)
    assert done.returncode == 0, done.stderr
    assert "jax.config.update('jax_enable_x64', True)" in done.stdout
    assert "JAX_ENABLE_X64=1" in done.stdout


def test_interruption_stops_the_threads(monkeypatch):
    """Ctrl-C is met between chunks; the message says how to go on."""
    calls = []

    def interrupt(self):
        calls.append(self.done)
        raise KeyboardInterrupt

    threads = set(threading.enumerate())
    monkeypatch.setattr(Progress, "show", interrupt)
    started = time.perf_counter()
    with pytest.raises(KeyboardInterrupt) as caught:
        sf.simulate(
            ADAPTIVE,
            sf.losses.gaussian(num_arms=3),
            num_rounds=1_000_000_000,
            num_seeds=4096,
            chunk_rounds=64,
            seed=9,
        )
    assert time.perf_counter() - started < 60
    assert len(calls) == 1
    message = str(caught.value)
    assert "of 4,096,000,000,000 rounds" in message
    assert "seed=9" in message
    assert "first_seed" in message
    assert set(threading.enumerate()) <= threads


def test_errors_of_a_strategy_reach_the_caller():
    """An exception in a worker thread is raised, and the threads end."""

    def broken(state, seen):
        raise RuntimeError("no such rule")

    bandit = sf.compose(
        sf.sampling.as_played()._replace(update=broken),
        sf.estimation.importance_weighted(),
        sf.full_information.ftrl(sf.potentials.log_barrier(), 0.1),
    )
    threads = set(threading.enumerate())
    with pytest.raises(RuntimeError, match="no such rule"):
        sf.simulate(bandit, table_of(48, 3), num_seeds=2)
    assert set(threading.enumerate()) <= threads


def test_bare_functions_make_a_bandit():
    """Uniform play: its conditional regret is known."""
    table = table_of(48, 3, seed=12)
    result = sf.simulate(UNIFORM, table, num_seeds=4, checkpoints=[3, 48], dtype=jnp.float64)
    totals = np.cumsum(table, axis=0)[[2, 47]]
    wanted = totals.mean(axis=1) - totals.min(axis=1)
    np.testing.assert_allclose(result.expected_regret, np.tile(wanted, (1, 4, 1)), rtol=1e-12)


def test_progress_does_not_change_the_games(capsys):
    table = table_of(48, 3, seed=4)
    options = {"num_seeds": 2, "checkpoints": [3, 48]}
    quiet = sf.simulate(DECAYING, table, progress=False, **options)
    assert capsys.readouterr() == ("", "")
    shown = sf.simulate(DECAYING, table, progress=True, **options)
    assert capsys.readouterr().out == ""
    assert_same(quiet, shown)
