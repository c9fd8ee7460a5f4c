"""Potentials psi and what belongs to them: section 3 of the paper.

A potential is convex, increasing and smooth from (-inf, a) onto (0, inf). With f' = psi^{-1} it
gives the regulariser F(q) = sum_i [f(q(i)) - f(1/n)].

| potential          | psi(u)             | f(x)        |
|--------------------|--------------------|-------------|
| log_barrier()      | -1/u               | -log x      |
| negative_entropy() | exp(u)             | x log x - x |
| tsallis(power=c)   | (-u/c)^(-1/(1-c))  | -x^c        |

`potential(psi, inverse)` makes one from the two functions alone.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array
from jax.tree_util import Partial

from sfmab_jax.divergences import (
    exp_remainder,
    log_remainder,
    log_series,
    power_remainder,
    power_series,
    unit_quadrature,
)
from sfmab_jax.floating import arm_sum
from sfmab_jax.mixability import entropy_stability, general_stability, power_stability
from sfmab_jax.simplex import newton_root

__all__ = [
    "Potential",
    "log_barrier",
    "negative_entropy",
    "potential",
    "regularizer",
    "tsallis",
]


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
    root: Callable[[Array], Array]  # gaps [n] -> nu [] with sum_i psi(nu - x(i)) = 1
    stability: Callable[[Array, Array], Array]  # (p [n], y [n]) -> Psi_p(y) []


def regularizer(potential: Potential, point: Array) -> Array:
    """F(q) = sum_i [f(q(i)) - f(1/n)] >= 0 on the simplex, [n] -> []."""
    centre = jnp.ones_like(point) / len(point)
    return arm_sum(potential.primitive(point) - potential.primitive(centre))


def log_barrier() -> Potential:
    """psi(u) = -1/u on u < 0, f(x) = -log x: the regulariser of Algorithm 1.

    >>> print(log_barrier().psi(jnp.float32(-4.0)))
    0.25
    """
    return Potential(
        psi=Partial(_barrier_psi),
        inverse=Partial(_barrier_psi),
        derivative=Partial(_barrier_derivative),
        primitive=Partial(_barrier_primitive),
        conjugate=Partial(_barrier_conjugate),
        divergence=Partial(_barrier_divergence),
        root=Partial(_barrier_root),
        stability=Partial(_barrier_stability),
    )


def negative_entropy() -> Potential:
    """psi(u) = exp(u), f(x) = x log x - x: the regulariser of Hedge and Exp3.

    >>> print(negative_entropy().inverse(jnp.float32(1.0)))
    0.0
    """
    return Potential(
        psi=Partial(jnp.exp),
        inverse=Partial(jnp.log),
        derivative=Partial(jnp.exp),
        primitive=Partial(_entropy_primitive),
        conjugate=Partial(jnp.exp),
        divergence=Partial(_entropy_divergence),
        root=Partial(_entropy_root),
        stability=Partial(entropy_stability),
    )


def tsallis(power: Array | float = 0.5) -> Potential:
    """psi(u) = (-u/c)^(-1/(1-c)) on u < 0, f(x) = -x^c, for a power c in (0, 1).

    The INF potentials of Audibert and Bubeck (2009) with q = 1/(1-c); c = 1/2 is the Tsallis
    entropy -sqrt(x), for which psi(u) = 1/(4 u^2).

    >>> print(tsallis(0.5).psi(jnp.float32(-1.0)))
    0.25
    """
    if not isinstance(power, Array) and not 0 < power < 1:
        raise ValueError(f"power is {power}; a Tsallis power lies strictly between 0 and 1")
    c = power
    return Potential(
        psi=Partial(_tsallis_psi, c),
        inverse=Partial(_tsallis_inverse, c),
        derivative=Partial(_tsallis_derivative, c),
        primitive=Partial(_tsallis_primitive, c),
        conjugate=Partial(_tsallis_conjugate, c),
        divergence=Partial(_tsallis_divergence, c),
        root=Partial(_tsallis_root, c),
        stability=Partial(_tsallis_stability, c),
    )


def potential(psi: Callable[[Array], Array], inverse: Callable[[Array], Array]) -> Potential:
    """A potential from psi and psi^{-1} alone, both elementwise and differentiable by JAX.

    psi' comes from automatic differentiation, f and the divergence from quadrature, lambda from
    safeguarded Newton steps. Slower than the built-in ones, equally usable.

    >>> cosine_free = potential(lambda u: jnp.exp(2 * u), lambda p: jnp.log(p) / 2)
    >>> print(cosine_free.derivative(jnp.float32(0.0)))
    2.0
    """
    psi, inverse = Partial(psi), Partial(inverse)
    made = Potential(
        psi=psi,
        inverse=inverse,
        derivative=Partial(_slope_of, psi),
        primitive=Partial(_general_primitive, inverse),
        conjugate=Partial(_general_conjugate, psi, inverse),
        divergence=Partial(_general_divergence, inverse),
        root=Partial(_general_root, psi, inverse),
        stability=Partial(_general_root),
    )
    return made._replace(stability=Partial(general_stability, potential=made))


# Log barrier.


def _barrier_psi(u: Array) -> Array:
    return -1 / u


def _barrier_derivative(u: Array) -> Array:
    return (1 / u) ** 2


def _barrier_primitive(x: Array) -> Array:
    return -jnp.log(x)


def _barrier_conjugate(u: Array) -> Array:
    return -1 - jnp.log(-u)


def _barrier_divergence(y: Array, x: Array) -> Array:
    return log_remainder((y - x) / x, y / x)


def _barrier_step(excess: Array, slope: Array) -> Array:
    """Newton on 1/s - 1, a harmonic mean and so concave in -nu: monotone, and nearly linear."""
    return (1 + excess) * excess / slope


def _barrier_root(gaps: Array) -> Array:
    def value_and_slope(u):
        p = -1 / u
        return p, p * p

    lowest, highest = jnp.full_like(gaps[0], -len(gaps)), jnp.full_like(gaps[0], -1)
    return newton_root(gaps, value_and_slope, _barrier_step, lowest, highest, _num_steps(gaps))


def _barrier_stability(play: Array, dual_loss: Array) -> Array:
    return power_stability(
        play,
        dual_loss,
        inverse_dual=lambda p: p,
        contract=lambda inverse_ratio: inverse_ratio,
        fraction_lost=lambda z, inverse_ratio: z * inverse_ratio,
        newton_step=_barrier_step,
        divergence_near=lambda _, z: log_series(z),
        divergence_far=lambda _, ratio: (ratio - 1) - jnp.log(ratio),
        exponent=1,
        coefficient=1,
        num_steps=_num_steps(play),
    )


def _num_steps(x: Array) -> int:
    """Newton steps that reach rounding level for every gap vector of this length and dtype."""
    return 3 + len(x).bit_length() // 2 + (x.dtype == jnp.float64)


# Negative entropy.


def _entropy_primitive(x: Array) -> Array:
    return x * jnp.log(x) - x


def _entropy_divergence(y: Array, x: Array) -> Array:
    return y * exp_remainder(jnp.log1p((x - y) / y))


def _entropy_root(gaps: Array) -> Array:
    return -jnp.log(arm_sum(jnp.exp(-gaps)))


# Tsallis family: with r = 1/(1-c), psi(u) = (-u/c)^(-r).


def _tsallis_psi(c: Array | float, u: Array) -> Array:
    return (-u / c) ** (-1 / (1 - c))


def _tsallis_inverse(c: Array | float, x: Array) -> Array:
    return -c * x ** (c - 1)


def _tsallis_derivative(c: Array | float, u: Array) -> Array:
    return _tsallis_psi(c, u) / (-u * (1 - c))


def _tsallis_primitive(c: Array | float, x: Array) -> Array:
    return -(x**c)


def _tsallis_conjugate(c: Array | float, u: Array) -> Array:
    x = _tsallis_psi(c, u)
    return u * x + x**c


def _tsallis_divergence(c: Array | float, y: Array, x: Array) -> Array:
    z = jnp.expm1((c - 1) * jnp.log1p((x - y) / y))
    return y**c * power_remainder(z, (x / y) ** (c - 1), 1 / (1 - c))


def _tsallis_step(c: Array | float, excess: Array, slope: Array) -> Array:
    """Newton on s^(-1/r) - 1, a power mean: the log barrier's step with its exponent."""
    growth = jnp.expm1((1 - c) * jnp.log1p(excess))
    return (1 + excess) * growth / ((1 - c) * slope)


