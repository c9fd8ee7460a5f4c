"""Derivatives of the normaliser lambda(theta) and of the distribution, in float64."""

import jax
import jax.numpy as jnp
import numpy as np
import oracles
import pytest
from mpmath import mp, mpf
from simplex_cases import POTENTIALS, distributions, every_potential, lambdas

from sfmab_jax.numerics.simplex import distribution, normalizer
from sfmab_jax.potentials import tsallis

THETAS = np.array(
    [
        [0.3, -0.2, 1.1, 0.0, -2.5],
        [0.0, -9.0, -8.5, -20.0, -30.0],
        [5.0, 5.1, 5.2, 4.9, 5.0],
    ]
)
STEP = 1e-4

gradients = jax.jit(jax.vmap(jax.grad(normalizer, argnums=1), in_axes=(None, 0)))
hessians = jax.jit(jax.vmap(jax.hessian(normalizer, argnums=1), in_axes=(None, 0)))
jacobians = jax.jit(jax.vmap(jax.jacfwd(distribution, argnums=1), in_axes=(None, 0)))
reverse_jacobians = jax.jit(jax.vmap(jax.jacrev(distribution, argnums=1), in_axes=(None, 0)))


def central_differences(function, made, thetas):
    """d function / d theta_j in the last axis, with a fourth-order formula.

    Its error is STEP^4 = 1e-16 times a fifth derivative, and eps / STEP = 2e-12 from rounding.
    """
    columns = []
    for unit in np.eye(thetas.shape[1]):
        at = {
            k: np.asarray(function(made, thetas + (k * STEP * unit)[None, :]))
            for k in (-2, -1, 1, 2)
        }
        columns.append((8 * (at[1] - at[-1]) - (at[2] - at[-2])) / (12 * STEP))
    return np.stack(columns, axis=-1)


@every_potential
def test_the_gradient_of_lambda(name):
    """Against finite differences and the implicit formula -psi'(u) / sum psi'(u)."""
    made, reference = POTENTIALS[name]
    got = np.asarray(gradients(made, THETAS))
    # lambda is of order 1 to 10, so that its rounding leaves 2e-11; see above.
    np.testing.assert_allclose(got, central_differences(lambdas, made, THETAS), atol=2e-10)
    for theta, row in zip(THETAS, got):
        with mp.workdps(oracles.DIGITS):
            root = oracles.normalizer(reference, theta)
            slopes = [reference.slope(t + root) for t in oracles.exact(theta)]
            total = mp.fsum(slopes)
            for value, slope in zip(row.tolist(), slopes):
                # psi' feels the rounding of u up to |log psi'| <= 60 times.
                assert abs(mpf(value) + slope / total) <= 1e-13 * (slope / total)


@every_potential
def test_the_directional_derivative_of_the_distribution(name):
    made, _ = POTENTIALS[name]
    direction = np.random.default_rng(4).normal(size=THETAS.shape)
    _, got = jax.jvp(lambda theta: distributions(made, theta), (THETAS,), (direction,))
    differences = central_differences(distributions, made, THETAS)
    np.testing.assert_allclose(got, np.einsum("bij,bj->bi", differences, direction), atol=2e-10)


@every_potential
def test_the_jacobian_of_the_distribution(name):
    """Forward, reverse, finite differences; symmetric, as the distribution is a gradient."""
    made, _ = POTENTIALS[name]
    got = np.asarray(jacobians(made, THETAS))
    np.testing.assert_allclose(got, reverse_jacobians(made, THETAS), rtol=1e-12, atol=1e-15)
    np.testing.assert_allclose(got, central_differences(distributions, made, THETAS), atol=2e-10)
    np.testing.assert_allclose(got, got.transpose(0, 2, 1), rtol=1e-12, atol=1e-15)
    # The sum of the probabilities does not change; psi' is up to r / c = 6.25.
    np.testing.assert_allclose(got.sum(axis=1), 0, atol=16 * 2.0**-52)


@every_potential
def test_the_hessian_of_lambda(name):
    """Symmetric, and the derivative of the gradient."""
    made, _ = POTENTIALS[name]
    got = np.asarray(hessians(made, THETAS))
    np.testing.assert_allclose(got, got.transpose(0, 2, 1), rtol=1e-11, atol=1e-14)
    np.testing.assert_allclose(got, central_differences(gradients, made, THETAS), atol=1e-10)


def test_the_derivative_in_a_traced_tsallis_power():
    """d lambda / d c and d p / d c against central differences."""

    def both(power, theta):
        made = tsallis(power)
        return jnp.append(distribution(made, theta), normalizer(made, theta))

    values = jax.jit(both)
    slopes = jax.jit(jax.jacfwd(both))
    reverse = jax.jit(jax.jacrev(both))
    for power in (0.2, 0.5, 0.8):
        for theta in THETAS:
            at = {
                k: np.asarray(values(jnp.float64(power + k * STEP), theta)) for k in (-2, -1, 1, 2)
            }
            differences = (8 * (at[1] - at[-1]) - (at[2] - at[-2])) / (12 * STEP)
            got = slopes(jnp.float64(power), theta)
            # Fifth derivatives in c reach 1e4 at c = 0.8, where r = 5: 1e-12 relative to them.
            np.testing.assert_allclose(got, differences, rtol=1e-8, atol=1e-9)
            np.testing.assert_allclose(reverse(jnp.float64(power), theta), got, rtol=1e-11)


@pytest.mark.parametrize("name", ["log_barrier", "negative_entropy", "tsallis(0.5)"])
def test_gradients_are_finite_where_gaps_are_huge(name):
    """A leader far ahead: lambda follows it with slope -1 and the others do not count."""
    theta = np.array([[0.0, -1e30, -1e18], [1e12, 0.0, -1e12]])
    got = np.asarray(gradients(POTENTIALS[name][0], theta))
    np.testing.assert_allclose(got, [[-1.0, 0.0, 0.0], [-1.0, 0.0, 0.0]], atol=1e-15)
