"""Sizes and losses at the ends: what stays true of any strategy there."""

import numpy as np
import pytest
from tiers import some_in_default
from watched import watched, what_was_seen

import sfmab_jax as sf
from sfmab_jax.checks import horizon_argument
from sfmab_jax.strategies import STRATEGIES

FAMILIES = sf.losses.LOSSES
EPS = np.finfo(np.float32).eps
NUM_ARMS = 3
# Those that are told nothing about the size of the losses, and a few that are.
ANY_SCALE = {
    "adaptive": sf.strategies.scale_free(),
    "decaying": sf.strategies.scale_free("decaying"),
    "ahb": sf.strategies.ahb(),
}
HOW = {"num_seeds": 32, "checkpoints": 1, "chunk_rounds": 16, "dtype": "float32"}


def play(bandits, losses, **options):
    """Every strategy, watched in all rounds: laws on the simplex, finite states and regrets."""
    guarded = {name: watched(bandit) for name, bandit in bandits.items()}
    results = sf.simulate(guarded, losses, record=what_was_seen, progress=False, **HOW | options)
    for name, result in results.items():
        worst_sum, lowest, all_finite = result.records
        assert worst_sum.max() <= 20 * EPS, name
        assert lowest.min() >= 0, name
        assert all_finite.min() == 1, name
        assert np.isfinite(result.regret).all(), name
        assert np.isfinite(result.expected_regret).all(), name
    return results


def alternating(size):
    """+size, -size, +size ... but for arm 0, which is better by a part in eight."""
    rows = np.tile([7 / 8, 1.0, 1.0], (33, 1)) * size
    rows[1::2] *= -1
    rows[1::2, 0] *= (1 + 1 / 8) / (7 / 8)
    return rows


def spiked(size, when=20):
    rows = np.tile([0.0, 1.0, 0.5], (33, 1))
    rows[when] = [0, size, 0]
    return rows


TABLES = {
    "zero": np.zeros((33, NUM_ARMS)),
    "constant": np.full((33, NUM_ARMS), 0.7),
    "constant_negative": np.full((33, NUM_ARMS), -5e7),
    "one_of_1e30_first": spiked(1e30, 0),
    "one_of_1e30_late": spiked(1e30),
    "one_of_minus_1e30": spiked(-1e30),
    "alternating_1e20": alternating(1e20),
    "alternating_1e36": alternating(1e36),
    "alternating_1e-36": alternating(1e-36),
    "denormal_beside_one": spiked(1.0) * np.where(np.arange(33) % 3, 1e-40, 1.0)[:, None],
    "smallest_denormal_beside_one": np.where(spiked(1.0) == 0.5, 5e-324, spiked(1.0)),
    "all_scales": np.concatenate([spiked(1e30)[:11], alternating(1e-30)[:11], spiked(1)[:11]]),
}


@pytest.mark.parametrize("name", TABLES)
def test_losses_at_the_ends(name):
    table = TABLES[name]
    results = play(ANY_SCALE, table)
    largest = np.abs(table).sum(axis=0).max()
    best = table.sum(axis=0).min()
    spread = (table - table.min(axis=1, keepdims=True)).max(axis=1).sum()
    for result in results.values():
        # No regret is beyond the sum over rounds of the distance of the arms, up to rounding.
        slack = 4 * EPS * largest
        assert np.abs(result.regret).max() <= spread + abs(best) * EPS + slack
        if spread == 0:
            assert np.abs(result.regret).max() <= slack
            assert np.abs(result.expected_regret).max() <= slack


@pytest.mark.parametrize("name", TABLES)
def test_certificates_hold_at_the_ends(name):
    both = {key: ANY_SCALE[key] for key in ("adaptive", "decaying")}
    results = sf.simulate(both, TABLES[name], certificate=True, progress=False, **HOW)
    for result in results.values():
        assert result.certificate.violations.sum() == 0


def test_certificates_hold_for_losses_that_grow_beyond_squares():
    """Where float32 has no squares of the losses, the certificates are bounds all the same."""
    table = np.random.default_rng(0).random((400, NUM_ARMS))
    table[200:] *= 1e30
    result = sf.simulate(ANY_SCALE["adaptive"], table, certificate=True, progress=False, **HOW)
    assert result.certificate.violations.max() == 0
    assert np.isfinite(result.certificate.star).all()


@pytest.mark.parametrize("size", [1e-40, 5e-324, 1e39, 1e300])
def test_losses_that_float32_does_not_hold_are_refused(size):
    with pytest.raises(ValueError, match="beyond the range of float32; change their unit"):
        sf.simulate(ANY_SCALE, np.full((3, 2), size), **HOW)


def test_float64_holds_them():
    for size in (1e-40, 1e39, 1e300, 1e-300):
        table = np.random.default_rng(0).random((16, NUM_ARMS)) * size
        result = sf.simulate(ANY_SCALE["adaptive"], table, **HOW | {"dtype": "float64"})
        assert np.isfinite(result.regret).all()
        assert np.abs(result.regret).max() <= 16 * size


def test_one_round():
    """T = 1: regret is the loss of the arm less the least, and its mean that of uniform play."""
    losses = np.array([[1.0, 3.0, 8.0]])
    for name, result in play(ANY_SCALE, losses).items():
        assert set(np.unique(result.regret)) <= {0.0, 2.0, 7.0}
        # All play uniformly at first, but ahb, which takes the arms in turn.
        wanted = 0.0 if name == "ahb" else 3.0
        np.testing.assert_allclose(result.expected_regret, wanted, rtol=4 * EPS)


@pytest.mark.parametrize(
    "name",
    some_in_default(
        FAMILIES, [name for name, make in FAMILIES.items() if horizon_argument(make, 1)]
    ),
)
def test_every_family_can_be_made_for_one_round(name):
    make = FAMILIES[name]
    losses = make(num_arms=2, **horizon_argument(make, 1))
    assert np.isfinite(sf.hardness(losses, num_rounds=1).l_1).all()


def test_one_arm():
    losses = np.array([[1e30], [-1e30], [1e-30], [0.0]])
    for result in play(ANY_SCALE, losses).values():
        assert (np.abs(result.regret) <= 4 * EPS * 1e30).all()
        assert (np.abs(result.expected_regret) <= 4 * EPS * 1e30).all()


def test_a_hundred_thousand_arms():
    """Few rounds, as every block plays 32 games at least."""
    num_arms = 100_000
    few = {"adaptive": ANY_SCALE["adaptive"], "exp3": STRATEGIES["exp3"]()}
    table = np.zeros((2, num_arms))
    table[:, ::2] = 1
    how = {"num_seeds": 2, "chunk_rounds": 2, "progress": False, "dtype": "float32"}
    results = sf.simulate(few, table, record=smallest_play, **how)
    for name, result in results.items():
        lowest, total = result.records
        np.testing.assert_allclose(total, 1, rtol=1e-5, err_msg=name)
        assert lowest.min() >= 0
        # Half of the arms lose 1 in each of two rounds; p stays uniform to a part in n / 2.
        np.testing.assert_allclose(result.expected_regret[..., -1], 1, rtol=1e-3)


def smallest_play(state):
    play = state.full_information.play
    return play.min(), play.sum()
