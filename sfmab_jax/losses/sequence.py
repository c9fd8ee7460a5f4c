"""The type of a loss sequence, and sequences made from arrays and functions."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, Protocol

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.tree_util import Partial

from sfmab_jax.checks import (
    check_arguments,
    check_functions,
    check_integer,
    check_number,
    check_positive,
)
from sfmab_jax.losses.draws import round_words
from sfmab_jax.losses.tracing import check_losses

__all__ = [
    "MOST_ARMS",
    "MOST_ROUNDS",
    "SEES",
    "LossSequence",
    "LossTable",
    "Sees",
    "as_loss_sequence",
    "best_arm",
    "best_arm_gap",
    "check_table",
    "constant_mean",
    "first_shown",
    "from_adversary",
    "from_array",
    "from_draws",
    "from_function",
    "from_recurrence",
    "in_float32",
    "place_of_loss",
    "recurrence_from_draws",
    "shown_of",
]

MOST_ARMS = 2**24
MOST_ROUNDS = 2**31 - 2**16

# What the losses of a round may depend on, beside the key and the round.
Sees = Literal["nothing", "arm", "law"]
# Why functions of losses are given no more.
_OBLIVIOUS = (
    "losses are oblivious here, made from the key and the round before the game: they see no arm, "
    "play or loss of the player (for losses that answer the arms played before use "
    "sf.losses.from_adversary); parameters are given by name"
)
_NOT_THE_PRESENT = {
    "arm": (
        "an adversary sees the arm of the round before, -1 in round 1, and never the present one, "
        "which is drawn after the losses; parameters are given by name"
    ),
    "law": (
        "an adversary that sees the law is given the arm of the round before, -1 in round 1, and "
        "the probabilities p'_t [n] of the present one, never the arm itself, which is drawn after "
        "the losses; parameters are given by name"
    ),
}
SEES: tuple[Sees, ...] = ("nothing", "arm", "law")  # each what the one before sees, and more
_SHOWN = {"nothing": "", "arm": ", last_arm", "law": ", last_arm, law"}


class LossTable(Protocol):
    """Losses [K, T, n] that can be read a piece at a time: a NumPy array or a file."""

    @property
    def shape(self) -> tuple[int, ...]: ...

    def __getitem__(self, index: Any) -> np.ndarray: ...


@dataclass(frozen=True, eq=False)  # tables have no one answer to ==
class LossSequence:
    """A loss sequence l_1, l_2, ... in R^n, either generated or a table.

    A generated one is a pair of pure functions for one sequence. Random numbers depend on the key
    and the round alone, so that any machine can generate any round again. It is oblivious, or an
    adversary that answers what was played; then the losses are those of one game.

    Attributes:
      num_arms: n.
      init: ``init(key) -> state``; stateless sequences return ``()``.
      next: ``next(state, key, round) -> (state, loss)``, with round = 1, 2, ... an int32 [] and
        the loss a float32 [n]. An adversary's has more arguments, see ``sees``.
      magnitude: roughly the size of the largest losses. Simulations use it as their unit, which
        keeps losses of 1e-36 or 1e36 within float32's range.
      mean: ``mean(init(key), round) -> [n]``, the expected losses given what was drawn at the
        start; None where it is not known.
      length: T of a generated sequence that ends; None for one without end.
      table: the losses [K, T, n] themselves; ``init`` and ``next`` are None then.
      name: for labels.
      sees: what ``next`` is given after the round: "nothing" if it is oblivious; "arm", the arm of
        the round before, int32 [], -1 in round 1; "law", that and p'_t, float32 [n].
    """

    num_arms: int
    init: Callable[[Array], Any] | None = None
    next: Callable[..., tuple[Any, Array]] | None = None
    magnitude: float = 1.0
    mean: Callable[[Any, Array], Array] | None = None
    length: int | None = None
    table: LossTable | None = None
    name: str = "losses"
    sees: Sees = "nothing"

    @property
    def is_oblivious(self) -> bool:
        """Whether the losses do not depend on what is played."""
        return self.sees == "nothing"

    @property
    def num_rounds(self) -> int | None:
        """T of a sequence that ends; None for one without end."""
        return self.length if self.table is None else self.table.shape[1]

    @property
    def num_sequences(self) -> int | None:
        """K of a table; None for a family with any number of members."""
        return None if self.table is None else self.table.shape[0]


def from_function(
    loss: Callable[..., Array],
    num_arms: int,
    magnitude: float = 1.0,
    name: str = "function",
    mean: Callable[..., Array] | None = None,
    **parameters: Any,
) -> LossSequence:
    """Make a memoryless sequence from a function of the round.

    Args:
      loss: ``loss(key, round, **parameters) -> [n]``, pure and traceable; the key is the round's
        own, the round an int32 [].
      num_arms: n.
      magnitude: roughly the size of the largest losses.
      name: for labels.
      mean: ``mean(round, **parameters) -> [n]``, the expected losses; None if they are not known.
      **parameters: numbers and arrays; they can change without compiling again if ``loss`` is the
        same function.

    It runs at the engine's full speed:

    >>> import jax.numpy as jnp
    >>> import sfmab_jax as sf
    >>> def fading(key, t, half_life):
    ...     fade = 0.5 ** (t.astype(jnp.float32) / half_life)
    ...     return fade * jax.random.normal(key, (5,), jnp.float32)
    >>> losses = sf.losses.from_function(fading, num_arms=5, half_life=1000.0)
    >>> result = sf.simulate(sf.strategies.scale_free(), losses, num_rounds=64, num_seeds=4)
    >>> result.regret.shape
    (4, 1, 64)
    """
    return _memoryless(_round_key, loss, num_arms, magnitude, name, mean, parameters)


def from_draws(
    loss: Callable[..., Array],
    num_arms: int,
    magnitude: float = 1.0,
    name: str = "draws",
    mean: Callable[..., Array] | None = None,
    **parameters: Any,
) -> LossSequence:
    """Make a memoryless sequence as `from_function` does, from words instead of a key.

    Args:
      loss: ``loss(draw, round, **parameters) -> [n]``; for ``draw`` see `losses.draws`.
      num_arms, magnitude, name, mean, **parameters: as in `from_function`.
    """
    return _memoryless(_round_draw, loss, num_arms, magnitude, name, mean, parameters)


def from_recurrence(
    init: Callable[..., Any],
    next_loss: Callable[..., tuple[Any, Array]],
    num_arms: int,
    magnitude: float = 1.0,
    name: str = "recurrence",
    mean: Callable[..., Array] | None = None,
    **parameters: Any,
) -> LossSequence:
    """Make a sequence with memory from a state and its recurrence.

    Args:
      init: ``init(key, **parameters)`` -> the state before round 1.
      next_loss: ``next_loss(state, key, round, **parameters)`` -> (the next state, the loss [n]);
        the key is the round's own.
      mean: ``mean(state, round, **parameters) -> [n]``, the expected losses given the state before
        round 1; None if they are not known.
      num_arms, magnitude, name, **parameters: as in `from_function`.

    >>> import jax.numpy as jnp
    >>> def step(total, key, t):
    ...     total = total + jax.random.normal(key, (3,), jnp.float32)
    ...     return total, total / jnp.sqrt(t.astype(jnp.float32))
    >>> from_recurrence(lambda key: jnp.zeros(3, jnp.float32), step, num_arms=3).num_arms
    3
    """
    how = (num_arms, magnitude, name, mean, parameters)
    return _recurrence(_round_key, init, next_loss, *how)


def from_adversary(
    init: Callable[..., Any],
    next_loss: Callable[..., tuple[Any, Array]],
    num_arms: int,
    magnitude: float = 1.0,
    name: str = "adversary",
    sees: Literal["arm", "law"] = "arm",
    **parameters: Any,
) -> LossSequence:
    """Make losses that answer the player: a recurrence that sees the arms played before.

    Every game then has losses of its own. The present arm is drawn after them and never seen.

    Args:
      init: ``init(key, **parameters)`` -> the state before round 1.
      next_loss: ``next_loss(state, key, round, last_arm, **parameters)`` -> (the next state, the
        loss [n]); the key is the round's own, ``last_arm`` the arm of the round before, int32 [],
        and -1 in round 1. What it is to remember of earlier arms it keeps in the state.
      num_arms, magnitude, name, **parameters: as in `from_function`.
      sees: "arm"; or "law" for ``next_loss(state, key, round, last_arm, law, **parameters)`` with
        the probabilities p'_t of the present arm, float32 [n]. Say so in the name, as
        `sf.losses.against_the_law` does.

    An adversary that punishes playing an arm twice in a row:

    >>> import jax
    >>> import jax.numpy as jnp
    >>> import sfmab_jax as sf
    >>> def punish(state, key, t, last_arm):
    ...     return state, jax.nn.one_hot(last_arm, 3, dtype=jnp.float32)
    >>> losses = from_adversary(lambda key: (), punish, num_arms=3)
    >>> result = sf.simulate(sf.strategies.exp3(), losses, num_rounds=64, num_seeds=4)
    >>> result.regret.shape
    (4, 1, 64)
    """
    if sees not in _NOT_THE_PRESENT:
        raise ValueError(f"sees is {sees!r}; choose 'arm' or 'law'")
    how = (num_arms, magnitude, name, None, parameters)
    return _recurrence(_round_key, init, next_loss, *how, sees=sees)


def shown_of(sees: Sees, shown: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return what losses that see less are given of (last_arm, law)."""
    return shown[: SEES.index(sees)]


