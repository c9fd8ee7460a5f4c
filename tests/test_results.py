"""Results: statistics over the seeds, files that are complete or absent, tables and plots."""

import gc
import json
import os
import re

import matplotlib.pyplot as plt
import numpy as np
import pytest
from scipy import stats

import sfmab_jax as sf
from sfmab_jax.norms import Norms


def made(regret, expected=None, name="mine", rounds=None, **options):
    """A `Result` of the regret [K, S, C] given."""
    regret = np.asarray(regret, np.float64)
    num_sequences, _, num_checkpoints = regret.shape
    rounds = np.arange(1, num_checkpoints + 1) if rounds is None else rounds
    sizes = (np.full((num_sequences, num_checkpoints), float(k)) for k in range(6))
    described = {
        "seed": 5,
        "first_seed": 100,
        "losses": "some",
        "dtype": "float32",
        "seconds": 1.5,
        **options,
    }
    return sf.Result(
        name=name,
        rounds=rounds,
        regret=regret,
        expected_regret=regret + 1 if expected is None else np.asarray(expected, np.float64),
        norms=Norms(3, rounds, *sizes),
        **described,
    )


@pytest.fixture
def pair():
    """Two strategies: 2 sequences, 5 seeds, 3 checkpoints, with records."""
    generator = np.random.default_rng(0)
    shape = (2, 5, 3)
    rounds = np.array([1, 10, 100])
    return sf.Results(
        {
            name: made(
                generator.normal(size=shape),
                name=name,
                rounds=rounds,
                records={"play": generator.normal(size=(*shape, 4)), "rate": np.ones(shape)},
            )
            for name in ("first", "second")
        }
    )


def assert_equal(ours, theirs):
    """Two results agree bit for bit; records as lists of leaves."""
    for field in ("name", "seed", "first_seed", "losses", "dtype", "seconds"):
        assert getattr(ours, field) == getattr(theirs, field)
    for field in ("rounds", "regret", "expected_regret"):
        np.testing.assert_array_equal(getattr(ours, field), getattr(theirs, field))
    assert ours.norms.num_arms == theirs.norms.num_arms
    for mine, other in zip(ours.norms[1:], theirs.norms[1:], strict=True):
        np.testing.assert_array_equal(mine, other)


# Statistics.


def test_mean_of_each_kind():
    result = made([[[1.0, 2.0], [3.0, 6.0]], [[0.0, 0.0], [10.0, -4.0]]])
    np.testing.assert_array_equal(result.mean("realised"), [[2, 4], [5, -2]])
    np.testing.assert_array_equal(result.mean("expected"), [[3, 5], [6, -1]])
    np.testing.assert_array_equal(result.mean(), result.mean("expected"))
    assert result.samples("realised") is result.regret


def test_normal_interval_by_hand():
    """Four numbers with mean 2 and variance 20/3: 2 -+ 1.959964 sqrt(20/12)."""
    result = made([[[-1.0], [1.0], [3.0], [5.0]]])
    low, high = result.interval(0.95, kind="realised")
    half = 1.959963984540054 * np.sqrt(20 / 3 / 4)
    np.testing.assert_allclose([low[0, 0], high[0, 0]], [2 - half, 2 + half], rtol=1e-12)
    low, high = result.interval(0.95)
    np.testing.assert_allclose([low[0, 0], high[0, 0]], [3 - half, 3 + half], rtol=1e-12)


@pytest.mark.parametrize("level", [0.5, 0.95])
def test_normal_interval_covers_the_mean(level):
    """Over 4,000 normal samples of 20; the exact coverage is that of Student's t."""
    generator = np.random.default_rng(1)
    samples = generator.normal(3.0, 2.0, size=(4000, 20, 1))
    low, high = made(samples).interval(level, kind="realised")
    covered = np.mean((low <= 3) & (high >= 3))
    z = stats.norm.ppf((1 + level) / 2)
    wanted = 1 - 2 * stats.t.sf(z, 19)
    assert abs(covered - wanted) < 4 * np.sqrt(wanted * (1 - wanted) / 4000)


def test_bootstrap_interval_covers_the_mean():
    """Over 1,000 normal samples of 200, within four standard errors.

    The percentile interval is mean -+ z s sqrt(199/200) up to O(1/S), with s / sqrt(S) estimated
    by 1,000 resamples: their 2.5% quantile errs by 0.085 standard errors, which moves the coverage
    by 0.5% at either end, the same way for all samples.
    """
    generator = np.random.default_rng(2)
    samples = generator.normal(3.0, 2.0, size=(1000, 200, 1))
    low, high = made(samples).interval(0.95, method="bootstrap", kind="realised")
    covered = np.mean((low <= 3) & (high >= 3))
    wanted = 1 - 2 * stats.t.sf(stats.norm.ppf(0.975) * np.sqrt(199 / 200), 199)
    error = np.sqrt(wanted * (1 - wanted) / 1000 + 2 * 0.005**2)
    assert abs(covered - wanted) < 4 * error


