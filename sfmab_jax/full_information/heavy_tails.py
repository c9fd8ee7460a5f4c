"""FTRL at a rate set by a scale learnt on the way: AdaTINF's doubling, uniINF's balance.

The scale is that of `estimation.heavy_tails`, a pure function of the arms played and their losses,
kept once more in the state of this part.
"""

from typing import NamedTuple

import jax.numpy as jnp
from jax import Array
from jax.tree_util import Partial

from sfmab_jax.base import FullInformation, Round
from sfmab_jax.checks import check_horizon
from sfmab_jax.estimation.heavy_tails import (
    Balance,
    Doubling,
    balance_init,
    doubling_init,
    inverse_rate,
    next_balance,
    next_doubling,
)
from sfmab_jax.full_information.ftrl import follow
from sfmab_jax.numerics.double_word import Sum, add, start_sum
from sfmab_jax.potentials import Potential
from sfmab_jax.potentials.base import check_potential

__all__ = ["balanced_ftrl", "doubling_ftrl"]


class ScaleFTRLState(NamedTuple):
    play: Array  # p_{t+1} [n]
    losses: Sum  # the cumulative estimates, two words [n]
    learning_rate: Array  # eta_{t+1} []
    scale: Doubling | Balance


def doubling_ftrl(potential: Potential, num_rounds: Array | float) -> FullInformation:
    """FTRL at half of AdaTINF's rate, eta_t = 1 / (2^J sqrt(t)): Huang, Dai and Huang (2022).

    Half, since AdaTINF's -2 sum(sqrt(x)) is twice the regulariser of f = -sqrt(x), which it needs
    as the potential. J is that of `estimation.doubling_skipping`.

    Args:
      potential: gives the regulariser; `tsallis(0.5)` in AdaTINF.
      num_rounds: T, in the budget of the scale.
    """
    check_horizon(num_rounds)
    return _scale_ftrl(potential, doubling_init, Partial(next_doubling, num_rounds), _doubling_rate)


def balanced_ftrl(potential: Potential, num_rounds: Array | float) -> FullInformation:
    """FTRL at uniINF's rate, eta_t = 1 / S_t: Chen, Huang, Dai and Huang (2025).

    S_t is that of `estimation.balanced_skipping`.

    Args:
      potential: gives the regulariser; `log_barrier()` in uniINF.
      num_rounds: T >= 2, in the growth of the scale.
    """
    check_horizon(num_rounds, least=2)
    return _scale_ftrl(potential, balance_init, Partial(next_balance, num_rounds), _balance_rate)


def _doubling_rate(scale: Doubling) -> Array:
    return 0.5 / inverse_rate(scale)


def _balance_rate(scale: Balance) -> Array:
    return 1 / scale.size.value


def _scale_ftrl(potential: Potential, scale_init, next_scale, rate) -> FullInformation:
    check_potential(potential)
    return FullInformation(
        init=Partial(_init, Partial(scale_init), Partial(rate)),
        update=Partial(_update, potential, next_scale, Partial(rate)),
    )


def _init(scale_init, rate, num_arms, dtype, loss_unit) -> ScaleFTRLState:
    scale = scale_init(num_arms, dtype, loss_unit)
    zeros = jnp.zeros(num_arms, dtype)
    return ScaleFTRLState(zeros + 1 / num_arms, start_sum(zeros), rate(scale), scale)


def _update(potential, next_scale, rate, state: ScaleFTRLState, seen: Round) -> ScaleFTRLState:
    losses = add(state.losses, seen.estimate)
    scale = next_scale(state.scale, seen)
    play = follow(potential, losses, rate(scale), potential.inverse(jnp.max(state.play)))
    return ScaleFTRLState(play, losses, rate(scale), scale)
