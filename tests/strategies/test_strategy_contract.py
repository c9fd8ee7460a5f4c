"""The contract of every named strategy, driven by the one table `STRATEGIES`."""

import re

import any_range_loops as any_range
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tiers import each_strategy
from watched import NUM_ARMS, simulate

import sfmab_jax as sf
from sfmab_jax import cli

STRATEGIES = sf.strategies.STRATEGIES

SIGNED = (
    "broad",
    "broad_increasing_horizon",
    "broad_optimistic",
    "hybrid_barrier",
    "hybrid_barrier_horizon",
    "tsallis_spm",
)
HEAVY = ("htinf", "ada_tinf_horizon", "uni_inf_horizon", "omd_lb_heavy_tails_horizon")
POSITIVE = (
    "bandit_ada_ftrl_tsallis",
    "bandit_ada_ftrl_tsallis_proxy",
    "exp3_light_a_horizon",
)
ANY = (
    "scale_free",
    "ahb",
    "ahb_published_code",
    "umab_g",
    "umab_g_horizon",
    "umab_g_both_horizon",
    "ada_hedge",
    "ada_ftrl_log_barrier",
    "ada_ftrl_tsallis",
    "follow_the_leader",
    "uniform",
    "fixed_arm",
    "follow_the_leader_on_estimates",
    "epsilon_greedy",
)
FULL = (
    "hedge",
    "hedge_horizon",
    "ada_hedge",
    "ada_ftrl_log_barrier",
    "ada_ftrl_tsallis",
    "follow_the_leader",
)


def extreme_losses(name):
    """300 rounds at the ends of the range that a strategy is made for, [300, n]."""
    generator = np.random.default_rng(5)
    shape = (300, NUM_ARMS)
    if name in ANY:
        return generator.normal(size=shape) * 10.0 ** generator.uniform(-30, 30, (300, 1))
    if name in POSITIVE:
        return generator.random(shape) * 10.0 ** generator.uniform(-30, 30, (300, 1))
    if name in HEAVY:
        return generator.standard_t(1.1, shape) * 10.0 ** generator.uniform(-3, 12, (300, 1))
    unit = generator.choice([0.0, 1e-30, 0.5, 1.0], shape)
    unit[50:100] = 0
    unit[100:150] = 1
    unit[150:200] = [1, 0, 0]
    return 2 * unit - 1 if name in SIGNED else unit


@each_strategy
def test_plays_on_the_simplex_with_losses_at_the_ends_of_its_range(name):
    """In the engine, so with lanes: every law of 300 rounds of 128 games, every state finite."""
    results = simulate({name: STRATEGIES[name]()}, extreme_losses(name), num_rounds=300)
    worst_sum, lowest, all_finite = results[name].records
    assert worst_sum.max() <= 20 * np.finfo(np.float32).eps
    assert lowest.min() >= 0
    assert all_finite.min() == 1
    assert np.isfinite(results[name].regret).all()


@each_strategy
@pytest.mark.parametrize("dtype", [jnp.float32, jnp.float64], ids=["f32", "f64"])
def test_update_keeps_the_type_of_the_state(name, dtype):
    """Shapes, dtypes and weak types stay, for losses given as a number and as a vector."""
    bandit = STRATEGIES[name]()

    def one_round(arm, *losses):
        first = bandit.init(7, dtype)
        types = jax.tree.map(jax.typeof, first)
        for leaf in jax.tree.leaves(types):
            assert not leaf.weak_type
            assert leaf.dtype in (dtype, jnp.int32)
        laws = []
        for loss in losses:
            state = bandit.update(first, arm, loss)
            assert jax.tree.map(jax.typeof, state) == types
            laws.append(bandit.probabilities(state))
        return laws

    for law in jax.eval_shape(one_round, np.int32(3), dtype(0.5), np.full(7, 0.5, dtype)):
        assert law.shape == (7,)
        assert law.dtype == dtype


@each_strategy
@jax.disable_jit()
def test_one_arm_is_always_played(name):
    bandit = STRATEGIES[name]()
    state = bandit.init(1)
    for loss in (0.25, 1.0, 0.0):
        np.testing.assert_allclose(bandit.probabilities(state), 1, rtol=1e-6)
        shown = bandit.feedback(jnp.full(1, loss, jnp.float32), jnp.int32(0))
        state = bandit.update(state, jnp.int32(0), shown)
    np.testing.assert_allclose(bandit.probabilities(state), 1, rtol=1e-6)


@each_strategy
def test_feedback_is_what_the_strategy_is_for(name):
    losses = jnp.asarray([0.5, 0.25, 0.0], jnp.float32)
    shown = STRATEGIES[name]().feedback(losses, jnp.int32(1))
    np.testing.assert_array_equal(shown, losses if name in FULL else 0.25)


