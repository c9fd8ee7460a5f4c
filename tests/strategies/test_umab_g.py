"""UMAB-G: what its constants with a unit do, and losses whose squares overflow."""

import any_range_loops as any_range
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import sfmab_jax as sf

FORMS = {
    "umab_g": {},
    "umab_g_horizon": {"horizon": 100, "adaptive": False},
    "umab_g_both_horizon": {"horizon": 100},
}


@jax.jit
def laws_of(bandit, arms, losses, unit):
    """The laws before rounds 1 ... T [T, n] and the last state, given arms and losses."""

    def step(state, now):
        arm, loss = now
        return bandit.update(state, arm, loss[arm]), bandit.probabilities(state)

    first = bandit.init(losses.shape[1], losses.dtype, unit)
    state, laws = jax.lax.scan(step, first, (arms, losses))
    return laws, state


def made(name):
    horizon = FORMS[name].get("horizon")
    make = sf.strategies.STRATEGIES[name]
    return make() if horizon is None else make(horizon)


@pytest.mark.parametrize("name", FORMS)
def test_small_losses_are_not_those_of_another_unit(name):
    """c l with c < 1 is played otherwise than l; with the unit c it is the same, bit for bit."""
    generator = np.random.default_rng(1)
    losses = generator.normal(size=(40, 3)).astype(np.float32)
    arms = jnp.asarray(generator.integers(3, size=40), jnp.int32)
    bandit, c = made(name), np.float32(2.0**-7)
    laws, _ = laws_of(bandit, arms, losses, jnp.float32(1))
    small, _ = laws_of(bandit, arms, c * losses, jnp.float32(1))
    assert np.abs(small - laws).max() > 0.1
    in_its_unit, _ = laws_of(bandit, arms, c * losses, jnp.float32(c))
    np.testing.assert_array_equal(in_its_unit, laws)
    wanted = any_range.umab_g(np.asarray(arms), np.float64(c * losses), **FORMS[name])[:-1]
    exact, _ = laws_of(bandit, arms, np.float64(c * losses), jnp.float64(1))
    np.testing.assert_allclose(exact, wanted, rtol=1e-10)


def test_the_rate_of_losses_whose_squares_overflow():
    """eta = 4 / sqrt(sum l^2 / n + C^2) after losses of 1e-25 to 1e25, in float32."""
    generator = np.random.default_rng(2)
    losses = 10.0 ** generator.uniform(-25, 25, (60, 2)) * generator.choice([1, -1], (60, 2))
    arms = generator.integers(2, size=60)
    given = jnp.asarray(arms, jnp.int32), losses.astype(np.float32)
    laws, state = laws_of(sf.strategies.umab_g(), *given, jnp.float32(1))
    clip, squares = 1.0, 0.0
    for loss in losses[np.arange(60), arms]:
        clipped = max(loss, -2 * clip)
        clip, squares = max(clip, -clipped), squares + clipped**2
    wanted = 4 / np.sqrt(squares / 2 + clip**2)
    np.testing.assert_allclose(state.full_information.learning_rate, wanted, rtol=1e-6)
    np.testing.assert_allclose(np.sum(laws, axis=1), 1, rtol=1e-6)
    assert np.min(laws) > 0


def test_a_form_without_a_limit_has_no_horizon():
    with pytest.raises(ValueError, match="num_rounds is None; give the number of rounds"):
        sf.sampling.lifted(adaptive=False)
    with pytest.raises(ValueError, match="adaptive is 1; choose True or False"):
        sf.sampling.lifted(100, adaptive=1)
