"""Importance weighting: the loss seen, divided by the probability of seeing it."""

import jax.numpy as jnp
from jax import Array
from jax.tree_util import Partial

from sfmab_jax.base import Estimation, keep_state
from sfmab_jax.numerics.arms import is_arm, pick

__all__ = ["importance_weighted", "on_arm"]


def importance_weighted() -> Estimation:
    """Weigh the loss seen by its probability: section 2 of the paper, "Estimation Scheme".

    l~_t(i) = l_t(i) [i = i_t] / p'_t(i), whose mean is l_t(i).
    """
    return Estimation(
        init=Partial(_no_state),
        estimate=Partial(_importance_weighted),
        update=Partial(keep_state),
        weigh=Partial(_weigh),
    )


def on_arm(value: Array, arm: Array, like: Array) -> Array:
    """Return the vector [n], as ``like``, with ``value`` on the arm and 0 elsewhere."""
    return jnp.where(is_arm(arm, like), value, jnp.zeros_like(like))


def _no_state(num_arms, dtype, loss_unit) -> tuple[()]:
    return ()


def _importance_weighted(
    state, play: Array, probabilities: Array, arm: Array, loss: Array
) -> Array:
    return on_arm(_weigh(state, play, probabilities, arm, loss), arm, play)


def _weigh(state, play: Array, probabilities: Array, arm: Array, loss: Array) -> Array:
    return loss / pick(probabilities, arm)
