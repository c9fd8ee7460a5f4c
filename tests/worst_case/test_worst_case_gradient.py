"""The gradient of the expected regret: against enumeration, finite differences and closed forms."""

import itertools
from functools import cache, partial

import any_range_loops
import jax
import jax.numpy as jnp
import known_range_loops
import numpy as np
import pytest
from paper_loop import ftrl, mixability_gap, play_game
from tiers import some_in_default

import sfmab_jax as sf
from sfmab_jax.numerics.threefry import game_key
from sfmab_jax.worst_case.exact import exact_regret
from sfmab_jax.worst_case.gradient import regret_gradient

NUM_SEEDS = 8192

# A family's bandit, its NumPy loop and the rounds of its games; all have two or three arms.
FAMILIES = {
    "adaptive": (sf.strategies.scale_free("adaptive"), "paper", (4, 2)),
    "decaying": (sf.strategies.scale_free("decaying"), "paper", (4, 2)),
    "tsallis_inf": (sf.strategies.tsallis_inf(), known_range_loops.tsallis_inf, (3, 3)),
    "exp3": (sf.strategies.exp3(), known_range_loops.exp3, (3, 3)),
    "exp3_ix": (sf.strategies.exp3_ix(), known_range_loops.exp3_ix, (4, 3)),
    "ahb": (sf.strategies.ahb(), any_range_loops.ahb, (5, 2)),
    "broad": (sf.strategies.broad(rate=0.1), None, (3, 3)),
    "log_barrier": (
        sf.strategies.log_barrier_horizon(num_rounds=100),
        lambda arms, losses: known_range_loops.log_barrier_horizon(arms, losses, 100),
        (3, 3),
    ),
}

# Mixing and AdaFTRL with the log barrier; the entropy at a given rate.
IN_DEFAULT = ("adaptive", "exp3")
EACH_FAMILY = pytest.mark.parametrize("name", some_in_default(FAMILIES, IN_DEFAULT))


def games(shape):
    """Five tables: in [0, 1], of 0 and 1, signed, tiny, and with one large loss."""
    rng = np.random.default_rng(7)
    large = rng.uniform(0, 1, shape)
    large[1, 0] = 30.0
    return np.stack(
        [
            rng.uniform(0, 1, shape),
            rng.integers(0, 2, shape) + 1e-3 * rng.uniform(0, 1, shape),
            rng.normal(0, 1, shape),
            1e-3 * rng.uniform(0, 1, shape),
            large,
        ]
    )


def tables_of(name):
    shape = FAMILIES[name][2]
    tables = games(shape)
    # A loss of 30 breaks the promise to strategies that were told the range.
    return tables if name in ("adaptive", "decaying", "ahb", "broad") else tables[[0, 1, 2, 3, 0]]


@cache
def exactly(name):
    """Compiled: regrets [5] and gradients [5, T, n] of five tables, by enumeration."""
    bandit = FAMILIES[name][0]
    return jax.jit(jax.vmap(jax.value_and_grad(lambda table: exact_regret(bandit, table))))


@cache
def exact(name):
    values, slopes = exactly(name)(jnp.asarray(tables_of(name)))
    return np.asarray(values), np.asarray(slopes)


def loop_value(name, losses):
    """The expected regret by a plain loop over all sequences of arms."""
    loop = FAMILIES[name][1]
    total = 0.0
    for arms in itertools.product(range(losses.shape[1]), repeat=len(losses)):
        if loop == "paper":
            laws = play_game(losses, name, arms=arms).probabilities
        elif loop is None:
            laws = known_range_loops.broad(np.array(arms), losses, rate=0.1)
        else:
            if name == "ahb" and arms[:2] != (0, 1):
                continue  # every arm is played once, in order
            laws = loop(np.array(arms), losses)
        laws = laws[: len(losses)]
        total += np.prod(laws[np.arange(len(losses)), list(arms)]) * np.sum(laws * losses)
    return total - losses.sum(axis=0).min()


@EACH_FAMILY
def test_the_exact_regret_is_that_of_a_plain_loop(name):
    tables = tables_of(name)
    for k in (0, 2):
        assert exact(name)[0][k] == pytest.approx(loop_value(name, tables[k]), rel=1e-8, abs=1e-9)


