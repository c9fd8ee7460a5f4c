"""Claims about potentials: sections 3 and 4 and appendix A of the paper."""

from collections.abc import Iterator
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from sfmab_jax import potentials
from sfmab_jax.numerics.simplex import distribution, normalizer
from sfmab_jax.numerics.stability import mixability_gap
from sfmab_jax.theory.local_norms import chord, local_norm, slack, up_to
from sfmab_jax.theory.verify.claim import Claim, Setting, equal

__all__ = ["CLAIMS", "POTENTIALS", "region_boundary"]

POTENTIALS = {
    "log barrier": potentials.log_barrier(),
    "negative entropy": potentials.negative_entropy(),
    "Tsallis 1/2": potentials.tsallis(0.5),
}


def _float64(x) -> np.ndarray:
    return np.asarray(x).astype(np.float64)


@jax.jit
def _call(function, *arrays):
    """One program for all operations of a function, rather than one for each."""
    return function(*arrays)


def _scalars(setting: Setting) -> Iterator[tuple]:
    """Pairs x, y in (0, 1], close and far, for each potential."""
    generator = setting.generator(9)
    count = 400 * setting.effort
    x = 10 ** generator.uniform(-6, 0, count)
    far = 10 ** generator.uniform(-6, 0, count)
    near = np.minimum(x * np.exp(10 ** generator.uniform(-4, 0, count)), 1)
    for potential in POTENTIALS.values():
        for y in (far, near):
            yield potential, jnp.asarray(x, setting.dtype), jnp.asarray(y, setting.dtype)


def _plays(setting: Setting) -> Iterator[tuple]:
    """Scores of several sizes, for each potential."""
    generator = setting.generator(17)
    for potential in POTENTIALS.values():
        for n in (7,) if setting.effort == 1 else (2, 7, 40):
            scores = generator.normal(size=(10 * setting.effort, n))
            scores *= 10 ** generator.uniform(-2, 1, (len(scores), 1))
            yield potential, jnp.asarray(scores, setting.dtype)


def _derivatives(potential, x, _) -> np.ndarray:
    """f' = psi^{-1}, f'' = 1/psi'(psi^{-1}), f*' = psi, f*'' = psi', by automatic derivatives."""
    pairs = _slopes(potential, x)
    return np.concatenate(
        [equal(_float64(a), _float64(b), 1 + np.abs(_float64(b))) for a, b in pairs]
    )


@jax.jit
def _slopes(potential, x):
    def slope(function, at):
        return jax.jvp(function, (at,), (jnp.ones_like(at),))[1]

    u = potential.inverse(x)
    return (
        (slope(potential.primitive, x), u),
        (slope(potential.inverse, x), 1 / potential.derivative(u)),
        (slope(potential.conjugate, u), potential.psi(u)),
        (slope(potential.psi, u), potential.derivative(u)),
    )


def _conjugate(potential, x, y) -> np.ndarray:
    """f*(u) = u psi(u) - f(psi(u)), and f*(v) - f*(u) is the integral of psi from u to v."""
    u, v = potential.inverse(x), potential.inverse(y)
    left = _float64(_call(potential.conjugate, u))
    product, f = _float64(u * x), _float64(_call(potential.primitive, x))
    slacks = [equal(left, product - f, 1 + np.abs(product) + np.abs(f))]
    difference = _float64(_call(potential.conjugate, v)) - left
    area = _integral(potential, _float64(x), _float64(y), lambda z: z)
    sizes = 1 + np.abs(left) + np.abs(area) + np.abs(_float64(u)) + np.abs(_float64(v))
    return np.concatenate([*slacks, equal(difference, area, sizes)])


def _integral(potential, x: np.ndarray, y: np.ndarray, height) -> np.ndarray:
    """The integral of height(psi(s)) ds from psi^{-1}(x) to psi^{-1}(y), by z = psi(s), in float64.

    ds = dz / psi'(psi^{-1}(z)), with nodes even on a logarithmic scale.
    """
    nodes, weights = np.polynomial.legendre.leggauss(64)
    span = np.log(y / x)[:, None]
    z = x[:, None] * np.exp(span * (nodes + 1) / 2)
    slope = _float64(_call(potential.derivative, _call(potential.inverse, jnp.asarray(z))))
    return ((height(z) * z / slope) @ weights) * span[:, 0] / 2


