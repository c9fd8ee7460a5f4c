"""Mixing with the arm played last, the more the better it was: improved path length."""

from collections.abc import Callable
from typing import NamedTuple

import jax.numpy as jnp
from jax import Array
from jax.tree_util import Partial

from sfmab_jax.base import Round, Sampling, as_partial
from sfmab_jax.checks import check_functions, check_positive
from sfmab_jax.numerics.arms import is_arm

__all__ = ["favouring_last"]


class FavouringLastState(NamedTuple):
    arm: Array  # i_t, the last arm [] int32
    weight: Array  # lambda_t, at first 0 []
    num_rounds: Array  # t [] int32
    unit: Array  # G in the losses' unit []


def favouring_last(weight: Callable[[Array, int], Array], scale: Array | float = 1.0) -> Sampling:
    """Favour the arm played last: Bubeck, Li, Luo and Wei (2019), Algorithm 1.

    p'_{t+1} = (p_{t+1} + lambda_t [i = i_t]) / (1 + lambda_t), lambda_t = a_t (1 - l_t(i_t) / G),
    or 0 if that is negative; p'_1 = p_1.

    Args:
      weight: a function of the number of rounds played t = 1, 2, ... (a float []) and the number of
        arms n that returns a_t [], not negative.
      scale: G, for losses in [0, G].

    >>> scheme = favouring_last(lambda t, n: 0.5)
    >>> state = FavouringLastState(jnp.int32(1), jnp.float32(0.25), jnp.int32(1), jnp.float32(1.0))
    >>> print(scheme.probabilities(state, jnp.array([0.5, 0.5], jnp.float32)))
    [0.4 0.6]
    """
    check_functions(weight=weight)
    check_positive(scale=scale)
    return Sampling(
        init=Partial(_init, scale),
        probabilities=Partial(_probabilities),
        update=Partial(_update, as_partial(weight)),
    )


def _init(scale, num_arms, dtype, loss_unit) -> FavouringLastState:
    zero = jnp.zeros((), jnp.int32)
    unit = jnp.asarray(scale, dtype) * loss_unit
    return FavouringLastState(zero, jnp.zeros((), dtype), zero, unit)


def _probabilities(state: FavouringLastState, play: Array) -> Array:
    favour = jnp.where(is_arm(state.arm, play), state.weight, jnp.zeros_like(play))
    return (play + favour) / (1 + state.weight)


def _update(weight, state: FavouringLastState, seen: Round) -> FavouringLastState:
    num_rounds = state.num_rounds + 1
    dtype = state.weight.dtype
    most = jnp.asarray(weight(num_rounds.astype(dtype), len(seen.play)), dtype)
    share = jnp.maximum(1 - seen.loss / state.unit, 0)
    return FavouringLastState(seen.arm.astype(jnp.int32), most * share, num_rounds, state.unit)
