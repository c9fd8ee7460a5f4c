"""Compile loops for speed on CPU: no library calls, wide vectors, one function for all rounds."""

import inspect
import os
import threading
from collections import OrderedDict
from collections.abc import Callable
from functools import cache, partial, wraps
from typing import Any

import jax
import numpy as np
from jax.experimental.xla_metadata import set_xla_metadata

from sfmab_jax.engine.lanes.jaxpr import held_jaxprs
from sfmab_jax.engine.lanes.rules import ELEMENTWISE

__all__ = ["compile_loop"]

# Held while any program is compiled: two threads never compile the same one.
_COMPILE_LOCK = threading.Lock()
# A program takes some 5 to 20 MB. A call of `simulate` may have one for each strategy.
_MOST_PROGRAMS = 40
_CPU_OPTIONS: tuple[tuple[str, str | bool], ...] = (
    # XLA's library calls for reductions break the fusion of a round.
    ("xla_cpu_experimental_ynn_fusion_type", ""),
    # The default of 256 leaves half of an AVX-512 register unused.
    ("xla_cpu_prefer_vector_width", "512"),
)
# Minima and maxima in one instruction, which loses a NaN.
_FAST_MIN_MAX = ("xla_cpu_enable_fast_min_max", True)
# What has been tried as one function of machine code: by the strategies at 1 to 100,000 arms and by
# the fuzz of the transform at axes of 1 to 300. XLA refuses other operations, such as sorts and
# callbacks, or even ends the process over them (argmin; any array without elements).
_OPERATIONS_IN_ONE_FUNCTION = ELEMENTWISE | frozenset(
    """
    broadcast_in_dim closed_call concatenate cond custom_jvp_call custom_vjp_call dynamic_slice
    dynamic_update_slice gather iota jit optimization_barrier pad pjit reduce reduce_and reduce_max
    reduce_min reduce_or reduce_prod reduce_sum reshape scan scatter shard_map slice squeeze stack
    stop_gradient transpose unstack while
    """.split()
)
_TYPES_IN_ONE_FUNCTION = frozenset("bool int32 int64 uint32 uint64 float32 float64".split())
_RANK_IN_ONE_FUNCTION = 6


def compile_loop(
    function: Callable,
    platform: str,
    *,
    wrap: Callable[[Callable], Callable] = lambda loop: loop,
    static_argnames: tuple[str, ...] = (),
    donate_argnames: tuple[str, ...] = (),
    exact: bool = True,
) -> Callable[..., Callable[..., Any]]:
    """Return a function of arguments that gives ``function`` compiled for such arguments.

    On CPU it is compiled as one function where XLA can, unless SFMAB_PLAIN_PROGRAMS is set. To look
    up the program takes as long as to call it, so it is done once for many calls. The programs used
    last are kept, and others forgotten.

    Args:
      function: the loop to compile.
      platform: of the devices it will run on.
      wrap: applied to the function before it is compiled, such as to spread it over devices.
      static_argnames, donate_argnames: as in `jax.jit`.
      exact: see `sfmab_jax.engine.lanes`.
    """
    jit = partial(
        jax.jit,
        static_argnames=static_argnames,
        donate_argnames=donate_argnames,
        compiler_options=_compiler_options(platform, exact),
    )
    # By the types of the arguments, not their values: one program serves all numbers.
    programs: OrderedDict[Any, Callable] = OrderedDict()
    lookup_lock = threading.Lock()

    def find(key: Any) -> Callable | None:
        with lookup_lock:
            if key in programs:
                programs.move_to_end(key)
            return programs.get(key)

    def compile_program(*args, **kwargs) -> Callable:
        # JAX keeps what it compiles for as long as the function lives, so each has its own.
        plain = jit(wrap(_copy_of(function)))
        one_function = jit(wrap(_as_one_function(function, static_argnames, donate_argnames)))
        may_be_one = platform == "cpu" and not os.environ.get("SFMAB_PLAIN_PROGRAMS")
        if may_be_one and _try_to_compile(one_function.trace(*args, **kwargs)):
            return one_function
        plain.lower(*args, **kwargs).compile()  # JAX keeps it for the calls that follow
        return plain

    def program_for(*args, **kwargs) -> Callable:
        static = tuple(kwargs.get(name) for name in static_argnames)
        traced = {name: x for name, x in kwargs.items() if name not in static_argnames}
        leaves, tree = jax.tree.flatten((args, traced))
        key = (tree, tuple((np.shape(x), getattr(x, "dtype", type(x))) for x in leaves), static)
        program = find(key)
        if program is None:
            with _COMPILE_LOCK:
                program = find(key)  # another thread may have been first
                if program is None:
                    program = compile_program(*args, **kwargs)
                    with lookup_lock:
                        programs[key] = program
                        if len(programs) > _MOST_PROGRAMS:
                            programs.popitem(last=False)
        return program

    return program_for


