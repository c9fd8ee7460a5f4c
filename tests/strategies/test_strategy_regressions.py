"""Invariances, known defects of public implementations, and sanity at scale."""

from functools import cache, partial

import jax
import jax.numpy as jnp
import known_range_loops as known_range
import numpy as np
import pytest
from tiers import ARCHETYPES, some_in_default
from watched import NUM_ARMS, simulate

import sfmab_jax as sf
from sfmab_jax.sampling.gap_exploration import gap_estimates
from sfmab_jax.strategies import schedules

STRATEGIES = sf.strategies.STRATEGIES
# Invariant under positive factors; all but the last two under shifts of all losses, too.
SCALE_INVARIANT = [
    "ahb",
    "ahb_published_code",
    "ada_hedge",
    "ada_ftrl_log_barrier",
    "ada_ftrl_tsallis",
    "bandit_ada_ftrl_tsallis",
    "bandit_ada_ftrl_tsallis_proxy",
]
SHIFT_INVARIANT = SCALE_INVARIANT[:5]


@jax.jit
@partial(jax.vmap, in_axes=(None, 0, None))
def play_games(bandit, losses, uniforms):
    """The laws before rounds 1 ... T of games on the losses [T, n], with the same random numbers.

    Eight games at a time, one vector: a ninth would be rounded differently.
    """

    def step(state, now):
        uniform, loss = now
        law = bandit.probabilities(state)
        arm = jnp.sum(jnp.cumsum(law)[:-1] <= uniform.astype(law.dtype), dtype=jnp.int32)
        return bandit.update(state, arm, bandit.feedback(loss, arm)), law

    first = bandit.init(losses.shape[1], losses.dtype)
    return jax.lax.scan(step, first, (uniforms, losses))[1]


def games(name, losses):
    uniforms = np.random.default_rng(1).random(losses.shape[1])
    return np.asarray(play_games(STRATEGIES[name](), losses, uniforms))


# 120 rounds of four arms, multiples of 1/64 in [0, 4).
LOSSES = np.random.default_rng(4).integers(256, size=(120, 4)) / 64


# Invariances. Equal laws and random numbers draw equal arms.


@pytest.mark.parametrize("name", some_in_default(SCALE_INVARIANT, ["ahb", "ada_ftrl_log_barrier"]))
@pytest.mark.parametrize("dtype", some_in_default([np.float32, np.float64], [np.float32]))
def test_powers_of_two_change_nothing(name, dtype):
    """Bit for bit, from 2^-40 to 2^40."""
    factors = 2.0 ** np.array([-40, -27, -13, -1, 0, 14, 25, 40])
    scaled = (factors[:, None, None] * LOSSES).astype(dtype)
    laws = games(name, scaled)
    assert np.isfinite(laws).all()
    assert np.ptp(laws[0, -1]) > 0
    for other in laws[1:]:
        np.testing.assert_array_equal(laws[0], other)


@pytest.mark.parametrize("name", some_in_default(SHIFT_INVARIANT, ["ahb", "ada_ftrl_log_barrier"]))
def test_shifts_change_nothing(name):
    """Losses and shifts are multiples of 1/64 below 2^20, so that no sum of them is rounded."""
    shifts = np.array([0.0, -3.0, 1e3, -(2.0**19), 0.25, 7.0, -1e4, 1 / 64])
    laws = games(name, LOSSES + shifts[:, None, None])
    assert np.ptp(laws[0, -1]) > 0
    for other in laws[1:]:
        np.testing.assert_allclose(other, laws[0], rtol=1e-9, atol=1e-300)


def test_other_strategies_are_not_invariant():
    """The tests above can fail: Exp3 with a known range, and the paper's offsets."""
    scaled = LOSSES * 2.0 ** np.arange(8)[:, None, None]
    for name in ("exp3", "scale_free"):
        laws = games(name, scaled)
        assert (laws[0] != laws[1]).any()


# Known defects of public implementations.


def test_reduced_variance_baseline_reaches_the_arms_not_played():
    """Dropped for them, as often seen, the estimate of l is l - (1 - p) B."""
    scheme = sf.estimation.reduced_variance(schedules.reduced_variance_threshold, scale=2.0)
    state = scheme.init(3, jnp.float64, jnp.ones(()))
    law = jnp.asarray([0.6, 0.3, 0.1])
    for _ in range(99):
        state = scheme.update(state, sf.Round(law, law, jnp.int32(0), jnp.float64(1.0), law))
    # Round 100: eta^2 = 16/100, so the baseline G/2 = 1 is that of arms 0 and 1.
    estimate = np.asarray(scheme.estimate(state, law, law, jnp.int32(1), jnp.float64(0.25)))
    np.testing.assert_allclose(estimate, [1.0, (0.25 - 1) / 0.3 + 1, 0.0], rtol=1e-12)


