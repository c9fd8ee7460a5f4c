"""FTRL with the entropy and a log barrier, at a rate set by the squares of the estimates.

After Bubeck, Cohen and Li, "Sparsity, Variance and Curvature in Multi-armed Bandits" (2018).
"""

import math
from typing import NamedTuple

import jax.numpy as jnp
from jax import Array
from jax.tree_util import Partial

from sfmab_jax.base import FullInformation, Round
from sfmab_jax.checks import check_positive
from sfmab_jax.full_information.ftrl import add_round, follow
from sfmab_jax.numerics.arms import arm_sum, pick
from sfmab_jax.numerics.double_word import Sum, add, start_sum
from sfmab_jax.potentials.entropy_with_barrier import entropy_with_barrier_of

__all__ = ["hybrid_barrier_ftrl"]

# Only losses far beyond G come here; a sum of a million of them is in float32's range.
LARGEST_SQUARE = 1e30


class HybridBarrierState(NamedTuple):
    play: Array  # p_{t+1} [n]
    losses: Sum  # the cumulative estimates, two words [n]
    learning_rate: Array  # eta_t / G []
    squares: Sum  # V_t, two words []
    unit: Array  # G in the losses' unit []


def hybrid_barrier_ftrl(
    sum_of_squares: Array | float | None = None,
    *,
    barrier: Array | float = 4.0,
    scale: Array | float = 1.0,
) -> FullInformation:
    """FTRL with the entropy at a rate eta_t and kappa times the log barrier.

    p_{t+1} = argmin_q q.L_t / G + (1/eta_t) sum_i q(i) ln q(i) + kappa sum_i ln(1/q(i)), L_t the
    sum of the estimates, eta_t = sqrt(4 ln n / (3 V_t)) and, unless V is given, V_t =
    1 + sum_{s<=t} sum_i p_s(i) l~_s(i)^2 / G^2. For importance weights its mean is
    1 + sum_s |l_s|^2 / G^2.

    Args:
      sum_of_squares: V, constant; None for the running sum.
      barrier: kappa.
      scale: G, for losses in [-G, G].

    >>> import sfmab_jax as sf
    >>> state = hybrid_barrier_ftrl(12.0).init(3, jnp.dtype("float32"), jnp.float32(1.0))
    >>> print(f"{state.learning_rate:.4f}")
    0.3494
    """
    check_positive(barrier=barrier, scale=scale)
    potential_of = Partial(entropy_with_barrier_of)
    if sum_of_squares is None:
        sum_of_squares, grow = 1.0, Partial(_add_squares)
    else:
        check_positive(sum_of_squares=sum_of_squares)
        grow = Partial(_keep_squares)
    return FullInformation(
        init=Partial(_init, sum_of_squares, scale),
        update=Partial(_update, potential_of, barrier, grow),
    )


def _keep_squares(state: HybridBarrierState, seen: Round) -> Sum:
    return state.squares


def _add_squares(state: HybridBarrierState, seen: Round) -> Sum:
    if seen.weighted is None:
        square = arm_sum(seen.play * (seen.estimate / state.unit) ** 2)
    else:
        square = pick(seen.play, seen.arm) * (seen.weighted / state.unit) ** 2
    return add(state.squares, jnp.minimum(square, LARGEST_SQUARE))


def _rate(squares: Sum, num_arms: int) -> Array:
    # One arm has a play without a rate.
    return jnp.sqrt(4 / 3 * math.log(max(num_arms, 2)) / squares.value)


def _init(start, scale, num_arms, dtype, loss_unit) -> HybridBarrierState:
    zeros = jnp.zeros(num_arms, dtype)
    unit = jnp.asarray(scale, dtype) * loss_unit
    squares = start_sum(jnp.asarray(start, dtype))
    return HybridBarrierState(
        play=zeros + 1 / num_arms,
        losses=start_sum(zeros),
        learning_rate=_rate(squares, num_arms) / unit,
        squares=squares,
        unit=unit,
    )


def _update(potential_of, barrier, grow, state: HybridBarrierState, seen: Round):
    losses, squares = add_round(state.losses, seen), grow(state, seen)
    rate = _rate(squares, len(state.play))
    potential = potential_of(rate * barrier)
    start = potential.inverse(jnp.max(state.play))
    play = follow(potential, losses, rate / state.unit, start)
    return HybridBarrierState(play, losses, rate / state.unit, squares, state.unit)
