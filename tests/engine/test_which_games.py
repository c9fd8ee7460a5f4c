"""Which games are played by default, and how many more until a rule is satisfied."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from simulated import UNIFORM

import sfmab_jax as sf
from sfmab_jax.engine.loss_stream import has_chance
from sfmab_jax.engine.validate import check_games

BERNOULLI = sf.losses.bernoulli(num_arms=3)
HOW = {"num_rounds": 20, "checkpoints": [20], "progress": False}
WITHOUT_CHANCE = {"cyclic", "parity", "zero", "one_arm"}


@pytest.mark.parametrize("name", sf.losses.LOSSES)
def test_families_with_chance_are_told_from_those_without(name):
    assert has_chance(sf.losses.LOSSES[name](num_arms=3)) == (name not in WITHOUT_CHANCE)


def test_chance_of_users_families():
    def noise(key, t):
        return jax.random.normal(key, (2,), jnp.float32)

    def wave(key, t, period):
        return jnp.sin(t.astype(jnp.float32) / period + jnp.arange(2, dtype=jnp.float32))

    assert has_chance(sf.losses.from_function(noise, 2))
    assert not has_chance(sf.losses.from_function(wave, 2, period=7.0))
    assert has_chance(
        sf.losses.mixed([sf.losses.cyclic(2), sf.losses.from_function(noise, 2)], [0.5, 0.5])
    )
    assert not has_chance(sf.losses.from_array([[1.0, 0.0]]))


@pytest.mark.parametrize(
    ("losses", "asked", "games"),
    [
        (BERNOULLI, {}, (8, 1, 0, 0)),
        (BERNOULLI, {"first_seed": 3}, (8, 1, 3, 0)),
        (BERNOULLI, {"first_sequence": 3}, (8, 1, 3, 0)),
        (BERNOULLI, {"num_sequences": 1}, (1, 8, 0, 0)),
        (BERNOULLI, {"num_sequences": 2, "first_sequence": 5, "first_seed": 4}, (2, 8, 5, 4)),
        (sf.losses.parity(3), {"first_seed": 3}, (1, 8, 0, 3)),
        (sf.losses.from_array(np.ones((4, 5, 2))), {}, (4, 8, 0, 0)),
        (sf.losses.from_array(np.ones((4, 5, 2))), {"first_sequence": 3}, (1, 8, 3, 0)),
    ],
)
def test_which_games_are_played(losses, asked, games):
    arguments = {"num_sequences": None, "first_sequence": None, "first_seed": 0} | asked
    found = check_games(num_seeds=8, losses=losses, **arguments)
    assert tuple(found) == games


@pytest.mark.parametrize(
    ("losses", "asked", "message"),
    [
        (BERNOULLI, {"first_seed": 1, "first_sequence": 2}, "give one of them, or num_sequences"),
        (BERNOULLI, {"first_sequence": -1}, "first_sequence is -1"),
        (np.ones((4, 5, 2)), {"first_sequence": 4}, "from number 4 on; the losses have only 4"),
        (np.ones((4, 5, 2)), {"num_sequences": 5}, "num_sequences is 5; the losses have only 4"),
    ],
)
def test_games_that_there_are_not(losses, asked, message):
    with pytest.raises(ValueError, match=message):
        sf.simulate(UNIFORM, losses, num_seeds=2, num_rounds=5, **asked)


def test_it_plays_on_until_the_interval_is_narrow():
    rule = sf.until.precise(width=0.8)
    result = sf.simulate(UNIFORM, BERNOULLI, num_seeds=32, until=rule, **HOW)
    games = len(result.regret)
    assert games in (128, 256, 512, 1024)
    low, high = (side[0, -1] for side in result.interval())
    assert high - low <= 0.8
    assert result.first_look == 64
    half = sf.Result(**{**vars(result), "expected_regret": result.expected_regret[: games // 2]})
    low, high = (side[0, -1] for side in half.interval())
    assert high - low > 0.8
    whole = sf.simulate(UNIFORM, BERNOULLI, num_seeds=games, **HOW)
    np.testing.assert_array_equal(result.regret, whole.regret)


@pytest.mark.parametrize("num_seeds", [1, 3])
def test_it_looks_first_at_fifty_games(num_seeds):
    """Of a family, also where it begins with a single game."""
    counts = []

    def is_enough(results):
        counts.append(results["strategy"].regret.shape[:2])
        return True

    rule = sf.until.Until(is_enough, "an end")
    result = sf.simulate(UNIFORM, BERNOULLI, num_seeds=num_seeds, until=rule, **HOW)
    games = {1: 64, 3: 96}[num_seeds]
    assert counts == [(games, 1)]
    assert result.first_look == games


def test_it_plays_on_until_a_difference_is_decided():
    bandits = {"uniform": UNIFORM, "exp3": sf.strategies.exp3()}
    rule = sf.until.decided("uniform", "exp3")
    results = sf.simulate(bandits, BERNOULLI, num_sequences=1, num_seeds=32, until=rule, **HOW)
    assert results["exp3"].regret.shape[0] == 1  # more seeds of the one sequence
    _, low, high = results.difference("uniform", "exp3")
    assert low[0, -1] > 0 or high[0, -1] < 0


def test_it_gives_up_with_a_warning():
    rule = sf.until.precise(relative=1e-6, most_games=64)
    with pytest.warns(RuntimeWarning, match="after 64 games .*known to within 1e-06.* given up"):
        result = sf.simulate(UNIFORM, BERNOULLI, num_seeds=16, until=rule, **HOW)
    assert result.regret.shape == (64, 1, 1)


def test_ctrl_c_keeps_the_looks_before():
    calls = []

    def advance(rounds):
        calls.append(rounds)
        if sum(calls) > 16 * 20:
            raise KeyboardInterrupt

    rule = sf.until.Until(lambda results: False, "an end")
    how = HOW | {"progress": advance}
    with pytest.warns(RuntimeWarning, match="stopped while waiting for an end; .* first 16 games"):
        result = sf.simulate(UNIFORM, BERNOULLI, num_seeds=16, until=rule, **how)
    assert result.regret.shape == (16, 1, 1)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: sf.until.precise(), "give one of them"),
        (lambda: sf.until.precise(relative=0.1, width=1.0), "give one of them"),
        (lambda: sf.until.precise(width=-1.0), "width is -1.0"),
        (lambda: sf.until.decided("a", "b", level=2), "level is 2"),
        (lambda: sf.until.precise(width=1.0, most_games=0), "most_games is 0"),
        (lambda: sf.until.decided("a", "a"), "one and other are both 'a'"),
        (
            lambda: sf.simulate(
                {"a, b": UNIFORM}, BERNOULLI, until=sf.until.decided("a, b", "b"), num_rounds=10**8
            ),
            "waits for a difference between 'a, b' and 'b', but .* no strategy 'b'; .* are 'a, b'",
        ),
        (
            lambda: sf.simulate(UNIFORM, BERNOULLI, until=0.1),
            r"until is 0.1; give sf.until.precise",
        ),
        (
            lambda: sf.simulate(UNIFORM, np.ones((3, 5, 2)), until=sf.until.precise(width=1.0)),
            "give the rule over='sequence'",
        ),
        (
            lambda: sf.simulate(
                UNIFORM, BERNOULLI, until=sf.until.precise(width=1.0), keep="moments"
            ),
            "needs the games themselves",
        ),
    ],
)
def test_rules_that_are_none(make, message):
    with pytest.raises(ValueError, match=message):
        make()
