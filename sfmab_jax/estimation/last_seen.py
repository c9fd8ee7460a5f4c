"""Importance weighting of the distance to a prediction: the last loss seen of each arm."""

from typing import NamedTuple

import jax.numpy as jnp
from jax import Array
from jax.tree_util import Partial

from sfmab_jax.base import Estimation, Round
from sfmab_jax.estimation.importance import on_arm
from sfmab_jax.numerics.arms import is_arm, pick

__all__ = ["predicted_by_last_seen", "update_predictions"]


class LastSeenState(NamedTuple):
    predictions: Array  # m_{t+1}, the last loss seen of each arm, at first 0 [n]


def predicted_by_last_seen() -> Estimation:
    """Weigh the distance to m_t(i), the last loss seen of arm i, at first 0: Wei and Luo (2018).

    l~_t(i) = (l_t(i) - m_t(i)) [i = i_t] / p'_t(i) + m_t(i). Unbiased, as m_t is known before the
    arm is drawn.
    """
    return Estimation(init=Partial(_init), estimate=Partial(_estimate), update=Partial(_update))


def update_predictions(predictions: Array, seen: Round) -> Array:
    """Return the last loss seen of each arm [n] after a round."""
    return jnp.where(is_arm(seen.arm, predictions), seen.loss, predictions)


def _init(num_arms, dtype, loss_unit) -> LastSeenState:
    return LastSeenState(jnp.zeros(num_arms, dtype))


def _estimate(state: LastSeenState, play, probabilities, arm, loss) -> Array:
    surprise = (loss - pick(state.predictions, arm)) / pick(probabilities, arm)
    return on_arm(surprise, arm, play) + state.predictions


def _update(state: LastSeenState, seen: Round) -> LastSeenState:
    return LastSeenState(update_predictions(state.predictions, seen))
