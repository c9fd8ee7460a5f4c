"""Regret bounds of other strategies with explicit constants, as their sources state them.

Each is a function of (num_arms, rounds, scale): n, the number of rounds T (an array works), and
the width of the interval that holds all losses. Strategies that are told the range must be told
this one; that of Exp3.S is also a function of the switches that the strategy is told, and that of
the hybrid barrier of the sum of squares. A bound whose
strategy is told T holds at that T; the others at every T. Bounds are on the expected regret against
the best fixed arm, and for one arm they are 0.
"""

from collections.abc import Callable

import numpy as np

__all__ = [
    "TEXTBOOK",
    "ada_hedge",
    "ahb",
    "exp3",
    "exp3_gamma_horizon",
    "exp3_horizon",
    "exp3_ix",
    "exp3_ix_horizon",
    "exp3_plus_plus",
    "exp3_s_horizon",
    "hedge",
    "hedge_horizon",
    "hybrid_barrier_horizon",
    "poly_inf_horizon",
    "tsallis_inf",
    "tsallis_spm",
]

Rounds = np.ndarray | float


def hedge_horizon(num_arms: int, rounds: Rounds, scale: float = 1.0) -> Rounds:
    """scale sqrt(T ln n / 2), full information, eta = sqrt(8 ln n / T) / scale, T known.

    Cesa-Bianchi and Lugosi, "Prediction, Learning, and Games" (2006), Theorem 2.2.
    """
    return scale * np.sqrt(rounds * np.log(num_arms) / 2)


def hedge(num_arms: int, rounds: Rounds, scale: float = 1.0) -> Rounds:
    """scale [2 sqrt(T ln n / 2) + sqrt(ln n / 8)], full information, eta_t = sqrt(8 ln n / t).

    Cesa-Bianchi and Lugosi (2006), Theorem 2.3.
    """
    log = np.log(num_arms)
    return scale * (2 * np.sqrt(rounds * log / 2) + np.sqrt(log / 8))


def ada_hedge(num_arms: int, rounds: Rounds, scale: float = 1.0) -> Rounds:
    """scale [sqrt(T ln n) + 4/3 ln n + 2], full information, the scale unknown.

    De Rooij et al., "Follow the leader if you can, hedge if you must" (2014), Theorem 6: regret
    <= 2 sqrt(V ln n) + scale (4/3 ln n + 2), where V, the sum of the losses' variances under the
    play, is at most T scale^2 / 4.
    """
    log = np.log(num_arms)
    return _zero_for_one_arm(num_arms, scale * (np.sqrt(rounds * log) + 4 / 3 * log + 2))


def exp3_gamma_horizon(num_arms: int, rounds: Rounds, scale: float = 1.0) -> Rounds:
    """scale 2 sqrt((e-1) T n ln n): Exp3 with gamma = min{1, sqrt(n ln n / ((e-1) T))}.

    Auer, Cesa-Bianchi, Freund and Schapire (2002), Corollary 3.2 with g = T.
    """
    return scale * 2 * np.sqrt((np.e - 1) * rounds * num_arms * np.log(num_arms))


def exp3_horizon(num_arms: int, rounds: Rounds, scale: float = 1.0) -> Rounds:
    """scale sqrt(2 T n ln n): Exp3 on losses with eta = sqrt(2 ln n / (n T)) / scale, T known.

    Bubeck and Cesa-Bianchi, "Regret analysis ..." (2012), Theorem 3.1.
    """
    return scale * np.sqrt(2 * rounds * num_arms * np.log(num_arms))


def exp3(num_arms: int, rounds: Rounds, scale: float = 1.0) -> Rounds:
    """scale 2 sqrt(T n ln n): Exp3 on losses with eta_t = sqrt(ln n / (t n)) / scale.

    Bubeck and Cesa-Bianchi (2012), Theorem 3.1.
    """
    return scale * 2 * np.sqrt(rounds * num_arms * np.log(num_arms))


