"""Properties of the theory: bounds, local norms, the regret's identities, guarantees."""

from dataclasses import replace
from itertools import pairwise

import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import strategies as st
from properties import NUM_ARMS, arrays, points, powers_of_two, property_of, seeds

import sfmab_jax as sf
from sfmab_jax import potentials
from sfmab_jax.results.norms import Norms
from sfmab_jax.theory import (
    bounds,
    certificates,
    guarantees,
    local_norms,
    regret,
    textbook,
    trajectories,
)

ROUNDS = 6
# As in test_claims.py, so that the same programs play: rounds without loss follow.
LONG, LONG_ARMS = 60, 4
POTENTIALS = {
    "log_barrier": potentials.log_barrier(),
    "negative_entropy": potentials.negative_entropy(),
    "tsallis": potentials.tsallis(0.5),
}
any_potential = st.sampled_from(sorted(POTENTIALS))
options = st.sampled_from(["adaptive", "decaying"])
tables = arrays(ROUNDS, NUM_ARMS)


def norms_of(table):
    """Of one table [T, n], at every round, by the definitions."""
    totals = table.cumsum(axis=0)
    rows = (
        np.abs(table).sum(axis=1).cumsum(),
        (table**2).sum(axis=1).cumsum(),
        np.maximum.accumulate(np.abs(table).max(axis=1)),
        np.abs(totals).max(axis=1),
        totals.min(axis=1),
        totals.mean(axis=1),
    )
    return Norms(table.shape[1], np.arange(1, len(table) + 1), *(row[None] for row in rows))


@property_of(
    bounds.scale_free, bounds.corrected, table=tables, option=options, more=st.floats(1, 100)
)
def test_bounds_are_above_any_regret_and_grow_with_the_losses(table, option, more):
    """Above 0 and finite; tight <= corrected; larger losses have a larger corrected bound."""
    long = np.tile(table, (4, 1))  # T >= 4n, so that all readings are there at the end
    bound = bounds.scale_free(norms_of(long), option)
    assert np.isfinite(bound.tight).all()
    assert np.isfinite(bound.printed[:, -1]).all()
    assert (bound.tight >= 0).all()
    assert (bound.tight <= bound.corrected * (1 + 1e-12)).all()
    np.testing.assert_array_equal(bounds.corrected(norms_of(long), option), bound.corrected)
    larger = bounds.corrected(norms_of(long * more), option)
    assert (larger >= bound.corrected * (1 - 1e-12)).all()
    with pytest.raises(ValueError, match="exploration"):
        bounds.corrected(norms_of(long), option.upper())


@property_of(
    bounds.vertex_cost,
    bounds.best_epsilon,
    num_arms=st.integers(2, 50),
    excess=st.floats(0, 1e6),
    inverse_rate=st.floats(1e-3, 1e6),
    other=st.floats(1e-9, 1.0),
)
def test_the_best_epsilon_is_the_best(num_arms, excess, inverse_rate, other):
    """Its cost is not above that of any other; the cost of a vertex is F there."""

    def cost(epsilon):
        return epsilon * excess + bounds.vertex_cost(num_arms, epsilon) * inverse_rate

    best = float(bounds.best_epsilon(num_arms, np.float64(excess), np.float64(inverse_rate)))
    assert 0 < best <= 1
    assert cost(best) <= cost(other) * (1 + 1e-9) + 1e-9
    point = regret.vertex(num_arms, 0, other)
    wanted = regret.regularizer(POTENTIALS["log_barrier"], point)
    assert bounds.vertex_cost(num_arms, other) == pytest.approx(float(wanted), rel=1e-9, abs=1e-9)


@property_of(
    *textbook.TEXTBOOK.values(),
    examples=60,
    name=st.sampled_from(sorted(textbook.TEXTBOOK)),
    num_arms=st.integers(1, 100),
    rounds=st.integers(1, 10**6),
    more=st.integers(0, 10**6),
    unit=powers_of_two,
)
def test_textbook_bounds(name, num_arms, rounds, more, unit):
    """In proportion to the scale, not falling with the rounds, 0 for one arm, else positive."""
    bound = textbook.TEXTBOOK[name]
    value = float(bound(num_arms, rounds))
    assert value == 0 if num_arms == 1 else value > 0
    assert float(bound(num_arms, rounds + more)) >= value
    assert float(bound(num_arms, rounds, unit)) == value * unit
    both = bound(num_arms, np.array([rounds, rounds + more], np.float64))
    np.testing.assert_allclose(both, [value, float(bound(num_arms, rounds + more))], rtol=1e-14)


