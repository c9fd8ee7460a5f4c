"""`simulate`: what it reports, from the smallest to the largest losses."""

import jax.numpy as jnp
import numpy as np
import paper_loop
import pytest
from simulated import ADAPTIVE, BOTH, DECAYING, UNIFORM, table_of

import sfmab_jax as sf

# What is reported.


@pytest.fixture(scope="module")
def observed():
    """Two sequences of 40 rounds, 5 seeds, float64, the state kept after every round."""
    table = table_of(2, 40, 3, seed=1)
    results = sf.simulate(
        BOTH,
        table,
        num_seeds=5,
        seed=11,
        first_seed=3,
        checkpoints=40,
        dtype=jnp.float64,
        record=lambda state: {
            "play": state.full_information.play,
            "exploration": state.sampling.exploration,
            "learning_rate": state.full_information.learning_rate,
            "estimates": state.full_information.losses.value,
        },
    )
    return table, results


def test_shapes_and_labels(observed):
    """Nothing of the size of the rounds is kept but at the checkpoints asked for."""
    _, results = observed
    assert isinstance(results, sf.Results)
    assert list(results) == ["adaptive", "decaying"]
    for name, result in results.items():
        assert isinstance(result, sf.Result)
        assert result.name == name
        assert (result.seed, result.first_seed, result.dtype) == (11, 3, "float64")
        assert result.losses == "array"
        assert result.seconds > 0
        np.testing.assert_array_equal(result.rounds, np.arange(1, 41))
        assert result.regret.shape == result.expected_regret.shape == (2, 5, 40)
        assert result.regret.dtype == result.expected_regret.dtype == np.float64
        assert result.records["play"].shape == (2, 5, 40, 3)
        assert result.records["exploration"].shape == (2, 5, 40)
        for name, norm in list(result.norms._asdict().items())[2:]:
            assert norm.shape == (2, 40)
            assert norm.dtype == (np.int64 if name == "best_arm" else np.float64)


def arms_seen(result):
    """The arms played, [K, S, T], in the growth of the estimates; and that growth."""
    grown = np.diff(result.records["estimates"], axis=2, prepend=0)
    assert (np.count_nonzero(grown, axis=-1) == 1).all()
    return np.argmax(grown != 0, axis=-1), grown


def test_regret_from_the_recorded_states(observed):
    """Laws made from the recorded play and exploration; everything else by NumPy."""
    table, results = observed
    best = np.cumsum(table, axis=1).min(axis=2)[:, None]  # of the first tau rounds
    for result in results.values():
        arms, _ = arms_seen(result)
        seen = np.take_along_axis(table[:, None], arms[..., None], axis=-1)[..., 0]
        # Sums of forty numbers in another order.
        np.testing.assert_allclose(result.regret, np.cumsum(seen, axis=2) - best, atol=1e-12)
        play = np.concatenate([np.full((2, 5, 1, 3), 1 / 3), result.records["play"]], axis=2)
        gamma = np.concatenate([np.full((2, 5, 1), 0.5), result.records["exploration"]], axis=2)
        law = (1 - gamma[..., None]) * play + gamma[..., None] / 3
        meant = np.sum(law[:, :, :-1] * table[:, None], axis=-1)
        np.testing.assert_allclose(
            result.expected_regret, np.cumsum(meant, axis=2) - best, atol=1e-12
        )


def test_recorded_state_is_that_of_the_algorithm(observed):
    """eta_t, gamma_t, p_{t+1} and the estimates in the losses' own unit, as in Algorithm 1."""
    table, results = observed
    for name, result in results.items():
        arms, _ = arms_seen(result)
        for k, s in ((0, 0), (1, 4)):
            loop = paper_loop.play_game(table[k], name, arms=arms[k, s])
            for field in ("play", "exploration", "learning_rate", "estimates"):
                recorded = result.records[field][k, s]
                np.testing.assert_allclose(recorded, getattr(loop, field), rtol=1e-9, err_msg=field)


