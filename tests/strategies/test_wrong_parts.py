"""Wrong parts of a user's: each gets its sentence, with the strategy, the part and the fix."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.tree_util import Partial
from tiers import some_in_default

import sfmab_jax as sf
from sfmab_jax.base import BanditState, with_static_functions
from sfmab_jax.engine import rounds, validate_parts
from sfmab_jax.losses import tracing

pytestmark = pytest.mark.quick

S, E = sf.sampling.as_played(), sf.estimation.importance_weighted()
F = sf.full_information.ftrl(sf.potentials.negative_entropy(), 0.05)
FAMILY = sf.losses.bernoulli(num_arms=3)
HOW = {"num_rounds": 12, "num_seeds": 3, "num_sequences": 2, "checkpoints": 2, "progress": False}
OF_S, OF_E, OF_F = (
    f"{part} of strategy 'mine'"
    for part in ("sampling scheme", "estimation scheme", "full-information strategy")
)
LEFT = []
GENERATOR = np.random.default_rng(0)


class Own(NamedTuple):
    """The state of a full-information strategy of one's own."""

    play: Any
    rest: Any = ()


def s_of(init=lambda n, dtype, unit: jnp.zeros((), dtype), p=lambda s, p: p, update=lambda s, r: s):
    return sf.Sampling(init, p, update), E, F


def e_of(**changes):
    return S, E._replace(**changes), F


def f_of(init=lambda n, dtype, unit: Own(jnp.full(n, 1 / n, dtype)), update=lambda s, r: s):
    return S, E, sf.FullInformation(init, update)


def leave(state, seen):
    LEFT.append(seen.loss)
    return LEFT[0] + 0 * state


