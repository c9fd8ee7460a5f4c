"""Potentials, built in and made from psi and its inverse alone, each with its reference."""

import jax.numpy as jnp
import numpy as np
import oracles
import pytest
from mpmath import mp, mpf
from tiers import some_in_default

from sfmab_jax.potentials import (
    entropy_with_barrier,
    log_barrier,
    negative_entropy,
    potential,
    tsallis,
)

BUILT_IN = {
    "log_barrier": (log_barrier(), oracles.LogBarrier()),
    "negative_entropy": (negative_entropy(), oracles.Entropy()),
    "tsallis(0.5)": (tsallis(0.5), oracles.Tsallis(0.5)),
    "tsallis(0.8)": (tsallis(0.8), oracles.Tsallis(0.8)),
}
MADE = {
    "made log_barrier": (potential(lambda u: -1 / u, lambda x: -1 / x), oracles.LogBarrier()),
    "made negative_entropy": (potential(jnp.exp, jnp.log), oracles.Entropy()),
    "made tsallis(0.5)": (
        potential(lambda u: 1 / (4 * u * u), lambda x: -0.5 / jnp.sqrt(x)),
        oracles.Tsallis(0.5),
    ),
    # Built in, but with the stability term of the made ones.
    "entropy_with_barrier": (entropy_with_barrier(0.5), oracles.EntropyWithBarrier(0.5)),
}
POTENTIALS = BUILT_IN | MADE
FLOATS = [np.float32, np.float64]
# Probabilities of interest.
POINTS = 10.0 ** np.linspace(-9, 0, 28)

every_potential = pytest.mark.parametrize("name", POTENTIALS)
every_built_in = pytest.mark.parametrize("name", BUILT_IN)
every_made = pytest.mark.parametrize("name", MADE)
every_float = pytest.mark.parametrize("dtype", FLOATS)
float32_in_default = pytest.mark.parametrize("dtype", some_in_default(FLOATS, [np.float32]))


def duals(reference, points=POINTS) -> np.ndarray:
    """u with psi(u) = x, in float64."""
    return np.array([float(reference.inverse(mpf(float(x)))) for x in points])


def assert_close(got, wanted, relative, absolute=0.0):
    """Elementwise, |got - wanted| <= relative |wanted| + absolute, in high precision."""
    got = np.ravel(got)
    absolute = np.broadcast_to(absolute, got.shape)
    assert len(got) == len(wanted)
    for i, (g, w, extra) in enumerate(zip(got.tolist(), wanted, absolute.tolist())):
        assert abs(mpf(g) - w) <= relative * abs(w) + extra, (i, g, mp.nstr(w, 17))


def rounding(dtype, number: float) -> float:
    return number * float(np.finfo(dtype).eps)
