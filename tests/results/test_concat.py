"""Results of several calls joined: those of one call."""

import numpy as np
import pytest
from made_results import made, two_strategies
from simulated import UNIFORM

import sfmab_jax as sf

pytestmark = pytest.mark.quick
REGRET = np.random.default_rng(0).normal(size=(4, 6, 2))


def part(sequences=slice(None), seeds=slice(None), **options):
    firsts = {
        "first_sequence": sequences.start or 0,
        "first_seed": seeds.start or 0,
    }
    regret = REGRET[sequences, seeds]
    return made(regret, records={"rate": regret[..., None]}, **(firsts | options))


@pytest.mark.parametrize("axis", ["sequence", "seed"])
def test_parts_in_any_order_make_the_whole(axis):
    name = {"sequence": "sequences", "seed": "seeds"}[axis]
    parts = [part(**{name: slice(*ends)}) for ends in ((3, 4), (0, 1), (1, 3))]
    if axis == "seed":
        parts.append(part(seeds=slice(4, 6)))
    whole = sf.concat(parts)
    np.testing.assert_array_equal(whole.regret, REGRET)
    np.testing.assert_array_equal(whole.records["rate"], REGRET[..., None])
    assert whole.norms.best.shape == (4, 2)
    assert (whole.first_sequence, whole.first_seed) == (0, 0)
    assert whole.seconds == 1.5 * len(parts)


def test_the_first_look_is_kept():
    """Parts of which one was stopped early are no run of a fixed length."""
    later = part(seeds=slice(3, 6), first_look=3)
    assert sf.concat([part(seeds=slice(0, 3)), later]).first_look == 3


def test_several_strategies():
    pair = two_strategies()
    assert list(sf.concat([pair])) == ["first", "second"]
    np.testing.assert_array_equal(sf.concat([pair])["first"].regret, pair["first"].regret)


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ([], "no results to join"),
        ([3], "3 is no result"),
        ([part(), two_strategies()], "some of several"),
        ([two_strategies(), sf.Results({"first": part()})], "other strategies: first and"),
        ([part(losses_identity="a"), part(losses_identity="b")], "of the same name, 'some', with"),
        ([part(), part(seed=6)], "seed is 5 in one result and 6 in another"),
        ([part(switches=1), part(switches=2)], "sequences of 1 and of 2 switches; give results"),
        ([part(rounds=np.array([1, 2])), part(rounds=np.array([1, 3]))], "other checkpoints"),
        ([part(slice(0, 1)), part(slice(2, 4))], "give results whose first_sequence is 1"),
        ([part(slice(0, 1)), part(slice(0, 1))], "of the same games"),
        ([part(slice(0, 1), slice(0, 1)), part(slice(1, 2), slice(1, 2))], "both"),
    ],
)
def test_what_cannot_be_joined(parts, message):
    with pytest.raises(ValueError, match=message):
        sf.concat(parts)


def test_games_of_a_family_and_more_of_them():
    """Shared and own losses, one call and two: the same bits."""
    losses = sf.losses.bernoulli(num_arms=3)
    how = {"num_rounds": 30, "checkpoints": 3}
    whole = sf.simulate(UNIFORM, losses, num_seeds=6, **how)
    assert whole.regret.shape == (6, 1, 3)
    for more in ({"first_sequence": 2}, {"first_seed": 2}):
        parts = [
            sf.simulate(UNIFORM, losses, num_seeds=2, **how),
            sf.simulate(UNIFORM, losses, num_seeds=4, **how, **more),
        ]
        np.testing.assert_array_equal(sf.concat(parts).regret, whole.regret)
        np.testing.assert_array_equal(sf.concat(parts).norms.l_2, whole.norms.l_2)
    given = sf.simulate(UNIFORM, losses, num_sequences=2, first_sequence=3, num_seeds=1, **how)
    np.testing.assert_array_equal(given.regret, whole.regret[3:5])
    table = np.random.default_rng(0).normal(size=(4, 30, 3))
    rows = sf.simulate(UNIFORM, table, num_seeds=2, **how)
    some = sf.simulate(UNIFORM, table, num_seeds=2, first_sequence=1, num_sequences=2, **how)
    np.testing.assert_array_equal(some.regret, rows.regret[1:3])
