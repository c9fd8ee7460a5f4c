"""Algorithm 1 against high-precision oracles, exact enumeration and a plain loop."""

import itertools
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import paper_loop
import pytest
from forced_games import EACH_OPTION, GOLDEN, OPTIONS, cumulative, follow, forced
from tiers import some_in_default

import sfmab_jax as sf
from sfmab_jax.numerics.threefry import game_key, threefry_2x32

# Twelve rounds of two arms, so that sqrt(n/t) falls below 1/2: exact regrets from 50-digit
# enumeration of the 4,096 arm sequences.
TABLE_D = {
    "name": "D",
    "losses": [
        [1, 0.5], [0, -1], [0.75, 0.25], [-0.5, 0.5], [1, -1], [0.25, 0.25],
        [-0.25, 0], [2, -0.5], [0.5, 0.75], [-1.5, 1], [0.125, -0.875], [1, 0],
    ],
    "decaying": {"regret": 2.18535747020403},
    "adaptive": {"regret": 2.17754971921091},
}  # fmt: skip
TABLES = [*GOLDEN["exact_expected_regret"], TABLE_D]
# Of tables B and C, with 3 and 4 arms, one option each by default.
TWICE = (("B", "decaying"), ("C", "adaptive"))
EACH_TABLE_AND_OPTION = pytest.mark.parametrize(
    ("table", "exploration"),
    [
        pytest.param(
            table,
            option,
            id=f"{table['name']}-{option}",
            marks=pytest.mark.full if (table["name"], option) in TWICE else (),
        )
        for table in TABLES
        for option in OPTIONS
    ],
)
LONGEST = max(len(table["losses"]) for table in TABLES)
MOST_PATHS = max(len(table["losses"][0]) ** len(table["losses"]) for table in TABLES)


def each_trajectory(*sizes):
    """The golden trajectories; by default those with so many arms."""
    return pytest.mark.parametrize(
        "golden",
        [
            pytest.param(
                golden,
                id=f"{golden['num_arms']}-{golden['exploration']}",
                marks=() if golden["num_arms"] in sizes else pytest.mark.full,
            )
            for golden in GOLDEN["trajectories"]
        ],
    )


@jax.jit
@partial(jax.vmap, in_axes=(None, None, None, 0))
def weigh(bandit, losses, num_rounds, arms):
    """One arm sequence: its probability, its total loss, and the state after so many rounds."""

    def step(carry, now):
        t, arm, loss = now
        state, weight, total = carry
        weight = weight * bandit.probabilities(state)[arm]
        after = (bandit.update(state, arm, loss[arm]), weight, total + loss[arm])
        return jax.tree.map(
            lambda new, old: jnp.where(t < num_rounds, new, old), after, carry
        ), None

    start = (bandit.init(losses.shape[1], jnp.float64), jnp.float64(1), jnp.float64(0))
    rounds = jnp.arange(len(losses))
    (state, weight, total), _ = jax.lax.scan(step, start, (rounds, arms, losses))
    return weight, total, state


def enumerate_arms(losses, exploration):
    """Weights, total losses and last states of all n^T arm sequences, as NumPy.

    Tables and sequences are padded to the same shapes, so that few programs are compiled.
    """
    num_rounds, n = losses.shape
    paths = np.array(list(itertools.product(range(n), repeat=num_rounds)), np.int32)
    arms = np.zeros((MOST_PATHS, LONGEST), np.int32)
    arms[: len(paths), :num_rounds] = paths
    table = np.zeros((LONGEST, n))
    table[:num_rounds] = losses
    found = weigh(sf.strategies.scale_free(exploration), table, num_rounds, arms)
    return jax.tree.map(lambda x: np.asarray(x)[: len(paths)], found)


# Golden trajectories.


def replayed(golden):
    """The bandit, the arms and losses of a trajectory, and the states in float64."""
    bandit = sf.strategies.scale_free(golden["exploration"])
    arms, losses = np.array(golden["arms"]), np.array(golden["losses"])
    states = forced(bandit, arms, losses, golden["num_arms"], jnp.float64)
    return bandit, arms, losses, states


