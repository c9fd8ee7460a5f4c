"""Regret equality and its inequalities, as pure functions of a recorded trajectory.

Theorems 12 and 13 of the paper (appendix C), Theorem 8 and what follows from them. Each holds for
any potential unless it says otherwise. "Left" and "right" are the sides as the paper writes them.
Everything is float64; potentials are evaluated in JAX, which must have float64 enabled.
"""

import jax
import jax.numpy as jnp
import numpy as np

from sfmab_jax.potentials import Potential
from sfmab_jax.theory.trajectories import Trajectory

__all__ = [
    "bregman",
    "inequality_star",
    "mixed_bregman",
    "optimal_value",
    "optimality",
    "regret",
    "regret_bound",
    "regret_equality",
    "regret_inequality",
    "regularizer",
    "size",
    "step_terms",
    "value_identity",
    "value_steps",
    "vertex",
]


def _map(function, *arrays) -> np.ndarray:
    values = _apply(function, *(jnp.asarray(x, jnp.float64) for x in arrays))
    return np.asarray(values, np.float64)


@jax.jit
def _apply(function, *arrays):
    return function(*arrays)


def regularizer(potential: Potential, q: np.ndarray) -> np.ndarray:
    """F(q) = sum_i [f(q(i)) - f(1/n)], [..., n] -> [...]."""
    centre = np.full_like(q, 1 / q.shape[-1])
    return (_map(potential.primitive, q) - _map(potential.primitive, centre)).sum(axis=-1)


