"""Every named strategy against its own plain loop, given arms and losses, for 250 rounds."""

from functools import partial

import any_range_loops as any_range
import jax
import jax.numpy as jnp
import known_range_loops as known_range
import numpy as np
import paper_loop
import pytest

import sfmab_jax as sf

NUM_ROUNDS = 250
NUM_ARMS = 4


def paper(arms, losses):
    """Algorithm 1, option 2."""
    played = paper_loop.play_game(losses, "adaptive", arms=arms)
    n = losses.shape[1]
    gamma = played.exploration[-1]
    last = (1 - gamma) * played.play[-1] + gamma / n
    return np.concatenate([played.probabilities, last[None]])


# The loop of each strategy, and the losses to run it on.
LOOPS = {
    "scale_free": (paper, "any"),
    "ahb": (any_range.ahb, "any"),
    "ahb_published_code": (partial(any_range.ahb, published_code=True), "any"),
    "bandit_ada_ftrl_tsallis": (any_range.bandit_ada_ftrl_tsallis, "positive"),
    "bandit_ada_ftrl_tsallis_proxy": (
        partial(any_range.bandit_ada_ftrl_tsallis, proxy=True),
        "positive",
    ),
    "umab_g": (any_range.umab_g, "any"),
    "umab_g_horizon": (partial(any_range.umab_g, horizon=10_000, adaptive=False), "any"),
    "umab_g_both_horizon": (partial(any_range.umab_g, horizon=10_000), "any"),
    "exp3_light_a_horizon": (any_range.exp3_light_a_horizon, "positive"),
    "exp3": (known_range.exp3, "unit"),
    "exp3_horizon": (known_range.exp3_horizon, "unit"),
    "exp3_in_batches_horizon": (known_range.exp3_in_batches_horizon, "unit"),
    "exp3_gamma_horizon": (known_range.exp3_gamma_horizon, "unit"),
    "exp3_p_horizon": (known_range.exp3_p_horizon, "unit"),
    "exp3_ix": (known_range.exp3_ix, "unit"),
    "exp3_ix_horizon": (partial(known_range.exp3_ix, horizon=10_000), "unit"),
    "exp3_plus_plus": (known_range.exp3_plus_plus, "unit"),
    "exp3_s_horizon": (known_range.exp3_s_horizon, "unit"),
    "exp3_side_information": (known_range.exp3_side_information, "unit"),
    "poly_inf_horizon": (known_range.poly_inf_horizon, "unit"),
    "tsallis_inf": (known_range.tsallis_inf, "unit"),
    "tsallis_inf_rv": (known_range.tsallis_inf_rv, "unit"),
    "tsallis_inf_delayed": (known_range.tsallis_inf, "unit"),  # nothing is delayed here
    "log_barrier_horizon": (known_range.log_barrier_horizon, "unit"),
    "green_horizon": (known_range.green_horizon, "unit"),
    "broad": (known_range.broad, "signed"),
    "broad_increasing_horizon": (partial(known_range.broad, horizon=10_000), "signed"),
    "broad_optimistic": (partial(known_range.broad, optimistic=True), "signed"),
    "bubeck_li_luo_wei_horizon": (known_range.bubeck_li_luo_wei_horizon, "unit"),
    "hybrid_barrier": (known_range.hybrid_barrier, "signed"),
    "hybrid_barrier_horizon": (
        partial(known_range.hybrid_barrier, sum_of_squares=10_000.0),
        "signed",
    ),
    "tsallis_spm": (known_range.tsallis_spm, "signed"),
    "lb_inf_v_horizon": (known_range.lb_inf_v_horizon, "unit"),
    "htinf": (any_range.htinf, "heavy"),
    "ada_tinf_horizon": (any_range.ada_tinf_horizon, "heavy"),
    "uni_inf_horizon": (any_range.uni_inf_horizon, "heavy"),
    "omd_lb_heavy_tails_horizon": (any_range.omd_lb_heavy_tails_horizon, "heavy"),
    "hedge": (any_range.hedge, "unit"),
    "hedge_horizon": (partial(any_range.hedge, horizon=10_000), "unit"),
    "ada_hedge": (any_range.ada_hedge, "any"),
    "ada_ftrl_log_barrier": (any_range.ada_ftrl_log_barrier, "any"),
    "ada_ftrl_tsallis": (any_range.ada_ftrl_tsallis, "any"),
    "follow_the_leader": (any_range.follow_the_leader, "any"),
    "uniform": (known_range.uniform, "any"),
    "fixed_arm": (known_range.fixed_arm, "any"),
    "follow_the_leader_on_estimates": (known_range.follow_the_leader_on_estimates, "any"),
    "epsilon_greedy": (known_range.epsilon_greedy, "any"),
    "ucb1": (known_range.ucb1, "unit"),
}


def losses_of(kind):
    """Losses [T, n] in which arm 1 is the best."""
    generator = np.random.default_rng([0, NUM_ARMS])
    shape = (NUM_ROUNDS, NUM_ARMS)
    better = 0.25 * (np.arange(NUM_ARMS) == 1)
    if kind == "unit":
        return generator.random(shape) * (1 - better)
    if kind == "signed":
        return generator.uniform(-1, 1, shape) * 0.75 - better
    if kind == "positive":
        return 30 * generator.exponential(size=shape) * (1 - better)
    if kind == "heavy":
        return generator.standard_t(2, size=shape) * 3 - better
    return 1e3 * (generator.normal(size=shape) - better) + 500