def _copy_of(function: Callable) -> Callable:
    @wraps(function)
    def copy(*args, **kwargs):
        return function(*args, **kwargs)

    return copy


def _as_one_function(
    function: Callable, static_argnames: tuple[str, ...], donate_argnames: tuple[str, ...]
) -> Callable:
    """Mark ``function`` so that XLA on CPU emits it as one function of machine code.

    Otherwise every kernel of every round is a call of its own, handed to a pool of threads: for
    rounds of some tens of microseconds that takes half of the time. The mark is the undocumented
    attribute ``xla_cpu_small_call``.

    Args:
      function: the loop to compile.
      static_argnames: as in `jax.jit`.
      donate_argnames: arguments whose arrays are all used in the loop, so that they need not be
        returned to count as used.
    """
    parameters = inspect.signature(function)

    def body(*args, **kwargs):
        # The mark is for the call alone: calls inside it are to be inlined as ever.
        with set_xla_metadata(inlineable="true", xla_cpu_small_call="false"):
            results = function(*args, **kwargs)
        arguments = parameters.bind(*args, **kwargs).arguments
        not_returned = (*static_argnames, *donate_argnames)
        # XLA ends the process over an argument that is not used. Now all are.
        return results, {name: x for name, x in arguments.items() if name not in not_returned}

    call = jax.jit(wraps(function)(body), static_argnames=static_argnames)

    @wraps(function)
    def marked(*args, **kwargs):
        with set_xla_metadata(inlineable="false", xla_cpu_small_call="true"):
            results = call(*args, **kwargs)
        return jax.lax.optimization_barrier(results)[0]

    return marked


def _try_to_compile(traced: Any) -> bool:
    """Compile the program as one function; return whether XLA took it."""
    program = traced.jaxpr
    if program.effects or not _is_tried(program.jaxpr):
        return False
    try:
        traced.lower().compile()  # JAX keeps it for the calls that follow
    except jax.errors.JaxRuntimeError:
        return False
    return True


def _is_tried(jaxpr: Any) -> bool:
    """Whether all operations and arrays are of a kind that was tried as one function."""
    return all(
        eqn.primitive.name in _OPERATIONS_IN_ONE_FUNCTION
        and all(_type_is_tried(atom.aval) for atom in (*eqn.invars, *eqn.outvars))
        and all(map(_is_tried, held_jaxprs(eqn)))
        for eqn in jaxpr.eqns
    )


def _type_is_tried(aval: Any) -> bool:
    shape = getattr(aval, "shape", ())
    name = getattr(getattr(aval, "dtype", None), "name", "")
    return name in _TYPES_IN_ONE_FUNCTION and len(shape) <= _RANK_IN_ONE_FUNCTION and 0 not in shape


@cache
def _compiler_options(platform: str, exact: bool) -> dict[str, str | bool] | None:
    """Return those of the options that this XLA knows."""
    wanted = _CPU_OPTIONS if exact else (*_CPU_OPTIONS, _FAST_MIN_MAX)
    return {k: v for k, v in wanted if platform == "cpu" and _is_known(k, v)} or None


def _is_known(name: str, value: str | bool) -> bool:
    try:
        jax.jit(lambda x: x + 1, compiler_options={name: value}).lower(1.0).compile()
    except Exception:  # an XLA that does not know an option refuses in its own way
        return False
    return True
