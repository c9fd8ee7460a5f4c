"""Estimators are unbiased, or biased exactly as stated: summed over the arms, no Monte Carlo."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import sfmab_jax as sf
from sfmab_jax import estimation
from sfmab_jax.strategies import schedules

NUM_ARMS = 5
PAST = 12  # rounds before the one that is looked at


def bias(t, n):
    return 0.3 / (t + n)


def threshold(t, n):
    return 2 / (t + n)


def limit(t, chance):
    return 0.1 * t * jnp.sqrt(chance)


def situation(scheme, dtype, size=1.0):
    """The state after some rounds, a law and losses of either sign, as NumPy in float64."""
    generator = np.random.default_rng(4)
    law = generator.dirichlet(np.full(NUM_ARMS, 0.6)) * 0.9 + 0.1 / NUM_ARMS
    losses = size * generator.normal(size=(PAST + 1, NUM_ARMS))
    state = scheme.init(NUM_ARMS, dtype, jnp.ones((), dtype))
    law = jnp.asarray(law, dtype)
    for t in range(PAST):
        arm = jnp.int32(t % NUM_ARMS)
        loss = jnp.asarray(losses[t, t % NUM_ARMS], dtype)
        estimate = scheme.estimate(state, law, law, arm, loss)
        state = scheme.update(state, sf.Round(law, law, arm, loss, estimate))
    return state, law, jnp.asarray(losses[PAST], dtype), losses.astype(dtype)


def mean_estimate(scheme, state, law, losses):
    """sum_i p'(i) (the estimate when i is played), [n], and all estimates, [played, n]."""

    def estimate(arm):
        return scheme.estimate(state, law, law, arm, losses[arm])

    estimates = np.asarray(jax.vmap(estimate)(jnp.arange(NUM_ARMS, dtype=jnp.int32)), np.float64)
    return np.asarray(law, np.float64) @ estimates, estimates


def unbiased(law, losses, past):
    return losses


def first_mean(law, losses, past):
    return losses - np.mean([past[t, t] for t in range(NUM_ARMS)])


def first_best(law, losses, past):
    return losses - min(past[t, t] for t in range(NUM_ARMS - 1))


def implicit(law, losses, past):
    return losses * law / (law + bias(PAST, NUM_ARMS))


def gains(law, losses, past, bonus=0.0):
    return losses - 2 - 2 * bonus / law


def skipped(law, losses, past):
    return losses * (np.abs(losses) <= 0.1 * (PAST + 1) * np.sqrt(law))


SCHEMES = {
    "importance_weighted": (estimation.importance_weighted(), unbiased, 1.0),
    "reduced_variance": (estimation.reduced_variance(threshold, 2.0), unbiased, 1.0),
    "centred": (estimation.centred(0.7), unbiased, 1.0),
    "centred_schedule": (estimation.centred(lambda t: 3 / t), unbiased, 1.0),
    "last_seen": (estimation.predicted_by_last_seen(), unbiased, 1.0),
    "centred_on_mean": (estimation.centred_on_mean(), first_mean, 1.0),
    "centred_on_best": (estimation.centred_on_best(), first_best, 1.0),
    "implicit_exploration": (estimation.implicit_exploration(bias), implicit, 1.0),
    "gain_weighted": (estimation.gain_weighted(2.0), gains, 1.0),
    "gain_weighted_bonus": (
        estimation.gain_weighted(2.0, lambda n: 0.1 / n),
        partial(gains, bonus=0.1 / NUM_ARMS),
        1.0,
    ),
    "skipping": (estimation.skipping(limit), skipped, 1.0),
}


@pytest.mark.parametrize("name", SCHEMES)
@pytest.mark.parametrize("dtype", [jnp.float32, jnp.float64], ids=["f32", "f64"])
def test_mean_over_arms_is_as_stated(name, dtype):
    scheme, stated, size = SCHEMES[name]
    state, law, losses, past = situation(scheme, dtype, size)
    mean, estimates = mean_estimate(scheme, state, law, losses)
    law, losses = np.asarray(law, np.float64), np.asarray(losses, np.float64)
    wanted = stated(law, losses, past.astype(np.float64))
    # A few roundings of terms as large as the estimates times their probabilities.
    size = np.max(np.abs(estimates) * law[:, None]) + np.max(np.abs(wanted))
    np.testing.assert_allclose(mean, wanted, rtol=0, atol=20 * jnp.finfo(dtype).eps * size)


def test_skipping_skips_some_and_keeps_some():
    scheme, stated, _ = SCHEMES["skipping"]
    _, law, losses, past = situation(scheme, jnp.float64)
    kept = np.asarray(stated(np.asarray(law), np.asarray(losses), past)) != 0
    assert kept.any()
    assert not kept.all()


@pytest.mark.parametrize("size", [0.1, 3.0, 1e4])
@pytest.mark.parametrize("name", ["doubling", "balanced"])
def test_learnt_limits_skip_whole_losses(name, size):
    """The mean is l or 0, arm by arm, with the limit that the scheme states."""
    make = {"doubling": estimation.doubling_skipping, "balanced": estimation.balanced_skipping}
    scheme = make[name](100)
    state, law, losses, _ = situation(scheme, jnp.float64, size)
    mean, _ = mean_estimate(scheme, state, law, losses)
    law, losses = np.asarray(law), np.asarray(losses)
    if name == "doubling":
        inverse_rate = 2.0 ** float(state.exponent) * np.sqrt(PAST + 1)
        kept = np.abs(losses) <= (1 - 2 ** (-1 / 3)) * np.sqrt(law) * inverse_rate
    else:
        kept = np.abs(losses) < float(state.size.value) / (4 * (1 - law))
    np.testing.assert_allclose(mean, losses * kept, rtol=1e-12)


def test_heavy_tail_limit_at_the_ends_of_its_range():
    """Theta = min(1 - 2^(-(a-1)/(2a-1)), (2 - 2/a)^(1/(2-a))), continuous up to a = 2."""
    one = jnp.float64(1.0)
    for tail in (1.05, 1.2, 1.5, 1.9, 1.9995, 2.0):
        share = float(schedules.heavy_tail_limit(tail, 1.0, one, one))
        first = 1 - 2 ** (-(tail - 1) / (2 * tail - 1))
        second = (2 - 2 / tail) ** (1 / (2 - tail)) if tail < 2 else np.exp(-0.5)
        np.testing.assert_allclose(share, min(first, second), rtol=1e-12)