@property_of(
    local_norms.local_norm,
    local_norms.up_to,
    local_norms.chord,
    local_norms.slack,
    examples=60,
    name=any_potential,
    x=st.floats(1e-4, 1.0),
    share=st.floats(1e-4, 1.0),
    top=st.floats(0.01, 1.0),
)
def test_local_norms_lie_below_the_divergence(name, x, share, top):
    """Lemma 6 wherever it is promised; the chord rises from psi' with its length."""
    potential = POTENTIALS[name]
    bound = local_norms.local_norm(potential, local_norms.up_to(potential, top))
    x_, top_ = jnp.float64(x), max(x, top)
    reach = float(bound.reach(x_))
    assert reach == pytest.approx(top_, rel=1e-9)
    y = share * reach
    u = potential.inverse(x_)
    slope = float(potential.derivative(u))
    assert float(bound.w(x_)) >= slope * (1 - 1e-9)
    length = potential.inverse(jnp.float64(top_)) - u
    assert float(local_norms.chord(potential, u, length)) == pytest.approx(float(bound.w(x_)))
    gap = float(local_norms.slack(potential, bound, x_, jnp.float64(y)))
    assert gap >= -1e-9 * float(potential.divergence(jnp.float64(y), x_)) - 1e-15


@property_of(
    regret.regularizer,
    regret.bregman,
    regret.mixed_bregman,
    regret.vertex,
    examples=40,
    name=any_potential,
    x=points(),
    y=points(),
    rates=st.tuples(st.floats(0.1, 10), st.floats(0.1, 10)),
    arm=st.integers(0, NUM_ARMS - 1),
    epsilon=st.floats(0.01, 1),
)
def test_regularisers_and_divergences(name, x, y, rates, arm, epsilon):
    """F(x) - F(y) - grad F(y).(x - y), with one rate for both or two; the vertex is a mean."""
    potential = POTENTIALS[name]
    f_x, f_y = regret.regularizer(potential, x), regret.regularizer(potential, y)
    slope = np.asarray(potential.inverse(jnp.asarray(y)))
    divergence = f_x - f_y - slope @ (x - y)
    size = 1e-10 * (abs(f_x) + abs(f_y) + np.abs(slope).max())
    assert regret.bregman(potential, x, y) == pytest.approx(divergence, abs=size)
    same = regret.mixed_bregman(potential, x, y, rates[0], rates[0])
    assert same * rates[0] == pytest.approx(divergence, abs=size)
    mixed = regret.mixed_bregman(potential, x, y, *rates)
    other = same + (f_y + slope @ (x - y)) * (1 / rates[0] - 1 / rates[1])
    assert mixed == pytest.approx(other, abs=20 * size)
    point = regret.vertex(NUM_ARMS, arm, epsilon)
    assert point.sum() == pytest.approx(1)
    assert point.argmax() == arm or epsilon == 1
    assert point.min() == pytest.approx(epsilon / NUM_ARMS)


IDENTITIES = (
    trajectories.follow_losses,
    regret.regret,
    regret.size,
    regret.step_terms,
    regret.regret_equality,
    regret.regret_inequality,
    regret.regret_bound,
    regret.optimality,
    regret.optimal_value,
    regret.value_steps,
    regret.value_identity,
)


@property_of(
    *IDENTITIES, examples=30, name=any_potential, table=tables, comparator=points(),
    first=st.floats(0.1, 10),
)  # fmt: skip
def test_the_regret_equality_and_what_follows(name, table, comparator, first):
    """Theorems 12 and 13 on FTRL with falling rates, against a comparator inside the simplex."""
    potential = POTENTIALS[name]
    rates = first / np.sqrt(np.arange(1, ROUNDS + 2))
    (game,) = trajectories.follow_losses(potential, table[None], rates)
    size = regret.size(game, potential)
    slack = 1e-8 * size
    plain = sum(float(loss @ (p - comparator)) for loss, p in zip(table, game.play[:-1]))
    assert regret.regret(game, comparator) == pytest.approx(plain, abs=slack)
    left, right = regret.regret_equality(potential, game, comparator)
    assert left == pytest.approx(right, abs=slack)
    for sides in (regret.regret_inequality, regret.regret_bound):
        left, right = sides(potential, game, comparator)
        assert left <= right + slack
    assert np.abs(regret.optimality(potential, game)).max() <= 1e-8
    # A step is at most the gap of its round: the rates fall.
    assert (regret.step_terms(potential, game) <= game.gaps + slack).all()
    left, right = regret.value_identity(potential, game)
    np.testing.assert_allclose(left, right, atol=slack)
    before, after = regret.value_steps(potential, game)
    assert (after >= before - slack).all()
    at_play = regret.optimal_value(potential, game.play[-1], rates[-1], game.cumulative[-1])
    other = regret.regularizer(potential, comparator) / rates[-1] + game.cumulative[-1] @ comparator
    assert at_play <= other + slack


