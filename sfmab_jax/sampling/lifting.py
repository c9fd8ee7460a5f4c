"""Exploration by moving mass from the leading arm to rare ones: UMAB-G."""

from typing import NamedTuple

import jax.numpy as jnp
from jax import Array
from jax.tree_util import Partial

from sfmab_jax.base import Round, Sampling, keep_state
from sfmab_jax.checks import check_horizon
from sfmab_jax.numerics.arms import is_arm, leading_arm, pick
from sfmab_jax.numerics.double_word import Sum, add, start_sum

__all__ = ["lifted"]

# In place of n T where no T is told; its square root and twice itself stay in float32's range.
_MOST = 2.0**120


class LiftedState(NamedTuple):
    level: Array  # 1 / rho_{t+1} []
    mass: Sum  # E_t per unit of loss, two words []
    unit: Array  # one unit of loss []


def lifted(num_rounds: Array | float | None = None, *, adaptive: bool = True) -> Sampling:
    """Lift rare arms at the leader's expense: UMAB-G, Chen and Zhang (2023).

    p'_t(i) = p_t(i) + 1/rho_t for every arm with p_t(i) < 1/rho_t; the likeliest arm, the first of
    several, gives all of that; the others keep p'_t(i) = p_t(i). rho_t = 2 n^2 + sqrt(E_{t-1}),

        E_t = E_{t-1} + 2 |l~_t(i_t) m_t(i_t)| in units of loss, m_t = rho_t (p'_t - p_t),

    E_0 = 0, at most n T. As rho_t is at least 2 n^2, the leader keeps more than half of p_t.

    Args:
      num_rounds: T; None for no limit to E (the adaptive form).
      adaptive: whether E grows as stated (with T, the form called both). If not, E = n T throughout
        (the form with a horizon), and T is needed.

    >>> scheme = lifted(100, adaptive=False)
    >>> state = scheme.init(3, jnp.dtype("float32"), jnp.float32(1.0))
    >>> print(f"{1 / state.level:.4f}")
    35.3205
    >>> play = jnp.array([0.01, 0.9, 0.09], jnp.float32)
    >>> [f"{p:.4f}" for p in scheme.probabilities(state, play)]
    ['0.0383', '0.8717', '0.0900']
    """
    if num_rounds is not None:
        check_horizon(num_rounds)
    if not isinstance(adaptive, bool):
        raise ValueError(f"adaptive is {adaptive!r}; choose True or False")
    if not adaptive and num_rounds is None:
        raise ValueError("num_rounds is None; give the number of rounds, or leave adaptive=True")
    return Sampling(
        init=Partial(_adaptive_init if adaptive else _horizon_init, num_rounds),
        probabilities=Partial(_lift),
        update=Partial(_update, num_rounds) if adaptive else Partial(keep_state),
    )


def _most(num_rounds, num_arms: int, dtype) -> Array:
    return jnp.asarray(_MOST if num_rounds is None else num_rounds * num_arms, dtype)


def _state(mass: Sum, num_arms: int, unit: Array) -> LiftedState:
    return LiftedState(1 / (2.0 * num_arms**2 + jnp.sqrt(mass.value)), mass, unit)


def _adaptive_init(num_rounds, num_arms, dtype, loss_unit) -> LiftedState:
    return _state(start_sum(jnp.zeros((), dtype)), num_arms, loss_unit)


def _horizon_init(num_rounds, num_arms, dtype, loss_unit) -> LiftedState:
    return _state(start_sum(_most(num_rounds, num_arms, dtype)), num_arms, loss_unit)


def _moves(state: LiftedState, play: Array) -> Array:
    """Return m = rho (p' - p) [n]: 1 for rare arms, minus their number for the leader, else 0."""
    is_rare = (play < state.level).astype(play.dtype)
    return is_rare - jnp.where(is_arm(leading_arm(-play), play), jnp.sum(is_rare), 0)


def _lift(state: LiftedState, play: Array) -> Array:
    return play + state.level * _moves(state, play)


def _update(num_rounds, state: LiftedState, seen: Round) -> LiftedState:
    num_arms = len(seen.play)
    most = _most(num_rounds, num_arms, seen.play.dtype)
    weighted = pick(seen.estimate, seen.arm) if seen.weighted is None else seen.weighted
    moved = pick(_moves(state, seen.play), seen.arm)
    mass = add(state.mass, jnp.minimum(2 * jnp.abs(weighted * moved) / state.unit, most))
    limit = start_sum(most)
    is_over = mass.value > most
    return _state(
        Sum(*(jnp.where(is_over, x, y) for x, y in zip(limit, mass))), num_arms, state.unit
    )
