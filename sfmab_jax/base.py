"""The types of a bandit strategy and its parts: sampling, estimation, full information.

Section 2 of the paper. Each part is a NamedTuple of pure functions written for one game, with the
arms in one vector ``[n]``. The parts' states are NamedTuples, too. Parts built with
`jax.tree_util.Partial` carry their parameters as pytree leaves: changing a parameter does not
compile anything again.
"""

from collections.abc import Callable, Iterator
from functools import partial
from types import CodeType, FunctionType, ModuleType
from typing import Any, NamedTuple

import jax
from jax import Array
from jax.tree_util import Partial

from sfmab_jax.numerics.arms import pick

__all__ = [
    "Bandit",
    "BanditState",
    "Estimation",
    "FullInformation",
    "Round",
    "Sampling",
    "as_partial",
    "feedback_of",
    "has_own_functions",
    "keep_state",
    "known_function",
    "static_functions",
    "with_static_functions",
]

State = Any


class Round(NamedTuple):
    """What is known after round t, passed to the ``update`` of every part.

    Attributes:
      play: p_t [n], from the full-information strategy.
      probabilities: p'_t [n], from the sampling scheme.
      arm: i_t [], int32.
      loss: l_t(i_t) [].
      estimate: l~_t [n], from the estimation scheme.
      weighted: l~_t(i_t) [] if l~_t is 0 on all other arms; None if that is not known.
      missing: how many observations are still on their way after this one, int32 []; None where
        feedback is not delayed.

    With delayed feedback (``simulate(delay=...)``) a part is updated once for each observation,
    when it arrives, and the rounds that it counts are those observed. ``probabilities``, ``arm``
    and ``loss`` are of the round that was played, and so is the p_t of which ``estimate`` was made;
    ``play`` is the present one.
    """

    play: Array
    probabilities: Array
    arm: Array
    loss: Array
    estimate: Array
    weighted: Array | None = None
    missing: Array | None = None


class Sampling(NamedTuple):
    """S: makes p'_t [n], the law of the arm, from p_t [n]. Section 2, "Sampling Scheme".

    Attributes:
      init: ``init(num_arms, dtype, loss_unit)`` -> the state, any pytree of arrays, whose types
        and shapes ``update`` keeps; for ``loss_unit`` see `Bandit`.
      probabilities: ``probabilities(state, play [n])`` -> p'_t [n].
      update: ``update(state, round)`` -> the next state; see `Round`.

    A scheme that explores with gamma_t = 1 / (2 + t):

    >>> import jax.numpy as jnp
    >>> scheme = Sampling(
    ...     init=lambda num_arms, dtype, loss_unit: jnp.zeros((), dtype),
    ...     probabilities=lambda t, play: play + (1 / play.size - play) / (2 + t),
    ...     update=lambda t, seen: t + 1,
    ... )
    >>> print(scheme.probabilities(jnp.float32(0), jnp.array([1.0, 0.0], jnp.float32)))
    [0.75 0.25]
    """

    init: Callable[..., State]
    probabilities: Callable[[State, Array], Array]
    update: Callable[[State, Round], State]


class Estimation(NamedTuple):
    """E: makes l~_t [n], an estimate of all losses, from the one seen. Section 2.

    Attributes:
      init, update: as in `Sampling`.
      estimate: ``estimate(state, play [n], probabilities [n], arm [], loss [])`` -> l~_t [n].
      weigh: with the arguments of ``estimate``, -> l~_t(i_t) [], which must agree with it. Only for
        schemes whose estimates are 0 on all other arms; it saves time.
    """

    init: Callable[..., State]
    estimate: Callable[[State, Array, Array, Array, Array], Array]
    update: Callable[[State, Round], State]
    weigh: Callable[[State, Array, Array, Array, Array], Array] | None = None


class FullInformation(NamedTuple):
    """F: makes p_{t+1} [n], a point of the simplex, from the estimates so far. Section 2.

    Attributes:
      init, update: as in `Sampling`; the state has a field ``play``, which is p_{t+1} after round
        t.
      wait: ``wait(state, round, missing)`` -> the next state, called at the end of every round t of
        a game with delayed feedback, after the updates by what arrived in it, with the number of
        observations still missing; both int32 []. For strategies whose play changes with the time;
        None for all others. Where feedback is not delayed it is never called.
    """

    init: Callable[..., State]
    update: Callable[[State, Round], State]
    wait: Callable[[State, Array, Array], State] | None = None


