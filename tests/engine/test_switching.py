"""Regret against the best sequence of arms with few switches: against enumeration and loops."""

import itertools
from functools import partial

import jax.numpy as jnp
import numpy as np
import pytest
from simulated import UNIFORM, assert_same, table_of
from tiers import some_in_default

import sfmab_jax as sf
from sfmab_jax.results.hardness import loss_chunks

EXP3 = sf.strategies.exp3()  # quick to compile


def enumerated(losses, switches):
    """The least total of all sequences of arms with so few switches; losses [T, n] -> [T]."""
    num_rounds, n = losses.shape
    least = np.full(num_rounds, np.inf)
    for arms in itertools.product(range(n), repeat=num_rounds):
        totals = losses[np.arange(num_rounds), arms].cumsum()
        is_allowed = np.cumsum(np.diff(arms, prepend=arms[0]) != 0) <= switches
        least = np.where(is_allowed, np.minimum(least, totals), least)
    return least


def by_segments(losses, switches):
    """The same for long tables: the best segments of all lengths, one switch after another."""
    _num_rounds, n = losses.shape
    sums = np.concatenate([np.zeros((1, n)), losses.cumsum(axis=0)])
    least = sums[1:].min(axis=1)
    for _ in range(switches):
        # Up to round s as before, from there to round t on one arm: min_s least_s - sums_s.
        gain = np.minimum.accumulate(least[:, None] - sums[1:], axis=0)
        later = (sums[2:] + gain[:-1]).min(axis=1)
        least = np.minimum(least, np.append(np.inf, later))
    return least


def own_losses(family, num_sequences, num_rounds):
    """The losses of a family's first members, float64 [K, T, n]."""
    members = range(num_sequences)
    return np.stack([np.concatenate(list(loss_chunks(family, num_rounds, k))) for k in members])


def tables(scale):
    """Tables [3, T, n] of few binary digits, so that all sums are exact."""
    generator = np.random.default_rng(1)
    for num_rounds, n in ((6, 2), (6, 3), (1, 3), (4, 1)):
        table = generator.integers(-64, 65, size=(3, num_rounds, n)) / 64
        table[1] = np.abs(table[1])
        table[2, 0] = 2.0**24  # in float32 later losses are in the second word
        table[2, 1:] = generator.integers(0, 8, size=(num_rounds - 1, n)) / 4
        yield scale * table


@pytest.mark.parametrize("scale", [1.0, 2.0**100, 2.0**-110])
@pytest.mark.parametrize("switches", [0, 1, 2, 3])
def test_it_is_the_minimum_of_all_sequences_of_arms(switches, scale):
    for table in tables(scale):
        result = sf.simulate(UNIFORM, table, num_seeds=2, switches=switches)
        wanted = np.stack([enumerated(losses, switches) for losses in table])
        np.testing.assert_array_equal(result.best_switching, wanted)
        total = result.regret + result.norms.best[:, None]
        np.testing.assert_allclose(
            result.tracking_regret, total - wanted[:, None], rtol=1e-12, atol=1e-9 * scale
        )
        if switches == 0:
            np.testing.assert_array_equal(result.best_switching, result.norms.best)
            np.testing.assert_array_equal(result.tracking_regret, result.regret)


@pytest.mark.quick
def test_the_two_oracles_agree():
    for table in tables(1.0):
        for losses, switches in itertools.product(table, range(4)):
            np.testing.assert_array_equal(
                by_segments(losses, switches), enumerated(losses, switches)
            )


@pytest.mark.optimised
@pytest.mark.parametrize("switches", some_in_default([0, 4], [4]))
def test_ten_thousand_rounds_in_float32(switches):
    """As exact as the norms: to a few units of two words."""
    generator = np.random.default_rng(2)
    losses = generator.normal(size=(10_000, 5)).astype(np.float32) + np.float32(3)
    result = sf.simulate(UNIFORM, losses, num_seeds=1, switches=switches)
    wanted = by_segments(losses.astype(np.float64), switches)[result.rounds - 1]
    np.testing.assert_allclose(result.best_switching[0], wanted, rtol=1e-11)
    if switches == 0:
        np.testing.assert_array_equal(result.tracking_regret, result.regret)


@pytest.mark.parametrize(("num_sequences", "num_seeds"), [(3, 2), (2, 8)], ids=["own", "streamed"])
def test_losses_that_lanes_make_and_that_are_streamed(num_sequences, num_seeds):
    """Nothing else changes; and nothing in other chunks, by vmap, or in another unit."""
    family = sf.losses.switching(num_arms=4, gap=0.5, num_rounds=50)
    games = {"num_rounds": 50, "num_sequences": num_sequences, "num_seeds": num_seeds}
    run = partial(sf.simulate, UNIFORM, **games, checkpoints=9)
    result = run(family, switches=3)
    assert_same(result, run(family))
    wanted = [by_segments(losses, 3) for losses in own_losses(family, num_sequences, 50)]
    wanted = np.stack(wanted)[:, result.rounds - 1]
    np.testing.assert_allclose(result.best_switching, wanted, rtol=1e-12, atol=1e-12)
    for other in ({"chunk_rounds": 16}, {"batching": "vmap"}):
        again = run(family, switches=3, **other)
        assert_same(again, result)
        np.testing.assert_array_equal(again.tracking_regret, result.tracking_regret)
    large = run(sf.losses.scaled(family, 2.0**90), switches=3)
    np.testing.assert_array_equal(large.tracking_regret, 2.0**90 * result.tracking_regret)


