"""Strategies for unbounded losses with a finite moment.

The bounds of `htinf`, `ada_tinf_horizon` and `uni_inf_horizon` need *truncated non-negativity*: the
losses of the best arm have E l [|l| > M] >= 0 for every M, so that skipping large ones does not
make it look worse. Those of `omd_lb_heavy_tails_horizon` do not.
"""

from jax import Array
from jax.tree_util import Partial

from sfmab_jax import estimation, full_information, potentials, sampling
from sfmab_jax.base import Bandit
from sfmab_jax.checks import check_horizon, check_positive, check_probability, is_known
from sfmab_jax.compose import compose
from sfmab_jax.potentials.tsallis import square_root, tsallis_of
from sfmab_jax.strategies import schedules

__all__ = ["ada_tinf_horizon", "htinf", "omd_lb_heavy_tails_horizon", "uni_inf_horizon"]

# For these, products of the rates stay in float32's range.
LEAST_SIZE, LARGEST_SIZE, LEAST_RATE, LEAST_FAILURE = 1e-15, 1e15, 1e-24, 1e-31


def htinf(tail: Array | float = 2.0, size: Array | float = 1.0) -> Bandit:
    """Huang, Dai and Huang, "Adaptive Best-of-Both-Worlds ... Heavy-Tailed" (2022): HTINF.

    For losses with E|l|^a <= sigma^a: p_t = argmin Psi(x) + eta_t L~.x with
    Psi = -a sum(x^(1/a)), eta_t = 1 / (sigma t^(1/a)) and importance weighting that skips losses
    |l| > Theta x^(1/a) / eta_t, x = p_t(i_t), where Theta =
    min(1 - 2^(-(a-1)/(2a-1)), (2 - 2/a)^(1/(2-a))), which is 1 - 2^(-1/3) at a = 2. The expected
    regret is O(sigma n^(1-1/a) T^(1/a)) if the best arm's losses are truncated non-negative, that
    is E l [|l| > M] >= 0 for every M. A public code skips by eta_{t+1}; here it is eta_t, as in
    the paper, and no rounds are set aside to try each arm.

    Args:
      tail: a in (1, 2].
      size: sigma, in units of loss.
    """
    _check_tail(tail, size)
    return compose(
        sampling.as_played(),
        estimation.skipping(Partial(schedules.heavy_tail_limit, tail, size)),
        full_information.ftrl_by_arms(
            tsallis_of(1 / tail), Partial(schedules.heavy_tail_rate, tail, size)
        ),
    )


def ada_tinf_horizon(num_rounds: Array | float = 10_000) -> Bandit:
    """Huang, Dai and Huang, "Adaptive Best-of-Both-Worlds ... Heavy-Tailed" (2022): AdaTINF.

    `htinf` at a = 2 with sigma = 2^J in units of loss, J = 0 at first: neither tail nor size is
    known. A round costs c_t = 2 eta_t l^2 / sqrt(x), or |l| if skipped; when the costs S since the
    last change exceed 2^J sqrt(n (T + 1)), J becomes
    max(J + 1, ceil(log2(c_t / sqrt(n (T + 1)))) + 1) and S restarts at c_t. The expected regret is
    O(sigma n^(1-1/a) T^(1/a)) if the best arm's losses are truncated non-negative, as in `htinf`.
    The restart at c_t follows a public code, which however lacks the
    root in log2(c_t / sqrt(...)).

    Args:
      num_rounds: T.
    """
    return compose(
        sampling.as_played(),
        estimation.doubling_skipping(num_rounds),
        full_information.doubling_ftrl(square_root(), num_rounds),
    )


def uni_inf_horizon(num_rounds: Array | float = 10_000) -> Bandit:
    """Chen, Huang, Dai and Huang, "uniINF: ... Parameter-Free Heavy-Tailed MABs" (2025): uniINF.

    p_t = argmin -S_t sum(log x) + L~.x, S_1 = 4 in units of loss. With x = p_t(i_t) and
    C_t = S_t / (4 (1 - x)), a loss |l| >= C_t is skipped in L~, and clipped to +-C_t in
    S_{t+1}^2 = S_t^2 + clip(l)^2 (1 - x)^2 / (n ln T). The expected regret is
    O~(sigma n^(1-1/a) T^(1/a)) for losses with E|l|^a <= sigma^a, neither known, if those of the
    best arm are truncated non-negative, as in `htinf`.

    Args:
      num_rounds: T, 2 or more.
    """
    return compose(
        sampling.as_played(),
        estimation.balanced_skipping(num_rounds),
        full_information.balanced_ftrl(potentials.log_barrier(), num_rounds),
    )


def omd_lb_heavy_tails_horizon(
    num_rounds: Array | float = 10_000,
    tail: Array | float = 2.0,
    size: Array | float = 1.0,
    failure: Array | float = 0.05,
    rate: Array | float | None = None,
) -> Bandit:
    """Cheng, Zhou and Ji, "Taming Heavy-Tailed Losses ..." (2024): OMD-LB-HT, for known T.

    The rule and its constants are the paper's; the default values of the arguments are chosen here.
    Unlike `htinf`, `ada_tinf_horizon` and `uni_inf_horizon` it needs no truncated non-negativity.

    For losses with E|l|^a <= sigma^a of either sign: losses |l| > M = sigma (T / n)^(1/a) are
    skipped, the others importance weighted; log-barrier mirror descent on {w_i >= f / n},
    f = T^(-(a-1)/a) n^(-1/a), with a rate for each arm, at first
    1 / (40 M ln T ln(8 n T / delta)). Whenever 1/w_i exceeds rho_i, which starts at 2n, rho_i
    becomes 2/w_i and the rate of arm i grows by the factor exp(1 / ln T). With probability
    1 - delta the regret is O~(sigma n^(1-1/a) T^(1/a)).

    Args:
      num_rounds: T, 2 or more.
      tail: a in (1, 2], 1 + v in the paper.
      size: sigma, in units of loss.
      failure: delta, the probability that the bound fails.
      rate: the first rate, per unit of loss, in place of that above, which is so small that the
        play hardly leaves the uniform law in fewer than a million rounds.
    """
    check_horizon(num_rounds, least=2)
    _check_tail(tail, size)
    if is_known(size) and not LEAST_SIZE <= size <= LARGEST_SIZE:
        raise ValueError(
            f"size is {size!r}; give {LEAST_SIZE:g} to {LARGEST_SIZE:g}, with losses in that unit"
        )
    check_probability("failure", failure)
    if is_known(failure) and failure < LEAST_FAILURE:
        raise ValueError(f"failure is {failure!r}; give a probability of {LEAST_FAILURE:g} or more")
    if rate is not None:
        check_positive(rate=rate)
        if is_known(rate) and not LEAST_RATE <= rate <= 1 / LEAST_RATE:
            raise ValueError(f"rate is {rate!r}; give {LEAST_RATE:g} to {1 / LEAST_RATE:g}")
    theory = Partial(schedules.heavy_descent_rate, num_rounds, tail, size, failure)
    return compose(
        sampling.as_played(),
        estimation.skipping_above(Partial(schedules.heavy_descent_limit, num_rounds, tail, size)),
        full_information.barrier_descent(
            theory if rate is None else rate,
            correction=0.0,
            num_rounds=num_rounds,
            floor=Partial(schedules.heavy_descent_floor, num_rounds, tail),
        ),
    )


def _check_tail(tail, size) -> None:
    check_positive(tail=tail, size=size)
    if is_known(tail) and not 1 < tail <= 2:
        raise ValueError(f"tail is {tail!r}; it lies above 1 and is at most 2")
