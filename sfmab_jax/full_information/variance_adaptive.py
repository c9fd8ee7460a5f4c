"""FTRL with a rate for each arm, set by how far its losses were from their predictions: LB-INF-V.

Ito, Tsuchiya and Honda (2022). The predictions are those of `estimation.regression`, a pure
function of the arms played and their losses, kept once more in the state of this part.
"""

from typing import NamedTuple

import jax.numpy as jnp
from jax import Array
from jax.tree_util import Partial

from sfmab_jax.base import FullInformation, Round
from sfmab_jax.checks import check_horizon, check_positive
from sfmab_jax.estimation.regression import (
    Form,
    RegressionState,
    first_prediction,
    next_prediction,
    share_of,
)
from sfmab_jax.full_information.ftrl import gaps_to_leader
from sfmab_jax.numerics.arms import add_at, pick
from sfmab_jax.numerics.complemented_barrier import complemented_distribution
from sfmab_jax.numerics.double_word import Sum, add, start_sum

__all__ = ["variance_adaptive_ftrl"]

# Only losses far beyond G come here; squares of a million of them are in float32's range.
LARGEST_SURPRISE = 1e15


class VarianceAdaptiveState(NamedTuple):
    play: Array  # p_{t+1} [n]
    losses: Sum  # the cumulative estimates, two words [n]
    learning_rate: Array  # 1 / (G beta_{t+1}) [n]
    squares: Sum  # beta_{t+1}^2, two words [n]
    regression: RegressionState  # m_{t+1}
    unit: Array  # G in the losses' unit []


def variance_adaptive_ftrl(
    num_rounds: Array | float, form: Form = "LS", scale: Array | float = 1.0
) -> FullInformation:
    """Optimistic FTRL with a weight for each arm: LB-INF-V.

    p_t = argmin_q q.(m_t + L_t) / G + sum_i beta_t(i) phi(q(i)), L_t the sum of the estimates and
    m_t the predictions of `estimation.predicted_by_regression`, which it needs; phi'(x) =
    1 - 1/x - g ln(1 - x), g = ln T. beta_1(i)^2 = (6/5)^2, and after round t that of the arm played
    grows by (l - m)^2 min(1, 2 (1 - p) / (g p^2)) / (G^2 g).

    Args:
      num_rounds: T >= 2.
      form: of the predictions, "LS" or "GD".
      scale: G, for losses in [0, G].
    """
    check_horizon(num_rounds, least=2)
    check_positive(scale=scale)
    return FullInformation(
        init=Partial(_init, scale), update=Partial(_update, num_rounds, share_of(form))
    )


def _init(scale, num_arms, dtype, loss_unit) -> VarianceAdaptiveState:
    zeros = jnp.zeros(num_arms, dtype)
    unit = jnp.asarray(scale, dtype) * loss_unit
    return VarianceAdaptiveState(
        play=zeros + 1 / num_arms,
        losses=start_sum(zeros),
        learning_rate=zeros + 1 / (1.2 * unit),
        squares=start_sum(zeros + 1.44),
        regression=first_prediction(scale, num_arms, dtype, loss_unit),
        unit=unit,
    )


def _update(num_rounds, share, state: VarianceAdaptiveState, seen: Round) -> VarianceAdaptiveState:
    gamma = jnp.log(jnp.asarray(num_rounds, state.unit.dtype))
    chance = pick(seen.probabilities, seen.arm)
    surprise = (seen.loss - pick(state.regression.predictions.value, seen.arm)) / state.unit
    certainty = jnp.minimum(1, 2 * jnp.maximum(1 - chance, 0) / (gamma * chance**2))
    surprise = jnp.clip(surprise, -LARGEST_SURPRISE, LARGEST_SURPRISE)
    squares = add_at(state.squares, seen.arm, surprise**2 * certainty / gamma)
    regression = next_prediction(share, state.regression, seen)
    losses = add(state.losses, seen.estimate)
    weights = jnp.sqrt(squares.value)
    gaps = gaps_to_leader(add(losses, regression.predictions.value))
    gaps = jnp.minimum(gaps / state.unit, LARGEST_SURPRISE**2)
    play = complemented_distribution(weights, gamma, gaps, state.play)
    rates = 1 / (weights * state.unit)
    return VarianceAdaptiveState(play, losses, rates, squares, regression, state.unit)
