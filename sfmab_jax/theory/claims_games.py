"""Claims that hold along every game: Algorithm 1, FTRL and AdaFTRL, and the summation lemma."""

from collections.abc import Iterator
from functools import cache

import jax.numpy as jnp
import numpy as np

from sfmab_jax import estimation, full_information, sampling, strategies
from sfmab_jax.compose import compose
from sfmab_jax.theory import regret
from sfmab_jax.theory.claim import Claim, Setting, equal
from sfmab_jax.theory.claims_potentials import POTENTIALS
from sfmab_jax.theory.trajectories import Trajectory, follow_losses, play_games

__all__ = ["CLAIMS", "ROUNDS", "algorithm_games", "bandit_games"]

_BARRIER, _ENTROPY, _TSALLIS = POTENTIALS.values()
ROUNDS = 60
_ARMS = 4


def _losses(setting: Setting, number: int) -> np.ndarray:
    """Losses of games of all kinds: mixed sizes, sparse and large, tiny, drifting, one-signed."""
    generator = setting.generator(number)
    shape = (ROUNDS, _ARMS)
    games = []
    for _ in range(setting.effort):
        noise = generator.normal(size=(5, *shape))
        games += [
            noise[0] * np.exp(2 * generator.normal(size=(ROUNDS, 1))),
            100 * np.sign(noise[1]) * (generator.uniform(size=shape) < 0.05),
            1e-3 * noise[2],
            np.abs(noise[3]) * (1 + np.arange(ROUNDS)[:, None] / 10) - [2.0, 0, 0, 0],
            -np.abs(noise[4]) - [0, 0, 0, 1.0],
        ]
    return np.array(games).astype(setting.dtype)


def _arms(setting: Setting, games: int) -> np.ndarray:
    """Every second game has arms forced on it: what sampling would hardly ever show."""
    arms = setting.generator(2).integers(_ARMS, size=(games, ROUNDS))
    return np.where(np.arange(games)[:, None] % 2 == 1, arms, -1)


@cache
def _played(setting: Setting) -> dict[str, list[Trajectory]]:
    """Games of Algorithm 1, both options."""
    losses = _losses(setting, 1)
    arms = _arms(setting, len(losses))
    return {
        option: play_games(strategies.scale_free(option), _BARRIER, losses, setting.seed, arms)
        for option in ("decaying", "adaptive")
    }


def algorithm_games(setting: Setting) -> Iterator[tuple]:
    """(option, trajectory) of Algorithm 1."""
    for option, games in _played(setting).items():
        for game in games:
            yield option, game


@cache
def _others(setting: Setting) -> list[tuple]:
    """(potential, trajectory) of AdaFTRL with the other potentials, on bandit feedback."""
    found = []
    for potential, largest in ((_TSALLIS, 30.0), (_ENTROPY, 0.3)):
        losses = np.clip(_losses(setting, 3), -largest, largest)
        adaptive = full_information.ada_ftrl(potential)
        bandit = compose(sampling.decaying(), estimation.importance_weighted(), adaptive)
        found += [(potential, g) for g in play_games(bandit, potential, losses, setting.seed)]
    return found


def bandit_games(setting: Setting) -> Iterator[tuple]:
    """(potential, trajectory) of AdaFTRL with alpha = n, beta = 1 on importance-weighted losses."""
    for _, game in algorithm_games(setting):
        yield _BARRIER, game
    if setting.effort > 1:
        yield from _others(setting)


@cache
def _uneven_games(setting: Setting) -> list[tuple]:
    """(potential, trajectory) of FTRL with rates that go up and down, in full information.

    Entropy has small losses, lest probabilities underflow to zero, where F is not smooth.
    """
    rates = 0.6 + 0.5 * np.sin(np.arange(ROUNDS + 1) ** 2)
    found = []
    for potential, largest in ((_BARRIER, 30.0), (_TSALLIS, 30.0), (_ENTROPY, 1.0)):
        losses = np.clip(_losses(setting, 4), -largest, largest)
        found += [(potential, game) for game in follow_losses(potential, losses, rates)]
    return found


