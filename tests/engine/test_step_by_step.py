"""One game round by round is the game that `simulate` plays, and its quantities are the paper's."""

import itertools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.tree_util import Partial
from paper_loop import play_game
from simulated import UNIFORM, table_of

import sfmab_jax as sf

ROUNDS = 60
# The running mean of the losses seen as a baseline: a part of a user's own.
BASELINE = sf.Estimation(
    init=lambda num_arms, dtype, loss_unit: jnp.zeros(2, dtype),
    estimate=lambda mean, play, law, arm, loss: jnp.where(
        jnp.arange(len(play), dtype=arm.dtype) == arm, (loss - mean[0]) / law, 0
    ),
    update=lambda mean, seen: jnp.stack(
        [mean[0] + (seen.loss - mean[0]) / (mean[1] + 1), mean[1] + 1]
    ),
)
RATE = sf.full_information.ftrl(sf.potentials.negative_entropy(), 0.1)
OWN = sf.compose(sf.sampling.fixed(0.2), BASELINE, RATE)


class Remembered(NamedTuple):
    inner: Any
    arm: Any  # the last one played


def remember_from_start(bandit, num_arms, dtype=jnp.float32, loss_unit=1.0):
    return Remembered(bandit.init(num_arms, dtype, loss_unit), jnp.int32(-1))


def law_of_inner(bandit, state):
    return bandit.probabilities(state.inner)


def remember(bandit, state, arm, loss):
    return Remembered(bandit.update(state.inner, arm, loss), arm)


def remembering(bandit):
    """The same bandit with the arm in its state, so that `record` can keep it."""
    functions = (remember_from_start, law_of_inner, remember)
    return sf.Bandit(*(Partial(function, bandit) for function in functions), bandit.feedback)


@pytest.mark.parametrize("bandit", [sf.strategies.exp3(), OWN], ids=["exp3", "own"])
def test_it_is_the_game_of_simulate(bandit):
    """The same losses and arms, on a random family; regret up to the rounding of the laws."""
    losses = sf.losses.uniform(num_arms=3, scale=4.0)
    result = sf.simulate(
        remembering(bandit),
        losses,
        num_rounds=ROUNDS,
        num_seeds=2,
        num_sequences=2,
        seed=3,
        checkpoints=ROUNDS,
        record=lambda state: state.arm,
    )
    for k, s in itertools.product(range(2), range(2)):
        game = sf.step_by_step(bandit, losses, num_rounds=ROUNDS, seed=3, sequence=k, game=s)
        steps = list(game)
        assert [step.t for step in steps] == list(range(1, ROUNDS + 1))
        np.testing.assert_array_equal([step.arm for step in steps], result.records[k, s])
        for name in ("regret", "expected_regret"):
            ours = [getattr(step, name) for step in steps]
            np.testing.assert_allclose(ours, getattr(result, name)[k, s], rtol=0, atol=1e-4)
        totals = np.cumsum([step.losses for step in steps], axis=0)
        np.testing.assert_allclose(totals.min(axis=1), result.norms.best[k], rtol=1e-6)


@pytest.mark.parametrize("exploration", ["adaptive", "decaying"])
def test_quantities_are_those_of_algorithm_1(exploration):
    """Each by its name, against a loop that was transcribed from the paper."""
    losses = table_of(20, 4)
    steps = list(sf.step_by_step(sf.strategies.scale_free(exploration), losses, dtype="float64"))
    arms = np.array([step.arm for step in steps])
    paper = play_game(losses, exploration, arms=arms)
    columns = {
        "probabilities": paper.probabilities,
        "gap": paper.gaps,
        "learning_rate": paper.learning_rate,
        "exploration": paper.exploration,
        "next_play": paper.play,
    }
    for name, column in columns.items():
        ours = [getattr(step, name) for step in steps]
        np.testing.assert_allclose(ours, column, rtol=1e-9, atol=1e-12, err_msg=name)
    estimates = np.cumsum([step.estimate for step in steps], axis=0)
    np.testing.assert_allclose(estimates, paper.estimates, rtol=1e-12)
    for before, step in itertools.pairwise(steps):
        np.testing.assert_array_equal(step.play, before.next_play)
        assert step.loss == step.losses[step.arm]
        if exploration == "adaptive":
            mass = before.exploration * abs(step.loss) / step.probabilities[step.arm]
            np.testing.assert_allclose(step.mass, mass, rtol=1e-9)
        else:
            assert step.mass is None


