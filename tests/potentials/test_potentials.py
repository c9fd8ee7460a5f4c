"""Section 3 of the paper: potentials and their functions f and f*.

Claims are checked for the built-in potentials and for the same ones made by `potential` from psi
and its inverse alone, against high-precision references.
"""

import math
import re

import jax
import jax.numpy as jnp
import numpy as np
import oracles
import pytest
from mpmath import mp, mpf
from potential_cases import (
    BUILT_IN,
    MADE,
    POINTS,
    POTENTIALS,
    assert_close,
    duals,
    every_float,
    every_made,
    every_potential,
    rounding,
)

from sfmab_jax.numerics.stability import mixability_gap
from sfmab_jax.potentials import negative_entropy, regularizer, tsallis

# The functions themselves.


@every_float
@every_potential
def test_psi_and_its_inverse(name, dtype):
    """psi and its inverse within a few roundings.

    Up to ten for (-u/c)^(-r), whose exponent magnifies the rounding of u by r = 5, and whose own
    rounding (half an ulp) costs |log x| / 2 <= 10.4 more; the logarithms reach 21 in size.
    """
    made, reference = POTENTIALS[name]
    x = POINTS.astype(dtype)
    u = duals(reference).astype(dtype)
    bound = rounding(dtype, 24)
    assert made.psi(u).dtype == made.inverse(x).dtype == dtype
    assert_close(made.psi(u), [reference.psi(mpf(float(v))) for v in u], bound)
    # log(1) = 0: an absolute error there.
    assert_close(made.inverse(x), [reference.inverse(mpf(float(v))) for v in x], bound, bound)


@every_float
@every_potential
def test_derivative_is_that_of_psi(name, dtype):
    made, reference = POTENTIALS[name]
    u = duals(reference).astype(dtype)
    wanted = [reference.slope(mpf(float(v))) for v in u]
    assert_close(made.derivative(u), wanted, rounding(dtype, 24))


@every_potential
def test_f_has_the_inverse_of_psi_for_its_slope(name):
    """Claim 9: f' = psi^{-1} and f'' = 1 / psi'(psi^{-1}), by automatic differentiation.

    The f of a made potential is an integral from 1 to x; differentiated, its rounding errors are
    eps / x, and eps / x^2 the second time. From 1e-3 up that is below 1e-9 of the slopes.
    """
    made, reference = POTENTIALS[name]
    points = POINTS if name in BUILT_IN else POINTS[POINTS >= 1e-3]
    first = jax.vmap(jax.grad(made.primitive))(points)
    second = jax.vmap(jax.grad(jax.grad(made.primitive)))(points)
    exact = oracles.exact(points)
    assert_close(first, [reference.inverse(x) for x in exact], 1e-10, 1e-10)
    assert_close(second, [1 / reference.slope(reference.inverse(x)) for x in exact], 1e-10)


@every_potential
def test_the_conjugate_has_psi_for_its_slope(name):
    """Claim 9: f*' = psi and f*'' = psi'; for made potentials from psi = 1e-3 up, as above."""
    made, reference = POTENTIALS[name]
    u = duals(reference, POINTS if name in BUILT_IN else POINTS[POINTS >= 1e-3])
    first = jax.vmap(jax.grad(made.conjugate))(u)
    second = jax.vmap(jax.grad(jax.grad(made.conjugate)))(u)
    exact = oracles.exact(u)
    # u psi'(u) - psi^{-1}(psi(u)) psi'(u) cancels: relative to its terms, psi times |u psi'/psi|.
    slack = [float(abs(v * reference.slope(v))) * 1e-12 for v in exact]
    assert_close(first, [reference.psi(v) for v in exact], 1e-10, slack)
    curvature = np.array(
        [float(abs(reference.slope(v)) + abs(v) * mp.diff(reference.slope, v)) for v in exact]
    )
    assert_close(second, [reference.slope(v) for v in exact], 1e-9, 1e-11 * curvature)


