"""Map a function of one game over many, with the games as the last axis of every array.

`jax.vmap` moves the mapped axis to the front wherever a number meets a vector, and XLA then lays
the state out as [games, arms]: on CPU the rounds run five to eight times slower than as
[arms, games], where one operation on an arm is a vector operation over the games. Here the
function is traced for one game and its operations are replayed with the lanes last. Elementwise
operations, reductions and a few others have a rule; everything else goes through `jax.vmap`
for that one operation, so any function works and only the speed depends on the rules. Sums over
the arms that are ready together are made in one pass, and so are the numbers of `floating.once`.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax
from jax.extend.core import ClosedJaxpr

from sfmab_jax.floating import chosen
from sfmab_jax.lane_operations import REDUCTIONS, apply_operation, spread
from sfmab_jax.reductions import Reduction, in_any_lane, made_together, reduced_together
from sfmab_jax.tape import Known, Operation, parts_of_scan, tape_of_jaxpr

__all__ = ["over_lanes"]

_CHEAP = frozenset("add broadcast_in_dim eq mul select_n sub".split())
# As many of them are done again in a branch for one value.
_CHEAP_STEPS = 4


def over_lanes(function: Callable[..., Any]) -> Callable[..., Any]:
    """``function`` of one game, mapped over the last axis of all its arguments and results.

    Equal to ``jax.vmap(function, in_axes=-1, out_axes=-1)``. What all lanes share is closed over.

    >>> double = over_lanes(lambda vector, number: vector * number)
    >>> double(jnp.ones((3, 2)), jnp.arange(2.0)).tolist()
    [[0.0, 1.0], [0.0, 1.0], [0.0, 1.0]]
    """

    def mapped(*args):
        leaves, tree = jax.tree.flatten(args)
        width = leaves[0].shape[-1]
        one_game = [jax.ShapeDtypeStruct(leaf.shape[:-1], leaf.dtype) for leaf in leaves]

        def flat_function(*flat):
            return function(*jax.tree.unflatten(tree, flat))

        trace: Any = jax.make_jaxpr(flat_function, return_shape=True)
        closed, shapes = trace(*one_game)
        outputs = _replay(closed, leaves, [True] * len(leaves), width)
        laned = [
            value if in_lanes else spread(value, False, jnp.shape(value), width)
            for value, in_lanes in outputs
        ]
        return jax.tree.unflatten(jax.tree.structure(shapes), laned)

    return mapped


def _replay(
    closed: ClosedJaxpr, values: Sequence[Any], in_lanes: Sequence[bool], width: int
) -> list[tuple[Any, bool]]:
    """Runs the operations of a traced function; each value knows whether it has a lane axis.

    Reductions wait until nothing else can be done, so that many of them go in one pass.
    """
    tape = tape_of_jaxpr(closed.jaxpr)
    given = [*((const, False) for const in closed.consts), *zip(values, in_lanes)]
    known: dict[int, tuple[Any, bool]] = dict(zip(tape.inputs, given, strict=True))

    def read(operand: int | Known) -> tuple[Any, bool]:
        return (operand.value, False) if isinstance(operand, Known) else known[operand]

    makers: dict[int, Operation] = {}

    def remade(x: int | Known, depth: int = _CHEAP_STEPS) -> Any:
        """A value; if it is of the arms, made anew where that is cheap."""
        value, in_lanes = read(x)
        if not in_lanes or value.ndim < 2 or x not in makers or not depth:
            return value
        eqn, inputs, _ = makers[x]
        flags = [read(one)[1] for one in inputs]
        deeper = depth - (eqn.primitive.name != "broadcast_in_dim")
        return apply_operation(eqn, [remade(one, deeper) for one in inputs], flags, width)[0][0]

    waiting: Sequence[tuple[int, Operation]] = list(enumerate(tape.operations))
    while waiting:
        later, reductions = [], []
        for place, operation in waiting:
            eqn, inputs, results = operation
            if not all(isinstance(x, Known) or x in known for x in inputs):
                later.append((place, operation))
                continue
            operands, flags = zip(*map(read, inputs)) if inputs else ((), ())
            if eqn.primitive.name in REDUCTIONS and flags[0]:
                reduction = Reduction(eqn, operands[0], results[0], place)
                if reduction.joins:
                    reductions.append(reduction)
                    continue
            rule = _RULES.get(eqn.primitive.name, apply_operation)
            if eqn.primitive.name == "cond":
                rule = partial(_cond, remade=[partial(remade, x) for x in inputs])
            known.update(zip(results, rule(eqn, operands, flags, width), strict=True))
            if eqn.primitive.name in _CHEAP:
                makers[results[0]] = operation
        for result, value in reduced_together(reductions):
            known[result] = (value, True)
        waiting = later
    return [read(output) for output in tape.outputs]


def _scan(eqn, operands, flags, width: int) -> list[tuple[Any, bool]]:
    """A scan of one game, as one scan whose carry and inputs have lanes."""
    shapes = [var.aval.shape for var in eqn.invars]
    num_consts, num_carry = parts_of_scan(eqn)
    consts, const_flags = operands[:num_consts], flags[:num_consts]
    laned = [
        spread(x, f, shape, width) for x, f, shape in zip(operands, flags, shapes, strict=True)
    ][num_consts:]

    def body(carry, inputs):
        values = (*consts, *carry, *inputs)
        in_lanes = (*const_flags, *([True] * (len(carry) + len(inputs))))
        outputs = _replay(eqn.params["jaxpr"], values, in_lanes, width)
        outputs = [x if f else spread(x, f, jnp.shape(x), width) for x, f in outputs]
        return outputs[:num_carry], outputs[num_carry:]

    names = ("length", "reverse", "unroll")
    carry, stacked = lax.scan(
        body,
        laned[:num_carry],
        laned[num_carry:],
        **{name: eqn.params[name] for name in names},
    )
    return [(value, True) for value in (*carry, *stacked)]


def _while(eqn, operands, flags, width: int) -> list[tuple[Any, bool]]:
    """A while loop of one game, as one that runs until every lane is done; done lanes stay."""
    num_first = eqn.params["cond_nconsts"]
    num_consts = num_first + eqn.params["body_nconsts"]
    shapes = [var.aval.shape for var in eqn.invars]
    laned = [
        spread(x, f, shape, width) for x, f, shape in zip(operands, flags, shapes, strict=True)
    ][num_consts:]
    of_carry = [True] * len(laned)

    def goes_on(carry):
        values = (*operands[:num_first], *carry)
        condition = eqn.params["cond_jaxpr"]
        (answer, in_lanes), *_ = _replay(condition, values, (*flags[:num_first], *of_carry), width)
        return spread(answer, in_lanes, (), width)

    def body(carry):
        values = (*operands[num_first:num_consts], *carry)
        in_lanes = (*flags[num_first:num_consts], *of_carry)
        moved = _replay(eqn.params["body_jaxpr"], values, in_lanes, width)
        going = goes_on(carry)
        return [
            chosen(
                spread(going, True, old.shape[:-1], width),
                spread(new, in_lanes, old.shape[:-1], width),
                old,
            )
            for (new, in_lanes), old in zip(moved, carry, strict=True)
        ]

    carry = lax.while_loop(lambda carry: in_any_lane(goes_on(carry)), body, laned)
    return [(value, True) for value in carry]


def _cond(
    eqn, operands, flags, width: int, remade: Sequence[Callable[[], Any]]
) -> list[tuple[Any, bool]]:
    """A choice of one game, each branch run only if some lane takes it.

    ``remade`` give the operands again within a branch: what is cheap to make is not stored in
    every round for a branch that few rounds take.
    """
    (index, *operands), (by_lane, *flags) = operands, flags
    shapes = [var.aval.shape for var in eqn.outvars]

    def run(branch: ClosedJaxpr) -> list[Any]:
        given = [again() for again in remade[1:]] if branch.jaxpr.eqns else operands
        outputs = _replay(branch, given, flags, width)
        return [spread(x, f, shape, width) for (x, f), shape in zip(outputs, shapes)]

    branches = [partial(run, branch) for branch in eqn.params["branches"]]
    if not by_lane:
        return [(value, True) for value in lax.switch(index, branches)]
    # A branch that computes nothing is taken by all lanes first.
    idle = [not branch.jaxpr.eqns for branch in eqn.params["branches"]]
    if any(idle):
        results = branches[idle.index(True)]()
    else:
        results = [jnp.zeros((*var.aval.shape, width), var.aval.dtype) for var in eqn.outvars]
    for number, branch in enumerate(branches):
        if True in idle and number == idle.index(True):
            continue
        takes_it = index.astype(jnp.int32) == number

        def merged(branch=branch, takes_it=takes_it, results=results):
            return [
                chosen(spread(takes_it, True, shape, width), new, old)
                for new, old, shape in zip(branch(), results, shapes)
            ]

        results = lax.cond(in_any_lane(takes_it), merged, partial(list, results))
    return [(value, True) for value in results]


def _barrier(eqn, operands, flags, width: int) -> list[tuple[Any, bool]]:
    """Values of the games, of one shape, that are to be made once and together."""
    kind = operands[0].shape, operands[0].dtype
    alike = [
        place
        for place, (x, in_lanes) in enumerate(zip(operands, flags))
        if in_lanes and x.dtype.itemsize >= 4 and (x.shape, x.dtype) == kind
    ]
    results = list(zip(operands, flags))
    for place, value in zip(alike, made_together(*(operands[place] for place in alike))):
        results[place] = (value, True)
    return results


_RULES = {
    "optimization_barrier": _barrier,
    # Of one game's numbers, which are not spread out.
    "reshard": lambda eqn, operands, flags, width: list(zip(operands, flags)),
    "scan": _scan,
    "while": _while,
}
