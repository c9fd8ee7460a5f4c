"""Losses that change little from one round to the next."""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array

from sfmab_jax.checks import check_integer, check_number, check_positive
from sfmab_jax.losses import draws
from sfmab_jax.losses.combinators import scaled
from sfmab_jax.losses.draws import Draw
from sfmab_jax.losses.sequence import MOST_ARMS, LossSequence, from_draws, recurrence_from_draws

__all__ = ["random_walk", "sinusoidal", "slowly_varying"]

_NUM_WAVES = 3


def random_walk(num_arms: int = 10, step: float = 0.05, scale: float = 1.0) -> LossSequence:
    """Random walks: l_t(i) = scale * W_t(i), W_t = clip(W_{t-1} + step Z_t, -1, 1), W_0 = 0.

    Z_t(i) is standard normal, independent from arm to arm.

    Args:
      num_arms: n.
      step: the standard deviation of a step, in units of ``scale``.
      scale: the largest loss.
    """
    check_integer("num_arms", num_arms, 1, MOST_ARMS)
    check_positive(step=step)
    return scaled(
        recurrence_from_draws(
            _walk_init,
            _walk_next,
            num_arms,
            name="random_walk",
            start=np.zeros(num_arms, np.float32),
            step=step,
        ),
        scale,
    )


def sinusoidal(
    num_arms: int = 10, period: int = 1_000, noise: float = 0.1, scale: float = 1.0
) -> LossSequence:
    """Noisy sine waves: l_t(i) = scale * (sin(2 pi (t / period + i / n)) + noise Z_t(i)).

    Z_t(i) is standard normal. The best arm goes round once in a period, so that no arm is better
    in the long run.

    Args:
      num_arms: n.
      period: in rounds.
      noise: the standard deviation of the noise, in units of ``scale``.
      scale: the amplitude.
    """
    check_integer("num_arms", num_arms, 1, MOST_ARMS)
    check_integer("period", period, 2, 2**24)
    check_number("noise", noise)
    if noise < 0:
        raise ValueError(f"noise is {noise}; give 0 or more")
    return scaled(
        from_draws(
            _sinusoidal,
            num_arms,
            1 + 3 * noise,
            "sinusoidal",
            _sinusoidal_mean,
            turns=np.float32(np.arange(num_arms) / num_arms),
            period=np.int32(period),
            noise=noise,
        ),
        scale,
    )


def slowly_varying(num_arms: int = 10, period: int = 10_000, scale: float = 1.0) -> LossSequence:
    """Slow waves: l_t(i) = scale / 3 * sum_{k=1..3} cos(2 pi (k t / period + phase_k(i))).

    The phases are uniform, drawn once for each sequence. No loss moves by more than
    4 pi scale / period from one round to the next: a short path.

    Args:
      num_arms: n.
      period: of the slowest wave, in rounds.
      scale: the largest loss.
    """
    check_integer("num_arms", num_arms, 1, MOST_ARMS)
    check_integer("period", period, 2, 2**24)
    return scaled(
        recurrence_from_draws(
            _waves_init,
            _waves_next,
            num_arms,
            name="slowly_varying",
            mean=_waves_mean,
            phases=np.zeros((_NUM_WAVES, num_arms), np.float32),
            period=np.int32(period),
        ),
        scale,
    )


def _walk_init(key: Array, *, start, step) -> Array:
    return jnp.asarray(start)


def _walk_next(place: Array, draw: Draw, round_: Array, *, start, step):
    place = jnp.clip(place + step * draws.normal(draw(len(place))), -1, 1)
    return place, place


def _part_of_period(round_: Array, period: Array) -> Array:
    return (round_ % period).astype(jnp.float32) / period.astype(jnp.float32)


def _sinusoidal_mean(round_: Array, *, turns, period, noise) -> Array:
    return jnp.sin(2 * np.pi * (_part_of_period(round_, period) + turns))


def _sinusoidal(draw: Draw, round_: Array, *, turns, period, noise) -> Array:
    wave = _sinusoidal_mean(round_, turns=turns, period=period, noise=noise)
    return wave + noise * draws.normal(draw(len(wave)))


class _Waves(NamedTuple):
    """cos and sin of 2 pi times the phases, [waves, n]."""

    cosines: Array
    sines: Array


def _waves_init(key: Array, *, phases, period) -> _Waves:
    angles = 2 * np.pi * draws.unit(draws.first_words(key, phases.size)).reshape(phases.shape)
    return _Waves(jnp.cos(angles), jnp.sin(angles))


def _waves_mean(state: _Waves, round_: Array, *, phases, period) -> Array:
    harmonics = jnp.arange(1, _NUM_WAVES + 1, dtype=jnp.int32)
    angles = 2 * np.pi * _part_of_period(harmonics * (round_ % period), period)[:, None]
    # cos(a + b), with a of the round alone and b drawn at the start.
    waves = jnp.cos(angles) * state.cosines - jnp.sin(angles) * state.sines
    return jnp.mean(waves, axis=0)


def _waves_next(state: _Waves, draw: Draw, round_: Array, *, phases, period):
    return state, _waves_mean(state, round_, phases=phases, period=period)
