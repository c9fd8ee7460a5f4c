"""Losses that answer the player, external and policy regret: against loops and enumeration."""

from functools import partial

import adversary_loops as loops
import any_range_loops as any_range
import jax.numpy as jnp
import known_range_loops as known_range
import numpy as np
import paper_loop
import pytest
from simulated import assert_same, table_of
from tiers import some_in_default

import sfmab_jax as sf
from sfmab_jax.results.hardness import loss_chunks
from sfmab_jax.study.cells import plan_cells
from sfmab_jax.study.config import read_study
from sfmab_jax.study.report import write_report
from sfmab_jax.study.runner import run_study
from sfmab_jax.theory.guarantees import guarantee

ADVERSARIES = sf.losses.ADVERSARIES
EXP3 = sf.strategies.exp3()
# The adversaries with what they are told, here and in their loops.
TOLD = {
    "crowded": {"memory": 2, "rise": 0.75},
    "switching_costs": {"cost": 0.5},
    "tit_for_tat": {"rise": 0.75},
    "corrupted_leader": {"budget": 1.25, "high": 1.0},
    "against_the_law": {"rise": 0.25},
}


def arms_of(result):
    """The arms played [K, T]; every round is a checkpoint."""
    return np.diff(result.arm_counts[:, 0], axis=1, prepend=0).argmax(axis=-1)


def adversary(name, base):
    return ADVERSARIES[name](base, **TOLD[name]), partial(getattr(loops, name), **TOLD[name])


@pytest.mark.parametrize("name", TOLD)
def test_regrets_of_a_game_are_those_of_a_loop(name):
    """Of every game that was played, by the arms that it played."""
    base = np.random.default_rng(1).integers(0, 9, (30, 3)) / 8.0
    losses, loop = adversary(name, base)
    result = sf.simulate(
        EXP3, losses, num_seeds=20, checkpoints=30, arm_counts=True, policy_regret=True
    )
    constant = loops.constant_totals(loop, base)
    for game, arms in enumerate(arms_of(result)):
        met, _ = loops.losses_met(loop, base, arms, known_range.exp3)
        external, policy = loops.regrets(met, arms, constant)
        np.testing.assert_allclose(result.regret[game, 0], external, atol=2e-6)
        np.testing.assert_allclose(result.policy_regret[game, 0], policy, atol=2e-6)
        np.testing.assert_allclose(result.norms.l_2[game, -1], (met**2).sum(), rtol=1e-6)


def algorithm_1(arms, losses):
    if not len(arms):
        return np.full((1, losses.shape[1]), 1 / losses.shape[1])
    played = paper_loop.play_game(losses, "adaptive", arms=arms)
    gamma = played.exploration[-1]
    last = (1 - gamma) * played.play[-1] + gamma / losses.shape[1]
    return np.concatenate([played.probabilities, last[None]])


STRATEGIES = {
    "exp3": (EXP3, known_range.exp3),
    "tsallis_inf": (sf.strategies.tsallis_inf(), known_range.tsallis_inf),
    "ahb": (sf.strategies.ahb(), any_range.ahb),
    "scale_free": (sf.strategies.scale_free("adaptive"), algorithm_1),
}
CASES = [
    (name, strategy, 3 if strategy == "exp3" else 2)
    for name in ("crowded", "switching_costs", "tit_for_tat", "against_the_law")
    for strategy in STRATEGIES
]


@pytest.mark.parametrize(
    ("name", "strategy", "num_arms"),
    some_in_default(CASES, [("crowded", "exp3", 3), ("switching_costs", "scale_free", 2)]),
)
def test_expected_regrets_are_those_of_all_games(name, strategy, num_arms):
    """Six rounds, or five of three arms; means of 40,000 games within 4 standard errors."""
    base = np.random.default_rng(2).integers(0, 9, (8 - num_arms, num_arms)) / 8.0
    losses, loop = adversary(name, base)
    bandit, laws_of = STRATEGIES[strategy]
    result = sf.simulate(
        bandit, losses, num_seeds=40_000, checkpoints=1, policy_regret=True, progress=False
    )
    wanted = loops.expected_regrets(loop, base, laws_of)
    for kind, mean in zip(("realised", "policy"), wanted, strict=True):
        error = result.std(kind)[0, -1] / np.sqrt(result.num_sequences)
        assert abs(result.mean(kind)[0, -1] - mean) <= 4 * error + 1e-6
    assert (
        abs(result.mean("expected")[0, -1] - wanted[0])
        <= 4 * result.std("expected")[0, -1] / np.sqrt(result.num_sequences) + 1e-6
    )


