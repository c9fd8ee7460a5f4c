"""Losses whose scale changes over time: what a scale-free strategy has to bear."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from sfmab_jax.checks import check_integer, check_number
from sfmab_jax.losses.base import MOST_ROUNDS, LossSequence, best_arm, from_function
from sfmab_jax.losses.combinators import enveloped, scaled
from sfmab_jax.losses.independent import uniform

__all__ = ["alternating", "growing", "late_spike", "scale_regimes"]


def growing(
    num_arms: int = 10,
    ratio: float = 1e6,
    num_rounds: int = 10_000,
    gap: float = 0.2,
    scale: float = 1.0,
) -> LossSequence:
    """s_t times `uniform`, s_t = ratio^(min(t, T) / T): geometric growth, or decay for ratio < 1.

    T = ``num_rounds``; from there on the scale stays.
    """
    check_number("ratio", ratio, positive=True)
    check_integer("num_rounds", num_rounds, 1, MOST_ROUNDS)
    log_ratio = float(np.log(ratio))
    base = enveloped(
        uniform(num_arms, gap), _growth, max(ratio, 1.0), log_ratio=log_ratio, last=num_rounds
    )
    return scaled(_named(base, "growing"), scale)


def late_spike(
    num_arms: int = 10,
    exponent: float = 4.0,
    num_rounds: int = 10_000,
    gap: float = 0.2,
    scale: float = 1.0,
) -> LossSequence:
    """`uniform`, but the losses of one late round are 10^exponent times as large.

    The round is ceil(0.9 T), T = ``num_rounds``.
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
    return scaled(_named(base, "late_spike"), scale)


def scale_regimes(
    num_arms: int = 10,
    factors: tuple[float, ...] = (1.0, 100.0, 0.01),
    period: int = 200,
    gap: float = 0.2,
    scale: float = 1.0,
) -> LossSequence:
    """s_t times `uniform`, s_t running through ``factors``, each for ``period`` rounds."""
    if np.ndim(factors) != 1 or not len(factors):
        raise ValueError("factors is empty; give at least one")
    for factor in factors:
        check_number("factor", factor, positive=True)
    check_integer("period", period, 1, 2**24)
    base = enveloped(
        uniform(num_arms, gap),
        _regime,
        max(factors),
        factors=np.array(factors, np.float32),
        period=np.float32(period),
    )
    return scaled(_named(base, "scale_regimes"), scale)


def alternating(num_arms: int = 10, gap: float = 0.2, scale: float = 1.0) -> LossSequence:
    """l_t(i) = scale * ((-1)^t V_t(i) - gap [i = 0]), V_t(i) uniform on [0, 1], all independent.

    All losses of a round have the same sign, but for the gap. Arm 0 is the best.
    """
    best = best_arm(num_arms)
    check_number("gap", gap)
    advantage = (gap * best).astype(best.dtype)
    return scaled(
        from_function(
            _alternating,
            num_arms,
            1 + abs(gap),
            "alternating",
            _alternating_mean,
            advantage=advantage,
        ),
        scale,
    )


def _named(sequence: LossSequence, name: str) -> LossSequence:
    return replace(sequence, name=name)


def _growth(t: Array, *, log_ratio, last) -> Array:
    return jnp.exp(log_ratio * jnp.minimum(t / last, 1))


def _spike(t: Array, *, when, height) -> Array:
    return jnp.where(t == when, height, 1)


def _regime(t: Array, *, factors, period) -> Array:
    regime = jnp.floor((t - 1) / period).astype(jnp.int32)
    return jnp.asarray(factors)[regime % len(factors)]


def _sign(round_: Array) -> Array:
    return jnp.where(round_ % 2 == 0, 1, -1).astype(jnp.float32)


def _alternating(key: Array, round_: Array, *, advantage: Array) -> Array:
    draws = jax.random.uniform(key, advantage.shape, advantage.dtype)
    return _sign(round_) * draws - advantage


def _alternating_mean(round_: Array, *, advantage: Array) -> Array:
    return _sign(round_) / 2 - advantage
