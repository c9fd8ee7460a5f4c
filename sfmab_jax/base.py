"""The types everything is made of: a bandit strategy is sampling + estimation + full information.

Section 2 of the paper. Each part is a NamedTuple of pure functions written for one game, with the
arms in one vector ``[n]``. The parts' own states are NamedTuples, too. Parts built with
`jax.tree_util.Partial` carry their parameters as pytree leaves: a change of parameter does not
compile again.
"""

import inspect
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
from jax import Array
from jax.tree_util import Partial

from sfmab_jax.floating import pick

__all__ = [
    "Bandit",
    "BanditState",
    "Estimation",
    "FullInformation",
    "Round",
    "Sampling",
    "as_partial",
    "feedback_of",
    "told_rounds",
    "with_static_functions",
]

State = Any


class Round(NamedTuple):
    """What is known after round t; handed to the update of every part.

    Attributes:
      play: p_t [n], from the full-information strategy.
      probabilities: p'_t [n], from the sampling scheme.
      arm: i_t [], int32.
      loss: l_t(i_t) [].
      estimate: l~_t [n], from the estimation scheme.
      weighted: l~_t(i_t) [] if l~_t is 0 on all other arms; None if that is not known.
    """

    play: Array
    probabilities: Array
    arm: Array
    loss: Array
    estimate: Array
    weighted: Array | None = None


class Sampling(NamedTuple):
    """S: makes p'_t [n], the law of the arm, from p_t [n]. Section 2, "Sampling Scheme".

    ``init(num_arms, dtype, loss_unit)`` gives the state, any pytree of arrays, whose types and
    shapes ``update`` keeps; ``loss_unit`` is explained in `Bandit`. ``probabilities(state, play)``
    gives p'_t. ``update(state, round)`` gives the next state, see `Round`.

    A scheme that explores with gamma_t = 1 / (2 + t):

    >>> import jax.numpy as jnp
    >>> mine = Sampling(
    ...     init=lambda num_arms, dtype, loss_unit: jnp.zeros((), dtype),
    ...     probabilities=lambda t, play: play + (1 / play.size - play) / (2 + t),
    ...     update=lambda t, seen: t + 1,
    ... )
    >>> print(mine.probabilities(jnp.float32(0), jnp.array([1.0, 0.0], jnp.float32)))
    [0.75 0.25]
    """

    init: Callable[..., State]
    probabilities: Callable[[State, Array], Array]
    update: Callable[[State, Round], State]


class Estimation(NamedTuple):
    """E: makes l~_t [n], an estimate of all losses, from the one seen. Section 2.

    ``estimate(state, play [n], probabilities [n], arm [], loss [])`` gives l~_t; ``init`` and
    ``update`` as in `Sampling`. ``weigh``, with the arguments of ``estimate``, gives l~_t(i_t)
    alone; a scheme has it if its estimates are 0 on all other arms, which saves time. The two
    must agree.
    """

    init: Callable[..., State]
    estimate: Callable[[State, Array, Array, Array, Array], Array]
    update: Callable[[State, Round], State]
    weigh: Callable[[State, Array, Array, Array, Array], Array] | None = None


class FullInformation(NamedTuple):
    """F: makes p_{t+1} [n], a point of the simplex, from the estimates so far. Section 2.

    The state has a field ``play``, which is p_{t+1} after round t; ``init`` and ``update`` as in
    `Sampling`.
    """

    init: Callable[..., State]
    update: Callable[[State, Round], State]


class BanditState(NamedTuple):
    """The states of the three parts: ``sampling``, ``estimation`` and ``full_information``."""

    sampling: State
    estimation: State
    full_information: State


class Bandit(NamedTuple):
    """A bandit strategy, made by `compose`.

    ``init(num_arms, dtype=float32, loss_unit=1.0)``: the state before round 1. ``loss_unit`` is
    the size of one unit of loss in the numbers the bandit will be shown; constants that carry
    that unit, such as beta in the learning rate, are multiplied by it.
    ``probabilities(state)``: p'_t [n].
    ``update(state, arm, loss)``: the state after seeing ``loss`` of ``arm``: one number [], or
    the losses of all arms [n] where the feedback is full.
    ``feedback(losses, arm)``: what the player is shown of l_t [n]; see `feedback_of`.
    """

    init: Callable[..., BanditState]
    probabilities: Callable[[BanditState], Array]
    update: Callable[[BanditState, Array, Array], BanditState]
    feedback: Callable[[Array, Array], Array] = Partial(pick)


def feedback_of(kind: str) -> Callable[[Array, Array], Array]:
    """(l_t [n], arm) -> what is seen: "bandit" l_t(arm) [], "full" l_t itself [n]."""
    kinds = {"bandit": pick, "full": _everything}
    if not isinstance(kind, str) or kind not in kinds:
        raise ValueError(f"feedback is {kind!r}; choose 'bandit' or 'full'")
    return Partial(kinds[kind])


def _everything(losses: Array, arm: Array) -> Array:
    return losses


def as_partial(function: Callable[..., Any]) -> Partial:
    """``function`` as a pytree. A `Partial` is one; wrapped again it would hide its leaves."""
    return function if isinstance(function, Partial) else Partial(function)


def with_static_functions(value: Any) -> Any:
    """``value`` with bare functions wrapped so that it is a pytree of numbers."""
    return jax.tree.map(lambda leaf: Partial(leaf) if callable(leaf) else leaf, value)


def told_rounds(factory: Callable[..., Any], num_rounds: int) -> dict[str, int]:
    """``num_rounds`` as a keyword, for strategies and loss families that take it."""
    takes_it = "num_rounds" in inspect.signature(factory).parameters
    return {"num_rounds": num_rounds} if takes_it else {}
