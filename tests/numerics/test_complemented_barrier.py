"""The log barrier with the entropy of the complement and weights: against bisection."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from loop_parts import bisect
from tiers import some_in_default

from sfmab_jax.numerics.complemented_barrier import complemented_distribution

DTYPES = pytest.mark.parametrize("dtype", [np.float32, np.float64])
solve = jax.jit(complemented_distribution)


def by_bisection(weights, gamma, gaps):
    """p and 1 - p, by halvings of the log-odds y within halvings of the level, all to the end."""

    def log_odds(level):
        low, high = np.full(len(gaps), -200.0), np.full(len(gaps), 200.0)
        for _ in range(70):
            middle = (low + high) / 2
            slope = weights * (gamma * np.logaddexp(0, middle) - np.exp(-middle))
            is_low = slope < level - gaps
            low, high = np.where(is_low, middle, low), np.where(is_low, high, middle)
        return (low + high) / 2

    def excess(level):
        y = log_odds(level)
        k = y.argmax()
        others = np.delete(1 / (1 + np.exp(-y)), k).sum()
        return others - 1 / (1 + np.exp(y[k]))

    n = len(gaps)
    at_centre = weights * (1 - n - gamma * np.log1p(-1 / n)) + gaps
    y = log_odds(bisect(excess, at_centre.min() - 1e-9, at_centre.max() + 1e-9))
    return 1 / (1 + np.exp(-y))


@DTYPES
@pytest.mark.parametrize("num_arms", some_in_default([2, 3, 10, 100], [2, 10]))
def test_the_distribution_is_that_of_bisection(num_arms, dtype):
    """From guesses right, flat and wrong; gaps over twelve powers of ten, weights over one."""
    generator = np.random.default_rng(num_arms)
    for _ in range(6):
        gamma = dtype(generator.choice([0.7, 9.2, 20.7]))
        weights = generator.uniform(1, 10, num_arms).astype(dtype)
        gaps = 10 ** generator.uniform(-6, 6, num_arms) * generator.choice([0, 1], num_arms)
        gaps[generator.integers(num_arms)] = 0
        gaps = gaps.astype(dtype)
        exact = [np.asarray(x, np.float64) for x in (weights, gamma, gaps)]
        wanted = by_bisection(*exact)
        for guess in (wanted, np.full(num_arms, 1 / num_arms), wanted[::-1], np.eye(num_arms)[0]):
            got = np.asarray(solve(weights, gamma, gaps, guess.astype(dtype)), np.float64)
            assert abs(got.sum() - 1) < 10 * np.finfo(dtype).eps
            np.testing.assert_allclose(got, wanted, rtol=60 * np.finfo(dtype).eps + 1e-12)


def test_one_arm_has_all():
    np.testing.assert_array_equal(solve(*map(jnp.float64, ([2.0], 9.0, [0.0], [1.0]))), 1)


def test_derivatives_are_those_of_differences():
    """The first, of weights, gamma and gaps; a guess has none."""
    arguments = [jnp.asarray(x, float) for x in ([1.2, 3, 2], 9.2, [0, 0.4, 30], [0.5, 0.3, 0.2])]
    derivatives = jax.jacobian(complemented_distribution, (0, 1, 2, 3))(*arguments)
    step = 1e-6
    for place in (0, 1, 2):
        for index in np.ndindex(arguments[place].shape):
            ahead, behind = (
                solve(*arguments[:place], moved, *arguments[place + 1 :])
                for moved in (arguments[place].at[index].add(sign * step) for sign in (1, -1))
            )
            got = derivatives[place][(slice(None), *index)]
            np.testing.assert_allclose(got, (ahead - behind) / (2 * step), atol=1e-9)
    np.testing.assert_array_equal(derivatives[3], 0)
