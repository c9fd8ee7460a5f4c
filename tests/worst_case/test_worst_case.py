"""The search for hard losses and the tuning of parameters: what they find, keep and refuse."""

from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import sfmab_jax as sf
from sfmab_jax.cli import main
from sfmab_jax.worst_case.objectives import regret, table_norms
from sfmab_jax.worst_case.start_tables import known_tables, members, rank

# Found by `sfmab worst-case`, losses in [0, 1].
FOUND = Path(__file__).parents[1] / "data" / "worst_case.npz"
STRATEGIES = {
    "scale_free_adaptive": sf.strategies.scale_free("adaptive"),
    "scale_free_decaying": sf.strategies.scale_free("decaying"),
    "exp3_ix": sf.strategies.exp3_ix(),
    "tsallis_inf": sf.strategies.tsallis_inf(),
    "ahb": sf.strategies.ahb(),
}
SMALL = {
    "num_restarts": 2,
    "num_steps": 20,
    "num_seeds": 16,
    "score_seeds": 512,
    "rivals": ["bernoulli", "uniform"],
}
UNIT = sf.constraints.box(0.0, 1.0)


@pytest.fixture(scope="module")
def known():
    return known_tables(5, 200, UNIT, seed=0)


@pytest.mark.full
@pytest.mark.parametrize("name", STRATEGIES)
def test_found_sequences_beat_every_built_in_adversary(name, known):
    """n = 5, T = 200, fresh seeds: 4 standard errors above the best of all families."""
    with np.load(FOUND, allow_pickle=False) as file:
        table = file[name]
    assert table.shape == (200, 5)
    assert table.min() >= 0
    assert table.max() <= 1
    bandit = STRATEGIES[name]
    best = rank(bandit, known, regret(), 64, 11)[0].tables[:4]
    tables = np.concatenate([table[None], best])
    games = sf.simulate(bandit, tables, num_seeds=2048, seed=99, checkpoints=1)
    regrets = games.expected_regret[:, :, -1]
    mean, error = regrets.mean(axis=1), regrets.std(axis=1) / np.sqrt(2048)
    assert np.all(mean[0] - mean[1:] > 4 * np.hypot(error[0], error[1:]))


def climb(**options):
    return sf.worst_case(sf.strategies.exp3_ix(), 2, 16, constraint=UNIT, **{**SMALL, **options})


def test_a_search_improves_on_its_start_and_can_be_replayed(tmp_path):
    found = climb()
    assert found.table.shape == (16, 2)
    assert found.lead > 4
    assert np.all(np.diff(found.history) >= 0)
    low, high = found.score.interval()
    assert low < found.score.value < high
    assert found.finished
    path = found.save(tmp_path / "found.npy")
    again = sf.simulate(sf.strategies.exp3_ix(), sf.losses.from_file(path), num_seeds=512, seed=2)
    assert again.mean()[0, -1] == pytest.approx(found.regret, rel=1e-6)


def test_ctrl_c_keeps_the_best_and_the_same_call_goes_on(tmp_path):
    """Stopped after the third check and resumed: the same search to the last bit."""
    lines = []

    def stop_at_the_third(line):
        lines.append(line)
        if len(lines) == 3:
            raise KeyboardInterrupt

    path = tmp_path / "search.npz"
    stopped = climb(checkpoint=path, progress=stop_at_the_third)
    assert not stopped.finished
    assert stopped.num_steps == 6
    assert "the best found is kept" in lines[-1]
    assert stopped.history[-1] > stopped.history[0]
    resumed = climb(checkpoint=path)
    whole = climb()
    assert resumed.finished
    np.testing.assert_array_equal(resumed.table, whole.table)
    np.testing.assert_array_equal(resumed.history, whole.history)
    with pytest.raises(ValueError, match="another search"):
        climb(checkpoint=path, seed=5)
    path.write_bytes(b"nonsense")
    with pytest.raises(ValueError, match="not the checkpoint"):
        climb(checkpoint=path)


def test_objectives():
    """Over a bound, and against a rival: the score is that objective on fresh games."""
    bandit, rival = sf.strategies.exp3_ix(), sf.strategies.uniform()
    options = SMALL | {"num_steps": 4}
    over = sf.worst_case(
        rival, 2, 16, objective=sf.objectives.regret_over_bound("decaying"), **options
    )
    bound = sf.bounds.scale_free(over.result.norms, "decaying").corrected[0, -1]
    assert over.score.value == pytest.approx(over.regret / bound, rel=1e-5)
    apart = sf.worst_case(
        bandit, 2, 16, objective=sf.objectives.regret_difference(rival), **options
    )
    there = sf.simulate(rival, apart.table, num_seeds=512, seed=2).mean()[0, -1]
    assert apart.score.value == pytest.approx(apart.regret - there, rel=1e-5)


def test_several_strategies_in_one_run_at_any_scale():
    """Losses of 1e12, counted in a unit of their own, and a strategy told so."""
    scale = 2.0**40
    found = sf.worst_case(
        {"exp3": sf.strategies.exp3(scale=scale), "uniform": sf.strategies.uniform()},
        2,
        16,
        constraint=sf.constraints.box(0.0, scale),
        **SMALL | {"num_steps": 4},
    )
    assert set(found) == {"exp3", "uniform"}
    for worst in found.values():
        assert 0 <= worst.table.min() <= worst.table.max() <= scale
        assert worst.score.value >= worst.rival_score.value - 4 * worst.rival_score.error