@property_of(
    trajectories.play_games,
    regret.inequality_star,
    examples=15,
    table=arrays(ROUNDS, LONG_ARMS),
    seed=seeds,
    arm=st.integers(0, LONG_ARMS - 1),
    epsilon=st.floats(0.01, 1),
    option=options,
)
def test_games_that_are_recorded(table, seed, arm, epsilon, option):
    """Laws on the simplex, estimates l / p' on the arm played, (*) of section 6 on every path."""
    bandit = sf.strategies.scale_free(option)
    barrier = POTENTIALS["log_barrier"]
    table = np.pad(table, ((0, LONG - ROUNDS), (0, 0)))
    game, _ = trajectories.play_games(bandit, barrier, np.stack([table, table]), seed=seed)
    np.testing.assert_allclose(game.probabilities.sum(axis=1), 1, rtol=1e-12)
    rounds = np.arange(LONG)
    seen = table[rounds, game.arms] / game.probabilities[rounds, game.arms]
    np.testing.assert_allclose(game.estimates[rounds, game.arms], seen, rtol=1e-9)
    assert np.count_nonzero(game.estimates) <= ROUNDS
    assert (game.gaps >= 0).all()
    left, right = regret.inequality_star(game, arm, epsilon)
    assert left <= right + 1e-9 * regret.size(game, barrier)


@property_of(trajectories.every_path, examples=15, table=arrays(3, 2), option=options)
def test_every_path_is_there_once(table, option):
    """Chances sum to 1, and the expected sum of the estimates is the sum of the losses.

    Rounds without loss are added up to the twelve of table D in test_claims.py.
    """
    chances, game = trajectories.every_path(sf.strategies.scale_free(option), table, 12)
    assert len(chances) == 8
    assert chances.sum() == pytest.approx(1, rel=1e-12)
    mean = np.einsum("p,ptn->n", chances, game.estimates)
    np.testing.assert_allclose(mean, table.sum(axis=0), rtol=0, atol=1e-12)


HOW = {"num_seeds": 8, "checkpoints": 3, "chunk_rounds": 16, "progress": False}


@property_of(
    certificates.decomposition,
    certificates.ladder,
    guarantees.guarantee,
    guarantees.exploration_of,
    examples=8,
    table=tables,
    seed=seeds,
)
def test_certified_games(table, seed):
    """The three terms add up; the ladder rises; the option and its bounds are found again.

    Both options are certified below, and test_textbook_bounds.py finds the other again.
    """
    option = "adaptive"
    result = sf.simulate(
        sf.strategies.scale_free(option), table, seed=seed, certificate=True, **HOW
    )
    result = replace(result, name="mine")
    terms = certificates.decomposition(result)
    total = terms.sampling + terms.estimation + terms.full_information
    size = 1e-6 * (np.abs(terms.full_information).max() + 1)
    np.testing.assert_allclose(total, result.expected_regret, rtol=0, atol=size)
    rungs = certificates.ladder(result, option)
    assert tuple(rungs) == certificates.ORDER
    last = [float(rungs[name][0, -1]) for name in certificates.ORDER]
    assert all(low <= high + size for low, high in pairwise(last[:-2]))
    assert max(last[:-2]) <= last[-1] + size
    assert guarantees.exploration_of(result) == option
    lines, _ = guarantees.guarantee(result)
    bound = bounds.scale_free(result.norms, option)
    np.testing.assert_array_equal(lines["mine: bound"], bound.corrected[0])
    np.testing.assert_array_equal(lines["mine: tight bound"], bound.tight[0])
    unknown = replace(result, bandit=None, certificate=None)
    assert guarantees.exploration_of(unknown) is None
    assert guarantees.guarantee(unknown).lines == {}
    with pytest.raises(ValueError, match="certificate=True"):
        certificates.decomposition(unknown)


@property_of(certificates.certified_families, examples=3, seed=seeds)
def test_certified_families(seed):
    families = {"parity": sf.losses.parity}
    sizes = {"num_arms": NUM_ARMS, "num_rounds": 16, "num_seeds": 4}
    rows = certificates.certified_families(families, seed=seed, **sizes)
    assert [row.losses for row in rows] == ["parity", "parity"]
    assert {row.exploration for row in rows} == {"adaptive", "decaying"}
    for row in rows:
        assert row.checks == 16 * 4
        assert row.violations == 0
        assert row.ordered
