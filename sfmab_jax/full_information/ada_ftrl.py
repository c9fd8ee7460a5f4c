"""AdaFTRL: follow the regularised leader at a learning rate driven by the mixability gaps."""

from collections.abc import Callable
from typing import NamedTuple

import jax.numpy as jnp
from jax import Array, lax
from jax.tree_util import Partial

from sfmab_jax.base import FullInformation, Round, as_partial
from sfmab_jax.checks import check_functions, check_number, is_known
from sfmab_jax.full_information.ftrl import add_round, follow
from sfmab_jax.numerics.arms import arm_sum, pick
from sfmab_jax.numerics.double_word import Sum, add, start_sum
from sfmab_jax.numerics.potential import Stability
from sfmab_jax.numerics.stability import mixability_gap, mixability_gap_on_arm
from sfmab_jax.potentials import Potential
from sfmab_jax.potentials.base import check_potential

__all__ = ["AdaFTRLState", "ada_ftrl", "proxy_gap"]


class AdaFTRLState(NamedTuple):
    play: Array  # p_{t+1} [n]
    losses: Sum  # the cumulative estimates, two words [n]
    learning_rate: Array  # eta_t []
    gaps: Sum  # beta + sum of M_s(eta_{s-1}), two words []


def ada_ftrl(
    potential: Potential,
    alpha: Array | float | Callable[[int], float] | None = None,
    beta: Array | float = 1.0,
    gap: Callable[[Round, Array], Array] | None = None,
) -> FullInformation:
    """AdaFTRL, with eta_t = alpha / (beta + sum_{s<=t} M_s(eta_{s-1})). Section 5 of the paper.

    p_{t+1} = argmin_q F(q) + eta_t sum_{s<=t} q.l_s, M_s the mixability gap of round s. With
    alpha = n and beta = 1, as in Algorithm 1, eta_0 = n.

    With beta = 0, as in AdaHedge, eta is infinite (held as the largest float) while all gaps are
    0. As long as the losses of every round are the same for all arms, p is uniform; the first
    other loss vector l has M(infinity) = p.l - min(l). No constant carries the unit of the losses
    then.

    Args:
      potential: gives F; see `sfmab_jax.potentials`.
      alpha: a positive number; None for the number of arms n; or a function of n.
      beta: in units of loss, not negative.
      gap: ``gap(round, learning_rate)``, [], to take the place of the mixability gap; see `Round`.

    >>> import sfmab_jax as sf
    >>> scheme = ada_ftrl(sf.potentials.log_barrier())
    >>> print(scheme.init(4, jnp.dtype("float32"), jnp.float32(1.0)).learning_rate)
    4.0
    """
    check_potential(potential)
    if alpha is not None and not callable(alpha):
        check_number("alpha", alpha, positive=True)
    check_number("beta", beta)
    if is_known(beta) and beta < 0:
        raise ValueError(f"beta is {beta!r}; it cannot be negative")
    alpha = as_partial(alpha) if callable(alpha) else alpha
    if gap is None:
        # A learning rate that is a number from the start stays one.
        finite = not isinstance(beta, Array) and beta > 0
        gap = Partial(_finite_rate_gap if finite else _any_rate_gap, potential)
    else:
        check_functions(gap=gap)
        gap = Partial(_gap_alone, as_partial(gap))
    return FullInformation(
        init=Partial(_init, alpha, beta), update=Partial(_update, potential, alpha, gap)
    )


def proxy_gap(seen: Round, learning_rate: Array) -> Array:
    """Return min(l, 2 eta l^2 / sqrt(p)) >= M [], a proxy for the mixability gap at f = -sqrt(x).

    Args:
      seen: the round; l >= 0 is its loss, p the probability of its arm.
      learning_rate: eta [].
    """
    chance = pick(seen.probabilities, seen.arm)
    return jnp.minimum(seen.loss, 2 * seen.loss * (learning_rate * seen.loss) / jnp.sqrt(chance))


def _gap_alone(gap, seen: Round, learning_rate: Array) -> tuple[Array, None]:
    return gap(seen, learning_rate), None


def _finite_rate_gap(
    potential, seen: Round, learning_rate: Array
) -> tuple[Array, Stability | None]:
    if seen.weighted is None or potential.stability_on_arm is None:
        return mixability_gap(potential, seen.play, seen.estimate, learning_rate), None
    return mixability_gap_on_arm(potential, seen.play, seen.arm, seen.weighted, learning_rate)


def _any_rate_gap(potential, seen: Round, learning_rate: Array) -> tuple[Array, Stability | None]:
    gap, stability = _finite_rate_gap(potential, seen, learning_rate)
    # A large finite rate would do, but for its product with the losses, which has their unit.
    limit = arm_sum(seen.play * (seen.estimate - jnp.min(seen.estimate)))
    return jnp.where(learning_rate < jnp.finfo(gap.dtype).max, gap, limit), stability


def _init(alpha, beta, num_arms, dtype, loss_unit) -> AdaFTRLState:
    gaps = start_sum(jnp.asarray(beta, dtype) * loss_unit)
    return AdaFTRLState(
        play=jnp.full(num_arms, 1 / num_arms, dtype),
        losses=start_sum(jnp.zeros(num_arms, dtype)),
        learning_rate=_rate(alpha, num_arms, gaps),
        gaps=gaps,
    )


def _rate(alpha, num_arms: int, gaps: Sum) -> Array:
    if alpha is None:
        alpha = num_arms
    if callable(alpha):
        alpha = alpha(num_arms) or 1.0  # at one arm alpha is 0, and any rate will do
    alpha = jnp.asarray(alpha, gaps.value.dtype)
    largest = jnp.finfo(alpha.dtype).max
    is_finite = gaps.value > 0
    rate = jnp.minimum(alpha / jnp.where(is_finite, gaps.value, 1), largest)
    return jnp.where(is_finite, rate, largest)


def _update(potential, alpha, gap, state: AdaFTRLState, seen: Round) -> AdaFTRLState:
    losses = add_round(state.losses, seen)
    gap_now, stability = gap(seen, state.learning_rate)
    gaps = add(state.gaps, gap_now)
    rate = _rate(alpha, len(seen.play), gaps)
    # At an infinite rate p is uniform and has no derivative: 0 is taken, not the rate itself.
    is_infinite = rate >= jnp.finfo(rate.dtype).max
    totals = Sum(*(jnp.where(is_infinite, lax.stop_gradient(x), x) for x in losses))
    if stability is None:
        start = potential.inverse(jnp.max(state.play))
    else:
        start = stability.start_at(rate / state.learning_rate)
    return AdaFTRLState(follow(potential, totals, rate, start), losses, rate, gaps)
