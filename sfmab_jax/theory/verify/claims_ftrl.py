"""Claims about every game of FTRL and AdaFTRL: section 5 and appendix C of the paper."""

import jax.numpy as jnp
import numpy as np

from sfmab_jax.theory import regret
from sfmab_jax.theory.trajectories import Trajectory
from sfmab_jax.theory.verify.claim import Claim, equal
from sfmab_jax.theory.verify.sample_games import (
    BARRIER,
    algorithm_games,
    at_arm,
    bandit_games,
    ftrl_games,
)

__all__ = ["CLAIMS"]


def _rate_falls(potential, game: Trajectory) -> np.ndarray:
    n, rates = game.play.shape[1], game.learning_rate
    inverse = 1 + np.concatenate([[0.0], np.cumsum(game.gaps)])
    exact = equal(n / rates, inverse, inverse)
    return np.concatenate([exact, (rates[:-1] - rates[1:]) / rates[:-1]])


def _kkt(potential, game: Trajectory) -> np.ndarray:
    return -np.abs(regret.optimality(potential, game)).ravel()


def _comparators(game: Trajectory, interior: bool) -> list[np.ndarray]:
    n = game.play.shape[1]
    best = int(np.argmin(game.cumulative[-1]))
    smooth = [regret.vertex(n, best, 0.1), regret.vertex(n, n - 1, 1e-3), np.full(n, 1 / n)]
    return smooth if interior else [np.eye(n)[best], np.eye(n)[n - 1]]


def _three_points(potential, game: Trajectory) -> np.ndarray:
    now, following, rates = game.play[:-1], game.play[1:], game.learning_rate
    dual = [np.asarray(potential.inverse(jnp.asarray(p))) for p in (now, following)]
    slope = dual[0] / rates[:-1, None] - dual[1] / rates[1:, None]
    slacks = []
    for p in _comparators(game, True):
        left = (slope * (following - p)).sum(axis=1)
        for alpha in (0.7, -3.0):
            parts = (
                regret.mixed_bregman(potential, p, now, alpha, rates[:-1]),
                -regret.mixed_bregman(potential, p, following, alpha, rates[1:]),
                -regret.mixed_bregman(potential, following, now, rates[1:], rates[:-1]),
            )
            sizes = 1 + sum(np.abs(part) for part in parts) + np.abs(dual[0]).max() / rates.min()
            slacks.append(equal(left, sum(parts), sizes))
    return np.concatenate(slacks)


def _equality(potential, game: Trajectory, interior: bool = True) -> np.ndarray:
    size = regret.size(game, potential)
    pairs = [regret.regret_equality(potential, game, p) for p in _comparators(game, interior)]
    return np.array([equal(left, right, size) for left, right in pairs])


def _equality_at_vertices(potential, game: Trajectory) -> np.ndarray:
    return _equality(potential, game, interior=False)


def _mixed_is_larger(potential, game: Trajectory) -> np.ndarray:
    now, following, rates = game.play[:-1], game.play[1:], game.learning_rate
    mixed = regret.mixed_bregman(potential, following, now, rates[1:], rates[:-1])
    plain = regret.bregman(potential, following, now) / rates[:-1]
    left, right = regret.regret_inequality(potential, game, _comparators(game, True)[0])
    size = regret.size(game, potential)
    return np.append((mixed - plain) / size, (right - left) / size)


def _bound(potential, game: Trajectory) -> np.ndarray:
    size = regret.size(game, potential)
    pairs = [regret.regret_bound(potential, game, p) for p in _comparators(game, True)]
    return np.array([(right - left) / size for left, right in pairs])


def _supremum(potential, game: Trajectory) -> np.ndarray:
    """M >= 0, attained at q*, and at least what p_{t+1} and the vertices' neighbours give."""
    now, eta = game.play[:-1], game.learning_rate[:-1]
    sizes = np.abs(game.estimates).max(axis=1) + 1 / eta

    def at(q):
        moved = (game.estimates * (now - q)).sum(axis=1)
        return moved - regret.bregman(potential, q, now) / eta

    others = [
        at(game.play[1:]),
        *(at(np.broadcast_to(p, now.shape)) for p in _comparators(game, True)),
    ]
    slacks = [game.gaps / sizes, equal(game.gaps, at(game.maximiser), sizes)]
    return np.concatenate([*slacks, *((game.gaps - other) / sizes for other in others)])


def _gap_range(potential, game: Trajectory) -> np.ndarray:
    a, _, _, weighted, _, _ = at_arm(game)
    size = np.abs(weighted)
    sharper = np.where(weighted > 0, size * a, size * (1 - a))
    above = 1e-30 + size
    return np.concatenate(
        [(2 * size - game.gaps) / above, (size - game.gaps) / above, (sharper - game.gaps) / above]
    )


