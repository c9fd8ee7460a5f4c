"""Sequences from functions, recurrences and arrays."""

import gc
import weakref

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from loss_samples import assert_mean, rows
from simulated import UNIFORM

import sfmab_jax as sf
from sfmab_jax.losses.sequence import as_loss_sequence

pytestmark = pytest.mark.quick

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
    with pytest.raises(
        ValueError, match=rf"{bad} at sequence 2, round 4, arm 1 \(rounds count from 1, seq"
    ):
        sf.losses.from_array(table)
    with pytest.raises(
        ValueError, match=rf"{bad} at round 4, arm 1 \(rounds count from 1, arms from 0"
    ):
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


# Recurrences.


def test_from_recurrence_carries_its_state():
    sequence = sf.losses.from_recurrence(
        lambda key, start: jnp.full(2, start, jnp.float32),
        lambda state, key, t, start: (state + 1, state * jnp.array([1, -1], jnp.float32)),
        num_arms=2,
        start=5.0,
    )
    np.testing.assert_array_equal(rows(sequence, 3), [[5, -5], [6, -6], [7, -7]])
    result = sf.simulate(UNIFORM, sequence, num_rounds=40, num_seeds=2)
    np.testing.assert_allclose(result.norms.best[0, -1], -sum(range(5, 45)))


def test_what_is_not_finite_is_met_in_the_run_and_the_rest_kept():
    sequence = sf.losses.from_function(
        lambda key, t: jnp.where(t == 70, jnp.nan, 1.0) * jnp.ones(2, jnp.float32), 2, name="mine"
    )
    options = {"num_seeds": 2, "checkpoints": [10, 50, 80]}
    with pytest.warns(RuntimeWarning, match="mine: sequence 0 .* in rounds 51 to 80"):
        result = sf.simulate(UNIFORM, sequence, num_rounds=100, **options)
    assert np.isfinite(result.regret[..., :2]).all()
    assert np.isnan(result.regret[..., 2:]).all()


def test_a_family_of_the_users_own_is_let_go():
    """With the table that its function reads, also after it was checked."""

    def check_one():
        table = jnp.zeros((4, 3), jnp.float32)

        def read(key, t):
            return table[t - 1]

        as_loss_sequence(sf.losses.from_function(read, 3))
        return weakref.ref(read)

    left = check_one()
    gc.collect()
    assert left() is None
