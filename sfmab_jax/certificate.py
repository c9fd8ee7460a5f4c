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

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from jax.tree_util import Partial

from sfmab_jax.base import Bandit, BanditState, Round
from sfmab_jax.estimation import importance_weighted
from sfmab_jax.floating import Sum, add, add_sums, arm_sum, pick, start_sum
from sfmab_jax.full_information import ada_ftrl
from sfmab_jax.potentials import log_barrier

__all__ = ["CERTIFICATES", "ROUNDING", "Certificate", "Watch", "certificate_from_rows", "watch"]

CERTIFICATES = ("refined", "comparator", "epsilon", "star")
# A certificate counts as violated when it falls short by more than this many roundings of
# beta + sum M + sum |l~| + |Phi| + n / eta, the size of what it is computed from.
ROUNDING = 32


class Watch(NamedTuple):
    """What a simulation follows besides the regret; pure functions of one game.

    ``init(state)`` gives what is carried; ``follow(carried, before, seen, losses, after)`` gives
    the next, from the states before and after the round; ``row(carried, state)`` gives the numbers
    to keep at a checkpoint [R].
    """

    init: Callable[[BanditState], Any]
    follow: Callable[[Any, BanditState, Round, Array, BanditState], Any]
    row: Callable[[Any, BanditState], Array]


