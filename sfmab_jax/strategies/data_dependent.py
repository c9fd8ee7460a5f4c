"""Strategies whose bounds shrink on easy losses, in a range known as ``scale``.

Left out, as their rules could not be stated exactly from the sources at hand: the variance bound
of Hazan and Kale (2011), whose reservoir also needs random numbers of its own, and the hybrid of
entropy and log barrier of Bubeck, Cohen and Li (2018).
"""

from jax import Array
from jax.tree_util import Partial

from sfmab_jax import estimation, full_information, potentials, sampling
from sfmab_jax.base import Bandit
from sfmab_jax.checks import check_horizon, check_number, check_positive, is_known
from sfmab_jax.compose import compose
from sfmab_jax.strategies import schedules

__all__ = [
    "broad",
    "broad_increasing_horizon",
    "broad_optimistic",
    "bubeck_li_luo_wei_horizon",
    "green_horizon",
    "log_barrier_horizon",
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
    """Foster, Li, Lykouris, Sridharan and Tardos (2016): log-barrier OMD with a small-loss bound.

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
    """Allenberg, Auer, Gyorfi and Ottucsak (2006): Green.

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


def _broad(estimator, rate, scale, **options) -> Bandit:
    check_positive(rate=rate, scale=scale)
    if is_known(rate) and rate < LEAST_RATE:
        raise ValueError(f"rate is {rate!r}; give {LEAST_RATE:g} or more")
    return compose(
        sampling.as_played(),
        estimator,
        full_information.barrier_descent(rate / scale, **options),
    )