WRONG = {
    "F without play": (
        f_of(init=lambda n, dtype, unit: jnp.full(n, 1 / n, dtype)),
        rf"{OF_F} has the state float32\[3\], without play; return a NamedTuple",
    ),
    "scalar estimate": (
        e_of(estimate=lambda s, play, p, arm, loss: loss / p[arm]),
        rf"estimate of the {OF_E} returns shape \[\]; return one number for each arm, \[3\]",
    ),
    "update returning None": (
        s_of(update=lambda s, r: None),
        rf"update of the {OF_S} returns None, not the structure of init, float32\[\]; return the",
    ),
    "key in the state": (
        s_of(init=lambda n, dtype, unit: jax.random.key(0)),
        rf"init of the {OF_S} has a random key in state.sampling; parts are pure functions",
    ),
    "text in the state": (
        f_of(init=lambda n, dtype, unit: Own(jnp.full(n, 1 / n, dtype), "exp")),
        rf"init of the {OF_F} puts 'exp' in state.full_information.rest; a state holds arrays",
    ),
    "text of NumPy's": (
        f_of(init=lambda n, dtype, unit: Own(jnp.full(n, 1 / n, dtype), np.array("exp"))),
        rf"init of the {OF_F} puts array\('exp', .*\) in state.full_information.rest",
    ),
    "if": (
        s_of(update=lambda s, r: s + 1 if r.loss > 0 else s),
        rf"update of the {OF_S} decides by a Python `if`.* jnp.where.* \(line \d+ of test_wrong",
    ),
    "float": (
        s_of(update=lambda s, r: s + float(r.loss)),
        rf"update of the {OF_S} makes a number of Python, by float.* use jax.numpy",
    ),
    "index": (
        s_of(update=lambda s, r: s + [1.0, 2.0, 3.0][r.arm]),
        rf"update of the {OF_S} takes a number .* for an index",
    ),
    "NumPy": (s_of(p=lambda s, p: np.exp(p)), rf"{OF_S} gives NumPy an array .* use jax.numpy"),
    "mask": (s_of(p=lambda s, p: p[p > 0.1]), rf"{OF_S} selects by a mask.* use jnp.where"),
    "wrong length of p": (
        s_of(p=lambda s, p: p[:2]),
        rf"probabilities of the {OF_S} returns shape \[2\]; return one number for each arm, \[3\]",
    ),
    "numbers in a tuple for p": (
        s_of(p=lambda s, p: (p[0], p[1], 0.5)),
        rf"probabilities of the {OF_S} returns \(float32\[\], float32\[\], 0.5\); return one",
    ),
    "integers for p": (
        s_of(p=lambda s, p: jnp.zeros(3, jnp.int32).at[0].set(1)),
        rf"probabilities of the {OF_S} returns int32\[3\]; return a law of play's type",
    ),
    "truth values for p": (
        s_of(p=lambda s, p: p == p[0]),
        rf"probabilities of the {OF_S} returns bool\[3\]; return a law of play's type",
    ),
    "half floats for p": (
        s_of(p=lambda s, p: p.astype(jnp.float16)),
        rf"probabilities of the {OF_S} returns float16\[3\]; .* law.astype\(play.dtype\)",
    ),
    "integers for play": (
        f_of(init=lambda n, dtype, unit: Own(jnp.ones(n, jnp.int32))),
        rf"{OF_F} has play int32\[3\]; make it of the dtype that init is given",
    ),
    "wrong length of play": (
        f_of(init=lambda n, dtype, unit: Own(jnp.full(n + 1, 1 / n, dtype))),
        rf"{OF_F} has play float32\[4\]; give one number for each arm, \[3\]",
    ),
    "type that changes": (
        s_of(init=lambda n, dtype, unit: jnp.int32(0), update=lambda s, r: s.astype(jnp.float32)),
        rf"update of the {OF_S} makes state.sampling float32\[\] of int32\[\]; keep its type",
    ),
    "type that changes from Python's 0": (
        s_of(init=lambda n, dtype, unit: 0, update=lambda s, r: jnp.float32(s)),
        rf"update of the {OF_S} makes state.sampling float32\[\] of int\d\d\[\]; keep its type",
    ),
    "arguments": (
        s_of(update=lambda s: s),
        rf"update of the {OF_S} takes \(s\), but is given \(state, round\).* define update\(state",
    ),
    "no function": (s_of(update=None), rf"update of the {OF_S} is None; define update\(state, rou"),
    "shapes of its own": (
        s_of(p=lambda s, p: p * jnp.ones(7, p.dtype)),
        rf"probabilities of the {OF_S} fails: .*\(3,\).*\(7,\).* \(line \d+ of test_wrong_parts",
    ),
    "no such field": (
        s_of(update=lambda s, r: s + r.losses),
        rf"update of the {OF_S} fails: 'Round' object has no attribute 'losses' \(line",
    ),
    "something kept outside": (s_of(update=leave), "strategy 'mine' or the losses keep a number"),
    "weigh that disagrees": (
        e_of(weigh=lambda s, play, p, arm, loss: loss),
        rf"weigh of the {OF_E} does not agree with estimate: in round 1, with arm 0 played",
    ),
    "weigh of estimates elsewhere": (
        e_of(estimate=lambda s, play, p, arm, loss: loss / p + jnp.zeros_like(play)),
        rf"weigh of the {OF_E} does not agree .* for arm 1, which was not played, .* leave out",
    ),
    "weigh of all arms": (
        e_of(weigh=lambda s, play, p, arm, loss: loss / p),
        rf"weigh of the {OF_E} returns shape \[3\]; return a number, \[\]",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_part_gets_its_sentence(name):
    """Before anything is played, and without a word of JAX's."""
    parts, sentence = WRONG[name]
    with pytest.raises(ValueError, match=sentence) as caught:
        sf.simulate({"mine": sf.compose(*parts)}, FAMILY, dtype="float32", **HOW)
    assert "\n" not in str(caught.value)
    assert not [word for word in ("Tracer", "PyTreeDef", "hex") if word in str(caught.value)]
    assert caught.value.__cause__ is None
    assert not getattr(caught.value, "__notes__", [])


def test_a_bandit_without_parts_is_named_by_its_functions():
    right = sf.Bandit(
        init=lambda n, dtype=jnp.float32, loss_unit=1.0: jnp.full(n, 1 / n, dtype),
        probabilities=lambda state: state,
        update=lambda state, arm, loss: state,
    )
    for change, sentence in (
        ({"update": lambda state, arm, loss: None}, "update of strategy 'mine' returns None"),
        ({"probabilities": lambda state: state[0]}, r"strategy 'mine' returns shape \[\]; return"),
        ({"init": lambda n: jnp.zeros(n)}, r"init of strategy 'mine' takes \(n\), but is given"),
    ):
        with pytest.raises(ValueError, match=sentence):
            sf.simulate({"mine": right._replace(**change)}, FAMILY, **HOW)


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: sf.strategies.scale_free(beta=np.array([0.5, 1.0])), r"beta is array\(\[0.5, 1"),
        (lambda: sf.strategies.scale_free(alpha=jnp.ones(3)), "alpha is .*; give a number"),
        (lambda: sf.simulate([sf.compose(S, E, F)], FAMILY), "a list of 1; give a Bandit, or a di"),
        (lambda: sf.simulate((F,), FAMILY), "a tuple of 1; give a Bandit, or a dict that names"),
    ],
)
def test_arrays_and_lists_where_one_is_wanted(call, sentence):
    with pytest.raises(ValueError, match=sentence):
        call()


