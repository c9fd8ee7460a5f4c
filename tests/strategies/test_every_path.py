"""Algorithm 1 along any path: the claims of the paper, the arms' names, and the scale law."""

import jax
import jax.numpy as jnp
import numpy as np
import paper_loop
from forced_games import EACH_DTYPE, EACH_OPTION, cumulative, forced, history

import sfmab_jax as sf


@EACH_OPTION
def test_claims_about_every_path(exploration):
    """Section 2 and 6: the mixture, Gamma, gamma, eta, the gap and the FTRL step, 100 rounds."""
    n = 5
    arms, losses = history(n, 100)
    bandit = sf.strategies.scale_free(exploration)
    states = forced(bandit, arms, losses, n, jnp.float64)
    sampled = np.asarray(jax.jit(jax.vmap(bandit.probabilities))(states))
    play = np.asarray(states.full_information.play)
    gamma = np.asarray(states.sampling.exploration)
    eta = np.asarray(states.full_information.learning_rate)
    totals = cumulative(states)
    rounds = np.arange(100)
    # p' = (1 - gamma) p + gamma/n is on the simplex and at least either part.
    np.testing.assert_allclose(sampled.sum(axis=1), 1, rtol=1e-14)
    np.testing.assert_allclose(play.sum(axis=1), 1, rtol=1e-13)
    assert (sampled >= (1 - 1e-15) * gamma[:, None] / n).all()
    assert (sampled >= (1 - 1e-15) * (1 - gamma[:, None]) * play).all()
    # gamma lies in (0, 1/2] and never rises, nor does eta.
    assert gamma[0] == 0.5
    assert (gamma > 0).all()
    assert (np.diff(gamma) <= 0).all()
    assert eta[0] == n
    assert (np.diff(eta) <= 0).all()
    # Gamma_t = gamma |l| / p'(i) lies in [0, n |l|]; with option 2 it is n times the growth of
    # 1/gamma_t.
    chosen = sampled[rounds, arms]
    mass = gamma[:-1] * np.abs(losses) / chosen
    assert (mass <= n * np.abs(losses) * (1 + 1e-15)).all()
    if exploration == "adaptive":
        np.testing.assert_allclose(1 / gamma, 2 + np.append(0, np.cumsum(mass)) / n, rtol=1e-13)
    else:
        np.testing.assert_allclose(
            gamma[1:], np.minimum(0.5, np.sqrt(n / (rounds + 1))), rtol=1e-15
        )
    # The estimates are the losses over their probabilities, on the arms played.
    estimates = np.zeros((100, n))
    estimates[rounds, arms] = losses / chosen
    summed = np.cumsum(estimates, axis=0)
    np.testing.assert_allclose(totals[1:], summed, atol=1e-13 * np.abs(estimates).sum())
    # 1/eta_t - 1/eta_{t-1} = M_t(eta_{t-1}) / n, M_t by bisection, up to the rounding of n/eta.
    for t in range(100):
        gap = paper_loop.mixability_gap(eta[t], play[t], estimates[t])
        grown = n / eta[t + 1] - n / eta[t]
        np.testing.assert_allclose(grown, gap, rtol=1e-10, atol=1e-15 * n / eta[t + 1])
    # Optimality of the FTRL step: 1/p(i) - eta L(i) is the same for all arms.
    multiplier = 1 / play - eta[:, None] * totals
    spread = np.ptp(multiplier, axis=1) / np.max(1 / play, axis=1)
    assert spread.max() < 1e-13


@EACH_OPTION
@EACH_DTYPE
def test_zero_loss_changes_neither_play_nor_rate(exploration, dtype):
    """M_t = 0 and Gamma_t = 0 exactly; p is solved for anew from the same numbers."""
    n = 5
    arms, losses = history(n, 100)
    losses = (losses * (np.arange(100) % 2)).astype(dtype)  # every other loss is zero
    bandit = sf.strategies.scale_free(exploration)
    states = forced(bandit, arms, losses, n, dtype)
    before = jax.tree.map(lambda x: x[:-1:2], states)
    after = jax.tree.map(lambda x: x[1::2], states)
    ours, theirs = before.full_information, after.full_information
    np.testing.assert_array_equal(ours.learning_rate, theirs.learning_rate)
    np.testing.assert_array_equal(cumulative(before), cumulative(after))
    np.testing.assert_allclose(ours.play, theirs.play, rtol=4 * jnp.finfo(dtype).eps)
    if exploration == "adaptive":
        np.testing.assert_array_equal(before.sampling.exploration, after.sampling.exploration)


