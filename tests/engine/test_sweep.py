"""A sweep: one program for the grid, the games of `simulate`, and an honest best point."""

import logging

import jax
import matplotlib.pyplot as plt
import numpy as np
import pytest
from jax.tree_util import Partial
from made_results import made
from simulated import assert_same

import sfmab_jax as sf
from sfmab_jax.sweep import _warn_if_compiled_apart as warn_if_compiled_apart

LOSSES = sf.losses.uniform(num_arms=3)
HOW = {"num_rounds": 40, "num_seeds": 6, "num_sequences": 1, "checkpoints": 7, "seed": 2}


def test_a_grid_is_compiled_once_and_has_the_bits_of_simulate(caplog):
    """Seven checkpoints have a program of their own, which no other test compiled before."""
    told = []

    def factory(learning_rate, scale, num_rounds):
        told.append(num_rounds)  # as a strategy that needs the horizon
        return sf.strategies.exp3(scale, learning_rate)

    jax.config.update("jax_log_compiles", True)  # in all threads, unlike jax.log_compiles()
    try:
        with caplog.at_level(logging.WARNING):
            grid = sf.sweep(
                factory,
                LOSSES,
                learning_rate=np.geomspace(0.01, 1, 3),
                scale=[1, 2.5],
                **HOW,
            )
    finally:
        jax.config.update("jax_log_compiles", False)
    messages = [record.getMessage() for record in caplog.records]
    assert len([m for m in messages if "XLA compilation" in m and "play_groups" in m]) == 1
    assert told == [40] * 6
    assert grid.axes == {"learning_rate": (0.01, 0.1, 1.0), "scale": (1.0, 2.5)}
    assert list(grid.results)[1] == "learning_rate=0.01, scale=2.5"
    alone = sf.simulate(sf.strategies.exp3(learning_rate=0.1, scale=2.5), LOSSES, **HOW)
    assert_same(grid.at(learning_rate=0.1, scale=2.5), alone)
    np.testing.assert_array_equal(grid.mean()[1, 1], alone.mean()[0])
    assert all(side.shape == (3, 2, 7) for side in grid.interval())
    data = grid.to_xarray()
    assert data["regret"].dims == ("learning_rate", "scale", "sequence", "seed", "round")
    chosen = data["regret"].sel(learning_rate=0.1, scale=2.5, method="nearest")
    np.testing.assert_array_equal(chosen, alone.regret)


def test_a_strategy_is_told_the_switches_that_it_is_compared_with():
    grid = sf.sweep(sf.strategies.exp3_s_horizon, LOSSES, scale=[1, 2], switches=2, **HOW)
    told = {
        f"scale={scale}": sf.strategies.exp3_s_horizon(40, switches=2, scale=scale)
        for scale in (1, 2)
    }
    alone = sf.simulate(told, LOSSES, switches=2, **HOW)
    for name, result in alone.items():
        assert_same(grid.results[name], result)
    np.testing.assert_array_equal(
        grid.mean("tracking")[:, 0], [result.mean("tracking")[0, 0] for result in alone.values()]
    )


def grid_of(regret, **axes):
    """A sweep with the final regret [P, S] given, P points."""
    points = {str(place): made(np.array(row)[None, :, None]) for place, row in enumerate(regret)}
    return sf.Sweep({name: tuple(values) for name, values in axes.items()}, sf.Results(points))


LUCK = np.random.default_rng(0).normal(0, 50, 40)
NOISE = np.random.default_rng(1).normal(0, 1, (4, 40))


def test_the_best_is_told_from_others_by_pairs():
    """Luck that all points share cancels, though it is fifty times the difference."""
    clear = grid_of(LUCK + NOISE + np.array([[3.0], [1.0], [7.0], [9.0]]), x=[1, 2], y=["a", "b"])
    best = clear.best()
    assert best.point == {"x": 1, "y": "b"}
    assert best.runner_up == {"x": 1, "y": "a"}
    assert best.is_distinguishable
    assert 1 < best.difference.low < best.difference.estimate < best.difference.high < 3
    low, high = clear.interval()
    assert high[0, 1, -1] - low[0, 1, -1] > 20  # unpaired nothing could be told
    apart = grid_of(NOISE + np.random.default_rng(2).normal(0, 50, (4, 40)), x=[1, 2, 3, 4])
    assert len(apart.best().ties) >= 1
    assert not apart.best().is_distinguishable


@pytest.mark.quick
def test_points_that_play_alike_and_single_games_are_ties():
    same = grid_of([LUCK, LUCK, LUCK + 1], x=[1, 2, 3])
    assert same.best().ties == ({"x": 2},)
    assert same.best().difference.estimate == 0
    single = grid_of([[1.0], [2.0]], x=[1, 2])
    assert single.best().ties == ({"x": 2},)
    broken = grid_of([[np.nan] * 3, [1.0, 2.0, 3.0], [2.0, 3.0, 5.0]], x=[1, 2, 3])
    assert broken.best().point == {"x": 2}
    assert broken.best().runner_up == {"x": 3}


