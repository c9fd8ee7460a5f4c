"""The obvious JAX program with losses of every game's own, drawn in the body of the scan."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

__all__ = ["vmap_own_losses"]


def vmap_own_losses(
    num_arms: int, num_rounds: int, gap: float, num_games: int
) -> Callable[[int], np.ndarray]:
    """Algorithm 1, adaptive: a function of the seed, giving the total losses [games].

    `vmap_scan_while_loop` of `sfmab bench` but for the losses: uniform, from a key of the game's
    and the round; their sums by arm give the best arm's total.
    """
    means = jnp.zeros(num_arms, jnp.float32).at[0].set(-gap)

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

    def play(key: Array) -> tuple[Array, Array]:
        key, loss_key = jax.random.split(key)

        def round_(carry, t):
            key, p, cumulative, rate, exploration, gaps, masses, total, sums = carry
            now = jax.random.fold_in(loss_key, t)
            loss = means + jax.random.uniform(now, (num_arms,), jnp.float32, -1, 1)
            key, draw = jax.random.split(key)
            mixed = (1 - exploration) * p + exploration / num_arms
            arm = jax.random.choice(draw, num_arms, p=mixed)
            estimate = jnp.zeros(num_arms, jnp.float32).at[arm].set(loss[arm] / mixed[arm])
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
            total, sums = total + loss[arm], sums + loss
            return (key, p, cumulative, rate, exploration, gaps, masses, total, sums), None

        zeros, zero = jnp.zeros(num_arms, jnp.float32), jnp.float32(0)
        start = (key, zeros + 1 / num_arms, zeros, jnp.float32(num_arms), jnp.float32(0.5))
        carry = (*start, zero, zero, zero, zeros)
        *_, total, sums = lax.scan(round_, carry, jnp.arange(num_rounds))[0]
        return total, jnp.min(sums)

    run = jax.jit(lambda key: jax.vmap(play)(jax.random.split(key, num_games)))
    return lambda seed: np.asarray(run(jax.random.key(seed))[0])