@EACH_FAMILY
def test_the_exact_gradient_is_that_of_finite_differences(name):
    """Central differences in float64, with a step of 1e-6 of the losses' size."""
    for table, slope in zip(tables_of(name), exact(name)[1]):
        step = 1e-6 * np.abs(table).max()
        moves = step * np.eye(table.size).reshape(table.size, *table.shape)
        moved = np.concatenate([table + moves, table - moves])
        moved = np.resize(moved, (-(-len(moved) // 5), 5, *table.shape))
        values = np.concatenate([exactly(name)(jnp.asarray(five))[0] for five in moved])
        difference = values[: table.size] - values[table.size : 2 * table.size]
        np.testing.assert_allclose(slope.ravel(), difference / (2 * step), rtol=1e-4, atol=2e-6)


def keys(number):
    root = jax.random.key(5)
    seeds = jnp.arange(number, dtype=jnp.int32)
    return jax.vmap(lambda seed: game_key(root, jnp.int32(0), seed), out_axes=-1)(seeds)


@cache
def estimator(name, feedback):
    """Compiled: `regret_gradient` of five tables."""
    bandit = FAMILIES[name][0]
    return jax.jit(lambda x, k: regret_gradient(lambda _: bandit, (), x, k, feedback=feedback))


def estimated(name, feedback):
    """Means and standard errors of the regret [R] and the gradient [R, T, n]."""
    found = estimator(name, feedback)(jnp.asarray(tables_of(name)), keys(NUM_SEEDS))
    return [
        (np.mean(x, axis=-1), np.std(x, axis=-1) / np.sqrt(NUM_SEEDS))
        for x in map(np.asarray, (found.regrets, found.by_losses))
    ]


@EACH_FAMILY
def test_the_estimator_is_unbiased(name):
    """Five games of each family, every entry within 4 standard errors of enumeration."""
    values, slopes = exact(name)
    (value, value_error), (slope, error) = estimated(name, 1.0)
    assert np.all(np.abs(value - values) <= 4 * value_error + 1e-12)
    assert np.all(np.abs(slope - slopes) <= 4 * error + 1e-9)


@pytest.mark.parametrize(
    "name", some_in_default(["adaptive", "tsallis_inf", "exp3_ix"], ["exp3_ix"])
)
def test_the_bias_without_feedback_is_as_stated(name):
    """On losses of the size the strategies are made for: a tenth of the gradient at most."""
    _, slopes = exact(name)
    _, (slope, error) = estimated(name, 0.0)
    for k in range(4):
        most = 0.1 * np.linalg.norm(slopes[k]) + 4 * np.linalg.norm(error[k])
        assert np.linalg.norm(slope[k] - slopes[k]) <= most


@pytest.mark.full
def test_without_feedback_the_variance_does_not_explode():
    """T = 60, n = 5: the same direction, a fifth of the deviation."""
    table = jnp.asarray(np.random.default_rng(1).uniform(0, 1, (1, 60, 5)), jnp.float32)
    bandit = sf.strategies.scale_free()
    estimate = jax.jit(
        lambda k, feedback: regret_gradient(lambda _: bandit, (), table, k, feedback=feedback),
        static_argnums=1,
    )
    full, direct = (np.asarray(estimate(keys(4096), share).by_losses[0]) for share in (1.0, 0.0))
    one, other = full.mean(axis=-1), direct.mean(axis=-1)
    assert np.sum(one * other) > 0.99 * np.linalg.norm(one) * np.linalg.norm(other)
    assert np.linalg.norm(direct.std(axis=-1)) < 0.2 * np.linalg.norm(full.std(axis=-1))


def extremes(shape, most):
    """Ten tables: zeros, ties, signs, losses from 10^-most to 10^most, alone and mixed."""
    rng = np.random.default_rng(3)
    one = np.eye(shape[1])[rng.integers(0, shape[1], shape[0])]
    noise = rng.normal(size=(4, *shape))
    sizes = 10.0 ** rng.integers(-most, most + 1, shape)
    full = [np.zeros(shape), np.ones(shape), np.full(shape, 1e3), one, -one, one * 10.0**most]
    mixed = [noise[0] * 10.0**most, noise[1] * 10.0**-most, noise[2] * sizes, -np.abs(noise[3])]
    return np.stack(full + mixed)


@pytest.mark.parametrize(
    ("name", "dtype"),
    some_in_default(
        [*((name, "float64") for name in FAMILIES), ("adaptive", "float32"), ("ahb", "float32")],
        [*((name, "float64") for name in IN_DEFAULT), ("adaptive", "float32")],
    ),
)
def test_no_gradient_is_nan(name, dtype):
    """Losses of 1e-12 to 1e12, in float32 of 1e-6 to 1e6."""
    tables = extremes(FAMILIES[name][2], 6 if dtype == "float32" else 12)
    for five in (tables[:5], tables[5:]):
        found = estimator(name, 1.0)(jnp.asarray(five, dtype), keys(NUM_SEEDS))
        assert not np.isnan(found.by_losses).any()
        assert not np.isnan(found.regrets).any()


@cache
def gap_and_slopes(potential):
    """Compiled: the mixability gap and its derivatives by play, losses and learning rate."""
    made = getattr(sf.potentials, potential)()
    return jax.jit(jax.value_and_grad(partial(sf.mixability_gap, made), (0, 1, 2)))


def test_the_gradient_of_the_gap_in_closed_form():
    """dM/dl = p - q and dM/deta = Breg(q || p) / eta^2, q from bisection, eta l from 1e-6 to 1e6.

    By the envelope theorem, q the maximiser in M(eta) = sup_q l.(p - q) - Breg(q || p) / eta.
    """
    rng = np.random.default_rng(11)
    for power in range(-6, 7):
        p = ftrl(1.0, rng.exponential(5.0, 5))
        loss = np.zeros(5)
        loss[rng.integers(5)] = rng.choice([-1.0, 1.0]) * 10.0**power
        q = ftrl(1.0, 1 / p + 1.3 * loss)
        _, (_, by_loss, by_rate) = gap_and_slopes("log_barrier")(p, loss, 1.3)
        np.testing.assert_allclose(by_loss, p - q, rtol=1e-6, atol=1e-9)
        gap = mixability_gap(1.3, p, loss)
        np.testing.assert_allclose(by_rate, (loss @ (p - q) - gap) / 1.3, rtol=1e-5, atol=1e-9)


@pytest.mark.parametrize("potential", ["log_barrier", "negative_entropy", "tsallis"])
def test_the_gradient_of_the_gap_by_finite_differences(potential):
    """By the play, along directions of the simplex, and by the losses, in float64."""
    rng = np.random.default_rng(2)
    compiled = gap_and_slopes(potential)

    def gap(play, loss):
        return float(compiled(play, loss, 0.7)[0])

    for size in (1e-3, 1.0, 1e3):
        p, loss = rng.dirichlet(np.ones(5) * 2), size * rng.normal(size=5)
        along = p * rng.normal(size=5)
        along -= p * along.sum()
        by_play, by_loss, _ = map(np.asarray, compiled(p, loss, 0.7)[1])
        for got, difference in (
            (by_play @ along, gap(p + 1e-6 * along, loss) - gap(p - 1e-6 * along, loss)),
            (by_loss @ loss, gap(p, loss * (1 + 1e-6)) - gap(p, loss * (1 - 1e-6))),
        ):
            scale = np.linalg.norm(by_loss) * size + abs(gap(p, loss))
            assert abs(got - difference / 2e-6) < 1e-5 * scale


def test_games_too_large_to_enumerate():
    with pytest.raises(ValueError, match="65,536"):
        sf.exact_gradient(sf.strategies.uniform(), np.zeros((20, 3)))


def test_the_gradient_by_parameters():
    """d/d(log rate) of a small game, against enumeration with another rate."""
    table = jnp.asarray(games((4, 3))[0])

    def make(log_rate):
        rate = jnp.exp(log_rate)
        return sf.compose(
            sf.sampling.fixed(0.1),
            sf.estimation.importance_weighted(),
            sf.full_information.ftrl(sf.potentials.negative_entropy(), rate),
        )

    value = jax.jit(lambda x: exact_regret(make(x), table))
    slope = (value(0.3 + 1e-5) - value(0.3 - 1e-5)) / 2e-5
    found = jax.jit(lambda x, k: regret_gradient(make, x, table[None], k))(
        jnp.asarray(0.3), keys(NUM_SEEDS)
    )
    samples = np.asarray(found.by_parameters[0])
    assert abs(samples.mean() - slope) < 4 * samples.std() / np.sqrt(NUM_SEEDS)
