"""Loss sequences: their laws against their definitions, and what they refuse."""

import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import sfmab_jax as sf

EACH_FAMILY = pytest.mark.parametrize("name", sf.losses.LOSSES)
NUM_ROUNDS = 200_000


@jax.jit
def draw(next_loss, state, key, rounds):
    return jax.vmap(lambda t: next_loss(state, key, t)[1])(rounds)


def rows(sequence, num_rounds=NUM_ROUNDS, seed=0):
    """The first losses of a memoryless sequence, [T, n]."""
    key = jax.random.key(seed)
    rounds = jnp.arange(1, num_rounds + 1, dtype=jnp.int32)
    return draw(sequence.next, sequence.init(key), key, rounds)


def assert_mean(samples, wanted):
    """The mean over axis 0 is the one wanted, within four standard errors."""
    samples = np.asarray(samples, np.float64)
    error = samples.std(axis=0, ddof=1) / np.sqrt(len(samples))
    np.testing.assert_array_less(np.abs(samples.mean(axis=0) - wanted), 4 * error + 1e-12)


@EACH_FAMILY
def test_family_is_reproducible_and_float32(name):
    """Losses depend on the key and the round alone, whatever is made together with them."""
    sequence = sf.losses.LOSSES[name](num_arms=4)
    assert sequence.num_arms == 4
    assert sequence.name == name
    assert sequence.num_rounds is None
    assert sequence.num_sequences is None
    losses = rows(sequence, 256)
    assert losses.shape == (256, 4)
    assert losses.dtype == jnp.float32
    assert jnp.isfinite(losses).all()
    np.testing.assert_array_equal(losses, rows(sf.losses.LOSSES[name](num_arms=4), 256))
    key = jax.random.key(0)
    some = jnp.array([9, 1, 77], jnp.int32)
    np.testing.assert_array_equal(draw(sequence.next, (), key, some), losses[some - 1])
    assert jax.tree.leaves(sequence.init(key)) == []
    assert (rows(sequence, 256, seed=1) != losses).any()


@EACH_FAMILY
def test_family_does_not_depend_on_float64_being_enabled(name):
    """A float32 and a float64 simulation of one seed play on the same losses."""
    wide = np.asarray(rows(sf.losses.LOSSES[name](num_arms=4), 256))
    with jax.enable_x64(False):
        narrow = np.asarray(rows(sf.losses.LOSSES[name](num_arms=4), 256))
    np.testing.assert_array_equal(wide, narrow)


@EACH_FAMILY
def test_family_is_proportional_to_its_scale(name):
    """A power of two commutes with every rounding."""
    one = sf.losses.LOSSES[name](num_arms=4)
    large = sf.losses.LOSSES[name](num_arms=4, scale=2.0**100)
    np.testing.assert_array_equal(rows(one, 256) * np.float32(2.0**100), rows(large, 256))
    assert large.magnitude == one.magnitude * 2.0**100


@EACH_FAMILY
def test_magnitude_is_about_the_largest_loss(name):
    """Within a factor of four: it only chooses the unit of a simulation."""
    sequence = sf.losses.LOSSES[name](num_arms=4)
    largest = float(jnp.max(jnp.abs(rows(sequence))))
    assert sequence.magnitude / 4 <= largest <= 4 * sequence.magnitude


def test_uniform_moments():
    losses = np.asarray(rows(sf.losses.uniform(num_arms=3, gap=0.3, scale=5.0)), np.float64) / 5
    means = np.array([-0.3, 0, 0])
    noise = losses - means
    assert_mean(losses, means)
    assert_mean(noise**2, 1 / 3)
    assert_mean(noise**4, 1 / 5)
    assert_mean(noise[:, 0] * noise[:, 1], 0)
    assert_mean(noise[1:] * noise[:-1], 0)
    assert np.abs(noise).max() <= 1 + 1e-6
    assert (noise > 0.99).any(axis=0).all()
    assert (noise < -0.99).any(axis=0).all()


def test_gaussian_moments():
    losses = np.asarray(rows(sf.losses.gaussian(num_arms=3, gap=-0.7, scale=0.1)), np.float64) / 0.1
    means = np.array([0.7, 0, 0])
    noise = losses - means
    assert_mean(losses, means)
    assert_mean(noise**2, 1)
    assert_mean(noise**3, 0)
    assert_mean(noise**4, 3)
    assert_mean(noise[:, 0] * noise[:, 1], 0)
    assert_mean(noise[1:] * noise[:-1], 0)


def test_sparse_law():
    """At most one loss a round, of size G; the arm uniform, the sign fair but for arm 0."""
    n, rate, gap = 4, 0.3, 0.5
    sequence = sf.losses.sparse(num_arms=n, rate=rate, size=8.0, gap=gap, scale=0.5)
    assert sequence.magnitude == 4.0
    losses = np.asarray(rows(sequence), np.float64)
    assert set(np.unique(losses)) == {-4.0, 0.0, 4.0}
    assert np.count_nonzero(losses, axis=1).max() == 1
    assert_mean(losses != 0, np.full(n, rate / n))
    assert_mean(losses > 0, rate / n * np.array([(1 - gap) / 2, 1 / 2, 1 / 2, 1 / 2]))
    assert_mean(losses, np.array([-rate * gap * 4 / n, 0, 0, 0]))
    hit = (losses != 0).any(axis=1).astype(np.float64)
    assert_mean((hit[1:] - rate) * (hit[:-1] - rate), 0)


