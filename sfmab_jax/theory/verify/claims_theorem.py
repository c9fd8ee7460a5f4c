"""Claims of the summation lemma and of Theorem 1: sums, expectations and bounds.

Expectations are exact: sums over all arm sequences of small games.
"""

from collections.abc import Iterator
from functools import cache

import numpy as np

from sfmab_jax import strategies
from sfmab_jax.results.norms import Norms
from sfmab_jax.theory import bounds
from sfmab_jax.theory.regret import vertex
from sfmab_jax.theory.trajectories import Trajectory, every_path
from sfmab_jax.theory.verify.claim import Claim, Setting, equal
from sfmab_jax.theory.verify.sample_games import ROUNDS, algorithm_games

__all__ = ["CLAIMS", "norms_of"]


def norms_of(losses: np.ndarray) -> Norms:
    """`Norms` of one sequence [T, n] at every round."""
    losses = np.asarray(losses, np.float64)
    sums = np.cumsum(losses, axis=0)
    columns = (
        np.abs(losses).sum(axis=1).cumsum(),
        (losses**2).sum(axis=1).cumsum(),
        np.maximum.accumulate(np.abs(losses).max(axis=1)),
        np.abs(sums).max(axis=1),
        sums.min(axis=1),
        sums.mean(axis=1),
        np.minimum.accumulate(losses.min(axis=1)),
        sums.argmin(axis=1),
    )
    rounds = np.arange(1, len(losses) + 1)
    return Norms(losses.shape[1], rounds, *(column[None] for column in columns))


# The summation lemma: plain numbers, in float64 whatever the setting's precision.


def _sums(setting: Setting) -> Iterator[tuple]:
    """alpha, beta, A, L, g [T] and M [T] with M_t <= L and M_t <= a_{t-1} g_t."""
    generator = setting.generator(32)
    for _ in range(100 * setting.effort):
        alpha, beta, factor, largest = 10 ** generator.uniform(-2, 2, 4)
        g = 10 ** generator.uniform(-3, 2, 50)
        # Often at its largest, which is the worst case.
        share = np.where(generator.uniform(size=50) < 0.7, 1, generator.uniform(size=50))
        gaps, total = [], beta
        for most, part in zip(g, share):
            gaps.append(part * min(largest, alpha / total * most))
            total += gaps[-1]
        yield alpha, beta, factor, largest, g, np.array(gaps)


def _substitution(alpha, beta, factor, largest, g, gaps) -> np.ndarray:
    last = alpha / (beta + gaps.sum())
    left = factor / last + gaps.sum()
    return equal([left], factor * beta / alpha + (factor / alpha + 1) * gaps.sum(), left)


def _quadratic(alpha, beta, factor, largest, g, gaps) -> np.ndarray:
    """x^2 <= a + bx implies x <= sqrt(a) + b; the largest such x is the root of the quadratic."""
    a, b = alpha, largest
    x = (b + np.sqrt(b**2 + 4 * a)) / 2
    return np.array([(np.sqrt(a) + b - x) / x])


def _summation(alpha, beta, factor, largest, g, gaps) -> np.ndarray:
    return _lemma(gaps.sum(), alpha, beta, largest, g.sum())


def _lemma(total, alpha, beta, largest, g) -> np.ndarray:
    """sum M <= sharper <= sqrt(2 alpha sum g) + L."""
    printed = np.sqrt(2 * alpha * g) + largest
    b = largest - 2 * beta
    sharper = (b + np.sqrt(b**2 + 8 * alpha * g)) / 2
    size = 1e-30 + printed + beta
    return np.array([(sharper - total) / size, (printed - sharper) / size])


def _mass_lemma(option: str, game: Trajectory) -> np.ndarray:
    """The same for sum Gamma: alpha = n, beta = 2n, g = |l|/p', L = n L_inf; option 2."""
    n, rows = game.play.shape[1], np.arange(len(game.arms))
    chance, loss = game.probabilities[rows, game.arms], np.abs(game.losses[rows, game.arms])
    g = loss / chance
    if option != "adaptive":
        return np.zeros(0)
    return _lemma((game.exploration[:-1] * g).sum(), n, 2 * n, n * loss.max(), g.sum())


# Theorem 1, the parts that need no expectation.


def _corners(setting: Setting) -> Iterator[tuple]:
    generator = setting.generator(37)
    for n in (1, 2, 5, 100):
        yield n, 10 ** generator.uniform(-12, 0, 50 * setting.effort)


