"""Exploration arm by arm, less of it the worse an arm has been: Exp3++."""

import math
from typing import NamedTuple

import jax.numpy as jnp
from jax import Array
from jax.tree_util import Partial

from sfmab_jax.base import Round, Sampling
from sfmab_jax.checks import check_number
from sfmab_jax.floating import Sum, add, arm_sum, is_arm, start_sum

__all__ = ["gap_estimates", "gap_exploration"]


class GapExplorationState(NamedTuple):
    num_rounds: Array  # t [] int32
    num_plays: Array  # N_t [n] int32
    losses: Sum  # the total loss seen of each arm, two words [n]
    scale: Array  # G in the losses' unit []


def gap_exploration(
    alpha: Array | float = 3.0, beta: Array | float = 256.0, scale: Array | float = 1.0
) -> Sampling:
    """p'_t = (1 - sum_a e_t(a)) p_t + e_t, with e_t small for arms that are surely worse.

    e_t(a) = min(1/(2n), sqrt(ln n / (t n)) / 2, beta ln t / (t D_t(a)^2)), D_t(a) the estimated gap
    of `gap_estimates`; the last is infinite where D_t(a) = 0. Seldin and Lugosi (2017), with
    their alpha = 3 and beta = 256.
    """
    for name, value in (("alpha", alpha), ("beta", beta), ("scale", scale)):
        check_number(name, value, positive=True)
    return Sampling(
        init=Partial(_init, scale),
        probabilities=Partial(_probabilities, alpha, beta),
        update=Partial(_update),
    )


def gap_estimates(state: GapExplorationState, alpha: Array | float) -> Array:
    """D_t(a) = max(0, LCB_t(a) - min_b UCB_t(b)) in [0, 1], for losses over G in [0, 1]. [n].

    The bounds are the mean loss -+ sqrt(alpha ln(t n^(1/alpha)) / (2 N(a))), cut off at 0 and 1:
    without the cut losses that leave the range make gaps above 1. An arm not yet played has the
    bounds 0 and 1.
    """
    dtype = state.scale.dtype
    n = len(state.num_plays)
    t = (state.num_rounds + 1).astype(dtype)
    plays = jnp.maximum(state.num_plays, 1).astype(dtype)
    mean = (state.losses.value / plays) / state.scale
    width = jnp.sqrt((alpha * jnp.log(t) + math.log(n)) / (2 * plays))
    played = state.num_plays > 0
    lower = jnp.where(played, jnp.clip(mean - width, 0, 1), 0)
    upper = jnp.where(played, jnp.clip(mean + width, 0, 1), 1)
    return jnp.maximum(lower - jnp.min(upper), 0)


def _init(scale, num_arms, dtype, loss_unit) -> GapExplorationState:
    return GapExplorationState(
        num_rounds=jnp.zeros((), jnp.int32),
        num_plays=jnp.zeros(num_arms, jnp.int32),
        losses=start_sum(jnp.zeros(num_arms, dtype)),
        scale=jnp.asarray(scale, dtype) * loss_unit,
    )


def _exploration(alpha, beta, state: GapExplorationState) -> Array:
    n = len(state.num_plays)
    t = (state.num_rounds + 1).astype(state.scale.dtype)
    gaps = gap_estimates(state, alpha)
    by_gap = beta * jnp.log(t) / (t * jnp.where(gaps > 0, gaps, 1) ** 2)
    most = jnp.minimum(1 / (2 * n), jnp.sqrt(math.log(n) / (t * n)) / 2)
    return jnp.where(gaps > 0, jnp.minimum(by_gap, most), most)


def _probabilities(alpha, beta, state: GapExplorationState, play: Array) -> Array:
    exploration = _exploration(alpha, beta, state)
    return (1 - arm_sum(exploration)) * play + exploration


def _update(state: GapExplorationState, seen: Round) -> GapExplorationState:
    here = is_arm(seen.arm, seen.play)
    return GapExplorationState(
        num_rounds=state.num_rounds + 1,
        num_plays=state.num_plays + here.astype(jnp.int32),
        losses=add(state.losses, jnp.where(here, seen.loss, 0)),
        scale=state.scale,
    )
