"""The contract of Algorithm 1 and of compositions of its parts; test_strategy_contract.py has the
table of all named strategies."""

import re

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tiers import some_in_default

import sfmab_jax as sf
from sfmab_jax.numerics.threefry import threefry_2x32

POTENTIALS = {
    "log_barrier": sf.potentials.log_barrier(),
    "negative_entropy": sf.potentials.negative_entropy(),
    "tsallis": sf.potentials.tsallis(0.5),
}


def composed(sampling, full_information):
    return sf.compose(sampling, sf.estimation.importance_weighted(), full_information)


NAMED = {
    "scale_free": sf.strategies.scale_free(),
    "scale_free_decaying": sf.strategies.scale_free("decaying"),
}
COMPOSED = {
    **{
        f"ftrl_{name}": composed(
            sf.sampling.fixed(0.1),
            sf.full_information.ftrl(potential, lambda t: 0.5 / jnp.sqrt(t + 1)),
        )
        for name, potential in POTENTIALS.items()
    },
    **{
        f"ada_ftrl_{name}": composed(
            sf.sampling.as_played(), sf.full_information.ada_ftrl(POTENTIALS[name])
        )
        for name in ("negative_entropy", "tsallis")
    },
}
BANDITS = {**NAMED, **COMPOSED}
EACH_BANDIT = pytest.mark.parametrize("name", BANDITS)
EACH_DTYPE = pytest.mark.parametrize("dtype", [jnp.float32, jnp.float64], ids=["f32", "f64"])
# Compiling takes a second or two for each: the compositions of old parts are given less.
NARROW, WIDE = jnp.float32, jnp.float64
SIZES = [
    *(
        (name, *size)
        for name in NAMED
        for size in [(1, NARROW), (2, NARROW), (7, NARROW), (7, WIDE)]
    ),
    *((name, *size) for name in COMPOSED for size in [(2, NARROW), (7, WIDE)]),
]
SCALES = [1e-30, 1e-20, 1e-10, 1e-3, 1.0, 1e3, 1e10, 1e20, 1e30]


@jax.jit
def play(bandit, losses, key):
    """Probabilities before each round, [T + 1, n], and the last state."""

    def step(state, now):
        round_, loss = now
        probabilities = bandit.probabilities(state)
        arm = sf.draw_arm(probabilities, threefry_2x32(key, (round_, jnp.uint32(0))))
        return bandit.update(state, arm, loss[arm]), probabilities

    first = bandit.init(losses.shape[1], losses.dtype)
    rounds = jnp.arange(len(losses), dtype=jnp.uint32)
    state, probabilities = jax.lax.scan(step, first, (rounds, losses))
    return jnp.concatenate([probabilities, bandit.probabilities(state)[None]]), state


play_games = jax.jit(jax.vmap(play, in_axes=(None, 0, 0)))


@pytest.mark.parametrize(
    ("name", "num_arms", "dtype"),
    some_in_default(SIZES, [("scale_free", 7, WIDE), ("ftrl_tsallis", 2, NARROW)]),
)
def test_plays_on_the_simplex_at_every_scale(name, num_arms, dtype):
    """Jitted, scanned, mapped over games; finite on losses of 1e-30 to 1e30 of either sign."""
    generator = np.random.default_rng(num_arms)
    shapes = generator.normal(size=(len(SCALES), 12, num_arms))
    # Each game has one scale, and the last game runs through them all.
    sizes = np.tile(np.array(SCALES)[:, None, None], (1, 12, 1))
    games = np.concatenate([shapes * sizes, shapes[:1] * np.resize(SCALES, (1, 12, 1))])
    keys = tuple(np.arange(2 * len(games), dtype=np.uint32).reshape(2, -1))
    played = play_games(BANDITS[name], games.astype(dtype), keys)
    probabilities, states = jax.tree.map(np.asarray, played)
    assert probabilities.dtype == dtype
    for leaf in jax.tree.leaves(states):
        assert leaf.dtype in (dtype, jnp.int32)
        assert np.isfinite(leaf).all()
    assert (probabilities >= 0).all()
    # Sums of up to seven terms; the normaliser stops within a few roundings of its root.
    np.testing.assert_allclose(probabilities.sum(axis=-1), 1, rtol=20 * jnp.finfo(dtype).eps)
    if num_arms == 1:
        np.testing.assert_allclose(states.full_information.play, 1, rtol=4 * jnp.finfo(dtype).eps)


