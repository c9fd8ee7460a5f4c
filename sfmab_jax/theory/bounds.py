"""Upper bounds on the expected regret, from the norms of the losses."""

from typing import Literal, NamedTuple

import numpy as np

from sfmab_jax.norms import Norms

__all__ = ["ScaleFreeBound", "scale_free"]


class ScaleFreeBound(NamedTuple):
    """A bound of the paper in two readings, each [K, C]."""

    printed: np.ndarray  # the last explicit line of the proof, as it stands in the paper
    corrected: np.ndarray  # what the paper's chain of inequalities gives, for every T


def scale_free(
    norms: Norms, exploration: Literal["adaptive", "decaying"] = "adaptive"
) -> ScaleFreeBound:
    """Theorem 1 of the paper with its constants (section 6), at every checkpoint.

    With ell = log(1 + S_inf), adaptive exploration (option 2):

        2 + ell + sqrt(2 n L_2)(1 + ell) + 2 n L_inf (2 + L_inf)(1 + ell) + n L_inf
        + (2 L_inf (1 + ell) + 1) sqrt(2 n L_1),

    in both readings. Decaying exploration (option 1), printed for T >= 4n (NaN before):

        2 + ell + sqrt(2 n L_2)(1 + ell) + 2 L_inf sqrt(n T)(2 + ell).

    That line takes sum_t gamma_{t-1} <= sqrt(n T), which is false for T > 4n: the sum tends to
    twice that. The corrected reading keeps the sum G_1 as it is, and holds for every T:

        2 S_inf / (1 + S_inf) + ell + sqrt(2 n L_2)(1 + ell)
        + 2 n L_inf (1 + ell) max(2, sqrt(T / n)) + 2 L_inf G_1.
    """
    n, rounds = norms.num_arms, norms.rounds.astype(np.float64)
    ell = np.log1p(norms.s_inf)
    stability = np.sqrt(2 * n * norms.l_2) * (1 + ell)
    if exploration == "adaptive":
        exact = (
            2 + ell + stability
            + 2 * n * norms.l_inf * (2 + norms.l_inf) * (1 + ell)
            + n * norms.l_inf
            + (2 * norms.l_inf * (1 + ell) + 1) * np.sqrt(2 * n * norms.l_1)
        )  # fmt: skip
        return ScaleFreeBound(exact, exact)
    if exploration != "decaying":
        raise ValueError(f"exploration is {exploration!r}; choose 'adaptive' or 'decaying'")
    printed = 2 + ell + stability + 2 * norms.l_inf * np.sqrt(n * rounds) * (2 + ell)
    corrected = (
        2 * norms.s_inf / (1 + norms.s_inf) + ell + stability
        + 2 * n * norms.l_inf * (1 + ell) * np.maximum(2, np.sqrt(rounds / n))
        + 2 * norms.l_inf * _exploration_sums(n, norms.rounds)
    )  # fmt: skip
    return ScaleFreeBound(np.where(rounds >= 4 * n, printed, np.nan), corrected)


def _exploration_sums(num_arms: int, rounds: np.ndarray) -> np.ndarray:
    """G_1 = sum_{t<=tau} gamma_{t-1}, gamma_0 = 1/2, gamma_t = min(1/2, sqrt(n/t)), at each tau."""
    totals, total, done = [], 0.0, 0
    for tau in np.asarray(rounds, np.int64):
        t = np.arange(done, tau, dtype=np.float64)
        total += np.minimum(0.5, np.sqrt(num_arms / np.maximum(t, 1))).sum()
        totals.append(total)
        done = tau
    return np.array(totals)