def test_the_best_of_many_equal_points_is_seldom_told():
    """At level 95% of points that are all alike in the mean: two are the worst case."""
    generator = np.random.default_rng(3)
    for number, most in ((2, 0.07), (6, 0.05)):
        told = 0
        for _ in range(400):
            regret = generator.normal(size=(number, 30)) + generator.normal(size=30)
            told += grid_of(regret, x=range(number)).best().is_distinguishable
        assert told / 400 <= most


@pytest.mark.quick
def test_plots_of_one_and_two_axes():
    """Every mark is where the best point is."""
    line = grid_of(LUCK + NOISE, x=[0.1, 1.0, 10.0, 100.0]).plot()
    assert line.get_xscale() == "log"
    assert line.get_xlabel() == "x"
    words = grid_of(LUCK + NOISE, x=["a", "b", "c", "d"]).plot()
    assert [label.get_text() for label in words.get_xticklabels()] == ["a", "b", "c", "d"]
    grid = grid_of(LUCK + NOISE + np.array([[3.0], [1.0], [7.0], [9.0]]), x=[1, 2], y=["a", "b"])
    heat = grid.plot()
    (star,) = [line for line in heat.get_lines() if line.get_marker() == "*"]
    assert star.get_xdata()[0] == 1
    assert 0 <= star.get_ydata()[0] < 0.5
    assert (heat.get_xlabel(), heat.get_ylabel()) == ("y", "x")
    plt.close("all")
    with pytest.raises(ValueError, match="a plot has one or two axes, and this sweep 3: a, b, c"):
        grid_of(LUCK + NOISE, a=[1, 2], b=[1, 2], c=[1]).plot()


@pytest.mark.quick
@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ({}, "no more than one point; give a list"),
        ({"beta": [1]}, "no more than one point"),
        ({"alhpa": [1, 2]}, "neither the factory nor simulate takes alhpa; .* exploration, alpha"),
        ({"beta": [1, 2, 1]}, "beta has 1 more than once"),
        ({"beta": [[1], [2]]}, "beta has 2 dimensions"),
        ({"beta": []}, "beta is empty"),
        ({"beta": [1, -2]}, "beta is -2; give a positive"),
        ({"beta": [1, 2], "num_rounds": [1, 2]}, r"num_rounds is \[1, 2\], .* cannot be swept"),
        ({"beta": [1, 2], "keep": "moments"}, "keep is 'moments'; .*game by game"),
        ({"factory": sf.strategies.exp3(), "beta": [1, 2]}, "factory is a Bandit; give the func"),
        ({"factory": "exp3", "beta": [1, 2]}, "factory is 'exp3'; give a function"),
        ({"factory": lambda beta: None, "beta": [1, 2]}, "factory returns None; return a Bandit"),
    ],
)
def test_mistakes_are_named(arguments, named):
    given = {"factory": sf.strategies.scale_free} | arguments
    with pytest.raises(ValueError, match=named):
        sf.sweep(given.pop("factory"), [[1.0, 0.0]], **given)


@pytest.mark.quick
def test_a_point_is_found_by_its_values():
    grid = grid_of(LUCK + NOISE, x=[0.1, 1.0], y=["a", "b"])
    assert grid.at(x=0.1 + 1e-12, y="b") is grid.results["1"]
    with pytest.raises(ValueError, match=r"x is 3; its axis has 0\.1, 1\.0"):
        grid.at(x=3, y="a")
    with pytest.raises(ValueError, match="the axes are x, y, not x; give a value for each"):
        grid.at(x=1)


def constant_rate(rate, t):
    return rate


def own(schedule):
    potential = sf.potentials.negative_entropy()
    follower = sf.full_information.ftrl(potential, schedule)
    return sf.compose(sf.sampling.as_played(), sf.estimation.importance_weighted(), follower)


@pytest.mark.quick
def test_functions_made_anew_for_each_point_are_named():
    """Numbers bound by Partial are leaves; those that a function holds are compiled in."""
    axes = {"rate": (0.1, 0.2)}

    def points(make):
        return {str(rate): own(make(rate)) for rate in axes["rate"]}

    warn_if_compiled_apart(axes, points(lambda rate: Partial(constant_rate, rate)))
    with pytest.warns(UserWarning, match=r"the 2 points need 2 programs.*Partial\(function"):
        warn_if_compiled_apart(axes, points(lambda rate: lambda t: rate))


def test_a_potential_and_a_rule_to_stop_are_one_value_each():
    """They are tuples, but no axes."""

    def factory(potential, rate):
        follower = sf.full_information.ftrl(potential, rate)
        return sf.compose(sf.sampling.as_played(), sf.estimation.importance_weighted(), follower)

    given = {"potential": sf.potentials.negative_entropy(), "rate": [0.1, 0.2]}
    until = sf.until.precise(width=1e3)
    assert sf.sweep(factory, LOSSES, until=until, **given, **HOW).shape == (2,)
