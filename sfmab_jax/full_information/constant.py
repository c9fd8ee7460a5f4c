"""The same play for ever."""

from typing import NamedTuple

import jax.numpy as jnp
from jax import Array
from jax.tree_util import Partial

from sfmab_jax.base import FullInformation, keep_state
from sfmab_jax.checks import check_integer, is_known

__all__ = ["constant"]


class ConstantState(NamedTuple):
    play: Array  # [n]


def constant(arm: Array | int | None = None) -> FullInformation:
    """Play one arm for ever, or the uniform law: p_t = p_1.

    Args:
      arm: the arm, 0 to n - 1; None for the uniform law.
    """
    if arm is not None and is_known(arm):
        check_integer("arm", arm, 0, 2**24 - 1)
    return FullInformation(init=Partial(_init, arm), update=Partial(keep_state))


def _init(arm, num_arms, dtype, loss_unit) -> ConstantState:
    if arm is None:
        return ConstantState(jnp.full(num_arms, 1 / num_arms, dtype))
    if not isinstance(arm, Array) and not 0 <= arm < num_arms:
        raise ValueError(f"arm is {arm!r}; there are {num_arms} arms: give 0 to {num_arms - 1}")
    places = jnp.arange(num_arms, dtype=jnp.int32)
    return ConstantState((places == jnp.asarray(arm, jnp.int32)).astype(dtype))