def test_bootstrap_interval_follows_the_sample():
    """It is close to the normal one for many seeds, leans to the tail of a skewed sample, and
    is the same when asked for again."""
    generator = np.random.default_rng(3)
    skewed = made(generator.exponential(size=(1, 500, 2)) ** 3)
    low, high = skewed.interval(0.9, method="bootstrap", kind="realised")
    again = skewed.interval(0.9, method="bootstrap", kind="realised")
    np.testing.assert_array_equal((low, high), again)
    mean = skewed.mean("realised")
    assert (high - mean > mean - low).all()
    normal_low, normal_high = skewed.interval(0.9, kind="realised")
    np.testing.assert_allclose(high - low, normal_high - normal_low, rtol=0.15)


def test_intervals_of_a_single_seed_are_unknown():
    for method in ("normal", "bootstrap"):
        low, high = made(np.ones((2, 1, 3))).interval(method=method)
        assert low.shape == high.shape == (2, 3)
        assert np.isnan(low).all()
        assert np.isnan(high).all()


def test_quantiles():
    """Order statistics of 0 ... 100 in any order; NumPy's on others."""
    generator = np.random.default_rng(4)
    ladder = generator.permuted(np.tile(np.arange(101.0), (6, 1)), axis=1)
    result = made(ladder.T[None])
    np.testing.assert_allclose(
        result.quantiles([0, 0.25, 0.5, 0.99, 1])[:, 0], np.outer([0, 25, 50, 99, 100], np.ones(6))
    )
    noise = made(generator.normal(size=(3, 40, 2)))
    got = noise.quantiles([0.1, 0.77], kind="expected")
    assert got.shape == (2, 3, 2)
    for k in range(3):
        for c in range(2):
            wanted = np.percentile(noise.expected_regret[k, :, c], [10, 77])
            np.testing.assert_allclose(got[:, k, c], wanted)
    assert noise.quantiles(0.5).shape == (1, 3, 2)


