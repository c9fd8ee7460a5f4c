"""Properties of results and their files, of pictures, studies and the search for worst cases."""

from functools import partial

import jax
import matplotlib.pyplot as plt
import numpy as np
import pytest
from hypothesis import strategies as st
from made_results import made
from matplotlib.cbook import is_math_text
from properties import (
    EPS,
    NUM_ARMS,
    arrays,
    not_positive_numbers,
    powers_of_two,
    property_of,
    seeds,
)
from study_texts import GOOD, SETTINGS, with_setting

import sfmab_jax as sf
from sfmab_jax import constraints, objectives
from sfmab_jax.results import plotting
from sfmab_jax.study import load_study, plan_cells, read_study, run_study

ROUNDS = 4
regrets = arrays(2, 5, 3, low=-100.0, high=100.0)
tables = arrays(ROUNDS, NUM_ARMS)


@property_of(plotting.literal, name=st.text("ab_$\\\\{}^%", min_size=1, max_size=8))
def test_names_are_drawn_as_they_are(name):
    """Never as a formula, never hidden from the legend, and nothing of a name is lost."""
    drawn = plotting.literal(name)
    assert not is_math_text(drawn)
    assert not drawn.startswith("_")
    assert drawn.replace(r"\$", "$").removeprefix("\u200b") == name


@property_of(sf.load, regret=regrets, cut=st.integers(1, 2000), level=st.floats(0.5, 0.99))
def test_results_come_back_from_their_file(tmp_path_factory, regret, cut, level):
    """Bit for bit; a damaged file is refused by its name. Statistics lie where they must."""
    path = tmp_path_factory.mktemp("results") / "mine.npz"
    result = made(regret)
    (again,) = sf.load(result.save(path)).values()
    np.testing.assert_array_equal(again.regret, result.regret)
    np.testing.assert_array_equal(again.expected_regret, result.expected_regret)
    assert (again.name, again.seed, again.losses) == (result.name, result.seed, result.losses)
    low, high = again.interval(level)
    assert (low <= again.mean() + 1e-12).all()
    assert (again.mean() <= high + 1e-12).all()
    lower, middle, upper = again.quantiles([0.0, 0.5, 1.0], over="sequence")
    np.testing.assert_array_equal((lower, upper), (regret.min(axis=1), regret.max(axis=1)))
    assert ((lower <= middle) & (middle <= upper)).all()
    path.write_bytes(path.read_bytes()[:-cut])
    with pytest.raises(ValueError, match=r"mine\.npz is not a results file, or is damaged"):
        sf.load(path)


@property_of(sf.concat, regret=regrets, cut=st.integers(1, 4))
def test_parts_that_are_joined_are_the_whole(regret, cut):
    """Cut between seeds and between sequences, and joined in either order."""
    for axis, name, place in ((0, "first_sequence", 1), (1, "first_seed", cut)):
        first, rest = np.split(regret, [place], axis=axis)
        parts = [made(first, **{name: 0}), made(rest, **{name: place})]
        for order in (parts, parts[::-1]):
            np.testing.assert_array_equal(sf.concat(order).regret, regret)


@property_of(sf.until.precise, sf.until.decided, regret=regrets, width=st.floats(0.1, 100))
def test_rules_to_stop_look_at_the_intervals(regret, width):
    results = sf.Results({"a": made(regret), "b": made(2 * regret + 1)})
    spans = [np.ptp([side[:, -1] for side in x.interval()], axis=0) for x in results.values()]
    rule = sf.until.precise(width=width)
    assert rule.is_enough(results) == bool(np.max(spans) <= width)
    _, low, high = results.difference("a", "b")
    excludes_zero = low[0, -1] > 0 or high[0, -1] < 0
    assert sf.until.decided("a", "b").is_enough(results) == excludes_zero


