"""The same point of the simplex for ever."""

from typing import NamedTuple

import jax.numpy as jnp
from jax import Array
from jax.tree_util import Partial

from sfmab_jax.base import FullInformation, Round

__all__ = ["constant"]


class ConstantState(NamedTuple):
    play: Array  # [n]


def constant(arm: Array | int | None = None) -> FullInformation:
    """p_t = the arm given, or the uniform law if None is."""
    return FullInformation(init=Partial(_init, arm), update=Partial(_keep))


def _init(arm, num_arms, dtype, loss_unit) -> ConstantState:
    if arm is None:
        return ConstantState(jnp.full(num_arms, 1 / num_arms, dtype))
    places = jnp.arange(num_arms, dtype=jnp.int32)
    return ConstantState((places == jnp.asarray(arm, jnp.int32)).astype(dtype))


def _keep(state: ConstantState, seen: Round) -> ConstantState:
    return state
