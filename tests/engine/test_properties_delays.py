"""Properties of `sf.delays`: what each draws, and what each refuses."""

import pickle

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import strategies as st
from properties import not_positive_numbers, property_of

from sfmab_jax import delays

rounds = st.integers(1, 50)
lists = st.lists(st.integers(0, 60), min_size=1, max_size=50)


def drawn(delay, num_rounds):
    """The delays of a game, [T]."""
    function = delay.function(num_rounds)
    keys = jax.random.split(jax.random.key(0), num_rounds)
    numbers = jnp.arange(1, num_rounds + 1, dtype=jnp.int32)
    return np.asarray(jax.vmap(function)(keys, numbers))


@property_of(delays.fixed, number=st.integers(0, 10**6), length=rounds)
def test_a_fixed_delay_is_the_same_in_every_round(number, length):
    delay = delays.fixed(number)
    assert (drawn(delay, length) == number).all()
    assert delay.largest(length) == min(number, length - 1)
    assert delay.is_zero(length) == (number == 0)
    assert delays.as_delay(number).name == delay.name


@property_of(delays.from_array, delays.as_delay, table=lists)
def test_an_array_is_what_it_says_as_far_as_anything_arrives(table):
    delay, length = delays.from_array(table), len(table)
    got, left = drawn(delay, length), np.arange(length)[::-1]
    np.testing.assert_array_equal(got, np.where(np.array(table) <= left, table, delays.NEVER))
    finite = got[got < delays.NEVER]
    assert delay.largest(length) == max(finite, default=0)
    assert delay.is_zero(length) == (not any(table))
    for spelling in (table, tuple(table), np.array(table, np.uint8), jnp.asarray(table)):
        assert delays.as_delay(spelling).name == delay.name
    assert delays.as_delay(delay) is delay


@property_of(delays.geometric, mean=st.floats(0.01, 1000), most=st.none() | st.integers(1, 100))
def test_geometric_delays_stay_within_their_limit(mean, most):
    delay = delays.geometric(mean, most)
    got = drawn(delay, 50)
    assert got.min() >= 0
    assert got.max() <= delay.most
    assert most is None or delay.most == most


def test_geometric_delays_have_their_law():
    """P(d >= k) = (m / (1 + m))^k, of 100,000 draws, within 5 standard errors."""
    delay = delays.geometric(10.0)
    words = jax.random.split(jax.random.key(1), 100_000)
    got = np.asarray(jax.vmap(lambda key: delay.delay(key, jnp.int32(1)))(words))
    for k in (1, 2, 5, 10, 30, 60):
        chance = (10 / 11) ** k
        error = np.sqrt(chance * (1 - chance) / len(got))
        assert abs((got >= k).mean() - chance) < 5 * error
    assert delays.as_delay("geometric").name == delay.name


@property_of(delays.from_function, most=st.integers(1, 1000))
def test_a_function_is_its_own(most):
    def every(key, t):
        return t % (most + 1)

    delay = delays.from_function(every, most)
    np.testing.assert_array_equal(drawn(delay, 50), np.arange(1, 51) % (most + 1))
    assert delay.largest(50) == min(most, 49)
    assert delays.as_delay(every).most == delays.MOST


def test_delays_are_pickled():
    for delay in (delays.fixed(3), delays.geometric(), delays.from_array([1, 2])):
        again = pickle.loads(pickle.dumps(delay))
        assert again.name == delay.name
        np.testing.assert_array_equal(drawn(again, 2), drawn(delay, 2))


def test_a_mean_has_a_limit():
    with pytest.raises(ValueError, match="at most 10,000,000"):
        delays.geometric(1e8)


@property_of(
    delays.fixed, delays.geometric, delays.from_array, delays.from_function,
    wrong=not_positive_numbers.filter(lambda value: value != 0 and value is not None),
)  # fmt: skip
def test_what_is_no_delay_is_refused(wrong):
    for make in (delays.fixed, delays.geometric, delays.from_array, delays.from_function):
        with pytest.raises(ValueError, match=r"is|give"):
            make(wrong)
    with pytest.raises(ValueError, match="function, delay=, or a table"):
        delays.Delay()
    for most in (wrong, 0):
        with pytest.raises(ValueError, match="most is"):
            delays.from_function(lambda key, t: t, most)
