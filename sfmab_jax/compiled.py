"""Compiling loops for speed on CPU: no library calls, wide vectors, one function for all rounds."""

import threading
from collections.abc import Callable
from functools import cache, partial, wraps
from typing import Any

import jax
from jax.experimental.xla_metadata import set_xla_metadata
from jax.extend.core import ClosedJaxpr, Jaxpr

__all__ = ["in_one_piece", "jit_loop"]

# Held while a program is first called, lest several threads compile it at the same time.
_COMPILING = threading.Lock()
_CPU_OPTIONS = (
    # XLA's library calls for reductions break the fusion of a round.
    ("xla_cpu_experimental_ynn_fusion_type", ""),
    ("xla_cpu_prefer_vector_width", "512"),
)
# Calls of XLA's own library or of Python, which one piece of machine code cannot make.
_CALLS_OUT = frozenset(
    """
    approx_top_k cholesky debug_callback eig eigh ffi_call geqrf householder_product io_callback lu
    lu_pivots_to_permutation ormqr pure_callback qr schur sort svd top_k triangular_solve
    tridiagonal tridiagonal_solve
    """.split()
)


@cache
def _compiler_options(platform: str) -> dict[str, str] | None:
    """Those of the options that this XLA knows."""
    return {k: v for k, v in _CPU_OPTIONS if platform == "cpu" and _is_known(k, v)} or None


def _is_known(name: str, value: str) -> bool:
    try:
        jax.jit(lambda x: x + 1, compiler_options={name: value}).lower(1.0).compile()
    except Exception:  # an XLA that does not know an option refuses in its own way
        return False
    return True


def in_one_piece(function: Callable, static_argnames: tuple[str, ...] = ()) -> Callable:
    """``function``, marked so that XLA on CPU emits it as one function of machine code.

    Otherwise every kernel of every round is a call of its own, handed to a pool of threads: for
    rounds of some tens of microseconds that takes half of the time.
    """

    def plain(*args, **kwargs):
        # The mark is for the call alone: calls inside it are to be inlined as ever.
        with set_xla_metadata(inlineable="true", xla_cpu_small_call="false"):
            return function(*args, **kwargs)

    call = jax.jit(wraps(function)(plain), static_argnames=static_argnames)

    @wraps(function)
    def marked(*args, **kwargs):
        with set_xla_metadata(inlineable="false", xla_cpu_small_call="true"):
            return call(*args, **kwargs)

    return marked


def _calls_out(jaxpr: Jaxpr) -> bool:
    """Whether an operation is such a call, here or in the functions within.

    Most are refused when XLA compiles them, with noise; but a callback without results makes XLA
    end the whole process.
    """
    for eqn in jaxpr.eqns:
        if eqn.primitive.name in _CALLS_OUT:
            return True
        for value in jax.tree.leaves(eqn.params, is_leaf=_is_function):
            if _is_function(value) and _calls_out(getattr(value, "jaxpr", value)):
                return True
    return False


def _is_function(value: Any) -> bool:
    return isinstance(value, ClosedJaxpr | Jaxpr)


def jit_loop(
    function: Callable,
    platform: str,
    *,
    wrap: Callable[[Callable], Callable] = lambda piece: piece,
    static_argnames: tuple[str, ...] = (),
    donate_argnames: tuple[str, ...] = (),
) -> Callable[..., Any]:
    """``function`` compiled, on CPU in one piece where XLA can: not with sorts or callbacks.

    Args:
      function: a loop over rounds.
      platform: of the devices it will run on.
      wrap: made around the piece, inside the compiled program; given the piece.
      static_argnames, donate_argnames: as in `jax.jit`.
    """
    jit = partial(
        jax.jit,
        static_argnames=static_argnames,
        donate_argnames=donate_argnames,
        compiler_options=_compiler_options(platform),
    )
    plain = jit(wrap(function))
    if platform != "cpu":
        return plain
    whole = jit(wrap(in_one_piece(function, static_argnames)))
    # What has been called, by the shapes of its arguments, and how it went.
    works: dict[Any, bool] = {}

    def run(*args, **kwargs):
        static = tuple(kwargs.get(name) for name in static_argnames)
        traced = {name: x for name, x in kwargs.items() if name not in static_argnames}
        leaves, tree = jax.tree.flatten((args, traced))
        # By type and not by value: a program refused once is not tried again for other numbers.
        key = (tree, tuple(map(jax.typeof, leaves)), static)
        if key not in works:
            with _COMPILING:
                traced = whole.trace(*args, **kwargs).jaxpr
                if traced.effects or _calls_out(traced.jaxpr):
                    works[key] = False
                    return plain(*args, **kwargs)
                try:
                    result = whole(*args, **kwargs)
                except jax.errors.JaxRuntimeError:
                    if any(isinstance(x, jax.Array) and x.is_deleted() for x in leaves):
                        raise  # it was compiled and failed while it ran
                    works[key] = False
                    return plain(*args, **kwargs)
                works[key] = True
                return result
        return (whole if works[key] else plain)(*args, **kwargs)

    return run
