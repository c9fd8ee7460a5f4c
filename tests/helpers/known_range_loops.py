"""Strategies that know the range of the losses, and controls, as plain NumPy loops in float64.

Nothing here uses the package. Each function is given the arms [T] and the losses [T, n] of all
arms, looks only at what its strategy may see, and returns the laws of the arms before rounds
1 ... T + 1, [T + 1, n]. Normalisers come from bisection, gaps from their definitions.
"""

import numpy as np
from loop_parts import (
    barrier_weights,
    bisect,
    exponential_weights,
    one,
    power_weights,
    softmax,
    uniformly,
    weigh,
    weighted,
)
from scipy.optimize import brentq
from scipy.special import wrightomega

# Known range.


def exp3(arms, losses, scale=1.0):
    n = losses.shape[1]
    # The law of round t uses the rate of round t - 1: p_{t+1} ~ exp(-eta_t L_t).
    return exponential_weights(
        arms, losses, lambda t: np.sqrt(np.log(n) / (max(t - 1, 1) * n)) / scale, weigh
    )


def exp3_horizon(arms, losses, horizon=10_000):
    n = losses.shape[1]
    return exponential_weights(
        arms, losses, lambda t: np.sqrt(2 * np.log(n) / (n * horizon)), weigh
    )


def exp3_in_batches_horizon(arms, losses, horizon=10_000):
    """Exp3 on the mean losses of batches of ceil(T^(1/3)) rounds, each with one arm."""
    n, length = losses.shape[1], int(np.ceil(np.cbrt(horizon)))
    rate = np.sqrt(2 * np.log(n) / (n * (horizon / length)))
    estimates, laws = np.zeros(n), []
    for t in range(len(losses) + 1):
        place = t % length
        if place == 0:
            if t:
                batch = slice(t - length, t)
                arm = arms[t - length]
                mean = losses[np.arange(t - length, t), arms[batch]].mean()
                estimates[arm] += mean / laws[t - length][arm]
            laws.append(softmax(-rate * estimates))
        else:
            laws.append(one(n, arms[t - 1]))
    return np.array(laws)


def exp3_gamma_horizon(arms, losses, horizon=10_000):
    """With weights, as in 2002."""
    n = losses.shape[1]
    gamma = min(1, np.sqrt(n * np.log(n) / ((np.e - 1) * horizon)))
    weights, laws = np.ones(n), []
    for t in range(len(losses) + 1):
        laws.append((1 - gamma) * weights / weights.sum() + gamma / n)
        if t < len(losses):
            arm = arms[t]
            gain = (1 - losses[t, arm]) / laws[-1][arm]
            weights[arm] *= np.exp(gamma * gain / n)
    return np.array(laws)


def exp3_p_horizon(arms, losses, horizon=10_000, failure=0.05):
    n = losses.shape[1]
    beta = np.sqrt(np.log(n / failure) / (n * horizon))
    eta = 0.95 * np.sqrt(np.log(n) / (n * horizon))
    gamma = 1.05 * np.sqrt(n * np.log(n) / horizon)
    gains, laws = np.zeros(n), []
    for t in range(len(losses) + 1):
        laws.append((1 - gamma) * softmax(eta * gains) + gamma / n)
        if t < len(losses):
            arm = arms[t]
            gains += ((1 - losses[t, arm]) * one(n, arm) + beta) / laws[-1]
    return np.array(laws)


def exp3_ix(arms, losses, horizon=None):
    n = losses.shape[1]

    def rate(t):
        if horizon is None:
            return np.sqrt(np.log(n) / (n * t))
        return np.sqrt(2 * np.log(n) / (n * horizon))

    def estimate(t, law, arm, loss):
        return one(n, arm) * loss / (law[arm] + rate(t) / 2)

    return exponential_weights(arms, losses, rate, estimate)


