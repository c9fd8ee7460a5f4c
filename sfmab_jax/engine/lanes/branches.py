"""Which operations are worth doing inside a branch only."""

from sfmab_jax.engine.lanes.jaxpr import Tape, variables

__all__ = ["CONTROL", "needed_by_branches_only"]

# Operations that are replayed as a whole, and never moved.
CONTROL = frozenset("cond optimization_barrier reshard scan while".split())


def needed_by_branches_only(tape: Tape, is_branch: bool) -> dict[int, int]:
    """Find the operations whose results only the branches of a single ``cond`` need.

    They are postponed and done inside the branch: a round that does not take it saves them. A
    branch that computes nothing is no reason to postpone, since its operands are stored anyway.

    Args:
      tape: the operations.
      is_branch: whether they are a branch themselves. Then only vectors are postponed: a branch
        within a branch saves little, and XLA would repeat operations on numbers for every arm.

    Returns:
      A dictionary from the place of each such operation on the tape to the place of its cond.
    """
    # The places of the operations that use each value; -1: needed outside the branches.
    users: dict[int, set[int]] = {}
    for place, (eqn, inputs, _) in enumerate(tape.operations):
        stored = _stored_operands(eqn)
        for number, x in enumerate(inputs):
            if isinstance(x, int):
                users.setdefault(x, set()).add(-1 if number in stored else place)
    for x in tape.outputs:
        if isinstance(x, int):
            users.setdefault(x, set()).add(-1)
    cond_of: dict[int, int] = {}
    for place in range(len(tape.operations) - 1, -1, -1):
        eqn, inputs, results = tape.operations[place]
        name = eqn.primitive.name
        if name in CONTROL or name.startswith(("reduce", "arg")) or eqn.effects or not inputs:
            continue
        if is_branch and not any(var.aval.shape for var in eqn.outvars):
            continue
        reached = {cond_of.get(user, user) for x in results for user in users.get(x, {-1})}
        if len(reached) == 1 and -1 not in reached:
            (user,) = reached
            if tape.operations[user].eqn.primitive.name == "cond":
                cond_of[place] = user
    return cond_of


def _stored_operands(eqn) -> set[int]:
    """Return which operands of a choice are needed before its branches; of others none."""
    if eqn.primitive.name != "cond":
        return set()
    stored = {0}
    for branch in eqn.params["branches"]:
        if not branch.jaxpr.eqns:
            passed = variables(branch.jaxpr.outvars)
            stored |= {k for k, var in enumerate(branch.jaxpr.invars, 1) if var in passed}
    return stored
