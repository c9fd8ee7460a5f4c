"""The maximiser of the stability term from moments, against its definition in 60 digits."""

import functools

import jax
import numpy as np
import oracles
import pytest
from gap_cases import BOUNDS, normalised
from mpmath import mp, mpf
from potential_cases import every_float

from sfmab_jax.numerics.stability_series import small_move
from sfmab_jax.potentials.log_barrier import _POWER as BARRIER_POWER
from sfmab_jax.potentials.tsallis import _ROOT_POWER as ROOT_POWER

pytestmark = pytest.mark.quick

# r, c and what the package has for the power.
POWERS = {"log_barrier": (1, 1.0, BARRIER_POWER), "square_root": (2, 0.5, ROOT_POWER)}
PLAYS = ([0.5, 0.3, 0.15, 0.05], [0.97, 0.02, 0.009, 0.001], [0.999, 5e-4, 4e-4, 1e-4], [0.1] * 10)
# eta times the loss, over the probability of the arm. Three moments are enough up to some 0.01 in
# float32 and 1e-5 in float64, six up to some tenths and 1e-3.
SIZES = np.array([*np.geomspace(1e-6, 1, 31), 30, 1e3, 1e6])


@functools.partial(jax.jit, static_argnums=0)
def compiled(power, play, others, *arm_and_loss):
    return small_move(power, play, others, *arm_and_loss)


def moved_of(power, play, arm, y):
    w = np.asarray(power.w(play))
    others = np.where(np.arange(len(play)) == arm, 0, w).astype(play.dtype)
    own = (play[arm], w[arm].astype(play.dtype))
    return compiled(power, play, others, own, y, others.max())


def reference(r, c, play, arm, y, given):
    """e from sum(q) = sum(p), sum psi' there; the other arms' divergence at the e given."""
    with mp.workdps(oracles.DIGITS):
        p = [mpf(float(x)) for x in play]
        dual = [c * x ** (mpf(-1) / r) for x in p]  # 1 / w
        loss = [mpf(float(y)) if i == arm else mpf(0) for i in range(len(p))]

        def moved(e):
            return [((d + x + e) / c) ** -r for d, x in zip(dual, loss)]

        # The leader of q has from sum(p) / n to all of sum(p).
        leader = min(d + x for d, x in zip(dual, loss))
        bracket = [c * (sum(p) / k) ** (mpf(-1) / r) - leader for k in (1, len(p))]
        e = mp.findroot(lambda e: sum(moved(e)) - sum(p), bracket, solver="anderson", maxsteps=400)
        q = moved(e)
        slope = sum(r * x * (x ** (mpf(1) / r) / c) for x in q)

        def f(x):
            return -mp.log(x) if r == 1 else -(x ** mpf(c))

        def of_arm(x, z):  # Breg_f(x || z), f' = psi^{-1}
            return f(x) - f(z) + c * z ** (mpf(-1) / r) * (x - z)

        pairs = enumerate(zip(p, moved(mpf(float(given)))))
        return e, sum(of_arm(x, z) for i, (x, z) in pairs if i != arm), slope


@every_float
@pytest.mark.parametrize("name", POWERS)
def test_right_wherever_it_holds(name, dtype):
    r, c, power = POWERS[name]
    held = 0
    for weights in PLAYS:
        play = normalised(weights, dtype)
        for arm in (0, len(play) - 1):
            for size in (*SIZES, *-SIZES):
                y = dtype(size / play[arm])
                moved = moved_of(power, play, arm, y)
                if not moved.is_exact:
                    continue
                held += 1
                e, others, slope = reference(r, c, play, arm, y, moved.shift)
                # Psi feels the square of an error in e, and the next play's start is a guess.
                assert oracles.relative_error(float(moved.shift), e) <= BOUNDS[dtype] ** 0.5
                assert oracles.relative_error(float(moved.inverse_slope), 1 / slope) <= 0.05
                assert oracles.relative_error(float(moved.divergence), others) <= BOUNDS[dtype]
    assert held >= (300 if dtype == np.float32 else 150)


@pytest.mark.parametrize("name", POWERS)
def test_small_moves_are_in_reach_and_large_ones_are_not(name):
    play = normalised(PLAYS[0], np.float32)
    for arm in range(4):
        for sign in (1, -1):
            for size, within in ((1e-6, True), (0.03, True), (1e6, False)):
                moved = moved_of(POWERS[name][2], play, arm, np.float32(sign * size / play[arm]))
                assert bool(moved.is_exact) == within, (arm, sign, size)
