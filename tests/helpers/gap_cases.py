"""Plays, losses and rates for which mixability gaps are tried, and the gaps of many at once."""

import math

import jax
import numpy as np
import pytest
from potential_cases import BUILT_IN

from sfmab_jax.numerics.stability import mixability_gap

POTENTIALS = dict(BUILT_IN)
# The relative errors promised.
BOUNDS = {np.float32: 1e-5, np.float64: 1e-12}

every_potential = pytest.mark.parametrize("name", POTENTIALS)

mapped_gaps = jax.jit(jax.vmap(mixability_gap, in_axes=(None, 0, 0, 0)))
one_gap = jax.jit(mixability_gap)


def gaps(made, *columns) -> np.ndarray:
    """The gaps of many cases, always 64 side by side, to compile once for a number of arms."""
    num_cases = len(columns[0])
    results = []
    for start in range(0, num_cases, 64):
        rows = np.minimum(np.arange(start, start + 64), num_cases - 1)
        results.append(mapped_gaps(made, *(column[rows] for column in columns)))
    return np.concatenate(results)[:num_cases]


def normalised(p, dtype) -> np.ndarray:
    return (np.asarray(p) / np.sum(p)).astype(dtype)


def plays_of(num_arms: int, dtype) -> list[np.ndarray]:
    """Uniform, Dirichlet, one arm above many of 1e-9, and one of 1e-9 below many."""
    rng = np.random.default_rng(num_arms)
    if num_arms == 1:
        return [np.ones(1, dtype)]
    dominated, rare = np.full(num_arms, 1e-9), np.full(num_arms, 1 / num_arms)
    dominated[num_arms // 2] = 1
    rare[0] = 1e-9
    dirichlet = np.maximum(rng.dirichlet(np.ones(num_arms)), 1e-9)
    return [normalised(p, dtype) for p in (np.ones(num_arms), dominated, rare, dirichlet)]


def losses_of(play: np.ndarray) -> list[np.ndarray]:
    """Dense losses; and one loss, of either sign, on the most and on the least likely arm.

    The dense ones have at most ten values, as the reference counts equal arms.
    """
    num_arms = len(play)
    one_hot = np.eye(num_arms, dtype=play.dtype)
    most, least = int(np.argmax(play)), int(np.argmin(play))
    levels = np.linspace(-1, 1, min(num_arms, 10))
    dense = np.random.default_rng(num_arms).permutation(np.resize(levels, num_arms))
    single = [one_hot[most], -one_hot[most], one_hot[least], -one_hot[least]]
    return [dense.astype(play.dtype), *single]


def split(magnitude: float, turn: int) -> tuple[float, float]:
    """eta and a loss whose product is the magnitude, in three ways."""
    root = math.sqrt(magnitude)
    return [(magnitude, 1.0), (1.0, magnitude), (root, root)][turn % 3]


def random_cases(num_cases: int, num_arms: int, dtype) -> tuple:
    """Everyday inputs: losses spread over their own size, eta l from 1e-6 to 1e6."""
    rng = np.random.default_rng(7)
    spread = rng.permuted(np.tile(np.linspace(-1, 1, num_arms), (num_cases, 1)), axis=1)
    losses = (spread * 10.0 ** rng.uniform(-3, 3, (num_cases, 1))).astype(dtype)
    rates = (10.0 ** rng.uniform(-3, 3, num_cases)).astype(dtype)
    return rng.dirichlet(np.ones(num_arms), num_cases).astype(dtype), losses, rates
