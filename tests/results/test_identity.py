"""The identity of a strategy: the same for the same parts and numbers, and for nothing else."""

import json
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import sfmab_jax as sf
from sfmab_jax.results.identity import identity_of

pytestmark = pytest.mark.quick


def own(rate):
    """Exponential weights with a learning rate of the user's."""
    return sf.compose(
        sf.sampling.as_played(),
        sf.estimation.importance_weighted(),
        sf.full_information.ftrl(sf.potentials.negative_entropy(), rate),
    )


def test_built_in_strategies_have_identities_of_their_own():
    """No two alike, the same each time, and plain enough for strict JSON."""
    texts = set()
    for name, make in sf.strategies.STRATEGIES.items():
        identity = identity_of(make())
        assert list(identity) == ["sampling", "estimation", "full_information", "feedback"], name
        assert identity == identity_of(make())
        assert json.loads(json.dumps(identity, allow_nan=False)) == identity
        texts.add(json.dumps(identity))
    assert len(texts) == len(sf.strategies.STRATEGIES)


@pytest.mark.parametrize(
    "change",
    [
        lambda b: sf.strategies.exp3(scale=np.nextafter(1, 2)),
        lambda b: b._replace(feedback=sf.base.feedback_of("full")),
        lambda b: b._replace(feedback=lambda losses, arm: losses[arm]),
        lambda b: b._replace(init=sf.strategies.exp3(scale=2.0).init),
        lambda b: b._replace(update=sf.strategies.exp3_ix().update),
        lambda b: b._replace(probabilities=lambda state: jnp.ones(3) / 3),
    ],
)
def test_every_part_counts(change):
    bandit = sf.strategies.exp3()
    assert identity_of(change(bandit)) != identity_of(bandit)


def test_copies_and_kinds_of_numbers_do_not_count():
    bandit = sf.strategies.scale_free("decaying", alpha=2.0)
    copy = jax.tree.map(lambda leaf: np.float64(leaf), bandit)
    assert identity_of(copy) == identity_of(bandit)
    assert identity_of(sf.strategies.exp3(jnp.float32(2))) == identity_of(sf.strategies.exp3(2))


def slow(t):
    return 1 / (t + 100)


def test_functions_of_the_user_count_with_their_code_and_what_they_enclose():
    def within(number):
        return lambda t: number / (t + 1)

    def recursive(t):
        return recursive if t is None else 1 / t

    rates = [
        slow,
        within(1.0),
        within(2.0),
        lambda t: 1 / (t + 1),
        lambda t: 2 / (t + 1),
        lambda t, c=3.0: c / (t + 1),
        lambda t, c=4.0: c / (t + 1),
        partial(slow),
        jax.jit(lambda t: 3 / t),
        recursive,
    ]
    identities = [identity_of(own(rate)) for rate in rates]
    assert identities[0] == identities[7] == identity_of(own(slow))
    assert identities[1] == identity_of(own(within(1.0)))
    texts = {json.dumps(identity, allow_nan=False) for identity in identities}
    assert len(texts) == len(rates) - 1


def test_objects_that_are_called_are_themselves_only():
    class Rate:
        def __call__(self, t):
            return 1 / (t + 1)

    rate = Rate()
    assert identity_of(own(rate)) == identity_of(own(rate))
    assert identity_of(own(Rate())) != identity_of(own(rate))


def test_large_arrays_count_by_a_digest():
    def at(table, t):
        return table[t.astype(jnp.int32)]

    tables = [np.ones(3), np.array([1.0, 1.0, np.nan]), np.ones(1000), np.arange(1000.0)]
    texts = {
        json.dumps(identity_of(own(jax.tree_util.Partial(at, table))), allow_nan=False)
        for table in tables
    }
    assert len(texts) == 4
    assert max(map(len, texts)) < 4000
