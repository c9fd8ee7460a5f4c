"""Importance weighting of the distance to a prediction: the last loss seen of each arm."""

from typing import NamedTuple

import jax.numpy as jnp
from jax import Array
from jax.tree_util import Partial

from sfmab_jax.base import Estimation, Round
from sfmab_jax.estimation.importance import on_arm
from sfmab_jax.floating import is_arm, pick

__all__ = ["predicted_by_last_seen", "see"]


class LastSeenState(NamedTuple):
    predictions: Array  # m_{t+1}, the last loss seen of each arm, at first 0 [n]


def predicted_by_last_seen() -> Estimation:
    """l~_t(i) = (l_t(i) - m_t(i)) [i = i_t] / p'_t(i) + m_t(i), m_t(i) the last loss seen of arm i.

    Unbiased: m_t is known before the arm is drawn. Wei and Luo (2018).
    """
    return Estimation(init=Partial(_init), estimate=Partial(_estimate), update=Partial(_update))


def see(predictions: Array, seen: Round) -> Array:
    """The predictions after a round, [n]."""
    return jnp.where(is_arm(seen.arm, predictions), seen.loss, predictions)


def _init(num_arms, dtype, loss_unit) -> LastSeenState:
    return LastSeenState(jnp.zeros(num_arms, dtype))


def _estimate(state: LastSeenState, play, probabilities, arm, loss) -> Array:
    surprise = (loss - pick(state.predictions, arm)) / pick(probabilities, arm)
    return on_arm(surprise, arm, play) + state.predictions


def _update(state: LastSeenState, seen: Round) -> LastSeenState:
    return LastSeenState(see(state.predictions, seen))