@EACH_OPTION
def test_names_of_the_arms_do_not_matter(exploration):
    """A game with its arms renamed is the game renamed, up to the order of sums over arms."""
    n = 5
    arms, losses = history(n, 100)
    bandit = sf.strategies.scale_free(exploration)
    states = forced(bandit, arms, losses, n, jnp.float64)
    new_name = np.array([3, 0, 4, 1, 2])
    renamed = forced(bandit, new_name[arms], losses, n, jnp.float64)
    # Rounding errors of 1e-16, amplified over 100 rounds.
    ours, theirs = states.full_information, renamed.full_information
    np.testing.assert_allclose(ours.play, theirs.play[:, new_name], rtol=1e-11)
    np.testing.assert_allclose(ours.learning_rate, theirs.learning_rate, rtol=1e-11)
    np.testing.assert_allclose(
        states.sampling.exploration, renamed.sampling.exploration, rtol=1e-11
    )
    size = np.max(np.abs(cumulative(states)))
    np.testing.assert_allclose(
        cumulative(states), cumulative(renamed)[:, new_name], rtol=0, atol=1e-11 * size
    )


# The scale law: run(c l, beta = 1) = c run(l, beta = 1/c), exactly for powers of two.

POWERS = range(-40, 41)


def assert_same_game(states, scaled, c):
    """``scaled`` is the same game with losses counted in units 1/c as large, bit for bit."""
    ours, theirs = states.full_information, scaled.full_information
    np.testing.assert_array_equal(ours.play, theirs.play)
    np.testing.assert_array_equal(states.sampling.exploration, scaled.sampling.exploration)
    np.testing.assert_array_equal(ours.learning_rate, c * np.asarray(theirs.learning_rate))
    for mine, other in zip([*ours.losses, *ours.gaps], [*theirs.losses, *theirs.gaps], strict=True):
        np.testing.assert_array_equal(c * np.asarray(mine), other)


@EACH_DTYPE
def test_scaling_losses_is_scaling_beta(dtype):
    """Option 1: the losses' unit enters through beta alone. Bitwise, c = 2^-40 ... 2^40."""
    n = 5
    arms, losses = history(n, 100)
    losses = losses.astype(dtype)
    for power in POWERS:
        c = 2.0**power
        small = sf.strategies.scale_free("decaying", beta=1 / c)
        states = forced(small, arms, losses, n, dtype)
        one = sf.strategies.scale_free("decaying", beta=1.0)
        scaled = forced(one, arms, losses * dtype(c), n, dtype)
        assert np.isfinite(scaled.full_information.play).all()
        assert_same_game(states, scaled, c)


@EACH_OPTION
@EACH_DTYPE
def test_scaling_losses_and_their_unit_changes_nothing(exploration, dtype):
    """Both options: losses c l in a unit of c are the losses l in a unit of 1. Bitwise."""
    n = 5
    arms, losses = history(n, 100)
    losses = losses.astype(dtype)
    bandit = sf.strategies.scale_free(exploration)
    states = forced(bandit, arms, losses, n, dtype)
    for power in POWERS:
        c = 2.0**power
        scaled = forced(bandit, arms, losses * dtype(c), n, dtype, c)
        assert_same_game(states, scaled, c)


@EACH_DTYPE
def test_importance_weighting_is_unbiased(dtype):
    """sum_i p'(i) (estimate when i is played) = l, summed over the arms: no Monte Carlo."""
    scheme = sf.estimation.importance_weighted()

    @jax.jit
    def estimates_of_all_arms(sampled, losses):
        def estimate(arm):
            return scheme.estimate(state, sampled, sampled, arm, losses[arm])

        state = scheme.init(len(losses), dtype, jnp.ones((), dtype))
        return jax.vmap(estimate)(jnp.arange(len(losses)))

    for n in (1, 2, 7, 100):
        generator = np.random.default_rng(n)
        sampled = (generator.dirichlet(np.full(n, 0.3)) * 0.9 + 0.1 / n).astype(dtype)
        losses = (generator.normal(size=n) * 100).astype(dtype)
        estimates = np.asarray(estimates_of_all_arms(sampled, losses))
        assert np.count_nonzero(estimates - np.diag(np.diag(estimates))) == 0
        # A quotient and a product: two roundings.
        np.testing.assert_allclose(sampled @ estimates, losses, rtol=2 * jnp.finfo(dtype).eps)