@every_float
@every_potential
def test_primitive_up_to_a_constant(name, dtype):
    """f(x) - f(1). The built-in ones are the f of the table, the made ones vanish at 1."""
    made, reference = POTENTIALS[name]
    x = POINTS.astype(dtype)
    constant = mpf(0) if name in BUILT_IN else reference.f(mpf(1))
    wanted = [reference.f(v) - constant for v in oracles.exact(x)]
    # f is of order 1 at 1, where f(x) - f(1) vanishes; 64 products and sums of quadrature.
    assert_close(made.primitive(x), wanted, rounding(dtype, 32), rounding(dtype, 32))


@every_float
@every_potential
def test_conjugate_is_the_legendre_transform(name, dtype):
    """Claim 10: f*(u) = u psi(u) - f(psi(u))."""
    made, reference = POTENTIALS[name]
    u = duals(reference).astype(dtype)
    constant = mpf(0) if name in BUILT_IN else reference.f(mpf(1))
    wanted = [oracles.conjugate(reference, v) + constant for v in u]
    # Absolutely to the size of its two terms, which may cancel.
    exact = oracles.exact(u)
    terms = [float(abs(v * reference.psi(v)) + abs(reference.f(reference.psi(v)))) for v in exact]
    assert_close(made.conjugate(u), wanted, 0, rounding(dtype, 32) * (1 + np.array(terms)))


@every_potential
def test_the_conjugate_is_an_integral_of_psi(name):
    """Claim 10: f*(b) - f*(a) is the integral of psi from a to b."""
    made, reference = POTENTIALS[name]
    ends = duals(reference, [1e-3, 0.02, 0.4, 1.0])
    values = np.asarray(made.conjugate(ends))
    for a, b, low, high in zip(ends, ends[1:], values, values[1:]):
        area = mp.quad(reference.psi, mp.linspace(mpf(float(a)), mpf(float(b)), 5))
        size = max(abs(low), abs(high))
        assert abs((high - low) - float(area)) <= 1e-13 * size


# Regulariser and stability.


@every_float
@every_potential
def test_the_regularizer_is_not_negative_on_the_simplex(name, dtype):
    """Claim 18, and its value against the definition."""
    made, reference = POTENTIALS[name]
    value = jax.jit(regularizer)
    rng = np.random.default_rng(3)
    for concentration in (0.1, 1.0, 100.0):
        q = np.maximum(rng.dirichlet(np.full(5, concentration)), 1e-9)
        q = (q / q.sum()).astype(dtype)
        got = float(value(made, q))
        with mp.workdps(oracles.DIGITS):
            centre = reference.f(mpf(1) / 5)
            terms = [reference.f(x) - centre for x in oracles.exact(q)]
            size = float(mp.fsum(abs(t) for t in terms) + 5 * abs(centre))
            assert abs(got - float(mp.fsum(terms))) <= rounding(dtype, 64) * size
        assert got >= -rounding(dtype, 64) * size
    uniform = float(value(made, np.full(5, 1 / 5, dtype)))
    if name in BUILT_IN:
        assert uniform == 0
    # Two integrals of the same function may be summed in different orders.
    assert abs(uniform) <= rounding(dtype, 64) * 5 * float(abs(centre))


def test_entropy_stability_is_bounded_for_losses_above_minus_one():
    """Claim 19: Psi_p(l) <= p.l^2 if l >= -1."""
    stability = jax.jit(jax.vmap(negative_entropy().stability))
    rng = np.random.default_rng(4)
    play = rng.dirichlet(np.full(4, 0.5), 200) + 1e-9
    play /= play.sum(axis=1, keepdims=True)
    loss = np.maximum(rng.normal(size=(200, 4)) * 10.0 ** rng.uniform(-3, 2, (200, 1)), -1)
    got = np.asarray(stability(play, loss))
    assert np.all(got >= 0)
    assert np.all(got <= np.sum(play * loss**2, axis=1) * (1 + 1e-12))


