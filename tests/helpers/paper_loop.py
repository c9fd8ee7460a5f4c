"""Algorithm 1 of the paper as a plain NumPy loop in float64, transcribed line by line.

It shares no code with the package and makes no attempt at speed: the two optimisation problems of
a round, the mixability gap and the FTRL step, are solved through their optimality conditions by
bisection for the multiplier of sum(q) = 1.
"""

from typing import NamedTuple

import numpy as np
from loop_parts import bisect


class Trajectory(NamedTuple):
    """What the loop saw; entry t - 1 belongs to round t, T in all."""

    arms: np.ndarray  # i_t [T]
    probabilities: np.ndarray  # p'_t [T, n]
    gaps: np.ndarray  # M_t(eta_{t-1}) [T]
    learning_rate: np.ndarray  # eta_t [T]
    exploration: np.ndarray  # gamma_t [T]
    play: np.ndarray  # p_{t+1} [T, n]
    estimates: np.ndarray  # sum_{s <= t} of the estimated losses [T, n]


def ftrl(learning_rate, totals):
    """argmin over the simplex of F(q) + eta q.L, where F(q) = -sum(log q) up to a constant.

    Setting the gradient of the Lagrangian to zero, 1/q(i) = eta L(i) + const. With the smallest
    L subtracted, 1/q(i) = x(i) + m with m = 1/max(q), which lies between 1 and n.
    """
    gaps = learning_rate * (totals - totals.min())
    m = bisect(lambda m: 1 - np.sum(1 / (gaps + m)), 1.0, float(len(totals)))
    q = 1 / (gaps + m)
    return q / q.sum()


def minus_log1p(z):
    """z - log(1 + z), by its power series near zero where the difference cancels."""
    small = np.abs(z) < 0.1
    near = np.where(small, z, 0)
    series = sum((-near) ** k / k for k in range(2, 21))  # the next term is below 1e-22
    return np.where(small, series, z - np.log1p(z))


def mixability_gap(learning_rate, play, estimate):
    """sup over the simplex of l.(p - q) - Breg_F(q || p) / eta.

    At the maximiser 1/q(i) = 1/p(i) + eta l(i) + shift. Where that moves p only a little, the
    shift is found from sum(p - q) = 0 with p - q written without cancellation; elsewhere from
    sum(q) = 1 with 1/q written as its gap to the leader's, plus m = 1/max(q).
    """
    loss = learning_rate * estimate
    if np.max(np.abs(loss)) <= 0.5:

        def excess(shift):
            z = play * (loss + shift)
            return np.sum(play * z / (1 + z))

        shift = bisect(excess, -loss.max(), -loss.min())
        z = play * (loss + shift)
        move = -z / (1 + z)  # q/p - 1
    else:
        inverse = 1 / play + loss
        gaps = inverse - inverse.min()
        m = bisect(lambda m: 1 - np.sum(1 / (gaps + m)), 1.0, float(len(play)))
        move = 1 / (gaps + m) / play - 1
    # Breg_F(q || p) = sum of q/p - 1 - log(q/p).
    divergence = np.sum(minus_log1p(move))
    return np.sum(-estimate * play * move) - divergence / learning_rate


def inverse_cdf(probabilities, uniform):
    """The arm i with C(i - 1) <= u C(n - 1) < C(i), C the running sums of the probabilities."""
    running = np.cumsum(probabilities)
    return int(np.searchsorted(running, uniform * running[-1], side="right"))


def play_game(losses, exploration, uniforms=None, arms=None):
    """Algorithm 1 on the losses [T, n], with arms drawn from uniforms [T] or given [T].

    ``exploration`` is "decaying" (option 1) or "adaptive" (option 2).
    """
    losses = np.asarray(losses, np.float64)
    num_rounds, n = len(losses), losses.shape[1]
    eta, gamma = float(n), 0.5
    p = np.full(n, 1 / n)
    sum_of_gaps, sum_of_masses = 0.0, 0.0
    totals = np.zeros(n)
    rows = []
    for t in range(1, num_rounds + 1):
        sampled = (1 - gamma) * p + gamma / n
        arm = int(arms[t - 1]) if uniforms is None else inverse_cdf(sampled, uniforms[t - 1])
        loss = losses[t - 1, arm]
        estimate = np.zeros(n)
        estimate[arm] = loss / sampled[arm]
        if exploration == "decaying":
            gamma = min(1 / 2, np.sqrt(n / t))
        else:
            sum_of_masses += gamma * abs(loss) / ((1 - gamma) * p[arm] + gamma / n)
            gamma = n / (2 * n + sum_of_masses)
        gap = mixability_gap(eta, p, estimate)
        sum_of_gaps += gap
        eta = n / (1 + sum_of_gaps)
        totals = totals + estimate
        p = ftrl(eta, totals)
        rows.append((arm, sampled, gap, eta, gamma, p, totals))
    return Trajectory(*(np.array(column) for column in zip(*rows)))
