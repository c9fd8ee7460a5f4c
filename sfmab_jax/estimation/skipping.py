"""Skipping of losses that are too large for the probability of their arm: heavy tails."""

from collections.abc import Callable
from typing import NamedTuple

import jax.numpy as jnp
from jax import Array
from jax.tree_util import Partial

from sfmab_jax.base import Estimation, Round, as_partial, keep_state
from sfmab_jax.checks import check_functions
from sfmab_jax.estimation.importance import on_arm
from sfmab_jax.numerics.arms import pick

__all__ = ["skipping", "skipping_above"]


class SkippingState(NamedTuple):
    num_rounds: Array  # t [] int32
    unit: Array  # one unit of loss []


def skipping(limit: Callable[[Array, Array], Array]) -> Estimation:
    """Skip losses above a limit: HTINF, Huang, Dai and Huang (2022).

    l~_t(i) = l_t(i) [i = i_t] [|l_t(i)| <= r_t(i)] / p'_t(i), of mean l_t(i) [|l_t(i)| <= r_t(i)]:
    larger losses count as 0.

    Args:
      limit: a function of the round t = 1, 2, ... (a float []) and the arm's probability p'_t(i)
        [] that returns r_t(i) [] in units of loss.
    """
    check_functions(limit=limit)
    return Estimation(
        init=Partial(_init), estimate=Partial(_estimate, as_partial(limit)), update=Partial(_update)
    )


class FixedSkippingState(NamedTuple):
    most: Array  # M in the losses' unit []


def skipping_above(limit: Callable[[int], Array]) -> Estimation:
    """Skip losses above a fixed limit: Cheng, Zhou and Ji (2024).

    l~_t(i) = l_t(i) [i = i_t] [|l_t(i)| <= M] / p'_t(i), of mean l_t(i) [|l_t(i)| <= M].

    Args:
      limit: a function of the number of arms n that returns M [] in units of loss.
    """
    check_functions(limit=limit)
    return Estimation(
        init=Partial(_fixed_init, as_partial(limit)),
        estimate=Partial(_fixed_estimate),
        update=Partial(keep_state),
        weigh=Partial(_fixed_weigh),
    )


def _init(num_arms, dtype, loss_unit) -> SkippingState:
    return SkippingState(jnp.zeros((), jnp.int32), loss_unit)


def _estimate(limit, state: SkippingState, play, probabilities, arm, loss) -> Array:
    chance = pick(probabilities, arm)
    round_ = (state.num_rounds + 1).astype(play.dtype)
    most = jnp.asarray(limit(round_, chance), play.dtype) * state.unit
    return on_arm(jnp.where(jnp.abs(loss) <= most, loss / chance, 0), arm, play)


def _update(state: SkippingState, seen: Round) -> SkippingState:
    return SkippingState(state.num_rounds + 1, state.unit)


def _fixed_init(limit, num_arms, dtype, loss_unit) -> FixedSkippingState:
    return FixedSkippingState(jnp.asarray(limit(num_arms), dtype) * loss_unit)


def _fixed_weigh(state: FixedSkippingState, play, probabilities, arm, loss) -> Array:
    return jnp.where(jnp.abs(loss) <= state.most, loss / pick(probabilities, arm), 0)


def _fixed_estimate(state: FixedSkippingState, play, probabilities, arm, loss) -> Array:
    return on_arm(_fixed_weigh(state, play, probabilities, arm, loss), arm, play)
