"""Every named strategy against its own plain loop, given arms and losses, for 250 rounds."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import paper_loop
import pytest
import strategy_loops as loops

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
    "ahb": (loops.ahb, "any"),
    "ahb_published_code": (partial(loops.ahb, published_code=True), "any"),
    "bandit_ada_ftrl_tsallis": (loops.bandit_ada_ftrl_tsallis, "positive"),
    "bandit_ada_ftrl_tsallis_proxy": (
        partial(loops.bandit_ada_ftrl_tsallis, proxy=True),
        "positive",
    ),
    "exp3": (loops.exp3, "unit"),
    "exp3_horizon": (loops.exp3_horizon, "unit"),
    "exp3_gamma_horizon": (loops.exp3_gamma_horizon, "unit"),
    "exp3_p_horizon": (loops.exp3_p_horizon, "unit"),
    "exp3_ix": (loops.exp3_ix, "unit"),
    "exp3_ix_horizon": (partial(loops.exp3_ix, horizon=10_000), "unit"),
    "exp3_plus_plus": (loops.exp3_plus_plus, "unit"),
    "exp3_side_information": (loops.exp3_side_information, "unit"),
    "poly_inf_horizon": (loops.poly_inf_horizon, "unit"),
    "tsallis_inf": (loops.tsallis_inf, "unit"),
    "tsallis_inf_rv": (loops.tsallis_inf_rv, "unit"),
    "log_barrier_horizon": (loops.log_barrier_horizon, "unit"),
    "green_horizon": (loops.green_horizon, "unit"),
    "broad": (loops.broad, "signed"),
    "broad_increasing_horizon": (partial(loops.broad, horizon=10_000), "signed"),
    "broad_optimistic": (partial(loops.broad, optimistic=True), "signed"),
    "htinf": (loops.htinf, "heavy"),
    "ada_tinf_horizon": (loops.ada_tinf_horizon, "heavy"),
    "uni_inf_horizon": (loops.uni_inf_horizon, "heavy"),
    "hedge": (loops.hedge, "unit"),
    "hedge_horizon": (partial(loops.hedge, horizon=10_000), "unit"),
    "ada_hedge": (loops.ada_hedge, "any"),
    "ada_ftrl_log_barrier": (loops.ada_ftrl_log_barrier, "any"),
    "ada_ftrl_tsallis": (loops.ada_ftrl_tsallis, "any"),
    "follow_the_leader": (loops.follow_the_leader, "any"),
    "uniform": (loops.uniform, "any"),
    "fixed_arm": (loops.fixed_arm, "any"),
    "follow_the_leader_on_estimates": (loops.follow_the_leader_on_estimates, "any"),
    "epsilon_greedy": (loops.epsilon_greedy, "any"),
    "ucb1": (loops.ucb1, "unit"),
}


def losses_of(kind, seed=0):
    """Losses [T, n] in which arm 1 is the best."""
    generator = np.random.default_rng([seed, NUM_ARMS])
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
def play(bandit, losses, key):
    """Arms [T] drawn by the strategy, and its laws before rounds 1 ... T + 1, [T + 1, n]."""

    def step(state, now):
        key, loss = now
        law = bandit.probabilities(state)
        arm = jax.random.choice(key, len(law), p=law).astype(jnp.int32)
        return bandit.update(state, arm, bandit.feedback(loss, arm)), (arm, law)

    first = bandit.init(losses.shape[1], losses.dtype)
    keys = jax.random.split(key, len(losses))
    state, (arms, laws) = jax.lax.scan(step, first, (keys, losses))
    return arms, jnp.concatenate([laws, bandit.probabilities(state)[None]])


def compare(bandit, loop, losses, tolerance=1e-8):
    """Relative errors: rounding at 1e-16, amplified over the rounds, stays well below 1e-8."""
    arms, laws = jax.tree.map(np.asarray, play(bandit, jnp.asarray(losses), jax.random.key(3)))
    wanted = loop(arms, losses)
    # Below 1e-100 a probability is a rounding error's exponential.
    np.testing.assert_allclose(laws, wanted, rtol=tolerance, atol=1e-100)
    return arms, wanted


def test_every_strategy_has_a_loop():
    assert LOOPS.keys() == sf.strategies.STRATEGIES.keys()


@pytest.mark.parametrize("name", LOOPS)
def test_follows_its_loop(name):
    loop, kind = LOOPS[name]
    compare(sf.strategies.STRATEGIES[name](), loop, losses_of(kind))


# Parameters that change the course: each against the same loop.

VARIANTS = {
    "exp3_scale": (sf.strategies.exp3(scale=8.0), partial(loops.exp3, scale=8.0), "unit"),
    "hedge_scale": (sf.strategies.hedge(scale=3.0), partial(loops.hedge, scale=3.0), "unit"),
    "inf_cubed": (
        sf.strategies.poly_inf_horizon(200, q=3.0),
        partial(loops.poly_inf_horizon, horizon=200, q=3.0),
        "unit",
    ),
    "htinf_heavier": (
        sf.strategies.htinf(tail=1.5, size=4.0),
        partial(loops.htinf, tail=1.5, size=4.0),
        "heavy",
    ),
    "green_drops_arms": (
        sf.strategies.green_horizon(30),
        partial(loops.green_horizon, horizon=30),
        "unit",
    ),
    "ada_tinf_doubles": (
        sf.strategies.ada_tinf_horizon(20),
        partial(loops.ada_tinf_horizon, horizon=20),
        "heavy",
    ),
    "uni_inf_short": (
        sf.strategies.uni_inf_horizon(20),
        partial(loops.uni_inf_horizon, horizon=20),
        "heavy",
    ),
    "exp3_plus_plus_gaps": (
        sf.strategies.exp3_plus_plus(alpha=0.1, beta=0.5),
        partial(loops.exp3_plus_plus, alpha=0.1, beta=0.5),
        "unit",
    ),
    "broad_rates_grow": (
        sf.strategies.broad_increasing_horizon(30, rate=0.2),
        partial(loops.broad, horizon=30, rate=0.2),
        "signed",
    ),
    "broad_optimistic_fast": (
        sf.strategies.broad_optimistic(rate=0.2),
        partial(loops.broad, optimistic=True, rate=0.2),
        "signed",
    ),
    "another_arm": (sf.strategies.fixed_arm(2), partial(loops.fixed_arm, arm=2), "unit"),
}


@pytest.mark.parametrize("name", VARIANTS)
def test_parameters_mean_what_the_loop_says(name):
    bandit, loop, kind = VARIANTS[name]
    compare(bandit, loop, losses_of(kind))
