"""Skipping of large losses, by a scale learnt on the way: AdaTINF's doubling, uniINF's balance.

The scale is a pure function of the arms played and their losses; `full_information.heavy_tails`
keeps the same one in a state of its own.
"""

from typing import NamedTuple

import jax.numpy as jnp
from jax import Array
from jax.tree_util import Partial

from sfmab_jax.base import Estimation, Round
from sfmab_jax.checks import check_horizon
from sfmab_jax.estimation.importance import on_arm
from sfmab_jax.numerics.arms import pick
from sfmab_jax.numerics.double_word import Sum, add, start_sum

__all__ = [
    "Balance",
    "Doubling",
    "balance_init",
    "balanced_skipping",
    "doubling_init",
    "doubling_skipping",
    "inverse_rate",
    "next_balance",
    "next_doubling",
]

# Theta_2 of Huang, Dai and Huang (2022).
SKIP_SHARE = 1 - 2 ** (-1 / 3)


class Doubling(NamedTuple):
    """AdaTINF's scale 2^J, raised when the costs of its rounds exceed its budget."""

    exponent: Array  # J [] int32
    cost: Sum  # S, two words []
    num_rounds: Array  # t [] int32
    unit: Array  # one unit of loss []


class Balance(NamedTuple):
    """uniINF's scale S_t."""

    size: Sum  # S_{t+1}, two words []


def doubling_skipping(num_rounds: Array | float) -> Estimation:
    """Skip large losses by a doubling scale: AdaTINF, Huang, Dai and Huang (2022).

    l~_t(i) = l_t(i) [i = i_t] [|l_t(i)| <= r_t(i)] / p'_t(i), of mean l_t(i) [|l_t(i)| <= r_t(i)],
    with r_t(i) = Theta_2 sqrt(p'_t(i)) / eta_t, Theta_2 = 1 - 2^(-1/3), eta_t = 1 / (2^J sqrt(t));
    for J see `next_doubling`.

    Args:
      num_rounds: T, in the budget of the scale.
    """
    check_horizon(num_rounds)
    return Estimation(
        init=Partial(doubling_init),
        estimate=Partial(_doubling_estimate),
        update=Partial(next_doubling, num_rounds),
    )


def balanced_skipping(num_rounds: Array | float) -> Estimation:
    """Skip large losses by a growing scale: uniINF, Chen, Huang, Dai and Huang (2025).

    l~_t(i) = l_t(i) [i = i_t] [|l_t(i)| < C_t(i)] / p'_t(i), of mean l_t(i) [|l_t(i)| < C_t(i)],
    with C_t(i) = S_t / (4 (1 - p'_t(i))); for S_t see `next_balance`.

    Args:
      num_rounds: T >= 2, in the growth of the scale.
    """
    check_horizon(num_rounds, least=2)
    return Estimation(
        init=Partial(balance_init),
        estimate=Partial(_balance_estimate),
        update=Partial(next_balance, num_rounds),
    )


def doubling_init(num_arms, dtype, loss_unit) -> Doubling:
    zero = jnp.zeros((), jnp.int32)
    return Doubling(zero, start_sum(jnp.zeros((), dtype)), zero, loss_unit)


def inverse_rate(scale: Doubling) -> Array:
    """Return 1 / eta_t of the next round: 2^J sqrt(t), in units of loss."""
    dtype = scale.unit.dtype
    t = (scale.num_rounds + 1).astype(dtype)
    return jnp.exp2(scale.exponent.astype(dtype)) * jnp.sqrt(t) * scale.unit


def _doubling_estimate(state: Doubling, play, probabilities, arm, loss) -> Array:
    chance = pick(probabilities, arm)
    limit = SKIP_SHARE * inverse_rate(state) * jnp.sqrt(chance)
    return on_arm(jnp.where(jnp.abs(loss) <= limit, loss / chance, 0), arm, play)


def next_doubling(num_rounds, state: Doubling, seen: Round) -> Doubling:
    """Return the scale after a round, which costs c_t = 2 eta_t l^2 / sqrt(p), or |l| if skipped.

    When the sum S of the costs exceeds 2^J sqrt(n (T + 1)), S restarts at c_t and J becomes
    max(J + 1, ceil(log2(c_t / sqrt(n (T + 1)))) + 1).
    """
    dtype = state.unit.dtype
    root = jnp.sqrt(pick(seen.probabilities, seen.arm))
    per_rate = inverse_rate(state)
    size = jnp.abs(seen.loss)
    is_skipped = size > SKIP_SHARE * per_rate * root
    # In this order nothing overflows: below the limit l eta is less than 1.
    cost_now = jnp.where(is_skipped, size, 2 * size / root * (size / per_rate))
    cost = add(state.cost, cost_now)
    restart = start_sum(cost_now)
    budget = jnp.sqrt(len(seen.play) * (jnp.asarray(num_rounds, dtype) + 1)) * state.unit
    is_over = cost.value > jnp.exp2(state.exponent.astype(dtype)) * budget
    least = jnp.ceil(jnp.log2(jnp.maximum(cost_now / budget, 1))).astype(jnp.int32) + 1
    return Doubling(
        exponent=jnp.where(is_over, jnp.maximum(state.exponent + 1, least), state.exponent),
        cost=Sum(*(jnp.where(is_over, new, old) for new, old in zip(restart, cost))),
        num_rounds=state.num_rounds + 1,
        unit=state.unit,
    )


def balance_init(num_arms, dtype, loss_unit) -> Balance:
    return Balance(start_sum(4 * loss_unit))


def _balance_estimate(state: Balance, play, probabilities, arm, loss) -> Array:
    chance = pick(probabilities, arm)
    is_small = 4 * jnp.abs(loss) * (1 - chance) < state.size.value
    return on_arm(jnp.where(is_small, loss / chance, 0), arm, play)


def next_balance(num_rounds, state: Balance, seen: Round) -> Balance:
    """Return the scale after a round.

    S_{t+1}^2 = S_t^2 + clip(l, -C_t, C_t)^2 (1 - p)^2 / (n ln T); S_1 = 4 in units of loss. As
    |clip(l)| (1 - p) is at most S_t / 4, S grows by a factor sqrt(1 + z) with z small.
    """
    size = state.size.value
    others = 1 - pick(seen.probabilities, seen.arm)
    share = jnp.minimum(jnp.abs(seen.loss) * others / size, 0.25)
    log_rounds = jnp.log(jnp.asarray(num_rounds, size.dtype))
    z = share**2 / (len(seen.play) * log_rounds)
    return Balance(add(state.size, size * (z / (1 + jnp.sqrt(1 + z)))))
