"""The local-norm technique: closed forms, a fine grid, and mpmath."""

from functools import partial

import jax
import jax.numpy as jnp
import mpmath as mp
import numpy as np
import oracles
import pytest

import sfmab_jax as sf
from sfmab_jax.theory import local_norms

# w(x) for phi up to 1, worked out by hand from (1 - x) / (psi^{-1}(1) - psi^{-1}(x)).
CLOSED = {
    "log barrier": (sf.potentials.log_barrier(), oracles.LogBarrier(), lambda x: x),
    "negative entropy": (
        sf.potentials.negative_entropy(),
        oracles.Entropy(),
        lambda x: (x - 1) / mp.log(x) if x < 1 else x,
    ),
    "Tsallis 1/2": (
        sf.potentials.tsallis(0.5),
        oracles.Tsallis(0.5),
        lambda x: 2 * (x + mp.sqrt(x)),
    ),
}


@partial(jax.jit, static_argnames="top")
def bounds_at(potential, x, top=None):
    """w, the reach and m of the local norm up to ``top``, or of phi = 0."""
    bound = bound_of(potential, top)
    return bound.w(x), bound.reach(x), bound.m(potential.inverse(x))


@partial(jax.jit, static_argnames="top")
def slack_at(potential, x, y, top=None):
    """How far Breg_f(y || x) lies above the bound, and the divergence itself."""
    slack = local_norms.slack(potential, bound_of(potential, top), x, y)
    return slack, potential.divergence(y, x)


def bound_of(potential, top):
    phi = jnp.zeros_like if top is None else local_norms.up_to(potential, top)
    return local_norms.local_norm(potential, phi)


EACH = pytest.mark.parametrize("name", list(CLOSED))
EACH_DTYPE = pytest.mark.parametrize("dtype", [jnp.float32, jnp.float64], ids=["f32", "f64"])


@EACH
@EACH_DTYPE
def test_w_has_its_closed_form(name, dtype):
    """Also next to 1, where the chord is short and its slope would cancel."""
    potential, _, wanted = CLOSED[name]
    x = np.array([1e-6, 1e-3, 0.1, 0.5, 0.9, 0.999, 1 - 1e-6, 1.0], dtype)
    w, reach, m = bounds_at(potential, x, top=1.0)
    exact = [float(wanted(mp.mpf(float(v)))) for v in x]
    tolerance = 300 * float(jnp.finfo(dtype).eps)
    np.testing.assert_allclose(w, exact, rtol=tolerance)
    np.testing.assert_allclose(reach, 1.0, rtol=tolerance)
    np.testing.assert_allclose(m, exact, rtol=tolerance)


@EACH
@EACH_DTYPE
def test_inequality_on_the_unit_square(name, dtype):
    potential, _, _ = CLOSED[name]
    grid = np.concatenate([np.geomspace(1e-5, 1, 40), 1 - np.geomspace(1e-3, 0.5, 20)])
    x, y = (v.ravel().astype(dtype) for v in np.meshgrid(grid, grid))
    slack, size = map(np.asarray, slack_at(potential, x, y, top=1.0))
    assert (slack >= -64 * float(jnp.finfo(dtype).eps) * size).all()


@EACH
def test_slack_against_mpmath(name):
    potential, oracle, wanted = CLOSED[name]
    for x, y in ((0.3, 0.7), (0.7, 0.3), (1e-4, 0.9), (0.5, 0.5001)):
        with mp.workdps(40):
            exact = oracles.divergence(oracle, y, x)
            exact -= (mp.mpf(x) - mp.mpf(y)) ** 2 / (2 * wanted(mp.mpf(x)))
        got, _ = slack_at(potential, x, y, top=1.0)
        np.testing.assert_allclose(got, float(exact), rtol=1e-8)


@EACH
def test_it_is_promised_up_to_the_reach_only(name):
    """With top = 1/2 it holds up to 1/2, and fails somewhere far above."""
    potential, _, _ = CLOSED[name]
    x = np.full(200, 0.4)
    inside, outside = np.linspace(1e-4, 0.5, 200), np.geomspace(0.6, 1e4, 200)
    assert (np.asarray(slack_at(potential, x, inside, top=0.5)[0]) >= -1e-14).all()
    assert (np.asarray(slack_at(potential, x, outside, top=0.5)[0]) < 0).any()


@EACH
def test_phi_zero_is_the_second_derivative(name):
    """w = psi'(psi^{-1}(x)) = 1/f''(x), and it serves y <= x."""
    potential, oracle, _ = CLOSED[name]
    x = np.array([0.01, 0.3, 0.9])
    exact = [float(oracle.slope(oracle.inverse(mp.mpf(float(v))))) for v in x]
    np.testing.assert_allclose(bounds_at(potential, x)[0], exact, rtol=1e-12)
    slack, _ = slack_at(potential, x, 0.7 * x)
    assert (np.asarray(slack) > 0).all()


def test_any_phi_any_potential():
    """A potential made from psi alone, and a phi that doubles nothing in particular."""
    made = sf.potentials.potential(lambda u: jnp.exp(2 * u), lambda p: jnp.log(p) / 2)
    bound = local_norms.local_norm(made, lambda u: 0.1 + u**2)
    x = jnp.asarray([0.2, 0.5, 0.8])
    y = bound.reach(x) * jnp.asarray([0.99, 0.5, 0.1])
    assert (np.asarray(local_norms.slack(made, bound, x, y)) >= 0).all()
