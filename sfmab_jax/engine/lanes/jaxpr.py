"""A traced function as a flat list of operations, with calls written out.

What `jax.make_jaxpr` gives is a tree of calls; the batching transform and the kernel want one list
in which equal operations are done once.
"""

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, NamedTuple, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.core import ClosedJaxpr, Jaxpr
from jax.extend.core import Literal as JaxLiteral

__all__ = [
    "CALLS",
    "Laned",
    "Literal",
    "Operation",
    "Tape",
    "bind_of",
    "held_jaxprs",
    "parts_of_scan",
    "parts_of_while",
    "tape_of",
    "tape_of_jaxpr",
    "variables",
]

CALLS = {
    "closed_call": "call_jaxpr",
    "core_call": "call_jaxpr",
    "custom_jvp_call": "call_jaxpr",
    "custom_vjp_call": "call_jaxpr",
    "jit": "jaxpr",
    "pjit": "jaxpr",
}
_FUNCTIONS = (ClosedJaxpr, Jaxpr)
T = TypeVar("T")


class Laned(NamedTuple):
    """A value, and whether its last axis is the lanes; without them it is the same in all."""

    value: Any
    in_lanes: bool


class Literal(NamedTuple):
    """A number written in the program, as an operand."""

    value: Any


class Operation(NamedTuple):
    """One primitive operation; variables are numbered."""

    eqn: Any
    operands: tuple[int | Literal, ...]
    results: tuple[int, ...]


class Tape(NamedTuple):
    """Operations in order, calls written out; only loops and choices hold functions."""

    inputs: tuple[int, ...]
    operations: tuple[Operation, ...]
    outputs: tuple[int | Literal, ...]
    types: dict[int, Any]  # of each variable, with shape and dtype


def tape_of(function: Callable[..., Any], *examples: Any) -> tuple[Tape, dict[int, Any], Any]:
    """Return the tape of a function, the values it closes over, and the shapes of its results."""
    trace: Any = jax.make_jaxpr(function, return_shape=True)
    closed, shapes = trace(*examples)
    tape = tape_of_jaxpr(closed.jaxpr)
    num_consts = len(closed.consts)
    outside = dict(zip(tape.inputs[:num_consts], closed.consts, strict=True))
    return tape._replace(inputs=tape.inputs[num_consts:]), outside, shapes


def tape_of_jaxpr(jaxpr: Jaxpr) -> Tape:
    """Return the tape of a jaxpr; its constants come first among the inputs."""
    types: dict[int, Any] = {}
    operations: list[Operation] = []
    results_of: dict[Any, tuple[int, ...]] = {}

    def new(var) -> int:
        types[len(types)] = var.aval
        return len(types) - 1

    def write_out(jaxpr: Jaxpr, names: dict[Any, int | Literal]) -> list[int | Literal]:
        def read(atom) -> int | Literal:
            return Literal(atom.val) if isinstance(atom, JaxLiteral) else names[atom]

        for eqn in jaxpr.eqns:
            operands = tuple(read(atom) for atom in eqn.invars)
            call = CALLS.get(eqn.primitive.name)
            if call is None:
                results = results_of.get(key := _same(eqn, operands))
                if results is None:
                    results = tuple(new(var) for var in eqn.outvars)
                    operations.append(Operation(eqn, operands, results))
                    if key is not None:
                        results_of[key] = results
                names.update(zip(eqn.outvars, results, strict=True))
            else:
                inner = eqn.params[call]
                consts = [Literal(value) for value in inner.consts]
                inputs = (*inner.jaxpr.constvars, *inner.jaxpr.invars)
                inner_names = dict(zip(inputs, (*consts, *operands), strict=True))
                names.update(zip(eqn.outvars, write_out(inner.jaxpr, inner_names), strict=True))
        return [read(atom) for atom in jaxpr.outvars]

    names = {var: new(var) for var in (*jaxpr.constvars, *jaxpr.invars)}
    outputs = write_out(jaxpr, dict(names))
    return Tape(tuple(names.values()), tuple(operations), tuple(outputs), types)


def _same(eqn, operands: tuple[int | Literal, ...]) -> Any:
    """Return a key that is equal for operations with equal results; None if that is not known."""
    read = tuple(_number(x.value) if isinstance(x, Literal) else x for x in operands)
    key = (eqn.primitive.name, read, tuple(sorted(eqn.params.items(), key=lambda item: item[0])))
    try:
        hash(key)
    except TypeError:
        return None
    return None if eqn.effects or None in read else key


def _number(value: Any) -> tuple[Any, ...] | None:
    """Return a literal by its bits and types; None for vectors and traced values."""
    if isinstance(value, jax.core.Tracer) or jnp.ndim(value):
        return None
    exact = np.asarray(value)
    return type(value), exact.dtype.str, exact.tobytes()


def bind_of(eqn) -> Callable[..., Any]:
    """Return the operation of an equation as a function of its operands."""
    bound = eqn.primitive.get_bind_params(eqn.params)
    # JAX before 0.10 gives a pair: functions to be bound first, and the parameters.
    functions, params = bound if isinstance(bound, tuple) else ((), bound)
    return partial(eqn.primitive.bind, *functions, **params)


def parts_of_scan(eqn, operands: Sequence[T]) -> tuple[Sequence[T], Sequence[T], Sequence[T]]:
    """Split the operands of a scan: constants, the carry, and what it runs over.

    By their shapes, as versions of JAX differ in how they say it: what a scan runs over and what
    it stacks has a leading axis more outside than inside.
    """
    inside = eqn.params["jaxpr"]
    num_carry = sum(
        var.aval.shape == aval.shape for var, aval in zip(eqn.outvars, inside.out_avals)
    )
    num_unscanned = sum(
        var.aval.shape == aval.shape for var, aval in zip(eqn.invars, inside.in_avals)
    )
    num_consts = num_unscanned - num_carry
    return operands[:num_consts], operands[num_consts:num_unscanned], operands[num_unscanned:]


def parts_of_while(eqn, operands: Sequence[T]) -> tuple[Sequence[T], Sequence[T], Sequence[T]]:
    """Split the operands of a while loop: constants of its condition and its body, the carry."""
    num_cond_consts = eqn.params["cond_nconsts"]
    num_consts = num_cond_consts + eqn.params["body_nconsts"]
    return operands[:num_cond_consts], operands[num_cond_consts:num_consts], operands[num_consts:]


def variables(atoms: Iterable[Any]) -> set[Any]:
    """Return those of a jaxpr's atoms that are no literals."""
    return {atom for atom in atoms if not isinstance(atom, JaxLiteral)}


def held_jaxprs(eqn) -> list[Jaxpr]:
    """Return the functions that an operation holds: bodies of loops, branches of choices."""
    held = jax.tree.leaves(eqn.params, is_leaf=lambda x: isinstance(x, _FUNCTIONS))
    return [x.jaxpr if isinstance(x, ClosedJaxpr) else x for x in held if isinstance(x, _FUNCTIONS)]
