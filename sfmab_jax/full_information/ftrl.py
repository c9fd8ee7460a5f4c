"""Follow the regularised leader with a learning rate given in advance."""

from collections.abc import Callable
from typing import NamedTuple

import jax.numpy as jnp
from jax import Array
from jax.tree_util import Partial

from sfmab_jax.base import FullInformation, Round
from sfmab_jax.checks import check_number
from sfmab_jax.floating import Sum, add, start_sum
from sfmab_jax.potentials import Potential
from sfmab_jax.simplex import distribution_of_gaps

__all__ = ["FTRLState", "follow", "ftrl"]


class FTRLState(NamedTuple):
    play: Array  # p_{t+1}  [n]
    losses: Sum  # the cumulative estimates, two words [n]
    learning_rate: Array  # eta_t    []
    num_rounds: Array  # t        [] int32
    unit: Array  # one unit of loss []


def ftrl(
    potential: Potential, learning_rate: Array | float | Callable[[Array], Array]
) -> FullInformation:
    """p_{t+1} = argmin_q F(q) + eta_t sum_{s<=t} q.l_s. Section 5 of the paper.

    Args:
      potential: gives F; see `sfmab_jax.potentials`.
      learning_rate: eta, a positive number, or a function of the number of rounds played
        t = 0, 1, ... (a float array []) that gives eta_t. It is per unit of loss.
    """
    if not callable(learning_rate):
        check_number("learning_rate", learning_rate, positive=True)
    schedule = Partial(learning_rate) if callable(learning_rate) else learning_rate
    return FullInformation(
        init=Partial(_init, schedule), update=Partial(_update, potential, schedule)
    )


def follow(potential: Potential, losses: Sum, learning_rate: Array) -> Array:
    """argmin_q F(q) + eta L.q, [n], from the two-word cumulative losses L."""
    leader = jnp.min(losses.value)
    # The difference of the high words is exact where it matters: between close arms.
    gaps = (losses.value - leader) + losses.error
    return distribution_of_gaps(potential, learning_rate * (gaps - jnp.min(gaps)))


def _rate(schedule, num_rounds: Array, dtype, unit: Array) -> Array:
    rate = schedule(num_rounds.astype(dtype)) if callable(schedule) else schedule
    return jnp.asarray(rate, dtype) / unit


def _init(schedule, num_arms, dtype, loss_unit) -> FTRLState:
    num_rounds = jnp.zeros((), jnp.int32)
    return FTRLState(
        play=jnp.full(num_arms, 1 / num_arms, dtype),
        losses=start_sum(jnp.zeros(num_arms, dtype)),
        learning_rate=_rate(schedule, num_rounds, dtype, loss_unit),
        num_rounds=num_rounds,
        unit=loss_unit,
    )


def _update(potential, schedule, state: FTRLState, seen: Round) -> FTRLState:
    losses = add(state.losses, seen.estimate)
    num_rounds = state.num_rounds + 1
    rate = _rate(schedule, num_rounds, seen.estimate.dtype, state.unit)
    return FTRLState(follow(potential, losses, rate), losses, rate, num_rounds, state.unit)