def exp3_ix_horizon(num_arms: int, rounds: Rounds, scale: float = 1.0) -> Rounds:
    """scale [2 sqrt(2 n T ln n) + (1 + ln 2)(sqrt(2 n T / ln n) + 1)], T known.

    Neu, "Explore no more" (2015), Theorem 1 with eta = 2 gamma = sqrt(2 ln n / (n T)): with
    probability 1 - delta the realised regret is at most a + b ln(2/delta); as the parameters do
    not depend on delta, its mean is at most a + b (1 + ln 2).
    """
    if num_arms == 1:
        return np.zeros_like(np.asarray(rounds, np.float64))
    n, log = num_arms, np.log(num_arms)
    spread = np.sqrt(2 * n * rounds / log) + 1
    return scale * (2 * np.sqrt(2 * n * rounds * log) + (1 + np.log(2)) * spread)


def exp3_ix(num_arms: int, rounds: Rounds, scale: float = 1.0) -> Rounds:
    """scale [4 sqrt(n T ln n) + (1 + ln 2)(2 sqrt(n T / ln n) + 1)].

    Neu (2015), Theorem 1 with eta_t = 2 gamma_t = sqrt(ln n / (n t)); the mean as in
    `exp3_ix_horizon`.
    """
    if num_arms == 1:
        return np.zeros_like(np.asarray(rounds, np.float64))
    n, log = num_arms, np.log(num_arms)
    spread = 2 * np.sqrt(n * rounds / log) + 1
    return scale * (4 * np.sqrt(n * rounds * log) + (1 + np.log(2)) * spread)


def exp3_plus_plus(num_arms: int, rounds: Rounds, scale: float = 1.0) -> Rounds:
    """scale 4 sqrt(n T ln n), eta_t = sqrt(ln n / (t n)) / 2. Seldin and Slivkins (2014)."""
    return scale * 4 * np.sqrt(num_arms * rounds * np.log(num_arms))


def exp3_s_horizon(
    num_arms: int, rounds: Rounds, scale: float = 1.0, switches: float = 5.0
) -> Rounds:
    """scale 2 sqrt((e-1) n T (S ln(n T) + e)), S = switches + 1, T known.

    Auer, Cesa-Bianchi, Freund and Schapire (2002), Corollary 8.3: against every sequence of arms
    with at most ``switches`` switches, so also against the best fixed arm. Derived again: with a
    share of alpha, each segment costs ln(n / alpha) n / gamma, the shares e alpha n T / gamma, and
    exploration with the variance (e - 1) gamma T.
    """
    n, segments = num_arms, switches + 1
    spread = segments * np.log(n * rounds) + np.e
    return _zero_for_one_arm(n, scale * 2 * np.sqrt((np.e - 1) * n * rounds * spread))


def poly_inf_horizon(num_arms: int, rounds: Rounds, scale: float = 1.0) -> Rounds:
    """scale 2 sqrt(2 n T): INF with q = 2 and eta = sqrt(2/T), T known.

    Audibert and Bubeck (2009); Bubeck and Cesa-Bianchi (2012), section 3.2.
    """
    return _zero_for_one_arm(num_arms, scale * 2 * np.sqrt(2 * num_arms * rounds))


def tsallis_inf(num_arms: int, rounds: Rounds, scale: float = 1.0) -> Rounds:
    """scale [4 sqrt(n T) + 1]: Tsallis-INF with power 1/2, importance weighted, eta_t = 2/sqrt(t).

    Zimmert and Seldin (2021), Theorem 1. Derived again: the penalty is at most
    4 (sqrt(n) - 1) / eta_T, the stability at most sum_t eta_t sqrt(n) / 2, together below
    4 sqrt(n T).
    """
    return _zero_for_one_arm(num_arms, scale * (4 * np.sqrt(num_arms * rounds) + 1))