def _duality(potential, x, y) -> np.ndarray:
    """Breg_f(psi(v) || psi(u)) = Breg_{f*}(u || v)."""
    u, v = _float64(potential.inverse(x)), _float64(potential.inverse(y))
    f_u, f_v = (_float64(_call(potential.conjugate, jnp.asarray(w))) for w in (u, v))
    psi_v = _float64(potential.psi(jnp.asarray(v)))
    right = f_u - f_v - psi_v * (u - v)
    sizes = 1 + np.abs(f_u) + np.abs(f_v) + np.abs(psi_v * (u - v))
    return equal(_float64(_call(potential.divergence, y, x)), right, sizes)


def _lower_bound(potential, x, y) -> np.ndarray:
    """Lemma 6 with phi up to 1, with phi up to max(x, y), and with m >= psi' > 0."""
    bound = local_norm(potential, up_to(potential, 1.0))
    divergence = _float64(_call(potential.divergence, y, x))
    whole = _float64(slack(potential, bound, x, y))
    u = potential.inverse(x)
    length = jnp.maximum(potential.inverse(y) - u, jnp.zeros_like(u))
    tightest = divergence - _float64((x - y) ** 2 / (2 * chord(potential, u, length)))
    m, least = _float64(bound.m(u)), _float64(potential.derivative(u))
    # The square of x - y is as exact as x and y are.
    sizes = divergence + _float64(jnp.abs(x - y) * jnp.maximum(x, y)) / _float64(bound.w(x))
    sizes_tight = divergence + _float64(jnp.abs(x - y) * jnp.maximum(x, y)) / least
    tiny = np.finfo(np.float64).tiny
    return np.concatenate(
        [whole / (sizes + tiny), tightest / (sizes_tight + tiny), (m - least) / m, least / m]
    )


def _corollary(potential, x, y) -> np.ndarray:
    """y/x - 1 - ln(y/x) >= (x-y)^2/(2x), stronger 2x max(x,y), on (0, 1]^2; the log barrier."""
    barrier = POTENTIALS["log barrier"]
    divergence = _float64(_call(barrier.divergence, y, x))
    x, y = _float64(x), _float64(y)
    stronger = (x - y) ** 2 / (2 * x * np.maximum(x, y))
    sizes = divergence + np.abs(x - y) / x + np.finfo(np.float64).tiny
    printed = (x - y) ** 2 / (2 * x)
    return np.concatenate(
        [(divergence - stronger) / sizes, (divergence - printed) / sizes, (stronger - printed)]
    )


def _region(setting: Setting) -> Iterator[tuple]:
    yield (10 ** setting.generator(14).uniform(-3, 3, 200 * setting.effort),)


def region_boundary(r: np.ndarray) -> np.ndarray:
    """K(r) = 2 (r - 1 - ln r) / (r - 1)^2: the region's boundary is x = K(r), y = r K(r)."""
    r = np.asarray(r, np.float64)
    near = np.abs(r - 1) < 1e-4
    z = np.where(near, r - 1, 0)
    series = 1 - 2 * z / 3 + z**2 / 2
    far = np.where(near, 2.0, r)
    return np.where(near, series, 2 * (far - 1 - np.log(far)) / (far - 1) ** 2)


def _boundary(r: np.ndarray) -> np.ndarray:
    """Equality on the boundary, the inequality towards the origin, slope -1/2 at (1, 1)."""
    x = region_boundary(r)
    y = r * x
    left, right = y / x - 1 - np.log(y / x), (x - y) ** 2 / (2 * x)
    inside = (left - right / 2) / (left + 1e-300)  # at half the distance the right side halves
    step = 1e-4
    (x0, x1), (y0, y1) = (region_boundary(1 + np.array([-step, step])) for _ in range(2))
    slope = ((1 + step) * y1 - (1 - step) * y0) / (x1 - x0)
    # The points are computed in float64, whatever the setting's precision.
    return np.concatenate([equal(left, right, 1 + left) * 1e-3, inside, [1e-6 - abs(slope + 0.5)]])


def _triangle(potential, x, y) -> np.ndarray:
    """(x-y)^2/(2m) <= the integral of |psi - y| between v and u, which is Breg_{f*}(u || v)."""
    bound = local_norm(potential, up_to(potential, 1.0))
    triangle = _float64((x - y) ** 2 / (2 * bound.w(x)))
    x, y = _float64(x), _float64(y)
    area = np.abs(_integral(potential, x, y, lambda z: np.abs(z - y[:, None])))
    return (area - triangle) / (1 + area)


