"""Map a function of one game over many, with the games as the last axis of every array.

What it does. The function is traced for one game and its operations are replayed with the lanes
last. Elementwise operations, reductions over the arms and a few others have a rule (`rules`);
other known ones go through `jax.vmap` one by one. Where the function has an operation that is on
neither list, the whole function is mapped by `jax.vmap`, and a warning says so once.

Why `jax.vmap` is not enough. It moves the mapped axis to the front wherever a number meets a
vector, and XLA then lays the state out as [games, arms]. With [arms, games] one operation on an arm
is a vector operation over the games. Beyond the layout, the replay decides what XLA on CPU does
not: sums over the arms that are ready together are made in one pass; what only one branch of a
choice needs is computed in that branch; what is cheap is made again there instead of stored.
`simulate(batching="vmap")` plays with `jax.vmap` instead; ``python -m benchmarks --sweep batching``
measures the ratio, which is the reason for this module. At 10 arms, 1,000 rounds and 4,096 seeds on
two AVX2 cores of an AMD EPYC, jax 0.10.2, lanes are faster than `jax.vmap` by (median of 3 turns):

    scale_free 10.3   ahb 4.7   broad 4.7   tsallis_inf 4.6   exp3 4.3
    ucb1 4.2          htinf 4.0   exp3_ix 3.4   hedge 2.4       uniform 1.7

What it assumes of JAX: `jax.make_jaxpr`, the parameters of the primitives that have a rule (a
parameter that a rule does not know sends the operation to `jax.vmap`), and that evaluating the
operations of a jaxpr in any order that respects their operands gives its result.

How it is tested: random functions over all known operations, shapes and dtypes against `jax.vmap`
(``tests/helpers/fuzz_lanes.py``), and every strategy both ways.
"""

import warnings
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jax.extend.core import ClosedJaxpr

from sfmab_jax.engine.lanes.branches import CONTROL, needed_by_branches_only
from sfmab_jax.engine.lanes.jaxpr import (
    Literal,
    Operation,
    Tape,
    held_jaxprs,
    parts_of_scan,
    tape_of_jaxpr,
    variables,
)
from sfmab_jax.engine.lanes.reductions import Reduction, in_any_lane, keep_values, reduce_together
from sfmab_jax.engine.lanes.rules import KNOWN, apply_operation, choose, spread

__all__ = ["OverGames", "over_lanes"]

OverGames = Callable[[Callable[..., Any]], Callable[..., Any]]
Laned = tuple[Any, bool]  # a value, and whether it has a lane axis
# Compute an operand of a branch again inside a nested branch, in a chain of at most so many
# operations.
Recompute = Callable[[int], Laned]


class _Lanes(NamedTuple):
    width: int
    exact: bool


# Operations that are done again in a branch rather than stored for it, up to so many for a value.
_CHEAP = frozenset("add broadcast_in_dim eq mul select_n sub".split())
_CHEAP_STEPS = 4
# Unknown operations that a warning has named already.
_NAMED: set[str] = set()


def over_lanes(function: Callable[..., Any], exact: bool = True) -> Callable[..., Any]:
    """Map ``function`` of one game over the last axis of all its arguments and results.

    Equal to ``jax.vmap(function, in_axes=-1, out_axes=-1)`` up to rounding. What all lanes share
    is closed over. Differentiate inside the function, not outside: rules for derivatives that it
    holds are written out with it.

    Args:
      function: of one game.
      exact: see `sfmab_jax.engine.lanes`.

    >>> scale = over_lanes(lambda vector, number: vector * number)
    >>> scale(jnp.ones((3, 2)), jnp.arange(2.0)).tolist()
    [[0.0, 1.0], [0.0, 1.0], [0.0, 1.0]]
    """

    def mapped(*args):
        leaves, tree = jax.tree.flatten(jax.tree.map(jnp.asarray, args))
        width = leaves[0].shape[-1]
        if any(leaf.shape[-1] != width for leaf in leaves):
            raise ValueError(f"last axes of {[leaf.shape[-1] for leaf in leaves]}; give one width")
        one_game = [
            jax.ShapeDtypeStruct(leaf.shape[:-1], leaf.dtype, weak_type=leaf.weak_type)
            for leaf in leaves
        ]

        def flat_function(*flat):
            return function(*jax.tree.unflatten(tree, flat))

        trace: Any = jax.make_jaxpr(flat_function, return_shape=True)
        closed, shapes = trace(*one_game)
        unknown = unknown_operation(closed.jaxpr)
        if unknown is not None:
            _warn_once(unknown)
            return jax.vmap(function, in_axes=-1, out_axes=-1)(*args)
        outputs = _replay(closed, leaves, [True] * len(leaves), _Lanes(width, exact))
        laned = [
            value if in_lanes else spread(value, False, jnp.shape(value), width)
            for value, in_lanes in outputs
        ]
        return jax.tree.unflatten(jax.tree.structure(shapes), laned)

    return mapped


