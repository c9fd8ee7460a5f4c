"""Do before the kernel what does not depend on the game.

A kernel may not close over arrays, and what depends on parameters alone need not be computed in
every round.
"""

from collections.abc import Sequence
from typing import Any

from sfmab_jax.engine.lanes.jaxpr import Literal, Operation, Tape, bind_of

__all__ = ["hoist"]


def hoist(tape: Tape, outside: dict[int, Any]) -> tuple[Tape, dict[int, Any]]:
    """Do what needs no input of the tape; return the rest as a tape, and the values it needs.

    Vectors made of literals alone, such as 0, 1, ..., n - 1, stay in the tape: to compute them in
    the kernel is cheaper than to load them.
    """
    values = dict(outside)
    from_literals: set[int] = set()
    remaining: list[Operation] = []
    for operation in tape.operations:
        eqn, operands, results = operation
        variables = [x for x in operands if not isinstance(x, Literal)]
        if not all(x in values for x in variables):
            remaining.append(operation)
            continue
        bound = [x.value if isinstance(x, Literal) else values[x] for x in operands]
        values.update(zip(results, _evaluate(eqn, bound), strict=True))
        if all(tape.types[x].shape for x in results) and from_literals.issuperset(variables):
            from_literals.update(results)
            remaining.append(operation)
    used = {x for x in tape.outputs if not isinstance(x, Literal)}
    kept: list[Operation] = []
    for operation in reversed(remaining):
        if used.intersection(operation.results):
            used.update(x for x in operation.operands if not isinstance(x, Literal))
            kept.append(operation)
    needed = {x: value for x, value in values.items() if x in used and x not in from_literals}
    return tape._replace(operations=tuple(reversed(kept))), needed


def _evaluate(eqn, operands: Sequence[Any]) -> list[Any]:
    result = bind_of(eqn)(*operands)
    return result if eqn.primitive.multiple_results else [result]