@jax.jit
@partial(jax.vmap, in_axes=(None, 0))
def _solve(potential, theta):
    """lambda, the point, psi and psi' at theta + lambda, and F of the point."""
    root, point = normalizer(potential, theta), distribution(potential, theta)
    moved = theta + root
    value = potentials.regularizer(potential, point)
    return root, point, potential.psi(moved), potential.derivative(moved), value


def _normaliser(potential, scores) -> np.ndarray:
    """One lambda below a - max theta has sum psi(theta + lambda) = 1, and psi increases."""
    roots, points, moved, slopes, _ = (_float64(x) for x in _solve(potential, scores))
    theta = _float64(scores)
    # lambda is rounded at its own size: psi moves by psi' times that.
    sizes = 1 + slopes.sum(axis=1) * (np.abs(roots) + np.abs(theta).max(axis=1))
    finite = np.where(np.isfinite(moved), 0.0, -1.0).ravel()  # theta + lambda is in psi's domain
    order = np.argsort(theta, axis=1)
    rising = np.diff(np.take_along_axis(points, order, axis=1), axis=1).ravel()
    sums = equal(points.sum(axis=1), 1, 1)
    totals = equal(moved.sum(axis=1), 1, sizes)
    return np.concatenate([totals, sums, finite, rising, points.ravel()])


def _regulariser(potential, scores) -> np.ndarray:
    """F >= 0 on the simplex."""
    *_, values = _solve(potential, scores)
    return _float64(values) / (1 + np.abs(_float64(values)) + scores.shape[1])


def _entropy_inputs(setting: Setting) -> Iterator[tuple]:
    generator = setting.generator(19)
    scores = generator.normal(size=(100 * setting.effort, 5)) * 3
    points = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    losses = np.maximum(generator.normal(size=points.shape) * 4, -1)
    # The last one is the counter-example for losses below -1.
    points = np.vstack([points, [1e-6, 1 - 1e-6, 0, 0, 0]])
    losses = np.vstack([losses, [-20.0, 0, 0, 0, 0]])
    yield jnp.asarray(points, setting.dtype), jnp.asarray(losses, setting.dtype)


def _entropy_stability(points, losses) -> np.ndarray:
    """Negative entropy: Psi_p(l) <= p.l^2 for l >= -1, and not for p = (1e-6, .), l = (-20, 0)."""
    stability = _float64(_entropy_gaps(points, losses))
    right = _float64(jnp.sum(points * losses**2, axis=1))
    holds = (right - stability) / (1 + right)
    return np.append(holds[:-1], [stability[-1] - right[-1], 1e-2 - abs(stability[-1] - 6.19)])


@jax.jit
@jax.vmap
def _entropy_gaps(point, loss):
    return mixability_gap(POTENTIALS["negative entropy"], point, loss, 1.0)


CLAIMS = (
    Claim(9, "f' = psi^-1, f'' = 1/psi'(psi^-1), f*' = psi, f*'' = psi'", "section 3",
          _scalars, _derivatives),
    Claim(10, "f*(u) = u psi(u) - f(psi(u)) = integral of psi + C", "section 3",
          _scalars, _conjugate, 512),
    Claim(11, "Breg_f(psi(v)||psi(u)) = Breg_f*(u||v)", "Lemma 5", _scalars, _duality),
    Claim(12, "Breg_f(y||x) >= (x-y)^2/(2m), m >= psi' > 0", "Lemma 6", _scalars, _lower_bound),
    Claim(13, "y/x - 1 - ln(y/x) >= (x-y)^2/(2x max(x,y)) >= (x-y)^2/(2x)", "Corollary 7",
          _scalars, _corollary),
    Claim(14, "the region's boundary is x = 2(r-1-ln r)/(r-1)^2, y = rx", "figure 4",
          _region, _boundary),
    Claim(15, "the triangle is inside the area of the divergence", "figures 2, 3",
          _scalars, _triangle, 512),
    Claim(17, "a unique lambda < a - max theta normalises", "Lemma 9", _plays, _normaliser),
    Claim(18, "F >= 0 on the simplex", "appendix C", _plays, _regulariser),
    Claim(19, "negative entropy: Psi <= p.l^2 if l >= -1, not otherwise", "section 5",
          _entropy_inputs, _entropy_stability),
)  # fmt: skip
