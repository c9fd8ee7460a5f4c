"""Which arms were played, and pseudo-regret: against loops in NumPy, game by game."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import sfmab_jax as sf
from sfmab_jax.engine.loss_stream import start_sequences

UNIFORM = sf.strategies.uniform()  # quick to compile
ROUNDS = 40
FAMILIES = {
    "bernoulli": sf.losses.bernoulli(num_arms=4, gap=0.25),
    "switching": sf.losses.switching(num_arms=4),  # the best arms are drawn at the start
    "sinusoidal": sf.losses.sinusoidal(num_arms=4),  # means of the round alone
    "large": sf.losses.scaled(sf.losses.permuted(sf.losses.gaussian(num_arms=4)), 1e9),
}


def means_of(family, num_sequences):
    """The stated means, float64 [K, T, n]."""
    _, states = start_sequences(family, 0, np.arange(num_sequences))
    rounds = jnp.arange(1, ROUNDS + 1, dtype=jnp.int32)

    def of_sequence(state):
        return jax.vmap(lambda t: family.mean(state, t))(rounds)

    if not jax.tree.leaves(states):
        return np.broadcast_to(of_sequence(()), (num_sequences, ROUNDS, 4)).astype(np.float64)
    return np.asarray(jax.vmap(of_sequence, in_axes=-1)(states), np.float64)


def pseudo_regret_of(means, arms):
    """Means [T, n], arms [T] -> [T], round by round."""
    played, totals, regret = 0.0, np.zeros(means.shape[1]), []
    for row, arm in zip(means, arms):
        played += row[arm]
        totals += row
        regret.append(played - totals.min())
    return regret


def arms_of(result):
    """The arms played, [K, S, T]; every round is a checkpoint."""
    once = np.diff(result.arm_counts, axis=2, prepend=0)
    assert (once.min(axis=-1) == 0).all()
    assert (once.sum(axis=-1) == 1).all()
    return once.argmax(axis=-1)


def test_arm_counts_are_of_the_arms_played():
    """Every arm's loss is another one, so that the losses suffered name the arms."""
    losses = np.random.default_rng(0).permuted(np.tile([1.0, 2.0, 4.0], (2, ROUNDS, 1)), axis=-1)
    result = sf.simulate(UNIFORM, losses, num_seeds=3, arm_counts=True)
    assert result.arm_counts.dtype == np.int32
    totals = result.regret + result.norms.best[:, None]
    suffered = np.diff(totals, axis=-1, prepend=0)
    seen = np.take_along_axis(losses[:, None], arms_of(result)[..., None], axis=-1)[..., 0]
    np.testing.assert_array_equal(seen, suffered)


@pytest.mark.parametrize(
    ("name", "num_sequences", "num_seeds"),
    [
        ("bernoulli", 3, 2),  # each game makes its own losses
        ("switching", 3, 2),
        ("large", 3, 2),
        ("sinusoidal", 1, 8),  # games share losses
        ("switching", 2, 8),
    ],
)
def test_pseudo_regret_is_that_of_a_loop(name, num_sequences, num_seeds):
    family = FAMILIES[name]
    result = sf.simulate(
        UNIFORM,
        family,
        num_rounds=ROUNDS,
        num_sequences=num_sequences,
        num_seeds=num_seeds,
        checkpoints=ROUNDS,
        arm_counts=True,
        pseudo_regret=True,
    )
    means, arms = means_of(family, num_sequences), arms_of(result)
    wanted = [[pseudo_regret_of(row, game) for game in games] for row, games in zip(means, arms)]
    scale = np.abs(means).max()
    assert result.pseudo_regret.dtype == np.float64
    # The means are rounded once, and may be so in another way.
    np.testing.assert_allclose(result.pseudo_regret, wanted, atol=ROUNDS * 1e-7 * scale)
    if name == "bernoulli":
        np.testing.assert_array_equal(
            result.pseudo_regret, result.arm_counts @ np.array([0, 0.25, 0.25, 0.25])
        )