def test_entropy_stability_is_not_bounded_otherwise():
    """Claim 19: at p = (1e-6, 1 - 1e-6), l = (-20, 0) it is 6.19, and p.l^2 = 4e-4."""
    play, loss = np.array([1e-6, 1 - 1e-6]), np.array([-20.0, 0.0])
    got = float(negative_entropy().stability(jnp.asarray(play), jnp.asarray(loss)))
    # Psi = log sum p exp(-l) + p.l, in closed form.
    wanted = math.log(1e-6 * math.exp(20) + (1 - 1e-6)) - 20e-6
    assert math.isclose(got, wanted, rel_tol=1e-12)
    assert round(got, 2) == 6.19
    assert play @ loss**2 < 4.1e-4


# Potentials made from psi and its inverse.


@every_float
@every_made
def test_made_root(name, dtype):
    """Against the reference root: nu with sum psi(nu - x) = 1."""
    made, reference = MADE[name]
    rng = np.random.default_rng(5)
    for scale in (0.0, 1e-6, 1.0, 30.0, 1e6):
        gaps = (scale * rng.uniform(0, 1, 6)).astype(dtype)
        gaps[2] = 0
        wanted = oracles.normalizer(reference, -gaps)
        got = float(made.solve(jnp.asarray(gaps), jnp.asarray(-jnp.inf, dtype))[1])
        # Relative to the size of psi^{-1}(1/6) <= 6; a few roundings of the sum.
        assert abs(got - float(wanted)) <= rounding(dtype, 16) * (1 + abs(float(wanted)))


def stability_cases(dtype):
    rng = np.random.default_rng(6)
    plays = [np.full(4, 0.25), rng.dirichlet(np.ones(4)), [1 - 3e-9, 1e-9, 1e-9, 1e-9]]
    shapes = [[1, 0, 0, 0], [-1, 0, 0, 0], [0, 0, 1, 0], [0, 0, -1, 0], rng.uniform(-1, 1, 4)]
    sizes = [1e-12, 1e-8, 1e-4, 0.03, 0.7, 7.0, 55.0, 3e3, 2e5, 3e7, 4e10, 1e12]
    cases = [(p, y, s) for p in plays for y in shapes for s in sizes]
    play, loss, rate = (np.array(column, dtype) for column in zip(*cases))
    return play, loss, rate


@every_float
@every_made
def test_made_mixability_gap(name, dtype):
    """Equally usable: to 1e-4 in float32 and 1e-9 in float64, and never undefined.

    In float32 a gap M, or the stability term eta M, may underflow where it is below 1e-30.
    """
    made, reference = MADE[name]
    play, loss, rate = stability_cases(dtype)
    got = np.asarray(
        jax.jit(jax.vmap(mixability_gap, in_axes=(None, 0, 0, 0)))(made, play, loss, rate)
    )
    bound = 1e-4 if dtype == np.float32 else 1e-9
    failed = []
    for case in zip(got, play, loss, rate):
        wanted = oracles.mixability_gap(reference, *case[1:])
        if dtype == np.float32 and wanted * min(1, case[3]) < 1e-30:
            continue
        if not oracles.relative_error(case[0], wanted) <= bound:
            failed.append((*case, mp.nstr(wanted, 8)))
    assert not failed, (len(failed), len(got), failed[:5])


# Arguments.


@pytest.mark.parametrize("power", [0, 1, 0.0, 1.0, -0.5, 1.5, 2, math.inf, -math.inf, math.nan])
def test_a_tsallis_power_lies_between_0_and_1(power):
    with pytest.raises(ValueError, match=rf"power is {re.escape(str(power))};"):
        tsallis(power)


def test_a_tsallis_power_may_be_traced():
    """As a leaf of the pytree: the same values as with a Python number."""
    x = jnp.asarray([0.01, 0.3, 1.0])
    for power in (0.2, 0.5, 0.8):
        traced = jax.jit(lambda made, x: (made.psi(-x), made.primitive(x)))(tsallis(power), x)
        reference = oracles.Tsallis(power)
        exact = oracles.exact(x)
        assert_close(traced[0], [reference.psi(-v) for v in exact], 1e-14)
        assert_close(traced[1], [reference.f(v) for v in exact], 1e-14)
