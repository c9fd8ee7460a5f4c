"""FTRL: follow the regularised leader at a learning rate known in advance."""

from collections.abc import Callable
from typing import NamedTuple

import jax.numpy as jnp
from jax import Array
from jax.tree_util import Partial

from sfmab_jax.base import FullInformation, Round, as_partial
from sfmab_jax.checks import check_functions, check_positive
from sfmab_jax.numerics.arms import add_at
from sfmab_jax.numerics.double_word import Sum, add, start_sum
from sfmab_jax.numerics.simplex import distribution_of_gaps
from sfmab_jax.potentials import Potential
from sfmab_jax.potentials.base import check_potential

__all__ = [
    "FTRLState",
    "add_round",
    "follow",
    "ftrl",
    "ftrl_by_arms",
    "gaps_to_leader",
    "schedule_of",
]


class FTRLState(NamedTuple):
    play: Array  # p_{t+1}  [n]
    losses: Sum  # the cumulative estimates, two words [n]
    learning_rate: Array  # eta_t    []
    num_rounds: Array  # t        [] int32
    unit: Array  # one unit of loss []


def ftrl(
    potential: Potential, learning_rate: Array | float | Callable[[Array], Array]
) -> FullInformation:
    """FTRL: p_{t+1} = argmin_q F(q) + eta_t sum_{s<=t} q.l_s. Section 5 of the paper.

    Args:
      potential: gives F; see `sfmab_jax.potentials`.
      learning_rate: eta per unit of loss, a positive number, or a function of the number of rounds
        played t = 0, 1, ... (a float []) that returns eta_t [].

    >>> import sfmab_jax as sf
    >>> scheme = ftrl(sf.potentials.tsallis(0.5), lambda t: 1 / jnp.sqrt(t + 4))
    >>> print(scheme.init(2, jnp.dtype("float32"), jnp.float32(1.0)).learning_rate)
    0.5
    """
    return ftrl_by_arms(potential, schedule_of(learning_rate))


def ftrl_by_arms(
    potential: Potential, learning_rate: Callable[[Array, int], Array]
) -> FullInformation:
    """`ftrl` with eta_t = learning_rate(t, n), a schedule that also knows the number of arms n."""
    check_potential(potential)
    check_functions(learning_rate=learning_rate)
    schedule = as_partial(learning_rate)
    return FullInformation(
        init=Partial(_init, schedule), update=Partial(_update, potential, schedule)
    )


def schedule_of(learning_rate: Array | float | Callable[[Array], Array]) -> Partial:
    """Return (t, n) -> eta_t of a positive number, or of a function of t; see `ftrl`."""
    if callable(learning_rate):
        return Partial(_of_rounds, as_partial(learning_rate))
    check_positive(learning_rate=learning_rate)
    return Partial(_constant, learning_rate)


def add_round(losses: Sum, seen: Round) -> Sum:
    """Return the cumulative estimates [n] with those of a round added."""
    if seen.weighted is None:
        return add(losses, seen.estimate)
    return add_at(losses, seen.arm, seen.weighted)


def follow(
    potential: Potential, losses: Sum, learning_rate: Array, start: Array | float = -jnp.inf
) -> Array:
    """Return p = argmin_q F(q) + eta L.q [n].

    Args:
      potential: gives F.
      losses: L [n], in two words.
      learning_rate: eta [].
      start: a guess of psi^{-1}(max p) [], which saves time.
    """
    return distribution_of_gaps(potential, learning_rate * gaps_to_leader(losses), start)


def gaps_to_leader(losses: Sum) -> Array:
    """Return L - min(L) >= 0 [n] of losses L in two words."""
    leader = jnp.min(losses.value)
    # The difference of the high words is exact where it matters: between close arms.
    gaps = (losses.value - leader) + losses.error
    return gaps - jnp.min(gaps)


def _constant(learning_rate, num_rounds: Array, num_arms: int):
    return learning_rate


def _of_rounds(schedule, num_rounds: Array, num_arms: int):
    return schedule(num_rounds)


def _rate(schedule, num_rounds: Array, num_arms: int, dtype, unit: Array) -> Array:
    return jnp.asarray(schedule(num_rounds.astype(dtype), num_arms), dtype) / unit


def _init(schedule, num_arms, dtype, loss_unit) -> FTRLState:
    num_rounds = jnp.zeros((), jnp.int32)
    return FTRLState(
        play=jnp.full(num_arms, 1 / num_arms, dtype),
        losses=start_sum(jnp.zeros(num_arms, dtype)),
        learning_rate=_rate(schedule, num_rounds, num_arms, dtype, loss_unit),
        num_rounds=num_rounds,
        unit=loss_unit,
    )


def _update(potential, schedule, state: FTRLState, seen: Round) -> FTRLState:
    losses = add_round(state.losses, seen)
    num_rounds = state.num_rounds + 1
    rate = _rate(schedule, num_rounds, len(seen.play), seen.estimate.dtype, state.unit)
    play = follow(potential, losses, rate, potential.inverse(jnp.max(state.play)))
    return FTRLState(play, losses, rate, num_rounds, state.unit)