@pytest.mark.parametrize(
    ("call", "value"),
    [
        (lambda r: r.interval(0.0), "0.0"),
        (lambda r: r.interval(1.0), "1.0"),
        (lambda r: r.interval(95), "95"),
        (lambda r: r.interval(np.nan), "nan"),
        (lambda r: r.interval(method="exact"), "'exact'"),
        (lambda r: r.mean("pseudo"), "'pseudo'"),
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
    assert "first" in repr(pair)
    with pytest.raises(KeyError):
        pair["third"]


# Files.


def test_save_and_load(pair, tmp_path):
    path = tmp_path / "deep" / "down" / "run.npz"
    assert pair.save(path) == path
    loaded = sf.load(path)
    assert list(loaded) == ["first", "second"]
    for name in pair:
        assert_equal(pair[name], loaded[name])
        # Records come back as a list of leaves, in the order of the tree.
        play, rate = loaded[name].records
        np.testing.assert_array_equal(play, pair[name].records["play"])
        np.testing.assert_array_equal(rate, pair[name].records["rate"])
    assert os.listdir(path.parent) == ["run.npz"]


def test_save_and_load_one(tmp_path):
    result = made(np.random.default_rng(0).normal(size=(2, 3, 4)), name="a/b ü")
    path = result.save(str(tmp_path / "one"))
    assert path == tmp_path / "one"
    (loaded,) = sf.load(path).values()
    assert_equal(result, loaded)
    assert len(loaded.records) == 0


def test_simulated_results_survive_a_file(tmp_path):
    bandits = {name: sf.strategies.scale_free(name) for name in ("adaptive", "decaying")}
    results = sf.simulate(
        bandits,
        np.random.default_rng(0).normal(size=(2, 16, 3)),
        num_seeds=3,
        checkpoints=4,
        record=lambda state: (state.full_information.learning_rate, state.full_information.play),
    )
    loaded = sf.load(results.save(tmp_path / "run.npz"))
    for name, result in results.items():
        assert_equal(result, loaded[name])
        for mine, other in zip(result.records, loaded[name].records, strict=True):
            np.testing.assert_array_equal(mine, other)
            assert mine.dtype == other.dtype


def test_failed_write_leaves_the_old_file(pair, tmp_path, monkeypatch):
    path = pair.save(tmp_path / "run.npz")
    before = path.read_bytes()

    def write_a_little(file, **arrays):
        file.write(b"PK")
        raise OSError("No space left on device")

    monkeypatch.setattr(np, "savez", write_a_little)
    with pytest.raises(OSError, match="No space left"):
        sf.Results({"other": made(np.zeros((1, 2, 3)))}).save(path)
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["run.npz"]


def test_save_replaces_an_older_file(pair, tmp_path):
    path = pair.save(tmp_path / "run.npz")
    made(np.zeros((1, 2, 3)), name="other").save(path)
    assert list(sf.load(path)) == ["other"]
    assert os.listdir(tmp_path) == ["run.npz"]


def test_load_of_a_missing_file(tmp_path):
    with pytest.raises(FileNotFoundError):
        sf.load(tmp_path / "nothing.npz")


class Bomb:
    """An object whose unpickling would be noticed."""

    def __reduce__(self):
        return (os.mkdir, ("unpickled",))


def without(path, name):
    """The arrays of a file but one."""
    with np.load(path) as file:
        return {key: file[key] for key in file.files if key != name}


NOT_RESULTS = {
    "empty": lambda file, whole: None,
    "garbage": lambda file, whole: file.write(b"\x00\x01 not an archive" * 50),
    "text": lambda file, whole: file.write(b"regret,1,2,3\n"),
    "half": lambda file, whole: file.write(whole.read_bytes()[:3000]),
    "cut_short": lambda file, whole: file.write(whole.read_bytes()[:-10]),
    "corrupted": lambda file, whole: file.write(whole.read_bytes().replace(b"\x3f", b"\x40")),
    "array": lambda file, whole: np.save(file, np.zeros(3)),
    "other_arrays": lambda file, whole: np.savez(file, weights=np.zeros(3)),
    "broken_header": lambda file, whole: np.savez(file, header=np.array("{broken")),
    "list_as_header": lambda file, whole: np.savez(file, header=np.array("[1, 2]")),
    "later_format": lambda file, whole: np.savez(file, header=np.array('{"format": 99}')),
    "header_alone": lambda file, whole: np.savez(
        file, header=np.array(json.dumps({"format": 1, "results": []}))
    ),
    "lacks_regret": lambda file, whole: np.savez(file, **without(whole, "1/regret")),
    "lacks_norm": lambda file, whole: np.savez(file, **without(whole, "norms/l_2")),
    "pickle_inside": lambda file, whole: np.savez(file, header=np.array([Bomb()], dtype=object)),
    "pickle": lambda file, whole: np.save(file, np.array([Bomb()], dtype=object)),
}


@pytest.mark.parametrize("kind", NOT_RESULTS)
def test_load_refuses_what_save_did_not_write(kind, pair, tmp_path, monkeypatch):
    """A ValueError with the path, no file left open, nothing unpickled."""
    monkeypatch.chdir(tmp_path)
    whole = pair.save(tmp_path / "whole.npz")
    assert whole.stat().st_size > 6000
    path = tmp_path / "strange.npz"
    with path.open("wb") as file:
        NOT_RESULTS[kind](file, whole)
    with pytest.raises(ValueError, match=re.escape(str(path))):
        sf.load(path)
    gc.collect()  # a file left open would warn here
    assert not (tmp_path / "unpickled").exists()


# Tables.


def test_to_xarray(pair):
    data = pair.to_xarray()
    assert dict(data.sizes) == {"strategy": 2, "sequence": 2, "seed": 5, "round": 3}
    assert list(data.strategy.values) == ["first", "second"]
    assert list(data.seed.values) == [100, 101, 102, 103, 104]
    assert list(data["round"].values) == [1, 10, 100]
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
    }
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


# Plots.


def test_plot(pair):
    axes = pair.plot()
    try:
        assert axes.get_xlabel() == "round"
        assert "regret" in axes.get_ylabel()
        assert "95%" in axes.get_ylabel()
        labels = [text.get_text() for text in axes.get_legend().get_texts()]
        assert labels == ["first", "second"]
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
        assert labels == ["mine", "a bound"]
        assert "50%" in axes.get_ylabel()
        np.testing.assert_array_equal(axes.get_lines()[1].get_ydata(), [7, 8, 9])
        # The shade is the interval of the mean: 1.5 seeds wide in all, z = 0.6745.
        edges = axes.collections[0].get_paths()[0].get_extents()
        half = 0.6744897501960817 * np.sqrt(4.5 / 2)
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
