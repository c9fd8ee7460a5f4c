"""Losses without chance."""

import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from sfmab_jax.checks import check_integer, check_number
from sfmab_jax.losses.base import LossSequence, best_arm, from_function
from sfmab_jax.losses.combinators import scaled

__all__ = ["cyclic", "one_arm", "parity", "zero"]


def cyclic(num_arms: int = 10, scale: float = 1.0) -> LossSequence:
    """l_t(i) = scale * (1 - [i = t mod n]): the arms take turns at having no loss."""
    return scaled(
        from_function(
            _cyclic, num_arms, name="cyclic", mean=_cyclic_mean, places=_places(num_arms)
        ),
        scale,
    )


def parity(num_arms: int = 10, scale: float = 1.0) -> LossSequence:
    """l_t(i) = scale * [i + k odd], with 2^k <= t < 2^(k+1): odd and even arms change places.

    At geometric times, so that whatever was learnt is wrong for longer each time.
    """
    return scaled(
        from_function(
            _parity, num_arms, name="parity", mean=_parity_mean, places=_places(num_arms)
        ),
        scale,
    )


def zero(num_arms: int = 10, scale: float = 1.0) -> LossSequence:
    """l_t(i) = 0: nothing to learn and nothing to lose."""
    return scaled(
        from_function(
            _given, num_arms, name="zero", mean=_given_mean, vector=0 * best_arm(num_arms)
        ),
        scale,
    )


def one_arm(
    num_arms: int = 10, arm: int = 0, loss: float = -1.0, scale: float = 1.0
) -> LossSequence:
    """l_t(i) = scale * loss * [i = arm] in every round; the other arms have none."""
    places = _places(num_arms)
    check_integer("arm", arm, 0, num_arms - 1)
    check_number("loss", loss)
    vector = np.where(places == arm, np.float32(loss), np.float32(0))
    return scaled(
        from_function(
            _given, num_arms, abs(loss) or 1.0, name="one_arm", mean=_given_mean, vector=vector
        ),
        scale,
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


def _given_mean(round_: Array, *, vector: Array) -> Array:
    return jnp.asarray(vector)


def _given(key: Array, round_: Array, *, vector: Array) -> Array:
    return jnp.asarray(vector)
