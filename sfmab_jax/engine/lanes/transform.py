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
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jax.extend.core import ClosedJaxpr

from sfmab_jax.engine.lanes.branches import CONTROL, needed_by_branches_only
from sfmab_jax.engine.lanes.jaxpr import (
    Laned,
    Literal,
    Operation,
    Tape,
    held_jaxprs,
    parts_of_scan,
    parts_of_while,
    tape_of_jaxpr,
    variables,
)
from sfmab_jax.engine.lanes.reductions import Reduction, in_any_lane, keep_values, reduce_together
from sfmab_jax.engine.lanes.rules import KNOWN, apply_operation, choose, spread
from sfmab_jax.engine.lanes.written_out import write_out_draws

__all__ = ["OverGames", "over_lanes"]

OverGames = Callable[[Callable[..., Any]], Callable[..., Any]]
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
            jax.ShapeDtypeStruct(
                leaf.shape[:-1], leaf.dtype, weak_type=getattr(leaf, "weak_type", False)
            )
            for leaf in leaves
        ]

        def flat_function(*flat):
            return function(*jax.tree.unflatten(tree, flat))

        trace: Any = jax.make_jaxpr(flat_function, return_shape=True)
        closed, shapes = trace(*one_game)
        closed = write_out_draws(closed, one_game)
        unknown = unknown_operation(closed.jaxpr)
        if unknown is not None:
            _warn_once(unknown)
            return jax.vmap(function, in_axes=-1, out_axes=-1)(*args)
        outputs = _replay(closed, _all_laned(leaves), _Lanes(width, exact))
        return jax.tree.unflatten(jax.tree.structure(shapes), _spread_all(outputs, width))

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


def _all_laned(values: Iterable[Any]) -> list[Laned]:
    return [Laned(value, True) for value in values]


def _spread_all(laned: Iterable[Laned], width: int) -> list[Any]:
    """Return values with lanes, those that have none spread out."""
    return [x if in_lanes else spread(x, False, jnp.shape(x), width) for x, in_lanes in laned]