def test_on_oblivious_losses_the_regrets_are_one():
    """Whether they say that they are oblivious, or only do not look."""
    table = table_of(20, 3, seed=4)
    plain = sf.simulate(EXP3, table, num_seeds=16, checkpoints=20, policy_regret=True)
    np.testing.assert_array_equal(plain.policy_regret, plain.regret)
    rows = jnp.asarray(table, jnp.float32)

    def unmoved(state, key, t, last_arm):
        return state, rows[t - 1]

    losses = sf.losses.from_adversary(lambda key: (), unmoved, num_arms=3)
    result = sf.simulate(
        EXP3, losses, num_rounds=20, num_seeds=16, checkpoints=20, policy_regret=True
    )
    np.testing.assert_array_equal(result.policy_regret, result.regret)


@pytest.mark.parametrize("name", some_in_default(ADVERSARIES, ["crowded", "against_the_law"]))
def test_a_game_is_the_same_alone_and_among_others(name):
    horizon = {"num_rounds": 90} if name == "switching_cost_walk" else {}
    losses = ADVERSARIES[name](num_arms=3, **horizon)
    run = partial(sf.simulate, EXP3, losses, num_rounds=90, checkpoints=[1, 40, 90])
    many = run(num_seeds=200, policy_regret=True)
    alone = run(num_seeds=1, first_seed=150)
    np.testing.assert_array_equal(alone.regret[0], many.regret[150])
    some = run(num_seeds=40, first_sequence=100, chunk_rounds=7, policy_regret=True)
    np.testing.assert_array_equal(some.regret, many.regret[100:140])
    np.testing.assert_array_equal(some.policy_regret, many.policy_regret[100:140])
    joined = sf.concat([run(num_seeds=100), run(num_seeds=100, first_sequence=100)])
    assert_same(joined, many)


def test_each_strategy_has_its_own_losses_and_files_keep_them(tmp_path):
    named = {"exp3": EXP3, "uniform": sf.strategies.uniform()}
    losses = sf.losses.switching_costs(num_arms=3)
    results = sf.simulate(named, losses, num_rounds=40, num_seeds=6, checkpoints=4)
    assert not np.array_equal(results["exp3"].norms.best, results["uniform"].norms.best)
    again = sf.load(results.save(tmp_path / "answered.npz"))
    for name, result in results.items():
        assert_same(again[name], result)
        assert again[name].sees == "arm"
        alone = sf.simulate(named[name], losses, num_rounds=40, num_seeds=6, checkpoints=4)
        assert_same(alone, result)
    moments = sf.simulate(named, losses, num_rounds=40, num_seeds=6, checkpoints=4, keep="moments")
    for name, result in results.items():
        np.testing.assert_allclose(moments[name].mean(), result.mean(), rtol=1e-12)
    assert sf.simulate(EXP3, losses, num_rounds=9, num_seeds=2, batching="vmap").sees == "arm"


def test_moments_have_the_largest_loss_of_their_own_strategy():
    losses = sf.losses.crowded(np.zeros((20, 2)), memory=20, rise=1.0)
    named = {"fixed": sf.strategies.fixed_arm(0), "uniform": sf.strategies.uniform()}
    how = {"num_seeds": 4, "checkpoints": 20}
    games, moments = (sf.simulate(named, losses, keep=x, **how) for x in ("games", "moments"))
    for name, result in games.items():
        largest = result.norms.l_inf.max(axis=0)
        np.testing.assert_array_equal(moments[name].largest_loss, largest)
    assert moments["fixed"].largest_loss[-1] > moments["uniform"].largest_loss[-1]


