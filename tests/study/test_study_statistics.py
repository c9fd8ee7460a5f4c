"""Intervals, tests and exponents of studies, against SciPy, plain loops and measured coverage."""

import numpy as np
import pytest
from scipy import stats

import sfmab_jax as sf
from sfmab_jax.results import statistics


def test_student_interval_is_students():
    values = np.random.default_rng(0).gamma(2.0, size=(13, 2))
    interval = statistics.student_interval(values, 0.9)
    for column in range(2):
        expected = stats.ttest_1samp(values[:, column], 0).confidence_interval(0.9)
        np.testing.assert_allclose(
            [interval.low[column], interval.high[column]], list(expected), rtol=1e-12
        )
    assert np.isnan(statistics.student_interval(values[:1]).low).all()


def test_bootstrap_t_interval_against_a_plain_loop():
    values = np.random.default_rng(1).exponential(size=9)
    got = statistics.bootstrap_t_interval(values[:, None], 0.9, seed=5)
    generator = np.random.default_rng(5)
    ratios = []
    for _ in range(1000):
        drawn = values[generator.integers(9, size=9)]
        ratios.append((drawn.mean() - values.mean()) / (drawn.std(ddof=1) / 3))
    low, high = np.quantile(ratios, [0.05, 0.95])
    error = values.std(ddof=1) / 3
    expected = [values.mean() - high * error, values.mean() - low * error]
    np.testing.assert_allclose([got.low[0], got.high[0]], expected, rtol=1e-9)


def test_bootstrap_of_equal_units_has_no_width():
    interval = statistics.bootstrap_t_interval(np.full((8, 1), 3.0))
    assert interval.low[0] == interval.high[0] == 3.0


def test_conditional_value_at_risk_counts_the_edge_in_part():
    values = np.arange(1.0, 11.0)  # the worst quarter: 10, 9 and half of 8
    expected = (10 + 9 + 0.5 * 8) / 2.5
    np.testing.assert_allclose(statistics.conditional_value_at_risk(values, 0.75), expected)
    shuffled = np.random.default_rng(0).permutation(np.arange(1000.0))
    np.testing.assert_allclose(
        statistics.conditional_value_at_risk(shuffled, 0.95), np.arange(950, 1000).mean()
    )
    assert statistics.conditional_value_at_risk(np.array([1.0, 7.0])) == 7.0


def test_paired_p_value_is_the_t_test():
    difference = np.random.default_rng(2).normal(0.3, size=20)
    expected = stats.ttest_1samp(difference, 0).pvalue
    np.testing.assert_allclose(statistics.paired_p_value(difference), expected, rtol=1e-12)
    assert statistics.paired_p_value(np.zeros(5)) == 1.0
    assert statistics.paired_p_value(np.full(5, -2.0)) == 0.0


def test_holm_by_hand():
    adjusted = statistics.holm(np.array([0.01, 0.04, 0.03, 0.005]))
    np.testing.assert_allclose(adjusted, [0.03, 0.06, 0.06, 0.02])
    assert len(statistics.holm(np.array([]))) == 0


def test_growth_exponent_of_a_power_with_noise():
    """The interval covers the exponent of the expected curve; without noise it is the exponent."""
    x = np.array([100.0, 200.0, 400.0, 800.0])
    exact = statistics.growth_exponent(x, np.tile(3 * x**0.5, (10, 1)))
    np.testing.assert_allclose(exact, 0.5, rtol=1e-12)
    generator = np.random.default_rng(0)
    covered = []
    for trial in range(60):
        noisy = (
            3
            * x**0.5
            * generator.gamma(4.0, 0.25, size=(50, 1))
            * generator.gamma(4.0, 0.25, size=(50, 4))
        )
        fitted = statistics.growth_exponent(x, noisy, seed=trial)
        covered.append(fitted.low <= 0.5 <= fitted.high)
    assert abs(np.mean(covered) - 0.95) < 4 * np.sqrt(0.95 * 0.05 / 60)
    assert np.isnan(statistics.growth_exponent(x, np.tile(-x, (10, 1))).exponent)
    assert np.isnan(statistics.growth_exponent(x[:1], np.ones((10, 1))).exponent)


# Laws by name: draws from uniform numbers, the mean, and whether the tail is light.
LAWS = {
    "exponential": (lambda u: -np.log1p(-u), 1.0, True),
    "uniform": (lambda u: u, 0.5, True),
    "student 2.5": (lambda u: stats.t.ppf(u, 2.5), 0.0, False),
    "pareto 1.5": (lambda u: (1 - u) ** (-1 / 1.5), 3.0, False),
    "log-normal 2": (lambda u: np.exp(2 * stats.norm.ppf(u)), np.exp(2.0), False),
}


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("count", [5, 50, 200])
def test_intervals_cover_what_they_say_or_are_marked(law, count):
    """1,000 samples of so many units: 95% has a standard error of 0.7% there."""
    draw, mean, is_light = LAWS[law]
    values = draw(np.random.default_rng(count).random((count, 1000)))
    doubtful = statistics.is_doubtful(values)
    for interval in (statistics.student_interval(values), statistics.bootstrap_t_interval(values)):
        missed = (mean < interval.low) | (interval.high < mean)
        assert np.mean(missed & ~doubtful) < 0.07
        if is_light and count >= 50:
            assert 0.03 < missed.mean() < 0.075
    if is_light and count == 200:
        assert doubtful.mean() < 0.3


def test_intervals_of_games_cover_their_means():
    """200 studies of 32 games each, over the family and on one sequence; the truth is of 25,600.

    Coverage of 95% has a standard error of 1.5% here; the truth's own is a 28th of a study's.
    """
    how = {"num_rounds": 40, "checkpoints": [40], "seed": 5, "progress": False}
    losses, bandit = sf.losses.bernoulli(num_arms=3), sf.strategies.exp3()
    for sequences in (None, 1):
        result = sf.simulate(bandit, losses, num_seeds=32_000, num_sequences=sequences, **how)
        for kind in ("expected", "realised"):
            values = result.samples(kind).ravel()
            truth = values[6_400:].mean()
            _, low, high = statistics.student_interval(values[:6_400].reshape(200, 32).T)
            covered = np.mean((low <= truth) & (truth <= high))
            assert abs(covered - 0.95) < 4 * 0.0155, (kind, covered)
