"""The hybrid of two powers: its psi in high precision, its distribution against bisection."""

import math

import jax
import jax.numpy as jnp
import known_range_loops
import mpmath as mp
import numpy as np
import pytest
from tiers import some_in_default

from sfmab_jax.numerics.two_powers import two_power_distribution, two_power_psi

DTYPES = pytest.mark.parametrize("dtype", [np.float32, np.float64])


def power_of(num_arms):
    return 1 - 1 / (4 * math.log(num_arms))


@DTYPES
@pytest.mark.parametrize("num_arms", [2, 10, 10_000])
def test_psi_is_the_inverse_to_the_last_bits(num_arms, dtype):
    """For p from 1e-12 to 1, ratios from 0 to 1/(2n).

    ln p is rounded, and the rounding of u is magnified by up to 1 / (1 - a).
    """
    a = power_of(num_arms)
    p = 10.0 ** np.linspace(-12, 0, 60)
    psi = jax.jit(two_power_psi, static_argnums=0)
    for ratio in np.array([0, 1e-9, 1e-4, 0.5 / num_arms], dtype):
        u = -(p ** (a - 1) + float(ratio) * p**-a).astype(dtype)
        got, slope = psi(a, jnp.asarray(ratio), jnp.asarray(u))
        with mp.workdps(40):
            for value, rate, target in zip(got.tolist(), slope.tolist(), u.tolist()):
                x, c, r = mp.mpf(value), mp.mpf(a), mp.mpf(float(ratio))
                residual = x ** (c - 1) + r * x**-c + mp.mpf(target)
                steepness = (1 - c) * x ** (c - 1) + c * r * x**-c
                roundings = 10 - mp.log(x) + 2 / (1 - a)
                assert abs(residual / steepness) < roundings * np.finfo(dtype).eps
                assert abs(rate * steepness / x - 1) < 60 * np.finfo(dtype).eps


@DTYPES
@pytest.mark.parametrize("num_arms", some_in_default([2, 3, 10, 300], [2, 10]))
def test_the_distribution_is_that_of_bisection(num_arms, dtype):
    """From any guess of the leader; gaps over twelve powers of ten."""
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
        for leader in (1 / num_arms, 1.0, wanted.max()):
            got = np.asarray(solve(a, ratio, gaps, dtype(leader)), np.float64)
            assert abs(got.sum() - 1) < 10 * np.finfo(dtype).eps
            tolerance = 80 * np.finfo(dtype).eps + 1e-11
            np.testing.assert_allclose(got, wanted, rtol=tolerance)


def test_derivatives_are_those_of_differences():
    """The first, of ratio and gaps; a guess has none."""
    gaps, ratio, guess = jnp.asarray([0, 0.4, 3.0]), jnp.float64(0.1), jnp.float64(0.6)

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