def _power_fraction_lost(z: Array, inverse_ratio: Array, exponent: Array | float) -> Array:
    """1 - (1 + z)^(-r), relatively accurate near zero and safe near z = -1."""
    small = jnp.abs(z) <= 0.5
    near = -jnp.expm1(-exponent * jnp.log1p(jnp.where(small, z, 0)))
    return jnp.where(small, near, 1 - inverse_ratio**exponent)


def _tsallis_root(c: Array | float, gaps: Array) -> Array:
    def value_and_slope(u):
        p = _tsallis_psi(c, u)
        return p, p / (-u * (1 - c))

    lowest = _tsallis_inverse(c, jnp.full_like(gaps[0], 1 / len(gaps)))
    highest = jnp.full_like(gaps[0], 1) * -c
    step = Partial(_tsallis_step, c)
    return newton_root(gaps, value_and_slope, step, lowest, highest, _num_steps(gaps))


def _tsallis_stability(c: Array | float, play: Array, dual_loss: Array) -> Array:
    r = 1 / (1 - c)
    return power_stability(
        play,
        dual_loss,
        inverse_dual=lambda p: p ** (1 - c) / c,
        contract=lambda inverse_ratio: inverse_ratio**r,
        fraction_lost=lambda z, inverse_ratio: _power_fraction_lost(z, inverse_ratio, r),
        newton_step=Partial(_tsallis_step, c),
        divergence_near=lambda p, z: p**c * power_series(z, r),
        divergence_far=lambda p, ratio: p**c * power_remainder(ratio - 1, ratio, r),
        exponent=r,
        coefficient=c,
        num_steps=_num_steps(play),
    )


