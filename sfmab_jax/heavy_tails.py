"""Parts for heavy tails whose scale is learnt: AdaTINF's doubling and uniINF's balance.

Estimation and full-information strategy follow the same scale, each in its own state: a pure
function of the arms played and their losses.
"""

from typing import NamedTuple

import jax.numpy as jnp
from jax import Array
from jax.tree_util import Partial

from sfmab_jax.base import Estimation, FullInformation, Round
from sfmab_jax.estimation.importance import on_arm
from sfmab_jax.floating import Sum, add, pick, start_sum
from sfmab_jax.full_information.ftrl import follow
from sfmab_jax.potentials import Potential

__all__ = ["balanced_ftrl", "balanced_skipping", "doubling_ftrl", "doubling_skipping"]

# Theta_2 of Huang, Dai and Huang (2022): 1 - 2^(-1/3).
SKIP_SHARE = 1 - 2 ** (-1 / 3)


class Doubling(NamedTuple):
    """AdaTINF's scale 2^J, raised when what it has cost exceeds its budget."""

    exponent: Array  # J [] int32
    cost: Sum  # S, two words []
    num_rounds: Array  # t [] int32
    unit: Array  # one unit of loss []


class Balance(NamedTuple):
    """uniINF's scale S_t."""

    size: Sum  # S_{t+1}, two words []


class FollowState(NamedTuple):
    play: Array  # p_{t+1} [n]
    losses: Sum  # the cumulative estimates, two words [n]
    learning_rate: Array  # eta_{t+1} []
    scale: Doubling | Balance


def doubling_skipping(num_rounds: Array | float) -> Estimation:
    """l~_t(i) = l_t(i) [i = i_t] [|l_t(i)| <= r_t(i)] / p'_t(i).

    r_t(i) = Theta_2 sqrt(p'_t(i)) / eta_t, eta_t = 1 / (2^J sqrt(t)).
    The mean is l_t(i) [|l_t(i)| <= r_t(i)].
    """
    return Estimation(
        init=Partial(_doubling_init),
        estimate=Partial(_doubling_estimate),
        update=Partial(_double, num_rounds),
    )


def doubling_ftrl(potential: Potential, num_rounds: Array | float) -> FullInformation:
    """FTRL with f = -sqrt(x) and learning rate eta_t / 2: Psi = -2 sum(sqrt(x)) with eta_t."""
    return _following(potential, _doubling_init, Partial(_double, num_rounds), _doubling_rate)


def balanced_skipping(num_rounds: Array | float) -> Estimation:
    """l~_t(i) = l_t(i) [i = i_t] [|l_t(i)| < C_t(i)] / p'_t(i), C_t(i) = S_t / (4 (1 - p'_t(i))).

    The mean is l_t(i) [|l_t(i)| < C_t(i)].
    """
    return Estimation(
        init=Partial(_balance_init),
        estimate=Partial(_balance_estimate),
        update=Partial(_balance, num_rounds),
    )


def balanced_ftrl(potential: Potential, num_rounds: Array | float) -> FullInformation:
    """FTRL with the learning rate 1 / S_t."""
    return _following(potential, _balance_init, Partial(_balance, num_rounds), _balance_rate)


def _doubling_init(num_arms, dtype, loss_unit) -> Doubling:
    zero = jnp.zeros((), jnp.int32)
    return Doubling(zero, start_sum(jnp.zeros((), dtype)), zero, loss_unit)


def _inverse_rate(scale: Doubling) -> Array:
    """1 / eta_t of the next round, 2^J sqrt(t), in units of loss."""
    dtype = scale.unit.dtype
    t = (scale.num_rounds + 1).astype(dtype)
    return jnp.exp2(scale.exponent.astype(dtype)) * jnp.sqrt(t) * scale.unit


def _doubling_estimate(state: Doubling, play, probabilities, arm, loss) -> Array:
    chance = pick(probabilities, arm)
    limit = SKIP_SHARE * _inverse_rate(state) * jnp.sqrt(chance)
    return on_arm(jnp.where(jnp.abs(loss) <= limit, loss / chance, 0), arm, play)


