"""Loss sequences made from others."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.tree_util import Partial

from sfmab_jax.checks import check_integer, check_number
from sfmab_jax.losses.base import (
    MOST_ROUNDS,
    LossSequence,
    as_loss_sequence,
    from_function,
    in_float32,
)

__all__ = ["clipped", "concatenated", "enveloped", "mixed", "permuted", "scaled", "shifted"]


def scaled(losses: Any, factor: Array | float) -> LossSequence:
    """c l_t, for a factor c > 0.

    >>> from sfmab_jax.losses import cyclic
    >>> scaled(cyclic(num_arms=3), 1e6).magnitude
    1000000.0
    """
    check_number("scale", factor, positive=True)
    if not isinstance(factor, Array) and not 1e-37 <= factor <= 1e38:
        raise ValueError(f"scale is {factor!r}; losses are float32: give 1e-37 to 1e38")
    base = _generated(losses)
    c = np.float32(factor)
    return replace(
        base,
        next=Partial(_scaled_next, base.next, c),
        magnitude=base.magnitude * float(factor),
        mean=None if base.mean is None else Partial(_scaled_mean, base.mean, c),
    )


def shifted(losses: Any, offset: Any) -> LossSequence:
    """l_t + b, with b a number or a vector [n]."""
    base = _generated(losses)
    vector = np.asarray(offset, np.float32)
    if vector.shape not in ((), (base.num_arms,)) or not np.isfinite(vector).all():
        raise ValueError(
            f"offset is {offset!r}; give a finite number, or one for each of {base.num_arms} arms"
        )
    vector = np.broadcast_to(vector, (base.num_arms,)).copy()
    return replace(
        base,
        next=Partial(_shifted_next, base.next, vector),
        magnitude=base.magnitude + float(np.max(np.abs(vector))),
        mean=None if base.mean is None else Partial(_shifted_mean, base.mean, vector),
    )


def clipped(losses: Any, low: float = 0.0, high: float = 1.0) -> LossSequence:
    """min(high, max(low, l_t)), arm by arm."""
    check_number("low", low)
    check_number("high", high)
    if not low <= high:
        raise ValueError(f"low is {low}, above high, {high}; exchange them")
    base = _generated(losses)
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
    """s_t l_t, with s_t = ``envelope(t, **parameters)`` of the round, a float32 [], any function.

    ``peak`` is the largest of |s_t|, roughly.

    >>> from sfmab_jax.losses import uniform
    >>> enveloped(uniform(), lambda t: jnp.sqrt(t), peak=100.0).magnitude
    120.0
    """
    check_number("peak", peak, positive=True)
    base = _generated(losses)
    factor = Partial(envelope, **in_float32(parameters))
    return replace(
        base,
        next=Partial(_enveloped_next, base.next, factor),
        magnitude=base.magnitude * float(peak),
        mean=None if base.mean is None else Partial(_enveloped_mean, base.mean, factor),
    )


def permuted(losses: Any) -> LossSequence:
    """The same with the arms in a random order, drawn once for each sequence.

    Whatever a strategy does by the number of an arm gains nothing.
    """
    base = _generated(losses)
    return replace(
        base,
        init=Partial(_permuted_init, base.init, np.arange(base.num_arms, dtype=np.int32)),
        next=Partial(_permuted_next, base.next),
        mean=None if base.mean is None else Partial(_permuted_mean, base.mean),
    )


def mixed(losses: Sequence[Any], weights: Sequence[float]) -> LossSequence:
    """In each round the losses of one of the sequences, drawn with these probabilities."""
    bases = _same_arms(losses)
    chances = np.asarray(weights, np.float64)
    if chances.shape != (len(bases),) or not (chances >= 0).all() or not chances.sum() > 0:
        raise ValueError(f"weights are {weights!r}; give {len(bases)}, not negative, not all zero")
    shares = (chances / chances.sum()).astype(np.float32)
    known = all(base.mean is not None for base in bases)
    return LossSequence(
        num_arms=bases[0].num_arms,
        init=Partial(_parts_init, [base.init for base in bases]),
        next=Partial(_mixed_next, [base.next for base in bases], shares),
        magnitude=max(base.magnitude for base in bases),
        mean=Partial(_mixed_mean, [base.mean for base in bases], shares) if known else None,
        length=_shortest(bases),
        name="mixed",
    )


def concatenated(losses: Sequence[Any], lengths: Sequence[int]) -> LossSequence:
    """The first T_1 rounds of the first sequence, then T_2 of the second from its round 1, ...

    The last has as many as are asked for: ``lengths`` has one entry fewer than ``losses``.
    """
    bases = _same_arms(losses)
    if len(lengths) != len(bases) - 1:
        raise ValueError(f"lengths are {list(lengths)!r}; {len(bases)} parts need {len(bases) - 1}")
    for length, base in zip(lengths, bases, strict=False):
        check_integer("length", length, 1, base.num_rounds or MOST_ROUNDS)
    starts = np.cumsum([0, *lengths]).astype(np.int32)
    known = all(base.mean is not None for base in bases)
    last = bases[-1].num_rounds
    return LossSequence(
        num_arms=bases[0].num_arms,
        init=Partial(_parts_init, [base.init for base in bases]),
        next=Partial(_concatenated_next, [base.next for base in bases], starts),
        magnitude=max(base.magnitude for base in bases),
        mean=Partial(_concatenated_mean, [base.mean for base in bases], starts) if known else None,
        length=None if last is None else int(starts[-1]) + last,
        name="concatenated",
    )


def _generated(losses: Any) -> LossSequence:
    """As a generated sequence; a [T, n] array goes to the device as a whole."""
    sequence = as_loss_sequence(losses)
    if sequence.table is None:
        return sequence
    if not isinstance(sequence.table, np.ndarray) or sequence.table.shape[0] != 1:
        raise ValueError(
            f"{sequence.name} is a file or several sequences; combine sequences of a family, or "
            "one array [rounds, arms] in memory"
        )
    table = np.float32(sequence.table[0])
    made = from_function(_row, sequence.num_arms, sequence.magnitude, sequence.name, table=table)
    return replace(made, length=sequence.num_rounds)


def _row(key: Array, round_: Array, *, table: Array) -> Array:
    return jnp.asarray(table)[round_ - 1]


def _same_arms(losses: Sequence[Any]) -> list[LossSequence]:
    bases = [_generated(part) for part in losses]
    if not bases:
        raise ValueError("losses is empty; give at least one sequence")
    if len({base.num_arms for base in bases}) > 1:
        raise ValueError(
            f"the sequences have {[base.num_arms for base in bases]} arms; give as many to each"
        )
    return bases


def _shortest(bases: list[LossSequence]) -> int | None:
    return min((base.num_rounds for base in bases if base.num_rounds is not None), default=None)


def _scaled_next(next_loss, factor, state, key: Array, round_: Array):
    state, loss = next_loss(state, key, round_)
    return state, loss * factor


def _scaled_mean(mean, factor, state, round_: Array) -> Array:
    return factor * mean(state, round_)


def _shifted_next(next_loss, vector: Array, state, key: Array, round_: Array):
    state, loss = next_loss(state, key, round_)
    return state, loss + vector


def _shifted_mean(mean, vector: Array, state, round_: Array) -> Array:
    return mean(state, round_) + vector


def _clipped_next(next_loss, low, high, state, key: Array, round_: Array):
    state, loss = next_loss(state, key, round_)
    return state, jnp.clip(loss, low, high)


def _envelope(factor, round_: Array) -> Array:
    return jnp.asarray(factor(round_.astype(jnp.float32)), jnp.float32)


def _enveloped_next(next_loss, factor, state, key: Array, round_: Array):
    state, loss = next_loss(state, key, round_)
    return state, _envelope(factor, round_) * loss


def _enveloped_mean(mean, factor, state, round_: Array) -> Array:
    return _envelope(factor, round_) * mean(state, round_)


def _permuted_init(init, arms: Array, key: Array):
    own, base = jax.random.split(key)
    order = jax.random.permutation(own, jnp.asarray(arms))
    return order, jax.random.key_data(base), init(base)


def _permuted_next(next_loss, state, key: Array, round_: Array):
    order, words, inner = state
    inner, loss = next_loss(inner, jax.random.wrap_key_data(words), round_)
    return (order, words, inner), loss[order]


def _permuted_mean(mean, state, round_: Array) -> Array:
    order, _, inner = state
    return mean(inner, round_)[order]


def _part_key(key: Array, part: int) -> Array:
    """Rounds are folded in with positive numbers, parts with the largest ones."""
    return jax.random.fold_in(key, 2**32 - 1 - part)


def _parts_init(inits, key: Array):
    return [init(_part_key(key, part)) for part, init in enumerate(inits)]


def _mixed_next(nexts, chances: Array, states, key: Array, round_: Array):
    draw = jax.random.uniform(jax.random.fold_in(key, round_), dtype=jnp.float32)
    drawn = jnp.sum(draw >= jnp.cumsum(jnp.asarray(chances))[:-1], dtype=jnp.int32)
    moved, loss = [], jnp.float32(0)
    for part, (next_loss, state) in enumerate(zip(nexts, states, strict=True)):
        state, here = next_loss(state, _part_key(key, part), round_)
        moved.append(state)
        loss = jnp.where(drawn == part, here, loss)
    return moved, loss


def _mixed_mean(means, chances: Array, states, round_: Array) -> Array:
    parts = zip(means, states, strict=True)
    return sum(chances[part] * mean(state, round_) for part, (mean, state) in enumerate(parts))


def _concatenated_next(nexts, starts: Array, states, key: Array, round_: Array):
    moved, loss = [], jnp.float32(0)
    for part, (next_loss, state) in enumerate(zip(nexts, states, strict=True)):
        own_round = round_ - starts[part]
        after, here = next_loss(state, _part_key(key, part), own_round)
        begun = own_round > 0
        moved.append(jax.tree.map(lambda new, old, go=begun: jnp.where(go, new, old), after, state))
        loss = jnp.where(begun, here, loss)
    return moved, loss


def _concatenated_mean(means, starts: Array, states, round_: Array) -> Array:
    loss = jnp.float32(0)
    for part, (mean, state) in enumerate(zip(means, states, strict=True)):
        own_round = round_ - starts[part]
        loss = jnp.where(own_round > 0, mean(state, own_round), loss)
    return loss
