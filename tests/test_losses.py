"""Loss families: their laws against their definitions, and what they refuse."""

import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

import sfmab_jax as sf
from sfmab_jax.feed import Feed

FAMILIES = sf.losses.LOSSES
each_family = pytest.mark.parametrize("name", FAMILIES)
NUM_ROUNDS = 100_000

# Parameters with which the first two moments exist and their estimates are nearly normal.
LIGHT = {
    "student_t": {"degrees": 9.0},
    "pareto": {"index": 9.0},
    "log_normal": {"sigma": 0.3},
    "growing": {"ratio": 8.0},
    "late_spike": {"exponent": 1.0, "num_rounds": 85},
    "switching": {"num_rounds": NUM_ROUNDS},
    "neu_switch": {"num_rounds": NUM_ROUNDS},
    "corrupted": {"budget": NUM_ROUNDS // 4},
}


@jax.jit
def draw(next_loss, state, key, rounds):
    def step(state, t):
        return next_loss(state, key, t)

    return jax.lax.scan(step, state, rounds)[1]


@jax.jit
def draw_means(mean, state, rounds):
    return jax.lax.map(lambda t: mean(state, t), rounds)


def rounds_to(num_rounds):
    return jnp.arange(1, num_rounds + 1, dtype=jnp.int32)


def rows(sequence, num_rounds=NUM_ROUNDS, seed=0):
    """The first losses of a sequence, [T, n]."""
    key = jax.random.key(seed)
    return draw(sequence.next, sequence.init(key), key, rounds_to(num_rounds))


def assert_mean(samples, wanted):
    """The mean over axis 0 is the one wanted, within four standard errors."""
    samples = np.asarray(samples, np.float64)
    error = samples.std(axis=0, ddof=1) / np.sqrt(len(samples))
    np.testing.assert_array_less(np.abs(samples.mean(axis=0) - wanted), 4 * error + 1e-12)


def assert_law(samples, cdf):
    """Kolmogorov and Smirnov's distance; above 2 / sqrt(T) it has a probability of 7e-4."""
    samples = np.asarray(samples, np.float64).ravel()
    assert stats.kstest(samples, cdf).statistic < 2 / np.sqrt(len(samples))


# What all families share.


@each_family
def test_family_is_reproducible_and_float32(name):
    sequence = FAMILIES[name](num_arms=4)
    assert sequence.num_arms == 4
    assert sequence.name == name
    assert sequence.num_rounds is None
    assert sequence.num_sequences is None
    losses = rows(sequence, 256)
    assert losses.shape == (256, 4)
    assert losses.dtype == jnp.float32
    assert jnp.isfinite(losses).all()
    np.testing.assert_array_equal(losses, rows(FAMILIES[name](num_arms=4), 256))


@each_family
def test_family_depends_on_key_and_round_alone(name):
    """A family without memory gives any round by itself."""
    sequence = FAMILIES[name](num_arms=4)
    key = jax.random.key(0)
    state = sequence.init(key)
    if name == "random_walk":
        assert jax.tree.leaves(state)
        return
    some = jnp.array([9, 1, 77], jnp.int32)
    losses = rows(sequence, 100)
    np.testing.assert_array_equal(draw(sequence.next, state, key, some), losses[some - 1])


@each_family
def test_family_does_not_depend_on_float64_being_enabled(name):
    """A float32 and a float64 simulation of one seed play on the same losses."""
    wide = np.asarray(rows(FAMILIES[name](num_arms=4), 64))
    with jax.enable_x64(False):
        narrow = np.asarray(rows(FAMILIES[name](num_arms=4), 64))
    np.testing.assert_array_equal(wide, narrow)


@each_family
def test_family_is_proportional_to_its_scale(name):
    """A power of two commutes with every rounding."""
    one = FAMILIES[name](num_arms=4)
    large = FAMILIES[name](num_arms=4, scale=2.0**60)
    np.testing.assert_array_equal(rows(one, 256) * np.float32(2.0**60), rows(large, 256))
    assert large.magnitude == one.magnitude * 2.0**60


@each_family
def test_family_is_the_same_in_any_chunks(name):
    """One chunk of a member alone, and short chunks of it beside others."""
    sequence = FAMILIES[name](num_arms=3)

    def fed(members, chunk):
        options = {"seed": 5, "unit": 1.0, "dtype": np.dtype(np.float32)}
        feed = Feed(sequence, np.array(members), chunk_rounds=chunk, **options)
        return np.concatenate([feed.chunk(1 + first) for first in range(0, 96, chunk)])

    np.testing.assert_array_equal(fed([2], 96)[..., 0], fed([0, 1, 2], 12)[..., 2])


@each_family
def test_memory_does_not_grow_with_the_rounds(name):
    """The arrays that live after one chunk and after a chunk that ends in round 10^7."""
    sequence = FAMILIES[name](num_arms=3)
    options = {"seed": 0, "unit": 1.0, "dtype": np.dtype(np.float32)}
    feed = Feed(sequence, np.array([0]), chunk_rounds=4096, **options)

    def bytes_alive():
        return sum(array.nbytes for array in jax.live_arrays())

    chunk = feed.chunk(1)
    before = bytes_alive()
    chunk = feed.chunk(10_000_000 - 4095)
    assert bytes_alive() == before
    assert np.isfinite(chunk).all()


HEAVY = {"student_t", "pareto", "log_normal"}


@each_family
def test_magnitude_is_about_the_largest_loss(name):
    """Within a factor of four, or a hundred with heavy tails: it only chooses a unit."""
    factor = 100 if name in HEAVY else 4
    sequence = FAMILIES[name](num_arms=4)
    largest = float(jnp.max(jnp.abs(rows(sequence, 10_000))))
    if name == "zero":
        assert largest == 0
    else:
        assert sequence.magnitude / factor <= largest <= factor * sequence.magnitude


@each_family
def test_means_are_as_stated(name):
    """sum_t (l_t - mean_t) within four standard errors, for every arm and two members."""
    sequence = FAMILIES[name](num_arms=3, scale=2.0, **LIGHT.get(name, {}))
    if name == "random_walk":
        assert sequence.mean is None
        return
    for seed in (0, 1):
        state = sequence.init(jax.random.key(seed))
        means = draw_means(sequence.mean, state, rounds_to(NUM_ROUNDS))
        noise = np.asarray(rows(sequence, seed=seed), np.float64) - np.asarray(means, np.float64)
        assert_mean(noise, 0)


def test_means_that_do_not_exist():
    assert sf.losses.pareto(index=1.0).mean is None
    assert sf.losses.student_t(degrees=1.0).mean is None


@pytest.mark.parametrize("name", ["bernoulli", "uniform", "gaussian", "student_t", "pareto"])
def test_draws_are_independent(name):
    losses = np.asarray(rows(FAMILIES[name](num_arms=3, gap=0.0, **LIGHT.get(name, {}))))
    noise = losses.astype(np.float64) - losses.mean(axis=0)
    assert_mean(noise[:, 0] * noise[:, 1], 0)
    assert_mean(noise[1:] * noise[:-1], 0)


# Laws.


def test_bernoulli_law():
    losses = np.asarray(rows(sf.losses.bernoulli(num_arms=3, gap=0.3, mean=0.6, scale=4.0)))
    assert set(np.unique(losses)) == {0.0, 4.0}
    assert_mean(losses == 4, [0.3, 0.6, 0.6])


def test_uniform_law():
    losses = np.asarray(rows(sf.losses.uniform(num_arms=3, gap=0.3, scale=5.0))) / 5
    assert_law(losses[:, 0] + 0.3, stats.uniform(-1, 2).cdf)
    assert_law(losses[:, 1:], stats.uniform(-1, 2).cdf)


def test_gaussian_law():
    losses = np.asarray(rows(sf.losses.gaussian(num_arms=3, gap=-0.7, scale=0.1))) / 0.1
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
    losses = np.asarray(rows(sf.losses.log_normal(num_arms=3, sigma=1.5, gap=0.4)))
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
    means = np.asarray(draw_means(sequence.mean, (), rounds_to(46)))
    np.testing.assert_array_equal(means[:, 0], np.zeros(46))
    np.testing.assert_array_equal(means[:, 1], np.ones(46))
    means = draw_means(sf.losses.constrained_adversarial(2, gap=0.25).mean, (), rounds_to(46))
    regime = np.repeat([0, 1, 0, 1, 0, 1], [1, 2, 4, 7, 12, 20])
    np.testing.assert_allclose(means[:, 0], 0.75 * regime, atol=1e-6)
    np.testing.assert_allclose(means[:, 1], 0.25 + 0.75 * regime, atol=1e-6)


def test_switching_at_given_rounds():
    sequence = sf.losses.switching(num_arms=5, gap=0.2, switches=(10, 4))
    for seed in range(20):
        state = sequence.init(jax.random.key(seed))
        best = np.argmin(draw_means(sequence.mean, state, rounds_to(20)), axis=1)
        np.testing.assert_array_equal(np.flatnonzero(np.diff(best)) + 2, [4, 10])


def test_switching_at_random_rounds():
    """Uniform on 2 ... T, and the arms uniform."""
    sequence = sf.losses.switching(num_arms=3, switches=4, num_rounds=50)
    times, best = jax.vmap(sequence.init)(jax.random.split(jax.random.key(3), 4000))
    assert times.shape == (4000, 4)
    assert times.min() == 2
    assert times.max() == 50
    assert (np.diff(times, axis=1) >= 0).all()
    assert_mean(np.asarray(times).mean(axis=1), 26)
    assert (np.diff(best, axis=1) != 0).all()
    for arm in range(3):
        assert_mean(best == arm, np.full(5, 1 / 3))
    assert (
        sf.losses.switching(num_arms=1, switches=2).init(jax.random.key(0))[1].tolist() == [0] * 3
    )


def test_neu_switch_means():
    sequence = sf.losses.neu_switch(num_arms=4, gap=0.1, num_rounds=10)
    means = draw_means(sequence.mean, (), rounds_to(10))
    np.testing.assert_allclose(means[:5], [[0.5, 0.5, 0.4, 0.6]] * 5, rtol=1e-6)
    np.testing.assert_allclose(means[5:], [[0.5, 0.5, 0.4, 0.1]] * 5, rtol=1e-6)


def test_corrupted_means():
    sequence = sf.losses.corrupted(num_arms=2, gap=0.1, budget=3)
    means = draw_means(sequence.mean, (), rounds_to(5))
    np.testing.assert_allclose(means[:, 0], [0.6, 0.6, 0.6, 0.4, 0.4], rtol=1e-6)
    np.testing.assert_allclose(means[:, 1], np.full(5, 0.5))


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
    losses = np.asarray(rows(sf.losses.alternating(num_arms=3, gap=0.0), 1000))
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
    phases = np.asarray(sequence.init(key), np.float64)
    assert phases.shape == (3, 4)
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
    best = jax.vmap(sequence.init)(jax.random.split(jax.random.key(0), 4000))
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


# Bad parameters.


@each_family
@pytest.mark.parametrize(
    ("parameters", "value"),
    [
        ({"num_arms": 0}, "0"),
        ({"num_arms": -3}, "-3"),
        ({"num_arms": 2.5}, "2.5"),
        ({"num_arms": True}, "True"),
        ({"num_arms": "four"}, "'four'"),
        ({"scale": 0.0}, "0.0"),
        ({"scale": -1.0}, "-1.0"),
        ({"scale": np.nan}, "nan"),
        ({"scale": np.inf}, "inf"),
        ({"scale": "large"}, "'large'"),
        ({"scale": None}, "None"),
    ],
)
def test_parameters_of_all_families(name, parameters, value):
    (parameter,) = parameters
    with pytest.raises(ValueError, match=rf"{parameter} is {re.escape(value)}"):
        FAMILIES[name](**parameters)


@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        *((name, {"gap": bad}) for name in ("bernoulli", "uniform", "pareto") for bad in (np.nan,)),
        ("uniform", {"gap": "wide"}),
        ("bernoulli", {"gap": 0.6}),
        ("bernoulli", {"mean": 1.2}),
        ("student_t", {"degrees": 0.0}),
        ("pareto", {"index": -1.0}),
        ("log_normal", {"sigma": 0.0}),
        ("log_normal", {"gap": 1.5}),
        ("constrained_adversarial", {"gap": 1.5}),
        ("constrained_adversarial", {"growth": 0.5}),
        ("switching", {"gap": 0.7}),
        ("switching", {"switches": -1}),
        ("switching", {"num_rounds": 1}),
        ("neu_switch", {"gap": 0.2}),
        ("neu_switch", {"num_rounds": 0}),
        ("corrupted", {"budget": -1}),
        ("corrupted", {"gap": 0.7}),
        ("sparse", {"rate": -0.1}),
        ("sparse", {"rate": 1.1}),
        ("sparse", {"gap": 1.5}),
        ("sparse", {"size": 0}),
        ("sparse", {"num_nonzero": 11}),
        ("growing", {"ratio": 0.0}),
        ("growing", {"num_rounds": 0}),
        ("late_spike", {"exponent": np.inf}),
        ("late_spike", {"num_rounds": 0}),
        ("scale_regimes", {"period": 0}),
        ("random_walk", {"step": 0.0}),
        ("sinusoidal", {"period": 1}),
        ("sinusoidal", {"noise": -1.0}),
        ("slowly_varying", {"period": 1}),
        ("one_arm", {"arm": 10}),
        ("one_arm", {"loss": np.nan}),
        ("minimax", {"constant": 0.0}),
        ("minimax", {"num_rounds": 0}),
        ("shared_noise", {"gap": 0.0}),
        ("shared_noise", {"sigma": -0.1}),
    ],
)
def test_parameters_out_of_range(name, parameters):
    ((parameter, value),) = parameters.items()
    with pytest.raises(ValueError, match=rf"{parameter} is {re.escape(repr(value))}"):
        FAMILIES[name](**parameters)


def test_lists_of_parameters_out_of_range():
    with pytest.raises(ValueError, match="switch is 1;"):
        sf.losses.switching(switches=(1, 50))
    with pytest.raises(ValueError, match="factors is empty"):
        sf.losses.scale_regimes(factors=())
    with pytest.raises(ValueError, match=r"factor is -1\.0"):
        sf.losses.scale_regimes(factors=(1.0, -1.0))
