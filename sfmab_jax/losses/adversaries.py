"""Adversaries that answer the player: losses that depend on the arms played before.

Each takes the losses of another sequence and changes them by what it has seen, so any family or
array can be made to answer. The arm of a round is drawn after its losses, which see those of
earlier rounds; only `against_the_law` also sees the probabilities that it is drawn from.
"""

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.tree_util import Partial

from sfmab_jax.checks import check_integer, check_number
from sfmab_jax.losses import draws
from sfmab_jax.losses.bases import blind, generated, most_seen
from sfmab_jax.losses.combinators import scaled
from sfmab_jax.losses.draws import Draw
from sfmab_jax.losses.light_tailed import bernoulli
from sfmab_jax.losses.lower_bounds import draw_best
from sfmab_jax.losses.sequence import (
    MOST_ARMS,
    LossSequence,
    Sees,
    recurrence_from_draws,
)
from sfmab_jax.numerics.arms import is_arm

__all__ = [
    "against_the_law",
    "corrupted_leader",
    "crowded",
    "switching_cost_walk",
    "switching_costs",
    "tit_for_tat",
]

_MOST_MEMORY = 2**16


def crowded(
    losses: Any = None,
    memory: int = 8,
    rise: float = 0.5,
    num_arms: int | None = None,
    scale: float = 1.0,
) -> LossSequence:
    """Memory-m adversary (Arora et al. 2012): the more an arm was played of late, the worse it is.

    scale * (l_t(i) + rise * N_t(i) / m), N_t(i) how often arm i was played in the last m rounds,
    fewer at the start. A player who stays pays for it; external regret does not see that.

    Args:
      losses: l_t, a sequence or an array [T, n]; by default `bernoulli`.
      memory: m.
      rise: of the loss of an arm that was played in all of the last m rounds.
      num_arms: n, of the default losses.
      scale: the unit of all losses.
    """
    check_integer("memory", memory, 1, _MOST_MEMORY)
    check_number("rise", rise)
    base = _base(losses, num_arms)
    recent = np.full(memory, -1, np.int32)
    counts = np.zeros(base.num_arms, np.float32)
    how = (np.float32(rise), np.float32(1 / memory))
    crowd = _answering(base, "crowded", _crowded, (recent, counts), *how, rise=abs(rise))
    return scaled(crowd, scale)


def switching_costs(
    losses: Any = None, cost: float = 1.0, num_arms: int | None = None, scale: float = 1.0
) -> LossSequence:
    """Switching costs (Arora et al. 2012): all arms but the one played last cost more.

    scale * (l_t(i) + cost * [i != i_{t-1}]) from round 2 on: the player pays the cost whenever it
    plays another arm than before. An arm that is played throughout never does, which policy regret
    knows and external regret does not.

    Args:
      losses: l_t, a sequence or an array [T, n]; by default `bernoulli`.
      cost: of a switch.
      num_arms: n, of the default losses.
      scale: the unit of all losses.
    """
    check_number("cost", cost)
    base = _base(losses, num_arms)
    how = ("switching_costs", _costly, (), np.float32(cost))
    return scaled(_answering(base, *how, rise=abs(cost)), scale)


def tit_for_tat(
    losses: Any = None, rise: float = 0.5, num_arms: int | None = None, scale: float = 1.0
) -> LossSequence:
    """Tit for tat: the arm that was played most so far gets worse.

    scale * (l_t(i) + rise * [i = j]), j the arm played most in the rounds before t, the lowest
    number of those that tie; none in round 1.

    Args:
      losses: l_t, a sequence or an array [T, n]; by default `bernoulli`.
      rise: of the loss of the arm played most.
      num_arms: n, of the default losses.
      scale: the unit of all losses.
    """
    check_number("rise", rise)
    base = _base(losses, num_arms)
    counts = np.zeros(base.num_arms, np.int32)
    how = ("tit_for_tat", _tit_for_tat, counts, np.float32(rise))
    return scaled(_answering(base, *how, rise=abs(rise)), scale)


