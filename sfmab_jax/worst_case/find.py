"""`worst_case`: the hardest loss sequence that gradient ascent finds."""

import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from sfmab_jax.base import Bandit, with_static_functions
from sfmab_jax.checks import check_integer, check_number, check_probability
from sfmab_jax.losses.sequence import from_array
from sfmab_jax.numerics.threefry import pinned_generator, root_key
from sfmab_jax.worst_case import checkpoint as files
from sfmab_jax.worst_case.constraints import Constraint, sup_norm
from sfmab_jax.worst_case.evaluation import WorstCase, bound_of, play_table, rate
from sfmab_jax.worst_case.objectives import Objective, divisor, regret
from sfmab_jax.worst_case.search import Ascent, Plan, advance, begin
from sfmab_jax.worst_case.start_tables import NamedTables, known_tables, rank, start_tables

__all__ = ["worst_case"]

# Added to the seed, so that training, ranking and scoring use different games.
_RANKING, _FRESH = 1, 2
# Games that rank a built-in adversary; its score comes from fresh ones.
_RANKING_SEEDS = 256
# Steps between two checks, so that progress is shown and Ctrl-C is answered.
_MOST_STEPS_AT_ONCE = 1000


class _Search(NamedTuple):
    """Constants of a search."""

    plan: Plan
    objective: Objective
    constraint: Constraint
    bandits: dict[str, Bandit]
    rivals: dict[str, NamedTables]  # the built-in adversaries of each strategy, hardest first
    seed: int
    score_seeds: int  # fresh games
    identity: str