def test_integers_are_numbers():
    """Integer losses and parameters do not make integer weights, which would stay 0 or 1."""
    losses = np.random.default_rng(0).integers(2, size=(80, NUM_ARMS))
    whole, real = sf.strategies.exp3(scale=2), sf.strategies.exp3(scale=2.0)
    ours = simulate({"exp3": whole}, losses, 80)["exp3"]
    theirs = simulate({"exp3": real}, losses.astype(float), 80)["exp3"]
    np.testing.assert_array_equal(ours.regret, theirs.regret)
    assert np.ptp(ours.expected_regret[0, :, -1]) > 0
    assert whole.init(NUM_ARMS).full_information.play.dtype == jnp.float32


def test_exp3_plus_plus_caps_gaps_and_exploration():
    """Bounds cut off at 0 and 1: no gap exceeds 1, and what is explored is at most half."""
    alpha = 0.01  # intervals narrow enough to show gaps soon
    scheme = sf.sampling.gap_exploration(alpha, 256.0)
    play = np.full(3, 1 / 3)
    state = scheme.init(3, jnp.float64, jnp.ones(()))
    law_of, gaps_of = jax.jit(scheme.probabilities), jax.jit(gap_estimates)
    step = jax.jit(scheme.update)
    for t in range(300):
        law = np.asarray(law_of(state, play))
        gaps = np.asarray(gaps_of(state, alpha))
        assert (gaps >= 0).all()
        assert (gaps <= 1).all()
        assert (law >= play / 2).all()
        # Losses beyond the range would make a gap of 2 without the cut.
        loss = np.float64(1.5 if t % 3 else -0.5)
        state = step(state, sf.Round(play, law, np.int32(t % 3), loss, play))
    np.testing.assert_allclose(gaps, [0, 1, 1], atol=0.2)
    # The exploration of the worse arms is beta ln t / (t gap^2), not more than 1/(2n).
    plain = known_range.exp3_plus_plus(np.zeros(1, int), np.zeros((1, 3)))
    np.testing.assert_allclose(plain[0], 1 / 3, rtol=1e-12)


def test_tsallis_weights_are_normalised_with_their_root():
    """2 / sqrt(w_i) - 2 / sqrt(w_j) = eta_t (L_i - L_j) and sum(w) = 1, however far apart."""
    bandit = sf.strategies.tsallis_inf()
    law, step = jax.jit(bandit.probabilities), jax.jit(bandit.update)
    for size in (1.0, 1e3, 1e6):
        state = bandit.init(4, jnp.float64)
        for arm in (0, 1, 2, 0):
            state = step(state, np.int32(arm), np.float64(size * (1 + arm)))
        w = np.asarray(law(state))
        totals = np.asarray(state.full_information.losses.value)
        np.testing.assert_allclose(w.sum(), 1, rtol=1e-13)
        dual = 2 / np.sqrt(w)
        rate = 2 / np.sqrt(5)
        np.testing.assert_allclose(dual - dual[3], rate * (totals - totals[3]), rtol=1e-9)


def test_weights_do_not_overflow():
    """Exp3 as in 2002 with weights, on a run far longer than it is tuned for."""
    num_rounds = 6000
    losses = np.tile([0.0, 1.0, 1.0], (num_rounds, 1))
    arms = np.zeros(num_rounds, np.int32)
    with np.errstate(over="ignore", invalid="ignore"):
        plain = known_range.exp3_gamma_horizon(arms, losses, horizon=20)
    assert np.isnan(plain[-1]).any()
    bandit = sf.strategies.exp3_gamma_horizon(20)

    def step(state, loss):
        law = bandit.probabilities(state)
        return bandit.update(state, jnp.int32(0), loss[0]), law

    laws = jax.jit(partial(jax.lax.scan, step))(bandit.init(3, jnp.float64), jnp.asarray(losses))[1]
    laws = np.asarray(laws)
    assert np.isfinite(laws).all()
    before = np.isfinite(plain).all(axis=1).argmin() - 1
    np.testing.assert_allclose(laws[before], plain[before], rtol=1e-9)
    np.testing.assert_allclose(laws[-1].sum(), 1, rtol=1e-13)


# Sanity: T = 2,000 Bernoulli rounds, 128 games.

