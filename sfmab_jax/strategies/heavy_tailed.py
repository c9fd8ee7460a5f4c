"""Bandit strategies for losses without a bound, of which a moment is finite."""

from jax import Array
from jax.tree_util import Partial

from sfmab_jax import estimation, full_information, heavy_tails, potentials, sampling, schedules
from sfmab_jax.base import Bandit
from sfmab_jax.checks import check_number
from sfmab_jax.compose import compose
from sfmab_jax.potentials.square_root import square_root, tsallis_of

__all__ = ["ada_tinf_horizon", "htinf", "uni_inf_horizon"]


def htinf(tail: Array | float = 2.0, size: Array | float = 1.0) -> Bandit:
    """Huang, Dai and Huang, "Adaptive Best-of-Both-Worlds ... Heavy-Tailed" (2022): HTINF.

    For losses with E|l|^a <= sigma^a: p_t = argmin Psi(x) + eta_t L~.x with
    Psi = -a sum(x^(1/a)), eta_t = 1 / (sigma t^(1/a)), importance weighting, but a loss with
    |l| > Theta x^(1/a) / eta_t, x = p_t(i_t), is skipped. Theta =
    min(1 - 2^(-(a-1)/(2a-1)), (2 - 2/a)^(1/(2-a))), at a = 2 1 - 2^(-1/3). The expected regret is
    O(sigma n^(1-1/a) T^(1/a)). A public code takes eta_{t+1} in the test for skipping; here it is
    eta_t, as in the paper, and no rounds are set aside to try each arm.

    Args:
      tail: a in (1, 2].
      size: sigma, in units of loss.
    """
    check_number("tail", tail, positive=True)
    check_number("size", size, positive=True)
    if not isinstance(tail, Array) and not 1 < tail <= 2:
        raise ValueError(f"tail is {tail}; it lies above 1 and is at most 2")
    return compose(
        sampling.as_played(),
        estimation.skipping(Partial(schedules.heavy_tail_limit, tail, size)),
        full_information.ftrl_by_arms(
            tsallis_of(1 / tail), Partial(schedules.heavy_tail_rate, tail, size)
        ),
    )


def ada_tinf_horizon(num_rounds: Array | float = 10_000) -> Bandit:
    """Huang, Dai and Huang, "Adaptive Best-of-Both-Worlds ... Heavy-Tailed" (2022): AdaTINF.

    HTINF with a = 2 and sigma = 2^J, J = 0 at first, neither the tail nor its size known. A round
    costs c_t = 2 eta_t l^2 / sqrt(x), or |l| if skipped; when the costs S since the last change
    exceed 2^J sqrt(n (T + 1)), J becomes max(J + 1, ceil(log2(c_t / sqrt(n (T + 1)))) + 1) and S
    restarts at c_t. The expected regret is O(sigma n^(1-1/a) T^(1/a)). The restart at c_t follows
    a public code, which however lacks the root in log2(c_t / sqrt(...)). The 1 in 2^0 is in units
    of loss.
    """
    check_number("num_rounds", num_rounds, positive=True)
    return compose(
        sampling.as_played(),
        heavy_tails.doubling_skipping(num_rounds),
        heavy_tails.doubling_ftrl(square_root(), num_rounds),
    )


def uni_inf_horizon(num_rounds: Array | float = 10_000) -> Bandit:
    """Chen, Huang, Dai and Huang, "uniINF: ... Parameter-Free Heavy-Tailed MABs" (2025): uniINF.

    p_t = argmin -S_t sum(log x) + L~.x, S_1 = 4 in units of loss; with x = p_t(i_t) and
    C_t = S_t / (4 (1 - x)), a loss |l| >= C_t is skipped in L~, and clipped to +-C_t in
    S_{t+1}^2 = S_t^2 + clip(l)^2 (1 - x)^2 / (n ln T). The expected regret is
    O~(sigma n^(1-1/a) T^(1/a)) for losses with E|l|^a <= sigma^a, neither known.
    """
    check_number("num_rounds", num_rounds, positive=True)
    return compose(
        sampling.as_played(),
        heavy_tails.balanced_skipping(num_rounds),
        heavy_tails.balanced_ftrl(potentials.log_barrier(), num_rounds),
    )