def ftrl_games(setting: Setting) -> Iterator[tuple]:
    """(potential, trajectory) with any positive learning rates."""
    yield from bandit_games(setting)
    yield from _uneven_games(setting)


def _seen(game: Trajectory) -> tuple[np.ndarray, ...]:
    """a = p_t(i_t), p'_t(i_t), l_t(i_t), l~_t(i_t), gamma_{t-1}, eta_{t-1}, [T] each."""
    rows = np.arange(len(game.arms))
    columns = (game.play[:-1], game.probabilities, game.losses, game.estimates)
    seen = (column[rows, game.arms] for column in columns)
    return (*seen, game.exploration[:-1], game.learning_rate[:-1])


def _masses(game: Trajectory) -> np.ndarray:
    """Gamma_t(gamma_{t-1}) from its definition, [T]."""
    a, _, loss, _, gamma, _ = _seen(game)
    return gamma * np.abs(loss) / ((1 - gamma) * a + gamma / game.play.shape[1])


# Algorithm 1.


def _start(option: str, game: Trajectory) -> np.ndarray:
    n = game.play.shape[1]
    first = [game.learning_rate[0] / n, 2 * game.exploration[0]]
    return equal([*first, *(n * game.play[0])], 1, 1)


def _mixture(option: str, game: Trajectory) -> np.ndarray:
    n, gamma = game.play.shape[1], game.exploration[:-1, None]
    p, mixed = game.play[:-1], game.probabilities
    wanted = (1 - gamma) * p + gamma / n
    parts = [equal(mixed, wanted, wanted), mixed / (gamma / n) - 1, mixed - (1 - gamma) * p]
    return np.concatenate([*(part.ravel() for part in parts), equal(mixed.sum(axis=1), 1, 1)])


def _unbiased(option: str, game: Trajectory) -> np.ndarray:
    """One non-zero entry; the estimate weighted by p' over all arms is the loss vector."""
    others = np.where(np.arange(game.play.shape[1]) == game.arms[:, None], 0, game.estimates)
    mixed = game.probabilities
    expected = sum(mixed[:, [i]] * np.eye(len(mixed[0]))[i] * game.losses / mixed[:, [i]]
                   for i in range(len(mixed[0])))  # fmt: skip
    _, chance, loss, weighted, _, _ = _seen(game)
    drawn = equal(weighted * chance, loss, 1e-30 + np.abs(loss))
    sizes = 1e-30 + np.abs(game.losses)
    return np.concatenate(
        [-np.abs(others).ravel(), equal(expected, game.losses, sizes).ravel(), drawn]
    )


def _exploration(option: str, game: Trajectory) -> np.ndarray:
    n, t = game.play.shape[1], np.arange(1, len(game.arms) + 1)
    if option == "decaying":
        wanted = np.minimum(0.5, np.sqrt(n / t))
    else:
        wanted = 1 / (2 + np.cumsum(_masses(game)) / n)
    return equal(game.exploration[1:], wanted, wanted)


def _mass_bounds(option: str, game: Trajectory) -> np.ndarray:
    _, chance, loss, _, gamma, _ = _seen(game)
    masses, n = _masses(game), game.play.shape[1]
    sizes = 1e-30 + n * np.abs(loss)
    ratio = equal(masses * chance, gamma * np.abs(loss), 1e-30 + np.abs(loss))
    return np.concatenate([masses / sizes, (n * np.abs(loss) - masses) / sizes, ratio])


def _exploration_falls(option: str, game: Trajectory) -> np.ndarray:
    gamma = game.exploration
    return np.concatenate([gamma, 0.5 - gamma, gamma[:-1] - gamma[1:]])


def _rate_falls(potential, game: Trajectory) -> np.ndarray:
    n, rates = game.play.shape[1], game.learning_rate
    gaps = game.gaps
    inverse = 1 + np.concatenate([[0.0], np.cumsum(gaps)])
    exact = equal(n / rates, inverse, inverse)
    return np.concatenate([exact, (rates[:-1] - rates[1:]) / rates[:-1]])


def _kkt(potential, game: Trajectory) -> np.ndarray:
    return -np.abs(regret.optimality(potential, game)).ravel()


