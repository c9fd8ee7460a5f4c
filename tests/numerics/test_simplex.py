"""The normaliser lambda(theta) and the distribution psi(theta + lambda(theta)), appendix A."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import oracles
import pytest
from mpmath import mp, mpf
from potential_cases import FLOATS, every_float
from simplex_cases import POTENTIALS, distributions, every_potential, lambdas
from tiers import some_in_default

from sfmab_jax.numerics.simplex import distribution, distribution_of_gaps, normalizer
from sfmab_jax.potentials import log_barrier, negative_entropy

# psi(u) = (-u/c)^(-r) magnifies a relative error of u by r; exp by |u|, at most log n on average.
EXPONENTS = {
    "entropy_with_barrier": 2.0,
    "log_barrier": 1,
    "negative_entropy": 1,
    "tsallis(0.5)": 2,
    "tsallis(0.8)": 5,
    "made": 2,
}
SIZES = [1, 2, 3, 10, 100, 1000, 10_000, 100_000]


def scores(num_arms: int, dtype) -> np.ndarray:
    """Adversarial theta, one per row, spread over 1e-30 to 1e30."""
    rng = np.random.default_rng(num_arms)
    place = np.arange(num_arms)
    shapes = [
        np.where(place == num_arms // 2, 0.0, -1.0),  # one leader
        np.where(place <= num_arms // 2, 0.0, -1.0),  # half and half
        -np.geomspace(1e-12, 1, num_arms),
        -(place / num_arms),
        rng.uniform(-1, 1, num_arms),
        np.zeros(num_arms),
    ]
    scales = [1e-30, 1e-9, 1e-3, 0.3, 1, 3, 30, 1e3, 1e5, 1e9, 1e18, 1e30]
    # The hardest scales lie where gaps and n are comparable.
    scales += [num_arms**0.5, num_arms, 10 * num_arms]
    rows = [scale * shape for shape in shapes[:-1] for scale in scales]
    rows += [shapes[-1] + offset for offset in (0, 1e-30, 3.7, -1e30)]
    for _ in range(3):
        rows.append(rng.choice([-1, 1], num_arms) * 10.0 ** rng.uniform(-30, 30, num_arms))
        rows.append(-(10.0 ** rng.uniform(-3, 6, num_arms)))
        rows.append(1e6 + 100 * rng.normal(size=num_arms))
        rows.append(-1e30 - 1e24 * rng.uniform(size=num_arms))
    if num_arms > 1000:
        rows = rows[::3]
    return np.array(rows).astype(dtype)


@every_float
@pytest.mark.parametrize(
    ("name", "num_arms"),
    some_in_default(
        [(name, n) for name in POTENTIALS for n in (SIZES if name != "made" else [1, 2, 10, 300])],
        [
            *((name, n) for name in POTENTIALS for n in (1, 2, 10)),
            ("log_barrier", 100_000),
            ("negative_entropy", 1000),
        ],
    ),
)
def test_the_distribution_sums_to_one(name, num_arms, dtype):
    """At rounding level: r (2 + log2 n) eps, summed exactly.

    With u = theta + lambda and nu its largest entry, rounding nu to its last bit moves the sum by
    at most eps/2 |nu| sum psi'(u) <= r eps/2, as psi'(u) = r psi(u) / |u|; for the entropy
    |nu| <= log n. Each term carries r times the rounding of u, and its own. Newton's method stops
    where a sum of n terms, added in a tree of depth log2 n, cannot be told from 1.
    """
    theta = scores(num_arms, dtype)
    p = np.asarray(distributions(POTENTIALS[name][0], theta))
    assert p.dtype == dtype
    assert np.all(p >= 0)
    assert np.all(p <= 1)
    bound = EXPONENTS[name] * (2 + math.log2(num_arms)) * float(np.finfo(dtype).eps)
    residuals = [abs(math.fsum(row) - 1) for row in p.astype(np.float64)]
    assert max(residuals) <= bound, (np.argmax(residuals), max(residuals) / bound)


@every_float
@every_potential
@pytest.mark.parametrize("num_arms", some_in_default([1, 2, 3, 10, 100], [1, 2, 10]))
def test_each_probability_is_relatively_right(num_arms, name, dtype):
    """Against 60 digits: a few roundings times the conditioning.

    The sum of n terms fixes lambda only up to its own rounding, which the largest probability
    feels up to sqrt(n) / 2 times (one leader among many). For the entropy and for the rounded
    exponent r, a probability p feels a rounding |log p| times. Below the smallest normal number
    there is no relative accuracy to be had.
    """
    made, reference = POTENTIALS[name]
    theta = scores(num_arms, dtype)
    p = np.asarray(distributions(made, theta))
    some = slice(None, None, 2 if num_arms < 100 else 7)
    eps, tiny = float(np.finfo(dtype).eps), float(np.finfo(dtype).tiny)
    for row, got in zip(theta[some], p[some]):
        for value, wanted in set(zip(got.tolist(), oracles.distribution(reference, row))):
            if wanted < 4 * tiny:
                assert value <= 5 * tiny
                continue
            condition = EXPONENTS[name] * (2 + math.sqrt(num_arms) / 2) + abs(mp.log(wanted))
            assert abs(mpf(value) - wanted) <= 2 * eps * condition * wanted


@every_potential
@pytest.mark.parametrize("num_arms", some_in_default([2, 10, 100], [2, 10]))
def test_the_normalizer_in_float64(num_arms, name):
    """lambda itself, relative to its own size or to that of the largest score."""
    made, reference = POTENTIALS[name]
    theta = scores(num_arms, np.float64)[:: 3 if num_arms < 100 else 7]
    for row, got in zip(theta, np.asarray(lambdas(made, theta))):
        wanted = oracles.normalizer(reference, row)
        size = max(abs(wanted), abs(mpf(float(row.max()))), 1)
        assert abs(mpf(float(got)) - wanted) <= 1e-14 * size


@pytest.mark.parametrize(
    ("gaps", "wanted"),
    [
        ([0.0, 1.0], 1.6180339887498948),
        ([0.0, 0.0, 3.0], math.sqrt(6)),
        ([0.0] + [10.0] * 9, math.sqrt(10)),
        ([0.0, 1.0, 2.0, 3.0], 2.8038863590512494),
    ],
)
def test_known_values_of_the_log_barrier(gaps, wanted):
    """mu = -lambda for theta = -x: the golden ratio and square roots. Within 4 roundings."""
    for dtype in FLOATS:
        got = -float(jax.jit(normalizer)(log_barrier(), -np.array(gaps, dtype)))
        assert math.isclose(got, wanted, rel_tol=4 * float(np.finfo(dtype).eps))


def test_the_paper_s_interval_holds_a_spurious_root():
    """For theta = (0, -1) a second root gives (-1.6, 2.6); ours is the positive one."""
    p = np.asarray(distribution(log_barrier(), jnp.asarray([0.0, -1.0])))
    np.testing.assert_allclose(p, [0.6180339887498949, 0.3819660112501051], rtol=1e-15)


@every_float
def test_two_arms_in_closed_form(dtype):
    """p_1 = sigma(asinh(d/2)) for the log barrier and sigma(d) for the entropy, d the gap."""
    d = np.concatenate([-np.geomspace(1e-6, 1e6, 25), np.geomspace(1e-6, 1e6, 25)]).astype(dtype)
    theta = np.stack([np.zeros_like(d), -d], axis=1)
    barrier = np.asarray(distributions(log_barrier(), theta))[:, 0]
    entropy = np.asarray(distributions(negative_entropy(), theta))[:, 0]
    eps, tiny = float(np.finfo(dtype).eps), float(np.finfo(dtype).tiny)
    with mp.workdps(oracles.DIGITS):
        for gap, p, q in zip(oracles.exact(d), barrier, entropy):
            wanted = 1 / (1 + mp.exp(-mp.asinh(gap / 2)))
            assert oracles.relative_error(p, wanted) <= 4 * eps
            wanted = 1 / (1 + mp.exp(-gap))
            # exp(-gap) feels the rounding of the gap |log p| times, until it underflows.
            if wanted > 4 * tiny:
                assert oracles.relative_error(q, wanted) <= 2 * eps * (2 + abs(mp.log(wanted)))
            else:
                assert q <= 5 * tiny


@every_potential
def test_the_order_of_the_arms_does_not_matter(name):
    rng = np.random.default_rng(1)
    theta = rng.normal(size=(1, 10)) * 3
    order = rng.permutation(10)
    p = np.asarray(distributions(POTENTIALS[name][0], theta))
    np.testing.assert_allclose(
        distributions(POTENTIALS[name][0], theta[:, order]), p[:, order], rtol=1e-14
    )


@every_potential
def test_from_scores_or_from_gaps(name):
    theta = np.random.default_rng(2).normal(size=10) * 3
    made, _ = POTENTIALS[name]
    np.testing.assert_array_equal(
        jax.jit(distribution)(made, theta), jax.jit(distribution_of_gaps)(made, theta.max() - theta)
    )


@every_potential
def test_with_and_without_jit(name):
    """The same up to a few roundings, r times those of lambda."""
    made, _ = POTENTIALS[name]
    theta = jnp.asarray(np.random.default_rng(3).normal(size=10) * 3)
    np.testing.assert_allclose(
        jax.jit(distribution)(made, theta), distribution(made, theta), rtol=1e-14
    )
    np.testing.assert_allclose(
        jax.jit(normalizer)(made, theta), normalizer(made, theta), rtol=1e-14
    )


def test_scores_are_a_vector():
    with pytest.raises(AssertionError):
        distribution(log_barrier(), jnp.zeros((2, 2)))
    with pytest.raises(AssertionError):
        normalizer(log_barrier(), jnp.zeros(()))
