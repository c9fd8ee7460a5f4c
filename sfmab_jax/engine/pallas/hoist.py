"""Do before the kernel what does not depend on the game.

A kernel may not close over arrays, and what depends on parameters alone need not be computed in
every round.
"""

from collections.abc import Sequence
from typing import Any

from sfmab_jax.engine.lanes.jaxpr import Literal, Operation, Tape, bind_of

__all__ = ["hoisted"]


def hoisted(tape: Tape, outside: dict[int, Any]) -> tuple[Tape, dict[int, Any]]:
    """Do what needs no input of the tape; return the rest as a tape, and the values it needs.

    Vectors made of written numbers alone, such as 0, 1, ..., n - 1, stay: to make them again is
    cheaper than to fetch them.
    """
    values = dict(outside)
    written: set[int] = set()
    left: list[Operation] = []
    for operation in tape.operations:
        eqn, operands, results = operation
        variables = [x for x in operands if not isinstance(x, Literal)]
        if not all(x in values for x in variables):
            left.append(operation)
            continue
        bound = [x.value if isinstance(x, Literal) else values[x] for x in operands]
        values.update(zip(results, _evaluate(eqn, bound), strict=True))
        if all(tape.types[x].shape for x in results) and written.issuperset(variables):
            written.update(results)
            left.append(operation)
    used = _used(left, tape.outputs)
    left = [operation for operation in left if used.intersection(operation.results)]
    used = _used(left, tape.outputs)
    needed = {x: value for x, value in values.items() if x in used and x not in written}
    return tape._replace(operations=tuple(left)), needed


def _used(operations: Sequence[Operation], outputs: Sequence[int | Literal]) -> set[int]:
    inputs = [x for operation in operations for x in operation.operands]
    return {x for x in (*inputs, *outputs) if not isinstance(x, Literal)}


def _evaluate(eqn, operands: Sequence[Any]) -> list[Any]:
    result = bind_of(eqn)(*operands)
    return result if eqn.primitive.multiple_results else [result]
