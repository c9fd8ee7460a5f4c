"""Learning rates and explorations of the literature as functions of t rounds played and n arms.

Each is for the next round, t + 1. Parameters come first, so that `jax.tree_util.Partial` binds them
as pytree leaves: ``num_rounds`` is T, ``scale`` the range G of the losses; rates are per unit of
loss. Where a strategy is given another rate than its own, `rate_or` takes it.
"""

import math
from collections.abc import Callable

import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.tree_util import Partial

from sfmab_jax.checks import is_known
from sfmab_jax.full_information.ftrl import schedule_of

__all__ = [
    "Rate",
    "ahb_code_exploration",
    "ahb_exploration",
    "auer_exploration",
    "auer_rate",
    "barrier_horizon_rate",
    "batch_length",
    "exp3_horizon_rate",
    "exp3_in_batches_rate",
    "exp3_p_bonus",
    "exp3_p_exploration",
    "exp3_p_rate",
    "exp3_plus_plus_rate",
    "exp3_rate",
    "exp3_s_exploration",
    "exp3_s_rate",
    "exp3_s_share",
    "favour_of_rate",
    "green_level",
    "green_rate",
    "heavy_descent_floor",
    "heavy_descent_limit",
    "heavy_descent_rate",
    "heavy_tail_limit",
    "heavy_tail_rate",
    "hedge_horizon_rate",
    "hedge_rate",
    "implicit_bias",
    "implicit_horizon_bias",
    "implicit_rate",
    "inf_horizon_rate",
    "inf_rate",
    "path_length_rate",
    "rate_or",
    "reduced_variance_rate",
    "reduced_variance_threshold",
    "side_information_exploration",
    "side_information_rate",
    "square_of",
    "square_root_range",
    "times",
    "tsallis_inf_rate",
    "ucb_bonus",
]

Number = Array | float
Rate = Array | float | Callable[[Array], Array]


# Rates given by the user.


def rate_or(theory: Callable, learning_rate: Rate | None, factor: Number | None = None) -> Callable:
    """Return the schedule (t, n) -> eta that a strategy follows.

    Args:
      theory: its own.
      learning_rate: another one, per unit of loss: a positive number, or a function of the number
        of rounds played t = 0, 1, ... (a float []); None for its own.
      factor: what the other one is multiplied by, where the potential here is a multiple of that in
        the strategy's rule.
    """
    if learning_rate is None:
        return theory
    schedule = schedule_of(learning_rate)
    return schedule if factor is None else Partial(times, factor, schedule)


def times(factor: Number, schedule: Callable, t: Array, n: int) -> Array:
    """Return a multiple of another schedule."""
    return factor * schedule(t, n)


def square_of(schedule: Callable, t: Array, n: int) -> Array:
    """Return the square of another schedule."""
    return schedule(t, n) ** 2


# Full information.


def hedge_rate(scale: Number, t: Array, n: int) -> Array:
    """sqrt(8 ln n / (t + 1)) / G."""
    return jnp.sqrt(8 * math.log(n) / (t + 1)) / scale


def hedge_horizon_rate(num_rounds: Number, scale: Number, t: Array, n: int) -> Array:
    """sqrt(8 ln n / T) / G."""
    return jnp.sqrt(8 * math.log(n) / num_rounds) / scale


# Exponential weights.


def exp3_rate(scale: Number, t: Array, n: int) -> Array:
    """sqrt(ln n / (t n)) / G; the estimates of round t enter with it."""
    return jnp.sqrt(math.log(n) / (n * jnp.maximum(t, 1))) / scale


def batch_length(num_rounds: Number) -> Array | int:
    """T^(1/3), rounded up, 2^30 at most."""
    if is_known(num_rounds):
        # A cube is rounded to itself.
        return min(int(np.ceil(np.cbrt(float(num_rounds)) * (1 - 1e-12))), 2**30)
    return jnp.ceil(jnp.cbrt(jnp.float32(num_rounds)) * (1 - 1e-6)).astype(jnp.int32)


def exp3_in_batches_rate(num_rounds: Number, scale: Number, t: Array, n: int) -> Array:
    """Of `exp3_horizon_rate` for the number of batches."""
    length = jnp.asarray(batch_length(num_rounds), t.dtype)
    return exp3_horizon_rate(num_rounds / length, scale, t, n)


def exp3_horizon_rate(num_rounds: Number, scale: Number, t: Array, n: int) -> Array:
    """sqrt(2 ln n / (n T)) / G."""
    return jnp.sqrt(2 * math.log(n) / (n * num_rounds)) / scale


def auer_exploration(num_rounds: Number, t: Array, n: int) -> Array:
    """min(1, sqrt(n ln n / ((e - 1) T)))."""
    return jnp.minimum(1, jnp.sqrt(n * math.log(n) / ((math.e - 1) * num_rounds)))


