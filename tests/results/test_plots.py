"""Plots of regret: bands and what is said of them, styles, legends, tails, differences, paper."""

import warnings
from dataclasses import replace
from types import SimpleNamespace

import matplotlib.pyplot as plt
import numpy as np
import pytest
from made_results import made
from matplotlib.colors import to_rgb

import sfmab_jax as sf
from sfmab_jax.results.plot_style import add_shared_legend, line_style
from sfmab_jax.study import figures as study_figures
from sfmab_jax.worst_case.figures import worst_cases

pytestmark = pytest.mark.quick
ROUNDS = np.array([1, 10, 100, 1000])


@pytest.fixture(autouse=True)
def without_warnings():
    """Neither NumPy's nor Matplotlib's; figures are closed."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield
    plt.close("all")


def played(num_strategies=2, shape=(100, 2), heavy=False):
    """Strategies with positive regret that grows, on K sequences with S seeds."""
    generator = np.random.default_rng(0)
    level = generator.pareto(1.2, (*shape, 1)) if heavy else generator.uniform(1, 3, (*shape, 1))
    return sf.Results(
        {
            name: made(level * ROUNDS ** (0.3 + 0.02 * number), name=name, rounds=ROUNDS)
            for number, name in enumerate(f"strategy {k}" for k in range(num_strategies))
        }
    )


def legend_of(axes):
    return [text.get_text() for text in axes.get_legend().get_texts()]


def edges_of(collection):
    """The lower and the upper edge of a band at the rounds."""
    vertices = collection.get_paths()[0].vertices
    edges = [vertices[np.isclose(vertices[:, 0], x), 1] for x in ROUNDS]
    return np.array([(y.min(), y.max()) for y in edges]).T


# What is drawn, and what is said of it.


@pytest.mark.parametrize(
    ("options", "words", "edges"),
    [
        ({}, "95% interval", lambda r: r.interval()),
        ({"level": 0.999}, "99.9% interval", lambda r: r.interval(0.999)),
        ({"kind": "realised"}, "95% interval", lambda r: r.interval(kind="realised")),
        (
            {"band": "std"},
            "±1 standard deviation",
            lambda r: (r.mean() - r.std(), r.mean() + r.std()),
        ),
        ({"band": "quantiles"}, "5% to 95% of games", lambda r: r.quantiles([0.05, 0.95])),
        (
            {"band": "quantiles", "level": 0.5},
            "25% to 75% of games",
            lambda r: r.quantiles([0.25, 0.75]),
        ),
    ],
)
@pytest.mark.parametrize("shape", [(1, 30), (1200, 1)])
def test_the_band_is_the_statistic_and_is_named(options, words, edges, shape):
    result = next(iter(played(1, shape).values()))
    axes = result.plot(**options)
    about = "given this sequence" if shape[0] == 1 else "over 1,200 sequences"
    assert axes.get_ylabel().replace("\n", " ").endswith(f"regret {words} {about}")
    wanted = np.stack([side[0] for side in edges(result)])
    np.testing.assert_allclose(edges_of(axes.collections[0]), wanted, rtol=1e-9)


@pytest.mark.parametrize(
    ("kind", "word"), [("pseudo", "pseudo-regret"), ("tracking", "tracking regret")]
)
def test_labels_tell_which_regret_it_is(kind, word):
    both = {
        name: replace(result, kept={f"{kind}_regret": result.regret})
        for name, result in played(2).items()
    }
    results = sf.Results(both)
    asked = {"kind": kind}
    assert results.plot(**asked).get_ylabel().startswith(f"mean {word}\n")
    assert results.plot(kind="realised").get_ylabel().startswith("mean realised regret\n")
    assert (
        results.plot.difference(*both, **asked).get_ylabel().startswith(f"difference of {word}\n")
    )
    axes = results.plot.tails(**asked)
    assert axes.get_ylabel().startswith(f"P({word} > x)\n")
    assert axes.get_xlabel().startswith(f"{word} x after ")


def test_no_band():
    axes = played().plot(band=None)
    assert not axes.collections
    assert axes.get_ylabel() == "mean regret\nover 100 sequences"


def test_a_line_for_each_sequence_given_it():
    results = played(2, (3, 30))
    axes = results.plot(over="sequence")
    assert len(axes.get_lines()) == len(axes.collections) == 2 * 3
    assert "given each of 3 sequences" in axes.get_ylabel()
    assert len(legend_of(axes)) == 2
    wanted = results["strategy 1"].mean(over="sequence")
    for line, mean in zip(axes.get_lines()[3:], wanted):
        np.testing.assert_array_equal(line.get_ydata(), mean)


def test_bands_that_differ_are_named_in_the_legend():
    one, other, single = (
        next(iter(played(1, shape).values())) for shape in ((100, 1), (1, 100), (1, 1))
    )
    axes = sf.Results({"one": one, "other": other, "single": single}).plot()
    assert legend_of(axes) == [
        "one, 95% interval over 100 sequences",
        "other, 95% interval given this sequence",
        "single, no 95% interval given this sequence",
    ]
    assert axes.get_ylabel() == "mean regret\nbands: see the legend"
    axes = sf.Results({"other": other, "single": single}).plot()
    assert legend_of(axes) == ["other", "single, no 95% interval given this sequence"]


def test_doubtful_means_are_marked_wherever_there_are_intervals():
    sure, few = played(1), played(1, (5, 1))
    name = "strategy 0"
    for band in ("interval", "std", "quantiles", None):
        assert legend_of(sure.plot(band=band)) == [name]
        assert legend_of(few.plot(band=band)) == [name + " (doubtful)" * (band == "interval")]
    assert legend_of(played(1, heavy=True).plot()) == [f"{name} (doubtful)"]
    both = played(2, (5, 1))
    assert legend_of(both.plot.difference(*both)) == ["strategy 0 less strategy 1 (doubtful)"]
    figure = sf.plotting.grid({("some", "1"): sure, ("other", "1"): few})
    marks = [[line.get_marker() for line in axes.get_lines()] for axes in figure.axes]
    assert [markers.count("$?$") > 0 for markers in marks] == [False, True]
    assert figure.legends[0].get_texts()[-1].get_text().startswith("doubtful")
    words = figure.get_supxlabel().replace("\n", " ")
    assert "95% interval over 100 sequences (some); 95% interval over 5 sequences (other)" in words
    (found,) = played(1, (1, 5)).values()
    worst = SimpleNamespace(
        table=np.ones((2, 3)), constraint="box", result=found, rival="one arm", rival_result=found,
        bound=None,
    )  # fmt: skip
    right = worst_cases({"mine": worst}).axes[1]
    assert "given this sequence" in right.get_ylabel()
    assert all(label.endswith("(doubtful)") for label in legend_of(right))


def test_own_labels_and_styles():
    style = {"strategy 1": {"color": "red", "ls": ":", "lw": 3, "marker": ""}}
    axes = played().plot(yscale="log", labels={"strategy 1": r"$\eta_t$"}, style=style)
    first, second = axes.get_lines()
    assert legend_of(axes) == ["strategy 0", r"$\eta_t$"]
    assert (second.get_color(), second.get_linestyle(), second.get_linewidth()) == ("red", ":", 3)
    assert second.get_marker() == ""
    assert first.get_color() == line_style(0)["color"]
    assert axes.get_yscale() == "log"
    np.testing.assert_array_equal(axes.collections[1].get_facecolor()[0, :3], to_rgb("red"))
    axes = played().plot.tails(style=style)
    assert axes.get_lines()[1].get_color() == "red"


def test_a_logarithmic_axis_does_not_follow_a_band_to_zero():
    regret = np.array([[1e-12], [3.0]]) * np.ones((2, 4))
    axes = made(np.tile(regret - 1 + 1e-12, (20, 1))[None], rounds=ROUNDS).plot(
        yscale="log", band="quantiles", level=0.98
    )
    assert axes.get_ylim()[0] > 1e-5


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda r: r.plot(band="stderr"), "band is 'stderr'; choose 'interval', 'std'"),
        (lambda r: r.plot(yscale="logit"), "yscale is 'logit'; choose 'linear' or 'log'"),
        (lambda r: r.plot(level=95), "level is 95; it lies strictly between 0 and 1"),
        (lambda r: r.plot(band="quantiles", level=95), "level is 95; it lies strictly"),
        (lambda r: r.plot(kind="real"), "kind is 'real'"),
        (lambda r: r.plot(kind="tracking", bounds=True), "bounds=True draws .* best fixed arm"),
        (lambda r: r.plot(over="seeds"), "over is 'seeds'"),
        (lambda r: r.plot(labels={"x": "y"}), "labels names 'x', .*there are 'strategy 0', "),
        (lambda r: r.plot.tails(style={"x": {}}), "style names 'x', which was not played"),
        (lambda r: r.plot.difference("strategy 0", "x"), "there is no strategy 'x'"),
        (lambda r: sf.Results({}).plot(), "there are no results to plot; give one strategy"),
        (lambda r: sf.Results({}).plot.tails(), "there are no results to plot"),
        (lambda r: sf.plotting.grid({}), "there are no results to plot"),
        (lambda r: made(-np.ones((1, 9, 3)) - 1).plot(yscale="log"), "no mean regret is positive"),
        (lambda r: made(-np.ones((1, 9, 3))).plot.tails(), "no game has a positive regret"),
        (lambda r: sf.plotting.paper(column=3), "column is 3; choose 1 or 2"),
    ],
)
def test_what_cannot_be_plotted_is_said(call, message):
    with pytest.raises(ValueError, match=message):
        call(played())
    assert not plt.get_fignums()


@pytest.mark.parametrize("band", ["interval", "std", "quantiles", None])
def test_games_that_are_single_or_have_no_number(band):
    """A line as far as there are numbers, no band, no warning."""
    half = np.ones((1, 9, 4)) * ROUNDS
    half[:, 3, 2:] = np.nan
    results = {
        "good": made(np.arange(36.0).reshape(1, 9, 4), rounds=ROUNDS),
        "half": made(half, rounds=ROUNDS),
        "none": made(np.full((1, 9, 4), np.nan), rounds=ROUNDS),
        "one": made(np.ones((1, 1, 4)), rounds=ROUNDS),
    }
    axes = sf.Results(results).plot(band=band, yscale="log")
    assert len(axes.collections) == (0 if band is None else 2)
    assert np.isfinite(axes.get_lines()[1].get_ydata()).tolist() == [True, True, False, False]
    axes.figure.canvas.draw()
    sf.Results(results).plot.tails().figure.canvas.draw()
    sf.Results(results).plot.difference("good", "half").figure.canvas.draw()
    single = made(np.ones((1, 1, 4)), rounds=ROUNDS)
    axes = single.plot(band=band)
    assert not axes.collections
    axes.figure.canvas.draw()


def test_a_single_checkpoint_is_a_point_with_a_bar():
    result = made(np.arange(30.0).reshape(1, 30, 1))
    axes = result.plot()
    assert axes.get_lines()[0].get_markevery() is None
    (segment,) = axes.collections[0].get_segments()
    np.testing.assert_allclose(segment[:, 1], np.concatenate(result.interval())[:, 0])


# Styles and legends.


def luminance(colour):
    """Lightness L* of CIE 1976, from 0 for black to 100 for white."""
    red, green, blue = (
        c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in to_rgb(colour)
    )
    y = 0.2126 * red + 0.7152 * green + 0.0722 * blue
    return 116 * y ** (1 / 3) - 16 if y > 216 / 24389 else y * 24389 / 27


def test_twelve_styles_differ_without_colour():
    """Light and dark by turns, none too pale for white paper, each with dashes of its own."""
    styles = sf.plotting.LINE_STYLES
    assert len(styles) >= 12
    light = np.array([luminance(style["color"]) for style in styles])
    assert light.max() < 75
    assert np.abs(np.diff(light)).min() > 10
    assert len({str(style["linestyle"]) for style in styles}) == len(styles)
    # Bounds alone are dotted.
    assert all(
        style["linestyle"] == "-" or max(style["linestyle"][1][::2]) > 1.5 for style in styles
    )
    shapes = [line_style(number) for number in range(60)]
    assert len({(str(s["linestyle"]), s["marker"], s.get("markerfacecolor")) for s in shapes}) == 60
    assert len({s["marker"] for s in shapes[:10]}) == 10


def test_twelve_styles_drawn_in_grey_differ():
    """Any two of them in a quarter of the ink, when drawn as the same line."""
    pictures = []
    for number in range(12):
        figure = plt.figure(figsize=(2, 0.3), dpi=100)
        axes = figure.add_axes((0, 0, 1, 1))
        axes.plot([0, 1], [0, 0], **line_style(number) | {"markevery": (0.0, 0.25)})
        axes.set_axis_off()
        figure.canvas.draw()
        pixels = np.asarray(figure.canvas.buffer_rgba())[..., :3] / 255
        pictures.append(1 - pixels @ (0.299, 0.587, 0.114))
        plt.close(figure)
    for i, j in zip(*np.triu_indices(12, 1)):
        one, other = pictures[i], pictures[j]
        assert np.abs(one - other).sum() > 0.25 * max(one.sum(), other.sum()), (i, j)


def inches(axes):
    """Width and height of axes as drawn."""
    axes.figure.draw_without_rendering()
    return axes.get_window_extent().size / axes.figure.dpi


@pytest.mark.parametrize("column", [None, 1])
@pytest.mark.parametrize("number", [8, 25])
def test_long_legends_leave_the_axes_as_they_are(number, column):
    with warnings.catch_warnings() if column is None else sf.plotting.paper(column):
        few, many = played(2).plot(), played(number).plot()
        assert few.figure.get_figwidth() == many.figure.get_figwidth()
        np.testing.assert_allclose(inches(many), inches(few), rtol=0.1)
        legend = many.get_legend().get_window_extent()
        assert legend.y1 < many.get_window_extent().y0
        assert legend.y0 >= 0
        assert 0 <= legend.x0 < legend.x1 <= many.figure.bbox.x1
        # Nor does it hide the label of the axis.
        assert legend.y1 <= many.xaxis.label.get_window_extent().y0
    assert len(legend_of(many)) == number


def test_a_long_legend_on_axes_of_a_figure_of_the_users():
    _, (left, right) = plt.subplots(1, 2, figsize=(8, 4))
    before = inches(left)
    played(12).plot(axes=left)
    assert inches(left)[1] > 0.9 * before[1]
    assert inches(right)[1] > 0.9 * before[1]
    assert left.get_legend().get_window_extent().y0 >= 0


def test_long_legends_of_panels_leave_the_panels_as_they_are():
    def panel(number):
        results = played(number)
        figure = sf.plotting.grid({("some", "1"): results, ("some", "100"): results})
        return inches(figure.axes[0])

    np.testing.assert_allclose(panel(25), panel(2), rtol=0.1)


def test_the_studys_panels_are_not_strips():
    for number in (2, 25):
        figure, panels = study_figures._make_panels(3)
        for axes in panels:
            for name in played(number):
                axes.plot([1, 2], [1, 2], label=f"{name} of a study")
        add_shared_legend(figure, panels)
        width, height = inches(panels[0])
        assert width > 2.3
        assert height > 2


# Paper.


@pytest.mark.parametrize(("column", "width"), [(1, 3.25), (2, 6.75)])
def test_paper(column, width, tmp_path):
    before = dict(plt.rcParams)
    with sf.plotting.paper(column=column):
        figure = played(4).plot(yscale="log").figure
        figure.savefig(tmp_path / "regret")
    assert dict(plt.rcParams) == before
    assert figure.get_figwidth() == width
    axes = figure.axes[0]
    texts = [axes.xaxis.label, axes.yaxis.label, *axes.get_legend().get_texts()]
    assert {text.get_fontsize() for text in texts} == {7, 8}
    content = (tmp_path / "regret.pdf").read_bytes()
    assert content.startswith(b"%PDF")
    assert b"/FontFile2" in content
    assert b"/Type3" not in content
    # All of the label fits.
    figure.canvas.draw()
    label = axes.yaxis.label.get_window_extent()
    assert label.y0 >= 0
    assert label.y1 <= figure.bbox.y1


# Tails and differences.


@pytest.mark.parametrize("shape", [(1, 60), (60, 1)])
def test_tails_are_the_shares_of_games_with_their_exact_intervals(shape):
    (result,) = played(1, shape).values()
    axes = result.plot.tails(unit=2.0)
    (line,) = axes.get_lines()
    x, share = line.get_data()
    games = result.regret[..., -1].ravel() / 2
    np.testing.assert_allclose(share[:-1], [(games > at * (1 + 1e-12)).mean() for at in x[:-1]])
    assert (x[-1], share[-1]) == (games.max(), 1 / 60)
    assert line.get_drawstyle() == "steps-post"
    assert (axes.get_xscale(), axes.get_yscale()) == ("log", "log")
    middle = len(x) // 2
    wanted = result.tail_probability(2 * x[middle] * (1 + 1e-12))
    vertices = axes.collections[0].get_paths()[0].vertices
    for edge in (wanted.low[0, -1], wanted.high[0, -1]):
        assert np.isclose(vertices[:, 1], edge).any()
    assert "after 1,000 rounds / 2" in axes.get_xlabel()


def test_tails_of_very_many_games_are_drawn_at_two_hundred_places():
    games = np.sort(np.random.default_rng(0).gamma(2.0, size=20_000))
    axes = made(games[None, :, None]).plot.tails()
    x, share = axes.get_lines()[0].get_data()
    assert 100 < len(x) < 203
    np.testing.assert_allclose(share[:-1], 1 - np.searchsorted(games, x[:-1], "right") / 20_000)
    assert share[-2] == 1 / 20_000


def test_tails_over_few_sequences_have_no_band():
    axes = played(1, (5, 40)).plot.tails()
    assert legend_of(axes) == ["strategy 0 (doubtful)"]
    assert axes.get_ylabel() == "P(regret > x)\nno 95% interval over 5 sequences"
    assert len(played(1, (100, 20)).plot.tails().collections) == 1


def test_bounds_of_tails_are_lines_and_curves():
    bounds = {"at 95%": 30.0, "for all": (np.array([10.0, 40.0]), np.array([0.5, 0.01]))}
    axes = played(1).plot.tails(bounds=bounds, unit=10.0)
    _, number, curve = axes.get_lines()
    np.testing.assert_array_equal(number.get_xdata(), [3, 3])
    np.testing.assert_array_equal(curve.get_data(), [[1, 4], [0.5, 0.01]])
    assert legend_of(axes)[1:] == ["at 95%", "for all"]


def test_difference_is_paired_and_beside_zero():
    results = played(3)
    axes = results.plot.difference("strategy 2", "strategy 0", level=0.9, unit=4.0)
    zero, line = axes.get_lines()
    wanted = results.difference("strategy 2", "strategy 0", level=0.9)
    np.testing.assert_array_equal(zero.get_ydata(), [0, 0])
    np.testing.assert_allclose(line.get_ydata(), wanted.estimate[0] / 4)
    np.testing.assert_allclose(
        edges_of(axes.collections[0]), np.concatenate([wanted.low, wanted.high]) / 4
    )
    assert axes.get_ylabel() == "difference of regret / 4\npaired 90% interval over 100 sequences"
    assert legend_of(axes) == ["strategy 2 less strategy 0"]
    labels = {"strategy 2": "$B$"}
    axes = sf.plotting.difference(dict(results), "strategy 2", "strategy 1", labels=labels)
    assert legend_of(axes) == ["$B$ less strategy 1"]
