"""Strategies whose bounds shrink on easy losses, in a range known as ``scale``.

The README names those left out, as their rules could not be stated exactly from the sources at
hand.
"""

from jax import Array
from jax.tree_util import Partial

from sfmab_jax import estimation, full_information, potentials, sampling
from sfmab_jax.base import Bandit
from sfmab_jax.checks import check_horizon, check_number, check_positive, is_known
from sfmab_jax.compose import compose
from sfmab_jax.estimation.regression import Form
from sfmab_jax.strategies import schedules

__all__ = [
    "broad",
    "broad_increasing_horizon",
    "broad_optimistic",
    "bubeck_li_luo_wei_horizon",
    "green_horizon",
    "hybrid_barrier",
    "hybrid_barrier_horizon",
    "lb_inf_v_horizon",
    "log_barrier_horizon",
    "tsallis_spm",
]

# The largest rate that the theorems of Wei and Luo (2018) allow, at range 1.
LARGEST_RATE = 1 / 162
# With less the play is uniform, and products with 1 / rate would leave float32's range.
LEAST_RATE = 1e-24


def log_barrier_horizon(
    num_rounds: Array | float = 10_000,
    scale: Array | float = 1.0,
    learning_rate: schedules.Rate | None = None,
) -> Bandit:
    """Foster, Li, Lykouris, Sridharan and Tardos (2016): log-barrier OMD, rate chosen here.

    p_{t+1} = argmin sum_i log(1/q_i) + eta sum_{s<=t} l~_s.q, importance-weighted losses in
    [0, G]. The expected regret is at most n ln T / eta + eta L*, L* the total loss of the best
    arm, up to constants: O(sqrt(n L* ln T)) for the best eta. The rate is chosen here, eta =
    min(1/2, sqrt(n ln T / T)) / G, the best in that bound for L* = G T.

    Args:
      num_rounds: T, or a smaller number that bounds L* / G.
      scale: G.
      learning_rate: eta, per unit of loss, in place of that above: a positive number, or a function
        of the number of rounds played t = 0, 1, ... (a float []).
    """
    check_horizon(num_rounds)
    check_positive(scale=scale)
    rate = Partial(schedules.barrier_horizon_rate, num_rounds, scale)
    return compose(
        sampling.as_played(),
        estimation.importance_weighted(),
        full_information.ftrl_by_arms(
            potentials.log_barrier(), schedules.rate_or(rate, learning_rate)
        ),
    )


def green_horizon(
    num_rounds: Array | float = 10_000,
    scale: Array | float = 1.0,
    learning_rate: schedules.Rate | None = None,
) -> Bandit:
    """Allenberg, Auer, Gyorfi and Ottucsak (2006): Green, rate chosen here.

    Exponential weights on importance-weighted losses in [0, G]; arms with p_t(i) < g are not
    played, and p'_t is p_t over the others. The rule is theirs, the constants are set here: g =
    eta G = sqrt(ln n / (n T)). An arm is dropped before its estimate exceeds the best one's by
    ln(1/g) / eta + G/g, so the estimates sum to about n L*, and the expected regret is at most
    ln n / eta + eta (n L* + ...) + g n L*: O(sqrt(n L* ln n)) for the best eta and g.

    Args:
      num_rounds: T, or a smaller number that bounds L* / G, L* the total loss of the best arm.
      scale: G.
      learning_rate: eta in place of that above, as in `log_barrier_horizon`; g stays.
    """
    check_horizon(num_rounds)
    check_positive(scale=scale)
    rate = schedules.rate_or(Partial(schedules.green_rate, num_rounds, scale), learning_rate)
    return compose(
        sampling.truncated(Partial(schedules.green_level, num_rounds)),
        estimation.importance_weighted(),
        full_information.ftrl_by_arms(potentials.negative_entropy(), rate),
    )


def broad(rate: Array | float = LARGEST_RATE, scale: Array | float = 1.0) -> Bandit:
    """Wei and Luo, "More Adaptive Algorithms for Adversarial Bandits" (2018): BROAD, option I.

    Log-barrier mirror descent on l~_t + a_t, a_t(i) = 6 eta w_t(i) l~_t(i)^2; see
    `full_information.barrier_descent`. The expected regret is O(n ln T / eta +
    eta sum_t l_t(i*)^2), i* the best arm.

    Args:
      rate: eta G; the theorems need 1/162 at most.
      scale: G, for losses in [-G, G].
    """
    return _broad(estimation.importance_weighted(), rate, scale)


