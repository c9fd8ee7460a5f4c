"""The claims in both precisions, and the functions they are made of against 50-digit oracles."""

import mpmath as mp
import numpy as np
import oracles
import paper_loop
import pytest
from tiers import some_in_default

import sfmab_jax as sf
from sfmab_jax.theory import regret, trajectories
from sfmab_jax.theory.verify import report as verification
from sfmab_jax.theory.verify.claim import Setting, judge

POTENTIALS = {
    "barrier": (sf.potentials.log_barrier(), oracles.LogBarrier()),
    "entropy": (sf.potentials.negative_entropy(), oracles.Entropy()),
    "tsallis": (sf.potentials.tsallis(0.5), oracles.Tsallis(0.5)),
}
EACH_POTENTIAL = pytest.mark.parametrize("name", list(POTENTIALS))


@pytest.mark.parametrize("dtype", some_in_default(["float32", "float64"], ["float32"]))
@pytest.mark.parametrize(
    "claim", verification.QUICK, ids=[f"{c.number}-{c.reference}" for c in verification.QUICK]
)
def test_claim_holds(claim, dtype):
    """With another seed than the command's default."""
    verdict = judge(claim, Setting(np.dtype(dtype), 1, seed=1))
    assert verdict.tried > 0
    assert verdict.holds, verdict


@EACH_POTENTIAL
def test_divergences_against_mpmath(name):
    ours, theirs = POTENTIALS[name]
    generator = np.random.default_rng(0)
    x, y = generator.dirichlet(np.ones(4), size=2)
    alpha, beta = 0.7, 1.9
    with mp.workdps(40):
        f = [mp.fsum(theirs.f(mp.mpf(v)) - theirs.f(mp.mpf(1) / 4) for v in p) for p in (x, y)]
        slope = mp.fsum(theirs.inverse(mp.mpf(b)) * (mp.mpf(a) - mp.mpf(b)) for a, b in zip(x, y))
        mixed = f[0] / alpha - f[1] / beta - slope / beta
        plain = f[0] - f[1] - slope
    np.testing.assert_allclose(regret.regularizer(ours, x), float(f[0]), rtol=1e-12)
    np.testing.assert_allclose(regret.bregman(ours, x, y), float(plain), rtol=1e-11)
    np.testing.assert_allclose(
        regret.mixed_bregman(ours, x, y, alpha, beta), float(mixed), rtol=1e-11
    )


@EACH_POTENTIAL
def test_followed_losses_against_mpmath(name):
    """Plays, gaps and maximisers of a short game with given rates."""
    ours, theirs = POTENTIALS[name]
    losses = np.random.default_rng(1).normal(size=(1, 3, 3))
    rates = np.array([0.5, 1.5, 0.7, 0.9])
    game = trajectories.follow_losses(ours, losses, rates)[0]
    totals = np.vstack([np.zeros(3), np.cumsum(losses[0], axis=0)])
    for t in range(4):
        wanted = oracles.distribution(theirs, -rates[t] * totals[t])
        np.testing.assert_allclose(game.play[t], [float(p) for p in wanted], rtol=1e-12)
    for t in range(3):
        gap = oracles.mixability_gap(theirs, game.play[t], losses[0, t], rates[t])
        np.testing.assert_allclose(game.gaps[t], float(gap), rtol=1e-10)
        q = oracles.maximiser(theirs, game.play[t], losses[0, t], rates[t])
        np.testing.assert_allclose(game.maximiser[t], [float(x) for x in q], rtol=1e-10)


def test_played_games_against_the_plain_loop():
    losses = np.random.default_rng(2).normal(size=(2, 60, 4))
    arms = np.random.default_rng(3).integers(4, size=(2, 60))
    for exploration in ("decaying", "adaptive"):
        bandit = sf.strategies.scale_free(exploration)
        games = trajectories.play_games(bandit, sf.potentials.log_barrier(), losses, 0, arms)
        for game, loss, arm in zip(games, losses, arms):
            wanted = paper_loop.play_game(loss, exploration, arms=arm)
            np.testing.assert_array_equal(game.arms, arm)
            for mine, theirs in (
                (game.play[1:], wanted.play),
                (game.gaps, wanted.gaps),
                (game.learning_rate[1:], wanted.learning_rate),
                (game.exploration[1:], wanted.exploration),
                (game.probabilities, wanted.probabilities),
                (game.cumulative[1:], wanted.estimates),
            ):
                np.testing.assert_allclose(mine, theirs, rtol=1e-8)


def test_arms_are_drawn_when_none_is_forced():
    """From p'_1 uniform: 1,024 first arms within four standard errors of a quarter each."""
    losses = np.ones((1024, 60, 4))
    bandit = sf.strategies.scale_free()
    games = trajectories.play_games(bandit, sf.potentials.log_barrier(), losses, 5)
    counts = np.bincount([game.arms[0] for game in games], minlength=4)
    assert (np.abs(counts - 256) < 4 * np.sqrt(1024 * 3 / 16)).all()


def test_every_path_gives_the_exact_regret():
    """Table D: 4,096 arm sequences, regrets from 50-digit enumeration."""
    losses = np.array(
        [
            [1, 0.5], [0, -1], [0.75, 0.25], [-0.5, 0.5], [1, -1], [0.25, 0.25],
            [-0.25, 0], [2, -0.5], [0.5, 0.75], [-1.5, 1], [0.125, -0.875], [1, 0],
        ]
    )  # fmt: skip
    for exploration, wanted in (("decaying", 2.18535747020403), ("adaptive", 2.17754971921091)):
        bandit = sf.strategies.scale_free(exploration)
        weight, game = trajectories.every_path(bandit, losses)
        seen = np.take_along_axis(game.losses, game.arms[..., None], axis=2)[..., 0]
        regret_ = weight @ seen.sum(axis=1) - losses.sum(axis=0).min()
        np.testing.assert_allclose(regret_, wanted, rtol=1e-12)


def test_regret_equality_by_hand():
    """Two arms, one round, the log barrier: l = (1, 0), eta = 1, against the first arm.

    p_2 = (1/(x+1), 1/x) with x the golden ratio; l.(p_1 - 1^1) = -1/2.
    """
    game = trajectories.follow_losses(
        sf.potentials.log_barrier(), np.array([[[1.0, 0.0]]]), np.array([1.0, 1.0])
    )[0]
    golden = (1 + np.sqrt(5)) / 2
    np.testing.assert_allclose(game.play[1], [1 / (golden + 1), 1 / golden], rtol=1e-14)
    left, right = regret.regret_equality(sf.potentials.log_barrier(), game, np.eye(2)[0])
    np.testing.assert_allclose([left, right], -0.5, rtol=1e-13)


def test_star_by_hand():
    """(*) with n = 2, one estimate of size 4 on arm 0 at p = 1/2, epsilon = 1/e."""
    game = trajectories.follow_losses(
        sf.potentials.log_barrier(), np.array([[[4.0, 0.0]]]), np.array([2.0, 1.0])
    )[0]
    left, right = regret.inequality_star(game, 1, np.exp(-1))
    np.testing.assert_allclose(left, 4 * (0.5 - np.exp(-1) / 2), rtol=1e-13)
    np.testing.assert_allclose(right, (1 + 8) + 8 + np.sqrt(2 * 8) * 2, rtol=1e-13)
