"""Bregman divergences of the potentials, against high-precision references; section 3."""

import math

import jax
import numpy as np
import oracles
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mpmath import mp, mpf
from potential_cases import (
    BUILT_IN,
    MADE,
    POINTS,
    POTENTIALS,
    assert_close,
    duals,
    every_built_in,
    every_float,
    every_made,
    every_potential,
    rounding,
)

from sfmab_jax.numerics.remainders import log_one_plus_part, log_remainder
from sfmab_jax.potentials import log_barrier


@jax.jit
def _divergences(made, y, x):
    return made.divergence(y, x)


def divergences(made, y, x):
    """Breg_f(y || x) of arrays or numbers, NumPy; always of 300 pairs, for few programs."""
    y, x = np.broadcast_arrays(y, x)
    found = _divergences(made, np.resize(y, 300), np.resize(x, 300))
    return np.asarray(found)[: y.size].reshape(y.shape)


def check_divergence(made, reference, y, x, bound):
    got = divergences(made, y, x)
    assert np.all(np.isfinite(got)), list(zip(y[~np.isfinite(got)], x[~np.isfinite(got)]))
    assert np.all(got >= 0)
    wanted = [oracles.divergence(reference, *pair) for pair in zip(y, x)]
    errors = [oracles.relative_error(*pair) for pair in zip(got, wanted)]
    limits = np.broadcast_to(bound, len(errors))
    failed = [i for i, (error, limit) in enumerate(zip(errors, limits)) if not error <= limit]
    assert not failed, [(y[i], x[i], got[i], mp.nstr(wanted[i], 12)) for i in failed[:5]]


def close_pairs(dtype):
    """y = x (1 + d) with |d| from 0.2 down to an ulp."""
    rng = np.random.default_rng(1)
    eps = float(np.finfo(dtype).eps)
    change = np.geomspace(2 * eps, 0.2, 60) * rng.choice([-1, 1], 60)
    x = (10.0 ** rng.uniform(-9, 0, 60)).astype(dtype)
    y = (x * (1 + change)).astype(dtype)
    assert np.all(x != y)
    return y, x


@every_float
def test_the_remainder_of_the_logarithm(dtype):
    """z - log(1 + z) at z, or at 1 + z where that is small: relatively to 32 roundings.

    Just below z = -1/4, where it is 0.038, the terms of size 0.7 of the formula are off by half a
    rounding each: 20 roundings of the result.
    """
    sizes = np.geomspace(1e-12, 0.9, 400)
    z = np.concatenate([sizes, -sizes, np.geomspace(0.2, 1e30, 300)]).astype(dtype)
    small = np.geomspace(1e-30, 0.5, 300).astype(dtype)
    ratio = np.concatenate([1 + z, small])
    z = np.concatenate([z, small - 1]).astype(dtype)
    got = jax.jit(log_remainder)(z, ratio)
    with mp.workdps(oracles.DIGITS):
        for mine, x, r in zip(np.asarray(got), z, ratio):
            exact = mpf(float(r)) - 1 if r <= 0.5 else mpf(float(x))
            wanted = exact - mp.log(1 + exact)
            assert oracles.relative_error(float(mine), wanted) <= rounding(dtype, 32), x
    slope = jax.jit(jax.vmap(jax.grad(lambda z: log_remainder(z, 1 + z))))(z[:700])
    np.testing.assert_allclose(slope, z[:700] / (1 + z[:700]), rtol=rounding(dtype, 64))


@every_float
@every_built_in
def test_divergence_of_close_points(name, dtype):
    """Relatively accurate: y - x is exact, and then there are fewer than 16 roundings."""
    made, reference = BUILT_IN[name]
    check_divergence(made, reference, *close_pairs(dtype), rounding(dtype, 16))


@every_float
@every_made
def test_made_divergence_of_close_points(name, dtype):
    """From psi^{-1} alone: psi^{-1}(y) - psi^{-1}(x) cancels, and |y/x - 1| of it is left.

    Relative to psi^{-1}(x) / (x psi^{-1}'(x)): that is 1 for the log barrier, 2 for the Tsallis
    one and |log x| <= 21 for the entropy, times a handful of roundings.
    """
    made, reference = MADE[name]
    y, x = close_pairs(dtype)
    change = np.abs((y.astype(np.float64) - x) / x)
    check_divergence(made, reference, y, x, rounding(dtype, 64) * (1 + 1 / change))


@every_float
@every_potential
def test_divergence_of_distant_points(name, dtype):
    """From 1e-9 to 1 and back. The plain formulas lose at most six bits beyond the series.

    In float64 the 8 nodes of the Tsallis series leave 1e-13 at the edge of its range.
    """
    made, reference = POTENTIALS[name]
    points = (10.0 ** np.array([-9, -7.5, -5.1, -3, -2.2, -1, -0.6, -0.3, 0])).astype(dtype)
    y, x = (grid.ravel() for grid in np.meshgrid(points, points))
    y, x = y[y != x], x[y != x]
    bound = 1e-12 if dtype == np.float64 else rounding(dtype, 64)
    check_divergence(made, reference, y, x, bound)


@every_float
@every_potential
def test_divergence_of_equal_points_is_zero(name, dtype):
    made, _ = POTENTIALS[name]
    x = POINTS.astype(dtype)
    np.testing.assert_array_equal(divergences(made, x, x), 0)


