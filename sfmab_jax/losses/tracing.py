"""Check losses by tracing them: their shapes and states, and that chance comes from the key."""

import weakref
from collections.abc import Callable, Iterator
from contextlib import suppress
from textwrap import shorten
from typing import Any

import jax
import numpy as np
from jax.extend.core import ClosedJaxpr, Jaxpr, Literal

from sfmab_jax.base import has_own_functions, static_functions, with_static_functions
from sfmab_jax.checks import (
    PartError,
    check_kept,
    naming_errors,
    refusing,
    strongly_typed,
    warn_user,
)
from sfmab_jax.numerics.threefry import pinned_generator, root_key

__all__ = ["check_losses"]


@pinned_generator()
def check_losses(
    name: str,
    init: Callable[..., Any],
    next_loss: Callable[..., Any],
    num_arms: int,
    shown: tuple[np.ndarray, ...],
) -> None:
    """Raise ValueError unless a loss is [n]: fewer would be filled up with zeros, silently.

    Args:
      name: of the losses.
      init, next_loss, num_arms: see `LossSequence`.
      shown: what they are shown of the play in round 1.
    """
    family = with_static_functions((init, next_loss))
    if has_own_functions(family):
        loss = _traced_first_loss.eval_shape(*family, root_key(0), np.int32(1), *shown)
    else:
        with refusing():
            loss = _trace_users_loss(name, family, shown)
    if not isinstance(loss, jax.ShapeDtypeStruct):
        raise ValueError(f"{name} returns {loss!r}; return the losses of the arms, an array")
    if loss.shape != (num_arms,):
        raise ValueError(
            f"{name} returns losses of shape {list(loss.shape)}; num_arms is {num_arms}, so return "
            f"[{num_arms}]"
        )


def _first_loss(init: Callable[..., Any], next_loss: Callable[..., Any], key, *given) -> Any:
    return next_loss(init(key), key, *given)[1]


_traced_first_loss = jax.jit(_first_loss)
# Functions of users whose numbers were found to be the same whenever they are traced.
_WITH_FIXED_NUMBERS: weakref.WeakSet[Callable[..., Any]] = weakref.WeakSet()


def _trace_users_loss(
    name: str,
    family: tuple[Callable[..., Any], Callable[..., Any]],
    shown: tuple[np.ndarray, ...],
) -> Any:
    """Return the type of a loss; refuse numbers drawn from a generator of NumPy's or Python's.

    These become constants of the program, the same in every round of every sequence. A second trace
    has others.
    """
    what = f"the function of losses {name!r}"
    init, next_loss = family

    def first_state(key):
        with naming_errors(what):
            return init(key)

    def first_loss(state, key, *given):
        with naming_errors(what):
            returned = next_loss(state, key, *given)
        if not isinstance(returned, tuple | list) or len(returned) != 2:
            raise PartError(f"{what} returns no pair; return (the next state, the losses [n])")
        if not isinstance(returned[1], jax.Array | np.ndarray):
            raise PartError(
                f"{name} returns {shorten(repr(returned[1]), 80)}; return the losses of the arms, "
                "an array"
            )
        return returned

    def trace() -> tuple[list[Any], Any, Any, Any, ClosedJaxpr]:
        # Functions of their own each time, as JAX holds on to what it has traced.
        begin = jax.make_jaxpr(lambda key: first_state(key), return_shape=True)
        play = jax.make_jaxpr(lambda *given: first_loss(*given), return_shape=True)
        key = root_key(0)
        start, before = begin(key)
        before = strongly_typed(before)
        program, (after, loss) = play(before, key, np.int32(1), *shown)
        programs = (start, program)
        consts = [x for one in programs for x in (*one.consts, *_literals(one.jaxpr))]
        return consts, before, after, loss, program

    numbers, before, after, loss, program = trace()
    check_kept(what, "state", before, after)
    new = [function for function in static_functions(family) if not _has_fixed_numbers(function)]
    if not new:
        return loss
    for one, other in zip(numbers, trace()[0]):
        if _differ(one, other):
            raise PartError(
                f"{what} has other numbers each time it is read, "
                f"{shorten(str(one), 40)} and {shorten(str(other), 40)}: it draws them from a "
                "generator of NumPy's or Python's, and every round of every sequence would have "
                "the same; draw from the key, as jax.random.uniform(key, (num_arms,)), or once "
                "and outside the function"
            )
    if _draws_the_same(program.jaxpr):
        warn_user(
            f"{what} draws from a key of its own, and reads neither the key nor the round that it "
            "is given: every round of every sequence has the same losses; draw from the key given"
        )
    for function in new:
        with suppress(TypeError):  # of a kind that cannot be kept in a set
            _WITH_FIXED_NUMBERS.add(function)
    return loss


def _draws_the_same(jaxpr: Jaxpr) -> bool:
    """Whether the last result, the losses, has draws but depends on nothing that is given."""
    known, draws = set(jaxpr.invars), False
    for eqn in jaxpr.eqns:
        if known.intersection(x for x in eqn.invars if not isinstance(x, Literal)):
            known.update(eqn.outvars)
        else:
            draws |= "random" in str(eqn.primitive)
    losses = jaxpr.outvars[-1]
    return draws and (isinstance(losses, Literal) or losses not in known)


def _has_fixed_numbers(function: Callable[..., Any]) -> bool:
    try:
        return function in _WITH_FIXED_NUMBERS
    except TypeError:
        return False


def _differ(one: Any, other: Any) -> bool:
    """Whether two constants of one shape have other numbers; keys are taken to be the same."""
    dtype = getattr(one, "dtype", None)
    is_key = dtype is not None and jax.dtypes.issubdtype(dtype, jax.dtypes.extended)
    if one is other or is_key or np.shape(one) != np.shape(other):
        return False
    return not np.array_equal(np.asarray(one), np.asarray(other), equal_nan=True)


def _literals(jaxpr: Jaxpr) -> Iterator[Any]:
    """Yield the numbers that are written in a program, calls and loops included."""
    for eqn in jaxpr.eqns:
        yield from (x.val for x in eqn.invars if isinstance(x, Literal))
        for inner in jax.tree.leaves(list(eqn.params.values())):
            if isinstance(inner, ClosedJaxpr):
                yield from inner.consts
                yield from _literals(inner.jaxpr)
            elif isinstance(inner, Jaxpr):
                yield from _literals(inner)
    yield from (x.val for x in jaxpr.outvars if isinstance(x, Literal))
