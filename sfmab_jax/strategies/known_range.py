"""Strategies for losses in [0, G], G known as ``scale``."""

from collections.abc import Callable

from jax import Array
from jax.tree_util import Partial

from sfmab_jax import estimation, full_information, potentials, sampling
from sfmab_jax.base import Bandit
from sfmab_jax.checks import (
    check_horizon,
    check_number,
    check_positive,
    check_probability,
    is_known,
)
from sfmab_jax.compose import compose
from sfmab_jax.potentials.tsallis import square_root, tsallis_of
from sfmab_jax.strategies import schedules

__all__ = [
    "exp3",
    "exp3_gamma_horizon",
    "exp3_horizon",
    "exp3_in_batches_horizon",
    "exp3_ix",
    "exp3_ix_horizon",
    "exp3_p_horizon",
    "exp3_plus_plus",
    "exp3_s_horizon",
    "exp3_side_information",
    "poly_inf_horizon",
    "tsallis_inf",
    "tsallis_inf_delayed",
    "tsallis_inf_rv",
]

# Of any number of arms n / delta is finite in float32 then.
LEAST_FAILURE = 1e-31


def exp3(scale: Array | float = 1.0, learning_rate: schedules.Rate | None = None) -> Bandit:
    """Bubeck and Cesa-Bianchi, "Regret Analysis of ... Bandit Problems" (2012): Exp3, any-time.

    p_{t+1} is proportional to exp(-eta_t sum_{s<=t} l~_s), importance-weighted losses, eta_t =
    sqrt(ln n / (t n)) / G. The expected regret is at most 2 G sqrt(T n ln n) (Theorem 3.1).

    Args:
      scale: G.
      learning_rate: eta, per unit of loss, in place of that above: a positive number, or a function
        of the number of rounds played t = 0, 1, ... (a float []).

    >>> bandit = exp3(learning_rate=0.25)
    >>> print(bandit.init(4).full_information.learning_rate)
    0.25
    """
    check_positive(scale=scale)
    return _exponential_weights(
        schedules.rate_or(Partial(schedules.exp3_rate, scale), learning_rate)
    )


def exp3_horizon(
    num_rounds: Array | float = 10_000,
    scale: Array | float = 1.0,
    learning_rate: schedules.Rate | None = None,
) -> Bandit:
    """Bubeck and Cesa-Bianchi, "Regret Analysis of ... Bandit Problems" (2012): Exp3 for known T.

    As `exp3` with eta = sqrt(2 ln n / (n T)) / G. The expected regret is at most
    G sqrt(2 T n ln n) (Theorem 3.1).

    Args:
      num_rounds: T.
      scale: G.
      learning_rate: eta in place of that above, as in `exp3`.
    """
    check_horizon(num_rounds)
    check_positive(scale=scale)
    rate = Partial(schedules.exp3_horizon_rate, num_rounds, scale)
    return _exponential_weights(schedules.rate_or(rate, learning_rate))


def exp3_gamma_horizon(num_rounds: Array | float = 10_000, scale: Array | float = 1.0) -> Bandit:
    """Auer, Cesa-Bianchi, Freund and Schapire (2002): Exp3 as first published, for known T.

    On gains x = 1 - l/G: p' = (1 - g) w / sum(w) + g/n, w_i grows by the factor exp(g x~_i / n),
    x~ the importance-weighted gain, g = min(1, sqrt(n ln n / ((e - 1) T))). The expected regret
    is at most 2 sqrt(e - 1) G sqrt(T n ln n) (Corollary 3.2, with T as the bound on the best
    gain).

    Args:
      num_rounds: T.
      scale: G.
    """
    check_horizon(num_rounds)
    check_positive(scale=scale)
    return compose(
        sampling.scheduled(Partial(schedules.auer_exploration, num_rounds)),
        estimation.gain_weighted(scale),
        full_information.ftrl_by_arms(
            potentials.negative_entropy(), Partial(schedules.auer_rate, num_rounds, scale)
        ),
    )


def exp3_in_batches_horizon(
    num_rounds: Array | float = 10_000,
    scale: Array | float = 1.0,
    learning_rate: schedules.Rate | None = None,
) -> Bandit:
    """Arora, Dekel and Tewari (2012): Exp3 on batches of rounds with one arm each, for known T.

    `exp3_horizon` on the mean losses of T / b batches of b = T^(1/3) rounds, rounded up; the
    length, without a constant, is chosen here. Against an adversary with bounded memory, switching
    costs among them, the policy regret is of the order of T^(2/3), the best possible; Exp3 itself
    has no such bound.

    Args:
      num_rounds: T.
      scale: G.
      learning_rate: eta for a batch, in place of sqrt(2 b ln n / (n T)) / G, as in `exp3`.
    """
    check_horizon(num_rounds)
    check_positive(scale=scale)
    length = schedules.batch_length(num_rounds)
    rate = Partial(schedules.exp3_in_batches_rate, num_rounds, scale)
    return compose(
        sampling.in_batches(length),
        estimation.in_batches(length),
        full_information.ftrl_by_arms(
            potentials.negative_entropy(), schedules.rate_or(rate, learning_rate)
        ),
    )


