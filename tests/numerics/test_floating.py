"""Compensated and pairwise sums against exact rational and correctly rounded arithmetic."""

import functools
import math
from fractions import Fraction

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfmab_jax.engine.lanes.rules import choose
from sfmab_jax.engine.lanes.transform import over_lanes
from sfmab_jax.numerics.arms import add_at, arm_sum, pick
from sfmab_jax.numerics.double_word import Sum, add, add_sums, start_sum, two_sum
from sfmab_jax.numerics.hints import keep

pytestmark = [pytest.mark.quick, pytest.mark.optimised]

NUM_TERMS = 10**6
FLOATS = [np.float32, np.float64]

jit_two_sum = jax.jit(two_sum)
jit_arm_sum = jax.jit(arm_sum)
jit_pick = jax.jit(pick)


def unit_roundoff(dtype) -> float:
    return float(np.finfo(dtype).eps) / 2


def exact(total: Sum) -> Fraction:
    return Fraction(float(total.value)) + Fraction(float(total.error))


def assert_two_sum_exact(a, b):
    """a + b = s + e exactly, and s is the rounded sum."""
    s, e = (np.asarray(word) for word in jit_two_sum(a, b))
    np.testing.assert_array_equal(s, a + b)
    for terms in zip(a.tolist(), b.tolist(), s.tolist(), e.tolist()):
        x, y, high, low = map(Fraction, terms)
        assert x + y == high + low, terms


@pytest.mark.parametrize("dtype", FLOATS)
def test_two_sum_is_exact_on_random_pairs(dtype):
    """Exponents far apart, close, and with cancellation. Nothing under- or overflows here."""
    rng = np.random.default_rng(1)
    size = 5000
    a = rng.uniform(-1, 1, size) * 2.0 ** rng.integers(-40, 40, size)
    near = a * rng.choice([-1, 1], size) * (1 + rng.uniform(-1, 1, size) * 1e-3)
    far = rng.uniform(-1, 1, size) * 2.0 ** rng.integers(-40, 40, size)
    for b in (near, far, -a, np.zeros(size)):
        assert_two_sum_exact(a.astype(dtype), b.astype(dtype))


# Down to 1e-20, so that the error term of two_sum is no denormal, which XLA flushes to zero.
normal_float32 = st.one_of(
    st.just(0.0),
    st.floats(2.0**-66, 2.0**66, width=32),
    st.floats(-(2.0**66), -(2.0**-66), width=32),
)


@settings(deadline=None, derandomize=True, database=None, max_examples=200)
@given(st.lists(st.tuples(normal_float32, normal_float32), min_size=8, max_size=8))
def test_two_sum_is_exact(pairs):
    a, b = np.array(pairs, np.float32).T
    assert_two_sum_exact(a, b)


def series(kind: str) -> np.ndarray:
    rng = np.random.default_rng(2)
    if kind == "positive":
        terms = rng.uniform(0, 1, NUM_TERMS)
    elif kind == "heavy-tailed":
        terms = rng.uniform(0, 1, NUM_TERMS) ** -1.5
    elif kind == "below the last bit":
        terms = np.full(NUM_TERMS, 1e-9)
        terms[0] = 1.0
    elif kind == "signed":
        terms = rng.normal(size=NUM_TERMS) * 10.0 ** rng.uniform(-6, 6, NUM_TERMS)
    return terms.astype(np.float32)


@jax.jit
def running_total(terms):
    def step(total, term):
        return add(total, term), None

    return jax.lax.scan(step, start_sum(jnp.float32(0)), terms)[0]


@jax.jit
def running_total_of_sums(values, errors):
    def step(total, term):
        return add_sums(total, Sum(*term)), None

    zero = start_sum(jnp.float32(0))
    return jax.lax.scan(step, zero, (values, errors))[0]


