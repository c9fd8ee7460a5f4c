"""What the mixability gap must satisfy: its bounds, identities and limits."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import oracles
import pytest
from gap_cases import (
    BOUNDS,
    POTENTIALS,
    every_potential,
    gaps,
    losses_of,
    normalised,
    one_gap,
    plays_of,
    random_cases,
)
from hypothesis import given, settings
from hypothesis import strategies as st
from mpmath import mp, mpf
from potential_cases import every_float

from sfmab_jax.numerics.simplex import distribution
from sfmab_jax.numerics.stability import mixability_gap
from sfmab_jax.potentials import log_barrier, negative_entropy, tsallis

weights = st.lists(st.floats(2.0**-30, 1.0, width=32), min_size=4, max_size=4)
any_loss = st.one_of(
    st.just(0.0),
    st.floats(2.0**-40, 2.0**40, width=32),
    st.floats(-(2.0**40), -(2.0**-40), width=32),
)
any_losses = st.lists(any_loss, min_size=4, max_size=4)
any_rate = st.floats(2.0**-20, 2.0**20, width=32)


@every_float
@every_potential
def test_never_negative_and_at_most_the_largest_loss(name, dtype):
    """Claims 25 and 26: 0 <= M <= max l - min l; at most max |l| for a single loss."""
    made, _ = POTENTIALS[name]

    @settings(deadline=None, derandomize=True, database=None, max_examples=100)
    @given(weights, any_losses, any_rate, st.integers(0, 3))
    def holds(raw, loss, rate, arm):
        play = normalised(np.array(raw), dtype)
        loss = np.array(loss, dtype)
        single = np.where(np.arange(4) == arm, loss, 0).astype(dtype)
        got, alone = np.asarray(
            gaps(made, np.stack([play, play]), np.stack([loss, single]), np.full(2, rate, dtype))
        )
        # The plays sum to 1 only up to rounding.
        slack = 1 + BOUNDS[dtype]
        assert 0 <= got <= (loss.max() - loss.min()) * slack
        assert 0 <= got <= 2 * np.abs(loss).max() * slack
        assert 0 <= alone <= np.abs(loss[arm]) * slack
        rest = np.delete(play, arm).astype(np.float64).sum()
        share = float(play[arm]) if loss[arm] > 0 else rest
        assert alone <= abs(float(loss[arm])) * share * slack

    holds()


@every_potential
def test_a_small_loss_beside_a_huge_one(name):
    """Near-equal scores of 1e8 in float32 differ by hundreds: once exp of that overflowed."""
    play = normalised(np.array([1.0, 3 / 1024, 1 / 1024, 1 / 256]), np.float32)
    loss = np.array([0, 0, 22598709248, -1], np.float32)
    got = np.asarray(gaps(POTENTIALS[name][0], play[None], loss[None], np.float32([42])))
    share = float(play[2]) * float(loss[2])
    # All of it but what q* keeps on that arm, and the price of the move, which is below 1e3.
    assert abs(float(got[0]) - share) <= 1e-5 * share + 1e3


@every_float
@every_potential
def test_equal_losses_leave_no_gap(name, dtype):
    """A constant loss moves nothing, whatever its size."""
    plays = np.stack(plays_of(10, dtype))
    for constant in (0.0, 1.0, -3.7, 1e-20, 1e20):
        for rate in (1e-3, 0.7, 1e3):
            loss = np.full_like(plays, constant)
            got = gaps(POTENTIALS[name][0], plays, loss, np.full(4, rate, dtype))
            # A remainder of order eps^2, as it is the square of a rounding error.
            assert np.all(got >= 0)
            assert np.all(got <= float(np.finfo(dtype).eps) ** 2 / rate)


@every_potential
def test_the_gap_is_the_stability_term(name):
    """Claim 25: eta M(eta) = Psi_p(eta l)."""
    made, reference = POTENTIALS[name]
    stability = jax.jit(jax.vmap(made.stability))
    play, loss, rate = random_cases(20, 4, np.float64)
    # So that the product below is exact.
    rate = 2.0 ** np.round(np.log2(rate))
    got = np.asarray(stability(play, rate[:, None] * loss))
    for value, *case in zip(got, play, loss, rate):
        wanted = oracles.mixability_gap(reference, *case) * mpf(float(case[2]))
        assert oracles.relative_error(value, wanted) <= 1e-12


def single_losses(num_cases: int, num_arms: int):
    rng = np.random.default_rng(8)
    play = np.maximum(rng.dirichlet(np.full(num_arms, 0.5), num_cases), 1e-9)
    play /= play.sum(axis=1, keepdims=True)
    arm = rng.integers(0, num_arms, num_cases)
    size = rng.choice([-1, 1], num_cases) * 10.0 ** rng.uniform(-4, 4, num_cases)
    rate = 10.0 ** rng.uniform(-3, 3, num_cases)
    return play, np.where(np.arange(num_arms)[None, :] == arm[:, None], size[:, None], 0), rate, arm


def test_bounds_of_the_log_barrier():
    """Claim 27: M <= eta a l^2 / 2, and the sharper forms for each sign of the loss."""
    play, loss, rate, arm = single_losses(300, 5)
    got = gaps(log_barrier(), play, loss, rate)
    index = np.arange(len(arm))
    a, size = play[index, arm], loss[index, arm]
    slack = 1 + 1e-12
    assert np.all(got <= rate / 2 * a * size**2 * slack)
    positive = size > 0
    x = (rate * a * size)[positive]
    with mp.workdps(oracles.DIGITS):
        h = np.array([float(mpf(v) - mp.log(1 + mpf(v))) for v in x.tolist()])
    assert np.all(got[positive] <= h / rate[positive] * slack)
    assert np.all(h <= x**2 / 2 * slack)
    others = np.sum(play**2, axis=1) - a**2
    negative = ~positive
    assert np.all(got[negative] <= (rate / 2 * size**2 * others)[negative] * slack)


@every_potential
def test_between_any_point_and_the_best_one(name):
    """Claim 28: l.(p - q) - Breg(q || p) / eta <= M <= l.(p - q*), q any point of the simplex."""
    made, reference = POTENTIALS[name]
    play, loss, rate, _ = single_losses(40, 4)
    got = gaps(made, play, loss, rate)
    rng = np.random.default_rng(9)
    for value, *case in zip(got, play, loss, rate):
        best = oracles.maximiser(reference, *case)
        with mp.workdps(oracles.GAP_DIGITS):
            p, y = oracles.normalised(case[0]), oracles.exact(case[1])
            upper = mp.fsum(b * (a - x) for a, b, x in zip(p, y, best))
            assert mpf(float(value)) <= upper * (1 + mpf(1e-12))
            for share in (0.0, 0.1, 0.9, 0.999):
                other = oracles.normalised(rng.dirichlet(np.ones(4)) + 1e-6)
                q = [share * x + (1 - mpf(share)) * z for x, z in zip(best, other)]
                lower = oracles.gap_at(reference, *case, q)
                assert mpf(float(value)) * (1 + mpf(1e-12)) >= lower


@every_potential
def test_the_gap_is_the_divergence_from_the_next_point(name):
    """Claim 29: M = Breg(p || q*) / eta, q* the distribution at psi^{-1}(p) - eta l.

    Its two float64 ingredients are rounded: probabilities to 1e-14 relative, of which the
    divergence feels 1e-14 |p - q| / Breg. Cells with a large move, where that is small.
    """
    made, reference = POTENTIALS[name]
    next_points = jax.jit(jax.vmap(lambda p, y: distribution(made, made.inverse(p) - y)))
    play, loss, rate, _ = single_losses(60, 4)
    got = gaps(made, play, loss, rate)
    q = np.asarray(next_points(play, rate[:, None] * loss))
    num_checked = 0
    for value, before, after, eta in zip(got, play, q, rate):
        if np.max(np.abs(before - after)) < 1e-3 or after.min() < 1e-290:
            continue
        num_checked += 1
        p, x = oracles.normalised(before), oracles.normalised(after)
        wanted = oracles.regularizer_divergence(reference, p, x) / mpf(float(eta))
        assert oracles.relative_error(value, wanted) <= 1e-9
    assert num_checked >= 20


def test_any_shift_gives_an_upper_bound():
    """eta M is the least value of sum h(p (eta l + c)) over c, h(x) = x - log(1 + x)."""
    play, loss, rate, _ = single_losses(40, 4)
    got = gaps(log_barrier(), play, loss, rate)
    rng = np.random.default_rng(10)
    with mp.workdps(oracles.DIGITS):
        for value, p, y, eta in zip(got, play, rate[:, None] * loss, rate):
            exact_p, exact_y = oracles.normalised(p), oracles.exact(y)
            # All 1 + p (y + c) must be positive.
            lowest = max(-1 / a - b for a, b in zip(exact_p, exact_y))
            for distance in 10.0 ** rng.uniform(-3, 6, 10):
                c = lowest + mpf(distance)
                moves = [a * (b + c) for a, b in zip(exact_p, exact_y)]
                bound = mp.fsum(x - mp.log(1 + x) for x in moves)
                assert mpf(float(value)) * mpf(float(eta)) <= bound * (1 + mpf(1e-12))


@every_potential
def test_the_gap_grows_with_the_learning_rate(name):
    """A supremum of functions that do; up to the error of two neighbours."""
    rates = np.geomspace(1e-6, 1e9, 300)
    for play in plays_of(10, np.float64):
        for loss in losses_of(play):
            wide = [np.tile(x, (300, 1)) for x in (play, loss)]
            got = gaps(POTENTIALS[name][0], *wide, rates)
            assert np.all(got[1:] >= got[:-1] * (1 - 2e-12))


@every_float
@every_potential
def test_the_order_of_the_arms_does_not_matter(name, dtype):
    """Sums in another order: twice the promised error."""
    made, _ = POTENTIALS[name]
    play, loss, rate = random_cases(64, 10, dtype)
    order = np.random.default_rng(11).permutation(10)
    np.testing.assert_allclose(
        gaps(made, play[:, order], loss[:, order], rate),
        gaps(made, play, loss, rate),
        rtol=2 * BOUNDS[dtype],
    )


def test_the_gap_of_extreme_rates_and_losses_is_finite():
    """eta l itself would overflow: M tends to l.p - min l."""
    play = np.float32([0.2, 0.3, 0.5])
    loss = np.float32([1e30, 0, -1e30])
    for made in (log_barrier(), negative_entropy(), tsallis(0.5)):
        got = float(one_gap(made, play, loss, np.float32(1e30)))
        # The limit is reached to 1e-29 relative.
        assert math.isclose(got, 0.7e30, rel_tol=1e-5)


def test_play_and_loss_are_vectors_of_one_shape():
    with pytest.raises(AssertionError):
        mixability_gap(log_barrier(), jnp.ones((2, 2)) / 4, jnp.ones((2, 2)), 1.0)
    with pytest.raises(AssertionError):
        mixability_gap(log_barrier(), jnp.ones(2) / 2, jnp.ones(3), 1.0)
