"""FTRL at a rate set by the size of the clipped losses: UMAB-G.

The clipping is that of `estimation.clipping`, kept once more in the state of this part.
"""

from typing import NamedTuple

import jax.numpy as jnp
from jax import Array
from jax.tree_util import Partial

from sfmab_jax.base import FullInformation, Round
from sfmab_jax.estimation.clipping import ClippingState, clip_below, clipping_init, next_clipping
from sfmab_jax.full_information.ftrl import add_round, follow
from sfmab_jax.numerics.double_word import Sum, add, start_sum
from sfmab_jax.potentials import Potential
from sfmab_jax.potentials.base import check_potential

__all__ = ["clipped_ftrl"]


class ClippedFTRLState(NamedTuple):
    play: Array  # p_{t+1} [n]
    losses: Sum  # the cumulative estimates, two words [n]
    learning_rate: Array  # eta_{t+1} []
    size: Sum  # sqrt(sum_s l_s^2 / n), two words []
    clipping: ClippingState


def clipped_ftrl(potential: Potential) -> FullInformation:
    """FTRL at UMAB-G's rate, eta_t = 4 / sqrt(sum_{s<t} l_s^2 / n + C_t^2): Chen and Zhang (2023).

    p_t = argmin_q F(q) + eta_t q.L~. l_s is the loss seen in round s, clipped from below at -2 C_s,
    and C_t the largest gain so far, 1 at first in units of loss, both as in
    `estimation.clipped_below`. eta_1 = 2, which nothing depends on.

    Args:
      potential: gives the regulariser; `log_barrier()` in UMAB-G.
    """
    check_potential(potential)
    return FullInformation(init=Partial(_init), update=Partial(_update, potential))


def _init(num_arms, dtype, loss_unit) -> ClippedFTRLState:
    zeros = jnp.zeros(num_arms, dtype)
    return ClippedFTRLState(
        play=zeros + 1 / num_arms,
        losses=start_sum(zeros),
        learning_rate=2 / loss_unit,
        size=start_sum(jnp.zeros((), dtype)),
        clipping=clipping_init(num_arms, dtype, loss_unit),
    )


def _update(potential, state: ClippedFTRLState, seen: Round) -> ClippedFTRLState:
    losses = add_round(state.losses, seen)
    clipped = clip_below(state.clipping, seen.loss)
    clipping = next_clipping(state.clipping, clipped)
    size = _with_square(state.size, jnp.abs(clipped) / len(seen.play) ** 0.5)
    rate = 4 / _length(size.value, clipping.size)
    play = follow(potential, losses, rate, potential.inverse(jnp.max(state.play)))
    return ClippedFTRLState(play, losses, rate, size, clipping)


def _length(a: Array, b: Array) -> Array:
    """Return sqrt(a^2 + b^2) [] of numbers that are not both 0, whose squares may overflow."""
    larger = jnp.maximum(a, b)
    return larger * jnp.sqrt(1 + (jnp.minimum(a, b) / larger) ** 2)


def _with_square(size: Sum, term: Array) -> Sum:
    """Return sqrt(s^2 + x^2) for s in two words; as s grows, single roundings do not add up."""
    s = size.value
    larger, smaller = jnp.maximum(s, term), jnp.minimum(s, term)
    ratio = smaller / jnp.where(larger > 0, larger, 1)
    root = jnp.sqrt(1 + ratio**2)
    return add(size, jnp.where(term <= s, smaller * (ratio / (1 + root)), larger * root - s))