def corrupted_leader(
    losses: Any = None,
    budget: float = 100.0,
    high: float = 1.0,
    num_arms: int | None = None,
    scale: float = 1.0,
) -> LossSequence:
    """Adaptive corruption (Lykouris et al. 2018): a budget spent where the player has settled.

    While some of the budget C is left, and the player has played its favourite in the round before,
    the arm that it has played most so far (the lowest number of those that tie), the loss of that
    arm is raised to ``high``, or as far as the budget goes. The raises add up to at most C: sum_t
    max_i |l_t(i) - l'_t(i)| <= C, in units of ``scale``.

    Args:
      losses: the stochastic losses, a sequence or an array [T, n]; by default `bernoulli`.
      budget: C.
      high: the largest loss that the adversary makes.
      num_arms: n, of the default losses.
      scale: the unit of all losses, and of ``budget`` and ``high``.
    """
    check_number("budget", budget)
    if budget < 0:
        raise ValueError(f"budget is {budget}; it cannot be negative")
    check_number("high", high)
    base = _base(losses, num_arms)
    start = (np.zeros(base.num_arms, np.int32), np.float32(budget))
    raised = _answering(base, "corrupted_leader", _corrupted, start, np.float32(high))
    return scaled(replace(raised, magnitude=max(base.magnitude, abs(high))), scale)


def against_the_law(
    losses: Any = None, rise: float = 0.5, num_arms: int | None = None, scale: float = 1.0
) -> LossSequence:
    """Against the law: the arm that is now the most likely gets worse, as p'_t is seen.

    scale * (l_t(i) + rise * [i = j]), j = argmax p'_t, the lowest number of those that tie.
    The adversary who knows the strategy, but not its coins.

    Args:
      losses: l_t, a sequence or an array [T, n]; by default `bernoulli`.
      rise: of the loss of the most likely arm.
      num_arms: n, of the default losses.
      scale: the unit of all losses.
    """
    check_number("rise", rise)
    how = ("against_the_law", _against_the_law, (), np.float32(rise))
    base = _base(losses, num_arms)
    return scaled(_answering(base, *how, rise=abs(rise), sees="law"), scale)


def switching_cost_walk(
    num_arms: int = 2, num_rounds: int = 10_000, cost: float = 1.0, scale: float = 1.0
) -> LossSequence:
    """Dekel, Ding, Koren and Peres (2014): a walk on many scales, where policy regret is T^(2/3).

    scale * (clip(1/2 + W_t - eps [i = j], 0, 1) + cost * [i != i_{t-1}]), the best arm j drawn at
    the start. W_t = W_{t - 2^d} + xi_t is a Gaussian walk in which 2^d is the largest power of two
    that divides t, xi_t of standard deviation sigma = 1 / (9 log2 T), and eps = (n / T)^(1/3)
    sigma. To learn which arm is better a player must change arms, and pays for it.

    Args:
      num_arms: n.
      num_rounds: T, at which it ends, 2 or more.
      cost: of a switch, as in `switching_costs`; without, 0, the losses are oblivious.
      scale: the unit of all losses.
    """
    check_integer("num_arms", num_arms, 1, MOST_ARMS)
    check_integer("num_rounds", num_rounds, 2, 2**30)
    check_number("cost", cost)
    sigma = 1 / (9 * math.log2(num_rounds))
    walk = recurrence_from_draws(
        _begin_walk,
        _walk,
        num_arms,
        name="switching_cost_walk",
        arms=np.zeros(num_arms, np.float32),
        powers=2 ** np.arange(num_rounds.bit_length(), dtype=np.int32),
        sigma=sigma,
        gap=sigma * (num_arms / num_rounds) ** (1 / 3),
    )
    walk = replace(walk, length=num_rounds)
    if cost == 0:
        return scaled(walk, scale)
    return replace(switching_costs(walk, cost, scale=scale), name="switching_cost_walk")


def _base(losses: Any, num_arms: int | None) -> LossSequence:
    """Return the losses that an adversary begins with."""
    if losses is None:
        return bernoulli(10 if num_arms is None else num_arms)
    base = generated(losses)
    if num_arms is not None and num_arms != base.num_arms:
        raise ValueError(
            f"num_arms is {num_arms}; the losses have {base.num_arms}: give only one of the two"
        )
    return base