@pytest.mark.parametrize("losses", [table_of(2, 20, 300), sf.losses.gaussian(num_arms=300)])
def test_many_arms(losses):
    """Games of 300 arms are played one by one; most sequences of arms could switch everywhere."""
    given = {"num_rounds": 20, "num_sequences": 2, "num_seeds": 1, "checkpoints": 20}
    result = sf.simulate(EXP3, losses, **given, switches=30)
    table = losses if isinstance(losses, np.ndarray) else own_losses(losses, 2, 20)
    wanted = table.astype(np.float32).astype(np.float64).min(axis=2).cumsum(axis=1)
    np.testing.assert_allclose(result.best_switching, wanted, rtol=1e-12)


@pytest.mark.parametrize("bad", [np.inf, -np.inf, np.nan])
def test_from_a_loss_on_that_is_not_finite_it_is_no_number(bad):
    def loss(key, t, bad):
        losses = jnp.arange(3, dtype=jnp.float32) * t.astype(jnp.float32)
        return jnp.where((t == 5) & (losses == 5), bad, losses)

    family = sf.losses.from_function(loss, 3, bad=bad)
    with pytest.warns(RuntimeWarning, match="not finite"):
        result = sf.simulate(UNIFORM, family, num_rounds=8, num_seeds=2, switches=2)
    np.testing.assert_array_equal(np.isfinite(result.tracking_regret), np.isfinite(result.regret))
    np.testing.assert_array_equal(np.isfinite(result.tracking_regret[0, 0]), np.arange(1, 9) < 5)


def test_the_fused_engine_measures_them_too():
    table = table_of(2, 20, 3)
    given = {"num_seeds": 4, "checkpoints": 5, "switches": 2}
    scan, fused = (sf.simulate(EXP3, table, **given, engine=name) for name in ("scan", "fused"))
    np.testing.assert_array_equal(fused.best_switching, scan.best_switching)
    np.testing.assert_allclose(fused.tracking_regret, scan.tracking_regret, rtol=1e-4, atol=1e-4)


def test_several_strategies_are_compared_with_the_same_sequences():
    """And results are joined and awaited by this regret, too."""
    family = sf.losses.switching(num_arms=3, num_rounds=30)
    both = {"exp3": EXP3, "uniform": UNIFORM}
    run = partial(sf.simulate, both, family, num_rounds=30, checkpoints=3)
    whole = run(num_seeds=128, switches=2)
    for result in whole.values():
        suffered = result.regret + result.norms.best[:, None]
        wanted = suffered - result.best_switching[:, None]
        np.testing.assert_allclose(result.tracking_regret, wanted, rtol=0, atol=1e-12)
        assert result.switches == 2
    parts = [run(num_seeds=64, first_sequence=first, switches=2) for first in (0, 64)]
    joined = sf.concat(parts)
    rule = sf.until.precise(relative=1e-9, kind="tracking", most_games=128)
    with pytest.warns(RuntimeWarning, match="given up"):
        awaited = run(num_seeds=64, switches=2, until=rule)
    for results in (joined, awaited):
        for name, result in results.items():
            assert_same(result, whole[name])
            np.testing.assert_array_equal(result.tracking_regret, whole[name].tracking_regret)


@pytest.mark.quick
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"switches": 65}, "switches is 65; a round of n arms takes .* give 64 or fewer"),
        ({"switches": -1}, "switches is -1; give an integer from 0"),
        ({"switches": 1.5}, "switches is 1.5; give an integer"),
        ({"switches": True}, "switches is True; give an integer"),
        ({"switches": 0, "keep": "moments"}, "keep='moments' keeps nothing .* switches"),
    ],
)
def test_refusals(options, message):
    with pytest.raises(ValueError, match=message):
        sf.simulate(UNIFORM, [[0.0, 1.0]], num_seeds=1, **options)


def test_exp3_s_tracks_better_than_exp3():
    """Best arms that change four times, by a wide gap: the interval of the difference is clear."""
    num_rounds = 2000
    family = sf.losses.switching(
        num_arms=3, gap=0.5, switches=(401, 801, 1201, 1601), num_rounds=num_rounds
    )
    both = {"exp3": EXP3, "exp3_s": sf.strategies.exp3_s_horizon(num_rounds, switches=4)}
    results = sf.simulate(
        both, family, num_rounds=num_rounds, num_seeds=64, checkpoints=1, switches=4
    )
    better = results.difference("exp3", "exp3_s", kind="tracking", level=0.999)
    assert better.low[0, -1] > 100
    low, high = results["exp3_s"].interval(0.999, kind="tracking")
    bound = sf.theory.textbook.exp3_s_horizon(3, num_rounds, 1.0, switches=4)
    assert 0 < low[0, -1] < high[0, -1] < bound
