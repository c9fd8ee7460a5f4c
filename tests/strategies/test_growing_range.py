"""The range of Exp3Light-A: powers of two, restarts, powers of four."""

import any_range_loops as any_range
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import sfmab_jax as sf


@pytest.mark.parametrize("unit", [1.0, 0.25, 3.0])
def test_a_loss_above_the_range_raises_it_and_is_dropped(unit):
    scheme = sf.estimation.within_range()
    state = scheme.init(2, jnp.dtype("float32"), jnp.float32(unit))
    law = jnp.array([0.25, 0.75], jnp.float32)
    shown = [(0.5, 1), (1.0, 1), (1.5, 2), (2.0, 2), (2.5, 4), (9.0, 16), (8.0, 16), (1e30, 2**100)]
    top = 1.0
    for loss, after in shown:
        given = law, law, jnp.int32(0), jnp.float32(loss * unit)
        estimate = scheme.estimate(state, *given)
        wanted = [loss * unit * 4 if loss <= top else 0, 0]
        np.testing.assert_allclose(estimate, wanted, rtol=1e-6)
        state = scheme.update(state, sf.Round(*given, estimate))
        assert float(state.top) == after * unit
        top = after


def test_epochs_follow_the_loop():
    """Losses of 1, of which the likelier arm is played: its estimates are small."""
    bandit = sf.strategies.exp3_light_a_horizon(60)

    @jax.jit
    def play(losses):
        def step(state, loss):
            law = bandit.probabilities(state)
            arm = jnp.argmax(law).astype(jnp.int32)
            state = bandit.update(state, arm, loss[arm])
            return state, (arm, law, state.full_information.epoch)

        return jax.lax.scan(step, bandit.init(3, jnp.float64), losses)[1]

    losses = np.ones((60, 3))
    arms, laws, epochs = map(np.asarray, play(losses))
    wanted = any_range.exp3_light_a_horizon(arms, losses, 60)[:-1]
    np.testing.assert_allclose(laws, wanted, rtol=1e-9)
    assert set(epochs) == {0, 1, 2, 3}


def test_an_epoch_begins_above_a_power_of_four():
    """With one arm L~ is the number of rounds."""
    forced = sf.full_information.restarting_ftrl(sf.potentials.negative_entropy(), 120)
    state = forced.init(1, jnp.dtype("float32"), jnp.float32(1))
    for total in range(1, 66):
        seen = sf.Round(state.play, state.play, jnp.int32(0), jnp.float32(1), jnp.ones(1, "f4"))
        state = forced.update(state, seen)
        assert int(state.epoch) == max(int(np.ceil(np.log2(total) / 2)), 0)
