"""Upper bounds on the expected regret of Algorithm 1, from the norms of the losses.

The bounds of other strategies are in `sfmab_jax.theory.textbook`.
"""

from typing import Any, Literal, NamedTuple

import numpy as np

from sfmab_jax.results.certificate import vertex_cost
from sfmab_jax.results.norms import Norms

__all__ = [
    "READINGS",
    "Reading",
    "ScaleFreeBound",
    "best_epsilon",
    "corrected",
    "scale_free",
    "vertex_cost",
]

Exploration = Literal["adaptive", "decaying"]


class ScaleFreeBound(NamedTuple):
    """A bound of the paper in three readings, each [K, C]; `READINGS` says which is which."""

    printed: np.ndarray  # the last explicit line of the proof, as it stands in the paper
    corrected: np.ndarray  # what the paper's chain of inequalities gives, for every T
    tight: np.ndarray  # the same proof without its slack, at the best epsilon


class Reading(NamedTuple):
    """One reading of one bound: its source, when it holds, and where the paper slips."""

    exploration: str
    reading: str
    source: str
    holds: str
    remark: str


READINGS = (
    Reading(
        "decaying",
        "printed",
        "section 6.1, the last explicit line",
        "T >= 4n, though not by the paper's argument",
        "it takes sum gamma_{t-1} <= sqrt(nT), false for every T > 4n (the sum tends to twice "
        "that); Abel summation on gamma and M <= |l~| save the line itself",
    ),
    Reading(
        "decaying",
        "corrected",
        "section 6.1, the line before, with both sums as they are",
        "every T",
        "its constant in L_inf sqrt(nT) is 2 (3 + ell), where the paper prints 2 (2 + ell)",
    ),
    Reading(
        "decaying",
        "tight",
        "the same chain with M <= |l~|, 1/(1 - gamma) as it is, and the best epsilon",
        "every T",
        "the paper's 2 sup |l~|, factor 2 and epsilon = 1 / (1 + S_inf) are not needed",
    ),
    Reading(
        "adaptive",
        "printed",
        "section 6.2, the last explicit line",
        "every T",
        "the line is right; its O~ summary drops n L_inf^2, n L_inf and sqrt(2 n L_1), which can "
        "dominate, and the denominator two displays earlier must be p'_t(i_t)",
    ),
    Reading("adaptive", "corrected", "the same line", "every T", "nothing in it needed correcting"),
    Reading(
        "adaptive",
        "tight",
        "the same chain with M <= |l~|, E sum Gamma bounded twice, and the best epsilon",
        "every T",
        "E sum Gamma <= L_1 / 2 as gamma <= 1/2, which wins while the losses are small",
    ),
)


def scale_free(norms: Norms, exploration: Exploration = "adaptive") -> ScaleFreeBound:
    """Bound of Theorem 1 of the paper with its constants (section 6), at every checkpoint.

    With ell = log(1 + S_inf), adaptive exploration (option 2), *printed* and *corrected*:

        2 + ell + sqrt(2 n L_2)(1 + ell) + 2 n L_inf (2 + L_inf)(1 + ell) + n L_inf
        + (2 L_inf (1 + ell) + 1) sqrt(2 n L_1).

    Decaying exploration (option 1), *printed* for T >= 4n (NaN before):

        2 + ell + sqrt(2 n L_2)(1 + ell) + 2 L_inf sqrt(n T)(2 + ell).

    That line takes sum_t gamma_{t-1} <= sqrt(n T), which is false for T > 4n: the sum tends to
    twice that. *Corrected* keeps the sum G_1 as it is, and holds for every T:

        2 S_inf / (1 + S_inf) + ell + sqrt(2 n L_2)(1 + ell)
        + 2 n L_inf (1 + ell) max(2, sqrt(T / n)) + 2 L_inf G_1.

    *Tight* follows the same proof without its slack: see `_tight_decaying` and `_tight_adaptive`.

    Args:
      norms: of the losses, as simulations return them.
      exploration: "adaptive" (option 2) or "decaying" (option 1).

    For n = 2, T = 8, L_1 = L_2 = 8, L_inf = 1 and S_inf = 4 the printed line is
    2 + ln 5 + sqrt(32) (1 + ln 5) + 8 (2 + ln 5):

    >>> eight, one, four = (np.array([[float(x)]]) for x in (8, 1, 4))
    >>> norms = Norms(2, np.array([8]), eight, eight, one, four, best=four, mean=four)
    >>> print(f"{scale_free(norms, 'decaying').printed[0, -1]:.2f}")
    47.25
    """
    exact = corrected(norms, exploration)
    if exploration == "adaptive":
        return ScaleFreeBound(exact, exact, _tight_adaptive(norms))
    n, rounds = norms.num_arms, norms.rounds.astype(np.float64)
    ell = np.log1p(norms.s_inf)
    printed = (
        2 + ell + np.sqrt(2 * n * norms.l_2) * (1 + ell)
        + 2 * norms.l_inf * np.sqrt(n * rounds) * (2 + ell)
    )  # fmt: skip
    printed = np.where(rounds >= 4 * n, printed, np.nan)
    return ScaleFreeBound(printed, exact, _tight_decaying(norms))


