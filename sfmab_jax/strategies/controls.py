"""Strategies to compare with: no learning, an oracle, and methods for independent losses."""

import jax.numpy as jnp
from jax import Array
from jax.tree_util import Partial

from sfmab_jax import estimation, full_information, sampling
from sfmab_jax.base import Bandit
from sfmab_jax.checks import check_integer, check_positive, check_probability, is_known
from sfmab_jax.compose import compose
from sfmab_jax.strategies import schedules

__all__ = ["epsilon_greedy", "fixed_arm", "follow_the_leader_on_estimates", "ucb1", "uniform"]


def uniform() -> Bandit:
    """Control: every arm with probability 1/n, the exploration of Auer et al. (2002) alone.

    Its regret is the sum over rounds of the mean loss of all arms less that of the best arm: linear
    in general.
    """
    return compose(
        sampling.as_played(), estimation.importance_weighted(), full_information.constant()
    )


def fixed_arm(arm: Array | int = 0) -> Bandit:
    """Control: one arm for ever; the best is the oracle of the regret of Auer et al. (2002).

    With the arm that is the best in hindsight its regret is 0.

    Args:
      arm: the arm, 0 to n - 1.
    """
    if is_known(arm):
        check_integer("arm", arm, 0, 2**24 - 1)
    return compose(
        sampling.as_played(), estimation.importance_weighted(), full_information.constant(arm)
    )


def follow_the_leader_on_estimates() -> Bandit:
    """Control: Hannan (1957)'s leader on importance-weighted losses, a bandit that explores.

    The arm of the smallest estimate so far, mixed with the uniform law as in option 1 of the
    paper, min(1/2, sqrt(n/t)). Without a regulariser its regret can be linear.
    """
    return compose(
        sampling.decaying(),
        estimation.importance_weighted(),
        full_information.follow_the_leader(),
    )


def epsilon_greedy(epsilon: Array | float = 0.1) -> Bandit:
    """Control: epsilon-greedy, as in Sutton and Barto (1998).

    With probability epsilon an arm at random, else the arm of the lowest mean loss seen, arms not
    yet seen first. Meant for independent losses, where the regret is epsilon times the mean gap a
    round; against an adversary it has no bound.

    Args:
      epsilon: between 0 and 1.
    """
    check_probability("epsilon", epsilon)
    return compose(
        sampling.fixed(epsilon),
        estimation.importance_weighted(),
        full_information.lowest_index(_no_bonus),
    )


def ucb1(scale: Array | float = 1.0) -> Bandit:
    """Control: Auer, Cesa-Bianchi and Fischer (2002): UCB1, deterministic, for independent losses.

    Each arm once, then the arm of the lowest (mean loss seen) - G sqrt(2 ln t / N), t the rounds
    played and N the plays of the arm. The expected regret is O(G^2 sum_i ln T / gap_i) on
    independent losses, and linear against an adversary, who can tell its arm in advance.

    Args:
      scale: G, for losses in [0, G].
    """
    check_positive(scale=scale)
    return compose(
        sampling.as_played(),
        estimation.importance_weighted(),
        full_information.lowest_index(Partial(schedules.ucb_bonus, scale)),
    )


def _no_bonus(num_rounds: Array, num_plays: Array) -> Array:
    return jnp.zeros_like(num_plays)
