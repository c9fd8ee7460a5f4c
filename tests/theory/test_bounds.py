"""The bounds of Theorem 1 against the lines of its proof, typed anew from section 6."""

import json
import math
from pathlib import Path

import mpmath as mp
import numpy as np
import pytest

import sfmab_jax as sf
from sfmab_jax.theory.verify.claims_theorem import norms_of as norms_of_losses

pytestmark = pytest.mark.quick

GOLDEN = json.loads((Path(__file__).parents[1] / "data" / "golden.json").read_text())

# num_arms, then T, L_1, L_2, L_inf, S_inf by hand.
CASES = [
    (2, [8, 9, 100], [6.5, 7.0, 80.0], [5.0, 5.5, 66.0], [1.0, 1.0, 1.5], [1.5, 0.5, 12.0]),
    (10, [1, 39, 40, 41], [0, 3, 4, 9], [0, 9, 10, 20], [0, 3, 3, 3], [0, 1, 2, 7]),
    (3, [1_000_000], [2e6], [3e9], [5e3], [1.7e6]),
    (1, [1, 4, 50], [1.0, 4.0, 50.0], [1.0, 4.0, 50.0], [1.0, 1.0, 1.0], [1.0, 4.0, 50.0]),
]
EACH_CASE = pytest.mark.parametrize("case", CASES, ids=[f"n={case[0]}" for case in CASES])


def norms_of(num_arms, rounds, l_1, l_2, l_inf, s_inf):
    """`Norms` of one sequence; the bounds do not use the best or the mean arm."""
    l_1, l_2, l_inf, s_inf = (np.array([x], np.float64) for x in (l_1, l_2, l_inf, s_inf))
    unused = np.full_like(l_1, np.nan)
    return sf.Norms(num_arms, np.array(rounds), l_1, l_2, l_inf, s_inf, unused, unused)


def columns(case):
    """The numbers of each checkpoint."""
    return [(case[0], *(mp.mpf(x) for x in column)) for column in zip(*case[1:], strict=True)]


def exploration_sum(n, num_rounds):
    """sum of gamma_{t-1} over t = 1 ... T, option 1."""
    gammas = (0.5 if t == 0 else min(0.5, math.sqrt(n / t)) for t in range(int(num_rounds)))
    return math.fsum(gammas)


@EACH_CASE
def test_option_2_as_printed(case):
    """Section 6.2, the last explicit line; nothing in it needed correcting."""
    bound = sf.bounds.scale_free(norms_of(*case), exploration="adaptive")
    wanted = []
    for n, _, l_1, l_2, l_inf, s_inf in columns(case):
        log = mp.log(1 + s_inf)
        wanted.append(
            2 + log + mp.sqrt(2 * n * l_2) * (log + 1)
            + 2 * n * l_inf * (2 + l_inf) * (log + 1) + n * l_inf
            + (2 * l_inf * (log + 1) + 1) * mp.sqrt(2 * n * l_1)
        )  # fmt: skip
    wanted = np.array([wanted], np.float64)
    np.testing.assert_allclose(bound.printed, wanted, rtol=1e-13)
    np.testing.assert_allclose(bound.corrected, wanted, rtol=1e-13)


@EACH_CASE
def test_option_1_as_printed(case):
    """Section 6.1, for T >= 4n; nothing is printed for fewer rounds."""
    bound = sf.bounds.scale_free(norms_of(*case), exploration="decaying")
    for got, (n, num_rounds, _, l_2, l_inf, s_inf) in zip(bound.printed[0], columns(case)):
        log = mp.log(1 + s_inf)
        wanted = (
            2 + log + mp.sqrt(2 * n * l_2) * (1 + log)
            + 2 * l_inf * mp.sqrt(n * num_rounds) * (2 + log)
        )  # fmt: skip
        if num_rounds < 4 * n:
            assert np.isnan(got)
        else:
            np.testing.assert_allclose(got, float(wanted), rtol=1e-13)