def auer_rate(num_rounds: Number, scale: Number, t: Array, n: int) -> Array:
    """gamma / (n G), gamma as in `auer_exploration`."""
    return auer_exploration(num_rounds, t, n) / (n * scale)


def exp3_p_rate(num_rounds: Number, scale: Number, t: Array, n: int) -> Array:
    """0.95 sqrt(ln n / (n T)) / G."""
    return 0.95 * jnp.sqrt(math.log(n) / (n * num_rounds)) / scale


def exp3_p_exploration(num_rounds: Number, t: Array, n: int) -> Array:
    """1.05 sqrt(n ln n / T), at most 1/2: below that T the bound is void."""
    return jnp.minimum(0.5, 1.05 * jnp.sqrt(n * math.log(n) / num_rounds))


def exp3_p_bonus(num_rounds: Number, failure: Number, n: int) -> Array:
    """sqrt(ln(n / delta) / (n T))."""
    return jnp.sqrt(jnp.log(n / failure) / (n * num_rounds))


def exp3_s_exploration(num_rounds: Number, switches: Number, t: Array, n: int) -> Array:
    """min(1, sqrt(n (S ln(n T) + e) / ((e - 1) T))), S = m + 1 segments."""
    spread = (switches + 1) * (math.log(n) + jnp.log(num_rounds)) + math.e
    return jnp.minimum(1, jnp.sqrt(n * spread / ((math.e - 1) * num_rounds)))


def exp3_s_rate(num_rounds: Number, switches: Number, scale: Number, t: Array, n: int) -> Array:
    """gamma / (n G), gamma as in `exp3_s_exploration`."""
    return exp3_s_exploration(num_rounds, switches, t, n) / (n * scale)


def exp3_s_share(num_rounds: Number, t: Array, n: int) -> Number:
    """1 / T."""
    return 1 / num_rounds


def implicit_rate(scale: Number, t: Array, n: int) -> Array:
    """sqrt(ln n / (n (t + 1))) / G."""
    return jnp.sqrt(math.log(n) / (n * (t + 1))) / scale


def implicit_bias(t: Array, n: int) -> Array:
    """Half of `implicit_rate` at G = 1."""
    return implicit_rate(1.0, t, n) / 2


def implicit_horizon_bias(num_rounds: Number, t: Array, n: int) -> Array:
    """Half of `exp3_horizon_rate` at G = 1."""
    return exp3_horizon_rate(num_rounds, 1.0, t, n) / 2


def exp3_plus_plus_rate(scale: Number, t: Array, n: int) -> Array:
    """sqrt(ln n / ((t + 1) n)) / (2 G)."""
    return implicit_rate(scale, t, n) / 2


def side_information_exploration(t: Array, n: int) -> Array:
    """min(1/2, sqrt(n ln n / (t + 1)))."""
    return jnp.minimum(0.5, jnp.sqrt(n * math.log(n) / (t + 1)))


def side_information_rate(spread: Number, t: Array, n: int) -> Array:
    """gamma_{t+1} / (n spread): then no |eta l~| exceeds 1."""
    return side_information_exploration(t, n) / (n * spread)


def ahb_exploration(decay: Number, t: Array, n: int) -> Array:
    """min(1/2, sqrt(5 (1 - a) n ln n) / (t + 1)^a)."""
    return jnp.minimum(0.5, jnp.sqrt(5 * (1 - decay) * n * math.log(n)) / (t + 1) ** decay)


def ahb_code_exploration(t: Array, n: int) -> Array:
    """min(1/2, sqrt(10 n ln n / t)), t the rounds played before."""
    return jnp.minimum(0.5, jnp.sqrt(10 * n * math.log(n) / jnp.maximum(t, 1)))


# Powers. With F = -sum(x^c): INF's p = (eta' (L - x))^(-q) has c = 1 - 1/q and rate c eta';
# Tsallis-INF's w = 4 (eta' (L - x))^(-2) has c = 1/2 and rate eta' / 4.


def inf_rate(power: Number, scale: Number, t: Array, n: int) -> Array:
    """sqrt(c (1 - c) n^(1 - 2c) / (t + 1)) / G; for c = 1/2 that is eta' = 2 / sqrt(t + 1)."""
    return jnp.sqrt(_inf_constant(power, n) / (t + 1)) / scale


def tsallis_inf_rate(power: Number, scale: Number, t: Array, n: int) -> Array:
    """c (1 - c) eta' / G, eta' = (16^c / 4) (1 - s^(c-1)) / ((1 - c) (t + 1)^c), s = max(e, t + 1).

    For c = 1/2 `inf_rate` in its place.
    """
    log = jnp.log(t + 1)
    growth = -jnp.expm1((power - 1) * jnp.maximum(log, 1))
    rate = power / 4 * jnp.exp(power * (math.log(16) - log)) * growth / scale
    return jnp.where(power == 0.5, inf_rate(0.5, scale, t, n), rate)


