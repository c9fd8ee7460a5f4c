"""Properties of the named strategies, of `compose` and of `simulate`."""

import inspect

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from fuzzing import NOT_NUMBERS, RIGHT, WRONG
from hypothesis import strategies as st
from properties import EPS, NUM_ARMS, arrays, powers_of_two, property_of, seeds
from tiers import each_archetype

import sfmab_jax as sf
from sfmab_jax.strategies import STRATEGIES

ROUNDS = 8
tables = arrays(ROUNDS, NUM_ARMS, low=0.0, high=1.0)


@jax.jit
def play(bandit, table, words, unit):
    """The laws [T, n] and arms [T] of a game on losses [T, n], and whether all was finite."""

    def step(state, now):
        losses, words = now
        law = bandit.probabilities(state)
        arm = sf.draw_arm(law, (words[0], words[1]))
        state = bandit.update(state, arm, bandit.feedback(losses, arm))
        return state, (law, arm)

    first = bandit.init(NUM_ARMS, table.dtype, unit)
    last, (laws, arms) = jax.lax.scan(step, first, (table, words))
    finite = [jnp.all(jnp.isfinite(leaf)) for leaf in jax.tree.leaves(last)]
    return laws, arms, jnp.stack(finite).all()


def words_of(seed):
    """Random words for every round, uint32 [T, 2]."""
    return np.random.default_rng(seed).integers(2**32, size=(ROUNDS, 2), dtype=np.uint32)


@st.composite
def parameters(draw, name):
    """Some parameters of a strategy, at the ends of their range or between."""
    names = list(inspect.signature(STRATEGIES[name]).parameters)
    chosen = draw(st.sets(st.sampled_from(names))) if names else ()
    return {one: draw(st.sampled_from(RIGHT[one])) for one in sorted(chosen)}


@each_archetype
@property_of(
    *STRATEGIES.values(), examples=6, data=st.data(), table=tables, seed=seeds, unit=powers_of_two
)
def test_strategies(name, data, table, seed, unit):
    """On the simplex with finite states, and the same game in any unit of the losses."""
    given = data.draw(parameters(name))
    bandit = STRATEGIES[name](**given)
    table = np.float32(table * given.get("scale", 1.0))  # within the range that it is told
    words = words_of(seed)
    laws, arms, finite = play(bandit, table, words, np.float32(1))
    assert finite
    assert np.min(laws) >= 0
    np.testing.assert_allclose(np.sum(laws, axis=1), 1, rtol=20 * EPS)
    assert (np.take_along_axis(np.asarray(laws), arms[:, None], axis=1) > 0).all()
    scaled = play(bandit, table * np.float32(unit), words, np.float32(unit))
    np.testing.assert_array_equal(scaled[0], laws)
    np.testing.assert_array_equal(scaled[1], arms)


NUMBERED = [name for name in STRATEGIES if inspect.signature(STRATEGIES[name]).parameters]


@property_of(
    *(STRATEGIES[name] for name in NUMBERED),
    examples=150,
    name=st.sampled_from(NUMBERED),
    place=st.integers(0, 9),
    value=st.sampled_from([value for value in NOT_NUMBERS if value is not None]),
)
def test_wrong_parameters_are_refused(name, place, value):
    """A ValueError that names the value, from the factory or from `simulate` at the latest."""
    names = list(inspect.signature(STRATEGIES[name]).parameters)
    wrong = {names[place % len(names)]: value}

    def use():
        bandit = STRATEGIES[name](**wrong)
        sf.simulate(bandit, np.ones((2, 2)), num_seeds=2, progress=False)

    with pytest.raises(ValueError, match=r"(?s).+"):
        use()


@property_of(sf.compose, table=tables, seed=seeds, exploration=st.sampled_from([0.0, 0.25, 1.0]))
def test_compose_is_its_parts(table, seed, exploration):
    """The law is S's of F's play: here (1 - g) p + g / n, and uniform where g = 1."""
    follower = sf.full_information.ftrl(sf.potentials.negative_entropy(), 0.5)
    parts = sf.sampling.fixed(exploration), sf.estimation.importance_weighted(), follower
    table = np.float32(table)
    laws, arms, _ = play(sf.compose(*parts), table, words_of(seed), np.float32(1))
    losses = np.asarray(table, np.float64)
    totals = np.zeros(NUM_ARMS)
    for t in range(ROUNDS):
        weights = np.exp(-0.5 * (totals - totals.min()))
        law = (1 - exploration) * weights / weights.sum() + exploration / NUM_ARMS
        # Float32 rounds the estimates, which are up to l / p, and the law they make.
        np.testing.assert_allclose(laws[t], law, rtol=2e-4, atol=1e-6)
        totals[arms[t]] += losses[t, arms[t]] / float(laws[t, arms[t]])


HOW = {"num_seeds": 4, "checkpoints": 3, "chunk_rounds": 16, "progress": False}


@property_of(
    sf.simulate,
    examples=12,
    table=arrays(ROUNDS, NUM_ARMS),
    seed=seeds,
    first_seed=st.integers(0, 3),
    unit=st.integers(-80, 80).map(lambda k: 2.0**k),
)
def test_simulate(table, seed, first_seed, unit):
    """No regret beyond the distances of the arms; the best arm; a game alone or among others.

    A strategy that has no constant with a unit plays c l as it plays l, and its regret is c times
    that, exactly for powers of two.
    """
    bandit = sf.strategies.ada_hedge()
    result = sf.simulate(bandit, table, seed=seed, **HOW)
    assert np.abs(result.regret).max() <= np.ptp(table, axis=1).sum() * (1 + EPS) + ROUNDS * EPS
    best = table.cumsum(axis=0).min(axis=1)[result.rounds - 1]
    np.testing.assert_allclose(result.norms.best[0], best, rtol=0, atol=ROUNDS * EPS)
    few = HOW | {"num_seeds": 1, "first_seed": first_seed}
    alone = sf.simulate(bandit, table, seed=seed, **few)
    for kind in ("regret", "expected_regret"):
        np.testing.assert_array_equal(
            getattr(alone, kind)[0, 0], getattr(result, kind)[0, first_seed]
        )
    if np.abs(table[table != 0]).min(initial=1.0) > 1e-6:
        scaled = sf.simulate(bandit, table * unit, seed=seed, **HOW)
        np.testing.assert_array_equal(scaled.regret, result.regret * unit)


@property_of(
    sf.simulate, examples=15, wrong=st.sampled_from(range(len(WRONG))), pick=st.integers(0, 20)
)
def test_simulate_refuses_before_it_plays(wrong, pick):
    name = list(WRONG)[wrong]
    value = WRONG[name][pick % len(WRONG[name])]
    how = {"strategies": sf.strategies.scale_free(), "losses": np.ones((4, 2)), "num_rounds": 4}
    with pytest.raises(ValueError, match=r"(?s).+"):
        sf.simulate(**how | {name: value})