@EACH_CASE
def test_option_1_corrected(case):
    """The line before, with epsilon = 1 / (1 + S_inf), 1/gamma_T and sum gamma as they are."""
    bound = sf.bounds.scale_free(norms_of(*case), exploration="decaying")
    for got, (n, num_rounds, _, l_2, l_inf, s_inf) in zip(bound.corrected[0], columns(case)):
        epsilon = 1 / (1 + s_inf)
        log = mp.log(1 / epsilon)
        last_gamma = min(mp.mpf(1) / 2, mp.sqrt(n / num_rounds))
        wanted = (
            2 * epsilon * s_inf + log + mp.sqrt(2 * n * l_2) * (log + 1)
            + 2 * n * l_inf * (log + 1) / last_gamma
            + 2 * l_inf * mp.mpf(exploration_sum(n, num_rounds))
        )  # fmt: skip
        # A million terms of the sum are added in another order.
        np.testing.assert_allclose(got, float(wanted), rtol=1e-12)


@pytest.mark.parametrize(("multiple", "ratio"), [(4, 1.0), (16, 1.50), (100, 1.80), (10_000, 1.98)])
def test_the_slip_in_option_1(multiple, ratio):
    """The last line takes sum gamma_{t-1} <= sqrt(nT), which fails for every T > 4n.

    With losses that leave only L_inf = 1, the corrected bound shows the sum: its ratio to
    sqrt(nT) for n = 10 was found to be 1, 1.50, 1.80, 1.98 and tends to 2.
    """
    n, num_rounds = 10, 10 * multiple
    norms = norms_of(n, [num_rounds], [0.0], [0.0], [1.0], [0.0])
    bound = sf.bounds.scale_free(norms, exploration="decaying")
    total = (bound.corrected[0, 0] - 2 * n * max(2, math.sqrt(num_rounds / n))) / 2
    np.testing.assert_allclose(total, exploration_sum(n, num_rounds), rtol=1e-12)
    np.testing.assert_allclose(total / math.sqrt(n * num_rounds), ratio, atol=0.005)
    # The first excess is that of T = 4n + 1, where sqrt(nT) grows by less than 1/2.
    if multiple == 4:
        assert total <= math.sqrt(n * num_rounds)
        assert exploration_sum(n, num_rounds + 1) > math.sqrt(n * (num_rounds + 1))
    else:
        assert total > math.sqrt(n * num_rounds)


def test_several_sequences_and_checkpoints_keep_their_shape():
    rounds = np.array([5, 50])
    norms = sf.Norms(4, rounds, *(np.full((3, 2), float(k)) for k in range(1, 7)))
    for exploration in ("adaptive", "decaying"):
        bound = sf.bounds.scale_free(norms, exploration=exploration)
        assert bound.printed.shape == bound.corrected.shape == (3, 2)
    assert np.isnan(bound.printed[:, 0]).all()
    assert np.isfinite(bound.printed[:, 1]).all()


@pytest.mark.parametrize("exploration", ["decaying", "adaptive"])
@pytest.mark.parametrize("table", GOLDEN["exact_expected_regret"], ids=lambda table: table["name"])
def test_exact_regret_is_below_the_bound(table, exploration):
    """The theorem on tables whose expected regret is known exactly."""
    measured = table["norms"]
    num_rounds, n = len(table["losses"]), len(table["losses"][0])
    norms = norms_of(
        n, [num_rounds], *([measured[name]] for name in ("l_1", "l_2", "l_inf", "s_inf"))
    )
    bound = sf.bounds.scale_free(norms, exploration=exploration)
    assert 0 < table[exploration]["regret"] < bound.corrected[0, 0]


def test_unknown_exploration():
    norms = norms_of(*CASES[0])
    with pytest.raises(ValueError, match="exploration is 'sometimes'"):
        sf.bounds.scale_free(norms, exploration="sometimes")


# The tight form.


def measured(losses):
    """`Norms` of one sequence [T, n] with every round a checkpoint, from their definitions."""
    rows = []
    for num_rounds in range(1, len(losses) + 1):
        first = losses[:num_rounds]
        total = first.sum(axis=0)
        sizes = np.abs(first).sum(), (first**2).sum(), np.abs(first).max(), np.abs(total).max()
        least = total.min(), total.mean(), first.min(), total.argmin()
        rows.append([num_rounds, *sizes, *least])
    rounds, *norms = np.array(rows).T
    return sf.Norms(losses.shape[1], rounds.astype(int), *(norm[None] for norm in norms))


