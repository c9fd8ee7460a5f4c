"""Games with delayed feedback as plain NumPy loops in float64; nothing here uses the package.

A player has the next law, ``law() -> (p, p')``, learns what arrives, ``learn(arm, losses, p', loss
of the arm)``, and is told how many observations are missing when a round ends, ``wait(missing)``.
"""

import numpy as np
import paper_loop
from loop_parts import one, power_weights, softmax


class Exp3:
    def __init__(self, n):
        self.totals, self.observed = np.zeros(n), 0

    def law(self):
        n = len(self.totals)
        p = softmax(-np.sqrt(np.log(n) / (max(self.observed, 1) * n)) * self.totals)
        return p, p

    def learn(self, arm, losses, law_then, loss):
        self.totals = self.totals + one(len(self.totals), arm) * loss / law_then[arm]
        self.observed += 1

    def wait(self, missing):
        pass


class TsallisINF(Exp3):
    """w_i = 4 (eta (L_i - x))^(-2), eta = 2 / sqrt(t)."""

    def law(self):
        p = power_weights(self.totals, self.observed + 1.0, 2.0)
        return p, p


class Hedge(Exp3):
    def law(self):
        p = softmax(-np.sqrt(8 * np.log(len(self.totals)) / (self.observed + 1)) * self.totals)
        return p, p

    def learn(self, arm, losses, law_then, loss):
        self.totals = self.totals + losses
        self.observed += 1


class ScaleFree(Exp3):
    """Algorithm 1: the gap is that of the present play, the mass that of the law drawn from."""

    def __init__(self, n, exploration):
        super().__init__(n)
        self.exploration, self.eta, self.gamma = exploration, float(n), 0.5
        self.gaps, self.masses, self.p = 0.0, 0.0, np.full(n, 1 / n)

    def law(self):
        return self.p, (1 - self.gamma) * self.p + self.gamma / len(self.p)

    def learn(self, arm, losses, law_then, loss):
        n = len(self.p)
        estimate = one(n, arm) * loss / law_then[arm]
        self.observed += 1
        if self.exploration == "decaying":
            self.gamma = min(0.5, np.sqrt(n / self.observed))
        else:
            self.masses += self.gamma * abs(loss) / law_then[arm]
            self.gamma = n / (2 * n + self.masses)
        self.gaps += paper_loop.mixability_gap(self.eta, self.p, estimate)
        self.eta = n / (1 + self.gaps)
        self.totals = self.totals + estimate
        self.p = paper_loop.ftrl(self.eta, self.totals)


class TsallisINFDelayed(Exp3):
    """argmin <L, x> - 2 sqrt(t) sum sqrt(x) + sqrt(2 D / ln n) sum x ln x."""

    def __init__(self, n):
        super().__init__(n)
        self.t, self.missing, self.p = 1, 0, np.full(n, 1 / n)

    def law(self):
        return self.p, self.p

    def wait(self, missing):
        self.t, self.missing = self.t + 1, self.missing + missing
        entropy = np.sqrt(2 * self.missing / np.log(len(self.p)))
        self.p = hybrid_weights(self.totals, np.sqrt(self.t), entropy)


def hybrid_weights(totals, root, entropy):
    """The minimiser of <L, x> - 2 a sum sqrt(x) + b sum x ln x over the simplex, by bisection.

    a / sqrt(x_i) - b ln x_i = L_i + m, for x_i from 1e-60 to 1, with m such that they sum to 1.
    """
    gaps = totals - totals.min()

    def points(m):
        low, high = np.zeros(len(gaps)), np.full(len(gaps), 70.0)  # of -ln(x) / 2
        for _ in range(56):
            z = (low + high) / 2
            above = root * np.exp(z) + 2 * entropy * z > gaps + m
            low, high = np.where(above, low, z), np.where(above, z, high)
        return np.exp(-2 * high)

    n = len(gaps)
    low, high = root, root * np.sqrt(n) + entropy * np.log(n)  # the leader has from 1/n to 1
    for _ in range(48):
        m = (low + high) / 2
        low, high = (m, high) if points(m).sum() > 1 else (low, m)
    x = points(high)
    return x / x.sum()


def play(player, losses, uniforms, delays):
    """The arms [T] and the laws p' [T, n] of a game; observations arrive oldest first."""
    waiting, arms, laws = [], [], []
    for t, (uniform, delay) in enumerate(zip(uniforms, delays)):
        _, law = player.law()
        running = np.cumsum(law)
        arm = int(np.searchsorted(running, uniform * running[-1], side="right"))
        arms.append(arm)
        laws.append(law)
        waiting.append((t, t + int(delay), arm, law))
        arrived = [entry for entry in waiting if entry[1] == t]
        waiting = [entry for entry in waiting if entry[1] != t]
        for s, _, arm_then, law_then in arrived:
            player.learn(arm_then, losses[s], law_then, losses[s, arm_then])
        player.wait(len(waiting))
    return np.array(arms), np.array(laws)