def test_step_by_step_plays_the_same_game():
    losses = sf.losses.against_the_law(sf.losses.switching_costs(num_arms=3), num_arms=3)
    assert losses.sees == "law"
    result = sf.simulate(EXP3, losses, num_rounds=200, num_seeds=8, checkpoints=200)
    steps = sf.step_by_step(EXP3, losses, num_rounds=200, sequence=5)
    np.testing.assert_array_equal([step.regret for step in steps], result.regret[5, 0])


def test_a_study_of_answers(tmp_path):
    file = tmp_path / "mine.toml"
    strategies = "[strategies.exp3]\n[strategies.uniform]\n"
    text = f"title = 'a'\narms = 2\nrounds = 20\nseeds = 60\n{strategies}[losses.crowded]\n"
    file.write_text(text)
    run_study(read_study(str(file)), tmp_path / "played")
    study = sf.load_study(tmp_path / "played")
    result = study["exp3", study.settings[0]]
    direct = sf.simulate(EXP3, sf.losses.crowded(num_arms=2), num_rounds=20, num_seeds=60)
    assert result.sees == "arm"
    np.testing.assert_array_equal(result.regret, direct.regret)
    write_report(tmp_path / "played")
    assert "crowded answer the player" in (tmp_path / "played/report/report.md").read_text()
    file.write_text(f"sequences = 3\n{text}")
    with pytest.raises(ValueError, match=r"sequences = 3: .*answer the player"):
        plan_cells(read_study(str(file)))


def test_what_is_regretted_is_said():
    losses = sf.losses.switching_costs(num_arms=2)
    results = sf.simulate(
        {"exp3": EXP3}, losses, num_rounds=40, num_seeds=60, checkpoints=4, policy_regret=True
    )
    assert "mean external regret" in repr(results)
    assert results.plot().get_ylabel().startswith("mean external regret")
    assert results.plot(kind="policy").get_ylabel().startswith("mean policy regret")
    assert results.to_pandas()["policy_regret"].notna().all()
    lines, reason = guarantee(results["exp3"])
    assert not lines
    assert "losses that answered" in reason


BASE = np.random.default_rng(5).integers(0, 9, (16, 2)) / 8.0
COSTLY = sf.losses.switching_costs(BASE, cost=0.5)
SAME = {
    "scaled": lambda: sf.losses.scaled(COSTLY, 1.0),
    "shifted": lambda: sf.losses.shifted(COSTLY, 0.0),
    "clipped": lambda: sf.losses.clipped(COSTLY, -1e3, 1e3),
    "enveloped": lambda: sf.losses.enveloped(COSTLY, lambda t: jnp.ones_like(t)),
    "mixed": lambda: sf.losses.mixed([COSTLY, COSTLY], [1, 1]),
    "concatenated": lambda: sf.losses.concatenated([COSTLY, BASE], [16]),
}
short_run = partial(sf.simulate, EXP3, num_seeds=5, checkpoints=16, num_rounds=16, arm_counts=True)


@pytest.mark.parametrize("name", some_in_default(SAME, ["mixed"]))
def test_combinators_pass_on_what_is_seen(name):
    """Changed by nothing, or mixed with themselves: the same games."""
    same = SAME[name]()
    assert same.sees == "arm"
    np.testing.assert_array_equal(short_run(same).regret, short_run(COSTLY).regret)


@pytest.mark.parametrize("free_rounds", [9, 1], ids=["concatenated", "permuted"])
def test_arms_in_another_order_and_parts_that_begin_anew(free_rounds):
    """A part does not see the arms before it; the arms seen are in the order of those played."""
    if free_rounds == 9:
        end = sf.losses.switching_costs(BASE[8:], cost=0.5)
        losses = sf.losses.concatenated([BASE[:8], end], [8])
    else:
        losses = sf.losses.permuted(COSTLY)
    result = short_run(losses)
    for game, arms in enumerate(arms_of(result)):
        paid = np.diff(result.regret[game, 0] + result.norms.best[game], prepend=0)
        switched = (np.diff(arms, prepend=arms[0]) != 0) & (np.arange(16) >= free_rounds)
        plain = (paid - 0.5 * switched)[:, None]
        orders = [BASE, np.roll(BASE, 1, axis=1)][: 1 if free_rounds == 9 else 2]
        assert any((plain == order)[np.arange(16), arms].all() for order in orders)


