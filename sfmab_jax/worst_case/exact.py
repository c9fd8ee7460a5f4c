"""Exact expected regret of tiny games and its derivative, by playing every sequence of arms."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from sfmab_jax.base import Bandit
from sfmab_jax.checks import is_known
from sfmab_jax.numerics.arms import pick
from sfmab_jax.results.norms import warn_if_no_regret
from sfmab_jax.worst_case.differentiable import play_round

__all__ = ["exact_gradient", "exact_regret"]

_MOST_PATHS = 2**16


def exact_regret(bandit: Bandit, losses: Array) -> Array:
    """Expected regret E sum_t l_t.p'_t - min_i sum_t l_t(i), differentiable, [].

    The sum over all n^T sequences of arms (i_1 ... i_T) of prod_t p'_t(i_t) sum_t l_t.p'_t.

    Args:
      bandit: the strategy.
      losses: the table [T, n], with n^T at most 65,536.
    """
    num_rounds, num_arms = losses.shape
    if num_arms**num_rounds > _MOST_PATHS:
        raise ValueError(
            f"{num_arms} arms in {num_rounds} rounds make {num_arms**num_rounds:,} sequences of "
            f"arms; at most {_MOST_PATHS:,} are played one by one"
        )
    places = np.unravel_index(np.arange(num_arms**num_rounds), (num_arms,) * num_rounds)
    paths = jnp.asarray(np.stack(places, axis=1), jnp.int32)

    def one_path(arms: Array) -> Array:
        def step(carry, now):
            state, chance, total = carry
            losses, arm = now
            law = bandit.probabilities(state)
            # An arm that cannot be drawn has no estimate: play another, with no weight.
            possible = pick(law, arm) > 0
            arm = jnp.where(possible, arm, jnp.argmax(law).astype(jnp.int32))
            after, cost, here = play_round(bandit, state, losses, arm)
            return (after, chance * jnp.where(possible, here, 0), total + cost), None

        one, zero = jnp.ones((), losses.dtype), jnp.zeros((), losses.dtype)
        start = (bandit.init(num_arms, losses.dtype), one, zero)
        (_, chance, total), _ = lax.scan(step, start, (losses, arms))
        return chance * total

    return jnp.sum(jax.vmap(one_path)(paths)) - jnp.min(jnp.sum(losses, axis=0))


def exact_gradient(bandit: Bandit, losses: Any) -> tuple[Array, Array]:
    """Return the expected regret [] and its derivative by the losses [T, n].

    Args:
      bandit: the strategy.
      losses: the table [T, n], with n^T at most 65,536.

    >>> import sfmab_jax as sf
    >>> value, slope = exact_gradient(sf.strategies.uniform(), jnp.array([[1.0, 0.0]]))
    >>> float(value), slope.tolist()
    (0.5, [[0.5, -0.5]])
    """
    table = jnp.asarray(losses)
    value, slope = jax.value_and_grad(exact_regret, argnums=1)(bandit, table)
    if is_known(value) and np.isfinite(table).all():
        warn_if_no_regret("strategy", np.asarray(value))
    return value, slope