@property_of(sf.sweep, sf.step_by_step, examples=2, seed=seeds)
def test_sweeps_and_single_steps_play_the_games_of_simulate(seed):
    table = np.random.default_rng(seed).random((6, 2)).round(2)
    how = {"num_seeds": 2, "seed": seed, "progress": False}
    grid = sf.sweep(sf.strategies.scale_free, table, beta=[0.5, 2.0], **how)
    alone = sf.simulate(sf.strategies.scale_free(beta=2.0), table, **how)
    np.testing.assert_array_equal(grid.at(beta=2.0).regret, alone.regret)
    steps = list(sf.step_by_step(sf.strategies.scale_free(beta=2.0), table, seed=seed))
    np.testing.assert_allclose([step.regret for step in steps], alone.regret[0, 0], atol=1e-5)


@property_of(plotting.regret, plotting.grid, examples=5, regret=regrets, unit=powers_of_two)
def test_pictures_show_the_means(regret, unit):
    """The line of a strategy is its mean over seeds and sequences in the unit asked for."""
    results = {"first": made(regret), "second": made(-regret)}
    axes = plotting.regret(results, unit=unit)
    for line, result in zip(axes.get_lines(), results.values()):
        wanted = result.expected_regret.mean(axis=(0, 1)) / unit
        np.testing.assert_allclose(line.get_ydata(), wanted, rtol=1e-9, atol=1e-9 / unit)
        np.testing.assert_array_equal(line.get_xdata(), result.rounds)
    plt.close(axes.figure)
    figure = plotting.grid({("some", "1"): results, ("some", "100"): results})
    titles = [panel.get_title() for panel in figure.axes]
    assert titles == ["some, losses times 1", "some, losses times 100"]
    one, other = (panel.get_lines()[0].get_ydata() for panel in figure.axes)
    np.testing.assert_allclose(one, 100 * other, rtol=1e-9, atol=1e-9)


@property_of(
    plotting.tails,
    plotting.difference,
    plotting.paper,
    examples=5,
    regret=regrets,
    unit=powers_of_two,
)
def test_pictures_of_tails_and_differences(regret, unit):
    """Tails fall from the share of games above, and swapping two strategies turns the sign."""
    results = {"first": made(np.abs(regret) + 1), "second": made(-regret)}
    with plotting.paper(column=1):
        axes = plotting.tails(results, unit=unit)
        assert axes.figure.get_figwidth() == 3.25
    for line in axes.get_lines():
        share = line.get_ydata()[np.isfinite(line.get_ydata())]
        assert (np.diff(share) <= 0).all()
        assert ((share > 0) & (share <= 1)).all()
    plt.close(axes.figure)
    drawn = [
        plotting.difference(results, *names, unit=unit)
        for names in (("first", "second"), ("second", "first"))
    ]
    one, other = (axes.get_lines()[1].get_ydata() for axes in drawn)
    np.testing.assert_array_equal(one, -other)
    for axes in drawn:
        plt.close(axes.figure)


@property_of(plotting.losses, examples=5, table=tables)
def test_the_picture_of_losses_is_the_table(table):
    figure = plotting.losses(sf.losses.from_array(table), num_rounds=ROUNDS)
    (image,) = figure.axes[0].get_images()
    np.testing.assert_allclose(image.get_array(), table.T, rtol=1e-12)
    relative = np.cumsum(table - table.mean(axis=1, keepdims=True), axis=0)
    drawn = sorted(float(line.get_ydata()[-1]) for line in figure.axes[1].get_lines()[:NUM_ARMS])
    np.testing.assert_allclose(drawn, np.sort(relative[-1]), rtol=0, atol=1e-12)


@st.composite
def good_studies(draw):
    """GOOD with other sizes, which are quick to play: as text, and what it must come to."""
    sizes = {"arms": (2, 3), "rounds": (1, 50), "seeds": (1, 6), "sequences": (1, 2)}
    drawn = {name: draw(st.integers(*ends)) for name, ends in sizes.items()}
    lines = [f"{name} = {value}" for name, value in drawn.items()]
    kept = [line for line in GOOD.splitlines() if line.split(" = ")[0] not in drawn]
    return "\n".join([*lines, *kept]), drawn


