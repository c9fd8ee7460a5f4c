"""The obvious JAX program with losses of every game's own, drawn in the body of the scan."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from sfmab_jax.cli.bench import play_plainly, start_plainly

__all__ = ["vmap_own_losses"]


def vmap_own_losses(
    num_arms: int, num_rounds: int, gap: float, num_games: int
) -> Callable[[int], np.ndarray]:
    """Algorithm 1, adaptive: a function of the seed, giving the total losses [games].

    `vmap_scan_while_loop` of `sfmab bench` but for the losses: uniform, from a key of the game's
    and the round; their sums by arm give the best arm's total.
    """
    means = jnp.zeros(num_arms, jnp.float32).at[0].set(-gap)

    def play(key: Array) -> tuple[Array, Array]:
        key, loss_key = jax.random.split(key)

        def round_(carry, t):
            game, sums = carry
            now = jax.random.fold_in(loss_key, t)
            loss = means + jax.random.uniform(now, (num_arms,), jnp.float32, -1, 1)
            return (play_plainly(game, loss), sums + loss), None

        start = (start_plainly(key, num_arms), jnp.zeros(num_arms, jnp.float32))
        (*_, total), sums = lax.scan(round_, start, jnp.arange(num_rounds))[0]
        return total, jnp.min(sums)

    run = jax.jit(lambda key: jax.vmap(play)(jax.random.split(key, num_games)))
    return lambda seed: np.asarray(run(jax.random.key(seed))[0])
