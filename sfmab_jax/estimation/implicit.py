"""Implicit exploration: importance weighting with a little added to the probability."""

from collections.abc import Callable
from typing import NamedTuple

import jax.numpy as jnp
from jax import Array
from jax.tree_util import Partial

from sfmab_jax.base import Estimation, Round, as_partial
from sfmab_jax.checks import check_functions
from sfmab_jax.estimation.importance import on_arm
from sfmab_jax.numerics.arms import pick

__all__ = ["implicit_exploration"]


class ImplicitState(NamedTuple):
    num_rounds: Array  # t [] int32


def implicit_exploration(bias: Callable[[Array, int], Array]) -> Estimation:
    """Explore implicitly: l~_t(i) = l_t(i) [i = i_t] / (p'_t(i) + g_t). Exp3-IX, Neu (2015).

    The mean is l_t(i) p'_t(i) / (p'_t(i) + g_t), too small by the share g_t / (p'_t(i) + g_t).

    Args:
      bias: a function of the number of rounds played t - 1 = 0, 1, ... (a float []) and the number
        of arms n that returns g_t [].
    """
    check_functions(bias=bias)
    return Estimation(
        init=Partial(_init),
        estimate=Partial(_estimate, as_partial(bias)),
        update=Partial(_update),
    )


def _init(num_arms, dtype, loss_unit) -> ImplicitState:
    return ImplicitState(jnp.zeros((), jnp.int32))


def _estimate(bias, state: ImplicitState, play, probabilities, arm, loss) -> Array:
    addend = jnp.asarray(bias(state.num_rounds.astype(play.dtype), len(play)), play.dtype)
    return on_arm(loss / (pick(probabilities, arm) + addend), arm, play)


def _update(state: ImplicitState, seen: Round) -> ImplicitState:
    return ImplicitState(state.num_rounds + 1)