def assert_accurate_total(total: Sum, terms):
    """Against the correctly rounded sum of the same terms.

    One double-word addition errs by at most 3 u^2 of its result, u = 2^-24 (Joldes, Muller and
    Popescu 2017); no partial sum exceeds the sum of magnitudes, and there are a million additions.
    """
    u = unit_roundoff(np.float32)
    wanted = math.fsum(terms)
    magnitude = math.fsum(np.abs(terms))
    assert abs(float(exact(total)) - wanted) <= 3 * NUM_TERMS * u**2 * magnitude
    # The high word is the total rounded: half an ulp, and the bound above once more.
    assert abs(float(total.value) - wanted) <= u * abs(wanted) + 3 * NUM_TERMS * u**2 * magnitude
    assert abs(float(total.error)) <= u * abs(float(total.value))


@pytest.mark.parametrize("kind", ["positive", "heavy-tailed", "below the last bit", "signed"])
def test_add_keeps_a_million_float32_terms(kind):
    terms = series(kind)
    assert_accurate_total(running_total(terms), terms.astype(np.float64))


def test_a_plain_float32_total_would_not_do():
    """The bound of the test above means something: a plain sum misses it by far."""
    terms = series("below the last bit")
    plain = jax.jit(lambda x: jax.lax.scan(lambda s, t: (s + t, None), jnp.float32(0), x)[0])
    assert abs(float(plain(terms)) - math.fsum(terms.astype(np.float64))) > 9e-4


@pytest.mark.parametrize("kind", ["positive", "heavy-tailed", "signed"])
def test_add_sums_keeps_a_million_two_word_terms(kind):
    values = series(kind)
    shares = np.random.default_rng(3).uniform(-1, 1, NUM_TERMS)
    # A low word is at most half an ulp of its high word.
    errors = (values * shares * unit_roundoff(np.float32) / 2).astype(np.float32)
    terms = values.astype(np.float64) + errors.astype(np.float64)
    assert_accurate_total(running_total_of_sums(values, errors), terms)


@pytest.mark.parametrize("dtype", FLOATS)
def test_start_sum_carries_no_error(dtype):
    total = start_sum(jnp.asarray([1.5, -2.25], dtype))
    assert total.value.dtype == total.error.dtype == dtype
    np.testing.assert_array_equal(total.value, [1.5, -2.25])
    np.testing.assert_array_equal(total.error, 0)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("num_arms", [1, 2, 3, 31, 32, 33, 63, 65, 127, 1000, 100_000])
def test_arm_sum_error_grows_like_the_logarithm(num_arms, dtype):
    """As if 32 arms were added one by one and the groups in a tree: 2.6e-6 at 100,000 arms.

    Each addition errs by u of a partial sum. One by one throughout it could be 6e-3.
    """
    rng = np.random.default_rng(num_arms)
    depth = 31 + max(0, math.ceil(math.log2(num_arms / 32)))
    bound = depth * unit_roundoff(dtype)
    for x in (
        rng.uniform(0, 1, num_arms),
        1 / np.arange(1, num_arms + 1),
        10.0 ** rng.uniform(-9, 0, num_arms),
        np.full(num_arms, 1 / num_arms),
        rng.normal(size=num_arms),
    ):
        rounded = x.astype(dtype)
        wanted = math.fsum(rounded.astype(np.float64))
        magnitude = math.fsum(np.abs(rounded).astype(np.float64))
        got = jit_arm_sum(rounded)
        assert got.dtype == dtype
        assert got.shape == ()
        assert abs(float(got) - wanted) <= bound * magnitude


@pytest.mark.parametrize("mapped", ["vmap", "lanes"])
def test_arm_sum_of_many_games_side_by_side(mapped):
    """The same bound, 2.6e-6 at 100,000 arms, with four games next to each other."""
    num_arms = 100_000
    x = np.random.default_rng(4).uniform(0, 1, (num_arms, 4)).astype(np.float32)
    function = jax.vmap(arm_sum, in_axes=-1) if mapped == "vmap" else over_lanes(arm_sum)
    bound = (31 + math.ceil(math.log2(num_arms / 32))) * unit_roundoff(np.float32)
    for got, column in zip(jax.jit(function)(x).tolist(), x.T.astype(np.float64)):
        assert math.isclose(got, math.fsum(column), rel_tol=bound)