# Any potential, from psi and its inverse.

_GENERAL_STEPS = 60


def _slope_of(psi: Callable[[Array], Array], u: Array) -> Array:
    return jax.jvp(psi, (u,), (jnp.ones_like(u),))[1]


def _general_primitive(inverse: Callable[[Array], Array], x: Array) -> Array:
    """The integral of psi^{-1} from 1 to x, on a logarithmic scale."""
    nodes, weights = unit_quadrature(64, x.dtype)
    s = jnp.exp(jnp.log(x)[..., None] * nodes)
    return jnp.log(x) * ((inverse(s) * s) @ weights)


def _general_conjugate(psi, inverse, u: Array) -> Array:
    x = psi(u)
    return u * x - _general_primitive(inverse, x)


def _general_divergence(inverse: Callable[[Array], Array], y: Array, x: Array) -> Array:
    """The integral of psi^{-1}(s) - psi^{-1}(x) from x to y, on a logarithmic scale."""
    nodes, weights = unit_quadrature(64, x.dtype)
    log_ratio = jnp.log1p((y - x) / x)
    s = x[..., None] * jnp.exp(log_ratio[..., None] * nodes)
    return log_ratio * (((inverse(s) - inverse(x)[..., None]) * s) @ weights)


def _general_root(psi, inverse, gaps: Array) -> Array:
    def value_and_slope(u):
        return jax.jvp(psi, (u,), (jnp.ones_like(u),))

    def plain_newton(excess, slope):
        return excess / slope

    lowest, highest = (
        inverse(jnp.full_like(gaps[0], 1 / len(gaps))),
        inverse(jnp.ones_like(gaps[0])),
    )
    return newton_root(gaps, value_and_slope, plain_newton, lowest, highest, _GENERAL_STEPS)
