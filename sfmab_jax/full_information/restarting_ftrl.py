"""FTRL that starts again when a loss leaves the range, at a rate halved as losses add up.

The range is that of `estimation.growing_range`, kept once more in the state of this part.
"""

import math
from typing import NamedTuple

import jax.numpy as jnp
from jax import Array
from jax.tree_util import Partial

from sfmab_jax.base import FullInformation, Round
from sfmab_jax.checks import check_horizon
from sfmab_jax.estimation.growing_range import RangeState, next_range, range_init
from sfmab_jax.full_information.ftrl import add_round, follow
from sfmab_jax.numerics.bits import binary_exponent, inverse_power
from sfmab_jax.numerics.double_word import Sum, start_sum
from sfmab_jax.potentials import Potential
from sfmab_jax.potentials.base import check_potential

__all__ = ["restarting_ftrl"]


class RestartingFTRLState(NamedTuple):
    play: Array  # p_{t+1} [n]
    losses: Sum  # the cumulative estimates since the last start, two words [n]
    learning_rate: Array  # eta_{t+1} []
    epoch: Array  # r [] int32
    range: RangeState


def restarting_ftrl(potential: Potential, num_rounds: Array | float) -> FullInformation:
    """FTRL of Exp3Light-A, which starts again in a wider range: Gagliolo and Schmidhuber (2011).

    p_{t+1} = argmin_q F(q) + (eta_r / B) q.L~ with eta_r = sqrt(2 (ln n + n ln T) / (n 4^r)). r
    starts at 0; when min(L~) / B > 4^r it becomes ceil(log4(min(L~) / B)). B is the range of
    `estimation.within_range`; when a loss exceeds it, L~ and r are 0 again, and T stays as it is.

    Args:
      potential: gives the regulariser; `negative_entropy()` in Exp3Light-A.
      num_rounds: T.
    """
    check_potential(potential)
    check_horizon(num_rounds)
    return FullInformation(
        init=Partial(_init, num_rounds), update=Partial(_update, potential, num_rounds)
    )


def _init(num_rounds, num_arms, dtype, loss_unit) -> RestartingFTRLState:
    zeros, epoch = jnp.zeros(num_arms, dtype), jnp.zeros((), jnp.int32)
    scale = range_init(num_arms, dtype, loss_unit)
    rate = _rate(num_rounds, num_arms, epoch, scale)
    return RestartingFTRLState(zeros + 1 / num_arms, start_sum(zeros), rate, epoch, scale)


def _rate(num_rounds, num_arms: int, epoch: Array, scale: RangeState) -> Array:
    log_rounds = jnp.log(jnp.asarray(num_rounds, scale.top.dtype))
    first = jnp.sqrt(2 * (math.log(num_arms) / num_arms + log_rounds))
    return first * jnp.exp2(-epoch.astype(first.dtype)) / scale.top


def _log4_rounded_up(x: Array) -> Array:
    """Return ceil(log4(x)) of x >= 1, int32 []; from the bits, so that powers of four are exact."""
    x = jnp.minimum(x, 2.0**126)
    half = jnp.floor(binary_exponent(x) / 2)
    # 4^k has the exponent 2k, its significand is 1.
    is_power = (x * inverse_power(x) == 1) & (2 * half == binary_exponent(x))
    return jnp.where(is_power, half, half + 1).astype(jnp.int32)


def _update(potential, num_rounds, state: RestartingFTRLState, seen: Round) -> RestartingFTRLState:
    restarts = seen.loss > state.range.top
    losses = Sum(*(jnp.where(restarts, 0, word) for word in add_round(state.losses, seen)))
    scale = next_range(state.range, seen.loss)
    smallest = jnp.maximum(jnp.min(losses.value) / scale.top, 1)
    epoch = jnp.maximum(jnp.where(restarts, 0, state.epoch), _log4_rounded_up(smallest))
    rate = _rate(num_rounds, len(seen.play), epoch, scale)
    play = follow(potential, losses, rate, potential.inverse(jnp.max(state.play)))
    return RestartingFTRLState(play, losses, rate, epoch, scale)