def unknown_operation(jaxpr: Any) -> str | None:
    """Return the name of an operation that the lanes do not know, here or in a loop; or None."""
    for eqn, _, _ in tape_of_jaxpr(jaxpr).operations:
        if eqn.primitive.name not in KNOWN | CONTROL or _has_other_bits(eqn):
            return eqn.primitive.name
        for held in held_jaxprs(eqn):
            unknown = unknown_operation(held)
            if unknown is not None:
                return unknown
    return None


def _has_other_bits(eqn) -> bool:
    """Whether random bits were asked for under another setting than the present one."""
    present = jax.config.jax_threefry_partitionable  # type: ignore[attr-defined]
    return getattr(getattr(eqn, "ctx", None), "threefry_partitionable", present) != present


def _warn_once(operation: str) -> None:
    if operation not in _NAMED:
        _NAMED.add(operation)
        warnings.warn(
            f"the operation {operation!r} cannot be replayed in lanes; games with it are mapped by "
            "jax.vmap, which is slower. Say batching='vmap' to have that without this warning",
            RuntimeWarning,
            stacklevel=2,
        )


def _replay(
    closed: ClosedJaxpr,
    values: Sequence[Any],
    in_lanes: Sequence[bool],
    lanes: _Lanes,
    recomputed: Sequence[Recompute] | None = None,
) -> list[Laned]:
    """Run the operations of a traced function, each value with or without a lane axis.

    Reductions wait until nothing else can be done, so that many of them go in one pass.

    Args:
      closed: the function of one game.
      values: its arguments.
      in_lanes: whether each has lanes.
      lanes: width and exactness.
      recomputed: for a branch, how each argument is made again in a branch within it.
    """
    tape = tape_of_jaxpr(closed.jaxpr)
    num_consts = len(closed.consts)
    inputs = [*((const, False) for const in closed.consts), *zip(values, in_lanes)]
    replay = _Replay(
        tape,
        dict(zip(tape.inputs, inputs, strict=True)),
        lanes,
        None
        if recomputed is None
        else dict(zip(tape.inputs[num_consts:], recomputed, strict=True)),
    )
    waiting = [place for place in range(len(tape.operations)) if place not in replay.postponed]
    while waiting:
        later, reductions = [], []
        for place in waiting:
            operation = tape.operations[place]
            eqn, operands, results = operation
            if not replay.is_ready(place):
                later.append(place)
                continue
            if eqn.primitive.name == "cond":
                replay.record(results, replay.choose_branch(place))
                continue
            laned = [replay.read(x) for x in operands]
            reduction = Reduction(eqn, laned, results[0], place) if results else None
            if reduction is not None and reduction.joins:
                reductions.append(reduction)
            else:
                replay.record(results, replay.apply(operation, laned))
        for result, value in reduce_together(reductions):
            replay.record([result], [(value, True)])
        waiting = later
    return [replay.read(output) for output in tape.outputs]