@EACH_BANDIT
@EACH_DTYPE
def test_update_keeps_the_type_of_the_state(name, dtype):
    """Shapes, dtypes and weak types are the same before and after: a scan can carry the state."""
    bandit = BANDITS[name]
    first = bandit.init(7, dtype)

    def two_rounds(state, arm, loss):
        types = [jax.tree.map(jax.typeof, state)]
        for _ in range(2):
            state = bandit.update(state, arm, loss)
            types.append(jax.tree.map(jax.typeof, state))
        assert types[0] == types[1] == types[2]
        return state, bandit.probabilities(state)

    after, probabilities = jax.eval_shape(two_rounds, first, jnp.int32(3), dtype(-2.5))
    assert jax.tree.structure(first) == jax.tree.structure(after)
    for leaf in jax.tree.leaves(first):
        assert not leaf.weak_type
        assert leaf.dtype in (dtype, jnp.int32)
    assert probabilities.shape == (7,)
    assert probabilities.dtype == dtype
    np.testing.assert_array_equal(first.full_information.play, np.full(7, dtype(1 / 7)))


@pytest.mark.parametrize("name", some_in_default(NAMED, ["scale_free"]))
def test_mapping_over_games_changes_nothing(name):
    """A game inside a vmap is the game alone, up to the rounding of vector code."""
    generator = np.random.default_rng(1)
    games = generator.normal(size=(10, 12, 7))
    keys = tuple(np.arange(20, dtype=np.uint32).reshape(2, -1))
    together, _ = play_games(BANDITS[name], games, keys)
    alone, _ = play(BANDITS[name], games[4], (keys[0][4], keys[1][4]))
    np.testing.assert_allclose(together[4], alone, rtol=1e-11)


def test_float32_is_the_default_dtype():
    for bandit in BANDITS.values():
        assert bandit.probabilities(bandit.init(3)).dtype == jnp.float32


@pytest.mark.parametrize(
    "make",
    [
        lambda x: sf.strategies.scale_free(beta=x),
        lambda x: sf.strategies.scale_free("decaying", alpha=x, beta=2 * x),
        lambda x: composed(
            sf.sampling.fixed(x), sf.full_information.ftrl(sf.potentials.tsallis(1 - x), 2 * x)
        ),
        lambda x: composed(
            sf.sampling.fixed(x),
            sf.full_information.ada_ftrl(sf.potentials.negative_entropy(), 1 + x, x),
        ),
    ],
    ids=["beta", "alpha_and_beta", "rate_and_power", "entropy"],
)
def test_parameters_do_not_trace_again(make):
    """A bandit is a pytree of its numbers: as an argument of a jitted function, it traces once."""
    chex.clear_trace_counter()

    @jax.jit
    @chex.assert_max_traces(n=1)
    def first_rounds(bandit, arm, loss):
        state = bandit.update(bandit.init(3), arm, loss)
        return bandit.probabilities(bandit.update(state, arm, -loss))

    seen = {
        tuple(np.asarray(first_rounds(make(x), jnp.int32(1), jnp.float32(5.0))))
        for x in (0.1, 0.3, 0.7)
    }
    assert len(seen) == 3


def test_traced_once_for_many_rounds():
    chex.clear_trace_counter()
    bandit = sf.strategies.scale_free()

    @jax.jit
    @chex.assert_max_traces(n=1)
    def update(state, arm, loss):
        return bandit.update(state, arm, loss)

    state = bandit.init(3)
    for t in range(5):
        state = update(state, jnp.int32(t % 3), jnp.float32(t - 2))


