"""Importance weighting of the distance to a centre, known or learnt from the losses seen."""

from collections.abc import Callable
from typing import NamedTuple

import jax.numpy as jnp
from jax import Array
from jax.tree_util import Partial

from sfmab_jax.base import Estimation, Round, as_partial
from sfmab_jax.checks import check_number
from sfmab_jax.estimation.importance import on_arm
from sfmab_jax.numerics.arms import pick

__all__ = ["centred", "centred_on_best", "centred_on_last", "centred_on_mean"]


class CentredState(NamedTuple):
    num_rounds: Array  # t [] int32
    unit: Array  # one unit of loss []


class FirstLossesState(NamedTuple):
    num_rounds: Array  # t [] int32
    centre: Array  # C []


class LastLossState(NamedTuple):
    centre: Array  # c_t, the last loss seen, at first 0 []


def centred(centre: Array | float | Callable[[Array], Array]) -> Estimation:
    """Weigh the distance to a known centre: l~_t(i) = (l_t(i) - m_t) [i = i_t] / p'_t(i) + m_t.

    Unbiased for any m_t known before the arm is drawn.

    Args:
      centre: m in units of loss, a number, or a function of the round t = 1, 2, ... (a float [])
        that returns m_t [].
    """
    if not callable(centre):
        check_number("centre", centre)
    schedule = as_partial(centre) if callable(centre) else Partial(_constant, centre)
    return Estimation(
        init=Partial(_init), estimate=Partial(_estimate, schedule), update=Partial(_count)
    )


def centred_on_mean() -> Estimation:
    """Weigh the distance to the mean of the first n losses, C: AHB, Hadiji and Stoltz (2023).

    l~_t(i) = 0 in the first n rounds, then (l_t(i) - C) [i = i_t] / p'_t(i). Its mean is
    l_t(i) - C: less than the loss by a constant common to all arms, to which shift-invariant
    strategies are blind.
    """
    return Estimation(
        init=Partial(_first_losses_init),
        estimate=Partial(_from_first_losses, Partial(_num_arms)),
        update=Partial(_learn_mean),
    )


def centred_on_best() -> Estimation:
    """Weigh the distance to the smallest of the first n - 1 losses, C: AHB's published code.

    As `centred_on_mean`, but l~_t(i) = 0 in the first n - 1 rounds only: in round n it is already
    (l_t(i) - C) [i = i_t] / p'_t(i).
    """
    return Estimation(
        init=Partial(_first_losses_init),
        estimate=Partial(_from_first_losses, Partial(_num_arms_less_one)),
        update=Partial(_learn_best),
    )


def centred_on_last() -> Estimation:
    """Weigh the distance to the last loss seen, of whichever arm: Bubeck, Li, Luo and Wei (2019).

    l~_t(i) = (l_t(i) - c_{t-1}) [i = i_t] / p'_t(i) + c_{t-1}, c_t = l_t(i_t), c_0 = 0. Unbiased,
    as c_{t-1} is known before the arm is drawn.
    """
    return Estimation(
        init=Partial(_last_loss_init),
        estimate=Partial(_from_last_loss),
        update=Partial(_learn_last),
    )


def _constant(centre, round_: Array):
    return centre


def _init(num_arms, dtype, loss_unit) -> CentredState:
    return CentredState(jnp.zeros((), jnp.int32), loss_unit)


def _estimate(schedule, state: CentredState, play, probabilities, arm, loss) -> Array:
    round_ = (state.num_rounds + 1).astype(play.dtype)
    centre = jnp.asarray(schedule(round_), play.dtype) * state.unit
    return on_arm((loss - centre) / pick(probabilities, arm), arm, play) + centre


def _count(state: CentredState, seen: Round) -> CentredState:
    return CentredState(state.num_rounds + 1, state.unit)


def _num_arms(num_arms: int) -> int:
    return num_arms


def _num_arms_less_one(num_arms: int) -> int:
    return num_arms - 1


def _first_losses_init(num_arms, dtype, loss_unit) -> FirstLossesState:
    return FirstLossesState(jnp.zeros((), jnp.int32), jnp.zeros((), dtype))


def _from_first_losses(num_first, state: FirstLossesState, play, probabilities, arm, loss) -> Array:
    weighted = (loss - state.centre) / pick(probabilities, arm)
    known = state.num_rounds >= num_first(len(play))
    return on_arm(jnp.where(known, weighted, 0), arm, play)


def _learn_mean(state: FirstLossesState, seen: Round) -> FirstLossesState:
    n = len(seen.play)
    share = jnp.where(state.num_rounds < n, seen.loss / n, 0)
    return FirstLossesState(state.num_rounds + 1, state.centre + share)


def _learn_best(state: FirstLossesState, seen: Round) -> FirstLossesState:
    best = jnp.where(state.num_rounds == 0, seen.loss, jnp.minimum(state.centre, seen.loss))
    learning = state.num_rounds < len(seen.play) - 1
    return FirstLossesState(state.num_rounds + 1, jnp.where(learning, best, state.centre))


def _last_loss_init(num_arms, dtype, loss_unit) -> LastLossState:
    return LastLossState(jnp.zeros((), dtype))


def _from_last_loss(state: LastLossState, play, probabilities, arm, loss) -> Array:
    weighted = (loss - state.centre) / pick(probabilities, arm)
    return on_arm(weighted, arm, play) + state.centre


def _learn_last(state: LastLossState, seen: Round) -> LastLossState:
    return LastLossState(seen.loss)
