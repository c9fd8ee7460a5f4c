"""Exploration arm by arm, less for arms that have been worse: Exp3++."""

import math
from typing import NamedTuple

import jax.numpy as jnp
from jax import Array
from jax.tree_util import Partial

from sfmab_jax.base import Round, Sampling
from sfmab_jax.checks import check_positive
from sfmab_jax.numerics.arms import arm_sum, is_arm
from sfmab_jax.numerics.double_word import Sum, add, start_sum

__all__ = ["gap_estimates", "gap_exploration"]


class GapExplorationState(NamedTuple):
    num_rounds: Array  # t [] int32
    num_plays: Array  # N_t [n] int32
    losses: Sum  # the total loss seen of each arm, two words [n]
    scale: Array  # G in the losses' unit []


def gap_exploration(
    alpha: Array | float = 3.0, beta: Array | float = 256.0, scale: Array | float = 1.0
) -> Sampling:
    """Explore arms by their estimated gaps: Exp3++, Seldin and Lugosi (2017).

    p'_t = (1 - sum_a e_t(a)) p_t + e_t,
    e_t(a) = min(1/(2n), sqrt(ln n / (t n)) / 2, beta ln t / (t D_t(a)^2)), D_t(a) the gap of
    `gap_estimates`; the last term is infinite where D_t(a) = 0.

    Args:
      alpha: of the confidence bounds in `gap_estimates`; 3 in the paper.
      beta: the exploration of arms that are surely worse; 256 in the paper.
      scale: G, for losses in [0, G].
    """
    check_positive(alpha=alpha, beta=beta, scale=scale)
    return Sampling(
        init=Partial(_init, scale),
        probabilities=Partial(_probabilities, alpha, beta),
        update=Partial(_update),
    )


def gap_estimates(state: GapExplorationState, alpha: Array | float) -> Array:
    """Return D_t(a) = max(0, LCB_t(a) - min_b UCB_t(b)) in [0, 1], [n], in units of G.

    The bounds are (mean loss) / G -+ sqrt(alpha ln(t n^(1/alpha)) / (2 N(a))), clipped to [0, 1]:
    unclipped, losses outside [0, G] could give gaps above 1. An arm not yet played has the bounds
    0 and 1.
    """
    dtype = state.scale.dtype
    n = len(state.num_plays)
    t = (state.num_rounds + 1).astype(dtype)
    plays = jnp.maximum(state.num_plays, 1).astype(dtype)
    mean = (state.losses.value / plays) / state.scale
    width = jnp.sqrt((alpha * jnp.log(t) + math.log(n)) / (2 * plays))
    has_plays = state.num_plays > 0
    lower = jnp.where(has_plays, jnp.clip(mean - width, 0, 1), 0)
    upper = jnp.where(has_plays, jnp.clip(mean + width, 0, 1), 1)
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
    largest = jnp.minimum(1 / (2 * n), jnp.sqrt(math.log(n) / (t * n)) / 2)
    return jnp.where(gaps > 0, jnp.minimum(by_gap, largest), largest)


def _probabilities(alpha, beta, state: GapExplorationState, play: Array) -> Array:
    exploration = _exploration(alpha, beta, state)
    return (1 - arm_sum(exploration)) * play + exploration


def _update(state: GapExplorationState, seen: Round) -> GapExplorationState:
    is_played = is_arm(seen.arm, seen.play)
    return GapExplorationState(
        num_rounds=state.num_rounds + 1,
        num_plays=state.num_plays + is_played.astype(jnp.int32),
        losses=add(state.losses, jnp.where(is_played, seen.loss, 0)),
        scale=state.scale,
    )