def law_in_round(wrong, state, seen):
    """From round ``first`` on the play is another vector."""
    t = state.rest + 1
    return Own(jnp.where(t >= wrong["first"], wrong["play"], state.play), t)


@pytest.mark.parametrize("keep", ["games", "moments"])
def test_a_play_that_is_no_law(keep):
    """Though what the sampling scheme makes of it may be one; a program for all of them."""
    how = {**HOW, "dtype": "float32", "keep": keep}
    for play, first in (([-0.1, 0.6, 0.5], 5), ([0.5, 0.5, 0.5], 2), ([np.inf, 0.5, 0.5], 12)):
        wrong = {"first": np.int32(first), "play": np.float32(play)}
        strategy = sf.FullInformation(
            lambda n, dtype, unit: Own(jnp.full(n, 1 / n, dtype), jnp.int32(1)),
            Partial(law_in_round, wrong),
        )
        bandit = sf.compose(sf.sampling.fixed(0.9), E, strategy)
        says = (
            f"'mine' has plays p_t that are no law.* round {first} of 12, .* 6 of 6 games, .* "
            "its full-information strategy returns"
        )
        with pytest.warns(RuntimeWarning, match=says) as caught:
            sf.simulate({"mine": bandit}, FAMILY, **how)
        assert [warning.filename for warning in caught] == [__file__]


def test_an_estimation_scheme_that_spoils_the_play():
    bad = E._replace(estimate=lambda s, play, p, arm, loss: jnp.log(-1 - loss) * play, weigh=None)
    says = "plays p_t that are no law.* round 2 of 12.* what its estimation scheme returns"
    with pytest.warns(RuntimeWarning, match=says):
        sf.simulate({"mine": sf.compose(S, bad, F)}, FAMILY, **HOW)


def test_an_exact_regret_that_is_no_number():
    bandit = sf.Bandit(
        init=lambda n, dtype=jnp.float32, loss_unit=1.0: jnp.full(n, jnp.nan, dtype),
        probabilities=lambda state: state,
        update=lambda state, arm, loss: state,
    )
    with pytest.warns(RuntimeWarning, match="regret that is not finite, on losses that are"):
        sf.exact_gradient(with_static_functions(bandit), np.eye(2, dtype=np.float32))


# Losses.


def drawn(key, t):
    return jnp.asarray(GENERATOR.random(3), jnp.float32)


def drawn_beside_the_key(key, t):
    return jax.random.normal(key, (3,), jnp.float32) + np.float32(GENERATOR.random())


def drawn_in_a_branch(key, t):
    return jax.lax.cond(t > 3, lambda: jnp.zeros(3), lambda: jnp.zeros(3) + GENERATOR.random())


def stepped(state, key, t):
    return state.astype(jnp.float32), jnp.ones(3)


from_function, from_recurrence = sf.losses.from_function, sf.losses.from_recurrence
WRONG_LOSSES = {
    "drawn": (lambda: from_function(drawn, 3), "other numbers each time it is read"),
    "beside the key": (
        lambda: from_function(drawn_beside_the_key, 3),
        r"'function' has other numbers .* NumPy's or Python's, .* draw from the key",
    ),
    "in a branch": (lambda: from_function(drawn_in_a_branch, 3), "other numbers each time"),
    "at the start": (
        lambda: from_recurrence(lambda key: drawn(key, 0), lambda s, key, t: (s, s), 3),
        "'recurrence' has other numbers each time",
    ),
    "reads the arm": (
        lambda: from_function(lambda key, t, arm: jnp.ones(3), 3, name="spite"),
        r"loss of 'spite' takes \(key, t, arm\), but is given \(key, round\).* losses are obliv",
    ),
    "reads the play": (
        lambda: from_recurrence(lambda key: 0.0, lambda s, key, t, play: (s, play), 3),
        "next_loss of 'recurrence' takes .*play.* losses are oblivious here",
    ),
    "misses a parameter": (
        lambda: from_function(lambda key, t, half_life: jnp.ones(3), 3),
        "missing .*half_life.* parameters are given by name",
    ),
    "if": (
        lambda: from_function(lambda key, t: jnp.ones(3) if t > 5 else jnp.zeros(3), 3),
        r"losses 'function' decides by a Python `if`.* \(line \d+ of test_wrong_parts",
    ),
    "text": (lambda: from_function(lambda key, t: "one", 3), "function returns 'one'; return the"),
    "no pair": (
        lambda: from_recurrence(lambda key: 0.0, lambda s, key, t: jnp.ones(3), 3),
        "returns no pair; return .the next state, the losses",
    ),
    "type that changes": (
        lambda: from_recurrence(lambda key: jnp.int32(1), stepped, 3),
        r"'recurrence' makes state float32\[\] of int32\[\]; keep its type",
    ),
}


