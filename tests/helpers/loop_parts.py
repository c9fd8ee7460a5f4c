"""What the plain loops share: normalisers by bisection, gaps by their definitions.

Nothing here uses the package.
"""

import numpy as np


def bisect(function, low, high):
    """The root of an increasing function, to the last bit: low < 0 <= high throughout."""
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


def root_gap(p, loss, rate):
    """sup_q l.(p - q) - Breg(q || p) / eta for f = -sqrt(x); Breg = sum (dq)^2 / (2 sqrt(p))."""
    if np.isinf(rate):
        return p @ loss - loss.min()
    dual = 1 / np.sqrt(p) + 2 * rate * loss
    q = power_weights(dual, 1.0, 2.0)
    divergence = np.sum((np.sqrt(q) - np.sqrt(p)) ** 2 / (2 * np.sqrt(p)))
    return np.sum(loss * (p - q)) - divergence / rate


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
