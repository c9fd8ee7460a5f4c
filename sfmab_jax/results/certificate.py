"""Certificates: bounds on the regret that hold along a single path, streamed beside the game.

For log-barrier AdaFTRL on importance-weighted losses. With L the cumulative estimates, i an arm,
Phi_t(eta) = min_u F(u)/eta + L_t.u and D_i = mean(L) - L(i), the estimated regret
sum_t l~_t.(p_t - 1^i) is at most, strongest first,

    refined          sum M_t (1 - F(p_{t+1})/alpha) + Phi_T(eta_T) - L_T(i)
    best comparator  sum M_t + Phi_T(eta_T) - L_T(i)
    best epsilon     sum M_t + min_epsilon [F(1^i_epsilon)/eta_T + epsilon D_i]
    inequality (*)   min_epsilon [n log(1/epsilon) (beta + 2s)/alpha + 2s
                     + sqrt(sum p_t.l~_t^2) (n log(1/epsilon)/sqrt(alpha) + sqrt(alpha))
                     + epsilon D_i],  s = max |l~_t|

(section 6 of the paper with Theorem 8; the first two are sharper than the paper). What each has
to spare, the certificate less the estimated regret, grows with L(i), and for the first two it
does not depend on i at all: checked at the leader, each is checked for every arm.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from jax.tree_util import Partial

from sfmab_jax.base import Bandit, BanditState, Round
from sfmab_jax.engine.measure import rescale_squares, unit_of_squares
from sfmab_jax.engine.observer import Observer
from sfmab_jax.estimation import importance_weighted
from sfmab_jax.full_information import ada_ftrl
from sfmab_jax.numerics.arms import arm_sum, least_total, pick
from sfmab_jax.numerics.double_word import Sum, add, add_sums, start_sum
from sfmab_jax.potentials import log_barrier

__all__ = [
    "CERTIFICATES",
    "ROUNDING",
    "Certificate",
    "certificate_from_rows",
    "observe_certificates",
    "vertex_cost",
]

CERTIFICATES = ("refined", "comparator", "epsilon", "star")
# A certificate counts as violated when it falls short by more than this many roundings of
# beta + sum M + sum |l~| + |Phi| + n / eta, the size of what it is computed from.
ROUNDING = 32


class Certificate(NamedTuple):
    """Certificates of every game at the checkpoints: float64 [K, S, C], in the losses' units.

    The first four are what each certificate has to spare against the best arm of the true
    losses; a certificate itself is the estimated regret plus that.
    """

    refined: np.ndarray
    comparator: np.ndarray
    epsilon: np.ndarray
    star: np.ndarray
    estimated: np.ndarray  # sum l~_t.(p_t - 1^i): the decomposition's term (3)
    sampling: np.ndarray  # sum l_t.(p'_t - p_t): term (1)
    violations: np.ndarray  # rounds so far at which a certificate fell short
    worst: np.ndarray  # the least so far of (what is to spare) / (size), over the four


class _Sums(NamedTuple):
    """Running sums of one game, from which its certificates are computed."""

    beta: Array
    true_losses: Sum  # S [n]
    play_loss: Sum  # sum l~_t.p_t
    weighted_gaps: Sum  # sum M_t F(p_{t+1})
    squares: Sum  # sum p_t.l~_t^2, in units of the square of `unit_of_squares(largest)`
    size: Sum  # sum |l~_t|
    sampling: Sum  # sum l_t.(p'_t - p_t)
    largest: Array  # s
    violations: Array
    worst: Array


def observe_certificates(bandit: Bandit) -> Observer:
    """Observer of the certificates of a bandit: importance weighting and log-barrier AdaFTRL."""
    _check(bandit)
    return Observer(init=Partial(_init), follow=Partial(_follow), row=Partial(_row))


def certificate_from_rows(rows: np.ndarray, num_arms: int, unit: float) -> Certificate:
    """Certificates from the observer's rows [..., R], which count losses in ``unit``."""
    columns = np.moveaxis(rows.astype(np.float64), -1, 0)
    parts: Any = _Parts(*columns[:-3])
    sampling, violations, worst = columns[-3:]
    comparator = parts.refined + parts.refinement
    excess = parts.mean - parts.best
    vertex = parts.best + _least_vertex_cost(excess, 1 / parts.rate, num_arms, np)
    ratio = np.maximum(excess / np.maximum(parts.factor, np.finfo(np.float64).tiny), 1)
    logs = np.minimum(excess, parts.factor) + parts.factor * np.log(ratio)
    star = parts.best + parts.constant + logs - parts.gaps
    return Certificate(
        refined=unit * parts.refined,
        comparator=unit * comparator,
        epsilon=unit * (comparator + vertex - parts.optimal_value),
        star=unit * (comparator + star - parts.optimal_value),
        estimated=unit * parts.estimated,
        sampling=unit * sampling,
        violations=violations,
        worst=worst,
    )


