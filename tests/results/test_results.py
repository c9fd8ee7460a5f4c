"""Results: statistics over the seeds, tables and plots."""

import re
from dataclasses import replace

import matplotlib.pyplot as plt
import numpy as np
import pytest
from made_results import made, two_strategies
from scipy import stats

import sfmab_jax as sf

pytestmark = pytest.mark.quick


@pytest.fixture
def pair():
    return two_strategies()


# Statistics.


def test_mean_of_each_kind():
    result = made([[[1.0, 2.0], [3.0, 6.0]], [[0.0, 0.0], [10.0, -4.0]]])
    np.testing.assert_array_equal(result.mean("realised", over="sequence"), [[2, 4], [5, -2]])
    np.testing.assert_array_equal(result.mean("expected", over="sequence"), [[3, 5], [6, -1]])
    np.testing.assert_array_equal(result.mean("realised"), [[3.5, 1]])
    np.testing.assert_array_equal(result.mean(), result.mean("expected", over="family"))
    assert result.samples("realised") is result.regret


def test_standard_deviation_of_single_games():
    regret = np.random.default_rng(5).normal(size=(3, 4, 2))
    result = made(regret)
    np.testing.assert_allclose(result.std(), regret.reshape(12, 2).std(axis=0, ddof=1)[None])
    np.testing.assert_allclose(result.std(over="sequence"), regret.std(axis=1, ddof=1))
    assert np.isnan(made(regret[:1, :1]).std()).all()


def test_interval_by_hand():
    """Four numbers with mean 2 and variance 20/3: 2 -+ t sqrt(20/12), t of 3 degrees."""
    result = made([[[-1.0], [1.0], [3.0], [5.0]]])
    low, high = result.interval(0.95, kind="realised")
    half = 3.182446305284263 * np.sqrt(20 / 3 / 4)
    np.testing.assert_allclose([low[0, 0], high[0, 0]], [2 - half, 2 + half], rtol=1e-12)
    low, high = result.interval(0.95)
    np.testing.assert_allclose([low[0, 0], high[0, 0]], [3 - half, 3 + half], rtol=1e-12)


def test_units_are_the_sequences_of_a_family_or_the_seeds_of_a_sequence():
    regret = np.random.default_rng(6).normal(size=(5, 3, 2))
    result = made(regret)
    for values, over in ((regret.mean(axis=1), "family"), (regret[2], "sequence")):
        wanted = stats.t.interval(0.9, len(values) - 1, values.mean(axis=0), stats.sem(values))
        found = np.array(result.interval(0.9, kind="realised", over=over))
        np.testing.assert_allclose(found[:, 0 if over == "family" else 2], wanted, rtol=1e-12)
    np.testing.assert_array_equal(result.interval(), result.interval(over="family"))
    single = made(regret[:1])
    np.testing.assert_array_equal(single.interval(), single.interval(over="sequence"))


@pytest.mark.parametrize(("method", "slack"), [("student", 0), ("bootstrap", 0.01)])
def test_interval_covers_the_mean(method, slack):
    """Over 2,000 normal samples of 20, within four standard errors.

    Student's t is exact; bootstrap-t errs by its own 1,000 resamples, and by the order of 1/20.
    """
    samples = np.random.default_rng(1).normal(3.0, 2.0, size=(2000, 20, 1))
    low, high = made(samples).interval(0.95, method, "realised", "sequence")
    covered = np.mean((low <= 3) & (high >= 3))
    assert abs(covered - 0.95) < 4 * np.sqrt(0.95 * 0.05 / 2000) + slack


def test_bootstrap_interval_follows_the_sample():
    """It leans to the tail of a skewed sample, and is the same when asked for again."""
    generator = np.random.default_rng(3)
    skewed = made(generator.exponential(size=(1, 500, 2)) ** 3)
    low, high = skewed.interval(0.9, method="bootstrap", kind="realised")
    again = skewed.interval(0.9, method="bootstrap", kind="realised")
    np.testing.assert_array_equal((low, high), again)
    mean = skewed.mean("realised")
    assert (high - mean > mean - low).all()


