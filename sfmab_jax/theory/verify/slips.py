"""Slips of the paper: an example on which the printed form fails, and the form that holds.

Each is a slack as in `claim`: negative for the printed statement, not for the corrected one.
"""

import jax.numpy as jnp
import numpy as np

from sfmab_jax import potentials
from sfmab_jax.numerics.simplex import distribution, normalizer
from sfmab_jax.theory import bounds, regret
from sfmab_jax.theory.trajectories import follow_losses
from sfmab_jax.theory.verify.claim import Slip
from sfmab_jax.theory.verify.claims_theorem import norms_of

__all__ = ["SLIPS"]

_BARRIER = potentials.log_barrier()
_TWO_ROUNDS = np.array([[[1.0, 0.0], [0.0, 0.0]]])


def _exploration_sum(num_arms: int, num_rounds: int) -> float:
    t = np.arange(num_rounds)
    return float(np.minimum(0.5, np.sqrt(num_arms / np.maximum(t, 1))).sum())


def _sum_printed() -> float:
    n, num_rounds = 10, 160
    return np.sqrt(n * num_rounds) - _exploration_sum(n, num_rounds)


def _sum_corrected() -> float:
    n = 10
    return min(
        2 * np.sqrt(n * num_rounds) - 2 * n + 0.5 - _exploration_sum(n, num_rounds)
        for num_rounds in (40, 41, 160, 1000, 100_000)
    )


def _monotone(rates: tuple[float, ...]) -> float:
    game = follow_losses(_BARRIER, _TWO_ROUNDS, np.array(rates))[0]
    left, right = regret.regret_inequality(_BARRIER, game, np.full(2, 0.5))
    return right - left


def _third_term(denominator: str) -> float:
    """-|E[gamma l(i)/d(i) (1/n - p(i))] - l.(p' - p)| with d = p or p', the arm from p'."""
    p, gamma, loss = np.array([0.9, 0.1]), 0.5, np.array([1.0, -0.5])
    mixed = (1 - gamma) * p + gamma / 2
    below = p if denominator == "p" else mixed
    mean = float(np.sum(mixed * gamma * loss / below * (0.5 - p)))
    return -abs(mean - float(loss @ (mixed - p)))


def _lemma_hypothesis() -> float:
    """M(a) = a has no bound L over all a > 0."""
    return 1.0 - float(np.max(np.geomspace(1e-3, 1e3, 7)))


def _lemma_at_realised_rates() -> float:
    """M_t = a_{t-1} with alpha = beta = 1 is at most L = 1, and the lemma's conclusion holds."""
    total, gaps = 1.0, []
    for _ in range(100):
        gaps.append(1 / total)
        total += gaps[-1]
    return np.sqrt(2 * 100) + max(gaps) - sum(gaps)


def _corollary(x: float, y: float) -> float:
    return y / x - 1 - np.log(y / x) - (x - y) ** 2 / (2 * x)


def _corollary_inside() -> float:
    grid = np.linspace(0.02, 1, 50)
    return float(min(_corollary(x, y) for x in grid for y in grid))


def _one_loss() -> tuple[float, float, float, float]:
    """Summary, its missing terms, logarithm and bound for n = 100 and one loss of size 10."""
    losses = np.zeros((1, 100))
    losses[0, 0] = 10
    norms = norms_of(losses)
    n, l_1, l_2, l_inf = 100, norms.l_1[0, 0], norms.l_2[0, 0], norms.l_inf[0, 0]
    summary = np.sqrt(n * l_2) + l_inf * np.sqrt(n * l_1)
    missing = n * l_inf**2 + n * l_inf + np.sqrt(2 * n * l_1)
    bound = bounds.scale_free(norms, "adaptive").printed[0, 0]
    return summary, missing, 1 + np.log1p(norms.s_inf[0, 0]), bound


def _summary_printed() -> float:
    """The summary with its logarithm and a generous constant of 10, less the bound."""
    summary, _, log, bound = _one_loss()
    return (10 * summary * log - bound) / bound


def _summary_corrected() -> float:
    summary, missing, log, bound = _one_loss()
    return (10 * (summary + missing) * log - bound) / bound


def _second_play(scale: float, beta: float) -> np.ndarray:
    """p_2 of Algorithm 1 after a loss of this size on arm 0 of two: eta_1 = n/(beta + M_1)."""
    estimates = np.array([[[2 * scale, 0.0], [0.0, 0.0]]])
    first = follow_losses(_BARRIER, estimates, np.full(3, 2 / beta))[0]
    second = 2 / (beta + first.gaps[0])
    return follow_losses(_BARRIER, estimates, np.array([2 / beta, second, second]))[0].play[1]