def test_what_is_kept_changes_no_game_nor_do_chunks_and_batching():
    family = FAMILIES["switching"]
    options = {"num_rounds": ROUNDS, "num_sequences": 2, "num_seeds": 8, "checkpoints": ROUNDS}
    asked = {"arm_counts": True, "pseudo_regret": True}
    plain = sf.simulate(UNIFORM, family, **options)
    whole = sf.simulate(UNIFORM, family, **options, **asked)
    for field in ("regret", "expected_regret"):
        np.testing.assert_array_equal(getattr(plain, field), getattr(whole, field))
    for other in ({"chunk_rounds": 16}, {"batching": "vmap"}):
        result = sf.simulate(UNIFORM, family, **options, **asked, **other)
        for name in asked:
            np.testing.assert_array_equal(result.kept[name], whole.kept[name])
    some = sf.simulate(UNIFORM, family, **options | {"num_seeds": 2}, **asked)  # make their own
    for name in asked:
        np.testing.assert_array_equal(some.kept[name], whole.kept[name][:, :2])


def test_expected_pseudo_regret_of_uniform_play():
    """T times the mean gap; and losses less means are noise."""
    gaps = np.array([0, 0.25, 0.25, 0.25])
    result = sf.simulate(
        UNIFORM,
        FAMILIES["bernoulli"],
        num_rounds=400,
        num_seeds=1024,
        num_sequences=2,
        checkpoints=1,
        pseudo_regret=True,
    )
    pseudo = result.samples("pseudo").ravel()
    error = pseudo.std(ddof=1) / np.sqrt(pseudo.size)
    assert abs(pseudo.mean() - 400 * gaps.mean()) < 4 * error
    np.testing.assert_allclose(result.mean("pseudo"), pseudo.mean(), rtol=1e-12)
    low, high = result.interval(kind="pseudo", over="sequence")
    assert (low < result.mean("pseudo", over="sequence")).all()
    assert (high > result.mean("pseudo", over="sequence")).all()


def test_means_of_a_users_own_family():
    def loss(key, t, gap):
        return means(t, gap) + jax.random.normal(key, (3,), jnp.float32)

    def means(t, gap):
        return jnp.where(t % 2 == 0, jnp.array([0.0, gap, gap]), jnp.array([gap, gap, 0.0]))

    family = sf.losses.from_function(loss, 3, gap=0.5, mean=means)
    options = {"num_rounds": 9, "num_sequences": 1, "num_seeds": 5}
    result = sf.simulate(UNIFORM, family, **options, arm_counts=True, pseudo_regret=True)
    rows = np.array([[0, 0.5, 0.5] if t % 2 == 0 else [0.5, 0.5, 0] for t in range(1, 10)])
    wanted = [pseudo_regret_of(rows, arms) for arms in arms_of(result)[0]]
    np.testing.assert_array_equal(result.pseudo_regret[0], wanted)


@pytest.mark.quick
@pytest.mark.parametrize(
    ("losses", "options", "message"),
    [
        ([[0.0, 1.0]], {}, "the expected losses of a table are not known.*mean="),
        (sf.losses.random_walk(num_arms=2), {}, "the expected losses of random_walk are not known"),
        (
            sf.losses.from_function(lambda key, t: jnp.zeros(2), 2, mean=lambda t: jnp.zeros(())),
            {},
            r"mean of function returns shape \[\].*\[2\]",
        ),
        (FAMILIES["bernoulli"], {"engine": "fused"}, "pseudo_regret=True needs engine='scan'"),
        (FAMILIES["bernoulli"], {"keep": "moments"}, "keep='moments' keeps nothing of single"),
        (FAMILIES["bernoulli"], {"pseudo_regret": 1}, "pseudo_regret is 1; give True or False"),
        (FAMILIES["bernoulli"], {"arm_counts": "yes"}, "arm_counts is 'yes'; give True or False"),
    ],
)
def test_refusals(losses, options, message):
    with pytest.raises(ValueError, match=message):
        sf.simulate(UNIFORM, losses, num_seeds=1, **{"pseudo_regret": True} | options)


def test_best_arm():
    """Of ties the lowest number; in float64 rounding breaks none of these."""
    generator = np.random.default_rng(3)
    losses = np.concatenate(
        [generator.integers(0, 2, (3, ROUNDS, 4)), generator.normal(size=(3, ROUNDS, 4))]
    ).astype(np.float64)
    losses[3] *= 1e-9  # not enough to be counted as ties
    result = sf.simulate(UNIFORM, losses, num_seeds=1)
    totals = losses.astype(np.float32).astype(np.float64).cumsum(axis=1)
    np.testing.assert_array_equal(result.best_arm, totals.argmin(axis=-1))
    best = np.take_along_axis(totals, result.best_arm[..., None], axis=-1)[..., 0]
    np.testing.assert_allclose(result.norms.best, best, rtol=1e-6)
    assert result.best_arm.dtype == np.int64