def exp3_plus_plus(arms, losses, alpha=3.0, beta=256.0):
    n = losses.shape[1]

    def eta(t):
        return 0.5 * np.sqrt(np.log(n) / (t * n))

    def mix(t, p):
        lower, upper = np.zeros(n), np.ones(n)
        for a in range(n):
            seen = losses[: t - 1, a][arms[: t - 1] == a]
            if len(seen):
                width = np.sqrt(alpha * np.log(t * n ** (1 / alpha)) / (2 * len(seen)))
                lower[a] = max(0, seen.mean() - width)
                upper[a] = min(1, seen.mean() + width)
        exploration = np.full(n, min(1 / (2 * n), eta(t)))
        for a in range(n):
            gap = max(0, lower[a] - upper.min())
            if gap > 0:
                exploration[a] = min(exploration[a], beta * np.log(t) / (t * gap**2))
        return (1 - exploration.sum()) * p + exploration

    return exponential_weights(arms, losses, eta, weigh, mix)


def exp3_s_horizon(arms, losses, horizon=10_000, switches=5, scale=1.0):
    """With weights, as in 2002, but normalised."""
    n, alpha = losses.shape[1], 1 / horizon
    spread = (switches + 1) * np.log(n * horizon) + np.e
    gamma = min(1, np.sqrt(n * spread / ((np.e - 1) * horizon)))
    weights, laws = np.full(n, 1 / n), []
    for t in range(len(losses) + 1):
        laws.append((1 - gamma) * weights / weights.sum() + gamma / n)
        if t < len(losses):
            arm = arms[t]
            gain = one(n, arm) * (1 - losses[t, arm] / scale) / laws[-1][arm]
            weights = weights * np.exp(gamma * gain / n) + np.e * alpha / n * weights.sum()
            weights = weights / weights.sum()
    return np.array(laws)


def exp3_side_information(arms, losses, centre=0.5, spread=1.0):
    n = losses.shape[1]

    def gamma(t):
        return min(0.5, np.sqrt(n * np.log(n) / t))

    def estimate(t, law, arm, loss):
        return one(n, arm) * (loss - centre) / law[arm] + centre

    return exponential_weights(
        arms, losses, lambda t: gamma(t) / (n * spread), estimate, uniformly(gamma)
    )


def poly_inf_horizon(arms, losses, horizon=10_000, q=2.0):
    """p_i = (eta (L_i - x))^(-q)."""
    n = losses.shape[1]
    c = 1 - 1 / q
    eta = np.sqrt(2 * (1 / c - 1) * n ** (1 - 2 * c) / horizon)
    return weighted(arms, losses, lambda t, totals: power_weights(totals, eta**-q, q))


def tsallis_inf_of_power(arms, losses, power, scale=1.0):
    """-sum(w^c) / (eta c (1 - c)) has the slope -w^(c-1) / (eta (1 - c)) = x - L."""

    def law(t, totals):
        eta = 16**power / 4 * (1 - max(np.e, t) ** (power - 1)) / ((1 - power) * t**power)
        exponent = 1 / (1 - power)
        return power_weights(totals / scale, (eta * (1 - power)) ** -exponent, exponent)

    return weighted(arms, losses, law)


def tsallis_inf(arms, losses):
    """w_i = 4 (eta_t (L_i - x))^(-2), eta_t = 2 / sqrt(t)."""
    return weighted(
        arms, losses, lambda t, totals: power_weights(totals, 4 / (2 / np.sqrt(t)) ** 2, 2.0)
    )


def tsallis_inf_rv(arms, losses):
    def estimate(t, law, arm, loss):
        baseline = 0.5 * (law >= 16 / t)
        return one(len(law), arm) * (loss - baseline) / law + baseline

    return weighted(
        arms,
        losses,
        lambda t, totals: power_weights(totals, 4 / (4 / np.sqrt(t)) ** 2, 2.0),
        estimate,
    )


# Data-dependent.


def log_barrier_horizon(arms, losses, horizon=10_000):
    n = losses.shape[1]
    eta = np.full(n, min(0.5, np.sqrt(n * np.log(horizon) / horizon)))
    return weighted(arms, losses, lambda t, totals: barrier_weights(totals, eta))


def green_horizon(arms, losses, horizon=10_000):
    n = losses.shape[1]
    eta = np.sqrt(np.log(n) / (n * horizon))

    def mix(t, p):
        kept = np.where(p < min(eta, 1 / n), 0, p)
        return kept / kept.sum()

    return exponential_weights(arms, losses, lambda t: eta, weigh, mix)