def _vertex_cost(n: int, epsilon: np.ndarray) -> np.ndarray:
    """F(1^i_eps) = (n-1) log(1/eps) - log(n - (n-1) eps) <= (n-1) log(1/eps) <= n log(1/eps)."""
    points = np.array([vertex(n, 0, e) for e in epsilon])
    cost = -np.log(n * points).sum(axis=1)
    closed, log = bounds.vertex_cost(n, epsilon), np.log(1 / epsilon)
    size = 1 + n * log
    return np.concatenate([equal(cost, closed, size), ((n - 1) * log - closed) / size, log / size])


def _first_term(option: str, game: Trajectory) -> np.ndarray:
    n, totals = game.play.shape[1], game.losses.sum(axis=0)
    best, s_inf = int(np.argmin(totals)), np.abs(totals).max()
    excess = totals.mean() - totals.min()
    slacks = []
    for epsilon in (1.0, 0.3, 1e-4):
        left = totals @ (vertex(n, best, epsilon) - np.eye(n)[best])
        slacks += [equal(left, epsilon * excess, 1 + s_inf)]
        slacks += [(2 * epsilon * s_inf - left) / (1 + s_inf)]
    return np.array(slacks)


def _third_term(option: str, game: Trajectory) -> np.ndarray:
    n, gamma = game.play.shape[1], game.exploration[:-1]
    left = (game.losses * (game.probabilities - game.play[:-1])).sum(axis=1)
    middle = gamma * (game.losses * (1 / n - game.play[:-1])).sum(axis=1)
    most = np.abs(game.losses).max(axis=1)
    right = 2 * (1 - 1 / n) * gamma * most
    sizes = 1e-30 + n * most
    return np.concatenate([equal(left, middle, sizes), (right - middle) / sizes])


def _moments(option: str, game: Trajectory) -> np.ndarray:
    """sum_i p'(i) l(i)^2/p'(i) = ||l||_2^2 and sum_i p'(i) |l(i)|/p'(i) = ||l||_1."""
    p, size = game.probabilities, np.abs(game.losses)
    slacks = []
    for power in (2, 1):
        mean = (p * (size**power / p)).sum(axis=1)
        norm = (size**power).sum(axis=1)
        slacks.append(equal(mean, norm, 1e-30 + norm))
    return np.concatenate(slacks)


# Expectations, over all arm sequences.


@cache
def _paths(setting: Setting) -> list[tuple]:
    """(option, losses [T, n], path probabilities [P], games) of games played on all paths.

    Four arms and four rounds, then rounds without loss up to the length of the other games, so
    that one program plays both; with more effort also two arms and eight rounds.
    """
    generator = setting.generator(41)
    sizes = [(4, 4, ROUNDS)] + [(2, 8, 8)] * (setting.effort > 1)
    paths = []
    for n, depth, num_rounds in sizes:
        shape = (depth, n)
        tables = [
            generator.normal(size=shape),
            np.resize([1.0, -1.0], shape) * generator.uniform(size=(depth, 1)),
            100 * generator.normal(size=shape) * (generator.uniform(size=shape) < 0.3),
            1e-2 * generator.normal(size=shape),
        ]
        tables += [generator.normal(size=shape) * 3 for _ in range(4 * (setting.effort - 1))]
        for option in ("decaying", "adaptive"):
            bandit = strategies.scale_free(option)
            for table in tables:
                weight, games = every_path(bandit, table.astype(setting.dtype), num_rounds)
                paths.append((option, games.losses[0], weight, games))
    return paths


def _all_paths(setting: Setting) -> Iterator[tuple]:
    yield from _paths(setting)


def _at_arm(game: Trajectory) -> tuple[np.ndarray, np.ndarray]:
    """p'_t(i_t) and l_t(i_t), [P, T]."""
    places = game.arms[..., None]
    return tuple(  # type: ignore[return-value]
        np.take_along_axis(x, places, axis=2)[..., 0] for x in (game.probabilities, game.losses)
    )


def _unbiased(option, losses, weight, game) -> np.ndarray:
    """Path probabilities sum to 1, and E L_T = S."""
    totals = np.einsum("p,pti->i", weight, game.estimates)
    sizes = np.einsum("p,pti->i", weight, np.abs(game.estimates)) + 1e-30
    return np.append(equal(totals, losses.sum(axis=0), sizes), equal(weight.sum(), 1, 1))


