"""The regulariser of a potential, and the check that an argument is a potential."""

from textwrap import shorten
from typing import Any

import jax.numpy as jnp
from jax import Array

from sfmab_jax.numerics.arms import arm_sum
from sfmab_jax.numerics.potential import Potential

__all__ = ["check_potential", "regularizer"]


def check_potential(value: Any) -> None:
    """Raise ValueError unless ``value`` is a `Potential`, for instance if it is a name."""
    if not isinstance(value, Potential):
        raise ValueError(
            f"potential is {shorten(repr(value), 80)}; give one of sf.potentials, as "
            "sf.potentials.log_barrier()"
        )


def regularizer(potential: Potential, point: Array) -> Array:
    """Return F(q) = sum_i [f(q(i)) - f(1/n)] [], not negative on the simplex.

    Args:
      potential: gives f, whose derivative is psi^{-1}.
      point: q [n].
    """
    centre = jnp.ones_like(point) / len(point)
    return arm_sum(potential.primitive(point) - potential.primitive(centre))
