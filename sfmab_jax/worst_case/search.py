"""Gradient ascent on loss tables: the restarts of all strategies climb in one program.

A step draws new games, estimates the derivative of the objective, takes a step of Adam and
projects onto the constraint. After every few steps all tables are scored on a set of games of
their own, and each restart keeps its best table. The score that is reported comes from neither
set of games.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax
from jax import Array, lax

from sfmab_jax.base import Bandit
from sfmab_jax.numerics.threefry import game_keys
from sfmab_jax.worst_case.gradient import mean_regrets, regret_gradient
from sfmab_jax.worst_case.objectives import Objective, bounds_and_slopes

__all__ = ["Ascent", "Plan", "advance", "begin", "update"]


class Plan(NamedTuple):
    """Settings of a search, the same for all strategies."""

    num_steps: int
    check_every: int  # steps between two scores
    num_seeds: int  # games of each table in a step
    selection_seeds: int  # games of each table in a score
    step_size: float  # of the first step, in the unit of the tables; it falls to 0
    feedback: float  # see `gradient`
    unit: float  # the size of 1 in true losses


class Ascent(NamedTuple):
    """State of the search for one strategy; R restarts."""

    tables: Array  # of the restarts [R, T, n]
    optimizer: Any
    best: Array  # the best table of each so far [R, T, n]
    scores: Array  # of these [R]


def begin(plan: Plan, objective: Objective, bandit: Bandit, tables: Array, root: Array) -> Ascent:
    """Return the search before its first step."""
    optimizer = jax.vmap(_optimizer(plan, tables).init)(tables)
    return Ascent(tables, optimizer, tables, _score(plan, objective, bandit, tables, root))


@partial(jax.jit, static_argnums=0)
def advance(
    plan: Plan,
    objective: Objective,
    project: Callable[[Array], Array],
    bandits: tuple[Bandit, ...],
    ascents: tuple[Ascent, ...],
    root: Array,
    first_step: Array,
) -> tuple[Ascent, ...]:
    """Take ``plan.check_every`` steps of every search, then score the tables.

    Args:
      plan, objective: of the search.
      project: of the constraint, for true losses.
      bandits, ascents: one for each strategy.
      root: a typed key; steps draw from it by their number, so a search can be resumed.
      first_step: int32 [], traced.
    """
    climb = partial(_climb, plan, objective, project)
    return tuple(climb(*pair, root, first_step) for pair in zip(bandits, ascents))


def _climb(plan: Plan, objective, project, bandit: Bandit, ascent: Ascent, root, first_step):
    optimizer = _optimizer(plan, ascent.tables)

    def step(number: Array, carry):
        tables, state = carry
        keys = _keys(root, 1 + first_step + number, plan.num_seeds)
        slope = _slope(plan, objective, bandit, tables, keys)
        change, state = jax.vmap(partial(update, optimizer))(-slope, state, tables)
        moved = optax.apply_updates(tables, change)
        return jax.vmap(lambda x: project(x * plan.unit) / plan.unit)(moved), state

    start = (ascent.tables, ascent.optimizer)
    tables, state = lax.fori_loop(0, plan.check_every, step, start)
    scores = _score(plan, objective, bandit, tables, root)
    better = scores > ascent.scores
    return Ascent(
        tables=tables,
        optimizer=state,
        best=jnp.where(better[:, None, None], tables, ascent.best),
        scores=jnp.where(better, scores, ascent.scores),
    )


def update(optimizer: optax.GradientTransformation, slope: Array, state: Any, tables: Array):
    """Call ``optimizer.update`` with promotion allowed: optax multiplies floats by its counter."""
    with jax.numpy_dtype_promotion("standard"):
        return optimizer.update(slope, state, tables)


def _optimizer(plan: Plan, tables: Array) -> optax.GradientTransformation:
    """Return Adam with a cosine schedule. Slopes of more than about 1 per loss are clipped."""
    entries = tables.shape[1] * tables.shape[2]
    return optax.chain(
        optax.clip_by_global_norm(entries**0.5),
        optax.adam(optax.cosine_decay_schedule(plan.step_size, plan.num_steps), b2=0.99),
    )


def _slope(plan: Plan, objective: Objective, bandit: Bandit, tables: Array, keys: Array) -> Array:
    """Estimate the derivative of the objective by the tables, [R, T, n], from these games.

    A constant factor does not matter: with a bound B, B d(R/B) = dR - (R/B) dB is followed.
    """
    regrets, slope = _mean_gradient(plan, bandit, tables, keys)
    if objective.rival is not None:
        rival_regrets, rival_slope = _mean_gradient(plan, objective.rival, tables, keys)
        regrets, slope = regrets - rival_regrets, slope - rival_slope
    if objective.bound is not None:
        bounds, slopes = bounds_and_slopes(objective, tables, plan.unit)
        slope = slope - (regrets / bounds)[:, None, None] * slopes
    return slope


def _mean_gradient(plan: Plan, bandit: Bandit, tables: Array, keys: Array) -> tuple[Array, Array]:
    gradient = regret_gradient(
        lambda _: bandit, (), tables, keys, feedback=plan.feedback, loss_unit=1 / plan.unit
    )
    return jnp.mean(gradient.regrets, axis=-1), jnp.mean(gradient.by_losses, axis=-1)


def _score(plan: Plan, objective: Objective, bandit: Bandit, tables: Array, root: Array) -> Array:
    """Score every table on the games reserved for this, [R], in units of ``plan.unit``."""
    keys = _keys(root, jnp.int32(0), plan.selection_seeds)
    value = mean_regrets(bandit, tables, keys, 1 / plan.unit)
    if objective.rival is not None:
        value = value - mean_regrets(objective.rival, tables, keys, 1 / plan.unit)
    if objective.bound is not None:
        value = value / bounds_and_slopes(objective, tables, plan.unit)[0]
    return value


def _keys(root: Array, number: Array, num_seeds: int) -> Array:
    return game_keys(root, number, jnp.arange(num_seeds, dtype=jnp.int32))