# Two values of every number that a factory takes.
PARAMETERS = {
    "scale": (2.0, 3.0),
    "num_rounds": (100, 200),
    "switches": (2.0, 3.0),
    "sum_of_squares": (100.0, 200.0),
    "rate": (0.01, 0.02),
    "learning_rate": (0.1, 0.2),
    "beta": (2.0, 3.0),
    "alpha": (2.0, 3.0),
    "power": (0.3, 0.4),
    "q": (3.0, 4.0),
    "failure": (0.1, 0.2),
    "centre": (0.1, 0.2),
    "spread": (0.5, 0.6),
    "decay": (0.4, 0.6),
    "lowest": (-1.0, -2.0),
    "tail": (1.5, 1.7),
    "size": (2.0, 3.0),
    "epsilon": (0.2, 0.3),
    "path_length": (1e6, 1e7),
    "arm": (1, 2),
}


@each_strategy
def test_parameters_are_leaves(name):
    """Other numbers, same tree of static functions: nothing is compiled again."""
    make = STRATEGIES[name]
    parameters = [p for p in make.__annotations__ if p in PARAMETERS]
    for parameter in parameters:
        one, other = (make(**{parameter: value}) for value in PARAMETERS[parameter])
        assert jax.tree.structure(one) == jax.tree.structure(other)
        assert jax.tree.leaves(one) != jax.tree.leaves(other)
    known = {"return", "exploration", "form", *parameters}
    assert set(make.__annotations__) <= known


@pytest.mark.parametrize(
    "name", [name for name, make in STRATEGIES.items() if "scale" in make.__annotations__]
)
@jax.disable_jit()
def test_scale_is_the_unit_of_the_losses(name):
    """scale = c in a unit of 1/c is scale = 1."""
    make = STRATEGIES[name]
    plays = []
    for scale, unit in ((1.0, 1.0), (8.0, 0.125)):
        bandit = make(scale=scale)
        state = bandit.init(3, jnp.float32, unit)
        for arm, loss in ((0, 0.75), (1, 0.25), (2, 1.0), (0, 0.5)):
            losses = jnp.full(3, loss / 2, jnp.float32).at[arm].set(loss)
            state = bandit.update(state, jnp.int32(arm), bandit.feedback(losses, jnp.int32(arm)))
        plays.append(np.asarray(bandit.probabilities(state)))
    np.testing.assert_allclose(plays[0], plays[1], rtol=1e-6)
    assert np.ptp(plays[0]) > 0


@each_strategy
def test_docstring_opens_with_the_source_and_gives_the_regret(name):
    text = STRATEGIES[name].__doc__
    assert re.search(r"\(\d{4}\)", text.splitlines()[0])
    assert "regret" in text or "bound" in text
    if "num_rounds" in STRATEGIES[name].__annotations__:
        assert name.endswith("_horizon")


# Feedback.


def test_full_information_in_the_engine_is_the_plain_loop():
    """The conditional regret of Hedge is a function of the losses alone."""
    losses = np.random.default_rng(2).random((200, 4))
    result = sf.simulate(sf.strategies.hedge(), losses, num_seeds=3, dtype="float64")
    laws = any_range.hedge(None, losses)[:-1]
    best = losses.cumsum(axis=0).min(axis=1)
    regret = (laws * losses).sum(axis=1).cumsum() - best
    np.testing.assert_allclose(result.expected_regret[0, 0], regret[result.rounds - 1], rtol=1e-9)
    # The arms drawn enter and leave again.
    np.testing.assert_allclose(result.expected_regret[0, 0], result.expected_regret[0, 2], 1e-12)


def test_feedback_of_the_whole_run():
    """`simulate(feedback=...)` overrides the strategies' own."""
    losses = np.random.default_rng(3).random((60, 4))
    rate = 0.5
    full, bandit = (
        sf.compose(
            sf.sampling.as_played(),
            sf.estimation.importance_weighted(),
            sf.full_information.ftrl(sf.potentials.negative_entropy(), rate),
            feedback=kind,
        )
        for kind in ("full", "bandit")
    )
    options = {"num_seeds": 4, "dtype": "float64"}
    own = sf.simulate({"full": full, "bandit": bandit}, losses, **options)
    for kind in ("full", "bandit"):
        forced = sf.simulate({"full": full, "bandit": bandit}, losses, feedback=kind, **options)
        for result in forced.values():
            np.testing.assert_array_equal(result.regret, own[kind].regret)
    assert (own["full"].regret != own["bandit"].regret).any()
    with pytest.raises(ValueError, match="'both'"):
        sf.simulate(full, losses, feedback="both")
    with pytest.raises(ValueError, match="'bandit' or 'full'"):
        sf.compose(*bandit[:3], feedback="none")


# The command line.


def test_list_has_a_line_for_every_strategy(capsys):
    with pytest.raises(SystemExit):
        cli.main(["list", "strategies"])
    lines = capsys.readouterr().out.splitlines()[1:]
    assert [line.split()[0] for line in lines] == list(STRATEGIES)


def test_run_draws_several_strategies_together(tmp_path, capsys):
    picture = tmp_path / "together.png"
    names = "exp3,hedge"
    options = ["--rounds", "40", "--seeds", "4", "--arms", "3", "--losses", "uniform"]
    with pytest.raises(SystemExit) as stop:
        cli.main(
            ["run", "--strategies", names, "--scales", "1", *options, "--output", str(picture)]
        )
    assert stop.value.code == 0
    rows = picture.with_suffix(".csv").read_text().splitlines()[1:]
    assert [row.split(",")[2] for row in rows] == names.split(",")
    assert picture.stat().st_size > 1000