# FTRL and AdaFTRL.


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
    a, _, _, weighted, _, _ = _seen(game)
    size = np.abs(weighted)
    sharper = np.where(weighted > 0, size * a, size * (1 - a))
    above = 1e-30 + size
    return np.concatenate(
        [(2 * size - game.gaps) / above, (size - game.gaps) / above, (sharper - game.gaps) / above]
    )


def _gap_square(option: str, game: Trajectory) -> np.ndarray:
    """M <= (eta/2) a l~^2 and the sharper forms for either sign; the log barrier."""
    a, _, _, weighted, _, eta = _seen(game)
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
    after = regret.value_steps(_BARRIER, game)[1]
    p = game.play[1:]
    closed = (regret.regularizer(_BARRIER, p) + n - 1 / p.max(axis=1)) / rates
    return equal(after, closed + game.cumulative[1:].min(axis=1), regret.size(game, _BARRIER))


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


# The summation lemma along a game, and what the theorem needs of every path.


def _square(potential, game: Trajectory) -> np.ndarray:
    gaps, n = game.gaps, game.play.shape[1]
    right = np.sum(gaps**2) + 2 * np.sum(gaps * (n / game.learning_rate[:-1] - 1))
    return equal([gaps.sum() ** 2], right, 1e-30 + gaps.sum() ** 2 + gaps.sum())


def _star(option: str, game: Trajectory) -> np.ndarray:
    size, n = regret.size(game, _BARRIER), game.play.shape[1]
    pairs = [
        regret.inequality_star(game, i, epsilon)
        for i in range(n)
        for epsilon in (1, 0.1, 1e-3, 1e-9)
    ]
    return np.array([(right - left) / size for left, right in pairs])


def _estimate_range(option: str, game: Trajectory) -> np.ndarray:
    _, _, loss, weighted, gamma, _ = _seen(game)
    most = game.play.shape[1] * np.abs(loss) / gamma
    return (most - np.abs(weighted)) / (1e-30 + most)


def _second_moment(option: str, game: Trajectory) -> np.ndarray:
    a, chance, loss, weighted, gamma, _ = _seen(game)
    middle, high = loss**2 / ((1 - gamma) * chance), 2 * loss**2 / chance
    below = 1e-30 + high
    return np.concatenate([(middle - a * weighted**2) / below, (high - middle) / below])


def _exploring(option: str, game: Trajectory) -> np.ndarray:
    a, chance, loss, _, gamma, _ = _seen(game)
    n = game.play.shape[1]
    left = (game.estimates * (game.probabilities - game.play[:-1])).sum(axis=1)
    middle, mass = gamma * loss / chance * (1 / n - a), _masses(game)
    sizes = 1e-30 + np.abs(loss) / chance
    return np.concatenate([equal(left, middle, sizes), ((1 - 1 / n) * mass - middle) / sizes])


CLAIMS = (
    Claim(1, "eta_0 = n, gamma_0 = 1/2, p_1 uniform", "Algorithm 1", algorithm_games, _start),
    Claim(2, "p' >= gamma/n, p' >= (1-gamma)p, sum p' = 1", "section 2", algorithm_games, _mixture),
    Claim(3, "l~ has one entry; E[l~ | past] = l", "section 2", algorithm_games, _unbiased),
    Claim(4, "gamma_t of both options; 1/gamma_T = 2 + sum Gamma/n", "Algorithm 1",
          algorithm_games, _exploration),
    Claim(5, "0 <= Gamma <= n|l|, Gamma/gamma = |l|/p'", "section 6.2",
          algorithm_games, _mass_bounds),
    Claim(6, "0 < gamma <= 1/2, not increasing", "section 6", algorithm_games, _exploration_falls),
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
    Claim(38, "inequality (*), all i and epsilon", "section 6", algorithm_games, _star),
    Claim(39, "|l~| <= n|l|/gamma", "section 6", algorithm_games, _estimate_range),
    Claim(40, "a l~^2 <= l^2/((1-gamma)p') <= 2l^2/p'", "section 6",
          algorithm_games, _second_moment),
    Claim(45, "l~.(p'-p) = gamma (l/p')(1/n - a) <= (1-1/n) Gamma", "section 6.2, corrected",
          algorithm_games, _exploring),
)  # fmt: skip