def _check(bandit: Bandit) -> None:
    """Raise ValueError for strategies whose certificates are not proved."""
    update: Any = bandit.update
    proved: Any = ada_ftrl(log_barrier())
    try:
        _, estimation, full_information = update.args[0]
        structures: list[Any] = [
            jax.tree.structure((e, f.update.args[0]))
            for e, f in ((estimation, full_information), (importance_weighted(), proved))
        ]
        same_update = full_information.update.func is proved.update.func
        known = structures[0] == structures[1] and same_update
    except (AttributeError, IndexError, TypeError, ValueError):
        known = False
    if not known:
        raise ValueError(
            "certificate=True needs importance weighting and AdaFTRL with the log barrier, as in "
            "sf.strategies.scale_free(); for this strategy no certificate is known"
        )


def _init(state: BanditState) -> _Sums:
    f = state.full_information
    zero = jnp.zeros_like(f.learning_rate)
    return _Sums(
        beta=f.gaps.value,
        true_losses=start_sum(jnp.zeros_like(f.play)),
        play_loss=start_sum(zero),
        weighted_gaps=start_sum(zero),
        squares=start_sum(zero),
        size=start_sum(zero),
        sampling=start_sum(zero),
        largest=zero,
        violations=zero,
        worst=zero + jnp.inf,
    )


def _follow(
    sums: _Sums, before: BanditState, seen: Round, losses: Array, after: BanditState
) -> _Sums:
    """Sums after one round of one game."""
    f = after.full_information
    gap = _difference(f.gaps, before.full_information.gaps)
    weighted = seen.loss / pick(seen.probabilities, seen.arm)
    share = weighted * pick(seen.play, seen.arm)
    cost = _barrier(f.play)
    exploring = arm_sum((losses - seen.loss) * (seen.probabilities - seen.play))
    largest = jnp.maximum(sums.largest, jnp.abs(weighted))
    squares, per_unit = rescale_squares(sums.squares, sums.largest, largest)
    sums = sums._replace(
        true_losses=add(sums.true_losses, losses),
        play_loss=add(sums.play_loss, share),
        weighted_gaps=add(sums.weighted_gaps, gap * cost),
        squares=add(squares, (share * per_unit) * (weighted * per_unit)),
        size=add(sums.size, jnp.abs(weighted)),
        sampling=add(sums.sampling, exploring),
        largest=largest,
    )
    parts, size = _parts(sums, f, cost)
    relative = jnp.min(_steps(parts, len(f.play))) / size
    short = relative < -ROUNDING * jnp.finfo(size.dtype).eps
    return sums._replace(
        violations=sums.violations + short.astype(size.dtype),
        worst=jnp.minimum(sums.worst, relative),
    )


def _row(sums: _Sums, state: BanditState) -> Array:
    """Row [R] of one game for `certificate_from_rows`."""
    parts, _ = _parts(sums, state.full_information, _barrier(state.full_information.play))
    return jnp.stack([*parts, sums.sampling.value, sums.violations, sums.worst])


class _Parts(NamedTuple):
    """Terms of the certificates, relative to the leader, L(leader) = min L; all []."""

    refined: Array  # what it has to spare
    refinement: Array  # sum M F / alpha: what the best comparator has to spare beyond that
    optimal_value: Array  # Phi - L(leader)
    mean: Array  # mean L - L(leader)
    best: Array  # L(i) - L(leader), i the best arm of the true losses
    estimated: Array  # sum l~.p - L(i)
    gaps: Array  # sum M
    rate: Array  # eta_T
    factor: Array  # of log(1 / epsilon) in (*)
    constant: Array  # of (*)