@pytest.mark.quick
@pytest.mark.optimised
@each_trajectory(5)
def test_trajectory_agrees_with_fifty_digit_arithmetic(golden):
    """Over the whole trajectory, to 1e-8: 80 rounds of rounding at 1e-16, amplified."""
    n = golden["num_arms"]
    *_, states = replayed(golden)
    rates = states.full_information.learning_rate
    assert rates[0] == n
    assert states.sampling.exploration[0] == 0.5
    np.testing.assert_array_equal(states.full_information.play[0], np.full(n, 1 / n))
    checked = 0
    for after in golden["after_round"]:
        t = after["round"]
        np.testing.assert_allclose(rates[t], after["learning_rate"], rtol=1e-8)
        np.testing.assert_allclose(states.sampling.exploration[t], after["exploration"], rtol=1e-8)
        np.testing.assert_allclose(states.full_information.play[t], after["play"], rtol=1e-8)
        # 1/eta_t carries a rounding error of 1e-16 n/eta_t: the difference tells M_t to 1e-8
        # when M_t is more than 1e-7 of it.
        if after["mixability_gap"] > 1e-7 * n / rates[t]:
            gap = n * (1 / rates[t] - 1 / rates[t - 1])
            np.testing.assert_allclose(gap, after["mixability_gap"], rtol=1e-8)
            checked += 1
    assert checked >= 4


@each_trajectory(5)
def test_float32_step_agrees_with_fifty_digit_arithmetic(golden):
    """One step from the float64 state cast to float32, to 1e-5, a hundred roundings of 6e-8."""
    bandit, arms, losses, states = replayed(golden)
    for after in golden["after_round"]:
        t = after["round"]
        now = slice(t - 1, t)
        before = jax.tree.map(
            lambda x, t=t: x[t - 1].astype(np.float32 if x.dtype == np.float64 else x.dtype), states
        )
        both = follow(bandit, before, arms[now], losses[now].astype(np.float32))
        state = jax.tree.map(lambda x: x[1], both)
        got, mixing = state.full_information, state.sampling.exploration
        assert got.play.dtype == got.learning_rate.dtype == mixing.dtype == jnp.float32
        np.testing.assert_allclose(got.learning_rate, after["learning_rate"], rtol=1e-5)
        np.testing.assert_allclose(mixing, after["exploration"], rtol=1e-5)
        np.testing.assert_allclose(got.play, after["play"], rtol=1e-5)


@pytest.mark.quick
@each_trajectory(2, 5, 10)
def test_plain_loop_agrees_with_fifty_digit_arithmetic(golden):
    """The oracle of the tests below is itself right, to 1e-12."""
    n, arms = golden["num_arms"], np.array(golden["arms"])
    losses = np.zeros((len(arms), n))
    losses[np.arange(len(arms)), arms] = golden["losses"]
    loop = paper_loop.play_game(losses, golden["exploration"], arms=arms)
    for after in golden["after_round"]:
        t = after["round"] - 1
        np.testing.assert_allclose(loop.gaps[t], after["mixability_gap"], rtol=1e-12)
        np.testing.assert_allclose(loop.learning_rate[t], after["learning_rate"], rtol=1e-12)
        np.testing.assert_allclose(loop.exploration[t], after["exploration"], rtol=1e-12)
        np.testing.assert_allclose(loop.play[t], after["play"], rtol=1e-12)


# Exact expectations.


@EACH_TABLE_AND_OPTION
def test_expected_regret_by_enumeration(table, exploration):
    """All n^T arm sequences, weighted by their probability, to 1e-10: 1e-16 times a few rounds."""
    losses = np.array(table["losses"], np.float64)
    n = losses.shape[1]
    weights, totals, states = enumerate_arms(losses, exploration)
    np.testing.assert_allclose(weights.sum(), 1, rtol=1e-12)
    means = {
        "regret": weights @ totals - losses.sum(axis=0).min(),
        "mean_mixability_sum": weights @ (n / states.full_information.learning_rate - 1),
        "mean_learning_rate": weights @ states.full_information.learning_rate,
        "mean_exploration": weights @ states.sampling.exploration,
        "mean_play_of_arm_0": weights @ states.full_information.play[:, 0],
    }
    for name, wanted in table[exploration].items():
        np.testing.assert_allclose(means[name], wanted, rtol=1e-10, err_msg=name)
    # Importance weighting is unbiased: E of the summed estimates is the summed losses.
    np.testing.assert_allclose(
        weights @ cumulative(states), losses.sum(axis=0), rtol=0, atol=1e-11 * np.abs(losses).sum()
    )


