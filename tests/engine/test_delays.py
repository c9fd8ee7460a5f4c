"""Delayed feedback: what arrives, when, with which law, and what is refused."""

import json
import os
import re
import sys
from functools import partial
from typing import NamedTuple

import delayed_loops
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from simulated import UNIFORM, assert_same, run_python
from study_folders import StoppedError
from test_bookmarks import Memory
from tiers import some_in_default

import sfmab_jax as sf
from sfmab_jax.compose import parts_of
from sfmab_jax.engine.run import keys_of_games
from sfmab_jax.numerics.threefry import root_key, threefry_2x32
from sfmab_jax.theory.guarantees import exploration_of, guarantee

EXP3 = sf.strategies.exp3()  # quick to compile
NUM_ROUNDS, NUM_ARMS, NUM_SEEDS = 40, 4, 2
LOSSES = np.random.default_rng(0).random((NUM_ROUNDS, NUM_ARMS)) * [1.0, 0.5, 1.0, 0.9]
# Everything at once in round 11; some arrive at once, some late, some after the last round.
HOSTILE = np.array([*range(10, -1, -1), 0, 3, 0, 7, 2, 2, 1, 0, 20, 9, 8, *[10**9, 1] * 9])
NEVER = sf.delays.NEVER


# Against plain loops.

PLAYERS = {
    "exp3": (EXP3, delayed_loops.Exp3),
    "tsallis_inf": (sf.strategies.tsallis_inf(), delayed_loops.TsallisINF),
    "tsallis_inf_delayed": (
        sf.strategies.tsallis_inf_delayed(),
        delayed_loops.TsallisINFDelayed,
    ),
    "hedge": (sf.strategies.hedge(), delayed_loops.Hedge),
    "adaptive": (
        sf.strategies.scale_free("adaptive"),
        partial(delayed_loops.ScaleFree, exploration="adaptive"),
    ),
    "decaying": (
        sf.strategies.scale_free("decaying"),
        partial(delayed_loops.ScaleFree, exploration="decaying"),
    ),
}
DELAYS = {"fixed": 3, "hostile": HOSTILE, "geometric": sf.delays.geometric(4.0)}


def words_of_game(game, counter, seed=0):
    """The random words of every round, two columns of whole numbers [T, 2]."""
    key = keys_of_games(root_key(seed), jnp.uint32([0]), jnp.uint32([game]))[:, 0]
    rounds = np.arange(1, NUM_ROUNDS + 1, dtype=np.uint32)
    words = threefry_2x32((key[0], key[1]), (jnp.asarray(rounds), jnp.uint32(counter)))
    return np.stack(words, axis=1).astype(np.int64)


def uniforms_of_game(game):
    """The numbers that arms are drawn with: 46 bits of the words of counter 0."""
    high, low = words_of_game(game, 0).T
    return (high * 2**14 + (low >> 18)) / 2.0**46


def delays_of_game(name, game):
    if name == "fixed":
        return np.full(NUM_ROUNDS, 3)
    if name == "hostile":
        return HOSTILE
    uniform = (words_of_game(game, 1)[:, 0] + 0.5) / 2.0**32
    return np.floor(np.log(uniform) / np.log(4 / 5)).astype(int)


CASES = [(name, delay) for name in PLAYERS for delay in DELAYS]
QUICK = [
    ("exp3", "fixed"),
    ("exp3", "geometric"),
    *((name, "hostile") for name in ("tsallis_inf_delayed", "hedge", "adaptive")),
]