def broad_increasing_horizon(
    num_rounds: Array | float = 10_000,
    rate: Array | float = LARGEST_RATE,
    scale: Array | float = 1.0,
) -> Bandit:
    """Wei and Luo, "More Adaptive Algorithms for Adversarial Bandits" (2018): increasing rates.

    `broad` with a rate for each arm that grows by the factor exp(1 / ln T) whenever 1/w_i exceeds
    rho_i, which then becomes 2/w_i; rho_i starts at 2n. That start, and w = w'_{t+1} in the
    test, are from Agarwal et al. (2017), whose schedule it is. The increase pays for the bound's
    dependence on 1/w of the best arm.

    Args:
      num_rounds: T, 2 or more.
      rate, scale: as in `broad`.
    """
    check_horizon(num_rounds, least=2)
    return _broad(estimation.importance_weighted(), rate, scale, num_rounds=num_rounds)


def broad_optimistic(rate: Array | float = LARGEST_RATE, scale: Array | float = 1.0) -> Bandit:
    """Wei and Luo, "More Adaptive Algorithms for Adversarial Bandits" (2018): path length.

    Optimistic BROAD, option I with a fixed rate: m_t(i) is the last loss seen of arm i,
    l~_t(i) = (l_t(i) - m_t(i)) [i = i_t] / w_t(i) + m_t(i), and a_t(i) =
    6 eta w_t(i) (l~_t(i) - m_t(i))^2. The expected regret is O(n ln T / eta +
    eta sum_t (l_t(i*) - m_t(i*))^2), which the path length of the losses bounds.

    Args:
      rate, scale: as in `broad`.
    """
    return _broad(estimation.predicted_by_last_seen(), rate, scale, optimistic=True)


def bubeck_li_luo_wei_horizon(
    num_rounds: Array | float = 10_000,
    path_length: Array | float | None = None,
    scale: Array | float = 1.0,
    learning_rate: schedules.Rate | None = None,
) -> Bandit:
    """Bubeck, Li, Luo and Wei, "Improved Path-length Regret Bounds ..." (2019), known T.

    Algorithm 1 of the paper, as a later paper quotes it in full, together with the learning rate
    for a known path length Q. What is chosen here: Q = T where it is not given, which is never
    less, and no favour for losses above G.

    Log-barrier mirror descent on l~_t(i) = (l_t(i) - c_{t-1}) [i = i_t] / p'_t(i) + c_{t-1},
    c_t = l_t(i_t) the last loss of whichever arm, c_0 = 0, whose play x_t is mixed with the last
    arm: p'_{t+1} = (x_{t+1} + lambda [i = i_t]) / (1 + lambda), lambda = 8 eta G (1 - c_t / G), so
    that the arm whose loss the next distance needs stays likely while it is good.
    eta = min(1/162, sqrt(n ln(n T) / (1 + Q))) / G. The expected regret is of the order of
    G sqrt(n Q ln(n T)) + G n ln(n T).

    Args:
      num_rounds: T.
      path_length: Q = sum_t max_i (l_t(i) - l_{t-1}(i))^2 / G^2, or a bound; None for T.
      scale: G, for losses in [0, G].
      learning_rate: eta in place of that above, as in `log_barrier_horizon`.
    """
    check_horizon(num_rounds)
    check_positive(scale=scale)
    if path_length is not None:
        check_number("path_length", path_length)
        if is_known(path_length) and path_length < 0:
            raise ValueError(f"path_length is {path_length!r}; it cannot be negative")
    rate = schedules.rate_or(
        Partial(schedules.path_length_rate, num_rounds, path_length, scale), learning_rate
    )
    return compose(
        sampling.favouring_last(Partial(schedules.favour_of_rate, rate, scale), scale),
        estimation.centred_on_last(),
        full_information.ftrl_by_arms(potentials.log_barrier(), rate),
    )


def hybrid_barrier(scale: Array | float = 1.0) -> Bandit:
    """After Bubeck, Cohen and Li, "Sparsity, Variance and Curvature ..." (2018): any-time.

    The idea, an entropy with a share of the log barrier, is theirs; the constants, and this form
    that needs no bound on the losses' squares, are derived here and are not the paper's.

    As `hybrid_barrier_horizon`, with V_t = 1 + sum_{s<=t} l_s(i_s)^2 / (G^2 p_s(i_s)), whose mean
    is 1 + L_2 / G^2, in place of a bound on L_2 / G^2. The expected regret is
    O(sqrt(L_2 ln n) + G n ln T), L_2 = sum_t sum_i l_t(i)^2: where l^2/p exceeds V, which then
    doubles, the barrier keeps the cost of the round below G.

    Args:
      scale: G, for losses in [-G, G].
    """
    return _hybrid_barrier(None, scale)