@pytest.mark.parametrize(("dtype", "accuracy"), [(jnp.float32, 4e-7), (jnp.float64, 1e-14)])
def test_norms_against_numpy(dtype, accuracy):
    """At every checkpoint, to a few roundings: sums over rounds are compensated."""
    table = table_of(5, 96, 3, seed=2).astype(dtype).astype(np.float64)
    checkpoints = [1, 2, 17, 50, 96]
    norms = sf.simulate(UNIFORM, table, num_seeds=1, checkpoints=checkpoints, dtype=dtype).norms
    assert norms.num_arms == 3
    np.testing.assert_array_equal(norms.rounds, checkpoints)
    for column, tau in enumerate(checkpoints):
        first = table[:, :tau]
        totals = first.sum(axis=1)
        wanted = {
            "l_1": np.abs(first).sum(axis=(1, 2)),
            "l_2": (first**2).sum(axis=(1, 2)),
            "l_inf": np.abs(first).max(axis=(1, 2)),
            "s_inf": np.abs(totals).max(axis=1),
        }
        for name, value in wanted.items():
            np.testing.assert_allclose(
                getattr(norms, name)[:, column], value, rtol=accuracy, err_msg=name
            )
        # These two may cancel: their error is measured by the sizes of the totals.
        size = np.abs(totals).max(axis=1)
        np.testing.assert_array_less(
            np.abs(norms.best[:, column] - totals.min(axis=1)), accuracy * size
        )
        np.testing.assert_array_less(
            np.abs(norms.mean[:, column] - totals.mean(axis=1)), accuracy * size
        )


def test_equal_arms_have_no_regret():
    """Whatever is played, the loss is the same."""
    losses = np.repeat(table_of(48, 1, seed=3), 3, axis=1)
    result = sf.simulate(DECAYING, losses, num_seeds=4, checkpoints=2)
    size = np.abs(losses).sum()
    np.testing.assert_allclose(result.regret, 0, atol=1e-6 * size)
    np.testing.assert_allclose(result.expected_regret, 0, atol=1e-6 * size)
    np.testing.assert_allclose(result.norms.best, result.norms.mean, rtol=1e-6)


def test_regret_compares_with_the_best_arm_so_far():
    """Arms 0 and 1 take turns to be the best; arm 2 costs nothing, so totals are known."""
    losses = np.zeros((48, 3))
    losses[:24, 0], losses[24:, 0] = -1.0, 3.0
    losses[:24, 1], losses[24:, 1] = 1.0, -4.0
    result = sf.simulate(UNIFORM, losses, num_seeds=3, checkpoints=[24, 30, 40, 48])
    np.testing.assert_array_equal(result.norms.best[0], [-24, -6, -40, -72])
    # From one checkpoint to the next the total moves by at most the largest losses.
    totals = result.regret + result.norms.best[:, None]
    assert (np.abs(totals[0, :, 0]) <= 24).all()
    assert (np.diff(totals, axis=-1) >= -4 * np.diff(result.rounds)).all()
    assert (np.diff(totals, axis=-1) <= 3 * np.diff(result.rounds)).all()
    np.testing.assert_array_equal(totals, np.round(totals))


@pytest.mark.parametrize(
    ("asked", "wanted"),
    [
        ([30, 5, 5, 48, 1], [1, 5, 30, 48]),
        ([7], [7, 48]),
        (np.array([48], np.int32), [48]),
        (range(20, 50, 10), [20, 30, 40, 48]),
        (1, [48]),
        (2, [1, 48]),
        (48, list(range(1, 49))),
        (1000, list(range(1, 49))),
        (np.int64(1), [48]),
    ],
    ids=lambda value: str(value)[:12],
)
def test_checkpoints(asked, wanted):
    """The last round is always one; a checkpoint shows the same whatever the others."""
    table = table_of(48, 3, seed=4)
    result = sf.simulate(UNIFORM, table, num_seeds=2, checkpoints=asked)
    np.testing.assert_array_equal(result.rounds, wanted)
    assert result.regret.shape == (1, 2, len(wanted))
    np.testing.assert_array_equal(result.norms.rounds, wanted)
    best = np.cumsum(table, axis=0).min(axis=1)[np.array(wanted) - 1]
    np.testing.assert_allclose(result.norms.best[0], best, atol=1e-6 * np.abs(table).sum())


def test_numbers_of_checkpoints_are_spread_over_the_scales():
    result = sf.simulate(UNIFORM, table_of(1000, 3), num_seeds=1, checkpoints=20)
    rounds = result.rounds
    assert len(rounds) == 20
    assert rounds[0] == 1
    assert rounds[-1] == 1000
    assert (np.diff(rounds) > 0).all()
    # Where the scale is coarser than single rounds, neighbours have about the same ratio.
    late = rounds[rounds > 30]
    ratios = late[1:] / late[:-1]
    np.testing.assert_allclose(ratios, np.median(ratios), rtol=0.05)


