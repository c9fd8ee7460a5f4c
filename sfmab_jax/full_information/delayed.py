"""FTRL for delayed feedback: a square root that grows with time, an entropy with what is missing.

Zimmert and Seldin, "An Optimal Algorithm for Adversarial Bandits with Arbitrary Delays" (2020).
"""

import math
from typing import NamedTuple

import jax.numpy as jnp
from jax import Array, lax
from jax.tree_util import Partial

from sfmab_jax.base import FullInformation, Round
from sfmab_jax.checks import check_positive
from sfmab_jax.full_information.ftrl import add_round, gaps_to_leader
from sfmab_jax.numerics.double_word import Sum, add, start_sum
from sfmab_jax.numerics.hybrid import hybrid_distribution

__all__ = ["delayed_ftrl"]


class DelayedFTRLState(NamedTuple):
    play: Array  # p_{t+1} [n]
    losses: Sum  # the cumulative estimates of what has arrived, two words [n]
    learning_rate: Array  # 1 / sqrt(t + 1), per loss as counted []
    num_rounds: Array  # t [] int32
    missing: Sum  # D_{t+1}, two words []
    unit: Array  # G in the losses' unit []


def delayed_ftrl(scale: Array | float = 1.0) -> FullInformation:
    """FTRL with the hybrid regulariser of Zimmert and Seldin (2020), for delayed feedback.

    p_t = argmin_q q.L_t / G - 2 sqrt(t) sum_i sqrt(q(i)) + sqrt(2 D_t / ln n) sum_i q(i) ln q(i),
    L_t the sum of the estimates that have arrived before round t, and D_t = sum_{s<=t} d_s, d_s the
    number of observations of rounds before s that are missing in round s. Without delay D_t = 0,
    and this is the strategy of Tsallis-INF.

    Args:
      scale: G, for losses in [0, G].

    >>> import sfmab_jax as sf
    >>> scheme = delayed_ftrl()
    >>> state = scheme.init(3, jnp.dtype("float32"), jnp.float32(1.0))
    >>> later = scheme.wait(state, jnp.int32(1), jnp.int32(1))
    >>> int(later.num_rounds), float(later.missing.value)
    (1, 1.0)
    """
    check_positive(scale=scale)
    return FullInformation(init=Partial(_init, scale), update=Partial(_update), wait=Partial(_wait))


def _init(scale, num_arms, dtype, loss_unit) -> DelayedFTRLState:
    zeros = jnp.zeros(num_arms, dtype)
    unit = jnp.asarray(scale, dtype) * loss_unit
    return DelayedFTRLState(
        play=zeros + 1 / num_arms,
        losses=start_sum(zeros),
        learning_rate=1 / unit,
        num_rounds=jnp.zeros((), jnp.int32),
        missing=start_sum(jnp.zeros((), dtype)),
        unit=unit,
    )


def _update(state: DelayedFTRLState, seen: Round) -> DelayedFTRLState:
    state = state._replace(losses=add_round(state.losses, seen))
    # Where feedback is delayed, the round ends later, in `_wait`.
    return _next_round(state) if seen.missing is None else state


def _wait(state: DelayedFTRLState, round_: Array, missing: Array) -> DelayedFTRLState:
    total = add(state.missing, missing.astype(state.unit.dtype))
    return _next_round(state._replace(missing=total))


def _next_round(state: DelayedFTRLState) -> DelayedFTRLState:
    num_rounds, n = state.num_rounds + 1, len(state.play)
    root = jnp.sqrt((num_rounds + 1).astype(state.unit.dtype))
    rate = 1 / (root * state.unit)
    # A number of observations, of which no derivative is taken; at 0 the root has none.
    missing = lax.stop_gradient(state.missing.value)
    entropy = jnp.sqrt(2 * missing / (math.log(n) or 1.0)) / root
    gaps = rate * gaps_to_leader(state.losses)
    play = hybrid_distribution(entropy, gaps, jnp.max(state.play))
    return state._replace(play=play, learning_rate=rate, num_rounds=num_rounds)
