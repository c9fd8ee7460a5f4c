"""A learning rate of one's own is in the unit of the strategy's docstring, and is a leaf."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import sfmab_jax as sf
from sfmab_jax.strategies import STRATEGIES

pytestmark = pytest.mark.quick

N, T, G = 3, 50, 2.0
# eta_{t+1} after t rounds as the docstrings state it, for n = 3, T = 50 and G = 2.
THEORY = {
    "exp3": lambda t: jnp.sqrt(math.log(N) / (jnp.maximum(t, 1) * N)) / G,
    "exp3_horizon": lambda t: math.sqrt(2 * math.log(N) / (N * T)) / G,
    "exp3_p_horizon": lambda t: 0.95 * math.sqrt(math.log(N) / (N * T)) / G,
    "exp3_in_batches_horizon": lambda t: math.sqrt(2 * 4 * math.log(N) / (N * T)) / G,
    "exp3_ix": lambda t: jnp.sqrt(math.log(N) / (N * (t + 1))) / G,
    "exp3_ix_horizon": lambda t: math.sqrt(2 * math.log(N) / (N * T)) / G,
    "exp3_plus_plus": lambda t: jnp.sqrt(math.log(N) / ((t + 1) * N)) / (2 * G),
    "poly_inf_horizon": lambda t: math.sqrt(2 / T) / G,
    "tsallis_inf": lambda t: 2 / (G * jnp.sqrt(t + 1)),
    "tsallis_inf_rv": lambda t: 4 / (G * jnp.sqrt(t + 1)),
    "log_barrier_horizon": lambda t: min(0.5, math.sqrt(N * math.log(T) / T)) / G,
    "green_horizon": lambda t: math.sqrt(math.log(N) / (N * T)) / G,
    "bubeck_li_luo_wei_horizon": lambda t: 1 / (162 * G),
    "hedge": lambda t: jnp.sqrt(8 * math.log(N) / (t + 1)) / G,
    "hedge_horizon": lambda t: math.sqrt(8 * math.log(N) / T) / G,
}


def plays(bandit, unit=1.0):
    """The laws of five rounds in which each arm is played."""
    state, laws = bandit.init(N, jnp.float32, unit), []
    for arm, loss in ((0, 1.5), (1, 0.5), (2, 2.0), (0, 1.0)):
        losses = jnp.full(N, loss / 2, jnp.float32).at[arm].set(loss) * unit
        state = bandit.update(state, jnp.int32(arm), bandit.feedback(losses, jnp.int32(arm)))
        laws.append(np.asarray(bandit.probabilities(state)))
    return np.array(laws)


def made(name, **parameters):
    make = STRATEGIES[name]
    horizon = {"num_rounds": T} if "num_rounds" in make.__annotations__ else {}
    return make(scale=G, **horizon, **parameters)


def test_every_strategy_that_takes_one_is_here():
    takes_one = [
        name for name, make in STRATEGIES.items() if "learning_rate" in make.__annotations__
    ]
    assert takes_one == [name for name in STRATEGIES if name in THEORY]


@pytest.mark.parametrize("name", THEORY)
@jax.disable_jit()
def test_the_rate_of_the_docstring_is_the_default(name):
    given = plays(made(name, learning_rate=THEORY[name]))
    np.testing.assert_allclose(given, plays(made(name)), rtol=2e-6)
    other = plays(made(name, learning_rate=lambda t: 2 * THEORY[name](t)))
    assert np.abs(other - given).max() > 1e-3


@pytest.mark.parametrize("name", ["exp3_ix", "tsallis_inf_rv"])
@jax.disable_jit()
def test_a_number_is_a_constant_rate_per_unit_of_loss(name):
    number, function = made(name, learning_rate=0.25), made(name, learning_rate=lambda t: 0.25)
    np.testing.assert_array_equal(plays(number), plays(function))
    np.testing.assert_allclose(plays(number, unit=0.125), plays(number), rtol=1e-6)
    assert 0.25 in jax.tree.leaves(number)


@pytest.mark.parametrize("given", [0.0, -1.0, "fast", float("nan")])
def test_what_is_no_rate_is_refused(given):
    with pytest.raises(ValueError, match=r"learning_rate is .*; give a"):
        sf.strategies.exp3(learning_rate=given)
