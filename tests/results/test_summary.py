"""Moments and histograms of very many games, against the games themselves."""

import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np
import pytest
from scipy import stats
from simulated import UNIFORM

import sfmab_jax as sf
from sfmab_jax.results.moments import Summarizer

LOSSES = sf.losses.bernoulli(num_arms=3)
GAMES = {"num_rounds": 48, "checkpoints": [5, 20, 48]}


@pytest.fixture(scope="module", params=[(1, 700), (300, 2), (700, 1), (12, 64)], ids=str)
def both(request):
    sequences, seeds = request.param
    how = GAMES | {"num_sequences": sequences, "num_seeds": seeds}
    bandit = sf.strategies.exp3_ix()
    return sf.simulate(bandit, LOSSES, **how), sf.simulate(bandit, LOSSES, **how, keep="moments")


@pytest.mark.parametrize("kind", ["expected", "realised"])
def test_moments_and_intervals(both, kind):
    result, summary = both
    samples = result.samples(kind)
    games = samples.reshape(-1, 3)
    np.testing.assert_allclose(summary.mean(kind), games.mean(axis=0)[None], rtol=1e-12)
    np.testing.assert_allclose(summary.std(kind), games.std(axis=0, ddof=1)[None], rtol=1e-10)
    np.testing.assert_allclose(summary.interval(0.9, kind), result.interval(0.9, kind=kind))
    # The seeds of one sequence, or the means of several.
    units = samples[0] if len(samples) == 1 else samples.mean(axis=1)
    place = ["realised", "expected"].index(kind)
    np.testing.assert_allclose(summary.units.skewness[place], stats.skew(units), rtol=1e-8)
    np.testing.assert_array_equal(summary.is_doubtful(kind), result.is_doubtful(kind))
    np.testing.assert_array_equal(summary.largest_loss, result.largest_loss()[0])


@pytest.mark.parametrize("kind", ["expected", "realised"])
def test_quantiles(both, kind):
    """Within a bin, 1/64 of their size, of the games around the rank."""
    result, summary = both
    games = np.sort(result.samples(kind).reshape(-1, 3), axis=0)
    levels = np.array([0.0, 0.001, 0.1, 0.5, 0.9, 0.999, 1.0])
    found = summary.quantiles(levels, kind)
    assert found.shape == (7, 1, 3)
    found = found[:, 0]
    ranks = levels * (len(games) - 1)
    low, high = games[np.floor(ranks).astype(int)], games[np.ceil(ranks).astype(int)]
    slack = np.maximum(np.abs(low), np.abs(high)) / 64 + 1e-12
    assert (found >= low - slack).all()
    assert (found <= high + slack).all()
    np.testing.assert_array_equal(found[[0, -1]], games[[0, -1]])


def test_batches_in_any_order_and_of_any_size_give_the_same_bits():
    """Blocks are summed in the order of the games, sequences that go on in the next one, too."""
    regret = np.random.default_rng(0).standard_cauchy((2000, 2, 4))

    def collect(size, order):
        summarizer = Summarizer(
            num_sequences=286, num_seeds=7, num_checkpoints=4, block=32, unit=1.0
        )
        for start in order(range(0, 2000, size)):
            summarizer.add(start, regret[start : start + size])
        return summarizer.collected()

    one = collect(32, list)
    for size, order in ((32, reversed), (256, list), (2016, list)):
        other = collect(size, order)
        for field in ("games", "units"):
            assert one[field].number == other[field].number
            np.testing.assert_array_equal(one[field].mean, other[field].mean)
            np.testing.assert_array_equal(one[field].squares, other[field].squares)
            np.testing.assert_array_equal(one[field].cubes, other[field].cubes)
        np.testing.assert_array_equal(one["counts"], other["counts"])
    whole = regret[: 285 * 7].reshape(285, 7, 2, 4).mean(axis=1)
    assert one["units"].number == 285  # the last sequence is not whole
    np.testing.assert_allclose(one["units"].mean, whole.mean(axis=0), rtol=1e-9)
    assert one["counts"].sum() == regret.size


