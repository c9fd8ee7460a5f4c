"""Exploration as large as the stability of the play demands: Tsallis-FTRL-SPM.

Ito, Tsuchiya and Honda, "Adaptive Learning Rate for Follow-the-Regularized-Leader: Competitive
Analysis and Best-of-Both-Worlds" (2024).
"""

import math
from typing import NamedTuple

import jax.numpy as jnp
from jax import Array
from jax.tree_util import Partial

from sfmab_jax.base import Round, Sampling
from sfmab_jax.numerics.arms import arm_sum, is_arm, leading_arm
from sfmab_jax.numerics.double_word import Sum, add, start_sum

__all__ = [
    "MatchingState",
    "first_weight",
    "matched_power",
    "next_weight",
    "second_weight",
    "stability_matched",
]


class MatchingState(NamedTuple):
    weight: Sum  # beta_{t+1}, two words []


def stability_matched() -> Sampling:
    """Mix with the uniform law as `full_information.stability_matched_ftrl` needs it.

    p'_t = (1 - gamma_t) p_t + gamma_t / n, gamma_t = 4 z_t / beta_t, with
    z_t = n min(m_t, 1 - m_t)^(1-a) / (1 - a), m_t = max_i p_t(i) and a = 1 - 1 / (4 ln n). The
    weight beta starts at 32 n ln n and grows by z_t / (beta_t phi_t), phi_t =
    (sum_i p_t(i)^a - 1) / a, so that what a larger weight costs matches what it saves. gamma_t is
    1/2 at most.
    """
    return Sampling(
        init=Partial(_init), probabilities=Partial(_probabilities), update=Partial(_update)
    )


def matched_power(num_arms: int) -> float:
    """a = 1 - 1 / (4 ln n)."""
    return 1 - 1 / (4 * _log(num_arms))


def first_weight(num_arms: int, dtype) -> Sum:
    """beta_1 = 32 n ln n."""
    return start_sum(jnp.asarray(32 * num_arms * _log(num_arms), dtype))


def second_weight(num_arms: int) -> float:
    """beta' = 16 ln n, of the power 1 - a."""
    return 16 * _log(num_arms)


def next_weight(weight: Sum, play: Array) -> Sum:
    """Return beta_{t+1} from beta_t and p_t [n]."""
    power = matched_power(len(play))
    leads, rest = _leader(play)
    # Summed so that phi keeps its digits where one arm has nearly all.
    others = arm_sum(jnp.where(leads, 0, play**power))
    spread = (others + jnp.expm1(power * jnp.log1p(-rest))) / power
    growth = _stability(len(play), rest) / (weight.value * jnp.maximum(spread, _least(play)))
    return add(weight, growth)


def _log(num_arms: int) -> float:
    """Return ln n; one arm is played like one of two."""
    return math.log(max(num_arms, 2))


def _least(play: Array) -> float:
    return float(jnp.finfo(play.dtype).tiny) ** 0.5


def _leader(play: Array) -> tuple[Array, Array]:
    """Return a mask [n] of the arm with the largest p, and 1 - max(p) []."""
    leads = is_arm(leading_arm(-play), play)
    return leads, jnp.minimum(arm_sum(jnp.where(leads, 0, play)), 1 - 1 / len(play))


def _stability(num_arms: int, rest: Array) -> Array:
    """Return z from 1 - max(p) []."""
    low = 1 - matched_power(num_arms)
    return num_arms / low * jnp.minimum(rest, 1 - rest) ** low


def _init(num_arms, dtype, loss_unit) -> MatchingState:
    return MatchingState(first_weight(num_arms, dtype))


def _probabilities(state: MatchingState, play: Array) -> Array:
    n = len(play)
    gamma = 4 * _stability(n, _leader(play)[1]) / state.weight.value
    return (1 - gamma) * play + gamma / n


def _update(state: MatchingState, seen: Round) -> MatchingState:
    return MatchingState(next_weight(state.weight, seen.play))
