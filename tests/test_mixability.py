"""The mixability gap M(eta) against its definition in 110-digit arithmetic."""

import functools
import math

import jax
import jax.numpy as jnp
import numpy as np
import oracles
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mpmath import mp, mpf

from sfmab_jax.lanes import over_lanes
from sfmab_jax.mixability import mixability_gap
from sfmab_jax.potentials import log_barrier, negative_entropy, tsallis
from sfmab_jax.simplex import distribution

POTENTIALS = {
    "log_barrier": (log_barrier(), oracles.LogBarrier()),
    "negative_entropy": (negative_entropy(), oracles.Entropy()),
    "tsallis(0.5)": (tsallis(0.5), oracles.Tsallis(0.5)),
    "tsallis(0.8)": (tsallis(0.8), oracles.Tsallis(0.8)),
}
FLOATS = [np.float32, np.float64]
# The relative errors promised.
BOUNDS = {np.float32: 1e-5, np.float64: 1e-12}

every_potential = pytest.mark.parametrize("name", POTENTIALS)
every_float = pytest.mark.parametrize("dtype", FLOATS)

mapped_gaps = jax.jit(jax.vmap(mixability_gap, in_axes=(None, 0, 0, 0)))
one_gap = jax.jit(mixability_gap)


def gaps(made, *columns) -> np.ndarray:
    """The gaps of many cases, always 64 side by side, to compile once for a number of arms."""
    num_cases = len(columns[0])
    results = []
    for start in range(0, num_cases, 64):
        rows = np.minimum(np.arange(start, start + 64), num_cases - 1)
        results.append(mapped_gaps(made, *(column[rows] for column in columns)))
    return np.concatenate(results)[:num_cases]


def check(name, cases, dtype, *results, conditioned=False):
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
        wanted = oracles.mixability_gap(reference, play, loss, rate)
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


def normalised(p, dtype) -> np.ndarray:
    return (np.asarray(p) / np.sum(p)).astype(dtype)


def plays_of(num_arms: int, dtype) -> list[np.ndarray]:
    """Uniform, Dirichlet, one arm above many of 1e-9, and one of 1e-9 below many."""
    rng = np.random.default_rng(num_arms)
    if num_arms == 1:
        return [np.ones(1, dtype)]
    dominated, rare = np.full(num_arms, 1e-9), np.full(num_arms, 1 / num_arms)
    dominated[num_arms // 2] = 1
    rare[0] = 1e-9
    dirichlet = np.maximum(rng.dirichlet(np.ones(num_arms)), 1e-9)
    return [normalised(p, dtype) for p in (np.ones(num_arms), dominated, rare, dirichlet)]


def losses_of(play: np.ndarray) -> list[np.ndarray]:
    """Dense losses; and one loss, of either sign, on the most and on the least likely arm.

    The dense ones have at most ten values, as the reference counts equal arms.
    """
    num_arms = len(play)
    one_hot = np.eye(num_arms, dtype=play.dtype)
    most, least = int(np.argmax(play)), int(np.argmin(play))
    levels = np.linspace(-1, 1, min(num_arms, 10))
    dense = np.random.default_rng(num_arms).permutation(np.resize(levels, num_arms))
    single = [one_hot[most], -one_hot[most], one_hot[least], -one_hot[least]]
    return [dense.astype(play.dtype), *single]


def split(magnitude: float, turn: int) -> tuple[float, float]:
    """eta and a loss whose product is the magnitude, in three ways."""
    root = math.sqrt(magnitude)
    return [(magnitude, 1.0), (1.0, magnitude), (root, root)][turn % 3]


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


@every_float
@every_potential
@pytest.mark.parametrize("num_arms", [2, 3, 10, 100, 1000])
def test_against_the_definition(num_arms, name, dtype):
    check(name, cases_of(num_arms, dtype), dtype)


@every_float
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
    play = normalised([0.2, 0.3, 0.5], dtype)
    near, far = [1 + 2**-10, 1 - 2**-9, 1], [1000, 1001, 1002]
    return [(play, loss, rate) for loss in (near, far) for rate in (1e-6, 0.3, 7.0, 1e4)]


@every_float
@every_potential
def test_ill_conditioned_gaps(name, dtype):
    """The promised error, or four roundings of the arguments if the gap feels those more.

    More cannot be asked: p = (1e-9, 1) sums to 1 only up to rounding, and whether it is meant to
    be divided by its sum or to have its largest entry mended changes such a gap by as much.
    """
    cases = cancelling_cases(POTENTIALS[name][1], dtype)
    check(name, cases, dtype, conditioned=True)
    check(name, close_cases(dtype), dtype, conditioned=True)


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
    play = normalised([1e-9, 0.5, 0.5], dtype)
    losses = [[-1, 1e-9, 0], [-1000, 1e-6, 0], [-1, 1e-5, 0], [1, 1e-5, 0], [1, 0, 1e-9]]
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
    losses = np.zeros(len(play), dtype)
    losses[arm] = loss
    got = float(one_gap(log_barrier(), np.array(play, dtype), losses, dtype(rate)))
    assert math.isclose(got, wanted, rel_tol=BOUNDS[dtype])


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


def random_cases(num_cases: int, num_arms: int, dtype) -> tuple:
    """Everyday inputs: losses spread over their own size, eta l from 1e-6 to 1e6."""
    rng = np.random.default_rng(7)
    spread = rng.permuted(np.tile(np.linspace(-1, 1, num_arms), (num_cases, 1)), axis=1)
    losses = (spread * 10.0 ** rng.uniform(-3, 3, (num_cases, 1))).astype(dtype)
    rates = (10.0 ** rng.uniform(-3, 3, num_cases)).astype(dtype)
    return rng.dirichlet(np.ones(num_arms), num_cases).astype(dtype), losses, rates


@every_float
@pytest.mark.parametrize(
    ("name", "width"),
    [*((name, 1) for name in POTENTIALS), ("log_barrier", 4), ("negative_entropy", 4)],
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


@every_float
@pytest.mark.parametrize("name", ["log_barrier", "negative_entropy"])
def test_one_game_with_and_without_jit(name, dtype):
    made, _ = POTENTIALS[name]
    cases = list(zip(*random_cases(6, 3, dtype)))
    results = [
        np.array([function(made, *map(jnp.asarray, case)) for case in cases])
        for function in (one_gap, mixability_gap)
    ]
    check(name, cases, dtype, *results)


# Properties.

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