def corrected(norms: Norms, exploration: Exploration) -> Any:
    """Corrected reading of `scale_free` [K, C], from norms in NumPy or in JAX."""
    if exploration not in ("adaptive", "decaying"):
        raise ValueError(f"exploration is {exploration!r}; choose 'adaptive' or 'decaying'")
    xp: Any = norms.l_1.__array_namespace__()
    n, dtype = norms.num_arms, norms.l_1.dtype
    ell = xp.log1p(norms.s_inf)
    stability = xp.sqrt(2 * n * norms.l_2) * (1 + ell)
    if exploration == "adaptive":
        return (
            2 + ell + stability
            + 2 * n * norms.l_inf * (2 + norms.l_inf) * (1 + ell)
            + n * norms.l_inf
            + (2 * norms.l_inf * (1 + ell) + 1) * xp.sqrt(2 * n * norms.l_1)
        )  # fmt: skip
    widest = xp.asarray(np.maximum(2, np.sqrt(norms.rounds / n))[None], dtype=dtype)
    explored = xp.asarray(_exploration_sums(n, norms.rounds)[None], dtype=dtype)
    return (
        2 * norms.s_inf / (1 + norms.s_inf) + ell + stability
        + 2 * n * norms.l_inf * (1 + ell) * widest
        + 2 * norms.l_inf * explored
    )  # fmt: skip


def best_epsilon(num_arms: int, excess: np.ndarray, inverse_rate: np.ndarray) -> np.ndarray:
    """Epsilon in (0, 1] with the least epsilon * excess + F(1^i_epsilon) * inverse_rate.

    F is convex in epsilon, so the slope vanishes at the minimum: with kappa = excess /
    (inverse_rate (n-1)), kappa (n-1) epsilon^2 - n (1 + kappa) epsilon + n = 0. It is 1 where the
    excess is not positive.
    """
    n = num_arms
    if n == 1:
        return np.ones_like(excess)
    kappa = np.maximum(excess, 0) / (inverse_rate * (n - 1))
    half = n * (1 + kappa)
    return 2 * n / (half + np.sqrt(half**2 - 4 * kappa * n * (n - 1)))


def _at_best_epsilon(norms: Norms, gaps: np.ndarray, exploring: np.ndarray) -> np.ndarray:
    """min over epsilon of epsilon D + F_epsilon (1 + X) / n + X + (term 3), D = mean S - min S."""
    n = norms.num_arms
    excess = norms.mean - norms.best
    epsilon = best_epsilon(n, excess, (1 + gaps) / n)
    return epsilon * excess + vertex_cost(n, epsilon) * (1 + gaps) / n + gaps + exploring


def _tight_decaying(norms: Norms) -> np.ndarray:
    """Option 1: X = [(m-2) + sqrt((m-2)^2 + 4 n G)] / 2 bounds E sum M, m = n L_inf / gamma_{T-1}.

    From (sum M)^2 = sum M^2 + 2 sum M_t (n / eta_{t-1} - 1) with M_t <= |l~_t| <= m, and with
    M_t / eta_{t-1} <= p_t(i_t) l~_t^2 / 2, whose expectation is at most
    ||l_t||_2^2 / (2 (1 - gamma_{t-1})): G = sum ||l_t||_2^2 / (1 - gamma_{t-1}); the root is
    concave in that sum (Jensen). Term (3) is at most 2 (1 - 1/n) L_inf G_1. Between two
    checkpoints gamma is taken at the first of them, where it is largest.
    """
    n, rounds = norms.num_arms, norms.rounds
    before = np.concatenate([[0], rounds[:-1]])
    spent = np.diff(norms.l_2, axis=1, prepend=0.0) / (1 - _exploration(n, before))
    m = n * norms.l_inf / _exploration(n, rounds - 1)
    root = np.sqrt((m - 2) ** 2 + 4 * n * np.cumsum(spent, axis=1))
    exploring = 2 * (1 - 1 / n) * norms.l_inf * _exploration_sums(n, rounds)
    return _at_best_epsilon(norms, ((m - 2) + root) / 2, exploring)


def _tight_adaptive(norms: Norms) -> np.ndarray:
    """Option 2: X = sqrt(2 n L_2) + L_inf (2n + E) bounds E sum M, E >= E sum Gamma.

    1 / gamma_T = 2 + sum Gamma / n. (sum Gamma)^2 = sum Gamma^2 + 2 sum Gamma_t (n / gamma_{t-1}
    - 2n) with Gamma_t <= n L_inf and E Gamma_t / gamma_{t-1} = ||l_t||_1 gives
    E = [b + sqrt(b^2 + 8 n L_1)] / 2, b = n (L_inf - 4); gamma <= 1/2 gives E = L_1 / 2.
    """
    n = norms.num_arms
    b = n * (norms.l_inf - 4)
    mass = np.minimum(norms.l_1 / 2, (b + np.sqrt(b**2 + 8 * n * norms.l_1)) / 2)
    gaps = np.sqrt(2 * n * norms.l_2) + norms.l_inf * (2 * n + mass)
    return _at_best_epsilon(norms, gaps, (1 - 1 / n) * mass)


def _exploration(num_arms: int, t: np.ndarray) -> np.ndarray:
    """gamma_0 = 1/2, gamma_t = min(1/2, sqrt(n/t)) of option 1."""
    return np.minimum(0.5, np.sqrt(num_arms / np.maximum(t, 1)))


def _exploration_sums(num_arms: int, rounds: np.ndarray) -> np.ndarray:
    """G_1 = sum_{t<=tau} gamma_{t-1} at each tau."""
    totals, total, done = [], 0.0, 0
    for tau in np.asarray(rounds, np.int64):
        total += _exploration(num_arms, np.arange(done, tau, dtype=np.float64)).sum()
        totals.append(total)
        done = tau
    return np.array(totals)
