"""Replay the operations of one game inside a kernel, which allows fewer of them than the lanes.

A vector over the arms is held as [N, W], N the next power of two and W the lanes, because Triton
has arrays of such sizes only.
"""

from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
from jax import Array, lax

from sfmab_jax.engine.lanes.jaxpr import (
    Literal,
    Operation,
    Tape,
    bind_of,
    parts_of_scan,
    tape_of_jaxpr,
)
from sfmab_jax.engine.lanes.rules import ELEMENTWISE
from sfmab_jax.engine.layout import padded_shape
from sfmab_jax.engine.pallas.rules import RULES, TPU_FUNCTIONS, has_rule, row_of, with_row

__all__ = ["run_tape", "unsupported_operation"]

# Loops, and the functions they hold.
_LOOPS = {"scan": ("jaxpr",), "while": ("cond_jaxpr", "body_jaxpr")}

Value = tuple[Any, bool]  # and whether it has lanes; without them it is one number

# What they ask for is how values are spread and made, of which a kernel knows nothing.
_IDENTITIES = frozenset({"optimization_barrier", "reshard"})


def run_tape(tape: Tape, known: dict[int, Value], width: int, platform: str) -> list[Any]:
    """Return the outputs of a tape, all with lanes.

    Args:
      tape: see `engine.lanes.jaxpr`.
      known: of each variable given, its value [*padded shape, W] and True, or a number and False.
      width: W.
      platform: "tpu" has its own way with some functions.
    """
    known = dict(known)

    def read(operand) -> Value:
        return (operand.value, False) if isinstance(operand, Literal) else known[operand]

    for operation in tape.operations:
        values, flags = zip(*map(read, operation.operands)) if operation.operands else ((), ())
        results = _apply(operation.eqn, values, flags, width, platform)
        known.update(zip(operation.results, results, strict=True))
    return [_spread(*read(output), (), width) for output in tape.outputs]


def unsupported_operation(operations: Sequence[Operation]) -> str | None:
    """Return the name of an operation, with its shapes, that kernels do not have; or None."""
    for eqn, _, _ in operations:
        name = eqn.primitive.name
        if name in _LOOPS or name == "cond":
            held = [eqn.params[part] for part in _LOOPS.get(name, ())]
            inner = [tape_of_jaxpr(f.jaxpr) for f in (*held, *eqn.params.get("branches", ()))]
            unsupported = [unsupported_operation(tape.operations) for tape in inner]
            unsupported.append("scan in reverse" if eqn.params.get("reverse") else None)
            if any(unsupported):
                return next(filter(None, unsupported))
        elif name not in ELEMENTWISE | _IDENTITIES and not has_rule(eqn):
            shapes = ", ".join(str(list(var.aval.shape)) for var in eqn.invars)
            return f"{name} of {shapes}"
    return None


def _apply(eqn, values, flags, width: int, platform: str) -> list[Value]:
    """Do one operation with the lanes last."""
    name = eqn.primitive.name
    shapes = [var.aval.shape for var in eqn.invars]
    out = eqn.outvars[0].aval.shape
    if name == "scan":
        return _scan(eqn, values, flags, width, platform)
    if name == "while":
        return _while(eqn, values, flags, width, platform)
    if name in _IDENTITIES:
        return list(zip(values, flags))
    if name == "cond":
        return _cond(eqn, values, flags, width, platform)
    if not any(flags) and out == () and not any(shapes):
        return [(bind_of(eqn)(*values), False)]
    if name in ELEMENTWISE:
        spread = [_spread(x, f, out, width) for x, f in zip(values, flags)]
        function = TPU_FUNCTIONS.get(name) if platform == "tpu" else None
        return [((function or bind_of(eqn))(*spread), True)]
    spread = [_spread(x, f, shape, width) for x, f, shape in zip(values, flags, shapes)]
    return [(RULES[name](eqn, width, *spread), True)]


def _spread(value: Any, laned: bool, shape: tuple[int, ...], width: int) -> Array:
    """Return ``value`` as [*padded shape, W]; it has that shape or is a number in each lane."""
    target = (*padded_shape(shape), width)
    if jnp.shape(value) == target or (laned and jnp.ndim(value) > 1):
        return value
    return lax.broadcast_in_dim(value, target, (len(target) - 1,) if laned else ())