def _change_with_scale(scale: float, beta: float) -> float:
    return -float(np.max(np.abs(_second_play(scale, beta) - _second_play(1.0, 1.0))))


_THETA = np.array([0.0, -1.0])


def _spurious_root() -> float:
    """The least p of lambda = (sqrt(5) - 1)/2 < a - min theta = 1, a root that gives no law."""
    root = (np.sqrt(5) - 1) / 2
    values = -1 / (_THETA + root)
    assert abs(values.sum() - 1) < 1e-12
    return float(values.min())


def _true_root() -> float:
    return float(np.min(np.asarray(distribution(_BARRIER, jnp.asarray(_THETA)))))


def _lagrangian(sign: float) -> float:
    """-|gradient| of F(q) - theta.q + sign lambda (1 - 1.q) at the minimiser."""
    theta = jnp.asarray(_THETA)
    slope = _BARRIER.inverse(distribution(_BARRIER, theta)) - theta
    return -float(jnp.max(jnp.abs(slope - sign * normalizer(_BARRIER, theta))))


def _histories(one: int, other: int) -> float:
    """-|difference| of the plays after a loss of 1 seen on the one or the other arm."""
    plays = []
    for arm in (one, other):
        estimates = np.zeros((1, 2, 2))
        estimates[0, 0, arm] = 2.0
        plays.append(follow_losses(_BARRIER, estimates, np.ones(3))[0].play[-1])
    return -float(np.max(np.abs(plays[0] - plays[1])))


def _vertex(printed: bool) -> float:
    game = follow_losses(_BARRIER, _TWO_ROUNDS, np.full(3, 0.5))[0]
    comparator = np.eye(2)[1]
    if printed:
        with np.errstate(divide="ignore", invalid="ignore"):
            first = regret.bregman(_BARRIER, comparator, game.play[0])
            first = first - regret.bregman(_BARRIER, comparator, game.play[-1])
        return 0.0 if np.isfinite(first) else -np.inf
    left, right = regret.regret_equality(_BARRIER, game, comparator)
    return -abs(left - right) / regret.size(game, _BARRIER)


SLIPS = (
    Slip("a", "sum gamma_{t-1} <= sqrt(nT), n = 10, T = 16n", "<= 2 sqrt(nT) - 2n + 1/2",
         "section 6.1", _sum_printed, _sum_corrected),
    Slip("b", "rates (1, 1, 4), non-decreasing", "rates (1, 1, 1/4), non-increasing",
         "Theorem 12", lambda: _monotone((1, 1, 4)), lambda: _monotone((1, 1, 0.25))),
    Slip("c", "term (3) with p_t(i_t) below", "with p'_t(i_t) below", "section 6.2",
         lambda: _third_term("p"), lambda: _third_term("p'")),
    Slip("d", "M_t(a) <= L for all a; M(a) = a", "only at the realised rates", "Lemma 10",
         _lemma_hypothesis, _lemma_at_realised_rates),
    Slip("h", "the corollary at (1, 1.01) and (0.9, 1.2), outside", "on (0, 1]^2", "Corollary 7",
         lambda: max(_corollary(1, 1.01), _corollary(0.9, 1.2)), _corollary_inside),
    Slip("j", "bound 2 is of the order of its summary", "with n L_inf^2 + n L_inf + sqrt(2n L_1)",
         "section 6.2", _summary_printed, _summary_corrected),
    Slip("k", "the play does not change with the scale, c = 1024", "with beta = c",
         "title, Algorithm 1", lambda: _change_with_scale(1024.0, 1.0),
         lambda: _change_with_scale(1024.0, 1024.0)),
    Slip("m", "lambda < a - min theta is unique; theta = (0, -1)", "lambda < a - max theta",
         "Lemma 9", _spurious_root, _true_root),
    Slip("n", "Lagrangian with - alpha (1 - 1.q)", "with + alpha (1 - 1.q)", "appendix C",
         lambda: _lagrangian(-1), lambda: _lagrangian(1)),
    Slip("o", "the losses seen determine p_{t+1}", "losses and arms do", "notation",
         lambda: _histories(0, 1), lambda: _histories(0, 0)),
    Slip("s", "regret equality at a vertex", "in the form of claim 22", "Theorem 12",
         lambda: _vertex(True), lambda: _vertex(False)),
)  # fmt: skip