def bregman(potential: Potential, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Breg_F(x || y), [..., n] -> [...]."""
    return _map(potential.divergence, *np.broadcast_arrays(x, y)).sum(axis=-1)


def mixed_bregman(potential: Potential, x, y, alpha, beta) -> np.ndarray:
    """F(x)/alpha - F(y)/beta - grad F(y).(x - y)/beta. Definition 11 of the paper."""
    linear = (_map(potential.inverse, y) * (x - y)).sum(axis=-1)
    return regularizer(potential, x) / alpha - (regularizer(potential, y) + linear) / beta


def vertex(num_arms: int, arm: int, epsilon: float) -> np.ndarray:
    """1^i_epsilon = (1 - epsilon) 1^i + epsilon/n [n]."""
    return (1 - epsilon) * np.eye(num_arms)[arm] + epsilon / num_arms


def size(trajectory: Trajectory, potential: Potential) -> float:
    """sum |l~_t| + max |Phi_t|: what slacks are measured against."""
    values = optimal_value(
        potential, trajectory.play, trajectory.learning_rate, trajectory.cumulative
    )
    total = np.abs(trajectory.estimates).sum() + np.max(np.abs(values))
    return float(total + 1 / trajectory.learning_rate.min())


def regret(trajectory: Trajectory, comparator: np.ndarray) -> float:
    """sum_t l~_t.(p_t - p)."""
    return float(np.sum(trajectory.estimates * (trajectory.play[:-1] - comparator)))


def step_terms(potential: Potential, trajectory: Trajectory) -> np.ndarray:
    """l~_t.(p_t - p_{t+1}) - Breg^{eta_t, eta_{t-1}}(p_{t+1} || p_t), [T]."""
    now, following = trajectory.play[:-1], trajectory.play[1:]
    gain = (trajectory.estimates * (now - following)).sum(axis=-1)
    rates = trajectory.learning_rate
    return gain - mixed_bregman(potential, following, now, rates[1:], rates[:-1])


def regret_equality(
    potential: Potential, trajectory: Trajectory, comparator: np.ndarray
) -> tuple[float, float]:
    """Return both sides of Theorem 12, for p anywhere on the simplex.

    For interior p the first term is [Breg(p || p_1) - Breg(p || p_{T+1})]/eta_T, as the paper
    writes it. At a vertex both divergences are infinite, and the term is what their difference
    stands for, [F(p_{T+1}) + grad F(p_{T+1}).(p - p_{T+1})]/eta_T; for the log barrier that is
    [F(p_{T+1}) + n - 1/p_{T+1}(i)]/eta_T.
    """
    last = trajectory.play[-1]
    if np.min(comparator) > 0:
        first = bregman(potential, comparator, trajectory.play[0])
        first = first - bregman(potential, comparator, last)
    else:
        linear = np.sum(_map(potential.inverse, last) * (comparator - last))
        first = regularizer(potential, last) + linear
    right = first / trajectory.learning_rate[-1] + step_terms(potential, trajectory).sum()
    return regret(trajectory, comparator), float(right)


def regret_inequality(
    potential: Potential, trajectory: Trajectory, comparator: np.ndarray
) -> tuple[float, float]:
    """Return both sides of Theorem 12's second part, for learning rates that do not increase."""
    now, following = trajectory.play[:-1], trajectory.play[1:]
    gain = (trajectory.estimates * (now - following)).sum(axis=-1)
    divergence = bregman(potential, following, now) / trajectory.learning_rate[:-1]
    first = regularizer(potential, comparator) / trajectory.learning_rate[-1]
    return regret(trajectory, comparator), float(first + np.sum(gain - divergence))


def regret_bound(
    potential: Potential, trajectory: Trajectory, comparator: np.ndarray
) -> tuple[float, float]:
    """Return both sides of sum l~_t.(p_t - p) <= F(p)/eta_T + sum M_t. Proof of Theorem 13."""
    first = regularizer(potential, comparator) / trajectory.learning_rate[-1]
    return regret(trajectory, comparator), float(first + trajectory.gaps.sum())


def optimality(potential: Potential, trajectory: Trajectory) -> np.ndarray:
    """psi^{-1}(p_{t+1}(i)) + eta_t L_t(i) less its value at the likeliest arm, [T+1, n].

    Zero at the FTRL point (KKT). Relative to the sizes of the two terms.
    """
    dual = _map(potential.inverse, trajectory.play)
    scores = trajectory.learning_rate[:, None] * trajectory.cumulative
    total, sizes = dual + scores, np.abs(dual) + np.abs(scores)
    leader = np.argmax(trajectory.play, axis=-1)[:, None]
    difference = total - np.take_along_axis(total, leader, axis=-1)
    return difference / (1 + sizes + np.take_along_axis(sizes, leader, axis=-1))


def optimal_value(
    potential: Potential, point: np.ndarray, rate: np.ndarray, total: np.ndarray
) -> np.ndarray:
    """Phi(eta) = min_u F(u)/eta + L.u, from the points [..., n] where it is attained."""
    lead = total.min(axis=-1)
    above = (point * (total - lead[..., None])).sum(axis=-1)
    return regularizer(potential, point) / rate + above + lead


def value_steps(potential: Potential, trajectory: Trajectory) -> tuple[np.ndarray, np.ndarray]:
    """Phi_t(eta_{t-1}) and Phi_t(eta_t) for t = 1 ... T, [T] each."""
    totals, rates = trajectory.cumulative[1:], trajectory.learning_rate
    before = optimal_value(potential, trajectory.maximiser, rates[:-1], totals)
    return before, optimal_value(potential, trajectory.play[1:], rates[1:], totals)


def value_identity(potential: Potential, trajectory: Trajectory) -> tuple[np.ndarray, np.ndarray]:
    """Return both sides of l~_t.p_t = Phi_t(eta_{t-1}) - Phi_{t-1}(eta_{t-1}) + M_t, [T] each."""
    before, after = value_steps(potential, trajectory)
    previous = np.concatenate([[0.0], after[:-1]])
    left = (trajectory.estimates * trajectory.play[:-1]).sum(axis=-1)
    return left, before - previous + trajectory.gaps


def inequality_star(trajectory: Trajectory, arm: int, epsilon: float) -> tuple[float, float]:
    """Return both sides of (*), section 6, for the log barrier with alpha = n and beta = 1."""
    n = trajectory.play.shape[1]
    log, largest = np.log(1 / epsilon), np.abs(trajectory.estimates).max()
    squares = np.sum(trajectory.play[:-1] * trajectory.estimates**2)
    right = log * (1 + 2 * largest) + 2 * largest + np.sqrt(n * squares) * (log + 1)
    return regret(trajectory, vertex(n, arm, epsilon)), float(right)
