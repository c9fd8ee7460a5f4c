"""A start that plays every arm once, before another sampling scheme takes over."""

from typing import Any, NamedTuple

import jax.numpy as jnp
from jax import Array
from jax.tree_util import Partial

from sfmab_jax.base import Round, Sampling, with_static_functions
from sfmab_jax.numerics.arms import is_arm

__all__ = ["each_arm_first"]


class EachArmFirstState(NamedTuple):
    num_rounds: Array  # t [] int32
    then: Any  # the state of the other scheme


def each_arm_first(then: Sampling) -> Sampling:
    """Play every arm once: p'_t is arm t - 1 for t = 1 ... n, then the law of another scheme.

    The start of AHB (Hadiji and Stoltz 2023).

    Args:
      then: the other scheme; its state counts the first n rounds, too.
    """
    if not isinstance(then, Sampling):
        raise ValueError(f"then is {then!r}; give a sampling scheme, as sf.sampling.adaptive()")
    then = with_static_functions(then)
    return Sampling(
        init=Partial(_init, then),
        probabilities=Partial(_probabilities, then),
        update=Partial(_update, then),
    )


def _init(then, num_arms, dtype, loss_unit) -> EachArmFirstState:
    return EachArmFirstState(jnp.zeros((), jnp.int32), then.init(num_arms, dtype, loss_unit))


def _probabilities(then, state: EachArmFirstState, play: Array) -> Array:
    turn = is_arm(state.num_rounds, play).astype(play.dtype)
    return jnp.where(state.num_rounds < len(play), turn, then.probabilities(state.then, play))


def _update(then, state: EachArmFirstState, seen: Round) -> EachArmFirstState:
    return EachArmFirstState(state.num_rounds + 1, then.update(state.then, seen))
