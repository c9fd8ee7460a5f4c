"""Importance weighting: the one loss seen, divided by the probability of seeing it."""

import jax.numpy as jnp
from jax import Array
from jax.tree_util import Partial

from sfmab_jax.base import Estimation, Round
from sfmab_jax.floating import is_arm, pick

__all__ = ["importance_weighted", "on_arm"]


def importance_weighted() -> Estimation:
    """l~_t = l_t(i_t) / p'_t(i_t) on the arm played, 0 elsewhere. Section 2, "Estimation Scheme".

    Unbiased: sum_i p'_t(i) l~_t given i = l_t.
    """
    return Estimation(
        init=Partial(_no_state),
        estimate=Partial(_importance_weighted),
        update=Partial(_keep),
        weigh=Partial(_weigh),
    )


def on_arm(value: Array, arm: Array, like: Array) -> Array:
    """The vector with ``value`` on the arm and 0 elsewhere, [n] as ``like``."""
    return jnp.where(is_arm(arm, like), value, jnp.zeros_like(like))


def _no_state(num_arms, dtype, loss_unit) -> tuple[()]:
    return ()


def _keep(state, seen: Round):
    return state


def _importance_weighted(
    state, play: Array, probabilities: Array, arm: Array, loss: Array
) -> Array:
    return on_arm(_weigh(state, play, probabilities, arm, loss), arm, play)


def _weigh(state, play: Array, probabilities: Array, arm: Array, loss: Array) -> Array:
    return loss / pick(probabilities, arm)