@property_of(read_study, plan_cells, study=good_studies(), wrong=st.sampled_from(SETTINGS))
def test_a_study_file_is_read_and_planned(tmp_path_factory, study, wrong):
    """What is written is what is planned; a wrong setting is refused with the file's name."""
    path = tmp_path_factory.mktemp("studies") / "mine.toml"
    text, sizes = study
    path.write_text(text)
    (cell,) = plan_cells(read_study(str(path)))
    assert (cell.num_arms, cell.num_rounds) == (sizes["arms"], sizes["rounds"])
    assert cell.num_sequences == sizes["sequences"]
    (again,) = plan_cells(read_study(str(path)))
    assert again.identity == cell.identity
    path.write_text(with_setting(wrong))
    with pytest.raises(ValueError, match=r"mine\.toml"):
        plan_cells(read_study(str(path)))


@property_of(run_study, load_study, examples=2, seed=seeds)
def test_a_study_is_simulate_kept_in_a_folder(tmp_path_factory, seed):
    """The regret of the same call of `simulate`, and nothing is played twice."""
    folder = tmp_path_factory.mktemp("study")
    (folder / "mine.toml").write_text(with_setting(f"seed = {seed}"))
    study = read_study(str(folder / "mine.toml"))
    assert run_study(study, folder / "mine") > 0
    assert run_study(study, folder / "mine") == 0
    (result,) = load_study(folder / "mine").values()
    how = {"num_rounds": 50, "num_seeds": 4, "seed": seed, "checkpoints": result.rounds}
    losses = sf.losses.uniform(num_arms=3)
    alone = sf.simulate(sf.strategies.scale_free(), losses, progress=False, **how)
    np.testing.assert_array_equal(result.regret, alone.regret)
    with pytest.raises(ValueError, match="holds no study"):
        sf.load_study(folder)


CONSTRAINTS = {
    constraints.sup_norm: (constraints.sup_norm(0.5), lambda x: np.abs(x).max() - 0.5),
    constraints.box: (constraints.box(-0.25, 0.5), lambda x: max(-0.25 - x.min(), x.max() - 0.5)),
    constraints.total_l2: (constraints.total_l2(0.5), lambda x: (x**2).sum() - 0.5),
    constraints.total_l1: (constraints.total_l1(0.5), lambda x: np.abs(x).sum() - 0.5),
    constraints.sparse: (
        constraints.sparse(1, 0.5),
        lambda x: max(np.abs(x).max() - 0.5, np.count_nonzero(x, axis=1).max() - 1),
    ),
    constraints.profile: (
        constraints.profile([0.1, 0.2, 0.3, 0.4]),
        lambda x: (np.abs(x) - np.array([[0.1], [0.2], [0.3], [0.4]])).max(),
    ),
}


@jax.jit
def project(onto, table):
    return onto(table)


@property_of(*CONSTRAINTS, examples=10, table=tables, inside=tables)
def test_constraints_project(table, inside):
    """Into the set, onto what is there already, and nearest; what is fitted lies inside.

    The set of sparse tables is not convex, but the largest of every row, cut, is nearest as well.
    """
    for make, (constraint, excess) in CONSTRAINTS.items():
        name = make.__name__
        near = np.asarray(project(constraint.project, table))
        assert excess(near) <= 1e-12, name
        again = project(constraint.project, near)
        np.testing.assert_allclose(again, near, atol=1e-12, err_msg=name)
        other = np.asarray(project(constraint.project, inside))
        distance = ((table - near) ** 2).sum()
        assert distance <= ((table - other) ** 2).sum() + 1e-9, name
        for fitted in constraint.fit(np.abs(inside)):
            assert excess(np.asarray(fitted)) <= 1e-12, name
        assert constraint.size(ROUNDS, NUM_ARMS) > 0


