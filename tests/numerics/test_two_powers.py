"""The hybrid of two powers: its distribution against bisection."""

import math

import jax
import jax.numpy as jnp
import known_range_loops
import numpy as np
import pytest
from tiers import some_in_default

from sfmab_jax.numerics.two_powers import two_power_distribution

DTYPES = pytest.mark.parametrize("dtype", [np.float32, np.float64])


def power_of(num_arms):
    return 1 - 1 / (4 * math.log(num_arms))


@DTYPES
@pytest.mark.parametrize("num_arms", some_in_default([2, 3, 10, 300], [2, 10]))
def test_the_distribution_is_that_of_bisection(num_arms, dtype):
    """From guesses right, flat and wrong; gaps over twelve powers of ten."""
    generator = np.random.default_rng(num_arms)
    a = power_of(num_arms)
    solve = jax.jit(two_power_distribution, static_argnums=0)
    for _ in range(8):
        ratio = dtype(generator.uniform(1e-4, 1) / (2 * num_arms))
        gaps = 10 ** generator.uniform(-8, 4, num_arms) * generator.choice([0, 1], num_arms)
        gaps[generator.integers(num_arms)] = 0
        gaps = gaps.astype(dtype)
        wanted = known_range_loops.level_point(
            lambda p, r=float(ratio): -(p ** (a - 1)) - r * p**-a,
            gaps.astype(np.float64),
            -40.0,
            0.0,
        )
        for guess in (wanted, np.full(num_arms, 1 / num_arms), wanted[::-1], np.eye(num_arms)[0]):
            got = np.asarray(solve(a, ratio, gaps, guess.astype(dtype)), np.float64)
            assert abs(got.sum() - 1) < 10 * np.finfo(dtype).eps
            tolerance = 80 * np.finfo(dtype).eps + 1e-11
            np.testing.assert_allclose(got, wanted, rtol=tolerance)


def test_derivatives_are_those_of_differences():
    """The first, of ratio and gaps; a guess has none."""
    gaps, ratio, guess = jnp.asarray([0, 0.4, 3.0]), jnp.float64(0.1), jnp.ones(3) / 3

    def solve(ratio, gaps, guess):
        return two_power_distribution(0.8, ratio, gaps, guess)

    by_ratio, by_gaps, by_guess = jax.jacobian(solve, (0, 1, 2))(ratio, gaps, guess)
    step = 1e-6

    def difference(move):
        ahead, behind = (solve(*move(sign * step), guess) for sign in (1, -1))
        return (ahead - behind) / (2 * step)

    np.testing.assert_allclose(by_ratio, difference(lambda s: (ratio + s, gaps)), atol=1e-9)
    for i in (1, 2):
        moved = difference(lambda s, i=i: (ratio, gaps.at[i].add(s)))
        np.testing.assert_allclose(by_gaps[:, i], moved, atol=1e-9)
    np.testing.assert_array_equal(by_guess, 0)
