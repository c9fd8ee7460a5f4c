"""Properties of potentials, of the map onto the simplex, of the mixability gap and of the draw."""

from fractions import Fraction
from itertools import accumulate

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import strategies as st
from properties import EPS, arrays, not_positive_numbers, points, powers_of_two, property_of

import sfmab_jax as sf
from sfmab_jax import potentials

pytestmark = pytest.mark.quick

made = potentials.potential(lambda u: 1 / (4 * u * u), lambda x: -0.5 / jnp.sqrt(x))
POTENTIALS = {
    "log_barrier": potentials.log_barrier(),
    "negative_entropy": potentials.negative_entropy(),
    "tsallis": potentials.tsallis(0.5),
    "entropy_with_barrier": potentials.entropy_with_barrier(0.5),
    "made": made,
}
FACTORIES = (
    potentials.log_barrier,
    potentials.negative_entropy,
    potentials.tsallis,
    potentials.entropy_with_barrier,
    potentials.potential,
)
any_potential = st.sampled_from(sorted(POTENTIALS))
scores = arrays(3, low=-100.0, high=100.0)
word = st.integers(0, 2**32 - 1)


@jax.jit
def functions_at(potential, x, y):
    """psi^{-1}(x), psi of it, psi' there, f(x), f* of it, f*(psi^{-1}(y)), Breg_f(y || x)."""
    u, v = potential.inverse(x), potential.inverse(y)
    return (
        u,
        potential.psi(u),
        potential.derivative(u),
        potential.primitive(x),
        potential.conjugate(u),
        potential.conjugate(v),
        potential.divergence(y, x),
    )


@property_of(*FACTORIES, examples=60, name=any_potential, x=points(), y=points())
def test_a_potential_fits_together(name, x, y):
    """psi undoes its inverse and rises; Fenchel and Young; the divergence is not negative."""
    values = functions_at(POTENTIALS[name], jnp.asarray(x), jnp.asarray(y))
    u, back, slope, f, conjugate, other, divergence = map(np.asarray, values)
    np.testing.assert_allclose(back, x, rtol=1e-12)
    assert (slope > 0).all()
    assert (divergence >= 0).all()
    v = np.asarray(functions_at(POTENTIALS[name], jnp.asarray(y), jnp.asarray(x))[0])
    size = np.abs(f) + np.abs(conjugate) + np.abs(x * u)
    # f comes from a quadrature for the potential that is made of two functions.
    np.testing.assert_allclose(f + conjugate, x * u, rtol=0, atol=1e-9 * size.max())
    assert (f + other - x * v >= -1e-9 * (np.abs(f) + np.abs(other) + np.abs(x * v))).all()


@property_of(potentials.potential, examples=30, x=points(), y=points())
def test_a_potential_of_two_functions_is_the_built_in_one(x, y):
    ours, theirs = (
        functions_at(one, jnp.asarray(x), jnp.asarray(y)) for one in (made, POTENTIALS["tsallis"])
    )
    for index in (0, 1, 2, 6):
        np.testing.assert_allclose(ours[index], theirs[index], rtol=1e-9, atol=1e-13)


@property_of(potentials.tsallis, power=not_positive_numbers | st.floats(1.0, 1e6))
def test_a_tsallis_power_lies_between_0_and_1(power):
    with pytest.raises(ValueError, match="power"):
        potentials.tsallis(power)


@property_of(potentials.regularizer, examples=40, name=any_potential, q=points(5))
def test_the_regularizer_is_least_at_the_centre(name, q):
    """F >= 0, and 0 at the uniform law; convex along the line to it."""
    value = jax.jit(potentials.regularizer)
    potential, centre = POTENTIALS[name], np.full(5, 0.2)
    at_q, half, at_centre = (
        float(value(potential, jnp.asarray(x))) for x in (q, (q + centre) / 2, centre)
    )
    assert at_centre == pytest.approx(0, abs=1e-13)
    assert at_q >= -1e-9
    assert half <= at_q / 2 + 1e-9 * (1 + at_q)


@jax.jit
def on_simplex(potential, theta):
    return sf.normalizer(potential, theta), sf.distribution(potential, theta)


