"""The law of each loss family against its definition."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from loss_samples import assert_law, assert_mean, means, rows
from scipy import stats

import sfmab_jax as sf


def test_bernoulli_law():
    losses = rows(sf.losses.bernoulli(num_arms=3, gap=0.3, mean=0.6, scale=4.0))
    assert set(np.unique(losses)) == {0.0, 4.0}
    assert_mean(losses == 4, [0.3, 0.6, 0.6])


def test_uniform_law():
    losses = rows(sf.losses.uniform(num_arms=3, gap=0.3, scale=5.0)) / 5
    assert_law(losses[:, 0] + 0.3, stats.uniform(-1, 2).cdf)
    assert_law(losses[:, 1:], stats.uniform(-1, 2).cdf)


def test_gaussian_law():
    losses = rows(sf.losses.gaussian(num_arms=3, gap=-0.7, scale=0.1)) / 0.1
    assert_law(losses[:, 0] - 0.7, stats.norm.cdf)
    assert_law(losses[:, 1:], stats.norm.cdf)


@pytest.mark.parametrize("degrees", [0.5, 1.0, 2.0, 3.0, 30.0])
def test_student_t_law(degrees):
    losses = rows(sf.losses.student_t(num_arms=2, degrees=degrees, gap=0.0))
    assert_law(losses, stats.t(degrees).cdf)


@pytest.mark.parametrize("index", [0.7, 1.5, 4.0])
def test_pareto_law(index):
    losses = rows(sf.losses.pareto(num_arms=2, index=index, gap=0.0))
    assert_law(losses, stats.pareto(index).cdf)


def test_log_normal_law():
    losses = rows(sf.losses.log_normal(num_arms=3, sigma=1.5, gap=0.4))
    assert_law(np.abs(losses), stats.lognorm(1.5).cdf)
    assert_mean(losses > 0, [0.3, 0.5, 0.5])


@pytest.mark.parametrize("num_nonzero", [1, 3, 4])
def test_sparse_law(num_nonzero):
    """s losses or none in a round, of size G; the arms uniform, the sign fair but for arm 0."""
    n, rate, gap = 4, 0.3, 0.5
    sequence = sf.losses.sparse(n, rate=rate, size=8.0, gap=gap, num_nonzero=num_nonzero, scale=0.5)
    assert sequence.magnitude == 4.0
    losses = np.asarray(rows(sequence), np.float64)
    assert set(np.unique(losses)) == {-4.0, 0.0, 4.0}
    assert set(np.count_nonzero(losses, axis=1)) == {0, num_nonzero}
    hit = num_nonzero * rate / n
    assert_mean(losses != 0, np.full(n, hit))
    assert_mean(losses > 0, hit * np.array([(1 - gap) / 2, 1 / 2, 1 / 2, 1 / 2]))
    happens = (losses != 0).any(axis=1).astype(np.float64)
    assert_mean((happens[1:] - rate) * (happens[:-1] - rate), 0)


@pytest.mark.parametrize(("rate", "hit"), [(0.0, False), (1.0, True)])
def test_sparse_rates_at_the_ends(rate, hit):
    losses = rows(sf.losses.sparse(num_arms=3, rate=rate), 1000)
    np.testing.assert_array_equal((losses != 0).any(axis=1), np.full(1000, hit))


def test_constrained_adversarial_phases():
    """Of lengths 1, 2, 4, 7, 12, 20, ... With gap 1 nothing is random in the first regime."""
    sequence = sf.losses.constrained_adversarial(num_arms=2, gap=1.0)
    certain = means(sequence, 46)
    np.testing.assert_array_equal(certain[:, 0], np.zeros(46))
    np.testing.assert_array_equal(certain[:, 1], np.ones(46))
    stated = means(sf.losses.constrained_adversarial(2, gap=0.25), 46)
    regime = np.repeat([0, 1, 0, 1, 0, 1], [1, 2, 4, 7, 12, 20])
    np.testing.assert_allclose(stated[:, 0], 0.75 * regime, atol=1e-6)
    np.testing.assert_allclose(stated[:, 1], 0.25 + 0.75 * regime, atol=1e-6)


def test_switching_at_given_rounds():
    sequence = sf.losses.switching(num_arms=5, gap=0.2, switches=(10, 4))
    for seed in range(20):
        best = np.argmin(means(sequence, 20, seed), axis=1)
        np.testing.assert_array_equal(np.flatnonzero(np.diff(best)) + 2, [4, 10])


def test_switching_at_random_rounds():
    """Uniform on 2 ... T, and the arms uniform."""
    sequence = sf.losses.switching(num_arms=3, switches=4, num_rounds=50)
    drawn = jax.jit(jax.vmap(sequence.init))(jax.random.split(jax.random.key(3), 4000))
    times, best = map(np.asarray, drawn)
    assert times.shape == (4000, 4)
    assert times.min() == 2
    assert times.max() == 50
    assert (np.diff(times, axis=1) >= 0).all()
    assert_mean(times.mean(axis=1), 26)
    assert (np.diff(best, axis=1) != 0).all()
    for arm in range(3):
        assert_mean(best == arm, np.full(5, 1 / 3))
    assert (
        sf.losses.switching(num_arms=1, switches=2).init(jax.random.key(0))[1].tolist() == [0] * 3
    )


def test_neu_switch_means():
    sequence = sf.losses.neu_switch(num_arms=4, gap=0.1, num_rounds=10)
    stated = means(sequence, 10)
    np.testing.assert_allclose(stated[:5], [[0.5, 0.5, 0.4, 0.6]] * 5, rtol=1e-6)
    np.testing.assert_allclose(stated[5:], [[0.5, 0.5, 0.4, 0.1]] * 5, rtol=1e-6)


def test_corrupted_means():
    sequence = sf.losses.corrupted(num_arms=2, gap=0.1, budget=3)
    stated = means(sequence, 5)
    np.testing.assert_allclose(stated[:, 0], [0.6, 0.6, 0.6, 0.4, 0.4], rtol=1e-6)
    np.testing.assert_allclose(stated[:, 1], np.full(5, 0.5))


def test_scales_of_the_stress_families():
    """The same draws as the uniform family has, times the stated scale."""
    base = np.asarray(rows(sf.losses.uniform(num_arms=2), 40), np.float64)
    t = np.arange(1, 41)

    def scale_of(sequence):
        return (np.asarray(rows(sequence, 40), np.float64) / base)[:, 0]

    for ratio in (1e6, 1e-3):
        grown = sf.losses.growing(num_arms=2, ratio=ratio, num_rounds=20)
        wanted = ratio ** (np.minimum(t, 20) / 20)
        np.testing.assert_allclose(scale_of(grown), wanted, rtol=1e-5)
    spike = sf.losses.late_spike(num_arms=2, exponent=3, num_rounds=7)
    np.testing.assert_allclose(scale_of(spike), np.where(t == 7, 1000, 1), rtol=1e-6)
    regimes = sf.losses.scale_regimes(num_arms=2, factors=(1, 50, 0.1), period=5)
    wanted = np.resize(np.repeat([1, 50, 0.1], 5), 40)
    np.testing.assert_allclose(scale_of(regimes), wanted, rtol=1e-6)


def test_alternating_signs():
    losses = rows(sf.losses.alternating(num_arms=3, gap=0.0), 1000)
    assert (losses[::2] <= 0).all()
    assert (losses[1::2] >= 0).all()
    assert_law(np.abs(losses), stats.uniform.cdf)


def test_random_walk_steps():
    sequence = sf.losses.random_walk(num_arms=3, step=0.05)
    walk = np.asarray(rows(sequence, 20_000), np.float64)
    assert np.abs(walk).max() == 1
    inside = (np.abs(walk[1:]) < 1).all(axis=1)
    free = (np.abs(walk[:-1]) < 0.7).all(axis=1) & inside
    assert_law(np.diff(walk, axis=0)[free] / 0.05, stats.norm.cdf)


def test_sinusoidal_wave():
    t = np.arange(1, 301)[:, None]
    wave = np.sin(2 * np.pi * (t / 100 + np.arange(4) / 4))
    quiet = rows(sf.losses.sinusoidal(num_arms=4, period=100, noise=0.0), 300)
    np.testing.assert_allclose(quiet, wave, atol=2e-6)
    loud = rows(sf.losses.sinusoidal(num_arms=4, period=100, noise=0.5), 300)
    assert_law((np.asarray(loud) - wave) / 0.5, stats.norm.cdf)


def test_slowly_varying_waves():
    sequence = sf.losses.slowly_varying(num_arms=4, period=500)
    key = jax.random.key(1)
    cosines, sines = (np.asarray(part, np.float64) for part in sequence.init(key))
    assert cosines.shape == sines.shape == (3, 4)
    np.testing.assert_allclose(cosines**2 + sines**2, 1, atol=1e-6)
    phases = np.arctan2(sines, cosines) / (2 * np.pi)
    t = np.arange(1, 1001)[:, None]
    waves = [np.cos(2 * np.pi * (k * t / 500 + phases[k - 1])) for k in (1, 2, 3)]
    losses = rows(sequence, 1000, seed=1)
    np.testing.assert_allclose(losses, sum(waves) / 3, atol=1e-5)
    assert np.abs(np.diff(losses, axis=0)).max() <= 4 * np.pi / 500


def test_deterministic_families():
    np.testing.assert_array_equal(
        rows(sf.losses.cyclic(num_arms=3), 4), [[1, 0, 1], [1, 1, 0], [0, 1, 1], [1, 0, 1]]
    )
    signs = np.asarray(rows(sf.losses.parity(num_arms=3), 9))[:, 0]
    np.testing.assert_array_equal(signs, [0, 1, 1, 0, 0, 0, 0, 1, 1])
    np.testing.assert_array_equal(rows(sf.losses.zero(num_arms=3), 2), np.zeros((2, 3)))
    np.testing.assert_array_equal(
        rows(sf.losses.one_arm(num_arms=3, arm=1, loss=2.0), 2), [[0, 2, 0], [0, 2, 0]]
    )


def test_minimax_gap_and_arm():
    sequence = sf.losses.minimax(num_arms=4, num_rounds=10_000, constant=0.5)
    best = jax.jit(jax.vmap(sequence.init))(jax.random.split(jax.random.key(0), 4000))
    assert_mean(best, np.full(4, 0.25))
    mean = sequence.mean(best[0], jnp.int32(1))
    np.testing.assert_allclose(np.sort(mean), [0.49, 0.5, 0.5, 0.5], rtol=1e-6)
    assert float(sf.losses.minimax(4, num_rounds=1).mean(best[0], jnp.int32(1)).min()) == 0


def test_shared_noise_law():
    sequence = sf.losses.shared_noise(num_arms=3, gap=0.05, sigma=0.1)
    losses = np.asarray(rows(sequence, 20_000), np.float64)
    apart = losses.max(axis=1) - losses.min(axis=1)
    assert apart.max() <= 0.05 + 1e-6
    best = np.argmin(losses.sum(axis=0))
    others = np.delete(losses, best, axis=1)
    np.testing.assert_array_equal(others[:, 0], others[:, 1])
    assert_law(others[:, 0], stats.norm(0.5, 0.1).cdf)