def test_several_strategies_and_what_they_say():
    how = GAMES | {"num_sequences": 20, "num_seeds": 1, "keep": "moments"}
    summaries = sf.simulate({"a": UNIFORM, "b": sf.strategies.exp3()}, LOSSES, **how)
    assert list(summaries) == ["a", "b"]
    said = repr(summaries).splitlines()
    assert said[0] == "Summaries(bernoulli, 3 arms, 48 rounds, 20 x 1 games)"
    assert [line.split(": mean regret")[0] for line in said[1:]] == ["  'a'", "  'b'"]
    assert repr(summaries["a"]).startswith(
        "Summary(a on bernoulli: 3 arms, 48 rounds, 20 x 1 games"
    )
    single = sf.simulate(UNIFORM, LOSSES, **(how | {"num_sequences": 1}))
    with pytest.warns(RuntimeWarning, match="a single game on a sequence has no interval"):
        assert np.isnan(single.interval()).all()
    assert "in a single game given this sequence" in repr(single)


def test_heavy_tails_are_doubtful():
    """As `Result.is_doubtful` finds them, from the bins of a histogram."""
    heavy = sf.losses.pareto(num_arms=3, index=1.2)
    how = GAMES | {"num_seeds": 1000}
    result, summary = (sf.simulate(UNIFORM, heavy, **how, keep=k) for k in ("games", "moments"))
    assert summary.is_doubtful()[0, -1]
    assert (summary.largest_loss == result.norms.l_inf.max(axis=0)).all()
    assert result.is_doubtful()[0, -1]
    assert "doubtful" in repr(summary)


def test_files_and_plots(both, tmp_path):
    """Whole again from a file; the plot has the band that the games have."""
    result, summary = both
    (again,) = sf.load(summary.save(tmp_path / "mine.npz")).values()
    assert repr(again) == repr(summary)
    for key, value in vars(summary).items():
        jax.tree.map(np.testing.assert_array_equal, getattr(again, key), value)
    for band in ("interval", "std"):
        ours, theirs = (one.plot(band=band) for one in (summary, result))
        assert ours.get_ylabel() == theirs.get_ylabel()
        for one, other in zip(ours.collections, theirs.collections, strict=True):
            np.testing.assert_allclose(*(x.get_paths()[0].vertices for x in (one, other)))
    assert "of games" in summary.plot(band="quantiles").get_ylabel()
    plt.close("all")
    with pytest.raises(ValueError, match="kept only moments: no norms of the losses"):
        summary.plot(bounds=True)
    with pytest.raises(ValueError, match=r"give a name that ends in \.npz"):
        summary.save(tmp_path / "mine.csv")


def test_what_it_refuses():
    def run(**how):
        return sf.simulate(UNIFORM, LOSSES, num_rounds=5, **how)

    with pytest.raises(ValueError, match="keep is 'all'; choose 'games' or 'moments'"):
        run(keep="all")
    with pytest.raises(ValueError, match=r"no record, certificate, .* or bookmarks"):
        run(keep="moments", record=lambda state: state)
    summary = run(keep="moments", num_seeds=3)
    with pytest.raises(ValueError, match="kind is 'median'"):
        summary.mean("median")
    with pytest.raises(ValueError, match="level is 2"):
        summary.interval(2)
    with pytest.raises(ValueError, match="keeps only what over='family' needs"):
        summary.mean(over="sequence")
    with pytest.raises(ValueError, match="quantile levels lie between 0 and 1"):
        summary.quantiles([1.5])


def test_losses_that_are_not_finite_are_told_once():
    """With the number of the sequence, at the user's line, and without blame for the strategy."""
    losses = sf.losses.from_function(
        lambda key, t: jnp.where(t > 5, jnp.nan, jax.random.uniform(key, (3,))), num_arms=3
    )
    how = {"num_rounds": 8, "checkpoints": 8, "num_seeds": 2, "num_sequences": 30}
    with pytest.warns(RuntimeWarning) as warned:
        summary = sf.simulate(UNIFORM, losses, first_sequence=4, keep="moments", **how)
    (told,) = warned
    assert "sequence 4 has a loss that is not finite" in str(told.message)
    assert "in round 6;" in str(told.message)
    assert told.filename == __file__
    assert summary.is_doubtful().tolist() == [[True] * 8]
    assert "mean regret nan over 30 sequences" in repr(summary)
