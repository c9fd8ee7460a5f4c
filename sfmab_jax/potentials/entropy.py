"""The negative entropy, x log x - x: the regulariser of Hedge and Exp3."""

import jax.numpy as jnp
from jax import Array
from jax.tree_util import Partial

from sfmab_jax.numerics.arms import arm_sum
from sfmab_jax.numerics.potential import Potential
from sfmab_jax.numerics.remainders import exp_remainder, log_ratio
from sfmab_jax.numerics.stability import entropy_stability

__all__ = ["negative_entropy"]


def negative_entropy() -> Potential:
    """The negative entropy, the regulariser of Hedge and Exp3: psi(u) = exp(u), f(x) = x log x - x.

    >>> print(negative_entropy().inverse(jnp.float32(1.0)))
    0.0
    """
    return Potential(
        psi=Partial(_exp),
        inverse=Partial(_log),
        derivative=Partial(_exp),
        primitive=Partial(_primitive),
        conjugate=Partial(_exp),
        divergence=Partial(_divergence),
        solve=Partial(_solve),
        stability=Partial(entropy_stability),
    )


# Functions of this module, as those of JAX cannot be pickled.


def _exp(u: Array) -> Array:
    return jnp.exp(u)


def _log(x: Array) -> Array:
    return jnp.log(x)


def _primitive(x: Array) -> Array:
    return x * jnp.log(x) - x


def _divergence(y: Array, x: Array) -> Array:
    return y * exp_remainder(log_ratio(x, y))


def _solve(gaps: Array, start: Array) -> tuple[Array, Array]:
    nu = -jnp.log(arm_sum(jnp.exp(-gaps)))
    return jnp.exp(nu - gaps), nu
