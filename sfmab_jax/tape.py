"""A function of one game as a list of operations, split into what is done once and each round.

A kernel may not close over arrays, and what depends on parameters alone need not be computed in
every round. So the operations are sorted: those without any input of the game are done before the
kernel and their results handed to it.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.core import Jaxpr, Literal

__all__ = [
    "Known",
    "Operation",
    "Tape",
    "bind_of",
    "hoisted",
    "parts_of_scan",
    "tape_of",
    "tape_of_jaxpr",
]

_CALLS = {
    "closed_call": "call_jaxpr",
    "core_call": "call_jaxpr",
    "custom_jvp_call": "call_jaxpr",
    "custom_vjp_call": "call_jaxpr",
    "jit": "jaxpr",
    "pjit": "jaxpr",
}


class Known(NamedTuple):
    """An operand that is no variable: a number written in the program."""

    value: Any


class Operation(NamedTuple):
    """One primitive operation; variables are numbered."""

    eqn: Any
    operands: tuple[int | Known, ...]
    results: tuple[int, ...]


class Tape(NamedTuple):
    """Operations in order, calls written out; only loops hold functions of their own."""

    inputs: tuple[int, ...]
    operations: tuple[Operation, ...]
    outputs: tuple[int | Known, ...]
    types: dict[int, Any]  # of each variable, with shape and dtype


def tape_of(function: Callable[..., Any], *examples: Any) -> tuple[Tape, dict[int, Any], Any]:
    """The tape of ``function`` of one game, the values it closes over, and its output's shapes."""
    trace: Any = jax.make_jaxpr(function, return_shape=True)
    closed, shapes = trace(*examples)
    tape = tape_of_jaxpr(closed.jaxpr)
    num_consts = len(closed.consts)
    outside = dict(zip(tape.inputs[:num_consts], closed.consts, strict=True))
    return tape._replace(inputs=tape.inputs[num_consts:]), outside, shapes


def tape_of_jaxpr(jaxpr: Jaxpr) -> Tape:
    """The tape of a jaxpr; its constants come first among the inputs."""
    types: dict[int, Any] = {}
    operations: list[Operation] = []
    done: dict[Any, tuple[int, ...]] = {}

    def new(var) -> int:
        types[len(types)] = var.aval
        return len(types) - 1

    def write_out(jaxpr: Jaxpr, names: dict[Any, int | Known]) -> list[int | Known]:
        def read(atom) -> int | Known:
            return Known(atom.val) if isinstance(atom, Literal) else names[atom]

        for eqn in jaxpr.eqns:
            operands = tuple(read(atom) for atom in eqn.invars)
            call = _CALLS.get(eqn.primitive.name)
            if call is None:
                results = done.get(key := _same(eqn, operands))
                if results is None:
                    results = tuple(new(var) for var in eqn.outvars)
                    operations.append(Operation(eqn, operands, results))
                    if key is not None:
                        done[key] = results
                names.update(zip(eqn.outvars, results, strict=True))
            else:
                inner = eqn.params[call]
                consts = [Known(value) for value in inner.consts]
                inputs = (*inner.jaxpr.constvars, *inner.jaxpr.invars)
                given = dict(zip(inputs, (*consts, *operands), strict=True))
                names.update(zip(eqn.outvars, write_out(inner.jaxpr, given), strict=True))
        return [read(atom) for atom in jaxpr.outvars]

    names = {var: new(var) for var in (*jaxpr.constvars, *jaxpr.invars)}
    outputs = write_out(jaxpr, dict(names))
    return Tape(tuple(names.values()), tuple(operations), tuple(outputs), types)


def _same(eqn, operands: tuple[int | Known, ...]) -> Any:
    """Equal for operations that do the same to the same; None where that cannot be told."""
    read = tuple(_number(x.value) if isinstance(x, Known) else x for x in operands)
    key = (eqn.primitive.name, read, tuple(sorted(eqn.params.items(), key=lambda item: item[0])))
    try:
        hash(key)
    except TypeError:
        return None
    return None if eqn.effects or None in read else key


def _number(value: Any) -> tuple[Any, ...] | None:
    """A written number by its bits and types; None for vectors and for what is still traced."""
    if isinstance(value, jax.core.Tracer) or jnp.ndim(value):
        return None
    exact = np.asarray(value)
    return type(value), exact.dtype.str, exact.tobytes()


def bind_of(eqn) -> Callable[..., Any]:
    """The operation of ``eqn`` as a function of its operands."""
    bound = eqn.primitive.get_bind_params(eqn.params)
    # JAX before 0.10 gives a pair: functions to be bound first, and the parameters.
    functions, params = bound if isinstance(bound, tuple) else ((), bound)
    return partial(eqn.primitive.bind, *functions, **params)


def parts_of_scan(eqn) -> tuple[int, int]:
    """The numbers of constants and of carried values, the first and second among the operands.

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
    return num_unscanned - num_carry, num_carry


def hoisted(tape: Tape, outside: dict[int, Any]) -> tuple[Tape, dict[int, Any]]:
    """Does what needs no input of the tape; the rest as a tape, and the values that it needs.

    Vectors made of written numbers alone, such as 0, 1, ..., n - 1, stay: to make them again is
    cheaper than to fetch them.
    """
    values = dict(outside)
    written: set[int] = set()
    left: list[Operation] = []
    for operation in tape.operations:
        eqn, operands, results = operation
        variables = [x for x in operands if not isinstance(x, Known)]
        if not all(x in values for x in variables):
            left.append(operation)
            continue
        bound = [x.value if isinstance(x, Known) else values[x] for x in operands]
        values.update(zip(results, _evaluate(eqn, bound), strict=True))
        if all(tape.types[x].shape for x in results) and written.issuperset(variables):
            written.update(results)
            left.append(operation)
    used = _used(left, tape.outputs)
    left = [operation for operation in left if used.intersection(operation.results)]
    used = _used(left, tape.outputs)
    needed = {x: value for x, value in values.items() if x in used and x not in written}
    return tape._replace(operations=tuple(left)), needed


def _used(operations: Sequence[Operation], outputs: Sequence[int | Known]) -> set[int]:
    inputs = [x for operation in operations for x in operation.operands]
    return {x for x in (*inputs, *outputs) if not isinstance(x, Known)}


def _evaluate(eqn, operands: Sequence[Any]) -> list[Any]:
    result = bind_of(eqn)(*operands)
    return result if eqn.primitive.multiple_results else [result]