def recurrence_from_draws(
    init: Callable[..., Any],
    next_loss: Callable[..., tuple[Any, Array]],
    num_arms: int,
    magnitude: float = 1.0,
    name: str = "draws",
    mean: Callable[..., Array] | None = None,
    **parameters: Any,
) -> LossSequence:
    """Make a sequence with memory as `from_recurrence` does, from words instead of a key.

    Args:
      init: as in `from_recurrence`.
      next_loss: ``next_loss(state, draw, round, **parameters)``; for ``draw`` see `losses.draws`.
      num_arms, magnitude, name, mean, **parameters: as in `from_recurrence`.
    """
    how = (num_arms, magnitude, name, mean, parameters)
    return _recurrence(_round_draw, init, next_loss, *how)


def from_array(losses: Any, name: str = "array") -> LossSequence:
    """Make a sequence of the rows of an array, or K sequences.

    Args:
      losses: [T, n] or [K, T, n], finite real numbers.
      name: for labels.

    >>> losses = from_array([[1.0, 0.0], [0.0, -3.0], [0.5, 0.5]])
    >>> losses.num_rounds, losses.num_arms, losses.magnitude
    (3, 2, 3.0)
    """
    try:
        table = np.asarray(losses)
    except ValueError:
        raise ValueError("losses have rows of several lengths; give every round all arms") from None
    table = table.reshape(check_table("losses have", table.shape, table.dtype))
    largest = max(abs(float(table.max())), abs(float(table.min())))  # NaN if there is one
    if not np.isfinite(largest):
        k, t, i = np.argwhere(~np.isfinite(table))[0]
        raise ValueError(
            f"losses hold {table[k, t, i]} at {place_of_loss(k, t, i, len(table))}; every loss "
            "must be finite"
        )
    return LossSequence(
        num_arms=table.shape[2], magnitude=largest if largest > 0 else 1.0, table=table, name=name
    )


