"""Mirror descent with the log barrier, a rate for each arm, predictions or a floor: BROAD."""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array
from jax.tree_util import Partial

from sfmab_jax.base import FullInformation, Round, as_partial
from sfmab_jax.checks import check_functions, check_horizon, check_number, check_positive
from sfmab_jax.estimation.last_seen import update_predictions
from sfmab_jax.full_information.ftrl import gaps_to_leader
from sfmab_jax.numerics.arms import arm_sum
from sfmab_jax.numerics.double_word import Sum, add, start_sum

__all__ = ["barrier_descent", "barrier_point", "floored_point"]


class BarrierDescentState(NamedTuple):
    play: Array  # w_{t+1} [n]
    dual: Sum  # theta, two words: w'_{t+1}(i) = 1 / (eta_i (theta_i + Lambda)) [n]
    learning_rate: Array  # eta_{t+1} [n]
    predictions: Array  # m_{t+1} [n]
    thresholds: Array  # rho_{t+1} [n]


def barrier_descent(
    learning_rate: Array | float | Callable[[int], Array],
    *,
    correction: Array | float = 6.0,
    optimistic: bool = False,
    num_rounds: Array | float | None = None,
    floor: Callable[[int], Array] | None = None,
) -> FullInformation:
    """Log-barrier mirror descent with predictions: BROAD, Algorithm 1 of Wei and Luo (2018).

    With D the divergence of sum_i log(1/w_i) / eta_i, p_t = w_t = argmin_w <w, m_t> + D(w, w'_t)
    is played; then w'_{t+1} = argmin_w <w, l~_t + a_t> + D(w, w'_t),
    a_t(i) = c eta_i w_t(i) (l~_t(i) - m_t(i))^2.

    In dual coordinates 1/w'(i) = eta_i (theta_i + Lambda), and a round adds l~_t + a_t to theta:
    the two-word sum is the only rounding error carried along. When an arm's rate changes, its
    theta is moved so that w' stays.

    Args:
      learning_rate: eta, at first common to all arms, per unit of loss; a positive number, or a
        function of the number of arms n.
      correction: c; 6 in option I of the paper, 0 in option II.
      optimistic: whether m_t(i) is the last loss seen of arm i, which needs
        `estimation.predicted_by_last_seen`; else it is 0.
      num_rounds: T >= 2 for increasing rates, None for constant ones. Where 1/w'_{t+1}(i) > rho_i,
        which starts at 2n, rho_i becomes 2 / w'_{t+1}(i) and eta_i grows by exp(1 / ln T).
      floor: a function of n that returns f [], less than 1/n, to descend on w(i) >= f, as Cheng,
        Zhou and Ji (2024) do; not together with ``optimistic``. An arm on the floor leaves it as
        soon as its loss is below the others', whatever was before.
    """
    if callable(learning_rate):
        rate = as_partial(learning_rate)
    else:
        check_positive(learning_rate=learning_rate)
        rate = Partial(_constant, learning_rate)
    check_number("correction", correction)
    if num_rounds is not None:
        check_horizon(num_rounds, least=2)
    if not isinstance(optimistic, bool):
        raise ValueError(f"optimistic is {optimistic!r}; choose True or False")
    if floor is not None:
        check_functions(floor=floor)
        if optimistic:
            raise ValueError(f"optimistic is {optimistic!r}; with a floor choose False")
        update = Partial(_update_floored, correction, num_rounds, as_partial(floor))
        return FullInformation(init=Partial(_init, rate), update=update)
    predict = Partial(update_predictions) if optimistic else Partial(_keep_predictions)
    grow = Partial(_keep_rates) if num_rounds is None else Partial(_grow_rates, num_rounds)
    return FullInformation(
        init=Partial(_init, rate), update=Partial(_update, correction, predict, grow)
    )


def barrier_point(dual: Sum, inverse_rates: Array) -> tuple[Array, Array, Array]:
    """Return w(i) = r_i / (x_i + m), sum(w) = 1, with x = theta - min(theta) and r = 1/eta.

    Newton on 1/s - 1, s(m) = sum(w), a weighted harmonic mean and so concave in m, rises to the
    root from any point left of it: from the larger of max(r - x), as no weight exceeds 1, and
    sum(r) - (the mean of x with weights r), by Jensen.

    Args:
      dual: theta [n], in two words.
      inverse_rates: r [n].

    Returns:
      w [n], x [n] and m [], which is positive.
    """
    gaps = gaps_to_leader(dual)
    start = _left_of_root(gaps, inverse_rates)

    def newton(_, m):
        inverse = 1 / (gaps + m)
        weights = inverse_rates * inverse
        mass = arm_sum(weights)
        return jnp.maximum(m + mass * (mass - 1) / arm_sum(weights * inverse), start)

    # Enough for rounding level where the rates differ by a factor of at most about 5.
    num_steps = 4 + len(gaps).bit_length() // 2 + (gaps.dtype == jnp.float64)
    m = jax.lax.fori_loop(0, num_steps, newton, start)
    return inverse_rates / (gaps + m), gaps, m


