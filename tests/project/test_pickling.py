"""Strategies, losses and results go to other processes as they are, by pickle or a deep copy."""

import copy
import logging
import pickle

import jax
import numpy as np
import pytest
from simulated import assert_same, table_of

import sfmab_jax as sf

pytestmark = pytest.mark.quick

WAYS = {"pickled": lambda value: pickle.loads(pickle.dumps(value)), "copied": copy.deepcopy}
TABLE = table_of(12, 3)
MADE_OF_OTHERS = {
    "scaled": sf.losses.scaled(sf.losses.gaussian(num_arms=3), 2.0),
    "permuted": sf.losses.permuted(sf.losses.sparse(num_arms=3)),
    "mixed": sf.losses.mixed([sf.losses.cyclic(num_arms=3), TABLE], [1, 2]),
    "table": sf.losses.from_array(TABLE),
}


def fading(key, t, rate):
    """A family of the user's own, at the top of a module."""
    return jax.random.normal(key, (3,)) * rate**t


MADE_OF_OTHERS["own"] = sf.losses.from_function(fading, num_arms=3, rate=0.9)


def assert_alike(one, other):
    """The same tree of the same functions, so the same programs, and the same numbers."""
    assert jax.tree.structure(one) == jax.tree.structure(other)
    for mine, theirs in zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True):
        assert type(mine) is type(theirs)
        np.testing.assert_array_equal(mine, theirs)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", sf.strategies.STRATEGIES)
def test_strategies(name, way):
    bandit = sf.strategies.STRATEGIES[name]()
    assert_alike(bandit, WAYS[way](bandit))


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", [*sf.losses.LOSSES, *MADE_OF_OTHERS])
def test_losses(name, way):
    make = sf.losses.LOSSES.get(name)
    losses = MADE_OF_OTHERS[name] if make is None else make(num_arms=3)
    again = WAYS[way](losses)
    functions = [(one.init, one.next, one.mean) for one in (losses, again)]
    assert_alike(*functions)
    assert (again.name, again.magnitude) == (losses.name, losses.magnitude)


@pytest.mark.parametrize("power", [0.25, 0.5])
def test_potentials(power):
    """With parameters of their own, and made of JAX's functions."""
    for potential in (
        sf.potentials.tsallis(power),
        sf.potentials.negative_entropy(),
        sf.potentials.log_barrier(),
    ):
        assert_alike(potential, WAYS["pickled"](potential))


@pytest.mark.parametrize("way", WAYS)
def test_results_and_what_is_played_again(way, caplog):
    """The same bits, and no program that plays is compiled anew."""
    strategies = {"a": sf.strategies.exp3(), "b": sf.strategies.uniform()}
    how = {"num_seeds": 4, "progress": False}
    results = sf.simulate(strategies, TABLE, **how)
    summary = sf.simulate(strategies["a"], TABLE, keep="moments", **how)
    again = WAYS[way](results)
    for name, result in results.items():
        assert_same(result, again[name])
        assert_alike(result.bandit, again[name].bandit)
        assert repr(result) == repr(WAYS[way](result))
    np.testing.assert_array_equal(WAYS[way](summary).mean(), summary.mean())
    jax.config.update("jax_log_compiles", True)
    try:
        with caplog.at_level(logging.WARNING):
            played = sf.simulate(
                {name: result.bandit for name, result in again.items()}, WAYS[way](TABLE), **how
            )
    finally:
        jax.config.update("jax_log_compiles", False)
    messages = [record.getMessage() for record in caplog.records]
    assert not [m for m in messages if "XLA compilation" in m and "play_groups" in m]
    for name, result in results.items():
        assert_same(result, played[name])
