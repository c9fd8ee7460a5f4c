"""Counter-based random words: one Threefry block for every (seed, round)."""

import jax
import jax.numpy as jnp
from jax import Array

__all__ = ["game_key", "threefry_2x32"]

_ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
_PARITY = 0x1BD11BDA


def threefry_2x32(key: tuple[Array, Array], counter: tuple[Array, Array]) -> tuple[Array, Array]:
    """Threefry-2x32 with 20 rounds: two random words from a two-word key and counter.

    The same function as JAX's default generator (Salmon et al., "Parallel random numbers: as
    easy as 1, 2, 3", 2011), written out so that it stays one fused vector loop over the seeds.

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
    for group in range(5):
        for rotation in _ROTATIONS[group % 2]:
            x0 = x0 + x1
            x1 = (x1 << rotation) | (x1 >> (32 - rotation))
            x1 = x1 ^ x0
        x0 = x0 + schedule[(group + 1) % 3]
        x1 = x1 + schedule[(group + 2) % 3] + jnp.uint32(group + 1)
    return x0, x1


def game_key(root: Array, sequence: Array, seed: Array) -> Array:
    """The two key words ``[2]`` of one game: loss sequence number and seed number.

    They depend on nothing else, so a game is the same alone or among a million. ``root`` is a
    typed key, ``jax.random.key(seed)``.
    """
    return jax.random.key_data(jax.random.fold_in(jax.random.fold_in(root, sequence), seed))
