"""Strategies that know nothing about the size of the losses.

Left out, as only abstracts were at hand: UMAB-NN, SCB, SFBanker, SFD-TINF, SFD-LBINF.
"""

import math
from typing import Literal

from jax import Array
from jax.tree_util import Partial

from sfmab_jax import estimation, full_information, potentials, sampling
from sfmab_jax.base import Bandit, Sampling
from sfmab_jax.checks import check_horizon, check_number, check_positive, check_probability
from sfmab_jax.compose import compose
from sfmab_jax.potentials.tsallis import square_root
from sfmab_jax.strategies import schedules

__all__ = [
    "ahb",
    "ahb_published_code",
    "bandit_ada_ftrl_tsallis",
    "bandit_ada_ftrl_tsallis_proxy",
    "exp3_light_a_horizon",
    "scale_free",
    "umab_g",
    "umab_g_both_horizon",
    "umab_g_horizon",
]


def scale_free(
    exploration: Literal["adaptive", "decaying"] = "adaptive",
    alpha: Array | float | None = None,
    beta: Array | float = 1.0,
) -> Bandit:
    """Putta and Agrawal, "Scale-Free Adversarial Multi Armed Bandits" (2022): Algorithm 1.

    Log-barrier AdaFTRL on importance-weighted losses, mixed with the uniform law. With n arms,
    L_inf the largest loss, L_1 and L_2 the sums of the losses' 1-norms and squared 2-norms, the
    expected regret is O~(sqrt(n L_2) + L_inf sqrt(n T)) with decaying exploration (option 1) and
    O~(sqrt(n L_2) + L_inf sqrt(n L_1)) with adaptive exploration (option 2).

    Args:
      exploration: "adaptive" (option 2) or "decaying" (option 1).
      alpha: of the learning rate alpha / (beta + sum of mixability gaps), positive; None for n.
      beta: of the same, positive, in units of loss.

    >>> bandit = scale_free("decaying")
    >>> state = bandit.init(4)
    >>> print(state.sampling.exploration, state.full_information.learning_rate)
    0.5 4.0
    """
    schemes = {"adaptive": sampling.adaptive, "decaying": sampling.decaying}
    if not isinstance(exploration, str) or exploration not in schemes:
        raise ValueError(f"exploration is {exploration!r}; choose 'adaptive' or 'decaying'")
    check_positive(beta=beta)
    return compose(
        schemes[exploration](),
        estimation.importance_weighted(),
        full_information.ada_ftrl(potentials.log_barrier(), alpha, beta),
    )


def ahb(decay: Array | float = 0.5) -> Bandit:
    """Hadiji and Stoltz, "Adaptation to the Range in K-Armed Bandits" (2023): AHB.

    AdaHedge for bandits with extra exploration. Each arm is played once; C is the mean of these n
    losses. From round n + 1 on, l~_t(i) = (l_t(i) - C) [i = i_t] / p'_t(i), p'_t =
    (1 - g_t) q_t + g_t / n with q_t proportional to exp(-eta L~), eta = ln n / sum_s M_s (infinite
    at first), the gaps M taken at q, and g_t = min(1/2, sqrt(5 (1 - a) n ln n) / t^a).

    The play is exactly invariant under shifts and positive factors of all losses. For a = 1/2 the
    expected regret is O((M - m) sqrt(n T ln n)) for losses in an unknown range [m, M]. The
    constants are the paper's; the authors' code has others, see `ahb_published_code`.

    Args:
      decay: a, between 0 and 1.
    """
    check_probability("decay", decay)
    return compose(
        sampling.each_arm_first(sampling.scheduled(Partial(schedules.ahb_exploration, decay))),
        estimation.centred_on_mean(),
        full_information.ada_ftrl(potentials.negative_entropy(), math.log, beta=0.0),
    )


def ahb_published_code() -> Bandit:
    """Hadiji and Stoltz's published code for AHB (2020), which differs from their paper.

    As `ahb`, but C is the smallest of the first n - 1 losses (the largest payoff), round n is
    already an ordinary observation, though its arm is not drawn, and g_t =
    min(1/2, sqrt(10 n ln n / (t - 1))). An earlier version of the code took the mean of n losses.
    The bound has the same order.
    """
    return compose(
        sampling.each_arm_first(sampling.scheduled(schedules.ahb_code_exploration)),
        estimation.centred_on_best(),
        full_information.ada_ftrl(potentials.negative_entropy(), math.log, beta=0.0),
    )