def hybrid_barrier_horizon(
    sum_of_squares: Array | float = 10_000.0, scale: Array | float = 1.0
) -> Bandit:
    """After Bubeck, Cohen and Li, "Sparsity, Variance and Curvature ..." (2018): hybrid barrier.

    The idea, an entropy with a share of the log barrier, is theirs; the constants are derived here
    and are not the paper's.

    p_{t+1} = argmin_q q.L~_t / G + (1/eta) sum_i q(i) ln q(i) + 4 sum_i ln(1/q(i)), L~_t the sum of
    importance-weighted losses, eta = sqrt(4 ln n / (3 S)), S a bound on L_2 / G^2, L_2 = sum_t
    sum_i l_t(i)^2. If L_2 <= S G^2, the expected regret is at most
    G [sqrt(3 S ln n) + 4 n ln T + 2]: for a comparator that gives 1/(n T) to every arm, the entropy
    costs ln n / eta, the barrier 4 n ln T; and with its weight of 4 no probability grows in a round
    by more than 4/3, so that the stability terms sum to at most (3/4) eta S.

    Args:
      sum_of_squares: S.
      scale: G, for losses in [-G, G].
    """
    check_positive(sum_of_squares=sum_of_squares)
    return _hybrid_barrier(sum_of_squares, scale)


def lb_inf_v_horizon(
    num_rounds: Array | float = 10_000, form: Form = "LS", scale: Array | float = 1.0
) -> Bandit:
    """Ito, Tsuchiya and Honda, "... Variance-Dependent Regret Bounds" (2022): LB-INF-V.

    p_t = argmin_q q.(m_t + L~_t) / G + sum_i beta_t(i) phi(q(i)), phi'(x) = 1 - 1/x - g ln(1 - x),
    g = ln T, L~_t the sum of l~_t(i) = m_t(i) + (l_t(i) - m_t(i)) [i = i_t] / p_t(i), and m_t(i)
    the regularised mean of the losses seen of arm i ("LS"), or what follows them by steps of 1/4
    ("GD"). beta(i)^2 starts at (6/5)^2 and grows, when arm i is played, by (l - m)^2
    min(1, 2 (1 - p) / (g p^2)) / (G^2 g). The expected regret is O(sum_i (v_i / gap_i + 1) ln T)
    for independent losses of variance v_i, and O(sqrt(n T ln T)) for all others, with less for
    small losses, a small variance or a short path. The rule is that of the authors' code for
    semi-bandits (2023) at one arm a round; with "GD" that code has m_{t+1} for m_t in the growth of
    beta, and here it is m_t.

    A round takes about four times as long as one of `scale_free`: p_t has no closed form even
    where its normaliser is known.

    Args:
      num_rounds: T, 2 or more.
      form: "LS" or "GD".
      scale: G, for losses in [0, G].
    """
    check_horizon(num_rounds, least=2)
    check_positive(scale=scale)
    return compose(
        sampling.as_played(),
        estimation.predicted_by_regression(form, scale),
        full_information.variance_adaptive_ftrl(num_rounds, form, scale),
    )


def tsallis_spm(scale: Array | float = 1.0) -> Bandit:
    """Ito, Tsuchiya and Honda, "Adaptive Learning Rate for FTRL ..." (2024): Tsallis-FTRL-SPM.

    Stability-penalty matching: p_t = argmin_q q.L~_t / G - beta_t phi_a(q) - 16 ln n phi_{1-a}(q),
    phi_c(q) = (sum_i q(i)^c - 1) / c, a = 1 - 1 / (4 ln n), on importance-weighted losses, with an
    exploration of 4 z_t / beta_t; beta_1 = 32 n ln n grows by z_t / (beta_t phi_a(p_t)), z_t =
    n min(m, 1 - m)^(1-a) / (1 - a), m the largest of p_t. The expected regret is at most
    G [64 n ln n (1 + ln n) + 24 (8 sqrt(T n ln n) + 1/4)], also against adversaries that answer,
    and O(ln T) for independent losses with a gap.

    A round takes about four times as long as one of `scale_free`: p_t has no closed form even where
    its normaliser is known.

    Args:
      scale: G, for losses in [-G, G].
    """
    check_positive(scale=scale)
    return compose(
        sampling.stability_matched(),
        estimation.importance_weighted(),
        full_information.stability_matched_ftrl(scale),
    )


def _hybrid_barrier(sum_of_squares, scale) -> Bandit:
    return compose(
        sampling.as_played(),
        estimation.importance_weighted(),
        full_information.hybrid_barrier_ftrl(sum_of_squares, scale=scale),
    )


def _broad(estimator, rate, scale, **options) -> Bandit:
    check_positive(rate=rate, scale=scale)
    if is_known(rate) and rate < LEAST_RATE:
        raise ValueError(f"rate is {rate!r}; give {LEAST_RATE:g} or more")
    return compose(
        sampling.as_played(),
        estimator,
        full_information.barrier_descent(rate / scale, **options),
    )
