"""Every arm once, in order, before another sampling scheme takes over."""

from typing import Any, NamedTuple

import jax.numpy as jnp
from jax import Array
from jax.tree_util import Partial

from sfmab_jax.base import Round, Sampling, with_static_functions

__all__ = ["each_arm_first"]


class EachArmFirstState(NamedTuple):
    num_rounds: Array  # t [] int32
    then: Any  # the state of the other scheme, which counts all rounds


def each_arm_first(then: Sampling) -> Sampling:
    """p'_t = the arm t - 1 for t = 1 ... n; afterwards the law that ``then`` makes.

    The start of AHB (Hadiji and Stoltz) and of UCB1.
    """
    then = with_static_functions(then)
    return Sampling(
        init=Partial(_init, then),
        probabilities=Partial(_probabilities, then),
        update=Partial(_update, then),
    )


def _init(then, num_arms, dtype, loss_unit) -> EachArmFirstState:
    return EachArmFirstState(jnp.zeros((), jnp.int32), then.init(num_arms, dtype, loss_unit))


def _probabilities(then, state: EachArmFirstState, play: Array) -> Array:
    turn = (jnp.arange(len(play), dtype=jnp.int32) == state.num_rounds).astype(play.dtype)
    return jnp.where(state.num_rounds < len(play), turn, then.probabilities(state.then, play))


def _update(then, state: EachArmFirstState, seen: Round) -> EachArmFirstState:
    return EachArmFirstState(state.num_rounds + 1, then.update(state.then, seen))
