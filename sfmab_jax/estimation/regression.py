"""Importance weighting of the distance to a prediction that is fitted to the losses seen.

Ito, Tsuchiya and Honda, "Adversarially Robust Multi-Armed Bandit Algorithm with Variance-Dependent
Regret Bounds" (2022).
"""

from typing import Literal, NamedTuple

import jax.numpy as jnp
from jax import Array
from jax.tree_util import Partial

from sfmab_jax.base import Estimation, Round
from sfmab_jax.checks import check_positive
from sfmab_jax.estimation.importance import on_arm
from sfmab_jax.numerics.arms import add_at, is_arm, pick
from sfmab_jax.numerics.double_word import Sum, start_sum

__all__ = [
    "Form",
    "RegressionState",
    "first_prediction",
    "next_prediction",
    "predicted_by_regression",
    "share_of",
]

Form = Literal["LS", "GD"]


class RegressionState(NamedTuple):
    predictions: Sum  # m_{t+1}, two words [n]
    num_plays: Array  # N_t [n] int32


def predicted_by_regression(form: Form = "LS", scale: Array | float = 1.0) -> Estimation:
    """Weigh the distance to m_t(i), a prediction of the loss of arm i from those seen of it.

    l~_t(i) = (l_t(i) - m_t(i)) [i = i_t] / p'_t(i) + m_t(i): unbiased, as m_t is known before the
    arm is drawn. m_1(i) = G/2. After N losses of the arm, m(i) = (G/2 + their sum) / (1 + N) with
    least squares ("LS"); with gradient descent ("GD") each moves m(i) a quarter of the way to it.

    Args:
      form: "LS" or "GD".
      scale: G, for losses in [0, G].

    >>> scheme = predicted_by_regression("GD", scale=4.0)
    >>> print(scheme.init(2, jnp.dtype("float32"), jnp.float32(1.0)).predictions.value)
    [2. 2.]
    """
    check_positive(scale=scale)
    return Estimation(
        init=Partial(first_prediction, scale),
        estimate=Partial(_estimate),
        update=Partial(next_prediction, share_of(form)),
    )


def share_of(form: Form) -> Partial:
    """Return the function from N, the losses of an arm seen before, to how far m moves to one."""
    shares = {"LS": _least_squares, "GD": _gradient_descent}
    if not isinstance(form, str) or form not in shares:
        raise ValueError(f"form is {form!r}; choose 'LS' or 'GD'")
    return Partial(shares[form])


def first_prediction(scale, num_arms, dtype, loss_unit) -> RegressionState:
    """Return the state before round 1."""
    half = 0.5 * jnp.asarray(scale, dtype) * loss_unit
    return RegressionState(start_sum(jnp.zeros(num_arms, dtype) + half), _no_plays(num_arms))


def next_prediction(share, state: RegressionState, seen: Round) -> RegressionState:
    """Return the state after a round."""
    num_plays = pick(state.num_plays, seen.arm).astype(seen.loss.dtype)
    surprise = seen.loss - pick(state.predictions.value, seen.arm)
    return RegressionState(
        add_at(state.predictions, seen.arm, share(num_plays) * surprise),
        state.num_plays + is_arm(seen.arm, state.num_plays).astype(jnp.int32),
    )


def _no_plays(num_arms: int) -> Array:
    return jnp.zeros(num_arms, jnp.int32)


def _least_squares(num_plays: Array) -> Array:
    """1 / (N + 2), as G/2 counts like a loss."""
    return 1 / (num_plays + 2)


def _gradient_descent(num_plays: Array) -> Array:
    return jnp.full_like(num_plays, 0.25)


def _estimate(state: RegressionState, play, probabilities, arm, loss) -> Array:
    predictions = state.predictions.value
    surprise = (loss - pick(predictions, arm)) / pick(probabilities, arm)
    return on_arm(surprise, arm, play) + predictions
