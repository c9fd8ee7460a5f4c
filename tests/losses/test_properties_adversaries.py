"""Properties of adversaries and of matrix games: units, what they may see, what they may spend."""

import inspect

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from fuzzing import NOT_NUMBERS
from hypothesis import strategies as st
from properties import NUM_ARMS, arrays, powers_of_two, property_of

import sfmab_jax as sf
from sfmab_jax.losses import ADVERSARIES
from sfmab_jax.losses.sequence import first_shown, shown_of

ROUNDS = 8
tables = arrays(ROUNDS, NUM_ARMS)
histories = st.lists(st.integers(0, NUM_ARMS - 1), min_size=ROUNDS, max_size=ROUNDS)
laws = arrays(ROUNDS, NUM_ARMS).map(lambda x: np.exp(x) / np.exp(x).sum(axis=1, keepdims=True))
units = powers_of_two.filter(lambda unit: 1 <= unit <= 2.0**60)  # no loss becomes denormal


@jax.jit
def _met(init, next_loss, shown):
    key = jax.random.key(0, impl="threefry2x32")

    def step(state, now):
        round_, shown = now
        return next_loss(state, key, round_, *shown)

    rounds = jnp.arange(1, ROUNDS + 1, dtype=jnp.int32)
    return jax.lax.scan(step, init(key), (rounds, shown))[1]


def met(losses, arms, law):
    """The losses [T, n] that come when these arms are played by these laws."""
    last_arms = np.array([-1, *arms[:-1]], np.int32)
    shown = shown_of(losses.sees, (last_arms, np.float32(law)))
    assert [x.dtype for x in shown] == [x.dtype for x in first_shown(losses)]
    return np.asarray(_met(losses.init, losses.next, shown), np.float64)


def made(name, base, **given):
    if name == "switching_cost_walk":
        return ADVERSARIES[name](num_arms=NUM_ARMS, num_rounds=ROUNDS, **given)
    return ADVERSARIES[name](base, **given)


@pytest.mark.parametrize("name", ADVERSARIES)
@property_of(*ADVERSARIES.values(), examples=5, base=tables, arms=histories, law=laws, unit=units)
def test_adversaries(name, base, arms, law, unit):
    """Scaled bit for bit; the present arm is not seen; and within the magnitude that is stated."""
    one, other = (made(name, base, scale=c) for c in (1.0, unit))
    losses = met(one, arms, law)
    np.testing.assert_array_equal(met(other, arms, law), losses * unit)
    others_last = [*arms[:-1], (arms[-1] + 1) % NUM_ARMS]
    np.testing.assert_array_equal(met(one, others_last, law), losses)
    assert np.abs(losses).max() <= one.magnitude * (1 + 1e-6)
    assert other.magnitude == pytest.approx(one.magnitude * unit)


@property_of(
    sf.losses.corrupted_leader,
    base=tables,
    arms=histories,
    law=laws,
    budget=st.floats(0, 20, width=32),
    high=st.floats(-5, 5, width=32),
)
def test_a_budget_is_never_exceeded(base, arms, law, budget, high):
    """Losses are raised only, for one arm in a round, up to ``high`` and the budget in all."""
    losses = met(sf.losses.corrupted_leader(base, budget=budget, high=high), arms, law)
    plain = np.float64(np.float32(base))
    raised = losses - plain
    assert raised.min() >= -1e-5
    assert ((raised > 1e-5).sum(axis=1) <= 1).all()
    assert raised.sum() <= budget + 1e-4
    assert (losses <= np.maximum(plain, high) + 1e-4).all()


@property_of(
    *ADVERSARIES.values(),
    examples=40,
    name=st.sampled_from(sorted(ADVERSARIES)),
    place=st.integers(0, 9),
    value=st.sampled_from([value for value in NOT_NUMBERS if value is not None]),
)
def test_wrong_parameters_are_refused(name, place, value):
    names = [one for one in inspect.signature(ADVERSARIES[name]).parameters if one != "losses"]
    with pytest.raises(ValueError, match=r"(?s).+"):
        ADVERSARIES[name](**{names[place % len(names)]: value})


def begin(key, *, table):
    return jnp.float32(0)


def answer(total, key, t, last_arm, law, *, table):
    loss = (
        jnp.asarray(table)[t - 1]
        + jax.nn.one_hot(last_arm, NUM_ARMS, dtype=jnp.float32)
        + total * law
    )
    return total + jnp.float32(1), loss


@property_of(sf.losses.from_adversary, base=tables, arms=histories, law=laws)
def test_an_adversary_of_ones_own(base, arms, law):
    """It is given the arm of the round before and p'_t, as the round and the state."""
    how = {"num_arms": NUM_ARMS, "sees": "law", "table": np.float32(base)}
    losses = met(sf.losses.from_adversary(begin, answer, **how), arms, law)
    last = np.vstack([np.zeros(NUM_ARMS), np.eye(NUM_ARMS)[arms[:-1]]])
    wanted = base + last + np.arange(ROUNDS)[:, None] * law
    np.testing.assert_allclose(losses, wanted, rtol=1e-5, atol=1e-5)


@property_of(sf.play_matrix_game, examples=4, matrix=arrays(NUM_ARMS, NUM_ARMS))
def test_matrix_games(matrix):
    """Both regrets make up the exploitability, which is not negative."""
    player = sf.strategies.uniform()  # quick to compile
    how = {"num_rounds": 16, "num_seeds": 4, "progress": False}
    game = sf.play_matrix_game(matrix, player, player, **how)
    sums = game.row.regret[:, 0] + game.column_regret
    size = np.abs(matrix).max() + 1
    np.testing.assert_allclose(game.exploitability * game.rounds, sums, atol=1e-4 * size)
    assert game.exploitability.min() >= -1e-5 * size
    np.testing.assert_allclose(game.row_play.sum(axis=-1), 1)
