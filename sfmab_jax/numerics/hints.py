"""What the compiler has to be told, and cannot find out.

`keep` is about speed: as a function it is the identity. The lanes (`engine.lanes`) see whole rounds
and decide for themselves what to repeat and what to move into a branch, but not what to store; that
they are told here. `opaque_one`, like `bits.rounded`, is about correctness: without it the compiler
would simplify exact arithmetic away.
"""

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

import jax.numpy as jnp
from jax import Array, lax

__all__ = ["keep", "keeps_results", "opaque_one"]

Function = TypeVar("Function", bound=Callable[..., Any])


def keep(*values: Array) -> tuple[Array, ...]:
    """Return the values; the lanes compute them once, in one loop, and store them.

    Why: XLA on CPU repeats cheap operations for every use of their result, and a long chain of
    them inside a sum over the arms is not vectorised. Which of some hundred values of a round
    deserve a store was measured, and no rule on the operations alone predicted it.

    Give values of one shape: only those with the shape and word size of the first number, and
    truth values of that shape, are stored. Outside the lanes it is an optimization barrier.
    """
    return lax.optimization_barrier(values)


def keeps_results(function: Function) -> Function:
    """Decorate a function whose results are worth storing: `keep` applied to what it returns.

    The function returns one array or a tuple of arrays.
    """

    @wraps(function)
    def wrapper(*args, **kwargs):
        return lax.optimization_barrier(function(*args, **kwargs))

    return wrapper  # type: ignore[return-value]


def opaque_one(like: Array) -> Array:
    """Return 1 in the shape and dtype of ``like``, in a form that XLA does not fold.

    Why: XLA simplifies (1 + p) - 1 to p if it sees the constant 1, but the rounding of 1 + p is
    what is wanted.
    """
    return jnp.where(like == like, jnp.ones_like(like), 0.5)