NUM_ROUNDS = 2_000
CONTROLS = (
    "uniform",
    "fixed_arm",
    "follow_the_leader_on_estimates",
    "follow_the_leader",
    "epsilon_greedy",
    "ucb1",
)
NO_REGRET = [name for name in STRATEGIES if name not in CONTROLS]
# Told nothing of the scale, with what they state as an offset in units of loss.
SCALE_FREE = {
    "scale_free": 1 + 2 * NUM_ARMS,  # beta in the learning rate, 2n in the exploration
    "ahb": 0,
    "ahb_published_code": 0,
    "bandit_ada_ftrl_tsallis": 0,
    "bandit_ada_ftrl_tsallis_proxy": 0,
    "ada_hedge": 0,
    "ada_ftrl_log_barrier": 0,
    "ada_ftrl_tsallis": 0,
}


def bernoulli(key, round_, *, means, scale):
    return scale * (jax.random.uniform(key, means.shape, means.dtype) < means).astype(means.dtype)


def bernoulli_losses(scale):
    means = np.float32([0.5, 0.3, 0.5])
    factor = np.float32(scale)
    return sf.losses.from_function(bernoulli, NUM_ARMS, scale, means=means, scale=factor)


@cache
def result_at(scale, name, num_rounds=NUM_ROUNDS):
    """The same losses and random numbers for every strategy."""
    return simulate({name: STRATEGIES[name]()}, bernoulli_losses(scale), num_rounds)[name]


def at_the_end(result):
    """The mean regret and its standard error."""
    last = result.expected_regret[0, :, -1]
    return last.mean(), last.std(ddof=1) / np.sqrt(len(last))


@pytest.mark.parametrize("name", some_in_default(NO_REGRET, ARCHETYPES))
def test_beats_uniform_play_by_four_standard_errors(name):
    mean, error = at_the_end(result_at(1, name))
    uniform, uniform_error = at_the_end(result_at(1, "uniform"))
    assert mean + 4 * np.hypot(error, uniform_error) < uniform
    worst_sum, lowest, all_finite = result_at(1, name).records
    assert worst_sum.max() <= 20 * np.finfo(np.float32).eps
    assert lowest.min() >= 0
    assert all_finite.min() == 1


def test_the_oracle_has_no_regret_and_all_games_share_their_losses():
    some = {name: result_at(1, name) for name in ("fixed_arm", "exp3", "uniform")}
    assert len({result.norms.best[0, -1] for result in some.values()}) == 1
    fixed = some["fixed_arm"].regret[0, :, -1]
    assert (fixed == fixed[0]).all()
    assert fixed[0] > 0  # arm 0, while arm 1 is the best
    best = simulate({"best": sf.strategies.fixed_arm(1)}, bernoulli_losses(1), NUM_ROUNDS)["best"]
    np.testing.assert_array_equal(best.regret[0, :, -1], 0)


@pytest.mark.parametrize("name", some_in_default(SCALE_FREE, ARCHETYPES))
def test_scale_free_regret_follows_the_scale(name):
    """Losses of 1e6: regret / 1e6 is the regret at 1 within 20%, offsets and standard errors."""
    mean, error = at_the_end(result_at(1, name))
    large, large_error = (x / 1e6 for x in at_the_end(result_at(1e6, name)))
    room = 0.2 * mean + SCALE_FREE[name] + 4 * np.hypot(error, large_error)
    assert abs(large - mean) < room


def test_exp3_tuned_for_one_does_not_follow_the_scale():
    mean, _ = at_the_end(result_at(1, "exp3", 8_000))
    large, error = (x / 1e6 for x in at_the_end(result_at(1e6, "exp3", 8_000)))
    assert large - 4 * error > 5 * mean


def test_ucb1_fails_against_an_adversary_where_tsallis_inf_does_not():
    """UCB1 is deterministic: an oblivious adversary can replay it and punish the arm it plays."""
    num_rounds, n = 600, 2
    bandit = sf.strategies.ucb1()
    law, step = jax.jit(bandit.probabilities), jax.jit(bandit.update)
    state, losses = bandit.init(n), np.zeros((num_rounds, n))
    for t in range(num_rounds):
        arm = int(np.argmax(law(state)))
        losses[t, arm] = 1
        state = step(state, np.int32(arm), np.float32(1.0))
    results = sf.simulate(
        {"ucb1": bandit, "tsallis_inf": sf.strategies.tsallis_inf()}, losses, num_seeds=64
    )
    # It loses in every round, and one of two arms in at most half of them.
    assert results["ucb1"].mean()[0, -1] >= num_rounds / 2
    bound = 4 * np.sqrt(n * num_rounds) + 1
    mean, error = at_the_end(results["tsallis_inf"])
    assert mean + 4 * error < bound < num_rounds / 2
