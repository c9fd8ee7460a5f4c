"""Potentials with their references, and the normaliser and distribution of many scores at once."""

import jax
import pytest
from potential_cases import BUILT_IN, MADE

from sfmab_jax.numerics.simplex import distribution, normalizer

POTENTIALS = BUILT_IN | {
    "made": MADE["made tsallis(0.5)"],
    "entropy_with_barrier": MADE["entropy_with_barrier"],
}

every_potential = pytest.mark.parametrize("name", POTENTIALS)

lambdas = jax.jit(jax.vmap(normalizer, in_axes=(None, 0)))
distributions = jax.jit(jax.vmap(distribution, in_axes=(None, 0)))
