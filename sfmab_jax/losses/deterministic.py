"""Deterministic losses."""

import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from sfmab_jax.checks import check_integer, check_number, check_positive
from sfmab_jax.losses.combinators import scaled
from sfmab_jax.losses.sequence import LossSequence, best_arm, constant_mean, from_function

__all__ = ["cyclic", "one_arm", "parity", "zero"]


def cyclic(num_arms: int = 10, scale: float = 1.0) -> LossSequence:
    """Arms that take turns at having no loss: l_t(i) = scale * (1 - [i = t mod n]).

    Args:
      num_arms: n.
      scale: the size of a loss.
    """
    return scaled(
        from_function(
            _cyclic, num_arms, name="cyclic", mean=_cyclic_mean, places=_places(num_arms)
        ),
        scale,
    )


def parity(num_arms: int = 10, scale: float = 1.0) -> LossSequence:
    """Odd and even arms that change places: l_t(i) = scale * [i + k odd], 2^k <= t < 2^(k+1).

    At geometric times, so that what was learnt is wrong for longer each time.

    Args:
      num_arms: n.
      scale: the size of a loss.
    """
    return scaled(
        from_function(
            _parity, num_arms, name="parity", mean=_parity_mean, places=_places(num_arms)
        ),
        scale,
    )


def zero(num_arms: int = 10, scale: float = 1.0) -> LossSequence:
    """No losses: l_t(i) = 0.

    Args:
      num_arms: n.
      scale: without effect; all families have it.
    """
    return _constant_losses(0 * best_arm(num_arms), 1.0, "zero", scale)


def one_arm(
    num_arms: int = 10, arm: int = 0, loss: float = -1.0, scale: float = 1.0
) -> LossSequence:
    """Losses of one arm: l_t(i) = scale * loss * [i = arm] in every round.

    Args:
      num_arms: n.
      arm: the arm, 0 to n - 1.
      loss: its loss, of either sign, in units of ``scale``.
      scale: the unit of the losses.
    """
    places = _places(num_arms)
    check_integer("arm", arm, 0, num_arms - 1)
    check_number("loss", loss)
    if loss:
        check_positive(loss=abs(loss))
    means = np.where(places == arm, np.float32(loss), np.float32(0))
    return _constant_losses(means, abs(loss) or 1.0, "one_arm", scale)


def _constant_losses(means: np.ndarray, magnitude: float, name: str, scale: float) -> LossSequence:
    return scaled(
        from_function(_constant, len(means), magnitude, name, constant_mean, means=means), scale
    )


def _places(num_arms: int) -> np.ndarray:
    return np.arange(len(best_arm(num_arms)), dtype=np.int32)


def _cyclic_mean(round_: Array, *, places: Array) -> Array:
    return (places != round_ % len(places)).astype(jnp.float32)


def _cyclic(key: Array, round_: Array, *, places: Array) -> Array:
    return _cyclic_mean(round_, places=places)


def _parity_mean(round_: Array, *, places: Array) -> Array:
    exponent = 31 - lax.clz(round_)
    return ((places + exponent) % 2).astype(jnp.float32)


def _parity(key: Array, round_: Array, *, places: Array) -> Array:
    return _parity_mean(round_, places=places)


def _constant(key: Array, round_: Array, *, means: Array) -> Array:
    return constant_mean(round_, means=means)
