"""Replay the operations of one game inside a kernel, which allows fewer of them than the lanes.

A vector over the arms is held as [N, W], N the next power of two and W the lanes, because Triton
has arrays of such sizes only.
"""

from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
from jax import Array, lax

from sfmab_jax.engine.lanes.jaxpr import (
    Laned,
    Literal,
    Operation,
    Tape,
    bind_of,
    parts_of_scan,
    parts_of_while,
    tape_of_jaxpr,
)
from sfmab_jax.engine.lanes.rules import ELEMENTWISE
from sfmab_jax.engine.layout import padded_shape
from sfmab_jax.engine.pallas.rules import RULES, TPU_FUNCTIONS, has_rule, row_of, with_row

__all__ = ["run_tape", "unsupported_operation"]

# Loops, and the functions they hold.
_LOOPS = {"scan": ("jaxpr",), "while": ("cond_jaxpr", "body_jaxpr")}

# They say how values are sharded and stored, which means nothing inside a kernel.
_IDENTITIES = frozenset({"optimization_barrier", "reshard"})


def run_tape(tape: Tape, known: dict[int, Laned], width: int, platform: str) -> list[Any]:
    """Return the outputs of a tape, all with lanes.

    Args:
      tape: see `engine.lanes.jaxpr`.
      known: of each variable given, its value [*padded shape, W], or a number without lanes.
      width: W.
      platform: "tpu" has its own way with some functions.
    """
    known = dict(known)

    def read(operand) -> Laned:
        return Laned(operand.value, False) if isinstance(operand, Literal) else known[operand]

    for operation in tape.operations:
        results = _apply(operation.eqn, list(map(read, operation.operands)), width, platform)
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


def _apply(eqn, operands: list[Laned], width: int, platform: str) -> list[Laned]:
    """Do one operation with the lanes last."""
    name = eqn.primitive.name
    shapes = [var.aval.shape for var in eqn.invars]
    out = eqn.outvars[0].aval.shape
    if name == "scan":
        return _scan(eqn, operands, width, platform)
    if name == "while":
        return _while(eqn, operands, width, platform)
    if name in _IDENTITIES:
        return operands
    if name == "cond":
        return _cond(eqn, operands, width, platform)
    if not any(in_lanes for _, in_lanes in operands) and out == () and not any(shapes):
        return [Laned(bind_of(eqn)(*(value for value, _ in operands)), False)]
    if name in ELEMENTWISE:
        spread = [_spread(*x, out, width) for x in operands]
        function = TPU_FUNCTIONS.get(name) if platform == "tpu" else None
        return [Laned((function or bind_of(eqn))(*spread), True)]
    spread = [_spread(*x, shape, width) for x, shape in zip(operands, shapes)]
    return [Laned(RULES[name](eqn, width, *spread), True)]


def _spread(value: Any, in_lanes: bool, shape: tuple[int, ...], width: int) -> Array:
    """Return ``value`` as [*padded shape, W]; it has that shape or is a number in each lane."""
    target = (*padded_shape(shape), width)
    if jnp.shape(value) == target or (in_lanes and jnp.ndim(value) > 1):
        return value
    return lax.broadcast_in_dim(value, target, (len(target) - 1,) if in_lanes else ())


def _scan(eqn, operands: list[Laned], width: int, platform: str) -> list[Laned]:
    """A scan as a loop in which rows are taken and set."""
    tape = tape_of_jaxpr(eqn.params["jaxpr"].jaxpr)
    consts, _, _ = parts_of_scan(eqn, operands)
    spread = [_spread(*x, var.aval.shape, width) for x, var in zip(operands, eqn.invars)]
    _, carry, rows = parts_of_scan(eqn, spread)
    num_carry = len(carry)
    stacked = [
        jnp.zeros((*padded_shape(var.aval.shape), width), var.aval.dtype)
        for var in eqn.outvars[num_carry:]
    ]

    def body(index, carried):
        carry, stacked = carried
        inputs = [*consts, *(Laned(x, True) for x in (*carry, *(row_of(x, index) for x in rows)))]
        outputs = run_tape(tape, dict(zip(tape.inputs, inputs, strict=True)), width, platform)
        stacked = [with_row(x, index, row) for x, row in zip(stacked, outputs[num_carry:])]
        return outputs[:num_carry], stacked

    length = eqn.params["length"]
    carry, stacked = lax.fori_loop(jnp.int32(0), jnp.int32(length), body, (list(carry), stacked))
    return [Laned(value, True) for value in (*carry, *stacked)]


def _while(eqn, operands: list[Laned], width: int, platform: str) -> list[Laned]:
    """A while loop that runs until every lane is done; lanes that are done stay as they are."""
    cond_consts, body_consts, start = parts_of_while(eqn, operands)
    shapes = [var.aval.shape for var in eqn.outvars]
    carry = [_spread(*x, shape, width) for x, shape in zip(start, shapes, strict=True)]
    kinds = [x.dtype for x in carry]

    def run(part: str, consts: Sequence[Laned], carry) -> list[Any]:
        tape = tape_of_jaxpr(eqn.params[part].jaxpr)
        inputs = [*consts, *(Laned(x, True) for x in carry)]
        return run_tape(tape, dict(zip(tape.inputs, inputs, strict=True)), width, platform)

    # Truth values are carried as integers, which loops on all devices can do.
    def bools_to_ints(carry) -> list[Array]:
        return [x.astype(jnp.int32) if x.dtype == jnp.bool_ else x for x in carry]

    def ints_to_bools(carry) -> list[Array]:
        return [x != 0 if kind == jnp.bool_ else x for x, kind in zip(carry, kinds, strict=True)]

    def goes_on(carry) -> Array:
        return run("cond_jaxpr", cond_consts, carry)[0]

    def any_lane(carry):
        return jnp.max(goes_on(ints_to_bools(carry)).astype(jnp.float32)) > 0

    def body(carry):
        old = ints_to_bools(carry)
        new = run("body_jaxpr", body_consts, old)
        going = goes_on(old)
        return bools_to_ints(
            jnp.where(jnp.broadcast_to(going, after.shape), after, before)
            for after, before in zip(new, old, strict=True)
        )

    end = lax.while_loop(any_lane, body, bools_to_ints(carry))
    return [Laned(value, True) for value in ints_to_bools(end)]


def _cond(eqn, operands: list[Laned], width: int, platform: str) -> list[Laned]:
    """A choice: all branches are run, and each lane takes its own."""
    index = _spread(*operands[0], (), width).astype(jnp.int32)
    results: list[Any] = []
    for number, branch in enumerate(eqn.params["branches"]):
        tape = tape_of_jaxpr(branch.jaxpr)
        outputs = run_tape(tape, dict(zip(tape.inputs, operands[1:], strict=True)), width, platform)
        if results:
            outputs = [
                jnp.where(jnp.broadcast_to(index == number, new.shape), new, old)
                for new, old in zip(outputs, results, strict=True)
            ]
        results = outputs
    return [Laned(value, True) for value in results]