REFUSED = {
    "present arm": (
        lambda: sf.losses.from_adversary(lambda key: (), lambda s, k, t, last, arm: None, 2),
        r"takes \(s, k, t, last, arm\), but is given \(state, key, round, last_arm\).*"
        r"never the present one, which is drawn after the losses",
    ),
    "an arm of an oblivious family": (
        lambda: sf.losses.from_recurrence(lambda key: (), lambda s, k, t, arm: None, 2),
        r"oblivious here.*use sf\.losses\.from_adversary",
    ),
    "sees the arm": (
        lambda: sf.losses.from_adversary(
            lambda key: (), lambda s, k, t, a: None, 2, sees="present arm"
        ),
        r"sees is 'present arm'; choose 'arm' or 'law'",
    ),
    "several games on a sequence": (
        lambda: sf.simulate(EXP3, sf.losses.tit_for_tat(), num_sequences=4, num_seeds=8),
        r"num_sequences is 4 with num_seeds = 8.*no two games share a sequence",
    ),
    "certificate": (
        lambda: sf.simulate(sf.strategies.scale_free(), sf.losses.crowded(), certificate=True),
        r"certificate=True is for oblivious losses, and 'crowded' answer the player",
    ),
    "fused": (
        lambda: sf.simulate(EXP3, sf.losses.crowded(), engine="fused"),
        r"'crowded' answer the player, which the fused engine does not play",
    ),
    "pseudo-regret": (
        lambda: sf.simulate(EXP3, sf.losses.crowded(), pseudo_regret=True),
        r"the expected losses of crowded are not known",
    ),
    "moments": (
        lambda: sf.simulate(EXP3, sf.losses.crowded(), policy_regret=True, keep="moments"),
        r"keep='moments' keeps nothing of single games: .*policy_regret",
    ),
    "hardness": (
        lambda: sf.hardness(sf.losses.crowded(), num_rounds=5),
        r"'crowded' answer the arms played, so there are none before a game",
    ),
    "budget": (lambda: sf.losses.corrupted_leader(budget=-1), r"budget is -1; it cannot be"),
    "memory": (lambda: sf.losses.crowded(memory=0), r"memory is 0; give an integer from 1"),
    "arms": (
        lambda: sf.losses.tit_for_tat([[0.0, 1.0]], num_arms=3),
        r"num_arms is 3; the losses have 2",
    ),
    "order": (
        lambda: sf.losses.permuted(sf.losses.against_the_law()),
        r"'against_the_law' see the law of the arm",
    ),
    "rounds": (
        lambda: sf.simulate(EXP3, sf.losses.switching_cost_walk(num_rounds=8), num_rounds=9),
        r"num_rounds is 9; the losses have only 8",
    ),
}


@pytest.mark.quick
@pytest.mark.parametrize("name", REFUSED)
def test_refused(name):
    call, sentence = REFUSED[name]
    with pytest.raises(ValueError, match=f"(?s){sentence}"):
        call()


def test_the_walk_is_one_on_many_scales():
    """W_t - W_{parent of t} is N(0, sigma^2): unclipped losses less those of the parent round."""
    num_rounds = 64
    family = sf.losses.switching_cost_walk(num_arms=2, num_rounds=num_rounds, cost=0.0)
    assert family.is_oblivious
    losses = np.array([np.concatenate(list(loss_chunks(family, num_rounds, k))) for k in range(3)])
    sigma = 1 / (9 * np.log2(num_rounds))
    gap = sigma * (2 / num_rounds) ** (1 / 3)
    np.testing.assert_allclose(np.abs(losses[..., 0] - losses[..., 1]), gap, rtol=1e-5)
    walk = np.concatenate([np.zeros((3, 1)), losses.max(axis=2) - 0.5], axis=1)
    rounds = np.arange(1, num_rounds + 1)
    steps = walk[:, rounds] - walk[:, rounds & (rounds - 1)]
    assert abs(steps.std() / sigma - 1) < 4 / np.sqrt(2 * steps.size)
