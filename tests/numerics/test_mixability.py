"""The mixability gap M(eta) against its definition in 110-digit arithmetic."""

import functools
import itertools
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
    mapped_gaps,
    normalised,
    one_gap,
    plays_of,
    random_cases,
    split,
)
from mpmath import mp, mpf
from potential_cases import FLOATS, every_float, float32_in_default
from tiers import some_in_default

from sfmab_jax.engine.lanes.transform import over_lanes
from sfmab_jax.numerics.stability import mixability_gap
from sfmab_jax.potentials import log_barrier, negative_entropy, tsallis
from sfmab_jax.potentials.tsallis import square_root


def check(name, cases, dtype, *results, conditioned=False, as_given=False):
    """Each case is a play, a loss and a rate; the results are checked against one reference.

    In float32 a gap below 1e-30 may be lost to underflow: the squares of probabilities and losses
    that make it up fall below 1e-38.
    """
    made, reference = POTENTIALS[name]
    columns = [np.array(column, dtype) for column in zip(*cases)]
    results = [np.asarray(got) for got in results or [gaps(made, *columns)]]
    assert all(got.dtype == dtype for got in results)
    failed, worst = [], 0.0
    for i, (play, loss, rate) in enumerate(zip(*columns)):
        wanted = oracles.mixability_gap(reference, play, loss, rate, as_given)
        bound = BOUNDS[dtype]
        if conditioned:
            roundings = 4 * float(np.finfo(dtype).eps)
            bound += roundings * oracles.condition(reference, play, loss, rate)
        for got in results:
            if dtype == np.float32 and wanted < 1e-30:
                assert 0 <= got[i] <= 1e-29
                continue
            error = oracles.relative_error(got[i], wanted)
            worst = max(worst, error)
            if not error <= bound:
                failed.append((float(got[i]), mp.nstr(wanted, 9), play[:4], loss[:4], float(rate)))
    assert not failed, f"{len(failed)} of {len(cases)}, worst {worst}, first {failed[:3]}"


def cases_of(num_arms: int, dtype) -> list:
    """eta l from 1e-12 to 1e12. The reference is slow for many different arms: then fewer.

    The magnitudes stay clear of the reciprocals of the probabilities, where the gap is
    ill-conditioned; see below for those.
    """
    magnitudes = np.geomspace(1e-12, 1e12, {100: 6, 1000: 4}.get(num_arms, 8))
    cases = []
    for which, play in enumerate(plays_of(num_arms, dtype)):
        for i, loss in enumerate(losses_of(play)):
            for turn, magnitude in enumerate(magnitudes):
                if which == 3 and num_arms == 100 and (turn + i) % 3:
                    continue
                if which == 3 and num_arms == 1000 and (i, turn) != (0, 2):
                    continue
                rate, scale = split(magnitude, turn + which)
                cases.append((play, dtype(scale) * loss, rate))
    return cases


@every_potential
@pytest.mark.parametrize(
    ("num_arms", "dtype"),
    some_in_default(
        itertools.product([2, 3, 4, 10, 100, 1000], FLOATS),
        # 4 and 10 arms as in test_mixability_properties.py, so that programs are shared.
        list(itertools.product([4, 10], FLOATS)),
    ),
)
def test_against_the_definition(num_arms, name, dtype):
    check(name, cases_of(num_arms, dtype), dtype)


@float32_in_default
@every_potential
def test_with_one_arm_there_is_no_gap(name, dtype):
    for play, loss, rate in cases_of(1, dtype):
        assert float(one_gap(POTENTIALS[name][0], play, loss, dtype(rate))) == 0


@every_float
@every_potential
def test_between_the_small_and_the_large_regime(name, dtype):
    """Densely where the method changes, around moves of a quarter and a half of a probability."""
    play = normalised([0.5, 0.3, 0.15, 0.05], dtype)
    losses = [[1, 0, 0, 0], [0, 0, -1, 0], [1, -1, 0.5, -0.25]]
    cases = [(play, loss, rate) for loss in losses for rate in np.geomspace(0.05, 50, 25)]
    check(name, cases, dtype)


def cancelling_cases(reference, dtype) -> list:
    """A loss of -|psi^{-1}(p)| / eta, about to lift an arm of 1e-9 from the bottom to the top.

    For the log barrier psi^{-1}(q) is then the difference of two numbers of size 1e9, and the gap
    feels the last bits of eta, l and p.
    """
    play = plays_of(10, dtype)[1]
    loss = -np.eye(10, dtype=dtype)[0]
    with mp.workdps(oracles.DIGITS):
        size = float(abs(reference.inverse(mpf(1e-9))))
    cases = []
    for turn, factor in enumerate([0.5, 0.9, 0.999, 1.0, 1.0, 1.0, 1.001, 1.1, 2.0]):
        rate, scale = split(factor * size, turn)
        cases.append((play, dtype(scale) * loss, rate))
    return cases