@property_of(*CONSTRAINTS, value=not_positive_numbers)
def test_sizes_of_constraints_are_positive(value):
    makes = [constraints.sup_norm, constraints.total_l2, constraints.total_l1]
    for make in (*makes, lambda x: constraints.sparse(1, x), lambda x: constraints.box(0, x)):
        with pytest.raises(ValueError, match=r".+"):
            make(value)
    for scales in ([value, 1.0], [[1.0]], [0.0]):
        if value != 0.0 or scales != [value, 1.0]:
            with pytest.raises((ValueError, TypeError), match=r".+"):
                constraints.profile(scales)


exact_gradient_of_uniform_play = jax.jit(partial(sf.exact_gradient, sf.strategies.uniform()))


@property_of(
    sf.exact_gradient, examples=8, table=arrays(2, 2), unit=powers_of_two, direction=arrays(2, 2)
)
def test_the_exact_gradient_is_a_derivative(table, unit, direction):
    """Of uniform play: E regret = sum of means - min of sums, and its slope, from the formula."""
    value, slope = exact_gradient_of_uniform_play(table * unit)
    totals = table.sum(axis=0)
    assert float(value) == pytest.approx(unit * (totals.mean() - totals.min()), abs=1e-12 * unit)
    if abs(np.diff(totals)[0]) > 1e-9:
        wanted = 0.5 - (totals == totals.min())
        np.testing.assert_allclose(slope, np.tile(wanted, (2, 1)), atol=1e-12)


@property_of(
    objectives.regret,
    objectives.regret_difference,
    objectives.regret_over_bound,
    bad=st.sampled_from(["both", None, 3, [], 0.5]),
)
def test_objectives(bad):
    rival = sf.strategies.uniform()
    assert objectives.regret() == (None, None)
    assert objectives.regret_difference(rival).rival is not None
    assert objectives.regret_difference(rival).bound is None
    for option in ("adaptive", "decaying"):
        assert objectives.regret_over_bound(option).rival is None
        assert callable(objectives.regret_over_bound(option).bound)
    with pytest.raises(ValueError, match="rival is"):
        objectives.regret_difference(bad)
    with pytest.raises(ValueError, match="bound is"):
        objectives.regret_over_bound(bad)


@property_of(sf.worst_case, examples=2, seed=st.integers(0, 2**31))
def test_a_worst_case_keeps_to_its_constraint(seed):
    """It is not easier than what it started from, up to the noise of the games that judge."""
    found = sf.worst_case(
        sf.strategies.uniform(), 2, ROUNDS, constraint=constraints.box(0, 1), num_steps=4,
        num_restarts=2, num_seeds=8, score_seeds=32, rivals=["one_arm"], seed=seed, progress=False,
    )  # fmt: skip
    assert found.table.shape == (ROUNDS, 2)
    assert 0 <= found.table.min() <= found.table.max() <= 1
    assert found.finished
    assert found.lead >= -4
    assert found.regret <= ROUNDS * (1 + EPS)


@property_of(
    sf.tune, examples=2, seed=st.integers(0, 2**31),
    wrong=st.sampled_from([(2.0, 1.0), (1.0, 1.0), (1.0,), (1.0, float("nan")), ("a", 1.0)]),
)  # fmt: skip
def test_tuned_parameters_stay_between_their_limits(seed, wrong):
    how = {"num_rounds": 8, "num_steps": 2, "num_restarts": 1, "num_sequences": 2}
    how |= {"num_seeds": 4, "score_seeds": 4}
    losses = sf.losses.bernoulli(num_arms=2)
    tuned = sf.tune(sf.strategies.exp3, {"scale": (0.5, 2.0)}, losses, seed=seed, **how)
    assert 0.5 <= tuned.parameters["scale"] <= 2
    assert np.isfinite(tuned.history).all()
    assert 0 <= tuned.score.value <= 8
    with pytest.raises(ValueError, match="scale"):
        sf.tune(sf.strategies.exp3, {"scale": wrong}, losses, **how)