class Certificate(NamedTuple):
    """Along every path, at the checkpoints: NumPy float64 [K, S, C], in the losses' units.

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


class Carried(NamedTuple):
    """The sums that a certificate needs, of one game."""

    beta: Array
    true_losses: Sum  # S [n]
    played: Sum  # sum l~_t.p_t
    weighted_gaps: Sum  # sum M_t F(p_{t+1})
    squares: Sum  # sum p_t.l~_t^2
    size: Sum  # sum |l~_t|
    sampling: Sum  # sum l_t.(p'_t - p_t)
    largest: Array  # s
    violations: Array
    worst: Array


def watch(bandit: Bandit) -> Watch:
    """The certificates of a bandit made of importance weighting and log-barrier AdaFTRL."""
    _check(bandit)
    return Watch(init=Partial(_init), follow=Partial(_follow), row=Partial(_row))


def certificate_from_rows(rows: np.ndarray, num_arms: int, unit: float) -> Certificate:
    """From the rows [..., R] kept at the checkpoints, counted in ``unit``."""
    columns = np.moveaxis(rows.astype(np.float64), -1, 0)
    parts: Any = _Parts(*columns[:-3])
    sampling, violations, worst = columns[-3:]
    comparator = parts.refined + parts.kept
    excess = parts.mean - parts.best
    vertex = parts.best + least_vertex_cost(excess, 1 / parts.rate, num_arms, np)
    ratio = np.maximum(excess / np.maximum(parts.factor, np.finfo(np.float64).tiny), 1)
    logs = np.minimum(excess, parts.factor) + parts.factor * np.log(ratio)
    star = parts.best + parts.constant + logs - parts.gaps
    return Certificate(
        refined=unit * parts.refined,
        comparator=unit * comparator,
        epsilon=unit * (comparator + vertex - parts.above),
        star=unit * (comparator + star - parts.above),
        estimated=unit * parts.estimated,
        sampling=unit * sampling,
        violations=violations,
        worst=worst,
    )


def _check(bandit: Bandit) -> None:
    """Refuses strategies for which the certificates are not proved."""
    update: Any = bandit.update
    wanted: Any = ada_ftrl(log_barrier())
    try:
        _, estimation, given = update.args[0]
        structures: list[Any] = [
            jax.tree.structure((scheme, follower.update.args[0]))
            for scheme, follower in ((estimation, given), (importance_weighted(), wanted))
        ]
        known = structures[0] == structures[1] and given.update.func is wanted.update.func
    except (AttributeError, IndexError, TypeError, ValueError):
        known = False
    if not known:
        raise ValueError(
            "certificate=True needs importance weighting and AdaFTRL with the log barrier, as in "
            "sf.strategies.scale_free(); for this strategy no certificate is known"
        )


def _init(state: BanditState) -> Carried:
    f = state.full_information
    zero = jnp.zeros_like(f.learning_rate)
    return Carried(
        beta=f.gaps.value,
        true_losses=start_sum(jnp.zeros_like(f.play)),
        played=start_sum(zero),
        weighted_gaps=start_sum(zero),
        squares=start_sum(zero),
        size=start_sum(zero),
        sampling=start_sum(zero),
        largest=zero,
        violations=zero,
        worst=zero + jnp.inf,
    )


def _follow(
    carried: Carried, before: BanditState, seen: Round, losses: Array, after: BanditState
) -> Carried:
    """One round of one game."""
    f = after.full_information
    gap = _difference(f.gaps, before.full_information.gaps)
    weighted = seen.loss / pick(seen.probabilities, seen.arm)
    share = weighted * pick(seen.play, seen.arm)
    cost = _barrier(f.play)
    exploring = arm_sum((losses - seen.loss) * (seen.probabilities - seen.play))
    carried = carried._replace(
        true_losses=add(carried.true_losses, losses),
        played=add(carried.played, share),
        weighted_gaps=add(carried.weighted_gaps, gap * cost),
        squares=add(carried.squares, share * weighted),
        size=add(carried.size, jnp.abs(weighted)),
        sampling=add(carried.sampling, exploring),
        largest=jnp.maximum(carried.largest, jnp.abs(weighted)),
    )
    parts, size = _parts(carried, f, cost)
    relative = jnp.min(_steps(parts, len(f.play))) / size
    short = relative < -ROUNDING * jnp.finfo(size.dtype).eps
    return carried._replace(
        violations=carried.violations + short.astype(size.dtype),
        worst=jnp.minimum(carried.worst, relative),
    )


def _row(carried: Carried, state: BanditState) -> Array:
    """What `certificate_from_rows` needs."""
    parts, _ = _parts(carried, state.full_information, _barrier(state.full_information.play))
    return jnp.stack([*parts, carried.sampling.value, carried.violations, carried.worst])


class _Parts(NamedTuple):
    """What the certificates are made of, relative to the leader, L(leader) = min L; all []."""

    refined: Array  # what it has to spare
    kept: Array  # sum M F / alpha: what the best comparator has to spare beyond that
    above: Array  # Phi - L(leader)
    mean: Array  # mean L - L(leader)
    best: Array  # L(i) - L(leader), i the best arm of the true losses
    estimated: Array  # sum l~.p - L(i)
    gaps: Array  # sum M
    rate: Array  # eta_T
    factor: Array  # of log(1 / epsilon) in (*)
    constant: Array  # of (*)


def _parts(carried: Carried, f, cost: Array) -> tuple[_Parts, Array]:
    """The parts, and the size of the numbers they come from."""
    n = len(f.play)
    alpha = f.learning_rate * f.gaps.value
    # The high words of close arms differ exactly.
    lowest = jnp.min(f.losses.value)
    ahead = (f.losses.value - lowest) + f.losses.error
    low = jnp.min(ahead)
    ahead = ahead - low
    above = cost / f.learning_rate + arm_sum(f.play * ahead)
    gaps = add(f.gaps, -carried.beta)
    # sum M - sum l~.p + Phi, in two words as it is small beside its terms.
    earned = add_sums(gaps, Sum(-carried.played.value, -carried.played.error))
    comparator = add(add(add(earned, lowest), low), above).value
    kept = carried.weighted_gaps.value / alpha
    best = pick(ahead, _least(carried.true_losses))
    root = jnp.sqrt(alpha * carried.squares.value)
    constant = 2 * carried.largest + root
    parts = _Parts(
        refined=comparator - kept,
        kept=kept,
        above=above,
        mean=arm_sum(ahead) / n,
        best=best,
        estimated=add(add(carried.played, -lowest), -low).value - best,
        gaps=gaps.value,
        rate=f.learning_rate,
        factor=n * (carried.beta + constant) / alpha,
        constant=constant,
    )
    # F / eta is a sum of n logarithms over eta, which cancel where the play is near uniform.
    logs = n / f.learning_rate
    return parts, f.gaps.value + carried.size.value + jnp.abs(lowest + above) + logs


def _steps(parts: _Parts, num_arms: int) -> Array:
    """Four numbers that are not negative if 0 <= refined <= comparator <= epsilon <= (*), [4].

    The third is at the leader, where it is least. The fourth holds for every arm and epsilon at
    once: F(1^i_epsilon)/eta <= n log(1/epsilon) (beta + sum M)/alpha and sum M <= 2s + sqrt(...).
    """
    vertex = least_vertex_cost(parts.mean, 1 / parts.rate, num_arms, jnp)
    spare = parts.constant - parts.gaps
    return jnp.stack([parts.refined, parts.kept, vertex - parts.above, spare])


def least_vertex_cost(excess, inverse_rate, num_arms: int, numpy: Any):
    """min over epsilon in (0, 1] of epsilon D + F(1^i_epsilon)/eta; see `bounds.best_epsilon`."""
    n = num_arms
    if n == 1:
        return excess - excess
    kappa = numpy.maximum(excess, 0) / (inverse_rate * (n - 1))
    # The discriminant as a sum of positive terms.
    root = numpy.sqrt((n * (1 - kappa)) ** 2 + 4 * n * kappa)
    epsilon = numpy.minimum(2 * n / (n * (1 + kappa) + root), 1)
    cost = -(n - 1) * numpy.log(epsilon) - numpy.log(n - (n - 1) * epsilon)
    return epsilon * excess + cost * inverse_rate


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


def _least(total: Sum) -> Array:
    """An arm whose total is the least up to rounding, int32 []."""
    ahead = (total.value - jnp.min(total.value)) + total.error
    scale = jnp.max(jnp.abs(total.value))
    places = jnp.arange(len(ahead), dtype=jnp.int32)
    least = ahead <= jnp.min(ahead) + jnp.finfo(ahead.dtype).eps ** 2 * scale
    return jnp.min(jnp.where(least, places, len(ahead) - 1))