def exp3_p_horizon(
    num_rounds: Array | float = 10_000,
    failure: Array | float = 0.05,
    scale: Array | float = 1.0,
    learning_rate: schedules.Rate | None = None,
) -> Bandit:
    """Auer et al. (2002), as in Bubeck and Cesa-Bianchi (2012), Theorem 3.3: Exp3.P, for known T.

    On gains g = 1 - l/G: g~_i = (g_i [i = i_t] + b) / p'_i, p' = (1 - g) softmax(eta G~) + g/n,
    b = sqrt(ln(n / delta) / (n T)), eta = 0.95 sqrt(ln n / (n T)), g = 1.05 sqrt(n ln n / T) (at
    most 1/2 here). With probability 1 - delta the regret is at most
    5.15 G sqrt(T n ln(n / delta)). The constants are the survey's; those of 2002 differ.

    Args:
      num_rounds: T.
      failure: delta, the probability that the bound fails, above 0.
      scale: G.
      learning_rate: eta in place of that above, as in `exp3`; g and b stay.
    """
    check_probability("failure", failure)
    if is_known(failure) and failure < LEAST_FAILURE:
        raise ValueError(f"failure is {failure!r}; give a probability of {LEAST_FAILURE:g} or more")
    check_horizon(num_rounds)
    check_positive(scale=scale)
    rate = schedules.rate_or(Partial(schedules.exp3_p_rate, num_rounds, scale), learning_rate)
    return compose(
        sampling.scheduled(Partial(schedules.exp3_p_exploration, num_rounds)),
        estimation.gain_weighted(scale, Partial(schedules.exp3_p_bonus, num_rounds, failure)),
        full_information.ftrl_by_arms(potentials.negative_entropy(), rate),
    )


def exp3_ix(scale: Array | float = 1.0, learning_rate: schedules.Rate | None = None) -> Bandit:
    """Neu, "Explore No More" (2015): Exp3-IX, any-time.

    p_t is proportional to exp(-eta_t sum_{s<t} l~_s), l~_t(i) = l_t(i) [i = i_t] / (p_t(i) + g_t),
    with g_t = sqrt(ln n / (n t)) / 2 and eta_t = 2 g_t / G. The regret is O(G sqrt(T n ln n)) with
    high probability, for all levels at once (Corollary 1).

    Args:
      scale: G.
      learning_rate: eta in place of that above, as in `exp3`; g_t = G eta_t / 2 with it.
    """
    rate = Partial(schedules.implicit_rate, scale)
    return _implicit(rate, schedules.implicit_bias, scale, learning_rate)


def exp3_ix_horizon(
    num_rounds: Array | float = 10_000,
    scale: Array | float = 1.0,
    learning_rate: schedules.Rate | None = None,
) -> Bandit:
    """Neu, "Explore No More" (2015): Exp3-IX for known T.

    As `exp3_ix` with g = sqrt(2 ln n / (n T)) / 2 and eta = 2 g / G. The regret is
    O(G sqrt(T n ln n)) with high probability (Theorem 1).

    Args:
      num_rounds: T.
      scale: G.
      learning_rate: as in `exp3_ix`.
    """
    check_horizon(num_rounds)
    rate = Partial(schedules.exp3_horizon_rate, num_rounds, scale)
    bias = Partial(schedules.implicit_horizon_bias, num_rounds)
    return _implicit(rate, bias, scale, learning_rate)


def exp3_plus_plus(
    alpha: Array | float = 3.0,
    beta: Array | float = 256.0,
    scale: Array | float = 1.0,
    learning_rate: schedules.Rate | None = None,
) -> Bandit:
    """Seldin and Lugosi (2017), after Seldin and Slivkins (2014): Exp3++.

    Exponential weights with eta_t = sqrt(ln n / (t n)) / 2 on importance-weighted losses, and
    exploration e_t(a) = min(1/(2n), eta_t, beta ln t / (t D_t(a)^2)) of arm a, D_t(a) a lower
    bound on its gap: see `sampling.gap_exploration`. The expected regret is at most
    4 G sqrt(T n ln n), and O(sum_a (ln T)^2 / gap_a) for independent losses. Here no round is set
    aside to play each arm once: an arm not played has the confidence interval [0, G].

    Args:
      alpha, beta: as in `sampling.gap_exploration`.
      scale: G.
      learning_rate: of the weights, in place of eta_t, as in `exp3`; the exploration stays.
    """
    rate = schedules.rate_or(Partial(schedules.exp3_plus_plus_rate, scale), learning_rate)
    return compose(
        sampling.gap_exploration(alpha, beta, scale),
        estimation.importance_weighted(),
        full_information.ftrl_by_arms(potentials.negative_entropy(), rate),
    )


