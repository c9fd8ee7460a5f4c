"""All weight on one arm: the leader so far, or the arm of the lowest mean less a bonus."""

from collections.abc import Callable
from typing import NamedTuple

import jax.numpy as jnp
from jax import Array
from jax.tree_util import Partial

from sfmab_jax.base import FullInformation, Round, as_partial
from sfmab_jax.checks import check_functions
from sfmab_jax.full_information.ftrl import gaps_to_leader
from sfmab_jax.numerics.arms import is_arm
from sfmab_jax.numerics.double_word import Sum, add, start_sum

__all__ = ["follow_the_leader", "lowest_index"]


class LeaderState(NamedTuple):
    play: Array  # p_{t+1} [n]
    losses: Sum  # the cumulative estimates, two words [n]


class IndexState(NamedTuple):
    play: Array  # p_{t+1} [n]
    losses: Sum  # the total loss seen of each arm, two words [n]
    num_plays: Array  # N_t [n] int32
    num_rounds: Array  # t [] int32
    unit: Array  # one unit of loss []


def follow_the_leader() -> FullInformation:
    """Follow the leader: p_{t+1} = argmin_q sum_{s<=t} q.l_s, the first of several such arms.

    p_1 is arm 0.
    """
    return FullInformation(init=Partial(_leader_init), update=Partial(_leader_update))


def lowest_index(bonus: Callable[[Array, Array], Array]) -> FullInformation:
    """Play the arm of the lowest index: p_{t+1} = argmin (mean loss seen) - bonus(t, N_t).

    Arms not yet played come first, in order. Only the arm played and its loss are used, so the
    sampling scheme must explore all arms or none.

    Args:
      bonus: a function of the number of rounds played t (a float []) and of each arm's plays N_t
        (floats [n]) that returns [n] in units of loss.
    """
    check_functions(bonus=bonus)
    return FullInformation(
        init=Partial(_index_init), update=Partial(_index_update, as_partial(bonus))
    )


def _lowest_vertex(scores: Array) -> Array:
    """Return the first arm of the smallest score as a point of the simplex [n]."""
    places = jnp.arange(len(scores), dtype=jnp.int32)
    return (places == jnp.argmin(scores).astype(jnp.int32)).astype(scores.dtype)


def _leader_init(num_arms, dtype, loss_unit) -> LeaderState:
    zeros = jnp.zeros(num_arms, dtype)
    return LeaderState(_lowest_vertex(zeros), start_sum(zeros))


def _leader_update(state: LeaderState, seen: Round) -> LeaderState:
    losses = add(state.losses, seen.estimate)
    return LeaderState(_lowest_vertex(gaps_to_leader(losses)), losses)


def _index_init(num_arms, dtype, loss_unit) -> IndexState:
    zeros = jnp.zeros(num_arms, dtype)
    no_plays = jnp.zeros(num_arms, jnp.int32)
    return IndexState(
        _lowest_vertex(zeros), start_sum(zeros), no_plays, jnp.zeros((), jnp.int32), loss_unit
    )


def _index_update(bonus, state: IndexState, seen: Round) -> IndexState:
    is_played = is_arm(seen.arm, seen.play)
    losses = add(state.losses, jnp.where(is_played, seen.loss, 0))
    num_plays = state.num_plays + is_played.astype(jnp.int32)
    num_rounds = state.num_rounds + 1
    dtype = state.play.dtype
    plays = jnp.maximum(num_plays, 1).astype(dtype)
    optimism = jnp.broadcast_to(
        jnp.asarray(bonus(num_rounds.astype(dtype), plays), dtype), plays.shape
    )
    index = losses.value / plays - optimism * state.unit
    play = _lowest_vertex(jnp.where(num_plays > 0, index, -jnp.inf))
    return IndexState(play, losses, num_plays, num_rounds, state.unit)