def _left_of_root(gaps: Array, inverse_rates: Array) -> Array:
    """Return where Newton's steps begin, see `barrier_point`; x and r [n]."""
    total = arm_sum(inverse_rates)
    jensen = total - arm_sum(inverse_rates * gaps) / total
    return jnp.maximum(jnp.max(inverse_rates - gaps), jensen)


def floored_point(dual: Sum, inverse_rates: Array, floor: Array) -> tuple[Array, Array, Array]:
    """Return w(i) = max(f, r_i / (x_i + m)), sum(w) = 1, as `barrier_point` does for f = 0.

    The same steps on the arms that are above the floor at m, whose weights must add up to 1 less
    the floors of the others. An arm that sinks to the floor takes less than it would below it, so
    that no step passes the root here either.

    Args:
      dual: theta [n], in two words.
      inverse_rates: r [n].
      floor: f [], less than 1/n.

    Returns:
      w [n], x [n] and m [], which is positive.
    """
    gaps = gaps_to_leader(dual)
    start = _left_of_root(gaps, inverse_rates)

    def newton(_, m):
        inverse = 1 / (gaps + m)
        weights = inverse_rates * inverse
        is_above = weights > floor
        mass = arm_sum(jnp.where(is_above, weights, 0))
        wanted = 1 - floor * arm_sum(jnp.where(is_above, 0, jnp.ones_like(weights)))
        slope = arm_sum(jnp.where(is_above, weights * inverse, 0))
        return jnp.maximum(m + mass * (mass / wanted - 1) / slope, start)

    num_steps = 6 + len(gaps).bit_length() // 2 + (gaps.dtype == jnp.float64)
    m = jax.lax.fori_loop(0, num_steps, newton, start)
    return jnp.maximum(inverse_rates / (gaps + m), floor), gaps, m


def _constant(learning_rate, num_arms: int):
    return learning_rate


def _keep_predictions(predictions: Array, seen: Round) -> Array:
    return predictions


def _keep_rates(dual: Sum, rates: Array, thresholds: Array) -> tuple[Sum, Array, Array]:
    return dual, rates, thresholds


def _grow_rates(num_rounds, dual: Sum, rates: Array, thresholds: Array):
    factor = jnp.exp(1 / jnp.log(jnp.asarray(num_rounds, rates.dtype)))
    weights, gaps, m = barrier_point(dual, 1 / rates)
    inverse = 1 / weights
    is_growing = inverse > thresholds
    # w' stays if theta + Lambda = x + m shrinks by the factor by which eta grows.
    dual = add(dual, jnp.where(is_growing, (gaps + m) * (1 / factor - 1), 0))
    rates = jnp.where(is_growing, rates * factor, rates)
    return dual, rates, jnp.where(is_growing, 2 * inverse, thresholds)


def _init(learning_rate, num_arms, dtype, loss_unit) -> BarrierDescentState:
    zeros = jnp.zeros(num_arms, dtype)
    return BarrierDescentState(
        play=jnp.full(num_arms, 1 / num_arms, dtype),
        dual=start_sum(zeros),
        learning_rate=zeros + jnp.asarray(learning_rate(num_arms), dtype) / loss_unit,
        predictions=zeros,
        thresholds=jnp.full(num_arms, 2 * num_arms, dtype),
    )


def _update(correction, predict, grow, state: BarrierDescentState, seen: Round):
    surprise = seen.estimate - state.predictions
    addend = correction * state.learning_rate * seen.play * surprise**2
    dual = add(state.dual, seen.estimate + addend)
    dual, rates, thresholds = grow(dual, state.learning_rate, state.thresholds)
    predictions = predict(state.predictions, seen)
    play, _, _ = barrier_point(add(dual, predictions), 1 / rates)
    return BarrierDescentState(play, dual, rates, predictions, thresholds)


def _update_floored(correction, num_rounds, floor, state: BarrierDescentState, seen: Round):
    dtype = seen.play.dtype
    lowest = jnp.asarray(floor(len(seen.play)), dtype)
    addend = correction * state.learning_rate * seen.play * seen.estimate**2
    dual = add(state.dual, seen.estimate + addend)
    rates, thresholds = state.learning_rate, state.thresholds
    weights, gaps, m = floored_point(dual, 1 / rates, lowest)
    now, growing = gaps + m, rates
    if num_rounds is not None:
        factor = jnp.exp(1 / jnp.log(jnp.asarray(num_rounds, dtype)))
        is_growing = 1 / weights > thresholds
        growing = jnp.where(is_growing, rates * factor, rates)
        thresholds = jnp.where(is_growing, 2 / weights, thresholds)
    # theta + Lambda is to be 1 / (eta w) with the weights as they are and the new rates.
    on_floor = 1 / (growing * lowest)
    risen = jnp.where(growing > rates, now * (rates / growing), now)
    dual = add(dual, jnp.where(weights > lowest, risen, on_floor) - now)
    return BarrierDescentState(weights, dual, growing, state.predictions, thresholds)