def test_arm_sum_takes_vectors_only():
    with pytest.raises(AssertionError):
        arm_sum(jnp.ones((2, 3)))


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32])
@pytest.mark.parametrize("num_arms", [1, 2, 5, 63, 64, 65, 200])
def test_pick_equals_indexing(num_arms, dtype):
    """Bit for bit, below and above the number of arms where the method changes."""
    rng = np.random.default_rng(num_arms)
    x = (rng.normal(size=num_arms) * 10.0 ** rng.uniform(-8, 8, num_arms)).astype(dtype)
    arms = jnp.arange(num_arms, dtype=jnp.int32)
    picked = jax.vmap(jit_pick, in_axes=(None, 0))(x, arms)
    assert picked.dtype == dtype
    np.testing.assert_array_equal(picked, x)


@pytest.mark.parametrize("num_arms", [5, 100])
def test_pick_is_not_spoilt_by_the_other_arms(num_arms):
    """Infinite or undefined entries elsewhere stay where they are."""
    x = np.full(num_arms, np.nan, np.float32)
    x[0] = np.inf
    x[3] = 0.125
    assert float(jit_pick(x, jnp.int32(3))) == 0.125
    assert float(jit_pick(x, jnp.int32(0))) == np.inf


@pytest.mark.parametrize("dtype", FLOATS)
def test_once_is_the_number_itself(dtype):
    largest = np.finfo(dtype).max
    x = np.array([0, -1.5, 1e-30, largest, -largest, np.inf, -np.inf, np.nan], dtype)
    for number, got in zip((*x, x), jax.jit(keep)(*x, x), strict=True):
        np.testing.assert_array_equal(got, number)
    assert jax.grad(lambda x: keep(x)[0])(dtype(3)) == 1


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("num_arms", [1, 7, 100])
def test_add_at_changes_one_arm_as_add_does(dtype, num_arms):
    rng = np.random.default_rng(num_arms)
    value = (rng.normal(size=num_arms) * 10.0 ** rng.integers(-5, 6, num_arms)).astype(dtype)
    totals = Sum(value, (value * rng.uniform(-1, 1, num_arms) * unit_roundoff(dtype)).astype(dtype))
    for arm in {0, num_arms // 2, num_arms - 1}:
        term = dtype(rng.normal())
        wanted = [np.array(word) for word in totals]
        alone = jax.jit(add)(Sum(*(word[arm] for word in totals)), term)
        for word, new in zip(wanted, alone):
            word[arm] = new
        got = jax.jit(add_at)(totals, jnp.int32(arm), term)
        for word, expected in zip(got, wanted, strict=True):
            np.testing.assert_array_equal(word, expected)


def test_choose_takes_each_from_its_side():
    """Whatever the other side has there; NumPy's choice is the oracle."""
    takes = np.array([True, False, True, False, True, False])
    new = np.array([1.5, np.nan, np.inf, np.inf, np.nan, 2], np.float32)
    old = np.array([np.nan, -2.5, np.inf, -np.inf, 1, np.nan], np.float32)
    for exact in (True, False):
        take = jax.jit(functools.partial(choose, exact=exact))
        for a, b in ((new, old), (np.arange(6), -np.arange(6)), (takes, ~takes)):
            got = take(takes, jnp.asarray(a), jnp.asarray(b))
            np.testing.assert_array_equal(got, np.where(takes, a, b))
    zeros = jax.jit(functools.partial(choose, exact=True))(takes, jnp.zeros(6), -jnp.zeros(6))
    np.testing.assert_array_equal(np.signbit(zeros), ~takes)
