"""Loss sequences made from others."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.tree_util import Partial

from sfmab_jax.checks import check_functions, check_integer, check_number, check_positive
from sfmab_jax.losses.bases import blind, generated, most_seen
from sfmab_jax.losses.draws import round_words, unit
from sfmab_jax.losses.sequence import MOST_ROUNDS, LossSequence, in_float32

__all__ = [
    "clipped",
    "concatenated",
    "enveloped",
    "mixed",
    "permuted",
    "scaled",
    "shifted",
]


def scaled(losses: Any, factor: Array | float) -> LossSequence:
    """Scale all losses: c l_t.

    Args:
      losses: a sequence, or an array [T, n].
      factor: c, positive.

    >>> from sfmab_jax.losses import cyclic
    >>> scaled(cyclic(num_arms=3), 1e6).magnitude
    1000000.0
    """
    check_positive(scale=factor)
    if not 1e-37 <= factor <= 1e38:
        raise ValueError(f"scale is {factor!r}; losses are float32: give 1e-37 to 1e38")
    base = generated(losses)
    magnitude = base.magnitude * float(factor)
    return _transform(base, _scaled_next, _scaled_mean, np.float32(factor), magnitude=magnitude)


def shifted(losses: Any, offset: Any) -> LossSequence:
    """Shift all losses: l_t + b.

    Args:
      losses: a sequence, or an array [T, n].
      offset: b, a number or a vector [n].
    """
    base = generated(losses)
    vector = _as_floats(offset).astype(np.float32)
    if vector.shape not in ((), (base.num_arms,)) or not np.isfinite(vector).all():
        raise ValueError(
            f"offset is {offset!r}; give a finite number, or one for each of {base.num_arms} arms"
        )
    vector = np.broadcast_to(vector, (base.num_arms,)).copy()
    magnitude = base.magnitude + float(np.max(np.abs(vector)))
    return _transform(base, _shifted_next, _shifted_mean, vector, magnitude=magnitude)


def clipped(losses: Any, low: float = 0.0, high: float = 1.0) -> LossSequence:
    """Clip all losses: min(high, max(low, l_t)), arm by arm.

    Args:
      losses: a sequence, or an array [T, n].
      low, high: the smallest and the largest loss.
    """
    check_number("low", low)
    check_number("high", high)
    if not low <= high:
        raise ValueError(f"low is {low}, above high, {high}; exchange them")
    base = generated(losses)
    largest = min(base.magnitude, max(abs(low), abs(high)))
    return replace(
        base,
        next=Partial(_clipped_next, base.next, np.float32(low), np.float32(high)),
        magnitude=largest if largest > 0 else 1.0,
        mean=None,
    )


def enveloped(
    losses: Any, envelope: Callable[..., Array], peak: float = 1.0, **parameters: Any
) -> LossSequence:
    """Scale the losses of each round: s_t l_t.

    Args:
      losses: a sequence, or an array [T, n].
      envelope: ``envelope(t, **parameters)`` -> s_t [], with the round t a float32 [].
      peak: roughly the largest |s_t|.
      **parameters: numbers and arrays, which can change without compiling again.

    >>> from sfmab_jax.losses import uniform
    >>> enveloped(uniform(), lambda t: jnp.sqrt(t), peak=100.0).magnitude
    120.0
    """
    check_functions(envelope=envelope)
    check_positive(peak=peak)
    base = generated(losses)
    factor = Partial(envelope, **in_float32(parameters))
    magnitude = base.magnitude * float(peak)
    return _transform(base, _enveloped_next, _enveloped_mean, factor, magnitude=magnitude)


def permuted(losses: Any) -> LossSequence:
    """Put the arms in a random order, drawn once for each sequence.

    Then a strategy gains nothing by preferring some arms.

    Args:
      losses: a sequence, or an array [T, n].
    """
    base = generated(losses)
    if base.sees == "law":
        raise ValueError(
            f"losses {base.name!r} see the law of the arm, which `permuted` does not put in order; "
            "permute the losses that they are made from"
        )
    init = Partial(_permuted_init, base.init, np.arange(base.num_arms, dtype=np.int32))
    return replace(_transform(base, _permuted_next, _permuted_mean), init=init)


def mixed(losses: Sequence[Any], weights: Sequence[float]) -> LossSequence:
    """Mix sequences: in each round play the losses of one of them, drawn anew.

    Args:
      losses: K sequences with the same number of arms.
      weights: the probabilities of the sequences [K], up to a factor.
    """
    bases = _with_same_arms(losses)
    parts = _as_floats(weights)
    total = parts.sum()
    if parts.shape != (len(bases),) or not (parts >= 0).all() or not 0 < total < np.inf:
        raise ValueError(
            f"weights are {weights!r}; give {len(bases)} finite numbers, not negative, not all zero"
        )
    chances = (parts / parts.sum()).astype(np.float32)
    length = min((base.num_rounds for base in bases if base.num_rounds is not None), default=None)
    return _join(bases, _mixed_next, _mixed_mean, chances, length, "mixed")


def concatenated(losses: Sequence[Any], lengths: Sequence[int]) -> LossSequence:
    """Play sequences one after the other, each from its round 1.

    Args:
      losses: K sequences with the same number of arms.
      lengths: the numbers of rounds [K - 1] of all sequences but the last, which has the rest.
    """
    bases = _with_same_arms(losses)
    if np.shape(lengths) != (len(bases) - 1,):
        raise ValueError(f"lengths are {lengths!r}; {len(bases)} parts need {len(bases) - 1}")
    for length, base in zip(lengths, bases, strict=False):
        check_integer("length", length, 1, base.num_rounds or MOST_ROUNDS)
    starts = np.cumsum([0, *lengths]).astype(np.int32)
    last = bases[-1].num_rounds
    total = None if last is None else int(starts[-1]) + last
    return _join(bases, _concatenated_next, _concatenated_mean, starts, total, "concatenated")


def _transform(
    base: LossSequence, next_loss, mean, *parameters, magnitude: float | None = None
) -> LossSequence:
    """Return the sequence of ``next_loss(base.next, *parameters, ...)``, its mean likewise."""
    return replace(
        base,
        next=Partial(next_loss, base.next, *parameters),
        magnitude=base.magnitude if magnitude is None else magnitude,
        mean=None if base.mean is None else Partial(mean, base.mean, *parameters),
    )


def _join(
    bases: list[LossSequence], next_loss, mean, parameter, length: int | None, name: str
) -> LossSequence:
    """Return the sequence that ``next_loss`` makes of several, its mean likewise."""
    has_mean = all(base.mean is not None for base in bases)
    return LossSequence(
        num_arms=bases[0].num_arms,
        init=Partial(_parts_init, [base.init for base in bases]),
        next=Partial(next_loss, [blind(base) for base in bases], parameter),
        magnitude=max(base.magnitude for base in bases),
        mean=Partial(mean, [base.mean for base in bases], parameter) if has_mean else None,
        length=length,
        name=name,
        sees=most_seen(bases),
    )


def _as_floats(numbers: Any) -> np.ndarray:
    """Return numbers as float64, those beyond float32 as NaN; what are no numbers, as one NaN."""
    try:
        floats = np.asarray(numbers, np.float64)
    except (TypeError, ValueError, OverflowError):
        return np.array(np.nan)
    return np.where(np.abs(floats) <= np.finfo(np.float32).max, floats, np.nan)


def _with_same_arms(losses: Sequence[Any]) -> list[LossSequence]:
    try:
        parts = list(losses)
    except TypeError:
        raise ValueError(f"losses are {losses!r}; give a list of sequences") from None
    bases = [generated(part) for part in parts]
    if not bases:
        raise ValueError("losses is empty; give at least one sequence")
    if len({base.num_arms for base in bases}) > 1:
        raise ValueError(
            f"the sequences have {[base.num_arms for base in bases]} arms; give all the same number"
        )
    return bases


def _scaled_next(next_loss, factor, state, key: Array, round_: Array, *shown: Array):
    state, loss = next_loss(state, key, round_, *shown)
    return state, loss * factor


def _scaled_mean(mean, factor, state, round_: Array) -> Array:
    return factor * mean(state, round_)


def _shifted_next(next_loss, vector: Array, state, key: Array, round_: Array, *shown: Array):
    state, loss = next_loss(state, key, round_, *shown)
    return state, loss + vector


def _shifted_mean(mean, vector: Array, state, round_: Array) -> Array:
    return mean(state, round_) + vector


def _clipped_next(next_loss, low, high, state, key: Array, round_: Array, *shown: Array):
    state, loss = next_loss(state, key, round_, *shown)
    return state, jnp.clip(loss, low, high)


def _envelope(factor, round_: Array) -> Array:
    return jnp.asarray(factor(round_.astype(jnp.float32)), jnp.float32)


def _enveloped_next(next_loss, factor, state, key: Array, round_: Array, *shown: Array):
    state, loss = next_loss(state, key, round_, *shown)
    return state, _envelope(factor, round_) * loss


def _enveloped_mean(mean, factor, state, round_: Array) -> Array:
    return _envelope(factor, round_) * mean(state, round_)


def _permuted_init(init, arms: Array, key: Array):
    order_key, base_key = jax.random.split(key)
    order = jax.random.permutation(order_key, jnp.asarray(arms))
    return order, jax.random.key_data(base_key), init(base_key)


def _permuted_next(next_loss, state, key: Array, round_: Array, *last_arm: Array):
    order, words, inner = state
    places = [jnp.where(arm < 0, arm, order[arm]) for arm in last_arm]
    inner, loss = next_loss(inner, jax.random.wrap_key_data(words), round_, *places)
    return (order, words, inner), loss[order]


def _permuted_mean(mean, state, round_: Array) -> Array:
    order, _, inner = state
    return mean(inner, round_)[order]


def _part_key(key: Array, part: int) -> Array:
    """Return the key of a part, from the largest numbers; the others are for the rounds."""
    return jax.random.fold_in(key, 2**32 - 1 - part)


def _parts_init(inits, key: Array):
    return [init(_part_key(key, part)) for part, init in enumerate(inits)]


def _mixed_next(nexts, chances: Array, states, key: Array, round_: Array, *shown: Array):
    draw = unit(round_words(key, round_, 1))[0]
    choice = jnp.sum(draw >= jnp.cumsum(jnp.asarray(chances))[:-1], dtype=jnp.int32)
    next_states, loss = [], jnp.float32(0)
    for part, (next_loss, state) in enumerate(zip(nexts, states, strict=True)):
        state, part_loss = next_loss(state, _part_key(key, part), round_, *shown)
        next_states.append(state)
        loss = jnp.where(choice == part, part_loss, loss)
    return next_states, loss


def _mixed_mean(means, chances: Array, states, round_: Array) -> Array:
    parts = zip(means, states, strict=True)
    return sum(chances[part] * mean(state, round_) for part, (mean, state) in enumerate(parts))


def _concatenated_next(nexts, starts: Array, states, key: Array, round_: Array, *shown: Array):
    next_states, loss = [], jnp.float32(0)
    for part, (next_loss, state) in enumerate(zip(nexts, states, strict=True)):
        part_round = round_ - starts[part]
        last_arm, law = shown[:1], shown[1:]
        of_part = (*(jnp.where(part_round > 1, arm, -1) for arm in last_arm), *law)
        next_state, part_loss = next_loss(state, _part_key(key, part), part_round, *of_part)
        choose = partial(jnp.where, part_round > 0)
        next_states.append(jax.tree.map(choose, next_state, state))
        loss = choose(part_loss, loss)
    return next_states, loss


def _concatenated_mean(means, starts: Array, states, round_: Array) -> Array:
    loss = jnp.float32(0)
    for part, (mean, state) in enumerate(zip(means, states, strict=True)):
        part_round = round_ - starts[part]
        loss = jnp.where(part_round > 0, mean(state, part_round), loss)
    return loss