def exp3_s_horizon(
    num_rounds: Array | float = 10_000,
    switches: Array | float = 5,
    scale: Array | float = 1.0,
) -> Bandit:
    """Auer, Cesa-Bianchi, Freund and Schapire (2002): Exp3.S, to track the best arm, for known T.

    Its default of m = 5 switches is a choice of this package; give your own. The rule, with its
    learning rate and share, is that of the paper's section 8.

    On gains x = 1 - l/G as `exp3_gamma_horizon`, with a share a = 1/T that brings back arms which
    were bad for long: p' = (1 - g) w / sum(w) + g/n and w_{t+1}(i) = w_t(i) exp(g x~_i / n) +
    (e a / n) sum_j w_t(j), g = min(1, sqrt(n (S ln(n T) + e) / ((e - 1) T))), S = m + 1. Against
    every sequence of arms with at most m switches the expected regret is at most
    2 sqrt(e - 1) G sqrt(n T (S ln(n T) + e)) (Corollary 8.3).

    Args:
      num_rounds: T.
      switches: m, not negative.
      scale: G.
    """
    check_horizon(num_rounds)
    check_number("switches", switches)
    if is_known(switches) and switches < 0:
        raise ValueError(f"switches is {switches!r}; it cannot be negative")
    check_positive(scale=scale)
    return compose(
        sampling.scheduled(Partial(schedules.exp3_s_exploration, num_rounds, switches)),
        estimation.gain_weighted(scale),
        full_information.fixed_share(
            Partial(schedules.exp3_s_rate, num_rounds, switches, scale),
            Partial(schedules.exp3_s_share, num_rounds),
        ),
    )


def exp3_side_information(
    centre: Array | float | Callable[[Array], Array] = 0.5, spread: Array | float = 1.0
) -> Bandit:
    """Cesa-Bianchi and Shamir, "... the Effective Loss Range" (2018), rate chosen here.

    Exp3 on l_t - m_t, m_t side information with |l_t(i) - m_t| <= spread for all i:
    l~_t(i) = (l_t(i) - m_t) [i = i_t] / p'_t(i) + m_t. The idea is theirs, the constants are set
    here: g_t = min(1/2, sqrt(n ln n / t)) of uniform exploration and eta_t = g_t / (n spread), so
    that always |eta (l~ - m)| <= 1, which gives an expected regret of O(spread sqrt(T n ln n))
    whatever the size of the losses.

    Args:
      centre: m in units of loss, a number, or a function of the round t = 1, 2, ... (a float [])
        that returns m_t [].
      spread: the effective range, in units of loss.
    """
    check_positive(spread=spread)
    return compose(
        sampling.scheduled(schedules.side_information_exploration),
        estimation.centred(centre),
        full_information.ftrl_by_arms(
            potentials.negative_entropy(), Partial(schedules.side_information_rate, spread)
        ),
    )


def poly_inf_horizon(
    num_rounds: Array | float = 10_000,
    q: Array | float = 2.0,
    scale: Array | float = 1.0,
    learning_rate: schedules.Rate | None = None,
) -> Bandit:
    """Audibert and Bubeck, "Minimax Policies for ... Bandits" (2009): INF with a power, known T.

    p_i = (eta (L~_i - x))^(-q), x < min(L~) such that sum(p) = 1. For q = 2, eta = sqrt(2/T) / G
    as published, and the expected regret is at most 2 G sqrt(2 n T). For other q > 1, with
    c = 1 - 1/q, eta = sqrt(2 (1/c - 1) n^(1 - 2c) / T) / G, the minimiser here of
    n^(1 - c) / (c eta) + eta T n^c / (2 (1 - c)), which agrees at q = 2.

    Args:
      num_rounds: T.
      q: the power, above 1.
      scale: G.
      learning_rate: eta in place of that above, as in `exp3`.
    """
    check_horizon(num_rounds)
    check_positive(q=q, scale=scale)
    if is_known(q) and not 1 < q <= 2**23:
        raise ValueError(f"q is {q!r}; the power of INF is above 1, and at most 2^23 in float32")
    power = 1 - 1 / q
    theory = Partial(schedules.inf_horizon_rate, power, num_rounds, scale)
    rate = schedules.rate_or(theory, learning_rate, factor=power)
    return compose(
        sampling.as_played(),
        estimation.importance_weighted(),
        full_information.ftrl_by_arms(tsallis_of(power), rate),
    )


