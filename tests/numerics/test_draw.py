"""The sampler's law, counted over its random bits and not estimated.

The arm does not decrease as the 64-bit integer made of the two words grows, and only the top 46
bits matter. So each arm owns an interval of 46-bit integers; bisection finds its ends exactly.
"""

from fractions import Fraction

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tiers import some_in_default

from sfmab_jax.engine.lanes.transform import over_lanes
from sfmab_jax.estimation import importance_weighted
from sfmab_jax.numerics.draw import draw_arm

BITS = 46
NUM_ARMS = [1, 2, 3, 10, 16, 17, 33, 100, 300, 1000, 5000]
FLOATS = [np.float32, np.float64]
ALL_ONES = np.uint32(0xFFFFFFFF)


def words_of(integer):
    """The two words whose top 46 bits are the integer, the rest 0."""
    first = (integer >> np.uint64(14)).astype(np.uint32)
    second = ((integer & np.uint64(0x3FFF)) << np.uint64(18)).astype(np.uint32)
    return first, second


def first_integers_past(draws, arms):
    """For each arm i the number of 46-bit integers whose arm is at most i."""

    def halve(_, ends):
        low, high = ends
        middle = (low + high) // 2
        past = draws(words_of(middle)) > arms
        return jnp.where(past, low, middle + 1), jnp.where(past, middle, high)

    low = jnp.zeros(arms.shape, jnp.uint64)
    high = jnp.full(arms.shape, 2**BITS, jnp.uint64)
    return jax.lax.fori_loop(0, BITS + 1, halve, (low, high))[1]


@jax.jit
def ends_with_vmap(probabilities, arms):
    return first_integers_past(jax.vmap(lambda words: draw_arm(probabilities, words)), arms)


@jax.jit
def ends_with_lanes(probabilities, arms):
    """The same with a copy of the probabilities in every lane, as when games are simulated."""
    copies = jnp.tile(probabilities[:, None], (1, len(arms)))
    return first_integers_past(lambda words: over_lanes(draw_arm)(copies, words), arms)


many_draws = jax.jit(jax.vmap(draw_arm, in_axes=(None, 0)))


def draws_at(probabilities, first, second) -> np.ndarray:
    """The arms at up to 1024 pairs of words; always so many, to compile once."""
    pairs = np.zeros((2, 1024), np.uint32)
    pairs[:, : len(first)] = first, second
    return np.asarray(many_draws(probabilities, tuple(pairs)))[: len(first)]


def counted_law(probabilities, arms, ends=ends_with_vmap) -> list[Fraction]:
    """The exact probability of each arm given."""
    both = np.stack([arms - 1, arms])
    past = np.asarray(ends(probabilities, jnp.asarray(both.ravel(), jnp.int32))).reshape(2, -1)
    # Every arm exceeds -1, so that the first end found is 0.
    return [Fraction(int(b) - int(a), 2**BITS) for a, b in zip(*past)]


def arms_to_count(num_arms: int) -> np.ndarray:
    """All of them; above 1000 the ends, the middle, the borders of groups and a few at random."""
    if num_arms <= 1000:
        return np.arange(num_arms)
    some = np.random.default_rng(0).integers(0, num_arms, 12)
    middle = num_arms // 2
    return np.unique([0, 1, 15, 16, 17, 255, 256, 257, middle, num_arms - 2, num_arms - 1, *some])


