"""Stochastic losses whose means change: phases, switches, corruption."""

from collections.abc import Sequence

import jax.numpy as jnp
import numpy as np
from jax import Array

from sfmab_jax.checks import check_integer, check_number, check_probability
from sfmab_jax.losses import draws
from sfmab_jax.losses.combinators import scaled
from sfmab_jax.losses.draws import Draw
from sfmab_jax.losses.light_tailed import bernoulli_losses
from sfmab_jax.losses.sequence import (
    MOST_ROUNDS,
    LossSequence,
    best_arm,
    from_draws,
    recurrence_from_draws,
)

__all__ = ["constrained_adversarial", "corrupted", "neu_switch", "switching"]


def constrained_adversarial(
    num_arms: int = 10, gap: float = 0.1, growth: float = 1.6, scale: float = 1.0
) -> LossSequence:
    """Stochastically constrained adversarial losses (Zimmert and Seldin 2021): growing phases.

    Independent losses of 0 and ``scale``. Phases alternate between two regimes of means (arm 0;
    the others), in units of ``scale``: (0; gap) and (1 - gap; 1). The first phase is one round
    long, every other ceil(growth * the previous one).

    Args:
      num_arms: n.
      gap: by how much arm 0 is the best in each round, in units of ``scale``.
      growth: of the phases, 1 or more.
      scale: the size of a loss.
    """
    best = best_arm(num_arms)
    check_probability("gap", gap)
    check_number("growth", growth)
    if growth < 1:
        raise ValueError(f"growth is {growth}; phases do not shrink: give 1 or more")
    return scaled(
        from_draws(
            _constrained,
            num_arms,
            name="constrained_adversarial",
            mean=_constrained_mean,
            best=best,
            gap=gap,
            phase_ends=_phase_ends(growth),
        ),
        scale,
    )


def switching(
    num_arms: int = 10,
    gap: float = 0.2,
    switches: int | tuple[int, ...] = 5,
    num_rounds: int = 10_000,
    scale: float = 1.0,
) -> LossSequence:
    """Bernoulli losses whose best arm changes: of mean 1/2, and 1/2 - gap for the best arm.

    The best arms are drawn, too.

    Args:
      num_arms: n.
      gap: by how much the best arm is better, in units of ``scale``, 1/2 at most.
      switches: the number of changes, at rounds drawn from 2 ... num_rounds; or the rounds from
        which on another arm is the best.
      num_rounds: the last round that can be drawn for a change.
      scale: the size of a loss.
    """
    check_integer("num_arms", num_arms, 1, 2**16)
    _check_gap(gap)
    check_integer("num_rounds", num_rounds, 1, MOST_ROUNDS)
    times = None
    if not isinstance(switches, Sequence | np.ndarray):
        num_switches = check_integer("switches", switches, 0, 10_000)
    else:
        rounds = sorted(check_integer("switch", t, 2, MOST_ROUNDS) for t in switches)
        times = np.array(rounds, np.int32)
        num_switches = len(times)
    return scaled(
        recurrence_from_draws(
            _switching_init,
            _switching_next,
            num_arms,
            name="switching",
            mean=_switching_mean,
            arms=np.zeros(num_arms, np.float32),
            slots=np.zeros(num_switches, np.int32),
            times=times,
            last=np.int32(max(num_rounds, 2)),  # in a single round none is reached
            gap=gap,
        ),
        scale,
    )


