"""What a loss sequence is, and sequences made from arrays and functions."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np
from jax import Array
from jax.tree_util import Partial

from sfmab_jax.checks import check_integer, check_number

__all__ = ["MOST_ARMS", "LossSequence", "as_loss_sequence", "from_array", "from_function"]

MOST_ARMS = 2**24


@dataclass(frozen=True)
class LossSequence:
    """An oblivious loss sequence l_1, l_2, ... in R^n, either generated or a table.

    A generated one is a pair of pure functions for one sequence. Random numbers come from the key
    and the round alone, so every round can be made again anywhere.

    Attributes:
      num_arms: n.
      init: ``init(key) -> state``; stateless sequences return ``()``.
      next: ``next(state, key, round) -> (state, loss)``, with round = 1, 2, ... an int32 [] and
        the loss a float32 [n].
      magnitude: the size of the largest losses, roughly. Simulations count in its units, which
        keeps losses of 1e-36 or 1e36 within float32's range.
      table: the losses [K, T, n] themselves, as NumPy; ``init`` and ``next`` are None then.
      name: for labels.
    """

    num_arms: int
    init: Callable[[Array], Any] | None = None
    next: Callable[[Any, Array, Array], tuple[Any, Array]] | None = None
    magnitude: float = 1.0
    table: np.ndarray | None = None
    name: str = "losses"

    @property
    def num_rounds(self) -> int | None:
        """T of a table; None for a sequence without end."""
        return None if self.table is None else self.table.shape[1]

    @property
    def num_sequences(self) -> int | None:
        """K of a table; None for a family with any number of members."""
        return None if self.table is None else self.table.shape[0]


def from_function(
    loss: Callable[..., Array],
    num_arms: int,
    magnitude: float = 1.0,
    name: str = "function",
    **parameters: Any,
) -> LossSequence:
    """A memoryless sequence: ``loss(key, round, **parameters) -> [n]``, pure and traceable.

    The key is already the round's own. Parameters can be changed without compiling again when
    ``loss`` is the same function.

    >>> import jax.numpy as jnp
    >>> cyclic = from_function(lambda key, t: (jnp.arange(3) == t % 3) * 1.0, num_arms=3)
    >>> cyclic.num_arms
    3
    """
    check_integer("num_arms", num_arms, 1, MOST_ARMS)
    check_number("magnitude", magnitude, positive=True)
    return LossSequence(
        num_arms=num_arms,
        init=Partial(_no_state),
        next=Partial(_stateless_next, Partial(loss, **parameters)),
        magnitude=float(magnitude),
        name=name,
    )


def from_array(losses: Any, name: str = "array") -> LossSequence:
    """The rows of a [T, n] array, or K sequences from a [K, T, n] array. Checked to be finite."""
    table = np.asarray(losses)
    if table.dtype.kind not in "fiub":
        raise ValueError(f"losses have dtype {table.dtype}; give real numbers")
    if table.ndim == 2:
        table = table[None]
    if table.ndim != 3 or 0 in table.shape:
        raise ValueError(
            f"losses have shape {np.shape(losses)}; give [rounds, arms] or [sequences, rounds, "
            "arms], none of them empty"
        )
    if not np.isfinite(table).all():
        k, t, i = np.argwhere(~np.isfinite(table))[0]
        raise ValueError(
            f"losses hold {table[k, t, i]} at sequence {k}, round {t + 1}, arm {i}; "
            "every loss must be finite"
        )
    largest = float(np.max(np.abs(table.astype(np.float64))))
    return LossSequence(
        num_arms=table.shape[2], magnitude=largest if largest > 0 else 1.0, table=table, name=name
    )


def as_loss_sequence(losses: Any) -> LossSequence:
    """``losses`` itself if it is a sequence, else `from_array` of it."""
    return losses if isinstance(losses, LossSequence) else from_array(losses)


def _no_state(key: Array) -> tuple[()]:
    return ()


def _stateless_next(loss, state, key: Array, round_: Array):
    return state, loss(jax.random.fold_in(key, round_), round_)