def test_nothing_of_the_length_of_the_game_is_kept():
    """Results of 5,000 rounds hold three checkpoints and no more."""
    result = sf.simulate(
        UNIFORM,
        sf.losses.gaussian(num_arms=3),
        num_rounds=5000,
        num_seeds=4,
        num_sequences=2,
        checkpoints=[70, 700],
        record=lambda state: state,
    )
    assert result.regret.shape == result.expected_regret.shape == (2, 4, 3)
    assert result.records.shape == (2, 4, 3, 3)
    for array in (result.rounds, *result.norms[1:]):
        assert array.size <= 6


def test_record_may_return_anything_of_arrays():
    table = table_of(48, 3, seed=4)
    result = sf.simulate(
        sf.strategies.exp3(),
        table,
        num_seeds=2,
        checkpoints=[3, 48],
        record=lambda state: [state.full_information.num_rounds, (state.full_information.play,)],
    )
    rounds, (play,) = result.records
    np.testing.assert_array_equal(rounds, np.tile([3, 48], (1, 2, 1)))
    assert play.shape == (1, 2, 2, 3)
    np.testing.assert_allclose(play.sum(axis=-1), 1, rtol=1e-6)
    assert sf.simulate(DECAYING, table, num_seeds=2, checkpoints=[3, 48]).records == ()


# Scale.


@pytest.mark.parametrize("power", [-119, -40, 1, 40, 119])
def test_scaling_losses_and_beta_scales_the_regret(power):
    """run(c l, beta = c) = c run(l, beta = 1) for option 1, bit for bit, from 1e-36 to 1e36."""
    table = table_of(48, 3, seed=10).astype(np.float32).astype(np.float64)
    table /= np.abs(table).max()
    options = {"num_seeds": 5, "checkpoints": [3, 48]}
    c = 2.0**power
    one = sf.simulate(sf.strategies.scale_free("decaying", beta=1.0), table, **options)
    scaled = sf.simulate(sf.strategies.scale_free("decaying", beta=c), c * table, **options)
    np.testing.assert_array_equal(scaled.regret, c * one.regret)
    np.testing.assert_array_equal(scaled.expected_regret, c * one.expected_regret)
    for name in one.norms._fields[2:]:
        degree = {"l_2": 2, "best_arm": 0}.get(name, 1)
        mine, other = getattr(scaled.norms, name), getattr(one.norms, name)
        np.testing.assert_array_equal(mine, c**degree * other)


@pytest.mark.parametrize(
    ("bandit", "num_arms"),
    [(ADAPTIVE, 3), (DECAYING, 3), (ADAPTIVE, 300)],
    ids=["a3", "d3", "a300"],
)
@pytest.mark.parametrize("scale", [1e-36, 1e36])
def test_extreme_losses_in_float32(scale, bandit, num_arms):
    """Finite, and no larger than the losses allow, with either exploration."""
    table = table_of(48, num_arms, seed=10)
    table *= scale / np.abs(table).max()
    result = sf.simulate(bandit, table, num_seeds=5, checkpoints=[3, 48])
    for samples in (result.regret, result.expected_regret):
        assert np.isfinite(samples).all()
        assert (np.abs(samples) <= 2 * 48 * scale).all()
    # Regret at this scale is not lost among zeros.
    assert (np.abs(result.regret[..., -1]) > 1e-3 * scale).all()
    for norm in result.norms[2:]:
        assert np.isfinite(norm).all()


def test_float64_has_more_digits():
    """The same game in both dtypes, as long as rounding has not led to another arm."""
    table = table_of(48, 3, seed=11)
    narrow, wide = (
        sf.simulate(DECAYING, table, num_seeds=20, checkpoints=[4, 48], dtype=dtype)
        for dtype in ("float32", np.float64)
    )
    assert (narrow.dtype, wide.dtype) == ("float32", "float64")
    gap = np.abs(narrow.expected_regret - wide.expected_regret)
    assert np.median(gap) < 1e-4
    assert gap.max() > 0


def test_bare_functions_make_a_bandit():
    """Uniform play: its conditional regret is known."""
    table = table_of(48, 3, seed=12)
    result = sf.simulate(UNIFORM, table, num_seeds=4, checkpoints=[3, 48], dtype=jnp.float64)
    totals = np.cumsum(table, axis=0)[[2, 47]]
    wanted = totals.mean(axis=1) - totals.min(axis=1)
    np.testing.assert_allclose(result.expected_regret, np.tile(wanted, (1, 4, 1)), rtol=1e-12)