def _answering(
    base: LossSequence,
    name: str,
    answer: Callable[..., tuple[Any, Array]],
    start: Any,
    *parameters: Any,
    rise: float = 0.0,
    sees: Sees = "arm",
) -> LossSequence:
    """Return the losses that an adversary makes of others.

    Args:
      base: the others.
      name: for labels.
      answer: ``answer(state, l_t, round, last_arm, *parameters)`` -> (state, losses); with the law
        after the last arm if the adversary sees it.
      start: the adversary's state before round 1, arrays.
      *parameters: arrays.
      rise: how much larger than those of the base its losses can be.
      sees: what it sees of the play.
    """
    return replace(
        base,
        init=Partial(_init, base.init, start),
        next=Partial(_next, blind(base), Partial(answer), parameters),
        magnitude=base.magnitude + rise,
        mean=None,
        name=name,
        sees=most_seen([base, replace(base, sees=sees)]),
    )


def _init(init, start: Any, key: Array):
    return start, init(key)


def _next(next_loss, answer, parameters, state, key: Array, round_: Array, *shown: Array):
    own, inner = state
    inner, loss = next_loss(inner, key, round_, *shown)
    own, loss = answer(own, loss, round_, shown, *parameters)
    return (own, inner), loss


def _crowded(state, loss: Array, round_: Array, shown, rise, share):
    recent, counts = state
    last_arm, *_ = shown
    is_oldest = jnp.arange(len(recent), dtype=jnp.int32) == round_ % len(recent)
    oldest = jnp.sum(jnp.where(is_oldest, recent, 0), dtype=jnp.int32)
    counts = counts + is_arm(last_arm, loss).astype(counts.dtype)
    counts = counts - is_arm(oldest, loss).astype(counts.dtype)
    recent = jnp.where(is_oldest, last_arm, recent)
    return (recent, counts), loss + rise * (counts * share)


def _costly(state, loss: Array, round_: Array, shown, cost):
    last_arm, *_ = shown
    is_switch = ~is_arm(last_arm, loss) & (last_arm >= 0)
    return state, loss + jnp.where(is_switch, cost, 0)


def _count(counts: Array, last_arm: Array) -> tuple[Array, Array]:
    """Return how often each arm was played, and [i = j] of the one played most; none if none."""
    counts = counts + is_arm(last_arm, counts).astype(counts.dtype)
    return counts, _first_largest(counts) & (last_arm >= 0)


def _first_largest(values: Array) -> Array:
    """Return [i = j] [n], j the first index of the largest of the values [n]."""
    places = jnp.arange(len(values), dtype=jnp.int32)
    return places == jnp.min(jnp.where(values == jnp.max(values), places, len(values)))


def _tit_for_tat(counts: Array, loss: Array, round_: Array, shown, rise):
    counts, is_favourite = _count(counts, shown[0])
    return counts, loss + jnp.where(is_favourite, rise, 0)


def _corrupted(state, loss: Array, round_: Array, shown, high):
    counts, left = state
    last_arm, *_ = shown
    counts, is_favourite = _count(counts, last_arm)
    has_settled = jnp.any(is_favourite & is_arm(last_arm, loss))
    missing = jnp.sum(jnp.where(is_favourite, high - loss, 0))
    rise = jnp.where(has_settled, jnp.clip(missing, 0, left), 0)
    return (counts, left - rise), loss + jnp.where(is_favourite, rise, 0)


def _against_the_law(state, loss: Array, round_: Array, shown, rise):
    _, law = shown
    return state, loss + jnp.where(_first_largest(law), rise, 0)


def _begin_walk(key: Array, *, arms, powers, **parameters):
    """Return W at the last multiple of each power of two that is not one of the next, and [i = j].

    The first are [powers], the second [n].
    """
    return jnp.zeros(len(powers), jnp.float32), draw_best(key, arms=arms)


def _walk(state, draw: Draw, round_: Array, *, arms, powers, sigma, gap):
    values, best = state
    power = round_ & -round_
    before = round_ - power
    parent = jnp.sum(jnp.where(powers == (before & -before), values, 0))  # 0 if it is round 0
    value = parent + sigma * draws.normal(draw(1))[0]
    values = jnp.where(powers == power, value, values)
    return (values, best), jnp.clip(0.5 + value - gap * best, 0, 1)