@jax.disable_jit()
def test_quantities_are_in_the_unit_of_the_losses():
    """Where the strategy sees losses of 2^40 as losses of 1."""
    unit, losses = 2.0**40, [[0.5, 1.0], [1.0, 0.25]]
    plain = list(sf.step_by_step(sf.strategies.exp3(), losses))
    large = list(sf.step_by_step(sf.strategies.exp3(scale=unit), unit * np.array(losses)))
    for one, other in zip(plain, large, strict=True):
        np.testing.assert_array_equal(one.probabilities, other.probabilities)
        for name in ("losses", "loss", "estimate", "regret", "expected_regret"):
            np.testing.assert_array_equal(unit * getattr(one, name), getattr(other, name))
        np.testing.assert_allclose(one.learning_rate, unit * other.learning_rate, rtol=1e-6)


@jax.disable_jit()
def test_full_information_and_what_a_strategy_does_not_have():
    step = next(sf.step_by_step(sf.strategies.follow_the_leader(), [[0.5, 1.0]] * 3))
    np.testing.assert_array_equal(step.estimate, [0.5, 1.0])
    assert step.learning_rate is step.gap is step.mass is None
    text = str(step)
    assert text.startswith("round 1\n")
    assert "p'_t" in text
    assert "eta_t" not in text


def printing(part, *names):
    """The part with functions that print their name."""

    def wrap(name):
        function = getattr(part, name)

        def told(*args):
            jax.debug.print(name)
            return function(*args)

        return told

    return part._replace(**{name: wrap(name) for name in names})


def test_a_part_prints_once_in_every_round(capsys):
    parts = (
        printing(sf.sampling.fixed(0.1), "probabilities"),
        printing(BASELINE, "estimate"),
        printing(RATE, "update"),
    )
    steps = list(sf.step_by_step(sf.compose(*parts), [[0.5, 1.0, 0.0]] * 3))
    jax.effects_barrier()
    lines = capsys.readouterr().out.split("\n")[:-1]
    for name in ("probabilities", "estimate", "update"):
        assert sum(line.startswith(name) for line in lines) == len(steps) == 3


def test_simulate_prints_the_one_game(capsys):
    """Not once for every lane; and the numbers of the game."""

    def estimate(state, play, law, arm, loss):
        jax.debug.print("{} {:.3f}", arm, law[0])
        return BASELINE.estimate(state, play, law, arm, loss)

    bandit = sf.compose(sf.sampling.fixed(0.2), BASELINE._replace(estimate=estimate), RATE)
    sf.simulate(bandit, table_of(4, 3), num_seeds=1, chunk_rounds=1)
    jax.effects_barrier()
    printed = capsys.readouterr().out.split("\n")[:-1]
    steps = sf.step_by_step(OWN, table_of(4, 3))
    assert printed == [f"{step.arm} {step.probabilities[0]:.3f}" for step in steps]


@pytest.mark.quick
@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ({"bandit": sf.strategies.exp3}, "bandit is <function exp3.*give a Bandit"),
        ({"bandit": UNIFORM}, "not made by sf.compose"),
        ({"sequence": 1}, "sequence is 1; give an integer from 0 to 0"),
        ({"game": -1}, "game is -1; give an integer"),
        ({"num_rounds": 4}, "num_rounds is 4; the losses have only 3"),
        ({"dtype": "int8"}, "dtype is int8; give float32"),
    ],
)
def test_mistakes_are_named_at_once(arguments, named):
    """Before the generator is asked for a round."""
    given = {"bandit": sf.strategies.exp3(), "losses": [[0.5, 1.0]] * 3} | arguments
    with pytest.raises(ValueError, match=named):
        sf.step_by_step(**given)