def _gap_square(option: str, game: Trajectory) -> np.ndarray:
    """M <= (eta/2) a l~^2 and the sharper forms for either sign; the log barrier."""
    a, _, _, weighted, _, eta = at_arm(game)
    rest = (game.play[:-1] ** 2).sum(axis=1) - a**2
    printed = eta / 2 * a * weighted**2
    z = a * eta * weighted
    remainder = np.where(z > 1e-4, z - np.log1p(np.maximum(z, 0)), z**2 / 2)
    positive = np.minimum(remainder / eta, eta / 2 * a**2 * weighted**2)
    sharper = np.where(weighted > 0, positive, eta / 2 * weighted**2 * rest)
    return np.concatenate([(b - game.gaps) / (1e-30 + b) for b in (printed, sharper)])


def _between(potential, game: Trajectory) -> np.ndarray:
    now, eta = game.play[:-1], game.learning_rate[:-1]
    sizes = np.abs(game.estimates).max(axis=1) + 1 / eta
    step = (game.estimates * (now - game.play[1:])).sum(axis=1)
    low = step - regret.bregman(potential, game.play[1:], now) / eta
    high = (game.estimates * (now - game.maximiser)).sum(axis=1)
    return np.concatenate([(game.gaps - low) / sizes, (high - game.gaps) / sizes])


def _gap_is_divergence(potential, game: Trajectory) -> np.ndarray:
    eta = game.learning_rate[:-1]
    right = regret.bregman(potential, game.play[:-1], game.maximiser) / eta
    return equal(game.gaps, right, np.abs(game.estimates).max(axis=1) + 1 / eta)


def _value(potential, game: Trajectory) -> np.ndarray:
    left, right = regret.value_identity(potential, game)
    return equal(left, right, regret.size(game, potential))


def _barrier_value(option: str, game: Trajectory) -> np.ndarray:
    """Phi_t(eta_t) = (F(p) + n - mu)/eta + min L with mu = 1/max p."""
    n, rates = game.play.shape[1], game.learning_rate[1:]
    after = regret.value_steps(BARRIER, game)[1]
    p = game.play[1:]
    closed = (regret.regularizer(BARRIER, p) + n - 1 / p.max(axis=1)) / rates
    return equal(after, closed + game.cumulative[1:].min(axis=1), regret.size(game, BARRIER))


def _value_sum(potential, game: Trajectory) -> np.ndarray:
    n, size = game.play.shape[1], regret.size(game, potential)
    before, after = regret.value_steps(potential, game)
    steps = after - before
    total = np.sum(game.estimates * game.play[:-1])
    right = game.gaps.sum() + after[-1] - steps.sum()
    low = game.gaps * regret.regularizer(potential, game.play[1:]) / n
    high = game.gaps * regret.regularizer(potential, game.maximiser) / n
    return np.concatenate(
        [equal([total], right, size), (steps - low) / size, (high - steps) / size]
    )


def _square(potential, game: Trajectory) -> np.ndarray:
    gaps, n = game.gaps, game.play.shape[1]
    right = np.sum(gaps**2) + 2 * np.sum(gaps * (n / game.learning_rate[:-1] - 1))
    return equal([gaps.sum() ** 2], right, 1e-30 + gaps.sum() ** 2 + gaps.sum())


CLAIMS = (
    Claim(7, "eta not increasing, 1/eta_t - 1/eta_{t-1} = M_t/n", "section 5",
          bandit_games, _rate_falls),
    Claim(8, "KKT: psi^-1(p(i)) + eta L(i) the same for all i", "appendix C", ftrl_games, _kkt),
    Claim(20, "three-point identity of the mixed Bregman", "Theorem 12", ftrl_games, _three_points),
    Claim(21, "regret equality, p interior, any rates", "Theorem 12", ftrl_games, _equality, 256),
    Claim(22, "regret equality at a vertex", "new", ftrl_games, _equality_at_vertices, 256),
    Claim(23, "eta not increasing: mixed Bregman >= Breg/eta_{t-1}", "Theorem 12",
          bandit_games, _mixed_is_larger),
    Claim(24, "sum l~.(p_t - p) <= F(p)/eta_T + sum M", "Theorem 13", bandit_games, _bound),
    Claim(25, "M is the supremum, attained at q*, and M >= 0", "section 5", ftrl_games, _supremum),
    Claim(26, "M <= 2|l~|; sharper: |l~|, l~a or |l~|(1-a)", "section 5", bandit_games, _gap_range),
    Claim(27, "M <= (eta/2) a l~^2, and sharper by sign", "Theorem 8",
          algorithm_games, _gap_square),
    Claim(28, "step at p_{t+1} <= M <= l~.(p_t - q*)", "Theorem 13", ftrl_games, _between),
    Claim(29, "M = Breg(p_t||q*)/eta", "new", ftrl_games, _gap_is_divergence),
    Claim(30, "l~.p_t = Phi_t(eta_{t-1}) - Phi_{t-1}(eta_{t-1}) + M_t", "new", ftrl_games, _value),
    Claim(30, "Phi = (F(p) + n - mu)/eta + min L, log barrier", "new",
          algorithm_games, _barrier_value),
    Claim(31, "sum l~.p = sum M + Phi_T - sum dPhi, M F(p)/n <= dPhi <= M F(q*)/n", "new",
          bandit_games, _value_sum),
    Claim(33, "(sum M)^2 = sum M^2 + 2 sum M (alpha/a - beta)", "Lemma 10", bandit_games, _square),
)  # fmt: skip
