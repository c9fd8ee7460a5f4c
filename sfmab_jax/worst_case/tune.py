"""`tune`: the parameters of a strategy with the least expected regret on given losses."""

import math
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax import Array, lax

from sfmab_jax.base import Bandit
from sfmab_jax.checks import check_integer, check_number
from sfmab_jax.losses import LossSequence, as_loss_sequence
from sfmab_jax.numerics.threefry import game_keys, pinned_generator, root_key
from sfmab_jax.results.statistics import units_of
from sfmab_jax.simulate import simulate
from sfmab_jax.worst_case.evaluation import Rating, rate
from sfmab_jax.worst_case.gradient import mean_regrets
from sfmab_jax.worst_case.search import update
from sfmab_jax.worst_case.start_tables import members

__all__ = ["Tuned", "tune"]

# Of the central differences, as a share of the way between the limits.
_HALF_WIDTH = 0.05


class Tuned(NamedTuple):
    """Parameters found by `tune`.

    Attributes:
      parameters: by name.
      bandit: the strategy with these parameters.
      score: the mean regret on sequences and games that the search has not seen.
      history: the mean regret in training after every step, of the best restart [steps].
    """

    parameters: dict[str, float]
    bandit: Bandit
    score: Rating
    history: np.ndarray


@pinned_generator()
def tune(
    strategy_factory: Callable[..., Bandit],
    parameters: Mapping[str, tuple[float, float]],
    losses: LossSequence | Any,
    *,
    num_rounds: int | None = None,
    num_sequences: int = 8,
    num_restarts: int = 3,
    num_steps: int = 40,
    num_seeds: int = 32,
    step_size: float = 0.1,
    seed: int = 0,
    score_seeds: int = 512,
) -> Tuned:
    """Minimise the expected regret over continuous parameters, by gradient descent (Adam).

    A parameter moves between its two limits, on a logarithmic scale where both are positive. The
    gradient is a central difference over a tenth of that way, both sides with the same random
    numbers. `regret_gradient` gives derivatives by parameters, too, but over 200 rounds its
    unbiased form has standard deviations of 1e2 to 1e9, and its form of low variance leaves out
    the variance of the estimates, which learning rates and exploration control: near the best
    learning rate it has the wrong sign.

    Args:
      strategy_factory: ``strategy_factory(**parameters)`` gives a bandit, from traced numbers.
      parameters: names with (lowest, highest).
      losses: a family; or an array [K, T, n], of which every other sequence is held out.
      num_rounds: T; by default that of the array, or 200.
      num_sequences: members of a family to train on; as many others are held out for the score.
      num_restarts: starts, spread evenly between the limits.
      num_steps, num_seeds, step_size: of Adam; games of each sequence in a step; the first step as
        a share of the way between the limits.
      seed: of all random numbers of the search.
      score_seeds: games of each held-out sequence.

    >>> import sfmab_jax as sf
    >>> tuned = sf.tune(
    ...     sf.strategies.exp3, {"scale": (0.1, 10.0)}, sf.losses.bernoulli(num_arms=2),
    ...     num_rounds=20, num_steps=4, num_restarts=1, num_sequences=2, score_seeds=8
    ... )
    >>> 0.1 <= tuned.parameters["scale"] <= 10
    True
    """
    if not parameters:
        raise ValueError("parameters are empty; name at least one with its limits")
    for name, limits in parameters.items():
        if len(limits) != 2:
            raise ValueError(f"parameter {name!r} has {limits!r}; give (lowest, highest)")
        for limit in limits:
            check_number(name, limit)
        if not limits[0] < limits[1]:
            raise ValueError(f"{name} is from {limits[0]} to {limits[1]}; give lowest < highest")
    check_integer("num_restarts", num_restarts, 1, 2**16)
    check_integer("num_steps", num_steps, 1, 2**30)
    check_integer("num_seeds", num_seeds, 2, 2**20)
    check_integer("score_seeds", score_seeds, 2, 2**30)
    check_integer("num_sequences", num_sequences, 1, 2**20)
    check_integer("seed", seed, 0, 2**32 - 2)
    training, held_out = _split(as_loss_sequence(losses), num_rounds, num_sequences, seed)
    names = tuple(parameters)
    make = partial(_make, strategy_factory, {name: parameters[name] for name in names})
    places = (np.arange(num_restarts) + 1) / (num_restarts + 1)
    start = jnp.asarray(np.repeat(places[:, None], len(names), axis=1), jnp.float32)
    descend = jax.jit(partial(_descend, make, num_steps, num_seeds, step_size))
    tables = jnp.asarray(training, jnp.float32)
    places, history = map(np.asarray, descend(start, tables, root_key(seed)))
    # The mean over the last quarter of the steps has less of their noise.
    last = slice(-max(1, num_steps // 4), None)
    recent = history[last].mean(axis=0)
    if np.isnan(recent).all():
        raise ValueError("the regret is not a number for any of the parameters tried")
    best = int(np.nanargmin(recent))
    place = places[last, best].mean(axis=0)
    values = {name: float(_value(parameters[name], place[k])) for k, name in enumerate(names)}
    bandit = strategy_factory(**values)
    result: Any = simulate(bandit, held_out, num_seeds=score_seeds, seed=seed + 1, checkpoints=1)
    regrets = units_of(result.expected_regret[:, :, -1])[:, 0]
    return Tuned(values, bandit, rate(regrets, 1.0), history[:, best])


def _split(losses: LossSequence, num_rounds: int | None, number: int, seed: int):
    """Return the tables to train on and those held out, each [K, T, n]."""
    if losses.table is None:
        rounds = check_integer("num_rounds", num_rounds or 200, 1, 2**20)
        tables = members(losses, rounds, 2 * number, seed)
    else:
        rounds = num_rounds or losses.table.shape[1]
        tables = np.asarray(losses.table[:, :rounds], np.float64)
    if len(tables) < 2:
        raise ValueError("losses have one sequence; give two or more, as every other is held out")
    return tables[::2], tables[1::2]


def _value(limits: tuple[float, float], place: Array) -> Array:
    """Value of a parameter at a place in [0, 1] between its limits."""
    low, high = limits
    place = jnp.asarray(place)
    if low > 0:
        return low * jnp.exp(place * math.log(high / low))
    return low + place * (high - low)


def _make(factory, limits: dict[str, tuple[float, float]], places: Array) -> Bandit:
    return factory(**{name: _value(limits[name], places[k]) for k, name in enumerate(limits)})


def _descend(make, num_steps, num_seeds, step_size, start: Array, tables: Array, root):
    """Return the places [steps, R, P] and mean regrets [steps, R] of the restarts at every step."""
    optimizer = optax.adam(optax.cosine_decay_schedule(step_size, num_steps))
    sides = _HALF_WIDTH * jnp.eye(start.shape[1], dtype=start.dtype)

    def slope(place: Array, keys: Array) -> tuple[Array, Array]:
        around = jnp.concatenate([place[None] + sides, place[None] - sides])
        values = lax.map(lambda one: jnp.mean(mean_regrets(make(one), tables, keys, 1.0)), around)
        above, below = values.reshape(2, -1)
        return (above - below) / (2 * _HALF_WIDTH), jnp.mean(values)

    def step(carry, number: Array):
        places, state = carry
        seeds = jnp.arange(num_seeds, dtype=jnp.int32)
        keys = game_keys(root, number, seeds)
        slopes, regrets = lax.map(lambda one: slope(one, keys), places)
        change, state = update(optimizer, slopes, state, places)
        moved = optax.apply_updates(places, change)
        inside = optax.projections.projection_box(moved, _HALF_WIDTH, 1 - _HALF_WIDTH)
        return (inside, state), (inside, regrets)

    numbers = jnp.arange(num_steps, dtype=jnp.int32)
    return lax.scan(step, (start, optimizer.init(start)), numbers)[1]