@pytest.mark.parametrize(
    ("constraint", "inside"),
    [
        (sf.constraints.sup_norm(2.0), lambda x: np.abs(x).max() <= 2),
        (sf.constraints.box(-1.0, 3.0), lambda x: x.min() >= -1 and x.max() <= 3),
        (sf.constraints.total_l2(4.0), lambda x: (x**2).sum() <= 4.0001),
        (sf.constraints.total_l1(4.0), lambda x: np.abs(x).sum() <= 4.0001),
        (
            sf.constraints.sparse(1, 2.0),
            lambda x: (x != 0).sum(axis=1).max() <= 1 and np.abs(x).max() <= 2,
        ),
        (
            sf.constraints.profile([1, 2, 3, 4, 5, 6]),
            lambda x: np.all(np.abs(x) <= np.arange(1, 7)[:, None]),
        ),
    ],
)
def test_constraints(constraint, inside):
    """Projections lie in the set, leave it alone, and no point of the set tried is nearer."""
    rng = np.random.default_rng(0)
    table = jnp.asarray(10 * rng.normal(size=(6, 3)))
    project = jax.jit(constraint.project)
    projected = np.asarray(project(table))
    assert inside(projected)
    np.testing.assert_allclose(project(jnp.asarray(projected)), projected, atol=1e-6)
    nearest = np.linalg.norm(table - projected)
    for _ in range(50):
        other = np.asarray(project(jnp.asarray(projected + rng.normal(size=(6, 3)))))
        assert np.linalg.norm(table - other) >= nearest - 1e-6
    for fitted in constraint.fit(rng.uniform(0, 1, (6, 3))):
        assert inside(fitted)


def test_norms_of_a_table_are_those_of_simulate():
    table = np.random.default_rng(0).normal(size=(9, 3))
    mine = table_norms(jnp.asarray(table))
    theirs = sf.simulate(sf.strategies.uniform(), table, num_seeds=1, dtype="float64").norms
    for field in ("l_1", "l_2", "l_inf", "s_inf", "best", "mean", "smallest"):
        assert getattr(mine, field)[0, 0] == pytest.approx(getattr(theirs, field)[0, -1])


def test_tuning_finds_the_best_learning_rate():
    """Within two standard errors of a grid's best on the held-out sequences."""

    def make(rate):
        return sf.compose(
            sf.sampling.as_played(),
            sf.estimation.importance_weighted(),
            sf.full_information.ftrl(sf.potentials.negative_entropy(), rate),
        )

    losses = sf.losses.bernoulli(num_arms=3, gap=0.4)
    tuned = sf.tune(
        make, {"rate": (1e-3, 1.0)}, losses, num_rounds=60, num_steps=30, num_restarts=2
    )
    held_out = members(losses, 60, 16, 0)[1::2]
    grid = {f"{rate:.3g}": make(float(rate)) for rate in np.geomspace(1e-3, 1.0, 7)}
    results = sf.simulate(grid, held_out, num_seeds=512, seed=1, checkpoints=1)
    means = {name: result.mean()[:, -1].mean() for name, result in results.items()}
    assert tuned.score.value < min(means.values()) + 2 * tuned.score.error
    assert tuned.score.value < means["0.001"] - tuned.score.error
    assert set(tuned.parameters) == {"rate"}


@pytest.mark.parametrize(
    ("call", "named"),
    [
        (lambda: sf.worst_case(3, 2, 4), "strategy"),
        (lambda: sf.worst_case({}, 2, 4), "empty"),
        (lambda: sf.worst_case(sf.strategies.exp3(), 1, 4), "num_arms is 1"),
        (lambda: sf.worst_case(sf.strategies.exp3(), 2, 4, step_size=-1.0), "step_size"),
        (
            lambda: sf.worst_case(
                sf.strategies.exp3(), 2, 4, constraint=sf.constraints.profile([1.0] * 3)
            ),
            "does not fit",
        ),
        (lambda: sf.constraints.box(1.0, 0.0), "lowest < highest"),
        (lambda: sf.constraints.total_l2(-1.0), "budget is -1"),
        (lambda: sf.constraints.profile([-1.0]), "scales"),
        (lambda: sf.objectives.regret_over_bound("best"), "best"),
        (lambda: sf.objectives.regret_difference("exp3"), "exp3"),
        (lambda: sf.tune(sf.strategies.exp3, {}, np.zeros((2, 3, 2))), "empty"),
        (lambda: sf.tune(sf.strategies.exp3, {"scale": (2.0, 1.0)}, np.zeros((2, 3, 2))), "scale"),
        (lambda: sf.tune(sf.strategies.exp3, {"scale": (1.0, 2.0)}, np.zeros((3, 2))), "two"),
    ],
)
def test_bad_arguments_are_named(call, named):
    with pytest.raises(ValueError, match=named):
        call()


def test_the_command(capsys, tmp_path, monkeypatch):
    """With the options of SMALL it is the same search."""
    monkeypatch.chdir(tmp_path)
    options = "--strategies exp3_ix --arms 2 --rounds 16 --steps 20 --restarts 2 --seeds 16"
    options += " --score-seeds 512 --rivals bernoulli,uniform"
    with pytest.raises(SystemExit) as done:
        main(["worst-case", *options.split()])
    assert not done.value.code
    said = capsys.readouterr()
    assert "step 20 of 20" in said.err
    assert "exp3_ix" in said.out
    assert (tmp_path / "worst_case.png").read_bytes().startswith(b"\x89PNG")
    np.testing.assert_array_equal(np.load(tmp_path / "worst_case_exp3_ix.npy"), climb().table)


@pytest.mark.parametrize(
    ("bad", "named"),
    [
        ("--constraint ball", "ball"),
        ("--rivals bernouli", "bernoulli"),
        ("--steps 0", "num_steps is 0"),
    ],
)
def test_bad_options_are_named(bad, named, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as refused:
        main(["worst-case", *bad.split()])
    assert refused.value.code == 2
    errors = capsys.readouterr().err
    assert errors.count("\n") == 1
    assert named in errors
