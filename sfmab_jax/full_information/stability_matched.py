"""FTRL with two Tsallis entropies, the rate set by matching stability and penalty.

Ito, Tsuchiya and Honda (2024); the weight is that of `sampling.stability_matched`, a pure function
of the plays, kept once more in the state of this part.
"""

from typing import NamedTuple

import jax.numpy as jnp
from jax import Array
from jax.tree_util import Partial

from sfmab_jax.base import FullInformation, Round
from sfmab_jax.checks import check_positive
from sfmab_jax.full_information.ftrl import add_round, gaps_to_leader
from sfmab_jax.numerics.double_word import Sum, start_sum
from sfmab_jax.numerics.two_powers import two_power_distribution
from sfmab_jax.sampling.stability_matched import (
    first_weight,
    matched_power,
    next_weight,
    second_weight,
)

__all__ = ["stability_matched_ftrl"]


class StabilityMatchedState(NamedTuple):
    play: Array  # p_{t+1} [n]
    losses: Sum  # the cumulative estimates, two words [n]
    learning_rate: Array  # 1 / (G beta_{t+1}) []
    weight: Sum  # beta_{t+1}, two words []
    unit: Array  # G in the losses' unit []


def stability_matched_ftrl(scale: Array | float = 1.0) -> FullInformation:
    """FTRL with a growing weight on one Tsallis entropy, and a constant one on its complement.

    p_t = argmin_q q.L_t / G - beta_t phi_a(q) - beta' phi_{1-a}(q), L_t the sum of the estimates,
    phi_c(q) = (sum_i q(i)^c - 1) / c, a = 1 - 1 / (4 ln n), beta' = 16 ln n and beta_t as in
    `sampling.stability_matched`.

    Args:
      scale: G, for losses in [-G, G].
    """
    check_positive(scale=scale)
    return FullInformation(init=Partial(_init, scale), update=Partial(_update))


def _init(scale, num_arms, dtype, loss_unit) -> StabilityMatchedState:
    zeros = jnp.zeros(num_arms, dtype)
    unit = jnp.asarray(scale, dtype) * loss_unit
    weight = first_weight(num_arms, dtype)
    rate = 1 / (weight.value * unit)
    return StabilityMatchedState(zeros + 1 / num_arms, start_sum(zeros), rate, weight, unit)


def _update(state: StabilityMatchedState, seen: Round) -> StabilityMatchedState:
    n = len(state.play)
    losses, weight = add_round(state.losses, seen), next_weight(state.weight, seen.play)
    rate = 1 / (weight.value * state.unit)
    ratio = second_weight(n) / weight.value
    gaps = rate * gaps_to_leader(losses)
    play = two_power_distribution(matched_power(n), ratio, gaps, state.play)
    return StabilityMatchedState(play, losses, rate, weight, state.unit)