class BanditState(NamedTuple):
    """The states of the three parts: ``sampling``, ``estimation`` and ``full_information``."""

    sampling: State
    estimation: State
    full_information: State


class Bandit(NamedTuple):
    """A bandit strategy, made by `compose`.

    Attributes:
      init: ``init(num_arms, dtype=float32, loss_unit=1.0)`` -> the state before round 1.
        ``loss_unit`` is the size of one unit of loss in the numbers the bandit will be shown;
        constants that carry that unit, such as beta in the learning rate, are multiplied by it.
      probabilities: ``probabilities(state)`` -> p'_t [n].
      update: ``update(state, arm, loss)`` -> the next state. ``loss`` is that of the arm [], or
        the losses of all arms [n] where the feedback is full.
      feedback: ``feedback(losses, arm)`` -> what the player is shown of l_t [n]; see
        `feedback_of`.
    """

    init: Callable[..., BanditState]
    probabilities: Callable[[BanditState], Array]
    update: Callable[[BanditState, Array, Array], BanditState]
    feedback: Callable[[Array, Array], Array] = Partial(pick)


def feedback_of(kind: str) -> Callable[[Array, Array], Array]:
    """Return (l_t [n], arm []) -> what the player is shown.

    Args:
      kind: "bandit" for l_t(arm) [], "full" for l_t itself [n].
    """
    kinds = {"bandit": pick, "full": _all_losses}
    if not isinstance(kind, str) or kind not in kinds:
        raise ValueError(f"feedback is {kind!r}; choose 'bandit' or 'full'")
    return Partial(kinds[kind])


def _all_losses(losses: Array, arm: Array) -> Array:
    return losses


def keep_state(state: State, seen: Round) -> State:
    """Return the state as it is: the ``update`` of parts that learn nothing."""
    return state


def as_partial(function: Callable[..., Any]) -> Partial:
    """Return the function as a pytree. A `Partial` is one; a second would hide its leaves."""
    return function if isinstance(function, Partial) else Partial(function)


def with_static_functions(value: Any) -> Any:
    """Return ``value`` with its bare functions wrapped, so that it is a pytree of numbers."""
    return jax.tree.map(lambda leaf: Partial(leaf) if callable(leaf) else leaf, value)


# Functions by what they do, for `known_function`.
_KNOWN: dict[Any, Callable[..., Any]] = {}


def known_function(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return an earlier function that does the same, if one is known.

    A lambda in a loop is another function at every turn, for which all would be compiled again.
    Only functions that read nothing but their arguments and JAX are taken to be the same.
    """
    if (
        not isinstance(function, FunctionType)
        or function.__closure__
        or function.__defaults__
        or function.__kwdefaults__
        or not _reads_jax_only(function.__code__, function.__globals__)
    ):
        return function
    if len(_KNOWN) >= 256:
        _KNOWN.clear()
    return _KNOWN.setdefault((function.__code__, id(function.__globals__)), function)


def _reads_jax_only(code: CodeType, names: dict[str, Any]) -> bool:
    """Whether all globals that the code may read, among ``names``, are modules of JAX."""
    read = [names[name] for name in code.co_names if name in names]
    inner = [const for const in code.co_consts if isinstance(const, CodeType)]
    return all(
        isinstance(value, ModuleType) and value.__name__.split(".")[0] == "jax" for value in read
    ) and all(_reads_jax_only(one, names) for one in inner)


def static_functions(value: Any) -> Iterator[Callable[..., Any]]:
    """Yield the functions that a pytree made by `with_static_functions` holds, however deep."""
    for part in jax.tree.leaves(value, is_leaf=lambda x: isinstance(x, partial)):
        if isinstance(part, partial):  # a `Partial` is one, too
            yield from static_functions((part.func, part.args, part.keywords))
        elif callable(part):
            yield part


def has_own_functions(value: Any) -> bool:
    """Whether all functions of a pytree made by `with_static_functions` are not a user's."""
    homes = {(function.__module__ or "").split(".")[0] for function in static_functions(value)}
    return homes <= {"sfmab_jax", "jax", "math"}
