"""Exponential weights that share: every arm keeps a part of the total, to come back from."""

from collections.abc import Callable
from typing import NamedTuple

import jax.numpy as jnp
from jax import Array
from jax.tree_util import Partial

from sfmab_jax.base import FullInformation, Round, as_partial
from sfmab_jax.checks import check_positive, check_probability
from sfmab_jax.full_information.ftrl import gaps_to_leader
from sfmab_jax.numerics.arms import arm_sum
from sfmab_jax.numerics.double_word import Sum, add, start_sum
from sfmab_jax.numerics.hints import keep
from sfmab_jax.numerics.remainders import log_one_plus_part

__all__ = ["fixed_share"]

Schedule = Callable[[Array, int], Array]


class FixedShareState(NamedTuple):
    play: Array  # p_{t+1} [n]
    scores: Sum  # -log of the weights, that of the heaviest arm about 0, two words [n]
    learning_rate: Array  # eta_{t+1} []
    share: Array  # alpha_{t+1} []
    num_rounds: Array  # t [] int32
    unit: Array  # one unit of loss []


def fixed_share(
    learning_rate: Array | float | Schedule, share: Array | float | Schedule
) -> FullInformation:
    """Exponential weights with a fixed share, as in Exp3.S: Auer et al. (2002), section 8.

    p_t = w_t / sum(w_t), w_1 = 1, and

        w_{t+1}(i) = w_t(i) exp(-eta_t l~_t(i)) + (e alpha_t / n) sum_j w_t(j).

    The sum is that of the weights before the round. No weight falls below its share, so that an arm
    which was bad for long leads again soon after it became good. A loss common to all arms, which
    changes nothing without a share, changes the part that the share has.

    Logarithms of the weights are carried, relative to the largest, as sums in two words: nothing
    overflows, whatever the losses, and errors do not add up over the rounds.

    Args:
      learning_rate: eta per unit of loss, a positive number, or a schedule: a function of the
        number of rounds played t = 0, 1, ... (a float []) and of n that returns eta_{t+1} [].
      share: alpha, from 0, which gives plain exponential weights, to 1; or a schedule.

    >>> import sfmab_jax as sf
    >>> scheme = fixed_share(1.0, 0.01)
    >>> state = scheme.init(2, jnp.dtype("float32"), jnp.float32(1.0))
    >>> losses = jnp.array([0.0, 100.0], jnp.float32)
    >>> seen = sf.Round(state.play, state.play, jnp.int32(0), losses[0], losses)
    >>> [f"{p:.4f}" for p in scheme.update(state, seen).play]
    ['0.9742', '0.0258']
    """
    if not callable(learning_rate):
        check_positive(learning_rate=learning_rate)
    if not callable(share):
        check_probability("share", share)
    rate, part = (
        as_partial(given) if callable(given) else Partial(_constant, given)
        for given in (learning_rate, share)
    )
    return FullInformation(init=Partial(_init, rate, part), update=Partial(_update, rate, part))


def _constant(number, num_rounds: Array, num_arms: int):
    return number


def _init(rate, part, num_arms, dtype, loss_unit) -> FixedShareState:
    scores = start_sum(jnp.zeros(num_arms, dtype))
    return _state(rate, part, scores, jnp.zeros((), jnp.int32), loss_unit)


def _state(rate, part, scores: Sum, num_rounds: Array, unit: Array) -> FixedShareState:
    num_arms, dtype = len(scores.value), scores.value.dtype
    when = (num_rounds.astype(dtype), num_arms)
    weights = jnp.exp(-gaps_to_leader(scores))
    return FixedShareState(
        play=weights / arm_sum(weights),
        scores=scores,
        learning_rate=jnp.asarray(rate(*when), dtype) / unit,
        share=jnp.asarray(part(*when), dtype),
        num_rounds=num_rounds,
        unit=unit,
    )


def _update(rate, part, state: FixedShareState, seen: Round) -> FixedShareState:
    num_arms, dtype = len(state.play), state.play.dtype
    largest = jnp.finfo(dtype).max / 4
    gains = jnp.clip(-state.learning_rate * seen.estimate, -largest, largest)
    # Both terms are divided by the largest factor, if that is above 1.
    top = jnp.maximum(jnp.max(gains), 0)
    kept = add(state.scores, top - gains)
    # The total of the weights, the heaviest of which is 1, is 1 over that one's probability.
    shared = top - jnp.log(jnp.e * state.share / num_arms) + jnp.log(jnp.max(state.play))
    ahead = (kept.value - shared) + kept.error
    heavier = Sum(
        jnp.where(ahead <= 0, kept.value, shared),
        jnp.where(ahead <= 0, kept.error, jnp.zeros_like(shared)),
    )
    scores = Sum(*keep(*add(heavier, -log_one_plus_part(jnp.exp(-jnp.abs(ahead))))))
    for _ in range(2):  # the second time for the lower words of huge scores
        scores = Sum(*keep(*add(scores, -jnp.min(scores.value))))
    return _state(rate, part, scores, state.num_rounds + 1, state.unit)