@property_of(
    sf.distribution,
    sf.normalizer,
    examples=60,
    name=any_potential,
    theta=scores,
    shift=st.floats(-50, 50),
    arm=st.integers(0, 2),
    more=st.floats(0, 10),
)
def test_the_distribution_is_on_the_simplex_and_follows_the_scores(name, theta, shift, arm, more):
    """Sums to 1, is ordered like theta; a shift of all moves lambda alone; more makes more."""
    potential = POTENTIALS[name]
    constant, law = map(np.asarray, on_simplex(potential, jnp.asarray(theta)))
    assert law.min() >= 0
    assert law.sum() == pytest.approx(1, abs=1e-12)
    order = np.argsort(theta, kind="stable")
    assert (np.diff(law[order]) >= -1e-14).all()
    np.testing.assert_allclose(
        law, potential.psi(jnp.asarray(theta + constant)), rtol=1e-9, atol=1e-13
    )
    moved, same = map(np.asarray, on_simplex(potential, jnp.asarray(theta + shift)))
    assert moved + shift == pytest.approx(constant, abs=1e-11 * (200 + abs(constant)))
    np.testing.assert_allclose(same, law, rtol=1e-10, atol=1e-14)
    raised = theta + more * (np.arange(3) == arm)
    after = np.asarray(on_simplex(potential, jnp.asarray(raised))[1])
    assert after[arm] >= law[arm] * (1 - 1e-12)
    assert (np.delete(after, arm) <= np.delete(law, arm) * (1 + 1e-10) + 1e-14).all()


@property_of(
    sf.mixability_gap,
    examples=60,
    name=any_potential,
    play=points(),
    loss=arrays(3, low=-8, high=8),
    rate=st.floats(2.0**-10, 2.0**10, width=32),
    unit=powers_of_two,
    shift=st.floats(-8, 8, width=32),
)
def test_the_gap_is_a_loss(name, play, loss, rate, unit, shift):
    """0 <= M <= p.l - min(l); M(c l, eta/c) = c M exactly; a loss of all arms adds nothing."""
    gap = jax.jit(sf.mixability_gap)
    potential = POTENTIALS[name]
    play, loss = jnp.asarray(play, jnp.float32), np.asarray(loss, np.float32)

    def at(loss, rate):
        return np.asarray(gap(potential, play, jnp.asarray(loss), jnp.float32(rate)))

    value = at(loss, rate)
    most = float(np.sum(np.asarray(play, np.float64) * (loss - loss.min())))
    assert 0 <= value <= most * (1 + 100 * EPS) + EPS * np.abs(loss).max()
    np.testing.assert_array_equal(at(loss * np.float32(unit), rate / unit), value * unit)
    # M is right to 1e-5; the sum is rounded by an ulp, and dM / dl = p - q* has 1-norm 2 at most.
    rounded = 2 * EPS * (float(np.abs(loss).max()) + abs(shift))
    shifted = float(at(loss + np.float32(shift), rate))
    assert shifted == pytest.approx(float(value), rel=2e-5, abs=rounded)


@property_of(
    sf.draw_arm,
    examples=100,
    weights=st.lists(st.sampled_from([0.0, 1e-9, 1e-3, 0.25, 0.7, 1.0]), min_size=5, max_size=5),
    words=st.tuples(word, word),
)
def test_the_arm_drawn_is_the_exact_one(weights, words):
    """Against running sums in fractions, unless U lies within 2^-40 of a border."""
    if not any(weights):
        weights[3] = 1.0
    law = np.array(weights, np.float32)
    arm = int(jax.jit(sf.draw_arm)(jnp.asarray(law), jnp.asarray(words, jnp.uint32)))
    exact = [Fraction(float(p)) for p in law]
    sums = list(accumulate(exact))
    bits = (words[0] << 14) | (words[1] >> 18)
    target = Fraction(bits, 2**46) * sums[-1]
    wanted = next(i for i, total in enumerate(sums) if total > target)
    near = min(abs(total - target) for total in sums) < sums[-1] * Fraction(1, 2**40)
    assert near or arm == wanted
    assert law[arm] > 0