@pytest.mark.parametrize(("rate", "hit"), [(0.0, 0.0), (1.0, 1.0)])
def test_sparse_rates_at_the_ends(rate, hit):
    losses = rows(sf.losses.sparse(num_arms=3, rate=rate), 1000)
    np.testing.assert_array_equal((losses != 0).any(axis=1), np.full(1000, bool(hit)))


@EACH_FAMILY
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
        ({"gap": np.nan}, "nan"),
        ({"gap": "wide"}, "'wide'"),
    ],
)
def test_parameters_out_of_range(name, parameters, value):
    (parameter,) = parameters
    with pytest.raises(ValueError, match=rf"{parameter} is {re.escape(value)}"):
        sf.losses.LOSSES[name](**parameters)


@pytest.mark.parametrize(
    ("parameters", "value"),
    [
        ({"rate": -0.1}, "-0.1"),
        ({"rate": 1.1}, "1.1"),
        ({"gap": 1.5}, "1.5"),
        ({"size": 0}, "0"),
        ({"size": np.inf}, "inf"),
    ],
)
def test_sparse_parameters_out_of_range(parameters, value):
    (parameter,) = parameters
    with pytest.raises(ValueError, match=rf"{parameter} is {re.escape(value)}"):
        sf.losses.sparse(**parameters)


# Functions.


def test_from_function_has_its_own_key_each_round():
    sequence = sf.losses.from_function(
        lambda key, t, shift: jax.random.normal(key, (2,), jnp.float32) + shift, 2, shift=10.0
    )
    losses = np.asarray(rows(sequence, 1000))
    assert len(np.unique(losses)) > 1990  # no draw is used twice, but for chance collisions
    assert_mean(losses, np.full(2, 10.0))


def test_from_function_sees_the_round():
    sequence = sf.losses.from_function(
        lambda key, t: jnp.stack([t, -t]).astype(jnp.float32), 2, magnitude=3.0, name="line"
    )
    np.testing.assert_array_equal(rows(sequence, 3), [[1, -1], [2, -2], [3, -3]])
    assert sequence.magnitude == 3.0
    assert sequence.name == "line"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"num_arms": 0}, "num_arms is 0"),
        ({"num_arms": 2, "magnitude": 0.0}, "magnitude is 0.0"),
        ({"num_arms": 2, "magnitude": -1}, "magnitude is -1"),
        ({"num_arms": 2, "magnitude": np.nan}, "magnitude is nan"),
    ],
)
def test_from_function_refuses(options, message):
    with pytest.raises(ValueError, match=message):
        sf.losses.from_function(lambda key, t: jnp.zeros(2), **options)


# Arrays.


def test_from_array_keeps_the_numbers():
    table = np.arange(24.0).reshape(2, 4, 3) - 30
    many = sf.losses.from_array(table)
    assert (many.num_sequences, many.num_rounds, many.num_arms) == (2, 4, 3)
    assert many.magnitude == 30
    np.testing.assert_array_equal(many.table, table)
    one = sf.losses.from_array(table[1].tolist(), name="mine")
    assert (one.num_sequences, one.num_rounds, one.num_arms) == (1, 4, 3)
    assert one.name == "mine"
    np.testing.assert_array_equal(one.table, table[1:])
    assert sf.losses.from_array(np.zeros((5, 2))).magnitude == 1
    assert sf.losses.from_array(jnp.ones((5, 2), bool)).magnitude == 1
    assert sf.losses.from_array(np.full((5, 2), -128, np.int8)).magnitude == 128


def test_as_loss_sequence_leaves_sequences_alone():
    sequence = sf.losses.uniform(num_arms=3)
    assert sf.losses.as_loss_sequence(sequence) is sequence
    assert sf.losses.as_loss_sequence([[1, 2], [3, 4]]).num_rounds == 2


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_from_array_names_the_place_of_what_is_not_finite(bad):
    table = np.zeros((3, 5, 2))
    table[2, 3, 1] = bad
    with pytest.raises(ValueError, match=rf"{bad} at sequence 2, round 4, arm 1"):
        sf.losses.from_array(table)
    with pytest.raises(ValueError, match=rf"{bad} at sequence 0, round 4, arm 1"):
        sf.losses.from_array(table[2])


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (np.zeros(3), r"shape \(3,\)"),
        (np.float64(1.0), r"shape \(\)"),
        (np.zeros((2, 2, 2, 2)), r"shape \(2, 2, 2, 2\)"),
        (np.zeros((0, 3)), r"shape \(0, 3\)"),
        (np.zeros((3, 0)), r"shape \(3, 0\)"),
        (np.zeros((0, 3, 2)), r"shape \(0, 3, 2\)"),
        ([["a", "b"], ["c", "d"]], "dtype <U1"),
        (np.zeros((2, 2), complex), "dtype complex128"),
        (np.full((2, 2), None), "dtype object"),
        (None, "dtype object"),
    ],
)
def test_from_array_refuses(table, message):
    with pytest.raises(ValueError, match=message):
        sf.losses.from_array(table)