def _replay(
    closed: ClosedJaxpr,
    arguments: Sequence[Laned],
    lanes: _Lanes,
    recompute: Sequence[Recompute] | None = None,
) -> list[Laned]:
    """Run the operations of a traced function, each value with or without a lane axis.

    Reductions wait until nothing else can be done, so that many of them go in one pass.

    Args:
      closed: the function of one game.
      arguments: of the function.
      lanes: width and exactness.
      recompute: for a branch, how each argument is made again in a branch within it.
    """
    tape = tape_of_jaxpr(closed.jaxpr)
    num_consts = len(closed.consts)
    inputs = [*(Laned(const, False) for const in closed.consts), *arguments]
    replay = _Replay(
        tape,
        dict(zip(tape.inputs, inputs, strict=True)),
        lanes,
        None if recompute is None else dict(zip(tape.inputs[num_consts:], recompute, strict=True)),
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
                replay.record(results, replay.replay_cond(place))
                continue
            laned = [replay.read(x) for x in operands]
            reduction = Reduction(eqn, laned, results[0], place) if results else None
            if reduction is not None and reduction.joins:
                reductions.append(reduction)
            else:
                replay.record(results, replay.apply(operation, laned))
        for result, value in reduce_together(reductions):
            replay.record([result], [Laned(value, True)])
        waiting = later
    return [replay.read(output) for output in tape.outputs]


class _Replay:
    """The values of a tape so far, and the operations that make the others."""

    def __init__(
        self,
        tape: Tape,
        values: dict[int, Laned],
        lanes: _Lanes,
        recompute: dict[int, Recompute] | None,
    ):
        self._tape = tape
        self._values = values
        self._lanes = lanes
        self._operation_of = {x: made for made in tape.operations for x in made.results}
        # Where operations are done that are done inside a branch: operation -> cond.
        self.postponed = needed_by_branches_only(tape, is_branch=recompute is not None)
        self._recompute = recompute or {}
        # Where a state is written back, entry by entry: see `rules.choose`.
        self._inputs = set(tape.inputs)
        self._outputs = {x for x in tape.outputs if isinstance(x, int)}

    def record(self, results: Sequence[int], values: Sequence[Laned]) -> None:
        self._values.update(zip(results, values, strict=True))

    def read(self, x: int | Literal, inside: dict[int, Laned] | None = None) -> Laned:
        """Return a value, by preference one that was made inside a branch."""
        if isinstance(x, Literal):
            return Laned(x.value, False)
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

    def replay_cond(self, place: int) -> list[Laned]:
        """Do a choice, with what only its branches need done inside them."""
        eqn, inputs, _ = self._tape.operations[place]
        postponed = self._postponed_for(place)
        in_lanes = {x: flag for x, (_, flag) in self._values.items()}
        for operation in postponed:
            flag = any(in_lanes[x] for x in operation.operands if isinstance(x, int))
            in_lanes.update(dict.fromkeys(operation.results, flag))

        def operands_of(branch: ClosedJaxpr) -> tuple[list[Laned], list[Recompute]]:
            used = variables(branch.jaxpr.outvars)
            used.update(*(variables(eqn.invars) for eqn in branch.jaxpr.eqns))
            pairs = zip(inputs[1:], branch.jaxpr.invars, strict=True)
            wanted = [x if var in used else Literal(None) for x, var in pairs]
            values, recompute = self._operands_inside_branch(
                wanted, postponed if branch.jaxpr.eqns else None
            )
            flags = (isinstance(x, int) and in_lanes[x] for x in inputs[1:])
            return list(map(Laned, values, flags)), recompute

        return _cond(eqn, self.read(inputs[0]), operands_of, self._lanes)

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

        def value(x: int | Literal, steps_left: int) -> Laned:
            made_here = isinstance(x, int) and x in inside
            return self.read(x, inside) if made_here else self._recompute_if_cheap(x, steps_left)

        for operation in reversed(due):
            # A postponed operation is one of the steps that a value may take.
            results = self.apply(
                operation, [value(x, _CHEAP_STEPS - 1) for x in operation.operands]
            )
            inside.update(zip(operation.results, results, strict=True))
        values = [value(x, _CHEAP_STEPS)[0] for x in wanted]
        return values, [partial(self._recompute_if_cheap, x, inside=inside) for x in wanted]

    def _recompute_if_cheap(
        self, x: int | Literal, steps_left: int, inside: dict[int, Laned] | None = None
    ) -> Laned:
        """Return a value.

        A vector over the arms that at most ``steps_left`` cheap operations make is computed again.
        """
        laned = self.read(x, inside)
        if isinstance(x, Literal) or not (laned.in_lanes and laned.value.ndim > 1 and steps_left):
            return laned
        if x in self._recompute:
            return self._recompute[x](steps_left)
        operation = self._operation_of.get(x)
        if operation is None or operation.eqn.primitive.name not in _CHEAP:
            return laned
        steps_left -= operation.eqn.primitive.name != "broadcast_in_dim"
        operands = [self._recompute_if_cheap(one, steps_left, inside) for one in operation.operands]
        return self.apply(operation, operands)[0]

    def apply(self, operation: Operation, laned: Sequence[Laned]) -> list[Laned]:
        """Do one operation, in the form that compiles best where it stands."""
        eqn, inputs, results = operation
        name = eqn.primitive.name
        if name in _CONTROL_RULES:
            return _CONTROL_RULES[name](eqn, laned, self._lanes)
        operands, flags = [x for x, _ in laned], [flag for _, flag in laned]
        if name == "eq" and any(flags):
            operands = self._arms_as_floats(inputs, operands)
        if name == "select_n" and all(flags) and len(operands) == 3:
            cases = {x for x in inputs[1:] if isinstance(x, int)}
            if results[0] in self._outputs and self._inputs & cases:
                which, old, new = operands
                shape = eqn.outvars[0].aval.shape
                which = spread(which, True, shape, self._lanes.width)
                return [Laned(choose(which, new, old, self._lanes.exact), True)]
        return apply_operation(eqn, operands, flags, self._lanes.width)

    def _arms_as_floats(self, inputs, operands: list[Any]) -> list[Any]:
        """Compare arms with 0, 1, ..., n - 1 as floats, of which these are exact.

        On CPU integers take twice the time, as the compiler widens them to the 64 bits of an
        index. An integer that float32 would round is larger than n, and stays so.
        """
        for place, x in enumerate(inputs):
            operation = self._operation_of.get(x) if isinstance(x, int) else None
            if operation is None or operation.eqn.primitive.name != "iota":
                continue
            params = operation.eqn.params
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


def _scan(eqn, operands: Sequence[Laned], lanes: _Lanes) -> list[Laned]:
    """A scan of one game, as one scan whose carry and inputs have lanes."""
    consts, _, _ = parts_of_scan(eqn, operands)
    _, start, inputs = parts_of_scan(eqn, _spread_operands(eqn, operands, lanes.width))

    def body(carry, inputs):
        arguments = [*consts, *_all_laned((*carry, *inputs))]
        outputs = _spread_all(_replay(eqn.params["jaxpr"], arguments, lanes), lanes.width)
        return outputs[: len(start)], outputs[len(start) :]

    how = {name: eqn.params[name] for name in ("length", "reverse", "unroll")}
    carry, stacked = lax.scan(body, start, inputs, **how)
    return _all_laned((*carry, *stacked))


def _while(eqn, operands: Sequence[Laned], lanes: _Lanes) -> list[Laned]:
    """A while loop of one game, as one that runs until every lane is done; done lanes stay."""
    width = lanes.width
    cond_consts, body_consts, _ = parts_of_while(eqn, operands)
    _, _, start = parts_of_while(eqn, _spread_operands(eqn, operands, width))

    def goes_on(carry):
        arguments = [*cond_consts, *_all_laned(carry)]
        return spread(*_replay(eqn.params["cond_jaxpr"], arguments, lanes)[0], (), width)

    def body(carry):
        after = _replay(eqn.params["body_jaxpr"], [*body_consts, *_all_laned(carry)], lanes)
        going = goes_on(carry)
        return [
            choose(
                spread(going, True, old.shape[:-1], width),
                spread(*new, old.shape[:-1], width),
                old,
                lanes.exact,
            )
            for new, old in zip(after, carry, strict=True)
        ]

    return _all_laned(lax.while_loop(lambda carry: in_any_lane(goes_on(carry)), body, start))


def _spread_operands(eqn, operands: Sequence[Laned], width: int) -> list[Any]:
    return [spread(*x, var.aval.shape, width) for x, var in zip(operands, eqn.invars, strict=True)]


def _cond(
    eqn,
    laned_index: Laned,
    operands_of: Callable[[ClosedJaxpr], tuple[list[Laned], list[Recompute]]],
    lanes: _Lanes,
) -> list[Laned]:
    """A choice of one game, each branch run only if some lane takes it.

    Args:
      eqn: the equation.
      laned_index: which branch is taken.
      operands_of: gives the other operands inside a branch, None for those that it does not use,
        and how each is made again.
      lanes: width and exactness.
    """
    width = lanes.width
    index, index_in_lanes = laned_index
    shapes = [var.aval.shape for var in eqn.outvars]

    def run(branch: ClosedJaxpr) -> list[Any]:
        operands, recompute = operands_of(branch)
        outputs = _replay(branch, operands, lanes, recompute)
        return [spread(*x, shape, width) for x, shape in zip(outputs, shapes)]

    branches = [partial(run, branch) for branch in eqn.params["branches"]]
    if not index_in_lanes:
        return _all_laned(lax.switch(index, branches))
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

        def merge(branch=branch, takes_it=takes_it, results=results):
            return [
                choose(spread(takes_it, True, shape, width), new, old, lanes.exact)
                for new, old, shape in zip(branch(), results, shapes)
            ]

        results = lax.cond(in_any_lane(takes_it), merge, partial(list, results))
    return _all_laned(results)


_CONTROL_RULES: dict[str, Callable[..., list[Laned]]] = {
    "optimization_barrier": lambda eqn, operands, lanes: keep_values(operands),
    # Of one game's numbers, which are not spread out.
    "reshard": lambda eqn, operands, lanes: list(operands),
    "scan": _scan,
    "while": _while,
}