@EACH_OPTION
@pytest.mark.parametrize(
    ("scale", "decaying", "adaptive", "tolerance"),
    [
        # As the losses vanish the rates stay at n and 1/2, and regret / c tends to 3/4.
        (1e-9, 0.75, 0.75, 1e-8),
        # Four digits were kept.
        (0.1, 0.7756, 0.7768, 5e-5),
        (1.0, 0.8180, 0.8428, 5e-5),
        (1e3, 0.7752, 0.6935, 5e-5),
    ],
)
def test_regret_is_not_proportional_to_the_losses(
    scale, decaying, adaptive, tolerance, exploration
):
    """The 1 in eta_t and the 2n in gamma_t carry a unit: regret / c varies with the scale c."""
    losses = scale * np.array(TABLES[0]["losses"])
    weights, totals, _ = enumerate_arms(losses, exploration)
    ratio = (weights @ totals - losses.sum(axis=0).min()) / scale
    wanted = {"decaying": decaying, "adaptive": adaptive}[exploration]
    np.testing.assert_allclose(ratio, wanted, rtol=0, atol=tolerance)


# Monte Carlo.


@pytest.mark.quick
@pytest.mark.parametrize(
    "table", some_in_default(TABLES, [TABLE_D]), ids=[table["name"] for table in TABLES]
)
def test_simulated_mean_regret(table):
    """Both kinds of regret in float32, within four standard errors of the exact mean."""
    bandits = {exploration: sf.strategies.scale_free(exploration) for exploration in OPTIONS}
    results = sf.simulate(bandits, table["losses"], num_seeds=40_000, checkpoints=1, seed=3)
    for exploration, result in results.items():
        for samples in (result.regret, result.expected_regret):
            error = samples.std(ddof=1) / np.sqrt(samples.size)
            assert abs(samples.mean() - table[exploration]["regret"]) < 4 * error


# The plain loop.


@jax.jit
def arms_of_engine(bandit, losses, key):
    """The arms drawn in a game with these two key words."""

    def step(state, now):
        round_, loss = now
        words = threefry_2x32((key[0], key[1]), (round_, jnp.uint32(0)))
        arm = sf.draw_arm(bandit.probabilities(state), words)
        return bandit.update(state, arm, loss[arm]), (arm, words)

    first = bandit.init(losses.shape[1], losses.dtype)
    rounds = jnp.arange(1, len(losses) + 1, dtype=jnp.uint32)
    return jax.lax.scan(step, first, (rounds, losses))[1]


@pytest.mark.parametrize(
    ("num_arms", "exploration"),
    some_in_default(
        [(2, "adaptive"), (3, "decaying"), (5, "adaptive"), (10, "decaying")],
        [(3, "decaying")],
    ),
)
def test_plain_loop_plays_the_same_arms(num_arms, exploration):
    """500 rounds of mixed-sign losses: the loop, the parts and `simulate` play one game."""
    generator = np.random.default_rng(num_arms)
    sizes = np.exp(generator.normal(size=(500, 1)))
    losses = generator.normal(size=(500, num_arms)) * sizes
    bandit = sf.strategies.scale_free(exploration)
    first_seed, num_seeds = 5, 2
    result = sf.simulate(
        bandit,
        losses,
        num_seeds=num_seeds,
        seed=num_arms,
        first_seed=first_seed,
        checkpoints=500,
        dtype=jnp.float64,
    )
    root = jax.random.split(jax.random.key(num_arms))[0]
    best = np.cumsum(losses, axis=0).min(axis=1)
    for game in range(num_seeds):
        key = game_key(root, jnp.uint32(0), jnp.uint32(first_seed + game))
        arms, words = arms_of_engine(bandit, jnp.asarray(losses), key)
        high, low = (np.asarray(word, np.uint64) for word in words)
        uniforms = ((high << np.uint64(14)) | (low >> np.uint64(18))) / 2.0**46
        loop = paper_loop.play_game(losses, exploration, uniforms=uniforms)
        np.testing.assert_array_equal(arms, loop.arms)
        assert len(set(loop.arms)) == num_arms
        # Sums of 500 numbers of size up to 30, in different orders.
        seen = losses[np.arange(500), loop.arms]
        np.testing.assert_allclose(result.regret[0, game], np.cumsum(seen) - best, atol=1e-10)
        # The probabilities of two programs drift apart by rounding, amplified over 500 rounds.
        meant = np.cumsum((losses * loop.probabilities).sum(axis=1))
        np.testing.assert_allclose(result.expected_regret[0, game], meant - best, atol=1e-8)