def close_cases(dtype) -> list:
    """Losses that differ by less than their size: only the differences, exact here, matter."""
    play = normalised([0.2, 0.3, 0.4, 0.1], dtype)
    near, far = [1 + 2**-10, 1 - 2**-9, 1, 1], [1000, 1001, 1002, 1003]
    return [(play, loss, rate) for loss in (near, far) for rate in (1e-6, 0.3, 7.0, 1e4)]


@every_float
@every_potential
def test_ill_conditioned_gaps(name, dtype):
    """The promised error, or four roundings of the arguments if the gap feels those more.

    p = (1e-9, 1) sums to 1 only up to rounding, and whether it is divided by its sum changes such
    a gap by as much.
    """
    cases = cancelling_cases(POTENTIALS[name][1], dtype)
    check(name, cases, dtype, conditioned=True)
    check(name, close_cases(dtype), dtype, conditioned=True)


@every_float
@pytest.mark.parametrize("name", ["log_barrier", "negative_entropy", "square_root"])
def test_ill_conditioned_gaps_of_the_very_arguments(name, dtype):
    """The promise to the letter, for p as it is given and q of the same sum."""
    POTENTIALS.setdefault("square_root", (square_root(), oracles.Tsallis(0.5)))
    check(name, cancelling_cases(POTENTIALS[name][1], dtype), dtype, as_given=True)


@every_float
@every_potential
def test_close_losses(name, dtype):
    """The promise to the letter, likewise."""
    check(name, close_cases(dtype), dtype)


@every_float
@every_potential
def test_a_rare_arm_does_not_hide_the_others(name, dtype):
    """A large loss on an arm of 1e-9 next to small differences between the likely arms.

    Both count; the gap feels an error of its arguments only three to seven times.
    """
    play = normalised([1e-9, 0.5, 0.3, 0.2], dtype)
    pairs = [(-1, 1e-9), (-1000, 1e-6), (-1, 1e-5), (1, 1e-5), (1, -1e-9)]
    losses = [[large, small, 0, 0] for large, small in pairs]
    check(name, [(play, loss, rate) for loss in losses for rate in (1e-3, 1.0)], dtype)


@every_float
@pytest.mark.parametrize("power", [0.05, 0.3, 0.9, 0.95, 0.99])
def test_other_tsallis_powers(power, dtype):
    """The promise holds from nearly the log barrier to nearly the entropy."""
    POTENTIALS.setdefault(f"tsallis({power})", (tsallis(power), oracles.Tsallis(power)))
    play = normalised([0.5, 0.3, 0.2, 1e-9], dtype)
    losses = [[1, 0, 0, 0], [0, 0, -1, 0], [0, 0, 0, -1]]
    rates = [1e-9, 1e-3, 0.1, 0.3, 1.0, 3.0, 30.0, 1e3, 1e8]
    cases = [(play, loss, rate) for loss in losses for rate in rates]
    check(f"tsallis({power})", cases, dtype)
    check(f"tsallis({power})", cases_of(10, dtype)[::3], dtype)


@every_float
@pytest.mark.parametrize(
    ("rate", "play", "arm", "loss", "wanted"),
    [
        (2, [0.5, 0.5], 0, 1, 0.1129935779567487),
        (3, [0.2, 0.3, 0.5], 1, -4, 1.47262926892907),
        (3, [0.2, 0.3, 0.5], 1, 4, 0.6660965050617612),
        (1, [0.9, 0.1], 0, 1e-3, 4.939345258940995e-9),
        (0.5, [0.25] * 4, 2, -1e6, 749926.3561626245),
        (10, [0.01, 0.09, 0.9], 2, 1e-8, 4.058909825588974e-18),
    ],
)
def test_known_values_of_the_log_barrier(rate, play, arm, loss, wanted, dtype):
    """Computed independently; the plays are rounded to the precision here, hence the bounds."""
    losses = loss * np.eye(len(play))[arm]
    columns = (np.array([column], dtype) for column in (play, losses, rate))
    (got,) = gaps(log_barrier(), *columns)
    assert math.isclose(float(got), wanted, rel_tol=BOUNDS[dtype])


