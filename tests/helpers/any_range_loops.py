"""Full-information, scale-free and heavy-tailed strategies as plain NumPy loops in float64.

Arguments and results are those of `known_range_loops`; nothing here uses the package.
"""

import numpy as np
from loop_parts import (
    barrier_weights,
    bisect,
    exponential_gap,
    one,
    power_weights,
    root_gap,
    softmax,
    weigh,
    weighted,
)

# Full information.


def hedge(arms, losses, horizon=None, scale=1.0):
    n = losses.shape[1]
    totals = np.zeros(n)
    laws = []
    for t in range(1, len(losses) + 2):
        rate = np.sqrt(8 * np.log(n) / (t if horizon is None else horizon)) / scale
        laws.append(softmax(-rate * totals))
        if t <= len(losses):
            totals = totals + losses[t - 1]
    return np.array(laws)


def ada_hedge(arms, losses):
    n = losses.shape[1]
    totals, gaps = np.zeros(n), 0.0
    laws = [np.full(n, 1 / n)]
    for loss in losses:
        rate = np.log(n) / gaps if gaps > 0 else np.inf
        gaps += max(exponential_gap(laws[-1], loss, rate), 0.0)
        totals = totals + loss
        laws.append(softmax(-np.log(n) / gaps * totals) if gaps > 0 else np.full(n, 1 / n))
    return np.array(laws)


def barrier_gap(p, loss, rate):
    """sup_q l.(p - q) - (sum q/p - 1 - log(q/p)) / eta; at infinite rate p.l - min(l)."""
    if np.isinf(rate):
        return p @ loss - loss.min()
    inverse = 1 / p + rate * loss
    gaps = inverse - inverse.min()
    m = bisect(lambda m: 1 - np.sum(1 / (gaps + m)), 1.0, float(len(p)))
    move = 1 / (gaps + m) / p - 1
    small = np.abs(move) < 0.05
    near = np.where(small, move, 0)
    series = sum((-near) ** k / k for k in range(2, 15))
    far = np.where(small, 1, move)
    divergence = np.sum(np.where(small, series, far - np.log1p(far)))
    return -np.sum(loss * p * move) - divergence / rate


def ada_ftrl_full(arms, losses, alpha, gap, follow):
    n = losses.shape[1]
    totals, gaps = np.zeros(n), 0.0
    laws = [np.full(n, 1 / n)]
    for loss in losses:
        rate = alpha(n) / gaps if gaps > 0 else np.inf
        gaps += gap(laws[-1], loss, rate)
        totals = totals + loss
        laws.append(follow(totals, alpha(n) / gaps) if gaps > 0 else np.full(n, 1 / n))
    return np.array(laws)


def ada_ftrl_log_barrier(arms, losses):
    def follow(totals, rate):
        return barrier_weights(totals, np.full(len(totals), rate))

    return ada_ftrl_full(arms, losses, float, barrier_gap, follow)


def follow_root(totals, rate):
    """argmin -sum(sqrt(q)) + eta L.q: q = (2 eta (L - x))^(-2)."""
    return power_weights(totals, 1 / (2 * rate) ** 2, 2.0)


def ada_ftrl_tsallis(arms, losses):
    return ada_ftrl_full(arms, losses, lambda n: np.sqrt(n) - 1, root_gap, follow_root)


def follow_the_leader(arms, losses):
    totals = np.concatenate([np.zeros((1, losses.shape[1])), np.cumsum(losses, axis=0)])
    return np.array([one(losses.shape[1], row.argmin()) for row in totals])


# Scale-free.