@pytest.mark.parametrize(("name", "delay"), some_in_default(CASES, QUICK))
def test_a_delayed_game_is_its_plain_loop(name, delay):
    """The loop draws its own arms, with the same random words, and meets the same laws."""
    bandit, make = PLAYERS[name]
    result = sf.simulate(
        bandit,
        LOSSES,
        num_seeds=NUM_SEEDS,
        delay=DELAYS[delay],
        checkpoints=NUM_ROUNDS,
        dtype=jnp.float64,
        record=bandit.probabilities,
        arm_counts=True,
    )
    arms = np.diff(result.arm_counts[0], axis=1, prepend=0).argmax(axis=-1)
    for game in range(NUM_SEEDS):
        wanted_arms, laws = delayed_loops.play(
            make(NUM_ARMS), LOSSES, uniforms_of_game(game), delays_of_game(delay, game)
        )
        np.testing.assert_array_equal(arms[game], wanted_arms)
        np.testing.assert_allclose(result.records[0, game, :-1], laws[1:], rtol=1e-9)
        totals = np.cumsum((laws * LOSSES).sum(axis=1)) - np.cumsum(LOSSES, axis=0).min(axis=1)
        np.testing.assert_allclose(result.expected_regret[0, game], totals, rtol=1e-9, atol=1e-12)


# What arrives.


def logbook(wait=True, size=NUM_ROUNDS):
    """A full-information strategy that plays uniformly and writes down what it is told."""

    def init(num_arms, dtype, loss_unit):
        empty = jnp.zeros(size, dtype)
        play = jnp.full(num_arms, 1 / num_arms, dtype)
        counts = jnp.zeros(3, jnp.int32)  # of updates, of ends of rounds, what is missing
        return Log(play, counts, empty, empty - 1, jnp.zeros(size, jnp.int32))

    def update(state, seen):
        at = state.counts[0]
        missing = jnp.int32(-7) if seen.missing is None else seen.missing
        return state._replace(
            counts=state.counts.at[0].add(1),
            losses=state.losses.at[at].set(seen.loss),
            missing=state.missing.at[at].set(missing.astype(state.missing.dtype)),
        )

    def end_of_round(state, round_, missing):
        counts = jnp.stack([state.counts[0], state.counts[1] + 1, missing])
        return state._replace(counts=counts, ends=state.ends.at[round_ - 1].set(missing))

    return sf.FullInformation(init, update, end_of_round if wait else None)


class Log(NamedTuple):
    play: jax.Array
    counts: jax.Array
    losses: jax.Array
    missing: jax.Array
    ends: jax.Array


def keeping_a_log(**options):
    return sf.compose(
        sf.sampling.as_played(), sf.estimation.importance_weighted(), logbook(**options)
    )


@pytest.mark.parametrize("feedback", some_in_default(["bandit", "full"], ["bandit"]))
def test_nothing_is_lost_and_the_oldest_comes_first(feedback):
    """The loss of round t is t: what was written down is the order of arrival."""
    rounds = np.arange(1, NUM_ROUNDS + 1)
    table = np.repeat(rounds[:, None].astype(float), 2, axis=1)
    result = sf.simulate(
        keeping_a_log(),
        table,
        num_seeds=2,
        delay=HOSTILE,
        feedback=feedback,
        record=lambda state: state.full_information,
        checkpoints=1,
    )
    due = rounds + HOSTILE
    order = np.lexsort((rounds, due))
    order = order[due[order] <= NUM_ROUNDS]
    missing = [(rounds <= due[i]).sum() - place - 1 for place, i in enumerate(order)]
    ends = [(rounds <= t).sum() - (due <= t).sum() for t in rounds]
    assert len(order) < NUM_ROUNDS  # some never arrive
    assert np.bincount(due[order]).max() >= 11  # and many at once
    for log in (
        jax.tree.map(lambda x, game=game: x[0, game, 0], result.records) for game in (0, 1)
    ):
        assert log.counts[0] == len(order)
        assert log.counts[1] == NUM_ROUNDS
        np.testing.assert_array_equal(log.losses[: len(order)], rounds[order])
        np.testing.assert_array_equal(log.missing[: len(order)], missing)
        np.testing.assert_array_equal(log.ends, ends)


def test_without_delay_nothing_is_missing_and_nobody_waits():
    result = sf.simulate(
        keeping_a_log(),
        LOSSES,
        num_seeds=1,
        record=lambda state: state.full_information,
        checkpoints=1,
    )
    log = jax.tree.map(lambda x: x[0, 0, 0], result.records)
    assert log.counts.tolist() == [NUM_ROUNDS, 0, 0]
    assert (log.missing == -7).all()