def test_a_number_and_a_schedule_agree():
    """A learning rate given as a number is the schedule that always returns it."""
    number, schedule = (
        composed(sf.sampling.as_played(), sf.full_information.ftrl(POTENTIALS["tsallis"], rate))
        for rate in (0.25, lambda t: 0 * t + 0.25)
    )
    losses = np.random.default_rng(0).normal(size=(12, 7))
    key = (np.uint32(1), np.uint32(2))
    np.testing.assert_array_equal(play(number, losses, key)[0], play(schedule, losses, key)[0])


def test_schedule_sees_the_rounds_played():
    """eta_0 before round 1, eta_t after round t."""
    bandit = composed(
        sf.sampling.as_played(),
        sf.full_information.ftrl(POTENTIALS["negative_entropy"], lambda t: 1 / (t + 2)),
    )
    state = bandit.init(2)
    assert state.full_information.learning_rate == 1 / 2
    for t in (1, 2, 3):
        state = bandit.update(state, jnp.int32(0), jnp.float32(1.0))
        np.testing.assert_allclose(state.full_information.learning_rate, 1 / (t + 2), rtol=1e-6)


def test_hedge_by_hand():
    """FTRL with the negative entropy is exponential weights on the estimated losses."""
    bandit = composed(
        sf.sampling.fixed(0.25), sf.full_information.ftrl(POTENTIALS["negative_entropy"], 0.5)
    )
    state = bandit.init(3, jnp.float64)
    totals, p = np.zeros(3), np.full(3, 1 / 3)
    for arm, loss in [(0, 1.0), (2, -2.0), (0, 0.5), (1, 3.0)]:
        sampled = 0.75 * p + 0.25 / 3
        np.testing.assert_allclose(bandit.probabilities(state), sampled, rtol=1e-13)
        totals[arm] += loss / sampled[arm]
        weights = np.exp(-0.5 * (totals - totals.min()))
        p = weights / weights.sum()
        state = bandit.update(state, jnp.int32(arm), jnp.float64(loss))
        np.testing.assert_allclose(state.full_information.play, p, rtol=1e-13)


def ftrl_rate(x):
    return sf.full_information.ftrl(POTENTIALS["tsallis"], x)


def ada_ftrl_alpha(x):
    return sf.full_information.ada_ftrl(POTENTIALS["tsallis"], alpha=x)


def scale_free_beta(x):
    return sf.strategies.scale_free(beta=x)


BAD_PARAMETERS = [
    *((sf.sampling.fixed, x) for x in (-0.1, 1.5, np.nan)),
    *((sf.potentials.tsallis, x) for x in (0.0, 1.0, -2, np.nan)),
    *((ftrl_rate, x) for x in (0, -0.5, np.nan, np.inf, np.float32(-0.5))),
    *((ada_ftrl_alpha, x) for x in (0.0, -3, np.nan, np.inf)),
    *((scale_free_beta, x) for x in (0, -1.0, np.nan, np.inf)),
    *((scale_free_beta, x) for x in (np.float32(-2.0), np.int64(-2), "big")),
    *((sf.strategies.scale_free, x) for x in ("sometimes", "Adaptive", None)),
]


@pytest.mark.parametrize(
    ("make", "value"),
    BAD_PARAMETERS,
    ids=[f"{make.__name__}-{value!r}" for make, value in BAD_PARAMETERS],
)
def test_bad_parameters_are_refused_by_value(make, value):
    with pytest.raises(ValueError, match=re.escape(str(value))):
        make(value)


def test_unknown_exploration_names_the_choices():
    with pytest.raises(ValueError, match="'adaptive' or 'decaying'"):
        sf.strategies.scale_free("epsilon")


def test_every_named_strategy_has_a_docstring_that_cites_its_source():
    for make in sf.strategies.STRATEGIES.values():
        assert re.search(r"\(\d{4}\)", make.__doc__)