def neu_switch(
    num_arms: int = 10, gap: float = 0.1, num_rounds: int = 10_000, scale: float = 1.0
) -> LossSequence:
    """Neu (2015), "Explore no more": the worst arm becomes the best after half of the rounds.

    Independent losses of 0 and ``scale``. Their means in that unit are 1/2, but 1/2 - gap for the
    last arm but one, and for the last arm 1/2 + gap up to round num_rounds / 2 and 1/2 - 4 gap
    after it.

    Args:
      num_arms: n, 2 or more.
      gap: from 0 to 1/8.
      num_rounds: T.
      scale: the size of a loss.
    """
    check_integer("num_arms", num_arms, 2, 2**24)
    check_number("gap", gap)
    if not 0 <= gap <= 0.125:
        raise ValueError(f"gap is {gap}; 1/2 - 4 gap must be a probability: give 0 to 0.125")
    check_integer("num_rounds", num_rounds, 1, MOST_ROUNDS)
    first, second = np.full((2, num_arms), 0.5, np.float32)
    first[-2:] = 0.5 - gap, 0.5 + gap
    second[-2:] = 0.5 - gap, 0.5 - 4 * gap
    return scaled(
        from_draws(
            _turning,
            num_arms,
            name="neu_switch",
            mean=_turning_mean,
            first=first,
            second=second,
            turn=np.int32(num_rounds // 2),
        ),
        scale,
    )


def corrupted(
    num_arms: int = 10, gap: float = 0.1, budget: int = 100, scale: float = 1.0
) -> LossSequence:
    """Bernoulli losses with the outcomes of the first ``budget`` rounds flipped.

    In units of ``scale`` their means are 1/2, and 1/2 - gap for arm 0; l becomes 1 - l in the
    rounds t <= budget, so that arm 0 seems the worst (Zimmert and Seldin 2021, section on
    corruptions).

    Args:
      num_arms: n.
      gap: by how much arm 0 is the best in later rounds, in units of ``scale``, 1/2 at most.
      budget: the number of rounds flipped.
      scale: the size of a loss.
    """
    best = best_arm(num_arms)
    _check_gap(gap)
    check_integer("budget", budget, 0, MOST_ROUNDS)
    # A flipped Bernoulli loss of mean m is one of mean 1 - m.
    return scaled(
        from_draws(
            _turning,
            num_arms,
            name="corrupted",
            mean=_turning_mean,
            first=(0.5 + gap * best).astype(best.dtype),
            second=(0.5 - gap * best).astype(best.dtype),
            turn=np.int32(budget),
        ),
        scale,
    )


def _check_gap(gap: float) -> None:
    check_number("gap", gap)
    if not abs(gap) <= 0.5:
        raise ValueError(f"gap is {gap}; 1/2 - gap must lie between 0 and 1")


def _phase_ends(growth: float) -> np.ndarray:
    """Return the last rounds of the phases, of the first 2^16 at most."""
    ends, length = [1], 1
    while ends[-1] < MOST_ROUNDS and len(ends) < 2**16:
        length = int(np.ceil(growth * length))
        ends.append(min(ends[-1] + length, 2**31 - 1))
    return np.array(ends, np.int32)


def _constrained_mean(round_: Array, *, best, gap, phase_ends) -> Array:
    phase = jnp.searchsorted(jnp.asarray(phase_ends), round_)
    others = gap * (1 - best)
    return jnp.where(phase % 2 == 0, others, 1 - gap + others).astype(best.dtype)


def _constrained(draw: Draw, round_: Array, **parameters) -> Array:
    return bernoulli_losses(draw, _constrained_mean(round_, **parameters))


def _switching_init(key: Array, *, arms, slots, times, last, gap):
    """Return the rounds of the switches [S], increasing, and the best arms between them [S + 1]."""
    num_arms, num_switches = len(arms), len(slots)
    words = draws.first_words(key, 1 + 2 * num_switches)
    if times is None:
        drawn = draws.below(words[1 : 1 + num_switches], last - 1)
        times = jnp.sort(2 + drawn)
    first = draws.below(words[:1], num_arms)
    # Another arm each time.
    moves = 1 + draws.below(words[1 + num_switches :], max(num_arms - 1, 1))
    best = jnp.cumsum(jnp.concatenate([first, moves]), dtype=jnp.int32) % num_arms
    return jnp.asarray(times), best


def _switching_mean(state, round_: Array, *, arms, gap, **parameters) -> Array:
    times, best = state
    segment = jnp.sum(times <= round_, dtype=jnp.int32)
    is_best = jnp.arange(len(arms), dtype=jnp.int32) == best[segment]
    return jnp.where(is_best, 0.5 - gap, 0.5).astype(jnp.float32)


def _switching_next(state, draw: Draw, round_: Array, **parameters):
    return state, bernoulli_losses(draw, _switching_mean(state, round_, **parameters))


def _turning_mean(round_: Array, *, first, second, turn) -> Array:
    return jnp.where(round_ <= turn, first, second)


def _turning(draw: Draw, round_: Array, **parameters) -> Array:
    return bernoulli_losses(draw, _turning_mean(round_, **parameters))
