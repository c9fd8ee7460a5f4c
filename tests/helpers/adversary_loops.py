"""Adversaries as plain NumPy, and all that can happen against them.

Nothing here uses the package. An adversary is a function of the losses it begins with [T, n], the
arms played before the round [t - 1] and the law of the round [n] that returns l_t [n].
"""

import itertools

import numpy as np


def crowded(base, arms, law, memory=8, rise=0.5):
    recent = list(arms)[-memory:]
    share = np.array([recent.count(i) / memory for i in range(base.shape[1])])
    return base[len(arms)] + rise * share


def switching_costs(base, arms, law, cost=1.0):
    loss = base[len(arms)].copy()
    if len(arms):
        loss += cost * (np.arange(base.shape[1]) != arms[-1])
    return loss


def favourite(arms, num_arms):
    """The arm played most, the lowest of those that tie."""
    return max(range(num_arms), key=lambda i: (list(arms).count(i), -i))


def tit_for_tat(base, arms, law, rise=0.5):
    loss = base[len(arms)].copy()
    if len(arms):
        loss[favourite(arms, base.shape[1])] += rise
    return loss


def corrupted_leader(base, arms, law, budget=100.0, high=1.0):
    left = budget
    for t in range(len(arms) + 1):
        loss = base[t].copy()
        if t:
            j = favourite(arms[:t], base.shape[1])
            if arms[t - 1] == j:
                spent = min(left, max(high - loss[j], 0))
                loss[j] += spent
                left -= spent
    return loss


def against_the_law(base, arms, law, rise=0.5):
    loss = base[len(arms)].copy()
    loss[np.argmax(law)] += rise
    return loss


def losses_met(adversary, base, arms, laws_of):
    """The losses that come when these arms are played, [T, n], and the laws of the arms [T, n].

    ``laws_of(arms [t], losses [t, n])`` gives the laws of rounds 1 to t + 1.
    """
    losses, laws = np.zeros((0, base.shape[1])), []
    for t in range(len(base)):
        laws.append(np.asarray(laws_of(np.array(arms[:t], int), losses))[-1])
        losses = np.vstack([losses, adversary(base, list(arms[:t]), laws[-1])])
    return losses, np.array(laws)


def constant_totals(adversary, base):
    """The total loss of each arm when it is played throughout, at every round [T, n]."""
    num_rounds, n = base.shape
    totals = []
    for arm in range(n):
        law = (np.arange(n) == arm).astype(float)
        met = [adversary(base, [arm] * t, law)[arm] for t in range(num_rounds)]
        totals.append(np.cumsum(met))
    return np.array(totals).T


def regrets(losses, arms, constant):
    """External and policy regret after every round, [T] each."""
    paid = np.cumsum(losses[np.arange(len(arms)), arms])
    return paid - losses.cumsum(axis=0).min(axis=1), paid - constant.min(axis=1)


def expected_regrets(adversary, base, laws_of):
    """Expected external and policy regret after the last round, by enumeration of all games."""
    constant = constant_totals(adversary, base)
    means = np.zeros(2)
    for arms in itertools.product(range(base.shape[1]), repeat=len(base)):
        losses, laws = losses_met(adversary, base, arms, laws_of)
        chance = laws[np.arange(len(arms)), list(arms)].prod()
        external, policy = regrets(losses, list(arms), constant)
        means += chance * np.array([external[-1], policy[-1]])
    return means
