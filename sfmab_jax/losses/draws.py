"""Random numbers of the built-in families, straight from the words of the generator.

A family is handed ``draw``: ``draw(count)`` gives the words of its round, uint32 [count], and is
called once. Word j is half of block j mod ceil(count / 2) of Threefry at the counter (round,
block): two words from each block, and no key of the round's own. Laws that need fewer bits than a
word share words.
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from sfmab_jax.numerics.hints import keep
from sfmab_jax.numerics.inverse_erf import inverse_erf
from sfmab_jax.numerics.threefry import threefry_2x32

__all__ = [
    "Draw",
    "below",
    "bernoulli",
    "bernoulli_words",
    "cosine",
    "first_words",
    "normal",
    "positive",
    "round_words",
    "symmetric",
    "unit",
]

Draw = Callable[[int], Array]  # count -> uint32 [count]


def round_words(key: Array, round_: Array, count: int) -> Array:
    """Return random words of a sequence's round, uint32 [count].

    `jax.random` derives other keys from the same one at counters (0, number), which no round from 1
    on shares; nor does `first_words`, in families that derive none.

    Args:
      key: of the sequence, a typed key.
      round_: t, int32 [].
      count: how many.
    """
    first, second = jax.random.key_data(key)
    number = lax.iota(jnp.uint32, -(-count // 2))
    counter = (jnp.full_like(number, round_), number)
    keys = (jnp.full_like(number, first), jnp.full_like(number, second))
    words = keep(*threefry_2x32(keys, counter))
    # A choice between two rows, not a concatenation: that would not be vectorised.
    is_first = lax.broadcasted_iota(jnp.int32, (2, len(number)), 0) == 0
    return jnp.where(is_first, words[0][None], words[1][None]).reshape(-1)[:count]


def first_words(key: Array, count: int) -> Array:
    """Return random words of a sequence before its rounds, uint32 [count]."""
    return round_words(key, jnp.int32(0), count)


def unit(words: Array) -> Array:
    """Return uniform numbers in [0, 1) in steps of 2^-24, float32."""
    return (words >> 8).astype(jnp.int32).astype(jnp.float32) * np.float32(2**-24)


def symmetric(words: Array) -> Array:
    """Return uniform numbers in (-1, 1), the odd multiples of 2^-24, float32."""
    whole = (words >> 8).astype(jnp.int32) - 2**23
    return (whole.astype(jnp.float32) + np.float32(0.5)) * np.float32(2**-23)


def normal(words: Array) -> Array:
    """Return standard normal numbers, float32: sqrt(2) erf^-1(U), U uniform in (-1, 1)."""
    return np.float32(np.sqrt(2)) * inverse_erf(symmetric(words))


def positive(words: Array) -> Array:
    """Return uniform numbers in (0, 1] in steps of 2^-32, so that tails reach that far, float32."""
    return (words.astype(jnp.float32) + np.float32(0.5)) * np.float32(2**-32)


def cosine(words: Array) -> Array:
    """Return cos(2 pi U), U uniform in [0, 1), float32.

    cos(2 pi U) = sin x with x = 2 pi (|U - 1/2| - 1/4), by Taylor's series up to x^11, which is off
    by at most 6e-8. XLA on CPU has no vector instructions for its own cosine.
    """
    x = (jnp.abs(unit(words) - np.float32(0.5)) - np.float32(0.25)) * np.float32(2 * np.pi)
    square = x * x
    series = jnp.ones_like(x)
    for denominator in (110, 72, 42, 20, 6):
        series = 1 - square * series * np.float32(1 / denominator)
    return x * series


def below(words: Array, bound: Array | int) -> Array:
    """Return integers from 0 to ``bound`` - 1, int32: floor(word bound / 2^32).

    None is more likely than another by more than bound / 2^32 of its probability. By multiplication
    of halves, as there are no vector instructions for integer division.
    """
    whole = jnp.asarray(bound, jnp.uint32)
    high, low = words >> 16, words & 0xFFFF
    bound_high, bound_low = whole >> 16, whole & 0xFFFF
    middle = high * bound_low + (low * bound_low >> 16)
    carried = low * bound_high + (middle & 0xFFFF)
    return (high * bound_high + (middle >> 16) + (carried >> 16)).astype(jnp.int32)


def bernoulli_words(num_arms: int) -> int:
    """Return how many words `bernoulli` needs: 16 bits for each arm, and one for all."""
    return (num_arms + 1) // 2 + 1


def bernoulli(words: Array, means: Array) -> Array:
    """Return whether H_i + V < 2^16 means_i, bool [n]: true with these probabilities.

    H_i are 16 bits of arm i's own, V is uniform in [0, 1) and the same for all arms: it matters
    only where H_i is the integer part of the threshold, once in 2^16. So the means are exact to
    2^-40, and two arms are correlated by less than 2^-32.

    Args:
      words: of the round, uint32 [bernoulli_words(n)].
      means: [n].
    """
    num_arms = len(means)
    shifts = lax.broadcasted_iota(jnp.uint32, (len(words) - 1, 2), 1) * 16
    halves = (words[:-1, None] >> shifts) & 0xFFFF
    own = halves.reshape(-1)[:num_arms].astype(jnp.int32).astype(jnp.float32)
    # Exact where the sign may depend on it: own and the threshold then differ by less than 1.
    return (own - means * np.float32(2**16)) + unit(words[-1]) < 0