def inf_horizon_rate(power: Number, num_rounds: Number, scale: Number, t: Array, n: int) -> Array:
    """sqrt(2 c (1 - c) n^(1 - 2c) / T) / G; for c = 1/2 that is eta' = sqrt(2/T) of Poly-INF."""
    return jnp.sqrt(2 * _inf_constant(power, n) / num_rounds) / scale


def _inf_constant(power: Number, n: int) -> Array:
    return power * (1 - power) * jnp.exp((1 - 2 * power) * math.log(n))


def square_root_range(n: int) -> float:
    """sqrt(n) - 1, the range of F = -sum(sqrt(x)) on the simplex."""
    return math.sqrt(n) - 1


def reduced_variance_rate(scale: Number, t: Array, n: int) -> Array:
    """eta' = 4 / sqrt(t + 1), over G."""
    return 1 / (jnp.sqrt(t + 1) * scale)


def reduced_variance_threshold(t: Array, n: int) -> Array:
    """eta'^2 = 16 / (t + 1)."""
    return 16 / (t + 1)


def heavy_tail_rate(tail: Number, size: Number, t: Array, n: int) -> Array:
    """eta_{t+1} / a with eta_t = 1 / (sigma t^(1/a)): Psi = -a sum(x^(1/a)) is a F."""
    return 1 / (tail * size * (t + 1) ** (1 / tail))


def heavy_tail_limit(tail: Number, size: Number, round_: Array, chance: Array) -> Array:
    """Theta_a x^(1/a) / eta_t, Theta_a = min(1 - 2^(-(a-1)/(2a-1)), (2 - 2/a)^(1/(2-a))).

    At a = 2 the second term is its limit, exp(-1/2), and the first 1 - 2^(-1/3) is the smaller.
    """
    first = 1 - jnp.exp2(-(tail - 1) / (2 * tail - 1))
    below = jnp.minimum(tail, 2 - 1e-3)
    second = jnp.where(tail > 2 - 1e-3, 1.0, (2 - 2 / below) ** (1 / (2 - below)))
    share = jnp.minimum(first, second).astype(chance.dtype)
    return share * size * (round_ * chance) ** (1 / tail)


def heavy_descent_limit(num_rounds: Number, tail: Number, size: Number, n: int) -> Array:
    """sigma (T / n)^(1/a)."""
    return size * (jnp.asarray(num_rounds) / n) ** (1 / tail)


def heavy_descent_rate(
    num_rounds: Number, tail: Number, size: Number, failure: Number, n: int
) -> Array:
    """1 / (40 M ln T ln(8 n T / delta)), M as in `heavy_descent_limit`."""
    logs = jnp.log(num_rounds) * (math.log(8 * n) + jnp.log(num_rounds) - jnp.log(failure))
    return 1 / (40 * heavy_descent_limit(num_rounds, tail, size, n) * logs)


def heavy_descent_floor(num_rounds: Number, tail: Number, n: int) -> Array:
    """T^(-(a-1)/a) n^(-1/a) / n."""
    return jnp.asarray(num_rounds) ** ((1 - tail) / tail) * n ** (-1 / tail) / n


# Data-dependent.


def barrier_horizon_rate(num_rounds: Number, scale: Number, t: Array, n: int) -> Array:
    """min(1/2, sqrt(n ln T / T)) / G."""
    return jnp.minimum(0.5, jnp.sqrt(n * jnp.log(num_rounds) / num_rounds)) / scale


def path_length_rate(
    num_rounds: Number, path_length: Number | None, scale: Number, t: Array, n: int
) -> Array:
    """min(1/162, sqrt(n ln(n T) / (1 + Q))) / G; Q = T if it is not given."""
    most = num_rounds if path_length is None else path_length
    spread = n * (math.log(n) + jnp.log(num_rounds))
    return jnp.minimum(1 / 162, jnp.sqrt(spread / (1 + most))) / scale


def favour_of_rate(rate: Callable, scale: Number, t: Array, n: int) -> Array:
    """8 eta G."""
    return 8 * scale * rate(t, n)


def green_level(num_rounds: Number, n: int) -> Array:
    """sqrt(ln n / (n T))."""
    return jnp.sqrt(math.log(n) / (n * num_rounds))


def green_rate(num_rounds: Number, scale: Number, t: Array, n: int) -> Array:
    """`green_level` / G."""
    return green_level(num_rounds, n) / scale


# Stochastic bandits.


def ucb_bonus(scale: Number, t: Array, num_plays: Array) -> Array:
    """G sqrt(2 ln t / N)."""
    return scale * jnp.sqrt(2 * jnp.log(t) / num_plays)