@jax.jit
def play(bandit, losses, uniforms):
    """Arms drawn by the strategy, [T], and its laws, [T, n]."""

    def step(state, now):
        uniform, loss = now
        law = bandit.probabilities(state)
        arm = jnp.sum(jnp.cumsum(law)[:-1] <= uniform, dtype=jnp.int32)
        return bandit.update(state, arm, bandit.feedback(loss, arm)), (arm, law)

    first = bandit.init(losses.shape[1], losses.dtype)
    return jax.lax.scan(step, first, (uniforms, losses))[1]


def compare(bandit, loop, losses):
    """Relative errors: rounding at 1e-16, amplified over the rounds, stays well below 1e-8."""
    # One round more, for the law after the last.
    uniforms = np.random.default_rng(3).random(NUM_ROUNDS + 1)
    played = play(bandit, np.concatenate([losses, losses[:1]]), uniforms)
    arms, laws = map(np.asarray, played)
    wanted = loop(arms[:-1], losses)
    # Below 1e-100 a probability is a rounding error's exponential.
    np.testing.assert_allclose(laws, wanted, rtol=1e-8, atol=1e-100)


def test_every_strategy_has_a_loop():
    assert LOOPS.keys() == sf.strategies.STRATEGIES.keys()


@pytest.mark.parametrize("name", LOOPS)
def test_follows_its_loop(name):
    loop, kind = LOOPS[name]
    compare(sf.strategies.STRATEGIES[name](), loop, losses_of(kind))


# Parameters that change the course: each against the same loop.

VARIANTS = {
    "exp3_scale": (sf.strategies.exp3(scale=8.0), partial(known_range.exp3, scale=8.0), "unit"),
    "hedge_scale": (sf.strategies.hedge(scale=3.0), partial(any_range.hedge, scale=3.0), "unit"),
    "inf_cubed": (
        sf.strategies.poly_inf_horizon(200, q=3.0),
        partial(known_range.poly_inf_horizon, horizon=200, q=3.0),
        "unit",
    ),
    "htinf_heavier": (
        sf.strategies.htinf(tail=1.5, size=4.0),
        partial(any_range.htinf, tail=1.5, size=4.0),
        "heavy",
    ),
    "green_drops_arms": (
        sf.strategies.green_horizon(30),
        partial(known_range.green_horizon, horizon=30),
        "unit",
    ),
    "ada_tinf_doubles": (
        sf.strategies.ada_tinf_horizon(20),
        partial(any_range.ada_tinf_horizon, horizon=20),
        "heavy",
    ),
    "uni_inf_short": (
        sf.strategies.uni_inf_horizon(20),
        partial(any_range.uni_inf_horizon, horizon=20),
        "heavy",
    ),
    "umab_g_both_limited": (
        sf.strategies.umab_g_both_horizon(20),
        partial(any_range.umab_g, horizon=20),
        "heavy",
    ),
    "omd_lb_reaches_the_floor": (
        sf.strategies.omd_lb_heavy_tails_horizon(10, size=1.5, rate=0.5),
        partial(any_range.omd_lb_heavy_tails_horizon, horizon=10, size=1.5, rate=0.5),
        "signed",
    ),
    "omd_lb_skips": (
        sf.strategies.omd_lb_heavy_tails_horizon(100, size=0.5, failure=1.0, rate=0.02),
        partial(any_range.omd_lb_heavy_tails_horizon, horizon=100, size=0.5, rate=0.02),
        "heavy",
    ),
    "exp3_plus_plus_gaps": (
        sf.strategies.exp3_plus_plus(alpha=0.1, beta=0.5),
        partial(known_range.exp3_plus_plus, alpha=0.1, beta=0.5),
        "unit",
    ),
    "exp3_s_shares_much": (
        sf.strategies.exp3_s_horizon(400, switches=2, scale=2.0),
        partial(known_range.exp3_s_horizon, horizon=400, switches=2, scale=2.0),
        "unit",
    ),
    "broad_rates_grow": (
        sf.strategies.broad_increasing_horizon(30, rate=0.2),
        partial(known_range.broad, horizon=30, rate=0.2),
        "signed",
    ),
    "broad_optimistic_fast": (
        sf.strategies.broad_optimistic(rate=0.2),
        partial(known_range.broad, optimistic=True, rate=0.2),
        "signed",
    ),
    "bubeck_li_luo_wei_fast": (
        sf.strategies.bubeck_li_luo_wei_horizon(100, path_length=2.0, learning_rate=0.1),
        partial(known_range.bubeck_li_luo_wei_horizon, rate=0.1),
        "unit",
    ),
    "bubeck_li_luo_wei_long_path": (
        sf.strategies.bubeck_li_luo_wei_horizon(100, path_length=1e8),
        partial(known_range.bubeck_li_luo_wei_horizon, horizon=100, path_length=1e8),
        "unit",
    ),
    "lb_inf_v_by_descent": (
        sf.strategies.lb_inf_v_horizon(50, "GD", scale=2.0),
        partial(known_range.lb_inf_v_horizon, horizon=50, form="GD", scale=2.0),
        "unit",
    ),
    "tsallis_inf_of_another_power": (
        sf.strategies.tsallis_inf(0.75, scale=2.0),
        partial(known_range.tsallis_inf_of_power, power=0.75, scale=2.0),
        "unit",
    ),
    "another_arm": (sf.strategies.fixed_arm(2), partial(known_range.fixed_arm, arm=2), "unit"),
}


@pytest.mark.parametrize("name", VARIANTS)
def test_parameters_mean_what_the_loop_says(name):
    bandit, loop, kind = VARIANTS[name]
    compare(bandit, loop, losses_of(kind))
