"""Differentiable games: played forward, then swept backward through the states.

`play_forward` plays many games at once and keeps the state before every round; `sweep_backward`
runs the chain rule from the last round to the first, a round at a time, so that only the states
are stored. Lanes are the last axis of every array, as in `sfmab_jax.engine`.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array, lax

from sfmab_jax.base import Bandit, BanditState
from sfmab_jax.engine import over_lanes
from sfmab_jax.numerics.arms import arm_sum, pick
from sfmab_jax.numerics.draw import draw_arm
from sfmab_jax.numerics.threefry import threefry_2x32

__all__ = ["PlayedGames", "play_forward", "play_round", "sweep_backward"]


class PlayedGames(NamedTuple):
    """Record of W games, a lane each."""

    states: BanditState  # before each round, leaves [T, ..., W]
    arms: Array  # i_t [T, W] int32
    costs: Array  # l_t.p'_t, the mean loss of the round given the rounds before [T, W]


def play_round(bandit: Bandit, state: BanditState, losses: Array, arm: Array):
    """Return the next state, l_t.p'_t and p'_t(arm) of one game, differentiable for a fixed arm.

    Args:
      bandit: the strategy.
      state: before the round.
      losses: l_t [n].
      arm: int32 [].
    """
    probabilities = bandit.probabilities(state)
    after = bandit.update(state, arm, bandit.feedback(losses, arm))
    return after, arm_sum(losses * probabilities), pick(probabilities, arm)


def play_forward(bandit: Bandit, tables: Array, keys: Array, loss_unit: Array) -> PlayedGames:
    """Play every lane's table, with the arms that `sfmab_jax.simulate` would draw.

    Args:
      bandit: the strategy.
      tables: the losses [T, n, W].
      keys: of the games, uint32 [2, W].
      loss_unit: as in `Bandit.init`.
    """
    num_rounds, num_arms, width = tables.shape

    def one_round(state: BanditState, key: Array, losses: Array, round_: Array):
        counter = (round_.astype(jnp.uint32), jnp.uint32(0))
        arm = draw_arm(bandit.probabilities(state), threefry_2x32((key[0], key[1]), counter))
        after, cost, _ = play_round(bandit, state, losses, arm)
        return after, arm, cost

    def step(state, now):
        round_, losses = now
        after, arm, cost = over_lanes(one_round)(state, keys, losses, jnp.full(width, round_))
        return after, (state, arm, cost)

    def init(_):
        return bandit.init(num_arms, tables.dtype, loss_unit)

    first = jax.vmap(init, out_axes=-1, axis_size=width)(jnp.arange(width))
    rounds = jnp.arange(1, num_rounds + 1, dtype=jnp.int32)
    return PlayedGames(*lax.scan(step, first, (rounds, tables))[1])


def sweep_backward(
    make: Callable[[Any], Bandit],
    parameters: Any,
    tables: Array,
    games: PlayedGames,
    score_weights: Array,
    loss_unit: Array,
) -> tuple[Array, Any]:
    """Differentiate sum_t [l_t.p'_t + A_t log p'_t(i_t)] in every lane, with the arms fixed.

    Args:
      make: gives the bandit that was played from its parameters.
      parameters: a pytree of floating-point arrays; () for none.
      tables, games, loss_unit: as in `play_forward`.
      score_weights: A [T, W].

    Returns:
      The derivatives by the losses [T, n, W] and by the parameters, leaves [..., W].
    """

    def pull(state, losses, arm, weight, cotangent):
        floats, rejoin = _floating(state)

        def value(parameters, floats, losses):
            after, cost, chance = play_round(make(parameters), rejoin(floats), losses, arm)
            return _floating(after)[0], cost + weight * jnp.log(chance)

        _, pull_back = jax.vjp(value, parameters, floats, losses)
        return pull_back((cotangent, jnp.ones_like(weight)))

    def step(carry, now):
        cotangent, total = carry
        by_parameters, cotangent, by_losses = over_lanes(pull)(*now, cotangent)
        return (cotangent, jax.tree.map(jnp.add, total, by_parameters)), by_losses

    num_arms, width = tables.shape[1:]
    last = [jnp.zeros_like(leaf[0]) for leaf in _floating(games.states)[0]]
    zero = jax.tree.map(lambda x: jnp.zeros((*jnp.shape(x), width), x.dtype), parameters)
    now = (games.states, tables, games.arms, score_weights)
    (cotangent, by_parameters), by_losses = lax.scan(step, (last, zero), now, reverse=True)

    def pull_start(cotangent):
        def begin(parameters):
            return _floating(make(parameters).init(num_arms, tables.dtype, loss_unit))[0]

        return jax.vjp(begin, parameters)[1](cotangent)[0]

    first = over_lanes(pull_start)(cotangent)
    return by_losses, jax.tree.map(jnp.add, by_parameters, first)


def _floating(tree: Any) -> tuple[list[Array], Callable[[list[Array]], Any]]:
    """Return the floating-point arrays of a pytree, and the function that replaces them."""
    leaves, structure = jax.tree.flatten(tree)
    floating = [jnp.issubdtype(jnp.result_type(leaf), jnp.floating) for leaf in leaves]

    def rejoin(floats: list[Array]) -> Any:
        others = iter(floats)
        joined = [next(others) if is_float else leaf for leaf, is_float in zip(leaves, floating)]
        return jax.tree.unflatten(structure, joined)

    return [leaf for leaf, is_float in zip(leaves, floating) if is_float], rejoin