def _jensen(option, losses, weight, game) -> np.ndarray:
    chance, loss = _at_arm(game)
    n, slacks = losses.shape[1], []
    for power in (2, 1):
        inside = (np.abs(loss) ** power / chance).sum(axis=1)
        right = np.sqrt(2 * n * (np.abs(losses) ** power).sum())
        slacks.append((right - weight @ np.sqrt(2 * n * inside)) / (1e-30 + right))
    return np.array(slacks)


def _expected_mass(option, losses, weight, game) -> np.ndarray:
    """E sum Gamma = sum E[gamma_{t-1}] ||l_t||_1 <= L_1 / 2."""
    chance, loss = _at_arm(game)
    left = weight @ (game.exploration[:, :-1] * np.abs(loss) / chance).sum(axis=1)
    norms = np.abs(losses).sum(axis=1)
    middle = (weight @ game.exploration[:, :-1]) @ norms
    size = 1e-30 + norms.sum()
    return np.array([equal(left, middle, size), (size / 2 - middle) / size])


def _expected_regret(losses, weight, game) -> float:
    return float(weight @ _at_arm(game)[1].sum(axis=1) - losses.sum(axis=0).min())


def _terms(option, losses, weight, game) -> np.ndarray:
    """Regret = (1) + (2) + (3) of section 2 and of section 6, and section 2's (2) is 0."""
    best = int(np.argmin(losses.sum(axis=0)))
    n = losses.shape[1]
    play, loss = game.play[:, :-1], game.losses

    def mean(x):
        return float(weight @ x.sum(axis=(1, 2)))

    regret = _expected_regret(losses, weight, game)
    size = float(weight @ np.abs(game.estimates).sum(axis=(1, 2)))
    sampling = mean(loss * (game.probabilities - play))
    estimation = mean((loss - game.estimates) * (play - np.eye(n)[best]))
    full = mean(game.estimates * (play - np.eye(n)[best]))
    point = vertex(n, best, 0.1)
    smoothing = float(losses.sum(axis=0) @ (point - np.eye(n)[best]))
    rest = mean(loss * (play - point))
    return np.array(
        [
            equal(regret, sampling + estimation + full, size),
            equal(estimation, 0, size),
            equal(regret, smoothing + rest + sampling, size),
        ]
    )


def _theorem(option, losses, weight, game) -> np.ndarray:
    """The exact expected regret is below the bound in every reading; T >= 4n."""
    bound = bounds.scale_free(norms_of(losses), option)
    regret = _expected_regret(losses, weight, game)
    return np.array([(b[0, -1] - regret) / b[0, -1] for b in bound])


CLAIMS = (
    Claim(3, "over all arm sequences: chances sum to 1, E L_T = S", "section 2",
          _all_paths, _unbiased),
    Claim(32, "A/a_T + sum M = A beta/alpha + (A/alpha + 1) sum M", "Lemma 10",
          _sums, _substitution),
    Claim(34, "x^2 <= a + bx implies x <= sqrt(a) + b", "Lemma 10", _sums, _quadratic),
    Claim(35, "sum M <= sqrt(2 alpha sum g) + L, and sharper", "Lemma 10", _sums, _summation),
    Claim(36, "the same for sum Gamma", "section 6.2", algorithm_games, _mass_lemma),
    Claim(37, "F(1_eps) in closed form <= (n-1) log(1/eps)", "Theorem 8", _corners, _vertex_cost),
    Claim(41, "E[l^2/p'] = |l|_2^2, E[|l|/p'] = |l|_1", "section 6", algorithm_games, _moments),
    Claim(42, "Jensen, both roots", "section 6", _all_paths, _jensen),
    Claim(43, "term (1) = eps D <= 2 eps S_inf", "section 6", algorithm_games, _first_term),
    Claim(44, "l.(p'-p) = gamma l.(u-p) <= 2(1-1/n) gamma |l|_inf", "section 6.1",
          algorithm_games, _third_term),
    Claim(46, "E sum Gamma = sum E[gamma] |l|_1 <= L_1/2", "section 6.2",
          _all_paths, _expected_mass),
    Claim(47, "regret = (1) + (2) + (3), sections 2 and 6; (2) of section 2 is 0", "sections 2, 6",
          _all_paths, _terms),
    Claim(48, "regret <= tight, corrected and printed bounds", "Theorem 1", _all_paths, _theorem),
)  # fmt: skip