def ahb(arms, losses, published_code=False):
    """On payoffs y = -l, as published."""
    n = losses.shape[1]
    payoffs = -losses[np.arange(len(losses)), arms]
    first = n - 1 if published_code else n
    totals, gaps, q, laws = np.zeros(n), 0.0, np.full(n, 1 / n), []
    for t in range(1, len(losses) + 2):
        if t <= n:
            laws.append(one(n, t - 1))
        else:
            if published_code:
                gamma = min(0.5, np.sqrt(10 * n * np.log(n) / (t - 1)))
            else:
                gamma = min(0.5, np.sqrt(2.5 * n * np.log(n) / t))
            laws.append((1 - gamma) * q + gamma / n)
        if t == len(losses) + 1 or t <= first:
            continue
        centre = payoffs[:first].max() if published_code else payoffs[:first].mean()
        arm = arms[t - 1]
        estimate = one(n, arm) * (payoffs[t - 1] - centre) / laws[-1][arm] + centre
        rate = np.log(n) / gaps if gaps > 0 else np.inf
        gaps += max(exponential_gap(q, -estimate, rate), 0.0)
        totals = totals + estimate
        q = softmax(np.log(n) / gaps * totals) if gaps > 0 else np.full(n, 1 / n)
    return np.array(laws)


def bandit_ada_ftrl_tsallis(arms, losses, proxy=False):
    """With Psi = -2 sum(sqrt(x)): w = (eta (L - x))^(-2)."""
    n = losses.shape[1]
    totals, gaps, w, laws = np.zeros(n), 0.0, np.full(n, 1 / n), []
    for t in range(len(losses) + 1):
        laws.append(w)
        if t == len(losses):
            break
        arm = arms[t]
        loss = losses[t, arm]
        estimate = one(n, arm) * loss / w[arm]
        rate = (2 * np.sqrt(n) - 2) / gaps if gaps > 0 else np.inf
        if np.isinf(rate):
            gaps += w @ estimate - estimate.min()
        elif proxy:
            gaps += min(loss, rate * loss**2 / np.sqrt(w[arm]))
        else:
            gaps += root_gap(w, estimate, rate / 2)
        totals = totals + estimate
        if gaps > 0:
            w = power_weights(totals, ((2 * np.sqrt(n) - 2) / gaps) ** -2, 2.0)
    return np.array(laws)


def umab_g(arms, losses, horizon=None, adaptive=True):
    n = losses.shape[1]
    clip, squares, explored, totals, laws = 1.0, 0.0, 0.0, np.zeros(n), []
    for t in range(len(losses) + 1):
        eta = 4 / np.sqrt(squares / n + clip**2)
        p = barrier_weights(totals, np.full(n, eta))
        if horizon is not None:
            explored = min(explored, n * horizon) if adaptive else n * horizon
        rho = 2 * n**2 + np.sqrt(explored)
        rare = p < 1 / rho
        law = np.where(rare, p + 1 / rho, p)
        law[p.argmax()] -= rare.sum() / rho
        laws.append(law)
        if t == len(losses):
            break
        arm = arms[t]
        loss = max(losses[t, arm], -2 * clip)
        clip = max(clip, -loss)
        estimate = weigh(t, law, arm, loss)
        squares += loss**2
        totals = totals + estimate
        explored += 2 * abs(estimate[arm]) * rho * abs(law[arm] - p[arm])
    return np.array(laws)


def exp3_light_a_horizon(arms, losses, horizon=10_000):
    n = losses.shape[1]
    top, epoch, totals, laws = 1.0, 0, np.zeros(n), []
    for t in range(len(losses) + 1):
        eta = np.sqrt(2 * (np.log(n) + n * np.log(horizon)) / (n * 4.0**epoch))
        laws.append(softmax(-eta * totals / top))
        if t == len(losses):
            break
        loss = losses[t, arms[t]]
        if loss > top:
            top, epoch, totals = 2 ** np.ceil(np.log2(loss)), 0, np.zeros(n)
            continue
        totals = totals + weigh(t, laws[-1], arms[t], loss)
        if totals.min() / top > 4**epoch:
            epoch = int(np.ceil(np.log(totals.min() / top) / np.log(4)))
    return np.array(laws)


# Heavy tails.