def _parts(sums: _Sums, f, cost: Array) -> tuple[_Parts, Array]:
    """Terms of the certificates, and the size of the numbers they come from."""
    n = len(f.play)
    alpha = f.learning_rate * f.gaps.value
    # The high words of close arms differ exactly.
    lowest = jnp.min(f.losses.value)
    ahead = (f.losses.value - lowest) + f.losses.error
    low = jnp.min(ahead)
    ahead = ahead - low
    optimal_value = cost / f.learning_rate + arm_sum(f.play * ahead)
    gaps = add(f.gaps, -sums.beta)
    # sum M - sum l~.p + Phi, in two words as it is small beside its terms.
    earned = add_sums(gaps, Sum(-sums.play_loss.value, -sums.play_loss.error))
    comparator = add(add(add(earned, lowest), low), optimal_value).value
    refinement = sums.weighted_gaps.value / alpha
    best = pick(ahead, least_total(sums.true_losses))
    root = jnp.sqrt(alpha * sums.squares.value) * unit_of_squares(sums.largest, jnp)
    constant = 2 * sums.largest + root
    parts = _Parts(
        refined=comparator - refinement,
        refinement=refinement,
        optimal_value=optimal_value,
        mean=arm_sum(ahead) / n,
        best=best,
        estimated=add(add(sums.play_loss, -lowest), -low).value - best,
        gaps=gaps.value,
        rate=f.learning_rate,
        factor=n * (sums.beta + constant) / alpha,
        constant=constant,
    )
    # F / eta is a sum of n logarithms over eta, which cancel where the play is near uniform.
    logs = n / f.learning_rate
    return parts, f.gaps.value + sums.size.value + jnp.abs(lowest + optimal_value) + logs


def _steps(parts: _Parts, num_arms: int) -> Array:
    """Slacks [4] of 0 <= refined <= comparator <= epsilon <= (*), none negative if all hold.

    The third is at the leader, where it is least. The fourth holds for every arm and epsilon at
    once: F(1^i_epsilon)/eta <= n log(1/epsilon) (beta + sum M)/alpha and sum M <= 2s + sqrt(...).
    """
    vertex = _least_vertex_cost(parts.mean, 1 / parts.rate, num_arms, jnp)
    spare = parts.constant - parts.gaps
    return jnp.stack([parts.refined, parts.refinement, vertex - parts.optimal_value, spare])


def _least_vertex_cost(excess, inverse_rate, num_arms: int, numpy: Any):
    """min over epsilon in (0, 1] of epsilon D + F(1^i_epsilon)/eta, D the excess.

    It is where kappa (n-1) epsilon^2 - n (1 + kappa) epsilon + n = 0, kappa = D eta / (n-1).
    ``numpy`` is the module of the arrays.
    """
    n = num_arms
    if n == 1:
        return excess - excess
    kappa = numpy.maximum(excess, 0) / (inverse_rate * (n - 1))
    # The discriminant as a sum of positive terms: a difference would cancel in float32.
    root = numpy.sqrt((n * (1 - kappa)) ** 2 + 4 * n * kappa)
    epsilon = numpy.minimum(2 * n / (n * (1 + kappa) + root), 1)
    cost = vertex_cost(n, epsilon, numpy)
    return epsilon * excess + cost * inverse_rate


def vertex_cost(num_arms: int, epsilon: Any, numpy: Any = np) -> Any:
    """F(1^i_epsilon) = (n-1) log(1/epsilon) - log(n - (n-1) epsilon), of the log barrier.

    Args:
      num_arms: n.
      epsilon: in (0, 1], [...].
      numpy: the module of epsilon, `numpy` or `jax.numpy`.
    """
    n = num_arms
    return -(n - 1) * numpy.log(epsilon) - numpy.log(n - (n - 1) * epsilon)


def _barrier(p: Array) -> Array:
    """F(p) = -sum_i log(n p(i)), with one logarithm for 64 arms.

    The exponents are summed as integers, and the significands, between 1 and 2, are multiplied.
    """
    n = len(p)
    word, shift, bias, one = (
        (jnp.uint32, 23, 127, 0x3F800000)
        if p.dtype == jnp.float32
        else (jnp.uint64, 52, 1023, 0x3FF0000000000000)
    )
    bits = lax.bitcast_convert_type(p * n, word)
    exponents = jnp.sum((bits >> word(shift)).astype(jnp.int32), dtype=jnp.int32) - n * bias
    significands = lax.bitcast_convert_type((bits & word((1 << shift) - 1)) | word(one), p.dtype)
    filled = jnp.pad(significands, (0, -n % 64), constant_values=1) if n > 64 else significands
    groups = filled.reshape(-1, 64) if n > 64 else filled.reshape(1, n)
    logs = jnp.log(jnp.prod(groups, axis=1))
    return -(jnp.sum(logs) + exponents.astype(p.dtype) * p.dtype.type(np.log(2)))


def _difference(a: Sum, b: Sum) -> Array:
    return (a.value - b.value) + (a.error - b.error)
