"""Counter-based random words: one Threefry block for every (game, round)."""

from collections.abc import Iterator
from contextlib import contextmanager

import jax
import jax.numpy as jnp
from jax import Array

__all__ = [
    "GENERATOR",
    "game_key",
    "game_keys",
    "key_of_words",
    "pinned_generator",
    "root_key",
    "threefry_2x32",
]

GENERATOR = "threefry2x32"

_ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
_PARITY = 0x1BD11BDA


def threefry_2x32(key: tuple[Array, Array], counter: tuple[Array, Array]) -> tuple[Array, Array]:
    """Threefry-2x32 with 20 rounds: two random words from a two-word key and counter.

    The same function as JAX's default generator (Salmon et al., "Parallel random numbers: as
    easy as 1, 2, 3", 2011), written out so that it stays one fused vector loop over the games.

    Args:
      key: two uint32 arrays of one shape.
      counter: two uint32 arrays of that shape; here (round, 0).

    Returns:
      Two uint32 arrays of that shape.
    """
    parity = key[0] ^ key[1] ^ jnp.uint32(_PARITY)
    schedule = (key[0], key[1], parity)
    x0 = counter[0] + schedule[0]
    x1 = counter[1] + schedule[1]
    for block in range(5):
        for rotation in _ROTATIONS[block % 2]:
            x0 = x0 + x1
            x1 = (x1 << rotation) | (x1 >> (32 - rotation))
            x1 = x1 ^ x0
        x0 = x0 + schedule[(block + 1) % 3]
        x1 = x1 + schedule[(block + 2) % 3] + jnp.uint32(block + 1)
    return x0, x1


def root_key(seed: int) -> Array:
    """Return the typed key that a run begins with, whatever JAX's default generator is."""
    return jax.random.key(seed, impl=GENERATOR)


def key_of_words(words: Array) -> Array:
    """Return the typed key of two words, uint32 [2]."""
    return jax.random.wrap_key_data(words, impl=GENERATOR)


@contextmanager
def pinned_generator() -> Iterator[None]:
    """Draw random numbers, and make keys, as JAX does by default, whatever its settings are.

    Use it with ``with`` or as a decorator. It holds for the thread it is entered in.
    """
    with jax.threefry_partitionable(True), jax.default_prng_impl(GENERATOR):
        yield


def game_key(root: Array, sequence: Array, seed: Array) -> Array:
    """Return the key of one game, uint32 [2].

    It depends on the loss sequence and the seed alone, so a game is the same alone or among a
    million.
    """
    return jax.random.key_data(jax.random.fold_in(jax.random.fold_in(root, sequence), seed))


def game_keys(root: Array, sequences: Array, seeds: Array) -> Array:
    """Return the keys of many games, uint32 [2, games]; see `game_key`.

    Args:
      root: a typed key.
      sequences: number of the loss sequence of each game, [games], or [] for all.
      seeds: number of the seed of each game, [games].
    """
    by_game = 0 if jnp.ndim(sequences) else None
    return jax.vmap(game_key, in_axes=(None, by_game, 0), out_axes=-1)(root, sequences, seeds)