def place_of_loss(k: int, t: int, i: int, num_sequences: int) -> str:
    """Return how messages call the loss ``table[k, t, i]`` of a table [K, T, n]."""
    if num_sequences == 1:
        return f"round {t + 1}, arm {i} (rounds count from 1, arms from 0)"
    return f"sequence {k}, round {t + 1}, arm {i} (rounds count from 1, sequences and arms from 0)"


def check_table(subject: str, shape: tuple[int, ...], dtype: np.dtype) -> tuple[int, ...]:
    """Return the shape as [K, T, n]; raise ValueError unless a table can have it and the dtype."""
    if dtype.kind not in "fiub":
        raise ValueError(f"{subject} dtype {dtype}; give real numbers")
    if len(shape) not in (2, 3) or 0 in shape:
        raise ValueError(
            f"{subject} shape {shape}; give [rounds, arms] or [sequences, rounds, arms], none of "
            "them empty"
        )
    return (1, *shape) if len(shape) == 2 else tuple(shape)


def as_loss_sequence(losses: Any) -> LossSequence:
    """Return ``losses`` if it is a sequence, else `from_array` of it; check the shape of a loss."""
    if not isinstance(losses, LossSequence):
        if callable(losses):
            raise ValueError(
                f"losses are {losses!r}; call the family, as sf.losses.sparse(), or give "
                "sf.losses.from_function(...) a function of your own"
            )
        return from_array(losses)
    if losses.init is not None and losses.next is not None:
        how = (losses.name, losses.init, losses.next, losses.num_arms)
        check_losses(*how, first_shown(losses))
    return losses


