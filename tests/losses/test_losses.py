"""Loss families: what they all share, and what they refuse."""

import re
from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from loss_samples import (
    FAMILIES,
    NUM_ROUNDS,
    assert_mean,
    each_archetype,
    each_family,
    means,
    rows,
)

import sfmab_jax as sf
from sfmab_jax.engine.loss_stream import LossStream

# Parameters with which the first two moments exist and their estimates are nearly normal.
LIGHT = {
    "student_t": {"degrees": 9.0},
    "pareto": {"index": 9.0},
    "log_normal": {"sigma": 0.3},
    "growing": {"ratio": 8.0},
    "late_spike": {"exponent": 1.0, "num_rounds": 85},
    "switching": {"num_rounds": NUM_ROUNDS},
    "neu_switch": {"num_rounds": NUM_ROUNDS},
    "corrupted": {"budget": NUM_ROUNDS // 4},
}


# What all families share.


@cache
def losses_of(name):
    """The losses of a family as it is by default, with four arms."""
    return rows(FAMILIES[name](num_arms=4))


@each_family
def test_family_is_reproducible_and_float32(name):
    sequence = FAMILIES[name](num_arms=4)
    assert sequence.num_arms == 4
    assert sequence.name == name
    assert sequence.num_rounds is None
    assert sequence.num_sequences is None
    losses = losses_of(name)
    assert losses.shape == (NUM_ROUNDS, 4)
    assert losses.dtype == jnp.float32
    assert np.isfinite(losses).all()
    np.testing.assert_array_equal(losses[:256], rows(sequence, 256))


@each_family
def test_family_depends_on_key_and_round_alone(name):
    """A family without memory gives any round by itself."""
    sequence = FAMILIES[name](num_arms=4)
    if name == "random_walk":
        assert jax.tree.leaves(sequence.init(jax.random.key(0)))
        return
    for t in (9, 1, 77):
        np.testing.assert_array_equal(rows(sequence, 1, first_round=t)[0], losses_of(name)[t - 1])


@each_family
def test_family_does_not_depend_on_float64_being_enabled(name):
    """A float32 and a float64 simulation of one seed play on the same losses."""
    with jax.enable_x64(False):
        narrow = rows(FAMILIES[name](num_arms=4), 256)
    np.testing.assert_array_equal(losses_of(name)[:256], narrow)


@each_family
def test_family_is_proportional_to_its_scale(name):
    """A power of two commutes with every rounding."""
    one = FAMILIES[name](num_arms=4)
    large = FAMILIES[name](num_arms=4, scale=2.0**60)
    np.testing.assert_array_equal(losses_of(name)[:256] * np.float32(2.0**60), rows(large, 256))
    assert large.magnitude == one.magnitude * 2.0**60


@each_archetype
def test_family_is_the_same_in_any_chunks(name):
    """One chunk of a member alone, and short chunks of it beside others."""
    sequence = FAMILIES[name](num_arms=3)

    def fed(members, chunk):
        options = {"seed": 5, "unit": 1.0, "dtype": np.dtype(np.float32)}
        feed = LossStream(sequence, np.array(members), chunk_rounds=chunk, **options)
        return np.concatenate([feed.chunk(1 + first) for first in range(0, 96, chunk)])

    np.testing.assert_array_equal(fed([2], 96)[..., 0], fed([0, 1, 2], 12)[..., 2])


@each_archetype
def test_memory_does_not_grow_with_the_rounds(name):
    """The arrays that live after one chunk and after a chunk that ends in round 10^7."""
    sequence = FAMILIES[name](num_arms=3)
    options = {"seed": 0, "unit": 1.0, "dtype": np.dtype(np.float32)}
    feed = LossStream(sequence, np.array([0]), chunk_rounds=4096, **options)

    def bytes_alive():
        return sum(array.nbytes for array in jax.live_arrays())

    chunk = feed.chunk(1)
    before = bytes_alive()
    chunk = feed.chunk(10_000_000 - 4095)
    assert bytes_alive() == before
    assert np.isfinite(chunk).all()


HEAVY = {"student_t", "pareto", "log_normal"}


@each_family
def test_magnitude_is_about_the_largest_loss(name):
    """Within a factor of four, or a hundred with heavy tails: it only chooses a unit."""
    factor = 100 if name in HEAVY else 4
    sequence = FAMILIES[name](num_arms=4)
    largest = float(np.abs(losses_of(name)[:10_000]).max())
    if name == "zero":
        assert largest == 0
    else:
        assert sequence.magnitude / factor <= largest <= factor * sequence.magnitude


@each_family
def test_means_are_as_stated(name):
    """sum_t (l_t - mean_t) within four standard errors, for every arm and two members."""
    sequence = FAMILIES[name](num_arms=4, scale=2.0, **LIGHT.get(name, {}))
    if name == "random_walk":
        assert sequence.mean is None
        return
    for seed in (0, 1):
        noise = rows(sequence, seed=seed).astype(np.float64) - means(sequence, seed=seed)
        assert_mean(noise, 0)


def test_means_that_do_not_exist():
    assert sf.losses.pareto(index=1.0).mean is None
    assert sf.losses.student_t(degrees=1.0).mean is None


@pytest.mark.parametrize("name", ["bernoulli", "uniform", "gaussian", "student_t", "pareto"])
def test_draws_are_independent(name):
    losses = rows(FAMILIES[name](num_arms=4, gap=0.0, **LIGHT.get(name, {})))
    noise = losses.astype(np.float64) - losses.mean(axis=0)
    assert_mean(noise[:, 0] * noise[:, 1], 0)
    assert_mean(noise[1:] * noise[:-1], 0)


# Bad parameters.


@pytest.mark.quick
@each_family
@pytest.mark.parametrize(
    ("parameters", "value"),
    [
        ({"num_arms": 0}, "0"),
        ({"num_arms": -3}, "-3"),
        ({"num_arms": 2.5}, "2.5"),
        ({"num_arms": True}, "True"),
        ({"num_arms": "four"}, "'four'"),
        ({"scale": 0.0}, "0.0"),
        ({"scale": -1.0}, "-1.0"),
        ({"scale": np.nan}, "nan"),
        ({"scale": np.inf}, "inf"),
        ({"scale": "large"}, "'large'"),
        ({"scale": None}, "None"),
    ],
)
def test_parameters_of_all_families(name, parameters, value):
    (parameter,) = parameters
    with pytest.raises(ValueError, match=rf"{parameter} is {re.escape(value)}"):
        FAMILIES[name](**parameters)


@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        *((name, {"gap": bad}) for name in ("bernoulli", "uniform", "pareto") for bad in (np.nan,)),
        ("uniform", {"gap": "wide"}),
        ("bernoulli", {"gap": 0.6}),
        ("bernoulli", {"mean": 1.2}),
        ("student_t", {"degrees": 0.0}),
        ("pareto", {"index": -1.0}),
        ("log_normal", {"sigma": 0.0}),
        ("log_normal", {"gap": 1.5}),
        ("constrained_adversarial", {"gap": 1.5}),
        ("constrained_adversarial", {"growth": 0.5}),
        ("switching", {"gap": 0.7}),
        ("switching", {"switches": -1}),
        ("switching", {"num_rounds": 0}),
        ("neu_switch", {"gap": 0.2}),
        ("neu_switch", {"num_rounds": 0}),
        ("corrupted", {"budget": -1}),
        ("corrupted", {"gap": 0.7}),
        ("sparse", {"rate": -0.1}),
        ("sparse", {"rate": 1.1}),
        ("sparse", {"gap": 1.5}),
        ("sparse", {"size": 0}),
        ("sparse", {"num_nonzero": 11}),
        ("growing", {"ratio": 0.0}),
        ("growing", {"num_rounds": 0}),
        ("late_spike", {"exponent": np.inf}),
        ("late_spike", {"num_rounds": 0}),
        ("scale_regimes", {"period": 0}),
        ("random_walk", {"step": 0.0}),
        ("sinusoidal", {"period": 1}),
        ("sinusoidal", {"noise": -1.0}),
        ("slowly_varying", {"period": 1}),
        ("one_arm", {"arm": 10}),
        ("one_arm", {"loss": np.nan}),
        ("minimax", {"constant": 0.0}),
        ("minimax", {"num_rounds": 0}),
        ("shared_noise", {"gap": 0.0}),
        ("shared_noise", {"sigma": -0.1}),
    ],
)
def test_parameters_out_of_range(name, parameters):
    ((parameter, value),) = parameters.items()
    with pytest.raises(ValueError, match=rf"{parameter} is {re.escape(repr(value))}"):
        FAMILIES[name](**parameters)


def test_lists_of_parameters_out_of_range():
    with pytest.raises(ValueError, match="switch is 1;"):
        sf.losses.switching(switches=(1, 50))
    with pytest.raises(ValueError, match=r"factors is \(\); give one number or more"):
        sf.losses.scale_regimes(factors=())
    with pytest.raises(ValueError, match=r"factor is -1\.0"):
        sf.losses.scale_regimes(factors=(1.0, -1.0))