def tsallis_inf(
    power: Array | float = 0.5,
    scale: Array | float = 1.0,
    learning_rate: schedules.Rate | None = None,
) -> Bandit:
    """Zimmert and Seldin, "Tsallis-INF" (2021), with importance weighting.

    w_i = 4 (eta_t (L~_i - x))^(-2), sum(w) = 1, eta_t = 2 / (G sqrt(t)). The expected regret is at
    most 4 G sqrt(n T) + 1, and logarithmic for stochastic losses with a gap (Theorem 1). For
    another power c, p_t = argmin_q q.L~_t - sum(q^c) / (eta_t c (1 - c)), with the published rate
    eta_t = (16^c / 4) (1 - s^(c-1)) / (G (1 - c) t^c), s = max(e, t), which at 1/2 would be
    2 (1 - 1/sqrt(s)) / (G sqrt(t)). It is for stochastic losses, where the paper also weighs each
    arm with a power of its gap, which is not known here; for a fixed number of arms the expected
    regret on all others is of the order of T^max(c, 1 - c).

    Args:
      power: c, between 0 and 1.
      scale: G.
      learning_rate: eta in place of that above, as in `exp3`, with the regulariser
        -sum(x^c) / (c (1 - c)), which is the paper's.
    """
    check_positive(power=power, scale=scale)
    is_half = not isinstance(power, Array) and power == 0.5
    theory = schedules.inf_rate if is_half else schedules.tsallis_inf_rate
    rate = schedules.rate_or(
        Partial(theory, power, scale), learning_rate, factor=power * (1 - power)
    )
    return compose(
        sampling.as_played(),
        estimation.importance_weighted(),
        full_information.ftrl_by_arms(tsallis_of(power), rate),
    )


def tsallis_inf_rv(
    scale: Array | float = 1.0, learning_rate: schedules.Rate | None = None
) -> Bandit:
    """Zimmert and Seldin, "Tsallis-INF" (2021), with reduced variance.

    As `tsallis_inf` with eta_t = 4 / (G sqrt(t)) and
    l~_t(i) = (l_t(i) - B_t(i)) [i = i_t] / w_t(i) + B_t(i) for every arm i,
    B_t(i) = (G/2) [w_t(i) >= 16 / t]. The expected regret is at most
    2 G sqrt(n T) + O(n ln T) (Theorem 1).

    Args:
      scale: G.
      learning_rate: eta in place of that above, as in `exp3`; B_t has G^2 eta_t^2 for 16 / t then.
    """
    threshold: Callable = schedules.reduced_variance_threshold
    if learning_rate is not None:
        in_range = schedules.rate_or(threshold, learning_rate, factor=scale)
        threshold = Partial(schedules.square_of, in_range)
    rate = schedules.rate_or(
        Partial(schedules.reduced_variance_rate, scale), learning_rate, factor=0.25
    )
    return compose(
        sampling.as_played(),
        estimation.reduced_variance(threshold, scale),
        full_information.ftrl_by_arms(square_root(), rate),
    )


def tsallis_inf_delayed(scale: Array | float = 1.0) -> Bandit:
    """Zimmert and Seldin, "... Adversarial Bandits with Arbitrary Delays" (2020): hybrid FTRL.

    For ``simulate(delay=...)``. p_t = argmin_q q.L_t / G - 2 sqrt(t) sum(sqrt(q)) +
    sqrt(2 D_t / ln n) sum(q ln q), L_t the importance-weighted losses that have arrived, each
    weighted with the law that its arm was drawn from, and D_t the number of missing observations
    added up over the rounds to t. Neither T nor the delays need be known. The expected regret is
    O(G (sqrt(n T) + sqrt(D ln n))), D the sum of all delays; without delay it is `tsallis_inf`.

    Args:
      scale: G.
    """
    check_positive(scale=scale)
    return compose(
        sampling.as_played(),
        estimation.importance_weighted(),
        full_information.delayed_ftrl(scale),
    )


def _implicit(rate, bias, scale, learning_rate) -> Bandit:
    check_positive(scale=scale)
    if learning_rate is not None:
        bias = schedules.rate_or(bias, learning_rate, factor=0.5 * scale)
    return _exponential_weights(
        schedules.rate_or(rate, learning_rate), estimation.implicit_exploration(bias)
    )


def _exponential_weights(rate, estimator=None) -> Bandit:
    return compose(
        sampling.as_played(),
        estimation.importance_weighted() if estimator is None else estimator,
        full_information.ftrl_by_arms(potentials.negative_entropy(), rate),
    )