@pytest.mark.parametrize("name", WRONG_LOSSES)
def test_wrong_losses_get_their_sentence(name):
    make, sentence = WRONG_LOSSES[name]
    with pytest.raises(ValueError, match=sentence) as caught:
        sf.hardness(make(), num_rounds=4)
    assert "\n" not in str(caught.value)


def test_draws_from_a_key_made_inside_are_told():
    """All rounds of all sequences have the same."""
    for loss in (
        lambda key, t: jax.random.uniform(jax.random.key(0), (3,)),
        lambda key, t: jnp.ones(3) + jax.random.normal(jax.random.PRNGKey(5), (3,)),
    ):
        with pytest.warns(RuntimeWarning, match="'mine' draws from a key of its own") as caught:
            sf.losses.as_loss_sequence(from_function(loss, 3, name="mine"))
        assert [warning.filename for warning in caught] == [__file__]


def test_constants_are_good_losses():
    """The same in every round, from an array outside, or not numbers in a branch not taken."""
    table = jnp.asarray(GENERATOR.random((9, 3)), jnp.float32)
    key_of_the_users = jax.random.key(3)
    for loss in (
        lambda key, t: jnp.array([1.0, 2.0, 3.0]),
        lambda key, t: np.ones(3, np.float32),
        lambda key, t: table[t - 1],
        lambda key, t: jnp.where(t > 0, jnp.ones(3), jnp.nan),
        lambda key, t: jax.random.normal(jax.random.fold_in(key_of_the_users, t), (3,)),
    ):
        sf.losses.as_loss_sequence(from_function(loss, 3))


# What is right passes. (All tests have warnings turned into errors.)


@pytest.fixture
def as_a_users(monkeypatch):
    """Have everything of the package checked as if a user had written it."""
    for module in (rounds, validate_parts, tracing):
        monkeypatch.setattr(module, "has_own_functions", lambda value: False)
    monkeypatch.setattr(validate_parts, "_GOOD_SHAPES", set())


@pytest.mark.parametrize("name", sf.losses.LOSSES)
def test_all_families_pass(name, as_a_users):
    family = sf.losses.LOSSES[name](num_arms=3)
    assert sf.losses.as_loss_sequence(family) is family


@pytest.mark.parametrize("name", sf.strategies.STRATEGIES)
def test_all_strategies_pass(name, as_a_users, monkeypatch):
    """Their shapes, and whether weigh agrees; this is the same one for all, so tried once."""
    if name != "scale_free":
        monkeypatch.setattr(validate_parts, "_check_weigh", lambda *given: None)
    validate_parts.check_shapes(name, sf.strategies.STRATEGIES[name](), 3, np.dtype("float32"))


@pytest.mark.parametrize(
    "name", some_in_default(sf.strategies.STRATEGIES, ["tsallis_inf", "epsilon_greedy", "ahb"])
)
def test_all_laws_pass(name, as_a_users):
    """p_t and p'_t of sixteen rounds of a game, up to a single arm that is left."""
    bandit = with_static_functions(sf.strategies.STRATEGIES[name]())
    losses = np.random.default_rng(1).random((16, 3)).astype(np.float32)

    @jax.jit
    def play(losses):
        def step(carry, now):
            state, first = carry
            t, loss = now
            arm = jnp.argmax(bandit.probabilities(state)).astype(jnp.int32)
            first = rounds.watch_law(bandit, state, t, first)
            return (bandit.update(state, arm, bandit.feedback(loss, arm)), first), None

        start = bandit.init(3, jnp.float32, jnp.float32(1))
        assert isinstance(start, BanditState)
        now = (jnp.arange(1, 17, dtype=jnp.int32), losses)
        return jax.lax.scan(step, (start, jnp.int32(0)), now)[0][1]

    assert play(losses) == 0
