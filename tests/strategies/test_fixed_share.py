"""Exponential weights with a fixed share: long games in float32, losses of any size."""

import jax
import jax.numpy as jnp
import known_range_loops as known_range
import numpy as np
import pytest

import sfmab_jax as sf
from sfmab_jax import full_information, potentials


@jax.jit
def laws_of(bandit, arms, losses):
    """The laws before rounds 1 ... T [T, n], given arms and losses."""

    def step(state, now):
        arm, loss = now
        return bandit.update(state, arm, loss[arm]), bandit.probabilities(state)

    return jax.lax.scan(step, bandit.init(losses.shape[1], losses.dtype), (arms, losses))[1]


@jax.jit
def points_of(scheme, losses):
    """p_2 ... p_{T+1} [T, n] of a full-information strategy that sees the losses [T, n]."""

    def step(state, row):
        seen = sf.Round(state.play, state.play, jnp.int32(0), row[0], row)
        state = scheme.update(state, seen)
        return state, state.play

    first = scheme.init(losses.shape[1], losses.dtype, jnp.ones((), losses.dtype))
    return jax.lax.scan(step, first, losses)[1]


@pytest.mark.parametrize("horizon", [20_000, 10**7])
def test_rounding_does_not_add_up(horizon):
    """20,000 rounds of float32 against float64: the best arm changes every 4,000 rounds."""
    generator = np.random.default_rng(0)
    rounds, n = 20_000, 4
    best = np.arange(rounds) // 4000 % n
    losses = (generator.random((rounds, n)) < 0.5 - 0.4 * np.eye(n)[best]).astype(np.float32)
    arms = np.where(generator.random(rounds) < 0.5, best, generator.integers(n, size=rounds))
    bandit = sf.strategies.exp3_s_horizon(horizon)
    wanted = known_range.exp3_s_horizon(arms, losses.astype(np.float64), horizon)[:-1]
    given = jnp.asarray(arms, jnp.int32), jnp.asarray(losses)
    assert np.ptp(wanted[:, 0]) > 0.3
    np.testing.assert_allclose(laws_of(bandit, *given), wanted, rtol=1e-5)
    double = laws_of(bandit, given[0], given[1].astype(jnp.float64))
    np.testing.assert_allclose(double, wanted, rtol=1e-10)


def test_without_a_share_it_is_exponential_weights():
    losses = np.random.default_rng(1).normal(size=(200, 5))
    plain = full_information.ftrl(potentials.negative_entropy(), 0.3)
    wanted = points_of(plain, losses)
    np.testing.assert_allclose(points_of(full_information.fixed_share(0.3, 0.0), losses), wanted)
    some = points_of(full_information.fixed_share(0.3, 1e-3), losses)
    assert np.abs(some - wanted).max() > 1e-3


def test_schedules_are_of_the_rounds_played_before():
    """eta_{t+1} and alpha_{t+1} at t = 0, 1, ..., in a plain loop."""
    losses = np.random.default_rng(2).uniform(-1, 1, (50, 3))
    scheme = full_information.fixed_share(lambda t, n: n / (t + 2), lambda t, n: 1 / (n + t))
    weights, wanted = np.full(3, 1 / 3), []
    for t, row in enumerate(losses):
        weights = weights * np.exp(-3 / (t + 2) * row) + np.e / (3 + t) / 3
        weights = weights / weights.sum()
        wanted.append(weights)
    np.testing.assert_allclose(points_of(scheme, losses), wanted, rtol=1e-12)


def test_losses_of_any_size():
    """On the simplex; an arm that was infinitely bad is back with its share in the next round."""
    generator = np.random.default_rng(3)
    sizes = 10.0 ** generator.uniform(-38, 38, (400, 1))
    losses = (generator.normal(size=(400, 4)) * sizes).clip(-3e38, 3e38).astype(np.float32)
    losses[::7] = losses[::7, :1]  # the same for all arms
    losses[1::7] = 0
    for rate in (1e-30, 1.0, 1e30):
        points = np.asarray(points_of(full_information.fixed_share(rate, 1e-4), losses))
        assert np.isfinite(points).all()
        assert points.min() >= 0
        np.testing.assert_allclose(points.sum(axis=1), 1, rtol=1e-6)
        # Rounds of zeros: every weight gets the share of the total.
        part = np.e * 1e-4 / 4
        after = (points[:-1] + part) / (1 + 4 * part)
        np.testing.assert_allclose(points[1::7], after[0::7], rtol=1e-5)
