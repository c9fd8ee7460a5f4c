"""Strategies that are shown the losses of all arms after each round."""

import math

from jax import Array
from jax.tree_util import Partial

from sfmab_jax import estimation, full_information, potentials, sampling
from sfmab_jax.base import Bandit, FullInformation
from sfmab_jax.checks import check_horizon, check_positive
from sfmab_jax.compose import compose
from sfmab_jax.potentials.tsallis import tsallis_of
from sfmab_jax.strategies import schedules

__all__ = [
    "ada_ftrl_log_barrier",
    "ada_ftrl_tsallis",
    "ada_hedge",
    "follow_the_leader",
    "hedge",
    "hedge_horizon",
]


def hedge(scale: Array | float = 1.0, learning_rate: schedules.Rate | None = None) -> Bandit:
    """Freund and Schapire (1997): Hedge with full information, any-time.

    p_t is proportional to exp(-eta_t sum_{s<t} l_s), eta_t = sqrt(8 ln n / t) / G. The regret is at
    most G (2 sqrt((T/2) ln n) + sqrt(ln n / 8)): Cesa-Bianchi and Lugosi (2006), Theorem 2.3, from
    which the rate is.

    Args:
      scale: G, for losses within a range of that length.
      learning_rate: eta, per unit of loss, in place of that above: a positive number, or a function
        of the number of rounds played t = 0, 1, ... (a float []).
    """
    check_positive(scale=scale)
    rate = schedules.rate_or(Partial(schedules.hedge_rate, scale), learning_rate)
    return _with_full_feedback(full_information.ftrl_by_arms(potentials.negative_entropy(), rate))


def hedge_horizon(
    num_rounds: Array | float = 10_000,
    scale: Array | float = 1.0,
    learning_rate: schedules.Rate | None = None,
) -> Bandit:
    """Freund and Schapire (1997): Hedge with full information, for known T.

    As `hedge` with eta = sqrt(8 ln n / T) / G. The regret is at most G sqrt((T/2) ln n):
    Cesa-Bianchi and Lugosi (2006), Theorem 2.2.

    Args:
      num_rounds: T.
      scale: G.
      learning_rate: eta in place of that above, as in `hedge`.
    """
    check_horizon(num_rounds)
    check_positive(scale=scale)
    theory = Partial(schedules.hedge_horizon_rate, num_rounds, scale)
    rate = schedules.rate_or(theory, learning_rate)
    return _with_full_feedback(full_information.ftrl_by_arms(potentials.negative_entropy(), rate))


def ada_hedge() -> Bandit:
    """De Rooij, Van Erven, Grunwald and Koolen (2014): AdaHedge with full information.

    Hedge with eta_t = ln n / sum_{s<t} d_s, d_s = p.l + ln(sum p exp(-eta l)) / eta the mixability
    gap, and eta infinite while the sum is 0. The play is exactly invariant under shifts and
    positive factors. With s_t the range of l_t, the regret is at most 2 sqrt(V ln n) + S
    (4/3 ln n + 2), V <= sum_t s_t^2 / 4 and S = max_t s_t.
    """
    strategy = full_information.ada_ftrl(potentials.negative_entropy(), math.log, beta=0.0)
    return _with_full_feedback(strategy)


def ada_ftrl_log_barrier(alpha: Array | float | None = None, beta: Array | float = 0.0) -> Bandit:
    """Orabona and Pal, "Scale-Free Online Learning" (2018): AdaFTRL, log barrier, full information.

    p_{t+1} = argmin F(q) + eta_t sum_{s<=t} l_s.q, eta_t = alpha / (beta + sum_{s<=t} M_s), M_s
    the mixability gap at eta_{s-1}. Orabona and Pal have alpha = 1 and beta = 0. The regret is at
    most F(u) (beta + sum M) / alpha + sum M against any u inside the simplex.

    Args:
      alpha: a positive number; None for n, as in section 5 of the paper.
      beta: in units of loss, not negative.
    """
    return _with_full_feedback(full_information.ada_ftrl(potentials.log_barrier(), alpha, beta))


def ada_ftrl_tsallis(
    power: Array | float = 0.5, alpha: Array | float | None = None, beta: Array | float = 0.0
) -> Bandit:
    """Orabona and Pal, "Scale-Free Online Learning" (2018): AdaFTRL, Tsallis, full information.

    As `ada_ftrl_log_barrier` with F = -sum(x^c) + const. The regret is at most
    (F(u) / alpha + 1) sum M for beta = 0. With the negative entropy and alpha = ln n it would be
    `ada_hedge`.

    Args:
      power: c, between 0 and 1.
      alpha: a positive number; None for sqrt(n) - 1, the range of F at c = 1/2.
      beta: in units of loss, not negative.
    """
    check_positive(power=power)
    alpha_or_range = schedules.square_root_range if alpha is None else alpha
    return _with_full_feedback(full_information.ada_ftrl(tsallis_of(power), alpha_or_range, beta))


def follow_the_leader() -> Bandit:
    """Hannan (1957): follow the leader with full information, no regularisation.

    The arm of the smallest total loss so far; the first of several. Its regret is at most the
    number of changes of leader times the range of the losses: linear in the worst case.
    """
    return _with_full_feedback(full_information.follow_the_leader())


def _with_full_feedback(strategy: FullInformation) -> Bandit:
    return compose(
        sampling.as_played(), estimation.importance_weighted(), strategy, feedback="full"
    )
