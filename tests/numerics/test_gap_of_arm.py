"""The mixability gap of a loss on one arm, and where it says the next play will be."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import oracles
import pytest
from gap_cases import BOUNDS, normalised, plays_of, split
from mpmath import mp, mpf
from potential_cases import every_float, float32_in_default
from tiers import some_in_default

from sfmab_jax.engine.lanes.transform import over_lanes
from sfmab_jax.numerics.stability import mixability_gap_on_arm
from sfmab_jax.potentials import log_barrier, tsallis
from sfmab_jax.potentials.tsallis import square_root

POTENTIALS = {
    "log_barrier": (log_barrier(), oracles.LogBarrier()),
    "square_root": (square_root(), oracles.Tsallis(0.5)),
    "tsallis(0.8)": (tsallis(0.8), oracles.Tsallis(0.8)),
}
every_power = pytest.mark.parametrize("name", POTENTIALS)


@functools.partial(jax.jit, static_argnames="name")
def gaps_in_lanes(name, *lanes):
    return over_lanes(functools.partial(mixability_gap_on_arm, POTENTIALS[name][0]))(*lanes)


def gaps_of(name, cases, dtype):
    """Gaps and stability terms of (play, arm, loss, rate), as games in lanes.

    In a multiple of 128 lanes, so that few programs are compiled.
    """
    rows = np.minimum(np.arange(-(-len(cases) // 128) * 128), len(cases) - 1)
    play, arm, loss, rate = (np.array(column)[rows] for column in zip(*cases))
    lanes = (play.T.astype(dtype), arm.astype(np.int32), loss.astype(dtype), rate.astype(dtype))
    found = gaps_in_lanes(name, *map(jnp.asarray, lanes))
    return jax.tree.map(lambda x: np.asarray(x)[..., : len(cases)], found)


def one_hot(arm, loss, play):
    return np.where(np.arange(len(play)) == arm, play.dtype.type(loss), play.dtype.type(0))


def check(name, cases, dtype, as_given=False):
    reference = POTENTIALS[name][1]
    got, _ = gaps_of(name, cases, dtype)
    for value, (play, arm, loss, rate) in zip(got, cases):
        wanted = oracles.mixability_gap(
            reference, play, one_hot(arm, loss, play), dtype(rate), as_given
        )
        # In float32 the squares that make up eta M may fall below 1e-38.
        if dtype == np.float32 and min(wanted, wanted * rate) < 1e-30:
            assert 0 <= value <= 1.01 * wanted + 1e-29
        else:
            assert oracles.relative_error(value, wanted) <= BOUNDS[dtype], (play, arm, loss, rate)


def cases_of(num_arms: int, dtype) -> list:
    """eta l from 1e-12 to 1e12 of either sign, on the most and on the least likely arm."""
    cases = []
    for play in plays_of(num_arms, dtype):
        for arm in {int(np.argmax(play)), int(np.argmin(play))}:
            for turn, magnitude in enumerate(np.geomspace(1e-12, 1e12, 8)):
                rate, scale = split(magnitude, turn)
                cases += [(play, arm, sign * scale, rate) for sign in (1, -1)]
    return cases


@every_float
@every_power
@pytest.mark.parametrize("num_arms", some_in_default([2, 4, 10], [4]))
def test_against_the_definition(num_arms, name, dtype):
    check(name, cases_of(num_arms, dtype), dtype)


@every_float
@every_power
def test_between_the_small_and_the_large_regime(name, dtype):
    play = normalised([0.5, 0.3, 0.15, 0.05], dtype)
    check(
        name,
        [
            (play, arm, sign, rate)
            for arm in (0, 3)
            for sign in (1, -1)
            for rate in np.geomspace(0.05, 50, 25)
        ],
        dtype,
    )


@every_float
@pytest.mark.parametrize("name", ["log_barrier", "square_root"])
def test_a_loss_that_lifts_a_rare_arm_to_the_top(name, dtype):
    """eta l all but cancels psi^{-1}(p) of an arm of 1e-9: p counts as given."""
    reference = POTENTIALS[name][1]
    play = plays_of(4, dtype)[1]
    with mp.workdps(oracles.DIGITS):
        size = float(abs(reference.inverse(mpf(1e-9))))
    cases = []
    for turn, factor in enumerate([0.5, 0.9, 0.999, 1.0, 1.0, 1.0, 1.001, 1.1, 2.0]):
        rate, scale = split(factor * size, turn)
        cases.append((play, 0, -dtype(scale), dtype(rate)))
        # And one that brings the likely arm down to where the rare ones are.
        cases.append((play, 2, dtype(scale), dtype(rate)))
    check(name, cases, dtype, as_given=True)


@float32_in_default
@every_power
def test_one_arm_has_no_gap(name, dtype):
    play = np.ones(1, dtype)
    got, _ = gaps_of(name, [(play, 0, loss, 3.0) for loss in (-1e6, 0, 1e6)], dtype)
    assert (got == 0).all()


@every_power
def test_it_knows_where_the_next_play_will_be(name):
    """At the same rate the guess is psi^{-1}(max q) up to the root of its error's square; at a rate
    smaller by 1 - kept it is off by the square of that.
    """
    reference = POTENTIALS[name][1]
    play, loss, rate = normalised([0.5, 0.3, 0.15, 0.05], np.float64), 1.0, 0.8
    for arm in (0, 2, 3):
        _, stability = gaps_of(name, [(play, arm, loss, rate)], np.float64)
        with mp.workdps(oracles.DIGITS):
            moved = [
                reference.inverse(p) - (mpf(rate) * mpf(loss) if i == arm else 0)
                for i, p in enumerate(oracles.normalised(play))
            ]
            for kept, most in ((1.0, 1e-6), (0.99, 1e-3)):
                q = oracles.distribution(reference, [kept * float(u) for u in moved])
                wanted = float(reference.inverse(max(q)))
                assert float(stability.start_at(kept)[0]) == pytest.approx(wanted, rel=most)
