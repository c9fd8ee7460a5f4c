"""What a potential is."""

from collections.abc import Callable
from textwrap import shorten
from typing import Any, NamedTuple

import jax.numpy as jnp
from jax import Array

from sfmab_jax.floating import arm_sum
from sfmab_jax.mixability import Stability

__all__ = ["Potential", "check_potential", "regularizer"]


class Potential(NamedTuple):
    """A potential as a value. Every function but the last two works elementwise.

    The functions are `Partial`s, so that a potential is a pytree whose leaves are its parameters.
    """

    psi: Callable[[Array], Array]
    inverse: Callable[[Array], Array]  # psi^{-1} = f'
    derivative: Callable[[Array], Array]  # psi'
    primitive: Callable[[Array], Array]  # f
    conjugate: Callable[[Array], Array]  # f*(u) = u psi(u) - f(psi(u))
    divergence: Callable[[Array, Array], Array]  # Breg_f(y || x)
    # (gaps x [n], a guess []) -> psi(nu - x) [n] and nu [] such that it sums to 1
    solve: Callable[[Array, Array], tuple[Array, Array]]
    stability: Callable[..., Array]  # (p [n], y [n], error of y = 0) -> Psi_p(y) []
    # (p [n], arm, y [], error of y = 0) -> Psi_p and more, for y of that arm and 0 of the others
    stability_on_arm: Callable[..., Stability] | None = None


def check_potential(value: Any) -> None:
    """Refuses what is no potential, such as its name."""
    if not isinstance(value, Potential):
        raise ValueError(
            f"potential is {shorten(repr(value), 80)}; give one of sf.potentials, as "
            "sf.potentials.log_barrier()"
        )


def regularizer(potential: Potential, point: Array) -> Array:
    """F(q) = sum_i [f(q(i)) - f(1/n)] >= 0 on the simplex, [n] -> []."""
    centre = jnp.ones_like(point) / len(point)
    return arm_sum(potential.primitive(point) - potential.primitive(centre))