def descend(point, loss, rates):
    """argmin <w, y> + sum_i d(w_i, w'_i) / eta_i: 1/w_i = 1/w'_i + eta_i (y_i + x)."""
    return barrier_weights(1 / (rates * point) + loss, rates)


def broad(arms, losses, horizon=None, optimistic=False, rate=1 / 162):
    n = losses.shape[1]
    rates, thresholds = np.full(n, rate), np.full(n, 2.0 * n)
    point, prediction = np.full(n, 1 / n), np.zeros(n)
    laws = []
    for t in range(len(losses) + 1):
        law = descend(point, prediction, rates)
        laws.append(law)
        if t == len(losses):
            break
        arm = arms[t]
        loss = losses[t, arm]
        estimate = one(n, arm) * (loss - prediction) / law + prediction
        correction = 6 * rates * law * (estimate - prediction) ** 2
        point = descend(point, estimate + correction, rates)
        if horizon is not None:
            grows = 1 / point > thresholds
            thresholds = np.where(grows, 2 / point, thresholds)
            rates = np.where(grows, rates * np.exp(1 / np.log(horizon)), rates)
        if optimistic:
            prediction = np.where(np.arange(n) == arm, loss, prediction)
    return np.array(laws)


def bubeck_li_luo_wei_horizon(arms, losses, horizon=10_000, path_length=None, rate=None):
    n = losses.shape[1]
    most = horizon if path_length is None else path_length
    eta = min(1 / 162, np.sqrt(n * np.log(n * horizon) / (1 + most))) if rate is None else rate
    point, law, last = np.full(n, 1 / n), np.full(n, 1 / n), 0.0
    laws = [law]
    for arm, loss in zip(arms, losses[np.arange(len(losses)), arms]):
        estimate = one(n, arm) * (loss - last) / law + last
        point = descend(point, estimate, np.full(n, eta))
        favour = 8 * eta * (1 - loss)
        law = (point + favour * one(n, arm)) / (1 + favour)
        laws.append(law)
        last = loss
    return np.array(laws)


def hybrid_barrier(arms, losses, sum_of_squares=None, scale=1.0):
    """argmin q.L / G + sum q ln q / eta + 4 sum ln(1/q): its slope is (1 + ln q) / eta - 4/q."""
    n = losses.shape[1]
    totals, squares, laws = np.zeros(n), 1.0, []
    for t in range(len(losses) + 1):
        eta = np.sqrt(4 * np.log(n) / (3 * (sum_of_squares or squares)))
        gaps, theta = eta * (totals - totals.min()), 4 * eta

        # q = theta / y with y + ln y = ln theta - u, as ln q - theta / q = u; y is Wright's omega.
        def point(level, gaps=gaps, theta=theta):
            return theta / wrightomega(np.log(theta) - (level - gaps))

        low, high = -np.log(n) - theta * n - 1, 1 - theta
        level = bisect(lambda level, point=point: point(level).sum() - 1, low, high)
        laws.append(point(level) / point(level).sum())
        law = laws[-1]
        if t < len(losses):
            arm, loss = arms[t], losses[t, arms[t]] / scale
            totals[arm] += loss / law[arm]
            squares += law[arm] * (loss / law[arm]) ** 2
    return np.array(laws)


def level_point(slope, losses, low, high):
    """p_i = exp(x_i), x_i in [low, high], with slope(p) + L the same for all arms.

    slope is increasing, elementwise. Halvings in x for each arm, and Brent's method for the level.
    """

    def point(level):
        below, above = np.full(len(losses), low), np.full(len(losses), high)
        for _ in range(60):
            middle = (below + above) / 2
            falls_short = slope(np.exp(middle)) < level - losses
            below, above = (
                np.where(falls_short, middle, below),
                np.where(falls_short, above, middle),
            )
        return np.exp((below + above) / 2)

    n = len(losses)
    least = (slope(np.full(n, 1 / n)) + losses).min() - 1e-9
    most = (slope(np.full(n, 1 / n)) + losses).max() + 1e-9
    level = brentq(lambda level: point(level).sum() - 1, least, most, xtol=1e-13, rtol=1e-15)
    return point(level) / point(level).sum()