@every_built_in
def test_divergence_is_that_of_the_conjugate_turned_round(name):
    """Claim 11: Breg_f(psi(v) || psi(u)) = Breg_f*(u || v)."""
    made, reference = BUILT_IN[name]
    points = np.array([1e-6, 1e-3, 0.1, 0.3, 0.9])
    y, x = (grid.ravel() for grid in np.meshgrid(points, points))
    got = divergences(made, y, x)
    with mp.workdps(oracles.GAP_DIGITS):
        wanted = []
        for a, b in zip(oracles.exact(y), oracles.exact(x)):
            v, u = reference.inverse(a), reference.inverse(b)
            f_u, f_v = (w * reference.psi(w) - reference.f(reference.psi(w)) for w in (u, v))
            wanted.append(f_u - f_v - reference.psi(v) * (u - v))
        # Equal points give 0 up to the digits of the reference.
        assert_close(got, wanted, 1e-9 if name == "negative_entropy" else 1e-12, 1e-90)


@every_built_in
def test_the_local_norm_lower_bound(name):
    """Claim 12: for y <= psi(u + phi), Breg_f(y || x) >= (x - y)^2 / (2 m(u)), m >= psi'(u)."""
    made, reference = BUILT_IN[name]
    rng = np.random.default_rng(2)
    x = 10.0 ** rng.uniform(-3, 0, 300)
    ceiling = x * (1 + 10.0 ** rng.uniform(-3, 2, 300))
    y = ceiling * rng.uniform(0.01, 1, 300)
    u, top = duals(reference, x), duals(reference, ceiling)
    m = (ceiling - x) / (top - u)
    slope = np.array([float(reference.slope(mpf(float(v)))) for v in u])
    # (top - u) cancels down to 1e-3 of u: 1e-12 relative.
    assert np.all(m >= slope * (1 - 1e-12))
    bound = (x - y) ** 2 / (2 * m)
    assert np.all(divergences(made, y, x) >= bound * (1 - 1e-10))


@every_built_in
def test_the_triangle_is_smaller_than_the_area_under_psi(name):
    """Claim 15: (x - y)^2 / (2m) <= the integral of |psi - y| from v to u = Breg_f(y || x)."""
    made, reference = BUILT_IN[name]
    for x, y, ceiling in [(0.3, 0.05, 0.6), (0.3, 0.5, 0.6), (0.3, 0.6, 0.6), (0.01, 0.9, 1.0)]:
        u, v, top = (reference.inverse(mpf(value)) for value in (x, y, ceiling))
        pieces = mp.linspace(min(u, v), max(u, v), 9)
        area = mp.quad(lambda s, y=y: abs(reference.psi(s) - mpf(y)), pieces)
        triangle = (mpf(x) - mpf(y)) ** 2 * (top - u) / (2 * (mpf(ceiling) - mpf(x)))
        assert triangle <= area
        got = float(divergences(made, y, x))
        # The far branch of the divergence: 64 roundings, and the quadrature's own 1e-13.
        assert abs(got - float(area)) <= 1e-12 * float(area)


unit = st.floats(1e-6, 1.0)


@settings(deadline=None, derandomize=True, database=None, max_examples=300)
@given(unit, unit)
def test_the_log_barrier_bound_on_the_unit_square(x, y):
    """Claim 13, with the stronger denominator 2 x max(x, y); equality only at x = y."""
    got = float(divergences(log_barrier(), y, x))
    local = (x - y) ** 2 / (2 * x)
    # Sixteen roundings where the two meet, as y tends to x and x tends to 1.
    slack = 1 + 16 * float(np.finfo(np.float64).eps)
    assert got * slack >= local
    assert got * slack >= local / max(x, y)
    if x == y:
        assert got == 0
    elif abs(x - y) > 1e-6:
        assert got > local


@pytest.mark.parametrize(("x", "y"), [(1.0, 1.01), (0.9, 1.2)])
def test_the_log_barrier_bound_needs_the_unit_square(x, y):
    got = float(divergences(log_barrier(), y, x))
    assert got < (x - y) ** 2 / (2 * x)


def test_the_border_of_the_region_where_the_bound_holds():
    """Claim 14: x = K(r) = 2 (r - 1 - ln r) / (r - 1)^2, y = r K(r).

    It passes (1, 1) with slope -1/2 and tends to (0, 2).
    """

    def border(r):
        with mp.workdps(oracles.DIGITS):
            r = mpf(r)
            k = 2 * (r - 1 - mp.log(r)) / (r - 1) ** 2
            return float(k), float(r * k)

    for r in (0.01, 0.3, 0.9, 1.1, 3, 50, 1e4):
        x, y = border(r)
        got = float(divergences(log_barrier(), y, x))
        # x and y are rounded, and the divergence's slope at r near 1 magnifies that to 20 eps.
        assert math.isclose(got, (x - y) ** 2 / (2 * x), rel_tol=1e-13)
    (x0, y0), (x1, y1) = border(1 - 1e-6), border(1 + 1e-6)
    assert math.isclose((y1 - y0) / (x1 - x0), -0.5, abs_tol=1e-5)
    assert math.isclose(x1, 1, abs_tol=1e-5)
    assert math.isclose(y1, 1, abs_tol=1e-5)
    x, y = border(1e9)
    assert x < 1e-8
    assert math.isclose(y, 2, abs_tol=1e-7)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_logarithm_of_one_and_a_part(dtype):
    parts = np.concatenate([[0, 1], np.geomspace(1e-30, 1, 500), np.linspace(0, 1, 500)])
    parts = parts.astype(dtype)
    got = np.asarray(jax.jit(log_one_plus_part)(parts))
    assert got.dtype == dtype
    wanted = [mp.log1p(mpf(float(part))) for part in parts]
    errors = [oracles.relative_error(*pair) for pair in zip(got, wanted)]
    assert max(errors) < 3 * np.finfo(dtype).eps