def least_over_epsilon(n, excess, gaps, exploring):
    """min of epsilon D + F_epsilon (1 + X)/n + X + exploring by golden section in log epsilon."""

    def value(log_epsilon):
        epsilon = mp.exp(log_epsilon)
        point = [1 - epsilon + epsilon / n] + [epsilon / n] * (n - 1)
        cost = mp.fsum(-mp.log(x) - mp.log(n) for x in point)
        return epsilon * excess + cost * (1 + gaps) / n + gaps + exploring

    low, high, golden = mp.mpf(-40), mp.mpf(0), (mp.sqrt(5) - 1) / 2
    for _ in range(150):
        a, b = high - golden * (high - low), low + golden * (high - low)
        low, high = (low, b) if value(a) < value(b) else (a, high)
    return min(value((low + high) / 2), value(mp.mpf(0)))


@pytest.mark.parametrize("exploration", ["decaying", "adaptive"])
@pytest.mark.parametrize("num_arms", [1, 2, 7])
@pytest.mark.parametrize("scale", [1e-3, 1.0, 50.0])
def test_tight_form(num_arms, scale, exploration):
    """The proof's quantities summed round by round, the minimum over epsilon by search."""
    n, num_rounds = num_arms, 60
    losses = scale * np.random.default_rng(n).normal(size=(num_rounds, n))
    losses[:, 0] -= scale / 2
    norms = measured(losses)
    for ours, theirs in zip(norms_of_losses(losses), norms):
        # Sums of 60 rounds in another order.
        np.testing.assert_allclose(ours, theirs, rtol=1e-12, atol=1e-12 * scale)
    bound = sf.bounds.scale_free(norms, exploration=exploration)
    gammas = [0.5 if t == 0 else min(0.5, math.sqrt(n / t)) for t in range(num_rounds)]
    l_inf = mp.mpf(np.abs(losses).max())
    totals = losses.sum(axis=0)
    excess = mp.mpf(totals.mean() - totals.min())
    if exploration == "decaying":
        m = n * l_inf / gammas[-1]
        spent = mp.fsum(sum(row**2) / (1 - g) for row, g in zip(losses, gammas))
        gaps = ((m - 2) + mp.sqrt((m - 2) ** 2 + 4 * n * spent)) / 2
        exploring = 2 * (1 - mp.mpf(1) / n) * l_inf * mp.fsum(gammas)
    else:
        l_1, b = mp.mpf(np.abs(losses).sum()), n * (l_inf - 4)
        mass = min(l_1 / 2, (b + mp.sqrt(b**2 + 8 * n * l_1)) / 2)
        gaps = mp.sqrt(2 * n * mp.mpf((losses**2).sum())) + l_inf * (2 * n + mass)
        exploring = (1 - mp.mpf(1) / n) * mass
    wanted = least_over_epsilon(n, excess, gaps, exploring)
    np.testing.assert_allclose(bound.tight[0, -1], float(wanted), rtol=1e-9)
    assert (bound.tight <= bound.corrected).all()


def test_tight_form_between_checkpoints_is_an_upper_bound():
    """Few checkpoints take the exploration where it is largest: never below, and close."""
    losses = np.random.default_rng(3).normal(size=(500, 4))
    full = measured(losses)
    few = [4, 15, 60, 120, 300, 499]
    kept = [full.rounds[few], *(column[:, few] for column in full[2:])]
    exact = sf.bounds.scale_free(full, exploration="decaying").tight[:, few]
    coarse = sf.bounds.scale_free(sf.Norms(4, *kept), exploration="decaying").tight
    assert (coarse >= exact * (1 - 1e-12)).all()
    np.testing.assert_allclose(coarse, exact, rtol=0.05)


@pytest.mark.parametrize("exploration", ["decaying", "adaptive"])
@pytest.mark.parametrize("table", GOLDEN["exact_expected_regret"], ids=lambda table: table["name"])
def test_exact_regret_is_below_the_tight_form(table, exploration):
    bound = sf.bounds.scale_free(measured(np.array(table["losses"], float)), exploration)
    assert table[exploration]["regret"] < bound.tight[0, -1]


def test_readings_name_every_option_and_reading():
    wanted = {(o, r) for o in ("adaptive", "decaying") for r in sf.bounds.ScaleFreeBound._fields}
    assert {(reading.exploration, reading.reading) for reading in sf.bounds.READINGS} == wanted