def tsallis_spm(arms, losses):
    """In gains, as in the paper."""
    n = losses.shape[1]
    a, beta, second = 1 - 1 / (4 * np.log(n)), 32 * n * np.log(n), 16 * np.log(n)
    gains, laws = np.zeros(n), []
    for t in range(len(losses) + 1):
        p = level_point(
            lambda p, beta=beta: -beta * p ** (a - 1) - second * p**-a, -gains, -40.0, 0.0
        )
        z = n * min(p.max(), 1 - p.max()) ** (1 - a) / (1 - a)
        law = (1 - 4 * z / beta) * p + 4 * z / beta / n
        laws.append(law)
        if t < len(losses):
            gains[arms[t]] -= losses[t, arms[t]] / law[arms[t]]
            beta += z / (beta * (np.sum(p**a) - 1) / a)
    return np.array(laws)


def lb_inf_v_horizon(arms, losses, horizon=10_000, form="LS", scale=1.0):
    n, gamma = losses.shape[1], np.log(horizon)
    totals, squares, prediction, laws = np.zeros(n), np.full(n, 1.2**2), np.full(n, 0.5), []
    for t in range(len(losses) + 1):
        beta = np.sqrt(squares)

        # In the log-odds y of p, which keep 1 - p: 1 - 1/p - gamma ln(1 - p) has 1/p = 1 + e^-y.
        def odds(level, heights=totals + prediction, beta=beta):
            low, high = np.full(n, -60.0), np.full(n, 60.0)
            for _ in range(60):
                middle = (low + high) / 2
                slope = beta * (gamma * np.logaddexp(0, middle) - np.exp(-middle))
                is_low = slope < level - heights
                low, high = np.where(is_low, middle, low), np.where(is_low, high, middle)
            return (low + high) / 2

        def excess(level, odds=odds):
            return np.sum(1 / (1 + np.exp(-odds(level)))) - 1

        at_centre = beta * (1 - n - gamma * np.log1p(-1 / n)) + totals + prediction
        span = at_centre.min() - 1e-9, at_centre.max() + 1e-9
        level = brentq(excess, *span, xtol=1e-13, rtol=1e-15)
        law = 1 / (1 + np.exp(-odds(level)))
        laws.append(law)
        if t < len(losses):
            arm, loss = arms[t], losses[t, arms[t]] / scale
            surprise = loss - prediction[arm]
            totals = totals + prediction
            totals[arm] += surprise / law[arm]
            growth = min(1, 2 * (1 - law[arm]) / (gamma * law[arm] ** 2))
            squares[arm] += surprise**2 * growth / gamma
            if form == "LS":
                seen = losses[: t + 1, arm][arms[: t + 1] == arm] / scale
                prediction[arm] = (0.5 + seen.sum()) / (1 + len(seen))
            else:
                prediction[arm] += surprise / 4
    return np.array(laws)


# Controls.


def uniform(arms, losses):
    return np.full((len(losses) + 1, losses.shape[1]), 1 / losses.shape[1])


def fixed_arm(arms, losses, arm=0):
    return np.tile(one(losses.shape[1], arm), (len(losses) + 1, 1))


def follow_the_leader_on_estimates(arms, losses):
    n = losses.shape[1]

    def law(t, totals):
        gamma = 0.5 if t == 1 else min(0.5, np.sqrt(n / (t - 1)))
        return (1 - gamma) * one(n, totals.argmin()) + gamma / n

    return weighted(arms, losses, law)


def lowest_index(arms, losses, bonus):
    n = losses.shape[1]
    laws = []
    for t in range(len(losses) + 1):
        index = np.full(n, -np.inf)
        for a in range(n):
            seen = losses[:t, a][arms[:t] == a]
            if len(seen):
                index[a] = seen.mean() - bonus(t, len(seen))
        laws.append(one(n, index.argmin()))
    return np.array(laws)


def epsilon_greedy(arms, losses, epsilon=0.1):
    greedy = lowest_index(arms, losses, lambda t, plays: 0.0)
    return (1 - epsilon) * greedy + epsilon / losses.shape[1]


def ucb1(arms, losses):
    return lowest_index(arms, losses, lambda t, plays: np.sqrt(2 * np.log(t) / plays))
