"""The strategies of the literature as plain NumPy loops in float64, transcribed from their rules.

Nothing here uses the package. Each function is given the arms [T] and the losses [T, n] of all
arms, looks only at what its strategy may see, and returns the laws of the arms before rounds
1 ... T + 1, [T + 1, n]. Normalisers come from bisection, gaps from their definitions.
"""

import numpy as np


def bisect(function, low, high):
    """The root of an increasing function, to the last bit."""
    while True:
        middle = low + (high - low) / 2
        if not low < middle < high:
            return high
        if function(middle) < 0:
            low = middle
        else:
            high = middle


def softmax(scores):
    weights = np.exp(scores - scores.max())
    return weights / weights.sum()


def one(n, arm):
    return (np.arange(n) == arm).astype(float)


def power_weights(losses, factor, exponent):
    """w_i = factor (L_i - x)^(-exponent) with sum(w) = 1 and x < min(L)."""
    gaps = losses - losses.min()
    # At the upper end every weight is at most 1/n, at the lower end the leader's is 1.
    low, high = factor ** (1 / exponent), (factor * len(losses)) ** (1 / exponent)
    d = bisect(lambda d: 1 - np.sum(factor * (gaps + d) ** -exponent), low / 2, high)
    w = factor * (gaps + d) ** -exponent
    return w / w.sum()


def barrier_weights(losses, rates):
    """w_i = 1 / (eta_i (L_i + x)) with sum(w) = 1."""
    gaps = losses - losses.min()
    x = bisect(lambda x: 1 - np.sum(1 / (rates * (gaps + x))), 1e-9, np.sum(1 / rates) + 1)
    w = 1 / (rates * (gaps + x))
    return w / w.sum()


def exponential_gap(p, loss, rate):
    """p.l + log(sum p exp(-eta l)) / eta; p.l - min(l) at an infinite rate."""
    if np.isinf(rate):
        return p @ loss - loss.min()
    y = rate * (loss - loss.min())
    if y.max() > 0.05:
        return p @ (loss - loss.min()) + np.log(p @ np.exp(-y)) / rate
    # A small y: sum p (exp(-d) - 1 + d) / eta at d = y - c, c = -log(sum p exp(-y)).
    d = y + np.log1p(p @ np.expm1(-y))
    d = -d
    return p @ (d**2 / 2 + d**3 / 6 + d**4 / 24 + d**5 / 120 + d**6 / 720 + d**7 / 5040) / rate


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


def root_gap(p, loss, rate):
    """sup_q l.(p - q) - Breg(q || p) / eta for f = -sqrt(x); Breg = sum (dq)^2 / (2 sqrt(p))."""
    if np.isinf(rate):
        return p @ loss - loss.min()
    dual = 1 / np.sqrt(p) + 2 * rate * loss
    q = power_weights(dual, 1.0, 2.0)
    divergence = np.sum((np.sqrt(q) - np.sqrt(p)) ** 2 / (2 * np.sqrt(p)))
    return np.sum(loss * (p - q)) - divergence / rate


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


# Known range.


def exponential_weights(arms, losses, rate, estimate, mix=None):
    """p = softmax(-rate(t) L), the law mix(t, p); estimate(t, law, arm, loss) is added to L."""
    n = losses.shape[1]
    totals, laws = np.zeros(n), []
    for t in range(1, len(losses) + 2):
        p = softmax(-rate(t) * totals)
        law = p if mix is None else mix(t, p)
        laws.append(law)
        if t <= len(losses):
            arm = arms[t - 1]
            totals = totals + estimate(t, law, arm, losses[t - 1, arm])
    return np.array(laws)


def weigh(t, law, arm, loss):
    return one(len(law), arm) * loss / law[arm]


def uniformly(gamma):
    return lambda t, p: (1 - gamma(t)) * p + gamma(t) / len(p)


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


def exp3_side_information(arms, losses, centre=0.5, spread=1.0):
    n = losses.shape[1]

    def gamma(t):
        return min(0.5, np.sqrt(n * np.log(n) / t))

    def estimate(t, law, arm, loss):
        return one(n, arm) * (loss - centre) / law[arm] + centre

    return exponential_weights(
        arms, losses, lambda t: gamma(t) / (n * spread), estimate, uniformly(gamma)
    )


def weighted(arms, losses, law_of, estimate=weigh):
    """The law of round t is law_of(t, L)."""
    n = losses.shape[1]
    totals, laws = np.zeros(n), []
    for t in range(1, len(losses) + 2):
        laws.append(law_of(t, totals))
        if t <= len(losses):
            arm = arms[t - 1]
            totals = totals + estimate(t, laws[-1], arm, losses[t - 1, arm])
    return np.array(laws)


def poly_inf_horizon(arms, losses, horizon=10_000, q=2.0):
    """p_i = (eta (L_i - x))^(-q)."""
    n = losses.shape[1]
    c = 1 - 1 / q
    eta = np.sqrt(2 * (1 / c - 1) * n ** (1 - 2 * c) / horizon)
    return weighted(arms, losses, lambda t, totals: power_weights(totals, eta**-q, q))


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