def test_nothing_arrives_after_the_last_round():
    """Delays of T - 1 rounds and more: one observation, and none."""
    for delay, updates in ((NUM_ROUNDS - 1, 1), (NUM_ROUNDS, 0), (10**9, 0), ([NEVER] * 40, 0)):
        result = sf.simulate(
            keeping_a_log(wait=False),
            LOSSES,
            num_seeds=1,
            delay=delay,
            record=lambda state: state.full_information.counts,
            checkpoints=1,
        )
        assert result.records[0, 0, 0, 0] == updates


# Without delay.


def test_no_delay_in_any_spelling_is_the_run_without():
    run = partial(sf.simulate, EXP3, LOSSES.astype(np.float32), num_seeds=5, num_rounds=30)
    plain = run()
    for spelling in (
        0,
        np.int64(0),
        sf.delays.fixed(0),
        [0] * 40,
        np.zeros(30, np.uint8),
        sf.delays.from_array([0] * 30 + [5, 5]),
    ):
        result = run(delay=spelling)
        assert_same(result, plain)
        assert result.delay is None


def test_a_delay_in_the_last_round_alone_changes_nothing_before():
    """The delayed program plays the same game as the usual one, up to rounding."""
    options = {"num_seeds": 4, "dtype": jnp.float64}
    bandit = sf.strategies.tsallis_inf_delayed()
    plain = sf.simulate(bandit, LOSSES, **options)
    late = sf.simulate(bandit, LOSSES, delay=[0] * (NUM_ROUNDS - 1) + [1], **options)
    assert late.delay is not None
    np.testing.assert_allclose(late.expected_regret, plain.expected_regret, rtol=1e-10)


# The same bits.


@pytest.mark.optimised
def test_chunks_and_batches_change_nothing():
    losses = sf.losses.uniform(num_arms=3)
    run = partial(sf.simulate, EXP3, losses, num_rounds=60, delay="geometric", checkpoints=5)
    whole = run(num_seeds=600)
    assert_same(run(num_seeds=600, chunk_rounds=7), whole)
    alone = run(num_seeds=1, first_seed=550)
    np.testing.assert_array_equal(alone.regret, whole.regret[550:551])
    np.testing.assert_array_equal(alone.expected_regret, whole.expected_regret[550:551])


def test_a_delayed_run_goes_on_from_its_bookmarks_bitwise():
    run = partial(
        sf.simulate, EXP3, sf.losses.random_walk(num_arms=3), num_rounds=250, num_seeds=20,
        num_sequences=1, chunk_rounds=24, delay=sf.delays.geometric(20.0), checkpoints=9,
    )  # fmt: skip
    through, memory = run(), Memory(span_rounds=50)
    memory.stop_at = 3
    with pytest.raises(StoppedError):
        run(bookmarks=memory.bookmarks())
    memory.stop_at = None
    resumed = run(bookmarks=memory.bookmarks())
    assert memory.resumed > 0
    assert_same(resumed, through)


def results_on(devices):
    """Regret of games whose losses and delays are their own."""
    how = {"num_rounds": 40, "num_seeds": 700, "checkpoints": [9, 40], "devices": devices}
    return sf.simulate(EXP3, sf.losses.uniform(num_arms=3), delay="geometric", **how).regret


ON_DEVICES = """
import sys
import jax
import numpy as np
from test_delays import results_on

assert len(jax.devices()) == 2
np.save(sys.argv[1], results_on(None))
"""


def test_devices_change_nothing(tmp_path):
    flags = f"--xla_force_host_platform_device_count=2 {os.environ['XLA_FLAGS']}"
    path = tmp_path / "several.npy"
    done = run_python(ON_DEVICES, str(path), XLA_FLAGS=flags, PYTHONPATH=os.pathsep.join(sys.path))
    assert done.returncode == 0, done.stderr
    np.testing.assert_array_equal(np.load(path), results_on(jax.devices()[:1]))


