"""The picture of both worlds: what is drawn where, and on which scale."""

import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.figure import Figure

from sfmab_jax.results.worlds_picture import Regrets, Side, both_worlds

pytestmark = pytest.mark.quick
STATIONS = ("first", "second", "third")


def regrets(mean, half=1.0, doubtful=False):
    mean = np.asarray(mean, float)
    above = mean - mean.min()
    return Regrets(
        mean, mean - half, mean + half, mean < np.inf * doubtful, above, above - half, above + half
    )


def side(name="pseudo-regret", joined=2, **strategies):
    return Side(f"title of {name}", name, STATIONS, joined, strategies)


def drawn(*sides) -> Figure:
    figure = both_worlds(sides, "a note")
    figure.canvas.draw()
    return figure


@pytest.fixture(autouse=True)
def closed():
    yield
    plt.close("all")


def test_each_axis_says_its_regret_and_each_side_has_its_own_axes():
    one = side(a=regrets([5, 6, 7]), b=regrets([50, 60, 70]))
    other = side("regret", 0, a=regrets([500, 600, 700]), b=regrets([5, -60, 70]))
    figure = drawn(one, other)
    above, right, below, right_below = figure.axes
    assert [axes.get_ylabel() for axes in figure.axes] == [
        "pseudo-regret",
        "regret",
        "pseudo-regret above the least",
        "regret above the least",
    ]
    # Linear around 0 only where it must be.
    assert [axes.get_yscale() for axes in (above, right)] == ["log", "symlog"]
    assert above.get_ylim() != right.get_ylim()
    for axes in (below, right_below):
        assert [text.get_text() for text in axes.get_xticklabels()] == list(STATIONS)
    assert figure._supxlabel.get_text() == "a note"


def test_marks_are_where_the_means_are_and_do_not_share_a_place():
    means = {"a": [5, 6, 7], "b": [50, 60, 70], "c": [1, 2, 3]}
    above = drawn(side(**{name: regrets(mean) for name, mean in means.items()})).axes[0]
    lines = [
        line
        for line in above.get_lines()
        if len(line.get_xdata()) == 3 and line.get_linestyle() == "None"
    ]
    assert len(lines) == 3
    for line, mean in zip(lines, means.values()):
        np.testing.assert_array_equal(line.get_ydata(), mean)
        np.testing.assert_array_equal(np.round(line.get_xdata()), range(3))
    places = np.concatenate([line.get_xdata() for line in lines])
    assert len(set(places.round(6))) == 9
    # Of the stations, the first two are joined.
    assert sum(len(line.get_xdata()) == 2 and line.get_alpha() == 0.7 for line in above.lines) == 3


def test_the_least_is_ringed_and_doubtful_means_are_marked():
    figure = drawn(side(a=regrets([5, 6, 7]), b=regrets([50, 60, 70], doubtful=True)))
    (legend,) = figure.legends
    labels = [text.get_text() for text in legend.get_texts()]
    assert labels == ["a", "b", "doubtful: few games or heavy tails", "least of its station"]
    (ring,) = (line for line in figure.axes[1].lines if line.get_label() == labels[-1])
    assert list(ring.get_ydata()) == [0, 0]  # the first station of either strategy
    assert sum(line.get_marker() == "$?$" for line in figure.axes[0].lines) == 2


def test_a_single_game_without_intervals_is_drawn():
    alone = regrets([5, 6, 7], half=np.nan)
    assert len(drawn(side(a=alone, b=alone)).axes) == 2


def test_nothing_overlaps_the_legend():
    """With eight strategies it stands above all panels."""
    figure = drawn(
        side(**{f"strategy {k}": regrets([5 + k, 6, 7]) for k in range(8)}),
        side("regret", 0, **{f"strategy {k}": regrets([5 + k, 6, 7]) for k in range(8)}),
    )
    legend = figure.legends[0]
    padding = legend.borderpad * legend.prop.get_size_in_points() * figure.dpi / 72
    lowest = legend.get_window_extent().y0 + padding
    assert max(axes.title.get_window_extent().y1 for axes in figure.axes) <= lowest
