"""Exploration by mixing with the uniform law, at a fixed, decaying, scheduled or adaptive rate.

p'_t = (1 - gamma_{t-1}) p_t + gamma_{t-1} / n. Section 2 of the paper, "Sampling Scheme", and
Algorithm 1, options 1 and 2.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax.numpy as jnp
from jax import Array
from jax.tree_util import Partial

from sfmab_jax.base import Round, Sampling, as_partial, keep_state
from sfmab_jax.checks import check_functions, check_probability
from sfmab_jax.numerics.arms import pick
from sfmab_jax.numerics.double_word import Sum, add, start_sum

__all__ = ["adaptive", "as_played", "decaying", "fixed", "scheduled"]


class ExplorationState(NamedTuple):
    exploration: Array  # gamma_t []


class DecayingState(NamedTuple):
    exploration: Array  # gamma_t []
    num_rounds: Array  # t       [] int32


class AdaptiveState(NamedTuple):
    exploration: Array  # gamma_t []
    mass: Sum  # 2n + sum of Gamma_s, in the losses' unit []
    unit: Array  # n in the losses' unit []


def as_played() -> Sampling:
    """Play as the full-information strategy does, without further exploration: p'_t = p_t."""
    return fixed(0.0)


def fixed(exploration: Array | float) -> Sampling:
    """Mix with the uniform law at a fixed rate gamma_t = gamma, as Exp3 does (Auer et al. 2002).

    Args:
      exploration: gamma, between 0 and 1.
    """
    check_probability("exploration", exploration)
    return Sampling(
        init=Partial(_fixed_init, exploration),
        probabilities=Partial(_mix),
        update=Partial(keep_state),
    )


def decaying() -> Sampling:
    """Mix with the uniform law ever less: gamma_0 = 1/2, gamma_t = min(1/2, sqrt(n/t)).

    Option 1 of Algorithm 1.
    """
    return Sampling(
        init=Partial(_decaying_init), probabilities=Partial(_mix), update=Partial(_decaying_update)
    )


def scheduled(exploration: Callable[[Array, int], Array]) -> Sampling:
    """Mix with the uniform law at a rate of your own, gamma_t = exploration(t, n).

    Args:
      exploration: a function of the number of rounds played t = 0, 1, ... (a float []) and the
        number of arms n; p'_{t+1} is mixed with gamma_t [].
    """
    check_functions(exploration=exploration)
    schedule = as_partial(exploration)
    return Sampling(
        init=Partial(_scheduled_init, schedule),
        probabilities=Partial(_mix),
        update=Partial(_scheduled_update, schedule),
    )


def adaptive() -> Sampling:
    """Mix with the uniform law as the losses demand: option 2 of Algorithm 1.

    gamma_t = n / (2n + sum_{s<=t} Gamma_s(gamma_{s-1})), the 2n in units of loss, with
    Gamma_t(gamma) = gamma |l_t(i_t)| / ((1 - gamma) p_t(i_t) + gamma/n), which at gamma_{t-1} is
    gamma_{t-1} |l_t(i_t)| / p'_t(i_t).
    """
    return Sampling(
        init=Partial(_adaptive_init), probabilities=Partial(_mix), update=Partial(_adaptive_update)
    )


def _mix(state, play: Array) -> Array:
    gamma = state.exploration
    return (1 - gamma) * play + gamma / len(play)


def _fixed_init(exploration, num_arms, dtype, loss_unit) -> ExplorationState:
    return ExplorationState(jnp.asarray(exploration, dtype))


def _decaying_init(num_arms, dtype, loss_unit) -> DecayingState:
    return DecayingState(jnp.asarray(0.5, dtype), jnp.zeros((), jnp.int32))


def _decaying_update(state: DecayingState, seen: Round) -> DecayingState:
    t = state.num_rounds + 1
    dtype = state.exploration.dtype
    gamma = jnp.sqrt(len(seen.play) / t.astype(dtype))
    return DecayingState(jnp.minimum(jnp.asarray(0.5, dtype), gamma), t)


def _schedule_state(schedule, num_rounds: Array, num_arms: int, dtype) -> DecayingState:
    gamma = jnp.asarray(schedule(num_rounds.astype(dtype), num_arms), dtype)
    return DecayingState(gamma, num_rounds)


def _scheduled_init(schedule, num_arms, dtype, loss_unit) -> DecayingState:
    return _schedule_state(schedule, jnp.zeros((), jnp.int32), num_arms, dtype)


def _scheduled_update(schedule, state: DecayingState, seen: Round) -> DecayingState:
    dtype = state.exploration.dtype
    return _schedule_state(schedule, state.num_rounds + 1, len(seen.play), dtype)


def _adaptive_init(num_arms, dtype, loss_unit) -> AdaptiveState:
    unit = num_arms * loss_unit
    return AdaptiveState(jnp.asarray(0.5, dtype), start_sum(2 * unit), unit)


def _adaptive_update(state: AdaptiveState, seen: Round) -> AdaptiveState:
    mass_now = state.exploration * jnp.abs(seen.loss / pick(seen.probabilities, seen.arm))
    mass = add(state.mass, mass_now)
    return AdaptiveState(state.unit / mass.value, mass, state.unit)