def _double(num_rounds, state: Doubling, seen: Round) -> Doubling:
    """c_t = 2 eta_t l^2 / sqrt(p), or |l| if skipped. When S = sum c exceeds 2^J sqrt(n (T + 1)):

    J = max(J + 1, ceil(log2(c_t / sqrt(n (T + 1)))) + 1), S = c_t.
    """
    dtype = state.unit.dtype
    root = jnp.sqrt(pick(seen.probabilities, seen.arm))
    inverse_rate = _inverse_rate(state)
    size = jnp.abs(seen.loss)
    skipped = size > SKIP_SHARE * inverse_rate * root
    # In this order nothing overflows: below the limit l / inverse_rate is less than 1.
    cost_now = jnp.where(skipped, size, 2 * size / root * (size / inverse_rate))
    cost = add(state.cost, cost_now)
    restarted = start_sum(cost_now)
    budget = jnp.sqrt(len(seen.play) * (jnp.asarray(num_rounds, dtype) + 1)) * state.unit
    over = cost.value > jnp.exp2(state.exponent.astype(dtype)) * budget
    needed = jnp.ceil(jnp.log2(jnp.maximum(cost_now / budget, 1))).astype(jnp.int32) + 1
    return Doubling(
        exponent=jnp.where(over, jnp.maximum(state.exponent + 1, needed), state.exponent),
        cost=Sum(*(jnp.where(over, new, old) for new, old in zip(restarted, cost))),
        num_rounds=state.num_rounds + 1,
        unit=state.unit,
    )


def _doubling_rate(scale: Doubling) -> Array:
    return 0.5 / _inverse_rate(scale)


def _balance_init(num_arms, dtype, loss_unit) -> Balance:
    return Balance(start_sum(4 * loss_unit))


def _balance_estimate(state: Balance, play, probabilities, arm, loss) -> Array:
    chance = pick(probabilities, arm)
    kept = 4 * jnp.abs(loss) * (1 - chance) < state.size.value
    return on_arm(jnp.where(kept, loss / chance, 0), arm, play)


def _balance(num_rounds, state: Balance, seen: Round) -> Balance:
    """S_{t+1}^2 = S_t^2 + clip(l, -C_t, C_t)^2 (1 - p)^2 / (n log T).

    The clipped term is at most S_t / 4, so that S grows by a factor sqrt(1 + z) with z small.
    """
    size = state.size.value
    others = 1 - pick(seen.probabilities, seen.arm)
    share = jnp.minimum(jnp.abs(seen.loss) * others / size, 0.25)
    log_rounds = jnp.log(jnp.asarray(num_rounds, size.dtype))
    z = share**2 / (len(seen.play) * log_rounds)
    return Balance(add(state.size, size * (z / (1 + jnp.sqrt(1 + z)))))


def _balance_rate(scale: Balance) -> Array:
    return 1 / scale.size.value


def _following(potential: Potential, scale_init, next_scale, rate) -> FullInformation:
    """FTRL at the learning rate ``rate(scale)``."""
    return FullInformation(
        init=Partial(_follow_init, Partial(scale_init), Partial(rate)),
        update=Partial(_follow_update, potential, next_scale, Partial(rate)),
    )


def _follow_init(scale_init, rate, num_arms, dtype, loss_unit) -> FollowState:
    scale = scale_init(num_arms, dtype, loss_unit)
    zeros = jnp.zeros(num_arms, dtype)
    return FollowState(zeros + 1 / num_arms, start_sum(zeros), rate(scale), scale)


def _follow_update(potential, next_scale, rate, state: FollowState, seen: Round) -> FollowState:
    losses = add(state.losses, seen.estimate)
    scale = next_scale(state.scale, seen)
    play = follow(potential, losses, rate(scale), potential.inverse(jnp.max(state.play)))
    return FollowState(play, losses, rate(scale), scale)
