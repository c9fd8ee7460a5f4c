"""The hybrid of a square root and entropy: its psi and its distribution, against bisection."""

import delayed_loops
import jax
import jax.numpy as jnp
import mpmath as mp
import numpy as np
import pytest
from tiers import some_in_default

from sfmab_jax.numerics.hybrid import hybrid_distribution, hybrid_psi
from sfmab_jax.numerics.simplex import distribution_of_gaps
from sfmab_jax.potentials import tsallis

DTYPES = pytest.mark.parametrize("dtype", [np.float32, np.float64])


@DTYPES
def test_psi_is_the_inverse_to_the_last_bits(dtype):
    """For weights from 0 to 1e8 and p from 1e-18 to 1, in 40 digits."""
    generator = np.random.default_rng(0)
    weights = np.concatenate([[0, 0], 10 ** generator.uniform(-12, 8, 98)]).astype(dtype)
    roots = np.concatenate(
        [[1], 10 ** generator.uniform(-6, 0, 49) + 1, 10.0 ** np.arange(50) ** 0.56]
    )
    u = -np.maximum(roots + 2 * weights.astype(np.float64) * np.log(roots), 1).astype(dtype)
    got = np.asarray(jax.jit(hybrid_psi)(jnp.asarray(weights), jnp.asarray(u)), np.float64)
    with mp.workdps(40):
        for weight, value, root, p in zip(weights, u, roots, got):
            w, v = mp.mpf(float(weight)), -mp.mpf(float(value))
            z = mp.findroot(lambda z, w=w, v=v: mp.exp(z) + 2 * w * z - v, mp.log(mp.mpf(root)))
            assert abs(p * mp.exp(2 * z) - 1) < 20 * np.finfo(dtype).eps


@DTYPES
@pytest.mark.parametrize("num_arms", some_in_default([2, 3, 10, 300], [2, 10]))
def test_the_distribution_is_that_of_bisection(num_arms, dtype):
    """From any guess of the leader; gaps over sixteen powers of ten, weights over ten."""
    generator = np.random.default_rng(num_arms)
    solve = jax.jit(hybrid_distribution)
    for _ in range(12):
        weight = dtype(generator.choice([0, 10 ** generator.uniform(-6, 4)], p=[0.2, 0.8]))
        gaps = 10 ** generator.uniform(-8, 8, num_arms) * generator.choice([0, 1], num_arms)
        gaps[generator.integers(num_arms)] = 0
        gaps = gaps.astype(dtype)
        wanted = delayed_loops.hybrid_weights(gaps.astype(np.float64), 1.0, float(weight))
        seen = wanted > 1e-30
        for leader in (1 / num_arms, 1.0, wanted.max()):
            got = np.asarray(solve(weight, gaps, dtype(leader)), np.float64)
            assert abs(got.sum() - 1) < 10 * np.finfo(dtype).eps
            # Below 1e-30 the bisection ends before the distribution does.
            tolerance = 40 * np.finfo(dtype).eps + 1e-12
            np.testing.assert_allclose(got[seen], wanted[seen], rtol=tolerance)


def test_without_entropy_it_is_the_square_root():
    """f = -2 sqrt(x) here, and -sqrt(x) there."""
    gaps = jnp.asarray([0, 0.3, 5.0, 1e6])
    got = jax.jit(hybrid_distribution)(jnp.float64(0), gaps, jnp.float64(0.9))
    np.testing.assert_allclose(got, distribution_of_gaps(tsallis(0.5), gaps / 2), rtol=1e-13)


def test_much_entropy_is_exponential_weights():
    gaps = jnp.asarray([0, 0.3, 1.0, 2.0])
    got = jax.jit(hybrid_distribution)(jnp.float64(1e9), 1e9 * gaps, jnp.float64(0.5))
    np.testing.assert_allclose(got, jax.nn.softmax(-gaps), rtol=1e-8)


def test_derivatives_are_those_of_differences():
    """The first, of weight and gaps; a guess has none."""
    gaps, weight = jnp.asarray([0, 0.4, 3.0]), jnp.float64(0.7)
    solve = jax.jit(hybrid_distribution)
    by_weight, by_gaps, by_guess = jax.jacobian(hybrid_distribution, (0, 1, 2))(
        weight, gaps, jnp.float64(0.6)
    )
    step = 1e-6

    def difference(move):
        ahead, behind = (solve(*move(sign * step), jnp.float64(0.6)) for sign in (1, -1))
        return (ahead - behind) / (2 * step)

    np.testing.assert_allclose(by_weight, difference(lambda s: (weight + s, gaps)), atol=1e-9)
    for i in (1, 2):
        moved = difference(lambda s, i=i: (weight, gaps.at[i].add(s)))
        np.testing.assert_allclose(by_gaps[:, i], moved, atol=1e-9)
    np.testing.assert_array_equal(by_guess, 0)