class _Replay:
    """The values of a tape so far, and the operations that make the others."""

    def __init__(
        self,
        tape: Tape,
        values: dict[int, Laned],
        lanes: _Lanes,
        recomputed: dict[int, Recompute] | None,
    ):
        self._tape = tape
        self._values = values
        self._lanes = lanes
        self._makers = {x: operation for operation in tape.operations for x in operation.results}
        # Where operations are done that are done inside a branch: operation -> cond.
        self.postponed = needed_by_branches_only(tape, is_branch=recomputed is not None)
        self._recomputed = recomputed or {}
        # Where a state is written back, entry by entry: see `rules.choose`.
        self._inputs = set(tape.inputs)
        self._outputs = {x for x in tape.outputs if isinstance(x, int)}

    def record(self, results: Sequence[int], values: Sequence[Laned]) -> None:
        self._values.update(zip(results, values, strict=True))

    def read(self, x: int | Literal, inside: dict[int, Laned] | None = None) -> Laned:
        """Return a value, by preference one that was made inside a branch."""
        if isinstance(x, Literal):
            return x.value, False
        return inside[x] if inside and x in inside else self._values[x]

    def is_ready(self, place: int) -> bool:
        """Whether an operation can be done, postponed ones that belong to it included."""
        postponed = self._postponed_for(place)
        inside = {x for operation in postponed for x in operation.results}
        operations = [self._tape.operations[place], *postponed]
        needed = [x for operation in operations for x in operation.operands]
        return all(isinstance(x, Literal) or x in inside or x in self._values for x in needed)

    def _postponed_for(self, place: int) -> list[Operation]:
        places = sorted(one for one, choice in self.postponed.items() if choice == place)
        return [self._tape.operations[one] for one in places]

    def choose_branch(self, place: int) -> list[Laned]:
        """Do a choice, with what only its branches need done inside them."""
        eqn, inputs, _ = self._tape.operations[place]
        postponed = self._postponed_for(place)
        in_lanes = {x: flag for x, (_, flag) in self._values.items()}
        for operation in postponed:
            flag = any(in_lanes[x] for x in operation.operands if isinstance(x, int))
            in_lanes.update(dict.fromkeys(operation.results, flag))
        flags = [isinstance(x, int) and in_lanes[x] for x in inputs[1:]]

        def operands_of(branch: ClosedJaxpr) -> tuple[list[Any], list[Recompute]]:
            used = variables(branch.jaxpr.outvars)
            used.update(*(variables(eqn.invars) for eqn in branch.jaxpr.eqns))
            pairs = zip(inputs[1:], branch.jaxpr.invars, strict=True)
            wanted = [x if var in used else Literal(None) for x, var in pairs]
            return self._operands_inside_branch(wanted, postponed if branch.jaxpr.eqns else None)

        return _cond(eqn, self.read(inputs[0]), flags, operands_of, self._lanes)

    def _operands_inside_branch(
        self, wanted: Sequence[int | Literal], postponed: Sequence[Operation] | None
    ) -> tuple[list[Any], list[Recompute]]:
        """Return the operands of a branch, computed inside it.

        Postponed operations are done here. Vectors over the arms that at most _CHEAP_STEPS cheap
        operations make are computed again rather than read from memory.

        Args:
          wanted: the operands.
          postponed: the operations that belong to the branch. None for a branch without operations,
            which only passes operands on: those are never postponed, so they can be read.

        Returns:
          The values, and how each is computed again in a branch within this one.
        """
        if postponed is None:
            return [self.read(x)[0] for x in wanted], [
                partial(self._recompute_if_cheap, x) for x in wanted
            ]
        needed = {x for x in wanted if isinstance(x, int)}
        due = []
        for operation in reversed(postponed):
            if needed.intersection(operation.results):
                needed.update(x for x in operation.operands if isinstance(x, int))
                due.append(operation)
        inside: dict[int, Laned] = {}

        def value(x: int | Literal, depth: int) -> Laned:
            made_here = isinstance(x, int) and x in inside
            return self.read(x, inside) if made_here else self._recompute_if_cheap(x, depth)

        for operation in reversed(due):
            # A postponed operation is one of the steps that a value may take.
            results = self.apply(
                operation, [value(x, _CHEAP_STEPS - 1) for x in operation.operands]
            )
            inside.update(zip(operation.results, results, strict=True))
        values = [value(x, _CHEAP_STEPS)[0] for x in wanted]
        return values, [partial(self._recompute_if_cheap, x, inside=inside) for x in wanted]

    def _recompute_if_cheap(
        self, x: int | Literal, depth: int, inside: dict[int, Laned] | None = None
    ) -> Laned:
        """Return a value; a cheap vector over the arms is computed again, in ``depth`` steps."""
        value, in_lanes = self.read(x, inside)
        if isinstance(x, Literal) or not (in_lanes and value.ndim > 1 and depth):
            return value, in_lanes
        if x in self._recomputed:
            return self._recomputed[x](depth)
        operation = self._makers.get(x)
        if operation is None or operation.eqn.primitive.name not in _CHEAP:
            return value, in_lanes
        deeper = depth - (operation.eqn.primitive.name != "broadcast_in_dim")
        laned = [self._recompute_if_cheap(one, deeper, inside) for one in operation.operands]
        return self.apply(operation, laned)[0]

    def apply(self, operation: Operation, laned: Sequence[Laned]) -> list[Laned]:
        """Do one operation, in the form that compiles best where it stands."""
        eqn, inputs, results = operation
        name = eqn.primitive.name
        operands, flags = [x for x, _ in laned], [flag for _, flag in laned]
        if name == "eq" and any(flags):
            operands = self._arms_as_floats(inputs, operands)
        if name == "select_n" and all(flags) and len(operands) == 3:
            cases = {x for x in inputs[1:] if isinstance(x, int)}
            if results[0] in self._outputs and self._inputs & cases:
                which, old, new = operands
                shape = eqn.outvars[0].aval.shape
                which = spread(which, True, shape, self._lanes.width)
                return [(choose(which, new, old, self._lanes.exact), True)]
        if name in _CONTROL_RULES:
            return _CONTROL_RULES[name](eqn, operands, flags, self._lanes)
        return apply_operation(eqn, operands, flags, self._lanes.width)

    def _arms_as_floats(self, inputs, operands: list[Any]) -> list[Any]:
        """Compare arms with 0, 1, ..., n - 1 as floats, of which these are exact.

        On CPU integers take twice the time, as the compiler widens them to the 64 bits of an
        index. An integer that float32 would round is larger than n, and stays so.
        """
        for place, x in enumerate(inputs):
            maker = self._makers.get(x) if isinstance(x, int) else None
            if maker is None or maker.eqn.primitive.name != "iota":
                continue
            params = maker.eqn.params
            other = operands[1 - place]
            if (
                len(params["shape"]) == 1
                and params["shape"][0] <= 2**24
                and (jnp.result_type(other) == params["dtype"] == jnp.int32)
            ):
                floats = list(operands)
                floats[place] = lax.iota(jnp.float32, params["shape"][0])
                floats[1 - place] = lax.convert_element_type(other, jnp.float32)
                return floats
        return operands