def first_shown(losses: LossSequence) -> tuple[np.ndarray, ...]:
    """Return what losses are shown of the play in round 1, of one game; () if oblivious."""
    law = np.full(losses.num_arms, 1 / losses.num_arms, np.float32)
    return shown_of(losses.sees, (np.full((), -1, np.int32), law))


def best_arm(num_arms: int) -> np.ndarray:
    """Return [i = 0], float32 [n]: arm 0 is the best of the stochastic families."""
    check_integer("num_arms", num_arms, 1, MOST_ARMS)
    return (np.arange(num_arms) == 0).astype(np.float32)


def best_arm_gap(num_arms: int, gap: float) -> np.ndarray:
    """Return gap [i = 0], float32 [n]."""
    best = best_arm(num_arms)
    check_number("gap", gap)
    return (gap * best).astype(best.dtype)


def constant_mean(round_: Array, *, means: Array) -> Array:
    """Return ``means`` [n]: the expected losses of sequences that are alike in every round."""
    return jnp.asarray(means)


def _memoryless(give, loss, num_arms: int, magnitude: float, name: str, mean, parameters: dict):
    """Return the sequence of ``loss(give(key, round), round, **parameters)``."""
    check_functions(loss=loss, **{} if mean is None else {"mean": mean})
    _check_family(num_arms, magnitude)
    check_arguments(f"loss of {name!r}", loss, "key, round", _OBLIVIOUS, **parameters)
    parameters = in_float32(parameters)
    return LossSequence(
        num_arms=num_arms,
        init=Partial(_no_state),
        next=Partial(_stateless_next, Partial(give), Partial(loss, **parameters)),
        magnitude=float(magnitude),
        mean=None if mean is None else Partial(_stateless_mean, Partial(mean, **parameters)),
        name=name,
    )


def _recurrence(
    give,
    init,
    next_loss,
    num_arms: int,
    magnitude: float,
    name: str,
    mean,
    parameters: dict,
    sees: Sees = "nothing",
):
    """Return the sequence of ``next_loss(state, give(key, round), round, *seen, **parameters)``."""
    check_functions(init=init, next_loss=next_loss, **{} if mean is None else {"mean": mean})
    _check_family(num_arms, magnitude)
    check_arguments(f"init of {name!r}", init, "key", _OBLIVIOUS, **parameters)
    given = f"state, key, round{_SHOWN[sees]}"
    hint = _NOT_THE_PRESENT.get(sees, _OBLIVIOUS)
    check_arguments(f"next_loss of {name!r}", next_loss, given, hint, **parameters)
    parameters = in_float32(parameters)
    return LossSequence(
        num_arms=num_arms,
        init=Partial(init, **parameters),
        next=Partial(_next, Partial(give), Partial(next_loss, **parameters)),
        magnitude=float(magnitude),
        mean=None if mean is None else Partial(mean, **parameters),
        name=name,
        sees=sees,
    )


def _check_family(num_arms: int, magnitude: float) -> None:
    check_integer("num_arms", num_arms, 1, MOST_ARMS)
    check_positive(magnitude=magnitude)


def in_float32(parameters: dict[str, Any]) -> dict[str, Any]:
    """Return the parameters with floats as float32, so that enabling float64 changes no loss."""
    return {
        name: np.float32(value) if isinstance(value, float) else value
        for name, value in parameters.items()
    }


def _no_state(key: Array) -> tuple[()]:
    return ()


def _round_key(key: Array, round_: Array) -> Array:
    return jax.random.fold_in(key, round_)


def _round_draw(key: Array, round_: Array) -> Callable[[int], Array]:
    return partial(round_words, key, round_)


def _stateless_next(give, loss, state, key: Array, round_: Array):
    return state, loss(give(key, round_), round_)


def _stateless_mean(mean, state, round_: Array) -> Array:
    return mean(round_)


def _next(give, next_loss, state, key: Array, round_: Array, *shown: Array):
    return next_loss(state, give(key, round_), round_, *shown)
