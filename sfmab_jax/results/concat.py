"""Join the results of several calls of `simulate` into one."""

import itertools
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import jax
import numpy as np

from sfmab_jax.results.result import Result, Results

__all__ = ["concat"]

# What all results have in common.
_COMMON = ("losses", "seed", "dtype", "unit", "sees", "delay")


def concat(parts: Sequence[Result | Results]) -> Any:
    """Join results of the same strategies, which have other games of the same run.

    They have the same seeds and loss sequences that follow one upon another, or the same sequences
    and seeds that do, in any order. The result is that of one call that plays them all.

    Args:
      parts: results, as `simulate` returns them; all of one kind.

    >>> import sfmab_jax as sf
    >>> bandit, losses = sf.strategies.uniform(), sf.losses.bernoulli(num_arms=3)
    >>> some = sf.simulate(bandit, losses, num_rounds=50, num_seeds=8)
    >>> more = sf.simulate(bandit, losses, num_rounds=50, num_seeds=16, first_sequence=8)
    >>> concat([some, more]).regret.shape
    (24, 1, 50)
    """
    parts = list(parts)
    if not parts:
        raise ValueError("there are no results to join; give at least one")
    for part in parts:
        if not isinstance(part, Result | Results):
            raise ValueError(
                f"{part!r} is no result; give a list of what simulate(keep='games') returns"
            )
    single = [part for part in parts if isinstance(part, Result)]
    several = [part for part in parts if isinstance(part, Results)]
    if not several:
        return _join(single)
    if single:
        raise ValueError("some are results of one strategy, some of several; give all of one kind")
    names = list(several[0])
    for part in several:
        if set(part) != set(names):
            raise ValueError(
                f"the results have other strategies: {', '.join(part)} and {', '.join(names)}"
            )
    return Results({name: _join([part[name] for part in several]) for name in names})


def _join(parts: list[Result]) -> Result:
    """Join results of one strategy."""
    first = parts[0]
    for part in parts[1:]:
        _check_alike(first, part)
    spans = [_span(part, 0) for part in parts], [_span(part, 1) for part in parts]
    same_sequences, same_seeds = (len(set(axis)) == 1 for axis in spans)
    if same_sequences and same_seeds and len(parts) > 1:
        raise ValueError(
            f"{first.name!r}: the results are of the same games; give each other loss sequences "
            "(first_sequence=) or other seeds (first_seed=)"
        )
    axis = 1 if same_sequences else 0
    if not (same_sequences or same_seeds):
        raise ValueError(
            f"{first.name!r}: both the loss sequences and the seeds differ; join those of the same "
            "sequences, or of the same seeds, first"
        )
    parts = [part for _, part in sorted(zip(spans[axis], parts), key=lambda pair: pair[0])]
    what, argument = (("loss sequences", "first_sequence"), ("seeds", "first_seed"))[axis]
    for one, other in itertools.pairwise(parts):
        end, start = _span(one, axis)[1], _span(other, axis)[0]
        if end != start:
            raise ValueError(
                f"{first.name!r}: {what} up to {end - 1} are followed by those from {start} on; "
                f"give results whose {argument} is {end}"
            )
    if axis == 1 and any(not np.array_equal(part.norms.best, first.norms.best) for part in parts):
        raise ValueError(f"{first.name!r}: the results are on other losses of the same name")

    def joined(*arrays: Any) -> np.ndarray:
        return np.concatenate(arrays, axis=axis)

    norms = first.norms
    if axis == 0:
        of_sequences: dict[str, Any] = {
            name: _joined_or_none([getattr(part.norms, name) for part in parts])
            for name in norms._fields
            if name not in ("num_arms", "rounds")
        }
        norms = norms._replace(**of_sequences)
    kept = set.intersection(*(set(part.kept) for part in parts))
    certificates = [part.certificate for part in parts]
    looks = [part.first_look for part in parts if part.first_look is not None]
    return replace(
        parts[0],
        regret=joined(*(part.regret for part in parts)),
        expected_regret=joined(*(part.expected_regret for part in parts)),
        norms=norms,
        seconds=sum(part.seconds for part in parts),
        records=jax.tree.map(joined, *(part.records for part in parts)),
        certificate=None
        if any(certificate is None for certificate in certificates)
        else jax.tree.map(joined, *certificates),
        kept={name: joined(*(part.kept[name] for part in parts)) for name in sorted(kept)},
        first_look=min(looks, default=None),
        switches=first.switches if "tracking_regret" in kept else None,
        best_switching=_joined_or_none([part.best_switching for part in parts])
        if axis == 0
        else first.best_switching,
    )


def _joined_or_none(columns: list[np.ndarray | None]) -> np.ndarray | None:
    """Join columns of norms; None if some parts lack it."""
    known = [column for column in columns if column is not None]
    return np.concatenate(known) if len(known) == len(columns) else None


def _span(result: Result, axis: int) -> tuple[int, int]:
    """Return the first sequence or seed of a result, and the one after its last."""
    start = (result.first_sequence, result.first_seed)[axis]
    return start, start + result.regret.shape[axis]


def _check_alike(one: Result, other: Result) -> None:
    """Refuse results that are not of the same strategy and run."""
    for name in _COMMON:
        mine, theirs = getattr(one, name), getattr(other, name)
        if mine != theirs:
            raise ValueError(
                f"{one.name!r}: {name} is {mine!r} in one result and {theirs!r} in another; give "
                "results of one run"
            )
    digests = {one.losses_identity, other.losses_identity} - {""}
    if len(digests) > 1:
        raise ValueError(
            f"{one.name!r}: the results are on losses of the same name, {one.losses!r}, with other "
            "parameters; give those of one family"
        )
    if None not in (one.switches, other.switches) and one.switches != other.switches:
        raise ValueError(
            f"{one.name!r}: the results compare with sequences of {one.switches} and of "
            f"{other.switches} switches; give results of one simulate(switches=...)"
        )
    if one.bandit is not other.bandit and one.identity != other.identity:
        raise ValueError(
            f"{one.name!r}: the results are of other strategies of this name; give those of one"
        )
    if not np.array_equal(one.rounds, other.rounds):
        raise ValueError(f"{one.name!r}: the results have other checkpoints; give the same rounds")