def _scan(eqn, operands, flags, lanes: _Lanes) -> list[Laned]:
    """A scan of one game, as one scan whose carry and inputs have lanes."""
    width = lanes.width
    shapes = [var.aval.shape for var in eqn.invars]
    num_consts, num_carry = parts_of_scan(eqn)
    consts, const_flags = operands[:num_consts], flags[:num_consts]
    laned = [
        spread(x, f, shape, width) for x, f, shape in zip(operands, flags, shapes, strict=True)
    ][num_consts:]

    def body(carry, inputs):
        values = (*consts, *carry, *inputs)
        in_lanes = (*const_flags, *([True] * (len(carry) + len(inputs))))
        outputs = _replay(eqn.params["jaxpr"], values, in_lanes, lanes)
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


def _while(eqn, operands, flags, lanes: _Lanes) -> list[Laned]:
    """A while loop of one game, as one that runs until every lane is done; done lanes stay."""
    width = lanes.width
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
        (answer, in_lanes), *_ = _replay(condition, values, (*flags[:num_first], *of_carry), lanes)
        return spread(answer, in_lanes, (), width)

    def body(carry):
        values = (*operands[num_first:num_consts], *carry)
        in_lanes = (*flags[num_first:num_consts], *of_carry)
        after = _replay(eqn.params["body_jaxpr"], values, in_lanes, lanes)
        going = goes_on(carry)
        return [
            choose(
                spread(going, True, old.shape[:-1], width),
                spread(new, in_lanes, old.shape[:-1], width),
                old,
                lanes.exact,
            )
            for (new, in_lanes), old in zip(after, carry, strict=True)
        ]

    carry = lax.while_loop(lambda carry: in_any_lane(goes_on(carry)), body, laned)
    return [(value, True) for value in carry]


def _cond(
    eqn,
    laned_index: Laned,
    flags: Sequence[bool],
    operands_of: Callable[[ClosedJaxpr], tuple[list[Any], list[Recompute]]],
    lanes: _Lanes,
) -> list[Laned]:
    """A choice of one game, each branch run only if some lane takes it.

    Args:
      eqn: the equation.
      laned_index: which branch is taken.
      flags: whether the other operands have lanes.
      operands_of: gives their values inside a branch, None for those that it does not use, and
        how each is made again.
      lanes: width and exactness.
    """
    width = lanes.width
    index, by_lane = laned_index
    shapes = [var.aval.shape for var in eqn.outvars]

    def run(branch: ClosedJaxpr) -> list[Any]:
        values, recomputed = operands_of(branch)
        outputs = _replay(branch, values, flags, lanes, recomputed)
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
                choose(spread(takes_it, True, shape, width), new, old, lanes.exact)
                for new, old, shape in zip(branch(), results, shapes)
            ]

        results = lax.cond(in_any_lane(takes_it), merged, partial(list, results))
    return [(value, True) for value in results]


_CONTROL_RULES: dict[str, Callable[..., list[Laned]]] = {
    "optimization_barrier": lambda eqn, operands, flags, lanes: keep_values(operands, flags),
    # Of one game's numbers, which are not spread out.
    "reshard": lambda eqn, operands, flags, lanes: list(zip(operands, flags)),
    "scan": _scan,
    "while": _while,
}
