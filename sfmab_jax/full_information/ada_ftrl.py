"""AdaFTRL: follow the regularised leader, the learning rate driven by the mixability gaps."""

from typing import NamedTuple

import jax.numpy as jnp
from jax import Array
from jax.tree_util import Partial

from sfmab_jax.base import FullInformation, Round
from sfmab_jax.checks import check_number
from sfmab_jax.floating import Sum, add, start_sum
from sfmab_jax.full_information.ftrl import follow
from sfmab_jax.mixability import mixability_gap
from sfmab_jax.potentials import Potential

__all__ = ["AdaFTRLState", "ada_ftrl"]


class AdaFTRLState(NamedTuple):
    play: Array  # p_{t+1} [n]
    losses: Sum  # the cumulative estimates, two words [n]
    learning_rate: Array  # eta_t []
    gaps: Sum  # beta + sum of M_s(eta_{s-1}), two words []


def ada_ftrl(
    potential: Potential, alpha: Array | float | None = None, beta: Array | float = 1.0
) -> FullInformation:
    """eta_t = alpha / (beta + sum_{s<=t} M_s(eta_{s-1})). Section 5 of the paper.

    With alpha = n and beta = 1, as in Algorithm 1, eta_0 = n.

    Args:
      potential: gives the regulariser; see `sfmab_jax.potentials`.
      alpha: positive; None means the number of arms.
      beta: positive, in units of loss.
    """
    if alpha is not None:
        check_number("alpha", alpha, positive=True)
    check_number("beta", beta, positive=True)
    return FullInformation(
        init=Partial(_init, alpha, beta), update=Partial(_update, potential, alpha)
    )


def _init(alpha, beta, num_arms, dtype, loss_unit) -> AdaFTRLState:
    gaps = start_sum(jnp.asarray(beta, dtype) * loss_unit)
    return AdaFTRLState(
        play=jnp.full(num_arms, 1 / num_arms, dtype),
        losses=start_sum(jnp.zeros(num_arms, dtype)),
        learning_rate=_rate(alpha, num_arms, gaps),
        gaps=gaps,
    )


def _rate(alpha, num_arms: int, gaps: Sum) -> Array:
    return (num_arms if alpha is None else jnp.asarray(alpha, gaps.value.dtype)) / gaps.value


def _update(potential, alpha, state: AdaFTRLState, seen: Round) -> AdaFTRLState:
    losses = add(state.losses, seen.estimate)
    gap = mixability_gap(potential, seen.play, seen.estimate, state.learning_rate)
    gaps = add(state.gaps, gap)
    rate = _rate(alpha, len(seen.play), gaps)
    return AdaFTRLState(follow(potential, losses, rate), losses, rate, gaps)