def bandit_ada_ftrl_tsallis(lowest: Array | float = 0.0) -> Bandit:
    """Hadiji and Stoltz's published code (2020): AdaFTRL-Tsallis on importance-weighted losses.

    With Psi = -2 sum(sqrt(x)), twice the regulariser here: p_{t+1} = argmin Psi(q) + eta_t L~.q,
    eta_t = (2 sqrt(n) - 2) / sum_{s<=t} M_s(eta_{s-1}), infinite at first, M the exact mixability
    gap; no exploration. For losses of unknown scale above a known lowest value, where the expected
    regret is of order max(l) sqrt(n T), up to constants that the code does not give.

    Args:
      lowest: the smallest loss possible, in units of loss; l - lowest is importance weighted.
    """
    check_number("lowest", lowest)
    return compose(
        sampling.as_played(),
        estimation.centred(lowest),
        full_information.ada_ftrl(square_root(), schedules.square_root_range, beta=0.0),
    )


def bandit_ada_ftrl_tsallis_proxy() -> Bandit:
    """Hadiji and Stoltz's published code (2020): AdaFTRL-Tsallis with a proxy for the gap.

    As `bandit_ada_ftrl_tsallis` for losses that are not negative, with min(l, eta l^2 / sqrt(p)),
    l = l_t(i_t) and p = p'_t(i_t), in place of the mixability gap, which it bounds.
    """
    return compose(
        sampling.as_played(),
        estimation.importance_weighted(),
        full_information.ada_ftrl(
            square_root(),
            schedules.square_root_range,
            beta=0.0,
            gap=full_information.proxy_gap,
        ),
    )


def umab_g() -> Bandit:
    """Chen and Zhang, "... Adversarial Bandits with Unbounded Losses" (2023): UMAB-G, adaptive.

    The rule is that of the authors' published code. Whether its constants are those for which their
    paper proves a regret bound could not be checked, so that no bound is stated here. What is
    chosen here: E is in units of loss, and of several likeliest arms the first gives.

    Losses are clipped from below, l <- max(l, -2 C), with C = 1 at first and then the largest
    gain so far, max(C, -l). p_t(i) = 1 / (eta_t L~_t(i) + lambda) with
    eta_t = 4 / sqrt(sum_{s<t} l_s^2 / n + C_t^2); every arm with p_t(i) < 1/rho_t gains 1/rho_t,
    and the likeliest arm gives it all. rho_t = 2 n^2 + sqrt(E) with E the sum of 2 |l~_s(i_s)| over
    the rounds in which the arm played had gained or given, as often as it gave. The first C and E
    carry the unit of the losses, so that below 1 the play is not that of larger losses.
    """
    return _umab_g(sampling.lifted())


def umab_g_horizon(num_rounds: Array | float = 10_000) -> Bandit:
    """Chen and Zhang, "... Adversarial Bandits with Unbounded Losses" (2023): UMAB-G for known T.

    As `umab_g` with rho = 2 n^2 + sqrt(n T) in all rounds; that rho is the authors' code's, with
    its T = 1200 as the argument here. No regret bound is stated, as there.

    Args:
      num_rounds: T.
    """
    check_horizon(num_rounds)
    return _umab_g(sampling.lifted(num_rounds, adaptive=False))


def umab_g_both_horizon(num_rounds: Array | float = 10_000) -> Bandit:
    """Chen and Zhang, "... Adversarial Bandits with Unbounded Losses" (2023): UMAB-G, both.

    As `umab_g` with E at most n T, the third form of the authors' published code, with its
    T = 1200 as the argument here. No regret bound is stated, as there.

    Args:
      num_rounds: T.
    """
    check_horizon(num_rounds)
    return _umab_g(sampling.lifted(num_rounds))


def _umab_g(scheme: Sampling) -> Bandit:
    return compose(
        scheme,
        estimation.clipped_below(),
        full_information.clipped_ftrl(potentials.log_barrier()),
    )


def exp3_light_a_horizon(num_rounds: Array | float = 10_000) -> Bandit:
    """Gagliolo and Schmidhuber, "Algorithm Portfolio Selection ..." (2011): Exp3Light-A, known T.

    The rule is taken from programs of others that transcribe it, not from the paper; its regret
    bound was not at hand and is not stated. T stays the same after a restart, though fewer rounds
    are left.

    For losses that are not negative, in a range that is not known: p_t is proportional to
    exp(-eta_r L~ / B), eta_r = sqrt(2 (ln n + n ln T) / (n 4^r)), with importance-weighted losses.
    When min(L~) / B exceeds 4^r, r becomes ceil(log4(min(L~) / B)). B = 1 in units of loss at
    first; a loss l > B makes B = 2^ceil(log2(l)), is dropped, and everything starts again.

    Args:
      num_rounds: T.
    """
    return compose(
        sampling.as_played(),
        estimation.within_range(),
        full_information.restarting_ftrl(potentials.negative_entropy(), num_rounds),
    )
