"""Losses whose scale changes over time, which a scale-free strategy has to bear."""

from collections.abc import Sequence
from dataclasses import replace

import jax.numpy as jnp
import numpy as np
from jax import Array

from sfmab_jax.checks import check_integer, check_number, check_positive
from sfmab_jax.losses.combinators import enveloped, scaled
from sfmab_jax.losses.draws import Draw, unit
from sfmab_jax.losses.light_tailed import uniform
from sfmab_jax.losses.sequence import MOST_ROUNDS, LossSequence, best_arm_gap, from_draws

__all__ = ["alternating", "growing", "late_spike", "scale_regimes"]


def growing(
    num_arms: int = 10,
    ratio: float = 1e6,
    num_rounds: int = 10_000,
    gap: float = 0.2,
    scale: float = 1.0,
) -> LossSequence:
    """Losses of growing scale: s_t times those of `uniform`, s_t = ratio^(min(t, T) / T).

    Args:
      num_arms: n.
      ratio: the last scale over the first; below 1 the scale decays.
      num_rounds: T, from which on the scale stays.
      gap, scale: as in `uniform`.
    """
    check_positive(ratio=ratio)
    check_integer("num_rounds", num_rounds, 1, MOST_ROUNDS)
    log_ratio = float(np.log(ratio))
    base = enveloped(
        uniform(num_arms, gap), _growth, max(ratio, 1.0), log_ratio=log_ratio, last=num_rounds
    )
    return scaled(replace(base, name="growing"), scale)


def late_spike(
    num_arms: int = 10,
    exponent: float = 4.0,
    num_rounds: int = 10_000,
    gap: float = 0.2,
    scale: float = 1.0,
) -> LossSequence:
    """Losses with a late spike: those of `uniform`, in one round 10^exponent times as large.

    Args:
      num_arms: n.
      exponent: from -37 to 37.
      num_rounds: T; the spike is in round ceil(0.9 T).
      gap, scale: as in `uniform`.
    """
    check_number("exponent", exponent)
    if abs(exponent) > 37:
        raise ValueError(f"exponent is {exponent!r}; losses are float32: give -37 to 37")
    check_integer("num_rounds", num_rounds, 1, MOST_ROUNDS)
    height = float(10.0**exponent)
    base = enveloped(
        uniform(num_arms, gap),
        _spike,
        max(height, 1.0),
        when=np.float32(-(-9 * num_rounds // 10)),
        height=height,
    )
    return scaled(replace(base, name="late_spike"), scale)


def scale_regimes(
    num_arms: int = 10,
    factors: tuple[float, ...] = (1.0, 100.0, 0.01),
    period: int = 200,
    gap: float = 0.2,
    scale: float = 1.0,
) -> LossSequence:
    """Losses of changing scale: s_t times those of `uniform`, s_t running through ``factors``.

    Args:
      num_arms: n.
      factors: s_t, each for ``period`` rounds, again and again.
      period: in rounds.
      gap, scale: as in `uniform`.
    """
    if not isinstance(factors, Sequence | np.ndarray) or not len(factors):
        raise ValueError(f"factors is {factors!r}; give one number or more, as (1.0, 100.0)")
    for factor in factors:
        check_positive(factor=factor)
    check_integer("period", period, 1, 2**24)
    base = enveloped(
        uniform(num_arms, gap),
        _regime,
        max(factors),
        factors=np.array(factors, np.float32),
        period=np.float32(period),
    )
    return scaled(replace(base, name="scale_regimes"), scale)


def alternating(num_arms: int = 10, gap: float = 0.2, scale: float = 1.0) -> LossSequence:
    """Losses of alternating sign: l_t(i) = scale * ((-1)^t V_t(i) - gap [i = 0]), V on [0, 1].

    V_t(i) is uniform, independent from arm to arm. But for the gap all losses of a round have the
    same sign.

    Args:
      num_arms: n.
      gap: by how much arm 0 is the best in each round, in units of ``scale``.
      scale: the unit of the losses.
    """
    advantage = best_arm_gap(num_arms, gap)
    return scaled(
        from_draws(
            _alternating,
            num_arms,
            1 + abs(gap),
            "alternating",
            _alternating_mean,
            advantage=advantage,
        ),
        scale,
    )


def _growth(t: Array, *, log_ratio, last) -> Array:
    return jnp.exp(log_ratio * jnp.minimum(t / last, 1))


def _spike(t: Array, *, when, height) -> Array:
    return jnp.where(t == when, height, 1)


def _regime(t: Array, *, factors, period) -> Array:
    regime = jnp.floor((t - 1) / period).astype(jnp.int32)
    return jnp.asarray(factors)[regime % len(factors)]


def _sign(round_: Array) -> Array:
    return jnp.where(round_ % 2 == 0, 1, -1).astype(jnp.float32)


def _alternating(draw: Draw, round_: Array, *, advantage: Array) -> Array:
    return _sign(round_) * unit(draw(len(advantage))) - advantage


def _alternating_mean(round_: Array, *, advantage: Array) -> Array:
    return _sign(round_) / 2 - advantage
