"""Compiling loops for speed on CPU: no library calls, wide vectors, one function for all rounds."""

import inspect
import os
import threading
from collections.abc import Callable
from functools import cache, partial, wraps
from typing import Any

import jax
import numpy as np
from jax.experimental.xla_metadata import set_xla_metadata
from jax.extend.core import ClosedJaxpr, Jaxpr

from sfmab_jax.lane_operations import ELEMENTWISE

__all__ = ["in_one_piece", "jit_loop"]

# Held while a program is compiled, lest several threads compile it at the same time.
_COMPILING = threading.Lock()
_CPU_OPTIONS: tuple[tuple[str, str | bool], ...] = (
    # XLA's library calls for reductions break the fusion of a round.
    ("xla_cpu_experimental_ynn_fusion_type", ""),
    ("xla_cpu_prefer_vector_width", "512"),
)
_NO_NANS = ("xla_cpu_enable_fast_min_max", True)
# Besides the elementwise ones, the operations known to go into one piece of machine code. Others,
# such as sorts and callbacks, are refused by XLA, or even make it end the process (argmin).
_IN_ONE_PIECE = ELEMENTWISE | frozenset(
    """
    broadcast_in_dim closed_call concatenate cond custom_jvp_call custom_vjp_call dynamic_slice
    dynamic_update_slice gather iota jit optimization_barrier pad pjit reduce reduce_and reduce_max
    reduce_min reduce_or reduce_prod reduce_sum reshape scan scatter shard_map slice squeeze stack
    stop_gradient transpose while
    """.split()
)


@cache
def _compiler_options(platform: str, no_nans: bool) -> dict[str, str | bool] | None:
    """Those of the options that this XLA knows."""
    wanted = (*_CPU_OPTIONS, _NO_NANS) if no_nans else _CPU_OPTIONS
    return {k: v for k, v in wanted if platform == "cpu" and _is_known(k, v)} or None


def _is_known(name: str, value: str | bool) -> bool:
    try:
        jax.jit(lambda x: x + 1, compiler_options={name: value}).lower(1.0).compile()
    except Exception:  # an XLA that does not know an option refuses in its own way
        return False
    return True


def in_one_piece(
    function: Callable,
    static_argnames: tuple[str, ...] = (),
    donate_argnames: tuple[str, ...] = (),
) -> Callable:
    """``function``, marked so that XLA on CPU emits it as one function of machine code.

    Otherwise every kernel of every round is a call of its own, handed to a pool of threads: for
    rounds of some tens of microseconds that takes half of the time.

    Args:
      function: its results.
      static_argnames: as in `jax.jit`.
      donate_argnames: arguments every one of whose arrays goes into a loop.
    """
    parameters = inspect.signature(function)

    def plain(*args, **kwargs):
        # The mark is for the call alone: calls inside it are to be inlined as ever.
        with set_xla_metadata(inlineable="true", xla_cpu_small_call="false"):
            results = function(*args, **kwargs)
        given = parameters.bind(*args, **kwargs).arguments
        apart = (*static_argnames, *donate_argnames)
        # XLA ends the process over an argument that is not used. Now all are.
        return results, {name: x for name, x in given.items() if name not in apart}

    call = jax.jit(wraps(function)(plain), static_argnames=static_argnames)

    @wraps(function)
    def marked(*args, **kwargs):
        with set_xla_metadata(inlineable="false", xla_cpu_small_call="true"):
            results = call(*args, **kwargs)
        return jax.lax.optimization_barrier(results)[0]

    return marked


def _fits_in_one_piece(jaxpr: Any) -> bool:
    """Whether all operations are known to, here and in the functions within."""
    return all(
        eqn.primitive.name in _IN_ONE_PIECE
        and all(
            _fits_in_one_piece(getattr(value, "jaxpr", value))
            for value in jax.tree.leaves(eqn.params, is_leaf=_is_function)
            if _is_function(value)
        )
        for eqn in jaxpr.eqns
    )


def _is_function(value: Any) -> bool:
    return isinstance(value, ClosedJaxpr | Jaxpr)


def jit_loop(
    function: Callable,
    platform: str,
    *,
    wrap: Callable[[Callable], Callable] = lambda piece: piece,
    static_argnames: tuple[str, ...] = (),
    donate_argnames: tuple[str, ...] = (),
    no_nans: bool = False,
) -> Callable[..., Callable[..., Any]]:
    """A function of arguments that gives ``function`` compiled for such arguments.

    On CPU it is compiled in one piece where XLA can, unless SFMAB_PLAIN_PROGRAMS is set: XLA has
    been seen to end the process on such a program. To look up the program takes as long as to
    call it, so it is done once for many calls.

    Args:
      function: a loop over rounds.
      platform: of the devices it will run on.
      wrap: made around the piece, inside the compiled program; given the piece.
      static_argnames, donate_argnames: as in `jax.jit`.
      no_nans: whether minima and maxima need not pass on a NaN, which is faster.
    """
    jit = partial(
        jax.jit,
        static_argnames=static_argnames,
        donate_argnames=donate_argnames,
        compiler_options=_compiler_options(platform, no_nans),
    )
    plain = jit(wrap(function))
    whole = jit(wrap(in_one_piece(function, static_argnames, donate_argnames)))
    # By the types of the arguments, not their values: one program serves all numbers.
    chosen: dict[Any, Callable] = {}

    def choose(*args, **kwargs) -> Callable:
        static = tuple(kwargs.get(name) for name in static_argnames)
        traced = {name: x for name, x in kwargs.items() if name not in static_argnames}
        leaves, tree = jax.tree.flatten((args, traced))
        key = (tree, tuple((np.shape(x), getattr(x, "dtype", type(x))) for x in leaves), static)
        if key in chosen:
            return chosen[key]
        with _COMPILING:
            if key not in chosen:  # another thread may have been first
                asked = platform == "cpu" and not os.environ.get("SFMAB_PLAIN_PROGRAMS")
                one_piece = asked and _compiles(whole.trace(*args, **kwargs))
                if not one_piece:
                    plain.lower(*args, **kwargs).compile()
                chosen[key] = whole if one_piece else plain
        return chosen[key]

    return choose


def _compiles(traced: Any) -> bool:
    """Whether XLA takes the program in one piece; then it is compiled."""
    program = traced.jaxpr
    if program.effects or not _fits_in_one_piece(program.jaxpr):
        return False
    try:
        traced.lower().compile()
    except jax.errors.JaxRuntimeError:
        return False
    return True