def hybrid_barrier_horizon(
    num_arms: int, rounds: Rounds, scale: float = 1.0, sum_of_squares: float = 10_000.0
) -> Rounds:
    """scale [sqrt(3 S ln n) + 4 n ln T + 2], where sum_t sum_i l_t(i)^2 <= S scale^2.

    Derived here, after Bubeck, Cohen and Li (2018), for losses in [-scale, scale] and eta =
    sqrt(4 ln n / (3 S)). Against u = (1 - 1/T) e_i + 1/(n T) the entropy costs ln n / eta, the
    barrier 4 n ln T, and u itself at most 2. In a round of loss l the maximiser of l~.(p - x) less
    the divergence has 4/x >= 4/p - |l~| >= 3/p at the arm played, and x = p elsewhere, so that the
    stability is at most eta (4/3) p l~^2 / 2, of mean (2/3) eta |l|^2 < (3/4) eta |l|^2.
    """
    n = num_arms
    bound = np.sqrt(3 * sum_of_squares * np.log(n)) + 4 * n * np.log(rounds) + 2
    return _zero_for_one_arm(n, scale * bound)


def tsallis_spm(num_arms: int, rounds: Rounds, scale: float = 1.0) -> Rounds:
    """scale [64 n ln n (1 + ln n) + 24 (8 sqrt(T n ln n) + 1/4)]: Tsallis-FTRL-SPM.

    Ito, Tsuchiya and Honda (2024), as in a published formalisation. It holds for losses in
    [-scale, scale], [0, scale] among them; below 36,864 n ln n rounds it exceeds T scale.
    """
    n, log = num_arms, np.log(num_arms)
    bound = 64 * n * log * (1 + log) + 24 * (8 * np.sqrt(rounds * n * log) + 0.25)
    return _zero_for_one_arm(n, scale * bound)


def ahb(num_arms: int, rounds: Rounds, scale: float = 1.0) -> Rounds:
    """AdaHedge for bandits with extra exploration (Hadiji and Stoltz 2023), the scale unknown.

    With gamma_t = min{1/2, sqrt(2.5 n ln n / t)}, C the mean of the first n payoffs, and estimates
    (y - C)/p + C, derived by their route from Theorem 6 of de Rooij et al. (2014):

        scale [ n + 2 sqrt(2 n T ln n) + (4/3 ln n + 2) n max(2, sqrt(T / (2.5 n ln n)))
                + T/2 or, if less, 2 sqrt(2.5 n T ln n) ].

    n rounds are spent first. The variance of the estimate under q is at most q (y - C)^2 / p^2,
    p >= q/2, so its mean is at most 2 n scale^2; its range is at most n scale / gamma_T; playing
    p instead of q costs at most sum gamma_t scale.
    """
    if num_arms == 1:
        return np.zeros_like(np.asarray(rounds, np.float64))
    n, log = num_arms, np.log(num_arms)
    variance = 2 * np.sqrt(2 * n * rounds * log)
    ranges = (4 / 3 * log + 2) * n * np.maximum(2, np.sqrt(rounds / (2.5 * n * log)))
    exploring = np.minimum(rounds / 2, 2 * np.sqrt(2.5 * n * rounds * log))
    return scale * (n + variance + ranges + exploring)


def _zero_for_one_arm(num_arms: int, bound: Rounds) -> Rounds:
    return bound if num_arms > 1 else np.zeros_like(bound)


# By the name of the strategy.
TEXTBOOK: dict[str, Callable[..., Rounds]] = {
    "ada_hedge": ada_hedge,
    "ahb": ahb,
    "exp3": exp3,
    "exp3_ix": exp3_ix,
    "exp3_ix_horizon": exp3_ix_horizon,
    "exp3_horizon": exp3_horizon,
    "exp3_gamma_horizon": exp3_gamma_horizon,
    "exp3_plus_plus": exp3_plus_plus,
    "exp3_s_horizon": exp3_s_horizon,
    "hedge": hedge,
    "hedge_horizon": hedge_horizon,
    "hybrid_barrier_horizon": hybrid_barrier_horizon,
    "poly_inf_horizon": poly_inf_horizon,
    "tsallis_inf": tsallis_inf,
    "tsallis_spm": tsallis_spm,
}