@every_float
def test_two_arms_in_closed_form(dtype):
    """Log barrier: with p_1 = sigma(asinh(d/2)) before and d - eta l after, h(x) = x - log(1+x),
    D = the change of asinh(d/2): eta M = h(p_2 expm1(-D)) + h(p_1 expm1(D)).
    """
    cases, wanted = [], []
    with mp.workdps(oracles.GAP_DIGITS):
        for first in (0.5, 0.9, 0.001, 1e-7):
            play = normalised([first, 1 - first], dtype)
            p, q = oracles.normalised(play)
            d = 2 * mp.sinh(mp.log(p / q))
            for turn, magnitude in enumerate(np.geomspace(1e-9, 1e6, 12)):
                for sign in (-1, 1):
                    rate, scale = dtype(split(magnitude, turn))
                    loss = sign * mpf(float(scale))
                    change = mp.asinh((d - mpf(float(rate)) * loss) / 2) - mp.asinh(d / 2)
                    x, y = q * mp.expm1(-change), p * mp.expm1(change)
                    sum_h = (x - mp.log(1 + x)) + (y - mp.log(1 + y))
                    cases.append((play, [sign * scale, 0], rate))
                    wanted.append(sum_h / mpf(float(rate)))
    columns = [np.array(column, dtype) for column in zip(*cases)]
    got = gaps(log_barrier(), *columns)
    for value, exact in zip(got, wanted):
        if dtype == np.float64 or exact >= 1e-30:
            assert oracles.relative_error(value, exact) <= BOUNDS[dtype]


@every_float
def test_entropy_in_closed_form(dtype):
    """M = l.p + log(sum p exp(-eta l)) / eta."""
    play = normalised([0.2, 0.3, 0.5 - 1e-9, 1e-9], dtype)
    shapes = [[1, 0, 0, 0], [0, 0, -1, 0], [0, 0, 0, -1], [1, -1, 0.5, 0.25]]
    cases = [
        (play, dtype(shape) * dtype(scale), dtype(rate))
        for shape in shapes
        for rate, scale in (split(m, i) for i, m in enumerate(np.geomspace(1e-12, 1e6, 19)))
    ]
    got = gaps(negative_entropy(), *(np.array(c, dtype) for c in zip(*cases)))
    with mp.workdps(oracles.GAP_DIGITS):
        p = oracles.normalised(play)
        for value, (_, loss, rate) in zip(got, cases):
            eta, exact = mpf(float(rate)), oracles.exact(loss)
            mean = mp.fsum(a * y for a, y in zip(p, exact))
            mass = mp.fsum(a * mp.exp(-eta * y) for a, y in zip(p, exact))
            wanted = mean + mp.log(mass) / eta
            if dtype == np.float64 or wanted >= 1e-30:
                assert oracles.relative_error(value, wanted) <= BOUNDS[dtype]


# However it is mapped: XLA compiles every width anew, and fuses it differently.


@float32_in_default
@pytest.mark.parametrize(
    ("name", "width"),
    some_in_default(
        [*((name, 1) for name in POTENTIALS), ("log_barrier", 4), ("negative_entropy", 4)],
        [("log_barrier", 1), ("negative_entropy", 4)],
    ),
)
def test_any_number_of_games_side_by_side(name, width, dtype):
    """Right and finite with jax.vmap over so many games, and with lanes."""
    columns = random_cases(28, 3, dtype)
    lanes = jax.jit(over_lanes(functools.partial(mixability_gap, POTENTIALS[name][0])))
    mapped, laned = [], []
    for start in range(0, 28, width):
        play, loss, rate = (column[start : start + width] for column in columns)
        mapped.append(mapped_gaps(POTENTIALS[name][0], play, loss, rate))
        laned.append(lanes(play.T, loss.T, rate))
    check(name, list(zip(*columns)), dtype, np.concatenate(mapped), np.concatenate(laned))


@pytest.mark.parametrize(
    ("name", "dtype"),
    some_in_default(
        itertools.product(["log_barrier", "negative_entropy"], FLOATS),
        [("log_barrier", np.float64), ("negative_entropy", np.float32)],
    ),
)
def test_one_game_with_and_without_jit(name, dtype):
    made, _ = POTENTIALS[name]
    cases = list(zip(*random_cases(2, 3, dtype)))
    results = [
        np.array([function(made, *map(jnp.asarray, case)) for case in cases])
        for function in (one_gap, mixability_gap)
    ]
    check(name, cases, dtype, *results)