def _scan(eqn, values, flags, width: int, platform: str) -> list[Value]:
    """A scan as a loop in which rows are taken and set."""
    num_consts, num_carry = parts_of_scan(eqn)
    shapes = [var.aval.shape for var in eqn.invars]
    tape = tape_of_jaxpr(eqn.params["jaxpr"].jaxpr)
    consts = list(zip(values[:num_consts], flags[:num_consts]))
    spread = [_spread(x, f, shape, width) for x, f, shape in zip(values, flags, shapes)]
    carry, rows = spread[num_consts : num_consts + num_carry], spread[num_consts + num_carry :]
    stacked = [
        jnp.zeros((*padded_shape(var.aval.shape), width), var.aval.dtype)
        for var in eqn.outvars[num_carry:]
    ]

    def body(index, carried):
        carry, stacked = carried
        inputs = [*consts, *((x, True) for x in carry), *((row_of(x, index), True) for x in rows)]
        outputs = run_tape(tape, dict(zip(tape.inputs, inputs, strict=True)), width, platform)
        stacked = [with_row(x, index, row) for x, row in zip(stacked, outputs[num_carry:])]
        return outputs[:num_carry], stacked

    length = eqn.params["length"]
    carry, stacked = lax.fori_loop(jnp.int32(0), jnp.int32(length), body, (list(carry), stacked))
    return [(value, True) for value in (*carry, *stacked)]


def _while(eqn, values, flags, width: int, platform: str) -> list[Value]:
    """A while loop that runs until every lane is done; lanes that are done stay as they are."""
    num_first = eqn.params["cond_nconsts"]
    num_consts = num_first + eqn.params["body_nconsts"]
    shapes = [var.aval.shape for var in eqn.invars[num_consts:]]
    consts = list(zip(values, flags))[:num_consts]
    carry = [
        _spread(x, f, shape, width)
        for x, f, shape in zip(values[num_consts:], flags[num_consts:], shapes, strict=True)
    ]
    kinds = [x.dtype for x in carry]

    def run(part: str, consts: list[Value], carry) -> list[Any]:
        tape = tape_of_jaxpr(eqn.params[part].jaxpr)
        inputs = [*consts, *((x, True) for x in carry)]
        return run_tape(tape, dict(zip(tape.inputs, inputs, strict=True)), width, platform)

    # Truth values are carried as integers, which loops on all devices can do.
    def carried(carry) -> list[Array]:
        return [x.astype(jnp.int32) if x.dtype == jnp.bool_ else x for x in carry]

    def true_again(carry) -> list[Array]:
        return [x != 0 if kind == jnp.bool_ else x for x, kind in zip(carry, kinds, strict=True)]

    def goes_on(carry) -> Array:
        return run("cond_jaxpr", consts[:num_first], carry)[0]

    def any_lane(carry):
        return jnp.max(goes_on(true_again(carry)).astype(jnp.float32)) > 0

    def body(carry):
        old = true_again(carry)
        new = run("body_jaxpr", consts[num_first:], old)
        going = goes_on(old)
        return carried(
            jnp.where(jnp.broadcast_to(going, after.shape), after, before)
            for after, before in zip(new, old, strict=True)
        )

    end = lax.while_loop(any_lane, body, carried(carry))
    return [(value, True) for value in true_again(end)]


def _cond(eqn, values, flags, width: int, platform: str) -> list[Value]:
    """A choice: all branches are run, and each lane takes its own."""
    index = _spread(values[0], flags[0], (), width).astype(jnp.int32)
    inputs = list(zip(values[1:], flags[1:]))
    results: list[Any] = []
    for number, branch in enumerate(eqn.params["branches"]):
        tape = tape_of_jaxpr(branch.jaxpr)
        outputs = run_tape(tape, dict(zip(tape.inputs, inputs, strict=True)), width, platform)
        if results:
            outputs = [
                jnp.where(jnp.broadcast_to(index == number, new.shape), new, old)
                for new, old in zip(outputs, results, strict=True)
            ]
        results = outputs
    return [(value, True) for value in results]