def vectors(num_arms: int) -> list[np.ndarray]:
    rng = np.random.default_rng(num_arms)
    made = [np.full(num_arms, 1 / num_arms), rng.dirichlet(np.ones(num_arms))]
    if num_arms == 1:
        return made
    for place in {0, num_arms // 2, num_arms - 1}:
        dominated = np.full(num_arms, 1e-9)
        dominated[place] = 1 - 1e-9 * (num_arms - 1)
        rare = rng.dirichlet(np.ones(num_arms))
        rare[place] = 0
        rare = (1 - 1e-9) * rare / rare.sum()
        rare[place] = 1e-9
        made += [dominated, rare]
    geometric = np.geomspace(1e-9, 1, num_arms)
    made.append(geometric / geometric.sum())
    # Sums that are off by 1e-6.
    made += [made[1] * (1 + 1e-6), made[2] * (1 - 1e-6)]
    return made if num_arms <= 100 else [made[2], *made[1::2]]


def assert_law(probabilities, arms, law):
    """Relatively to 1e-4 from 1e-9 up, and absolutely to 2^-44 everywhere.

    The 46-bit integers have a spacing of 2^-46 = 1.4e-14: 1.4e-5 of a probability of 1e-9.
    """
    exact = [Fraction(float(p)) for p in probabilities]
    total = sum(exact)
    for arm, got in zip(arms.tolist(), law):
        wanted = exact[arm] / total
        assert abs(got - wanted) <= Fraction(1, 2**44), arm
        # A hair below 1e-9, as float32(1e-9) and the division by the sum are.
        if wanted >= Fraction(9999, 10**13):
            assert abs(got - wanted) <= wanted / 10**4, arm


@pytest.mark.optimised
@pytest.mark.parametrize(
    ("num_arms", "dtype"),
    some_in_default(
        [(num_arms, dtype) for num_arms in NUM_ARMS for dtype in FLOATS],
        # One by one up to 16 arms, then in blocks, then in blocks of blocks.
        [(2, np.float32), (16, np.float64), (17, np.float32), (300, np.float32)],
    ),
)
def test_every_arm_has_its_probability(num_arms, dtype):
    arms = arms_to_count(num_arms)
    for vector in vectors(num_arms):
        probabilities = vector.astype(dtype)
        law = counted_law(probabilities, arms)
        assert_law(probabilities, arms, law)
        if len(arms) == num_arms:
            assert sum(law) == 1


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("num_arms", [2, 17])
def test_the_law_is_the_same_with_lanes(num_arms, dtype):
    arms = arms_to_count(num_arms)
    for vector in vectors(num_arms):
        probabilities = vector.astype(dtype)
        assert_law(probabilities, arms, counted_law(probabilities, arms, ends_with_lanes))


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("num_arms", some_in_default([2, 17, 100], [2, 17]))
def test_the_arm_grows_with_the_word_and_ignores_the_last_bits(num_arms, dtype):
    """What counting by bisection rests on, at random words and around every boundary."""
    rng = np.random.default_rng(7)
    for vector in vectors(num_arms)[1:4]:
        probabilities = vector.astype(dtype)
        law = counted_law(probabilities, np.arange(num_arms))
        ends = np.cumsum([int(chance * 2**BITS) for chance in law])
        around = (ends[:, None] + np.arange(-3, 4)).ravel()
        integers = np.concatenate([rng.integers(0, 2**BITS, 1024 - len(around)), around])
        integers = np.sort(np.clip(integers, 0, 2**BITS - 1)).astype(np.uint64)
        first, second = words_of(integers)
        drawn = draws_at(probabilities, first, second)
        assert drawn.dtype == np.int32
        assert np.all(np.diff(drawn) >= 0)
        assert drawn.min() >= 0
        assert drawn.max() < num_arms
        same = draws_at(probabilities, first, second | np.uint32(0x3FFFF))
        np.testing.assert_array_equal(same, drawn)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("num_arms", some_in_default([1, 2, 3, 17, 100], [2, 17]))
def test_the_importance_weighted_estimate_is_unbiased(num_arms, dtype):
    """The exact mean of the estimate over the random bits is the loss, to 1e-4 relative."""
    estimate = jax.jit(jax.vmap(importance_weighted().estimate, in_axes=((), None, None, 0, 0)))
    arms = np.arange(num_arms)
    rng = np.random.default_rng(8)
    for vector in vectors(num_arms):
        probabilities = vector.astype(dtype)
        losses = rng.normal(size=num_arms).astype(dtype)
        law = np.array([float(chance) for chance in counted_law(probabilities, arms)])
        estimates = estimate((), probabilities, probabilities, jnp.asarray(arms), losses)
        means = law @ np.asarray(estimates, np.float64)
        seen = probabilities >= 9.999e-10
        np.testing.assert_allclose(means[seen], losses[seen], rtol=1e-4, atol=0)


def with_zeros(num_arms: int) -> list[np.ndarray]:
    rng = np.random.default_rng(num_arms)
    made = []
    for zeros in (
        [0],
        [num_arms - 1],
        [num_arms // 2],
        range(num_arms // 2),
        range((num_arms + 1) // 2, num_arms),
        range(1, num_arms),
        range(num_arms - 1),
        range(0, num_arms, 2),
        [*range(num_arms // 2), *range(num_arms // 2 + 1, num_arms)],
    ):
        vector = rng.dirichlet(np.ones(num_arms))
        vector[list(zeros)] = 0
        if vector.sum() > 0:
            made.append(vector / vector.sum())
    return made


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("num_arms", some_in_default([2, 3, 10, 17, 100], [2, 17]))
def test_an_arm_of_probability_zero_is_never_drawn(num_arms, dtype):
    """Not by any word, the extreme ones included."""
    arms = np.arange(num_arms)
    first, second = [0, 0, ALL_ONES, ALL_ONES], [0, ALL_ONES, 0, ALL_ONES]
    for vector in with_zeros(num_arms):
        for scale in (1, 1 - 1e-6, 1 + 1e-6):
            probabilities = (scale * vector).astype(dtype)
            extreme = draws_at(probabilities, first, second)
            assert np.all(probabilities[extreme] > 0)
            # The extreme words give the first and the last arm that can be drawn.
            possible = np.flatnonzero(probabilities)
            assert extreme[0] == possible[0]
            assert extreme[-1] == possible[-1]
        law = counted_law(probabilities, arms)
        assert_law(probabilities, arms, law)
        assert all(law[arm] == 0 for arm in np.flatnonzero(probabilities == 0))