def htinf(arms, losses, tail=2.0, size=1.0):
    """argmin <L, x> - (a / eta) sum(x^(1/a)): x = (eta (L - y))^(-a/(a-1))."""
    if tail == 2:
        theta = 1 - 2 ** (-1 / 3)
    else:
        first = 1 - 2 ** (-(tail - 1) / (2 * tail - 1))
        theta = min(first, (2 - 2 / tail) ** (1 / (2 - tail)))
    power = tail / (tail - 1)

    def eta(t):
        return 1 / (size * t ** (1 / tail))

    def estimate(t, law, arm, loss):
        if abs(loss) > theta / eta(t) * law[arm] ** (1 / tail):
            return np.zeros(len(law))
        return weigh(t, law, arm, loss)

    return weighted(
        arms, losses, lambda t, totals: power_weights(totals, eta(t) ** -power, power), estimate
    )


def ada_tinf_horizon(arms, losses, horizon=10_000):
    n = losses.shape[1]
    level, cost, totals, laws = 0, 0.0, np.zeros(n), []
    for t in range(1, len(losses) + 2):
        eta = 1 / (2.0**level * np.sqrt(t))
        x = power_weights(totals, eta**-2, 2.0)
        laws.append(x)
        if t == len(losses) + 1:
            break
        arm = arms[t - 1]
        loss = losses[t - 1, arm]
        if abs(loss) > (1 - 2 ** (-1 / 3)) * np.sqrt(x[arm]) / eta:
            now = abs(loss)
        else:
            now = 2 * eta * loss**2 / np.sqrt(x[arm])
            totals = totals + weigh(t, x, arm, loss)
        cost += now
        budget = np.sqrt(n * (horizon + 1))
        if cost > 2.0**level * budget:
            level = max(level + 1, int(np.ceil(np.log2(now / budget))) + 1)
            cost = now
    return np.array(laws)


def uni_inf_horizon(arms, losses, horizon=10_000):
    n = losses.shape[1]
    square, totals, laws = 16.0, np.zeros(n), []
    for t in range(len(losses) + 1):
        x = barrier_weights(totals, np.full(n, 1 / np.sqrt(square)))
        laws.append(x)
        if t == len(losses):
            break
        arm = arms[t]
        loss = losses[t, arm]
        limit = np.sqrt(square) / (4 * (1 - x[arm]))
        if abs(loss) < limit:
            totals = totals + weigh(t, x, arm, loss)
        clipped = np.clip(loss, -limit, limit)
        square += clipped**2 * (1 - x[arm]) ** 2 / (n * np.log(horizon))
    return np.array(laws)


def descend_on_floor(point, loss, rates, floor):
    """argmin <w, y> + sum_i d(w_i, w'_i) / eta_i over w_i >= f: the larger of f and the plain w."""

    def weights(x):
        inverse = 1 / point + rates * (loss + x)
        return np.where(inverse > 0, np.maximum(1 / np.where(inverse > 0, inverse, 1), floor), 2.0)

    low = -np.max(loss + 1 / (rates * point))
    return weights(bisect(lambda x: 1 - weights(x).sum(), low, np.sum(1 / rates) + abs(low)))


def omd_lb_heavy_tails_horizon(arms, losses, horizon=10_000, tail=2.0, size=1.0, rate=None):
    n = losses.shape[1]
    most = size * (horizon / n) ** (1 / tail)
    floor = horizon ** (-(tail - 1) / tail) * n ** (-1 / tail) / n
    theory = 1 / (40 * most * np.log(horizon) * np.log(8 * n * horizon / 0.05))
    rates = np.full(n, theory if rate is None else rate)
    point, thresholds = np.full(n, 1 / n), np.full(n, 2.0 * n)
    laws = [point]
    for t, arm in enumerate(arms):
        loss = losses[t, arm]
        estimate = weigh(t, point, arm, loss if abs(loss) <= most else 0.0)
        point = descend_on_floor(point, estimate, rates, floor)
        laws.append(point)
        grows = 1 / point > thresholds
        thresholds = np.where(grows, 2 / point, thresholds)
        rates = np.where(grows, rates * np.exp(1 / np.log(horizon)), rates)
    return np.array(laws)
