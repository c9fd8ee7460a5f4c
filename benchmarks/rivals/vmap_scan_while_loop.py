"""Other ways to write the same simulation, as a good engineer would at first."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

__all__ = ["vmap_scan_while_loop"]


def vmap_scan_while_loop(losses: np.ndarray, num_seeds: int) -> Callable[[int], np.ndarray]:
    """Algorithm 1, adaptive exploration: vmap over seeds, scan over rounds, Newton in while loops.

    Returns a function of the seed that plays all games and gives their realised losses [seeds].
    """
    num_arms = losses.shape[1]
    table = jnp.asarray(losses, jnp.float32)

    def normalise(gaps: Array) -> Array:
        """1 / (x + mu) with mu the root of sum(1 / (x + mu)) = 1, by Newton's method."""

        def unfinished(carry):
            mu, step = carry
            return jnp.abs(step) > 1e-6 * mu

        def newton(carry):
            mu, _ = carry
            p = 1 / (gaps + mu)
            step = (jnp.sum(p) - 1) / jnp.sum(p * p)
            return mu + step, step

        start = jnp.maximum(1.0, num_arms - jnp.mean(gaps))
        mu, _ = lax.while_loop(unfinished, newton, (start, jnp.float32(jnp.inf)))
        return 1 / (gaps + mu)

    def play(key: Array) -> Array:
        def round_(carry, loss):
            key, p, cumulative, rate, exploration, gaps, masses, total = carry
            key, draw = jax.random.split(key)
            mixed = (1 - exploration) * p + exploration / num_arms
            arm = jax.random.choice(draw, num_arms, p=mixed)
            estimate = jnp.zeros(num_arms).at[arm].set(loss[arm] / mixed[arm])
            moved = 1 / p + rate * estimate
            q = normalise(moved - jnp.min(moved))
            ratio = q / p
            divergence = jnp.sum(ratio - 1 - jnp.log(ratio))
            gaps = gaps + jnp.maximum(jnp.dot(estimate, p - q) - divergence / rate, 0)
            masses = masses + exploration * jnp.abs(loss[arm]) / mixed[arm]
            cumulative = cumulative + estimate
            rate = num_arms / (1 + gaps)
            exploration = num_arms / (2 * num_arms + masses)
            p = normalise(rate * (cumulative - jnp.min(cumulative)))
            total = total + loss[arm]
            return (key, p, cumulative, rate, exploration, gaps, masses, total), None

        zero = jnp.float32(0)
        uniform = jnp.full(num_arms, 1 / num_arms)
        start = (key, uniform, jnp.zeros(num_arms), jnp.float32(num_arms), jnp.float32(0.5))
        return lax.scan(round_, (*start, zero, zero, zero), table)[0][-1]

    run = jax.jit(lambda key: jax.vmap(play)(jax.random.split(key, num_seeds)))
    return lambda seed: np.asarray(run(jax.random.key(seed)))