def test_vmap_plays_the_same_games():
    options = {"num_seeds": 4, "delay": HOSTILE, "dtype": jnp.float64}
    lanes, vmap = (sf.simulate(EXP3, LOSSES, batching=how, **options) for how in ("lanes", "vmap"))
    np.testing.assert_allclose(vmap.regret, lanes.regret, rtol=1e-10, atol=1e-10)


def test_all_strategies_meet_the_same_delays():
    """And games of their own: the mean number of observations is that of the law."""
    named = {"a": keeping_a_log(wait=False), "b": keeping_a_log(wait=False)}
    results = sf.simulate(
        named,
        sf.losses.zero(num_arms=2),
        num_rounds=NUM_ROUNDS,
        num_seeds=1000,
        delay=sf.delays.geometric(5.0),
        record=lambda state: state.full_information.counts[0],
        checkpoints=1,
    )
    counts = results["a"].records[0, :, 0]
    np.testing.assert_array_equal(counts, results["b"].records[0, :, 0])
    # P(d <= T - t) = 1 - (5/6)^(T - t + 1), independent rounds.
    chance = 1 - (5 / 6) ** np.arange(1, NUM_ROUNDS + 1)
    error = np.sqrt((chance * (1 - chance)).sum() / 1000)
    assert abs(counts.mean() - chance.sum()) < 4 * error


@pytest.mark.parametrize("name", some_in_default(sf.strategies.STRATEGIES, ["ucb1"]))
def test_every_strategy_plays_under_delay(name):
    """Their laws stay laws, and nothing is infinite."""
    bandit = sf.strategies.STRATEGIES[name]()
    result = sf.simulate(
        bandit,
        LOSSES,
        num_seeds=8,
        delay=HOSTILE,
        record=lambda state: (bandit.probabilities(state), state),
        checkpoints=NUM_ROUNDS,
    )
    laws, states = result.records
    assert laws.min() >= 0
    np.testing.assert_allclose(laws.sum(axis=-1), 1, atol=1e-5)
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(states))


# What is said of it.


def test_results_say_how_feedback_was_delayed(tmp_path):
    result = sf.simulate(EXP3, LOSSES, num_seeds=4, delay=3)
    assert result.delay == "fixed 3"
    assert ", delay fixed 3, " in repr(result)
    assert ", delay fixed 3, " in repr(sf.Results({"a": result}))
    (again,) = sf.load(result.save(tmp_path / "late")).values()
    assert again.delay == "fixed 3"
    with np.load(tmp_path / "late") as file:  # as versions wrote it that knew no delay
        stored = dict(file)
    header = json.loads(str(stored["header"]))
    del header["results"][0]["delay"]
    np.savez(tmp_path / "old.npz", **stored | {"header": np.array(json.dumps(header))})
    assert sf.load(tmp_path / "old.npz")["strategy"].delay is None
    found = guarantee(result)
    assert not found.lines
    assert "delayed feedback (fixed 3)" in found.reason
    assert exploration_of(result) is None
    more = sf.simulate(EXP3, LOSSES, num_seeds=4, first_seed=4)
    with pytest.raises(ValueError, match="delay is 'fixed 3' in one result and None"):
        sf.concat([result, more])
    summary = sf.simulate(EXP3, LOSSES, num_seeds=4, delay=3, keep="moments")
    assert ", delay fixed 3, " in repr(summary)
    (again,) = sf.load(summary.save(tmp_path / "sum")).values()
    assert again.delay == "fixed 3"


@pytest.mark.parametrize("keep", ["games", "moments"])
def test_delays_that_go_wrong_later_are_told(keep):
    """In round 65, after those that are tried before the run, of the games that draw so."""

    def wrong(key, t):
        late = jnp.where(jax.random.bernoulli(key, 0.5), -1, 2)
        return jnp.where(t == 65, late, jnp.int32(1))

    named = {"mine": EXP3}
    with pytest.warns(RuntimeWarning, match="'mine'.*below 0 or above most=1,000.*round 65 of 70"):
        sf.simulate(
            named, sf.losses.uniform(num_arms=3), num_rounds=70, num_seeds=16, delay=wrong,
            keep=keep,
        )  # fmt: skip
    # In rounds that are not played nobody looks at them.
    sf.simulate(named, sf.losses.uniform(num_arms=3), num_rounds=64, num_seeds=16, delay=wrong)