def test_sequential_interval_holds_at_all_looks():
    """At 8 looks, from 32 to 4,096 units, all intervals of 1,000 samples hold the mean together.

    Student's intervals do so far less often.
    """
    samples = np.random.default_rng(4).exponential(size=(4096, 1000))
    missed = dict.fromkeys(("student", "sequential"), np.zeros(1000, bool))
    for count in 2 ** np.arange(5, 13):
        result = made(samples[:count].T[:, :, None], first_look=32)
        for method in missed:
            low, high = result.interval(0.95, method, "realised", "sequence")
            missed[method] = missed[method] | (low > 1)[:, 0] | (high < 1)[:, 0]
    assert missed["sequential"].mean() < 0.05
    assert missed["student"].mean() > 0.12


def test_a_result_of_several_looks_has_sequential_intervals():
    result = made(np.random.default_rng(7).normal(size=(1, 64, 2)), first_look=16)
    np.testing.assert_array_equal(result.interval(), result.interval(method="sequential"))
    low, high = (side[0, 0] for side in result.interval())
    student_low, student_high = (side[0, 0] for side in result.interval(method="student"))
    assert low < student_low < student_high < high


@pytest.mark.parametrize("method", ["student", "bootstrap", "sequential"])
def test_a_single_unit_has_no_interval_and_says_so(method):
    result = made(np.ones((2, 1, 3)))
    with pytest.warns(RuntimeWarning, match="a single game on a sequence .* num_seeds="):
        low, high = result.interval(method=method, over="sequence")
    assert low.shape == high.shape == (2, 3)
    assert np.isnan([low, high]).all()
    with pytest.warns(RuntimeWarning, match="nothing of the family; .* num_sequences="):
        made(np.ones((1, 5, 3))).interval(method=method, over="family")


def test_two_units_have_no_bootstrap_interval():
    for regret, few in ((np.ones((1, 2, 3)), "two games"), (np.ones((2, 5, 3)), "two loss seq")):
        with pytest.warns(RuntimeWarning, match=f"{few}.* no bootstrap-t interval; play more"):
            assert np.isnan(made(regret).interval(method="bootstrap")).all()


def test_a_mean_that_is_no_number_is_doubtful_and_said_so():
    regret = np.ones((1, 60, 1))
    regret[0, 7] = np.nan
    assert made(regret).is_doubtful()
    assert made(regret).in_words() == "mean regret nan given this sequence"


def test_what_is_doubtful():
    """Few units, heavy tails and skewness are; a thousand normal numbers are not."""
    generator = np.random.default_rng(8)
    light = generator.normal(size=(1, 1000, 1))
    heavy = (1 - generator.random((1, 1000, 1))) ** (-1 / 1.5)
    skewed = generator.random((1, 1000, 1)) < 0.005
    assert not made(light).is_doubtful()
    assert made(light[:, :49]).is_doubtful()
    assert made(heavy).is_doubtful()
    assert made(skewed).is_doubtful()
    assert not made(np.ones((1, 50, 1))).is_doubtful()
    several = made(np.concatenate([light, heavy]))
    assert several.is_doubtful(over="sequence").tolist() == [[False], [True]]
    assert several.is_doubtful().tolist() == [[True]]  # two sequences


def test_tail_probability_is_exact_at_each_threshold_by_itself():
    """No game is beyond the second, which says nothing of the first, where shares are halves."""
    regret = np.tile([0.0, 1.0], (20, 1))[..., None] * np.ones(2)
    _, low, high = made(regret).tail_probability([0.5, 5.0])
    np.testing.assert_array_equal([low[0, 0], high[0, 0], low[0, 1]], [0.5, 0.5, 0])
    np.testing.assert_allclose(high[0, 1], 1 - 0.025 ** (1 / 20), rtol=1e-12)


