"""The potential -sqrt(x) in its fast form against the definition in 60 to 110 digits."""

import jax
import jax.numpy as jnp
import numpy as np
import oracles
import pytest

from sfmab_jax.numerics.simplex import distribution
from sfmab_jax.numerics.stability import mixability_gap
from sfmab_jax.potentials import tsallis
from sfmab_jax.potentials.tsallis import square_root, tsallis_of

pytestmark = pytest.mark.quick

ORACLE = oracles.Tsallis(0.5)
BOUNDS = {np.float32: 1e-5, np.float64: 1e-12}
EACH_FLOAT = pytest.mark.parametrize("dtype", [np.float32, np.float64])

gaps = jax.jit(jax.vmap(mixability_gap, in_axes=(None, 0, 0, 0)))
distribution_of = jax.jit(distribution)


@EACH_FLOAT
def test_mixability_gap(dtype):
    """eta |l| from 1e-12 to 1e12, one arm's loss and all arms', plays near and off the centre."""
    generator = np.random.default_rng(1)
    cases = []
    for exponent in np.linspace(-12, 12, 49):
        play = generator.dirichlet(np.full(4, 0.5 if len(cases) % 2 else 5.0)) + 1e-3
        loss = generator.normal(size=4)
        if len(cases) % 3 == 0:
            loss = loss * (np.arange(4) == 2)
        cases.append((play / play.sum(), loss, 10.0**exponent))
    plays, losses, rates = (np.array(column, dtype) for column in zip(*cases))
    got = np.asarray(gaps(square_root(), plays, losses, rates))
    assert got.dtype == dtype
    for i in range(len(cases)):
        wanted = oracles.mixability_gap(ORACLE, plays[i], losses[i], rates[i])
        room = BOUNDS[dtype] + 4 * np.finfo(dtype).eps * oracles.condition(
            ORACLE, plays[i], losses[i], rates[i]
        )
        assert oracles.relative_error(got[i], wanted) < room, (i, got[i], wanted)


@EACH_FLOAT
def test_distribution(dtype):
    generator = np.random.default_rng(2)
    for n in (1, 2, 7, 100):
        for size in (1e-3, 1.0, 1e3):
            theta = (size * generator.normal(size=n)).astype(dtype)
            got = np.asarray(distribution_of(square_root(), theta))
            wanted = np.array([float(x) for x in oracles.distribution(ORACLE, theta)])
            np.testing.assert_allclose(got, wanted, rtol=60 * np.finfo(dtype).eps)


def test_pieces_are_those_of_the_general_power():
    fast, general = square_root(), tsallis(0.5)
    u = jnp.asarray(-np.geomspace(1e-3, 1e3, 31))
    x, y = jnp.asarray(np.geomspace(1e-6, 1, 31)), jnp.asarray(np.geomspace(1e-2, 3e-2, 31))
    for name in ("psi", "derivative", "conjugate"):
        np.testing.assert_allclose(getattr(fast, name)(u), getattr(general, name)(u), rtol=1e-13)
    for name in ("inverse", "primitive"):
        np.testing.assert_allclose(getattr(fast, name)(x), getattr(general, name)(x), rtol=1e-13)
    np.testing.assert_allclose(fast.divergence(y, x), general.divergence(y, x), rtol=1e-11)


def test_the_power_decides():
    assert jax.tree.structure(tsallis_of(0.5)) == jax.tree.structure(square_root())
    assert jax.tree.structure(tsallis_of(0.3)) == jax.tree.structure(tsallis(0.5))