# What is refused.


def given(delay, bandit=EXP3, **options):
    return sf.simulate(bandit, LOSSES, num_seeds=2, **{"delay": delay} | options)


@pytest.mark.quick
@pytest.mark.parametrize(
    ("delay", "words"),
    [
        (-1, "delay is -1; give an integer from 0"),
        (2.5, "delay is 2.5; give an integer"),
        (True, "delay is True"),
        ("late", "delay is 'late'; give a number of rounds, 'geometric', an array"),
        ([1, 2, 3], "delays of 3 rounds, and 40 are played"),
        ([1, -2] * 20, "the delay of round 2 is -2; a delay is 0 or more"),
        ([0.5] * 40, "shape \\[40\\] and dtype float64; give an integer for each round"),
        (np.zeros((40, 2), int), "shape \\[40, 2\\]"),
        ([[1], [1, 2]], "give an integer for each round"),
        (lambda key, t: t - 5, "the function of delays returns -4 in round 1"),
        (lambda key, t: t * 600, "returns 1200 in round 2; return a delay from 0 to most=1,000"),
        (lambda key, t: t / 2, "the function of delays returns float32\\[\\]; return an integer"),
        (lambda key, t: jnp.stack([t, t]), "returns int32\\[2\\]; return an integer"),
        (lambda key: 3, "define it as delay\\(key, round\\)"),
        (lambda key, t: 3 if t > 5 else 1, "by a Python `if`"),
    ],
)
def test_a_delay_that_is_none_is_refused(delay, words):
    with pytest.raises(ValueError, match=words):
        given(delay)


@pytest.mark.quick
def test_what_cannot_be_delayed_is_refused():
    with pytest.raises(ValueError, match="delay= needs engine='scan'"):
        given(3, engine="fused")
    with pytest.raises(ValueError, match="certificate=True is for feedback without delay"):
        given(3, sf.strategies.scale_free(), certificate=True)
    with pytest.raises(ValueError, match=r"'strategy' was not made by sf\.compose"):
        given(3, UNIFORM)
    with pytest.raises(ValueError, match=re.escape("the limit is 1 GiB")):
        sf.simulate(EXP3, sf.losses.uniform(num_arms=10), num_rounds=10**6, delay=60_000)


@pytest.mark.quick
def test_wait_is_checked():
    _, _, log = parts_of(keeping_a_log())

    def compose(wait):
        part = log._replace(wait=wait)
        return sf.compose(sf.sampling.as_played(), sf.estimation.importance_weighted(), part)

    with pytest.raises(ValueError, match=r"wait of the full-information strategy of .* is 3"):
        given(3, compose(3))
    with pytest.raises(ValueError, match=r"define wait\(state, round, missing\)"):
        given(3, compose(lambda state: state))
    with pytest.raises(ValueError, match=r"wait of .* makes state.full_information.play"):
        given(3, compose(lambda state, t, missing: state._replace(play=state.play[:2])))


# Regret.


@pytest.mark.full
def test_regret_grows_like_the_root_of_the_delay():
    """Of Exp3 on losses that stay for d + 1 rounds: the lower bound's, sqrt(d T ln n) in order.

    The standard error of the exponent is 0.01.
    """
    delays, num_rounds = np.array([24, 49, 99, 199]), 4000
    means = []
    for delay in delays:
        blocks = num_rounds // (delay + 1)
        coins = np.random.default_rng(delay).integers(0, 2, (512, blocks, 5)).astype(np.float32)
        table = np.repeat(coins, delay + 1, axis=1)
        result = sf.simulate(EXP3, table, num_seeds=1, delay=delay, checkpoints=1)
        means.append(result.mean()[0, -1])
    exponent = np.polyfit(np.log(delays + 1), np.log(means), 1)[0]
    assert abs(exponent - 0.5) < 0.05