def test_tail_probability():
    """Clopper and Pearson's interval of 3 of 10 games; Student's where games share sequences."""
    result = made(np.arange(10.0).reshape(1, 10, 1))
    estimate, low, high = (x.item() for x in result.tail_probability(6))
    exact = stats.binomtest(3, 10).proportion_ci(0.95, method="exact")
    np.testing.assert_allclose([estimate, low, high], [0.3, exact.low, exact.high], rtol=1e-9)
    none = result.tail_probability([100.0])
    assert none.estimate == none.low == 0
    assert 0 < none.high < 0.4
    regret = np.random.default_rng(9).normal(size=(6, 4, 1))
    shares = (regret > 0.2).mean(axis=1)
    found = made(regret).tail_probability(0.2)
    wanted = stats.t.interval(0.95, 5, shares.mean(axis=0), stats.sem(shares))
    np.testing.assert_allclose(found[1:], np.clip(wanted, 0, 1)[:, None], rtol=1e-9)


@pytest.mark.parametrize(("count", "least"), [(60, 0.92), (1200, 0.935)])
def test_conditional_value_at_risk_covers_or_is_doubtful(count, least):
    """The worst twentieth of an exponential law of mean 1 has the mean log(20) + 1.

    2,000 samples: 95% has a standard error of 0.5%.
    """
    samples = np.random.default_rng(10).exponential(size=(2000, count, 1))
    result = made(samples)
    found = result.conditional_value_at_risk(0.05, over="sequence")
    worst = np.sort(samples[0, :, 0])[-count // 20 :]
    np.testing.assert_allclose(found.estimate[0, 0], worst.mean())
    truth = np.log(20) + 1
    covered = np.mean((found.low <= truth) & (truth <= found.high))
    assert least < covered < 0.97
    doubtful = result.is_doubtful(over="sequence", part=0.05)
    assert doubtful.all() if count < 1000 else doubtful.mean() < 0.05


def test_the_worst_part_has_students_interval_by_hand():
    """Of 8 games the worst quarter are 2, whose spread has one degree of freedom."""
    regret = np.array([0.0, 1, 2, 3, 4, 5, 8, 13])
    found = made(regret[None, :, None]).conditional_value_at_risk(0.25)
    edge = np.quantile(regret, 0.75)
    error = stats.sem(edge + np.maximum(regret - edge, 0) / 0.25)
    half = stats.t.ppf(0.975, 1) * error
    np.testing.assert_allclose([x.item() for x in found], [10.5, 10.5 - half, 10.5 + half])


def test_a_loss_that_no_game_may_have_met_makes_a_mean_doubtful():
    """3 / 100 of the largest loss, 10, is more than two standard errors, of about 0.1, or less."""
    regret = np.random.default_rng(13).uniform(size=(100, 1, 1))
    result = made(regret)
    for spread, doubtful in ((1.0, True), (10.0, False), (0.0, False)):
        scaled = made(regret * spread)
        scaled.norms.l_inf[:] = 1.0
        scaled.norms.l_inf[17] = 10.0
        assert scaled.is_doubtful().tolist() == [[doubtful]]
        pair = sf.Results({"a": scaled, "b": result})
        assert pair.is_doubtful("a", "b") == (spread == 0)
    assert 2 * stats.sem(regret[:, 0, 0]) < 3 * 10 / 100 < 2 * stats.sem(10 * regret[:, 0, 0])
    given = made(np.tile(regret[:, 0], (2, 1, 1)).reshape(2, 100, 1))
    given.norms.l_inf[:] = [[10.0], [1.0]]
    assert given.is_doubtful(over="sequence").tolist() == [[True], [False]]


def test_what_is_doubtful_of_tails_and_differences():
    """Exact shares are never; those of several games on each sequence with few of them are."""
    regret = np.random.default_rng(12).normal(size=(60, 4, 1))
    result = made(regret)
    assert not result.is_doubtful()
    assert not result.is_doubtful(threshold=0.0)
    assert result.is_doubtful(threshold=2.2)
    assert not result.is_doubtful(threshold=2.2, over="sequence").any()
    assert not made(regret[:3, :1]).is_doubtful(threshold=0.0)
    assert not result.is_doubtful(kind="realised", part=0.9)
    assert result.is_doubtful(part=0.05)
    pair = sf.Results({"a": result, "b": made(regret**9)})
    assert pair.is_doubtful("a", "b")
    assert not pair.is_doubtful("a", "a")
    with pytest.raises(ValueError, match=r"threshold is 1 and part is 0\.1; give one"):
        result.is_doubtful(threshold=1, part=0.1)
    with pytest.raises(ValueError, match="part is 2; it lies strictly"):
        result.is_doubtful(part=2)


def test_difference_is_paired():
    noise = np.random.default_rng(11).normal(size=(1, 50, 2))
    ours = sf.Results({"a": made(noise), "b": made(noise + 1)})
    estimate, low, high = ours.difference("a", "b")
    np.testing.assert_allclose([estimate, low, high], -np.ones((3, 1, 2)))
    with pytest.raises(ValueError, match="no strategy 'c'; there are 'a', 'b'"):
        ours.difference("a", "c")


def test_a_difference_of_single_units_says_so():
    ours = sf.Results({name: made(np.ones((1, 1, 2))) for name in "ab"})
    with pytest.warns(RuntimeWarning, match="a single game on a sequence has no interval"):
        assert np.isnan(ours.difference("a", "b").low).all()
    with pytest.warns(RuntimeWarning, match="a single loss sequence tells nothing of the family"):
        ours.difference("a", "b", over="family")


def test_thresholds_are_one_or_one_for_each_checkpoint():
    result = made(np.ones((1, 9, 2)))
    for call in (result.tail_probability, lambda three: result.is_doubtful(threshold=three)):
        with pytest.raises(ValueError, match=r"threshold has shape \[3\]; .* each of the 2 check"):
            call([1, 2, 3])


def test_quantiles():
    """Order statistics of 0 ... 100 in any order; NumPy's on others."""
    generator = np.random.default_rng(4)
    ladder = generator.permuted(np.tile(np.arange(101.0), (6, 1)), axis=1)
    result = made(ladder.T[None])
    np.testing.assert_allclose(
        result.quantiles([0, 0.25, 0.5, 0.99, 1])[:, 0], np.outer([0, 25, 50, 99, 100], np.ones(6))
    )
    noise = made(generator.normal(size=(3, 40, 2)))
    got = noise.quantiles([0.1, 0.77], kind="expected", over="sequence")
    assert got.shape == (2, 3, 2)
    for k in range(3):
        for c in range(2):
            wanted = np.percentile(noise.expected_regret[k, :, c], [10, 77])
            np.testing.assert_allclose(got[:, k, c], wanted)
    pooled = np.median(noise.regret.reshape(-1, 2), axis=0)
    np.testing.assert_allclose(noise.quantiles(0.5), pooled[None, None])


@pytest.mark.parametrize(
    ("call", "value"),
    [
        (lambda r: r.interval(0.0), "0.0"),
        (lambda r: r.interval(1.0), "1.0"),
        (lambda r: r.interval(95), "95"),
        (lambda r: r.interval(np.nan), "nan"),
        (lambda r: r.interval(method="exact"), "'exact'"),
        (lambda r: r.mean("median"), "'median'"),
        (lambda r: r.mean(over="seed"), "'seed'"),
        (lambda r: r.conditional_value_at_risk(1.5), "1.5"),
        (lambda r: r.quantiles([0.5, 1.5]), "1.5"),
        (lambda r: r.quantiles([-0.1]), "-0.1"),
        (lambda r: r.quantiles([]), r"\[\]"),
        (lambda r: r.quantiles([np.nan]), "nan"),
    ],
)
def test_bad_arguments_are_refused_by_value(call, value):
    with pytest.raises(ValueError, match=value):
        call(made(np.zeros((1, 3, 2))))


# Mapping.


def test_results_are_a_mapping(pair):
    assert list(pair) == ["first", "second"]
    assert len(pair) == 2
    assert pair["second"].name == "second"
    assert "third" not in pair
    assert dict(pair.items())["first"] is pair["first"]
    assert repr(pair).splitlines()[1].startswith("  'first': mean regret ")
    with pytest.raises(KeyError):
        pair["third"]


# Tables.


def test_to_xarray(pair):
    data = pair.to_xarray()
    assert dict(data.sizes) == {"strategy": 2, "sequence": 2, "seed": 5, "round": 3}
    assert list(data.strategy.values) == ["first", "second"]
    assert list(data.seed.values) == [100, 101, 102, 103, 104]
    assert list(data["round"].values) == [1, 10, 100]
    assert data.run_seed == 5
    assert data.attrs == {"losses": "some", "seed": 5, "dtype": "float32"}
    chosen = data.sel(strategy="second", sequence=1, seed=103, round=10)
    assert float(chosen.regret) == pair["second"].regret[1, 3, 1]
    assert float(chosen.expected_regret) == pair["second"].expected_regret[1, 3, 1]
    assert dict(pair["first"].to_xarray().sizes)["strategy"] == 1


def test_to_pandas(pair):
    frame = pair.to_pandas()
    assert set(frame.columns) == {
        "strategy",
        "sequence",
        "seed",
        "round",
        "regret",
        "expected_regret",
        "run_seed",
    }
    assert set(frame["run_seed"]) == {5}
    assert frame["strategy"].dtype == "category"
    assert list(frame["strategy"].cat.categories) == ["first", "second"]
    assert len(frame) == 2 * 2 * 5 * 3
    row = frame[
        (frame["strategy"] == "first")
        & (frame["sequence"] == 0)
        & (frame["seed"] == 104)
        & (frame["round"] == 100)
    ]
    assert row["regret"].item() == pair["first"].regret[0, 4, 2]
    assert row["expected_regret"].item() == pair["first"].expected_regret[0, 4, 2]
    assert len(pair["second"].to_pandas()) == 30


def kept_of_two(seed=0):
    """Two strategies of which everything was kept: 2 sequences, 5 seeds, 3 checkpoints, 3 arms."""
    generator = np.random.default_rng(seed)
    shape = (2, 5, 3)
    best_arm = generator.integers(3, size=(2, 3))
    results = {}
    for name, result in two_strategies().items():
        kept = {
            "arm_counts": generator.integers(9, size=(*shape, 3)).astype(np.int32),
            "pseudo_regret": generator.normal(size=shape),
            "tracking_regret": generator.normal(size=shape),
        }
        best_switching = generator.normal(size=(2, 3))
        norms = result.norms._replace(best_arm=best_arm)
        results[name] = replace(
            result, kept=kept, norms=norms, switches=4, best_switching=best_switching
        )
    return sf.Results(results)


def test_what_was_kept_is_in_tables():
    results = kept_of_two()
    data = results.to_xarray()
    assert data.arm_counts.dims == ("strategy", "sequence", "seed", "round", "arm")
    assert data.attrs["switches"] == 4
    frame = results.to_pandas()
    assert len(frame) == 2 * 2 * 5 * 3
    for _, row in frame.sample(9, random_state=0).iterrows():
        result = results[row["strategy"]]
        place = row["sequence"], row["seed"] - 100, [1, 10, 100].index(row["round"])
        assert row["pseudo_regret"] == result.pseudo_regret[place]
        assert row["tracking_regret"] == result.tracking_regret[place]
        assert [row[f"arm_{arm}"] for arm in range(3)] == result.arm_counts[place].tolist()
    some = sf.Results({**results, "third": two_strategies()["second"]})
    assert set(some.to_xarray()) == {"regret", "expected_regret"}


def test_what_was_kept_is_in_files_and_joined(tmp_path):
    results = kept_of_two()
    loaded = sf.load(results.save(tmp_path / "kept.npz"))
    more = {name: replace(result, first_seed=105) for name, result in results.items()}
    joined = sf.concat([results, sf.Results(more)])
    for name, result in results.items():
        np.testing.assert_array_equal(loaded[name].best_arm, result.best_arm)
        assert loaded[name].switches == joined[name].switches == 4
        for key, array in result.kept.items():
            np.testing.assert_array_equal(loaded[name].kept[key], array)
            assert loaded[name].kept[key].dtype == array.dtype
            np.testing.assert_array_equal(joined[name].kept[key], np.concatenate([array] * 2, 1))
    first = results["first"]
    later = replace(first, first_sequence=2, kept={"arm_counts": first.arm_counts})
    both = sf.concat([first, later])
    assert set(both.kept) == {"arm_counts"}
    assert both.switches is None
    np.testing.assert_array_equal(both.best_arm, np.concatenate([first.best_arm] * 2))
    unknown = replace(later, norms=later.norms._replace(best_arm=None))
    assert sf.concat([first, unknown]).norms.best_arm is None


@pytest.mark.parametrize("kind", ["pseudo", "tracking"])
def test_what_was_kept_is_a_kind(kind):
    results = kept_of_two()
    first = results["first"]
    kept = first.kept[f"{kind}_regret"]
    for statistic in ("mean", "std", "is_doubtful"):
        ours = getattr(first, statistic)(kind=kind)
        wanted = getattr(replace(first, regret=kept), statistic)(kind="realised")
        np.testing.assert_array_equal(ours, wanted)
    assert results.difference("first", "second", kind=kind).estimate.shape == (1, 3)
    assert first.quantiles([0.5], kind=kind).shape == (1, 1, 3)


def test_what_was_not_kept_is_asked_for_in_vain(pair):
    first = pair["first"]
    for ask in (lambda: first.pseudo_regret, lambda: first.mean("pseudo")):
        with pytest.raises(ValueError, match=r"play with simulate\(pseudo_regret=True\)"):
            ask()
    with pytest.raises(ValueError, match=r"no tracking regret; play with simulate\(switches=5\)"):
        first.samples("tracking")
    with pytest.raises(ValueError, match=r"'first' has no arm counts.*\(arm_counts=True\)"):
        first.arm_counts  # noqa: B018
    with pytest.raises(ValueError, match="do not say which arm was best"):
        first.best_arm  # noqa: B018


# Plots.


def test_plot(pair):
    axes = pair.plot()
    try:
        assert axes.get_xlabel() == "round"
        assert "regret" in axes.get_ylabel()
        assert "95%" in axes.get_ylabel()
        labels = [text.get_text() for text in axes.get_legend().get_texts()]
        assert labels == ["first (doubtful)", "second (doubtful)"]
        line = axes.get_lines()[1]
        np.testing.assert_array_equal(line.get_xdata(), [1, 10, 100])
        wanted = pair["second"].expected_regret.mean(axis=(0, 1))
        np.testing.assert_allclose(line.get_ydata(), wanted, rtol=1e-12)
        styles = {(line.get_color(), line.get_linestyle()) for line in axes.get_lines()}
        assert len(styles) == 2
    finally:
        plt.close(axes.figure)


def test_plot_on_given_axes_with_bounds(pair, tmp_path):
    figure, axes = plt.subplots()
    try:
        single = made(np.arange(6.0).reshape(1, 2, 3))
        drawn = single.plot(axes=axes, level=0.5, bounds={"a bound": np.array([7.0, 8.0, 9.0])})
        assert drawn is axes
        labels = [text.get_text() for text in axes.get_legend().get_texts()]
        assert labels == ["mine (doubtful)", "a bound"]
        assert "50%" in axes.get_ylabel()
        np.testing.assert_array_equal(axes.get_lines()[1].get_ydata(), [7, 8, 9])
        # The shade is the interval of the mean: 1.5 seeds wide in all, t = 1 with one degree.
        edges = axes.collections[0].get_paths()[0].get_extents()
        half = np.sqrt(4.5 / 2)
        np.testing.assert_allclose([edges.y0, edges.y1], [2.5 - half, 4.5 + half], rtol=1e-12)
        figure.savefig(tmp_path / "plot.png")
        assert (tmp_path / "plot.png").stat().st_size > 1000
    finally:
        plt.close(figure)


def test_plot_of_a_single_seed():
    """Without an interval there is still a line, and no warning."""
    axes = made(np.arange(3.0).reshape(1, 1, 3)).plot()
    try:
        np.testing.assert_array_equal(axes.get_lines()[0].get_ydata(), [1, 2, 3])
        axes.figure.canvas.draw()
    finally:
        plt.close(axes.figure)


def test_line_styles_differ_by_colour_and_by_dash():
    styles = sf.plotting.LINE_STYLES
    assert len({style["color"] for style in styles}) == len(styles)
    assert len({str(style["linestyle"]) for style in styles}) == len(styles)
    assert all(re.fullmatch(r"#[0-9A-F]{6}", style["color"]) for style in styles)
