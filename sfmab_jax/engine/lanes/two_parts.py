"""What of a function depends on one argument: all that does so alone, apart from the rest."""

from collections.abc import Callable, Iterable
from typing import Any

import jax

from sfmab_jax.engine.lanes.jaxpr import Literal, Operation, bind_of, tape_of
from sfmab_jax.numerics.hints import keep

__all__ = ["depends_on_first", "in_two_parts"]


def in_two_parts(
    function: Callable[..., Any], first: Any, *others: Any
) -> tuple[Callable[[Any], list[Any]], Callable[..., Any]]:
    """Return ``early``, ``late`` with ``function(first, *others) = late(early(first), *others)``.

    ``early`` does all that depends on ``first`` but on none of the others. Its results are stored,
    so that both parts can be mapped in different ways and round as they do everywhere else.

    Args:
      function: of arrays, or trees of them.
      first: an array, or its shape and dtype.
      *others: trees of arrays, or their shapes and dtypes.
    """
    tape, outside, shapes = tape_of(function, first, *others)
    first_input, *other_inputs = tape.inputs
    depends = {first_input}  # on the first argument, and not on the others
    fixed = set(outside)  # depends on no argument
    shared, early, late = [], [], []  # operations
    for operation in tape.operations:
        operands = {x for x in operation.operands if isinstance(x, int)}
        movable = operands <= depends | fixed and not operation.eqn.effects
        if movable and not operands & depends:
            shared.append(operation)
            fixed.update(operation.results)
        elif movable:
            early.append(operation)
            depends.update(operation.results)
        else:
            late.append(operation)
    used = [x for operation in late for x in operation.operands] + list(tape.outputs)
    handed_on = sorted(depends.intersection(x for x in used if isinstance(x, int)))

    def run_early(first: Any) -> list[Any]:
        values = _run([*shared, *early], {**outside, first_input: first})
        return [keep(values[x])[0] for x in handed_on]

    def run_late(handed: list[Any], *others: Any) -> Any:
        given = dict(zip(other_inputs, jax.tree.leaves(others), strict=True))
        given.update(zip(handed_on, handed, strict=True))
        values = _run([*shared, *late], {**outside, **given})
        results = [x.value if isinstance(x, Literal) else values[x] for x in tape.outputs]
        return jax.tree.unflatten(jax.tree.structure(shapes), results)

    return run_early, run_late


def depends_on_first(function: Callable[..., Any], first: Any, *others: Any) -> bool:
    """Whether a result of ``function(first, *others)`` depends on ``first``, as far as is traced.

    Args:
      function: of arrays, or trees of them.
      first: an array, or its shape and dtype.
      *others: trees of arrays, or their shapes and dtypes.
    """
    tape, _, _ = tape_of(function, first, *others)
    depends = {tape.inputs[0]}
    for operation in tape.operations:
        if depends.intersection(x for x in operation.operands if isinstance(x, int)):
            depends.update(operation.results)
    return bool(depends.intersection(x for x in tape.outputs if isinstance(x, int)))


def _run(operations: Iterable[Operation], values: dict[int, Any]) -> dict[int, Any]:
    """Return the values with those of the operations, done in order."""
    values = dict(values)
    for eqn, operands, results in operations:
        given = [x.value if isinstance(x, Literal) else values[x] for x in operands]
        result = bind_of(eqn)(*given)
        values.update(zip(results, result if eqn.primitive.multiple_results else [result]))
    return values