@pinned_generator()
def worst_case(
    strategy: Bandit | Mapping[str, Bandit],
    num_arms: int,
    num_rounds: int,
    *,
    constraint: Constraint | None = None,
    objective: Objective | None = None,
    rivals: Sequence[str] | None = None,
    num_restarts: int = 8,
    num_steps: int = 200,
    num_seeds: int = 64,
    step_size: float = 0.1,
    feedback: float = 0.0,
    seed: int = 0,
    score_seeds: int = 4096,
    checkpoint: str | Path | None = None,
    progress: bool | Callable[[str], None] | None = None,
) -> WorstCase | dict[str, WorstCase]:
    """Search for the loss table [T, n] on which a strategy does worst, by gradient ascent.

    Starts from the built-in adversaries under the same constraint, and returns the best table
    found with its score on fresh games. Ctrl-C stops the search and returns the best so far; with
    ``checkpoint`` the same call goes on from there, to the same end.

    Args:
      strategy: a bandit, or several by name, which are searched together in one program.
      num_arms, num_rounds: n and T.
      constraint: of `sfmab_jax.constraints`; by default ``sup_norm(1.0)``.
      objective: of `sfmab_jax.objectives`; by default ``regret()``.
      rivals: families of `sfmab_jax.losses` to start from and to beat; by default all.
      num_restarts: tables that climb side by side.
      num_steps: of Adam.
      num_seeds: games of each table in each step.
      step_size: of the first step, in units of a typical loss under the constraint.
      feedback: 1 for the unbiased gradient, 0 for the one of low variance; see
        `sfmab_jax.worst_case.gradient`.
      seed: of all random numbers of the search.
      score_seeds: fresh games that score the result.
      checkpoint: a file (.npz) to which the search is written after every check.
      progress: whether to print a line after every check; None does so in a terminal. A function
        is given the line.

    >>> import sfmab_jax as sf
    >>> found = sf.worst_case(
    ...     sf.strategies.exp3_ix(), 2, 8, constraint=sf.constraints.box(0, 1), num_steps=20,
    ...     num_restarts=2, num_seeds=16, score_seeds=64, rivals=["bernoulli", "one_arm"]
    ... )
    >>> found.table.shape
    (8, 2)
    """
    bandits = dict(strategy) if isinstance(strategy, Mapping) else {"strategy": strategy}
    constraint = sup_norm(1.0) if constraint is None else constraint
    objective = regret() if objective is None else objective
    for name, bandit in bandits.items():
        if not isinstance(bandit, Bandit):
            raise ValueError(f"strategy {name!r} is {bandit!r}; give a Bandit")
    if not bandits:
        raise ValueError("strategy is empty; give at least one bandit")
    check_integer("num_arms", num_arms, 2, 4096)
    check_integer("num_rounds", num_rounds, 1, 2**20)
    check_integer("num_restarts", num_restarts, 1, 2**20)
    check_integer("num_steps", num_steps, 1, 2**30)
    check_integer("num_seeds", num_seeds, 2, 2**20)
    check_integer("score_seeds", score_seeds, 4, 2**30)
    check_integer("seed", seed, 0, 2**32 - 1 - _FRESH)
    check_number("step_size", step_size, positive=True)
    check_probability("feedback", feedback)
    size = _size(constraint, num_rounds, num_arms)
    unit = 1.0 if 1e-6 <= size <= 1e6 else float(2.0 ** np.rint(np.log2(size)))
    plan = Plan(
        num_steps=num_steps,
        check_every=min(max(1, num_steps // 10), _MOST_STEPS_AT_ONCE),
        num_seeds=num_seeds,
        selection_seeds=8 * num_seeds,
        step_size=step_size * size / unit,
        feedback=feedback,
        unit=unit,
    )
    known = known_tables(num_arms, num_rounds, constraint, seed, rivals)
    search = _Search(
        plan=plan,
        objective=objective,
        constraint=constraint,
        bandits={name: with_static_functions(bandit) for name, bandit in bandits.items()},
        rivals=_rank_rivals(bandits, known, objective, seed),
        seed=seed,
        score_seeds=score_seeds,
        identity=files.describe(
            bandits, objective, constraint.project, constraint.label, plan, num_arms, num_rounds,
            num_restarts, seed, tuple(rivals or ()),
        ),
    )  # fmt: skip
    path = None if checkpoint is None else Path(checkpoint)
    step, ascents, history = _ascend(search, num_restarts, size, path, _printer(progress))
    found = {
        name: _evaluate(search, name, ascent, step, np.array([row[k] for row in history]))
        for k, (name, ascent) in enumerate(zip(bandits, ascents))
    }
    return found["strategy"] if isinstance(strategy, Bandit) else found


def _rank_rivals(
    bandits: Mapping[str, Bandit], known: NamedTables, objective: Objective, seed: int
):
    """Rank the built-in adversaries of each strategy, the hardest first."""
    try:
        return {
            name: rank(bandit, known, objective, _RANKING_SEEDS, seed + _RANKING)[0]
            for name, bandit in bandits.items()
        }
    except KeyboardInterrupt:
        raise KeyboardInterrupt(
            "stopped while the built-in adversaries were ranked; nothing was searched yet"
        ) from None


def _ascend(search: _Search, num_restarts: int, size: float, path: Path | None, say):
    """Search to the last step, or to Ctrl-C; return the step, the searches and their scores."""
    plan = search.plan
    root = root_key(search.seed)
    bandits = tuple(search.bandits.values())
    ascents: tuple[Ascent, ...] = tuple(
        _begin(search, bandit, rivals, num_restarts, size, root)
        for bandit, rivals in zip(bandits, search.rivals.values())
    )
    history = [_scores(plan, search.objective, ascents)]
    step = 0
    stored = None if path is None else files.read_checkpoint(path, search.identity, ascents)
    if stored is not None:
        step, ascents, history = stored
        say(f"goes on after step {step} of {plan.num_steps}, from {path}")
    started, first = time.perf_counter(), step
    try:
        while step < plan.num_steps:
            next_ascents = advance(
                plan, search.objective, search.constraint.project, bandits, ascents, root,
                jnp.int32(step),
            )  # fmt: skip
            row = _scores(plan, search.objective, next_ascents)  # waits for the result
            step, ascents, history = step + plan.check_every, next_ascents, [*history, row]
            if path is not None:
                files.write_checkpoint(path, search.identity, step, ascents, history)
            left = (plan.num_steps - step) * (time.perf_counter() - started) / (step - first)
            best = ", ".join(
                f"{name} {value:.4g} (start {start:.4g})"
                for name, value, start in zip(search.bandits, row, history[0])
            )
            say(f"step {step} of {plan.num_steps}: {best}; {max(left, 0):.0f} s left")
    except KeyboardInterrupt:
        ending = "" if path is None else f"; the same call goes on from {path}"
        say(f"stopped after step {step} of {plan.num_steps}; the best found is kept{ending}")
    return step, ascents, history


def _begin(
    search: _Search, bandit: Bandit, rivals: NamedTables, number: int, size: float, root: Array
) -> Ascent:
    project, unit = search.constraint.project, search.plan.unit
    tables = start_tables(rivals, number, size, search.seed)
    dtype = jnp.zeros(()).dtype if unit == 1 else jnp.float32
    inside = jax.vmap(project)(jnp.asarray(tables / unit, dtype) * unit) / unit
    start = jax.jit(begin, static_argnums=0)
    return start(search.plan, search.objective, bandit, inside, root)


def _scores(plan: Plan, objective: Objective, ascents: tuple[Ascent, ...]) -> list[float]:
    """Best score of each search, in the unit of the losses."""
    unit = 1.0 if objective.bound is not None else plan.unit
    return [float(np.max(np.asarray(ascent.scores))) * unit for ascent in ascents]


def _evaluate(
    search: _Search, name: str, ascent: Ascent, step: int, history: np.ndarray
) -> WorstCase:
    """Score the best of the restarts and the best built-in adversary on fresh games."""
    bandit, other, rivals = search.bandits[name], search.objective.rival, search.rivals[name]
    # The current and the best tables of the restarts. The score that chose the best was the
    # luckiest of many, so all are compared once more, on more games.
    tables = np.concatenate([np.asarray(ascent.best), np.asarray(ascent.tables)])
    finalists = NamedTables(("found",) * len(tables), tables.astype(np.float64) * search.plan.unit)
    best = rank(
        bandit, finalists, search.objective, search.score_seeds // 2, search.seed + _RANKING
    )
    table = best[0].tables[0]
    (result, values), (rival_result, rival_values) = (
        play_table(name, bandit, losses, other, search.score_seeds, search.seed + _FRESH)
        for losses in (table, rivals.tables[0])
    )
    divisors = [divisor(search.objective, losses) for losses in (table, rivals.tables[0])]
    return WorstCase(
        name=name,
        constraint=search.constraint.label,
        losses=from_array(table, name=f"worst case of {name}"),
        table=table,
        score=rate(values, divisors[0]),
        rival=rivals.families[0],
        rival_losses=rivals.tables[0],
        rival_score=rate(rival_values, divisors[1]),
        result=result,
        rival_result=rival_result,
        bound=bound_of(result),
        history=history,
        num_steps=step,
        finished=step >= search.plan.num_steps,
    )


def _size(constraint: Constraint, num_rounds: int, num_arms: int) -> float:
    """Size of a typical loss, after checking that the constraint fits such tables."""
    shape = jax.ShapeDtypeStruct((num_rounds, num_arms), jnp.float32)
    try:
        jax.eval_shape(constraint.project, shape)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"the constraint ({constraint.label}) does not fit {num_rounds} rounds and "
            f"{num_arms} arms: {error}"
        ) from None
    return float(constraint.size(num_rounds, num_arms))


def _printer(progress: Any) -> Callable[[str], None]:
    if callable(progress):
        return progress
    if progress is False or (progress is None and not sys.stderr.isatty()):
        return lambda line: None
    return lambda line: print(line, file=sys.stderr, flush=True)
