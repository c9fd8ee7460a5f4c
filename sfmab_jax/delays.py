"""Delays: how many rounds later a player learns what it met.

The observation of round t arrives at the end of round t + d_t, d_t >= 0, together with the law and
the arm that it was played with. With d_t = 0 that is the usual game. Several observations may
arrive in one round, or none; what has not arrived by the last round never does. Give one of these
to ``simulate(delay=...)``, or make a `Delay` of your own.
"""

import hashlib
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.tree_util import Partial

from sfmab_jax.base import as_partial, known_function
from sfmab_jax.checks import check_functions, check_integer, check_number

__all__ = [
    "MOST",
    "NEVER",
    "Delay",
    "as_delay",
    "fixed",
    "from_array",
    "from_function",
    "geometric",
]

# A delay after which nothing arrives, whatever the number of rounds.
NEVER = 2**31 - 1
# The largest delay of a function of one's own, unless it says another.
MOST = 1000
# Of geometric delays, all of which are below `NEVER` then.
_LARGEST_MEAN = 10_000_000


@dataclass(frozen=True, eq=False)  # tables have no one answer to ==
class Delay:
    """The delays d_1, d_2, ... of every game, drawn from a function or given by a table.

    Games draw their own, all strategies the same. A delay depends on the key and the round alone.

    Attributes:
      delay: ``delay(key, round)`` -> d_t, an integer [] from 0 to ``most``, or `NEVER`; the key is
        the game's and the round's own, the round = 1, 2, ... an int32 []. None for a table.
      most: the largest delay but `NEVER`. A game keeps as many observations, and one more.
      table: the delays [T] of every game, integers; None for a function.
      name: for labels.
    """

    delay: Callable[[Array, Array], Array] | None = None
    most: int = 0
    table: np.ndarray | None = None
    name: str = "delay"

    def __post_init__(self) -> None:
        """Refuse what is neither a function nor a table, or both."""
        if (self.delay is None) == (self.table is None):
            raise ValueError("a Delay has a function, delay=, or a table, table=; give one of them")
        check_integer("most", self.most, 0, NEVER - 1)

    def __repr__(self) -> str:
        """The name, and for how many rounds it is given."""
        rounds = "" if self.table is None else f", {len(self.table)} rounds"
        return f"Delay({self.name}{rounds})"

    def is_zero(self, num_rounds: int) -> bool:
        """Whether every observation of so many rounds is known to arrive at once."""
        if self.table is None:
            return self.most == 0 and getattr(self.delay, "func", None) is _fixed
        return not self.table[:num_rounds].any()

    def largest(self, num_rounds: int) -> int:
        """Return the largest delay after which something may arrive within so many rounds."""
        if self.table is None:
            return min(self.most, num_rounds - 1)
        table, left = self.table[:num_rounds], np.arange(num_rounds - 1, -1, -1)
        return int(table[table <= left].max(initial=0))

    def function(self, num_rounds: int) -> Partial:
        """Return (key, round) -> d_t, int32 []; what is too late for so many rounds is `NEVER`."""
        if self.table is None:
            assert self.delay is not None
            return as_partial(known_function(self.delay))
        table, left = self.table[:num_rounds], np.arange(num_rounds - 1, -1, -1)
        return Partial(_look_up, np.where(table <= left, table, NEVER).astype(np.int32))


def fixed(delay: int) -> Delay:
    """Delay every observation by as many rounds: d_t = d.

    Args:
      delay: d, not negative.

    >>> import sfmab_jax as sf
    >>> late = sf.simulate(
    ...     sf.strategies.exp3(), [[1.0, 0.0]] * 40, num_seeds=8, delay=sf.delays.fixed(10)
    ... )
    >>> late.delay
    'fixed 10'
    """
    number = check_integer("delay", delay, 0, NEVER - 1)
    return Delay(Partial(_fixed, np.int32(number)), number, name=f"fixed {number}")


def geometric(mean: float = 10.0, most: int | None = None) -> Delay:
    """Draw delays from the geometric law: P(d_t >= k) = (mean / (1 + mean))^k, each game its own.

    d_t = floor(ln U / ln(mean / (1 + mean))), U uniform on 32 bits.

    Args:
      mean: of the delays, positive.
      most: larger delays count as this one; by default the largest that 32 bits can give, about 23
        times the mean.
    """
    check_number("mean", mean, positive=True)
    if mean > _LARGEST_MEAN:
        raise ValueError(f"mean is {mean!r}; give a mean of at most {_LARGEST_MEAN:,} rounds")
    rate = math.log1p(1 / float(mean))
    possible = max(1, int(33 * math.log(2) / rate))
    number = possible if most is None else check_integer("most", most, 1, NEVER - 1)
    function = Partial(_geometric, np.float32(rate), np.int32(number))
    cut = "" if most is None else f", at most {number}"
    return Delay(function, number, name=f"geometric, mean {float(mean):g}{cut}")


def from_array(delays: Any) -> Delay:
    """Take the delays of an array, the same in every game.

    What would arrive after the last round is never kept: such delays may be as large as they like.

    Args:
      delays: d_1, ..., d_T, integers [T], not negative. A shorter run takes the first of them.

    >>> from_array([0, 3, 1])
    Delay(array 1987807b of mean 1.33, 3 rounds)
    """
    try:
        table = np.asarray(delays)
    except ValueError:
        table = np.asarray(None)
    if table.ndim != 1 or not table.size or table.dtype.kind not in "iu":
        raise ValueError(
            f"delays have shape {list(table.shape)} and dtype {table.dtype}; give an integer for "
            "each round, [rounds]"
        )
    if table.min() < 0:
        place = int(np.argmin(table >= 0))
        raise ValueError(
            f"the delay of round {place + 1} is {table[place]}; a delay is 0 or more rounds"
        )
    table = np.minimum(table.astype(np.uint64), NEVER).astype(np.int32)
    digest = hashlib.sha256(table.tobytes()).hexdigest()[:8]
    most = int(table[table < NEVER].max(initial=0))
    mean = table.mean(dtype=np.float64)
    return Delay(most=most, table=table, name=f"array {digest} of mean {mean:.3g}")


def from_function(delay: Callable[[Array, Array], Array], most: int = MOST) -> Delay:
    """Draw delays from a function of your own.

    Args:
      delay: ``delay(key, round)`` -> d_t, an integer [] from 0 to ``most``, or `NEVER`; pure and
        traceable. The key is the game's and the round's own, the round an int32 [].
      most: the largest delay. A game keeps that many observations, and one more.

    >>> import sfmab_jax as sf
    >>> late = from_function(lambda key, t: jax.random.randint(key, (), 0, 20), most=19)
    >>> sf.simulate(sf.strategies.exp3(), [[1.0, 0.0]] * 40, num_seeds=8, delay=late).delay
    'function, at most 19'
    """
    check_functions(delay=delay)
    number = check_integer("most", most, 1, NEVER - 1)
    given = getattr(delay, "__name__", "<lambda>")
    name = "function" if given == "<lambda>" else f"function {given}"
    return Delay(delay, number, name=f"{name}, at most {number}")


def as_delay(value: Any) -> Delay | None:
    """Return a `Delay` from what ``simulate(delay=...)`` takes; None for None."""
    if value is None or isinstance(value, Delay):
        return value
    if isinstance(value, str):
        if value != "geometric":
            raise ValueError(
                f"delay is {value!r}; give a number of rounds, 'geometric', an array [T], a "
                "function of key and round, or one of sf.delays"
            )
        return geometric()
    if callable(value):
        return from_function(value)
    is_number = not isinstance(value, list | tuple | range) and np.ndim(value) == 0
    return fixed(value) if is_number else from_array(value)


# Functions of this module, so that delays can be pickled.


def _fixed(delay, key: Array, round_: Array) -> Array:
    return jnp.asarray(delay, jnp.int32)


def _geometric(rate, most, key: Array, round_: Array) -> Array:
    word = jax.random.key_data(key)[0]
    uniform = (word.astype(jnp.float32) + jnp.float32(0.5)) * jnp.float32(2.0**-32)
    delay = jnp.floor(-jnp.log(uniform) / jnp.asarray(rate, jnp.float32)).astype(jnp.int32)
    return jnp.minimum(jnp.maximum(delay, 0), jnp.asarray(most, jnp.int32))


def _look_up(table, key: Array, round_: Array) -> Array:
    # Rounds past the last may be played; nobody asks what they leave.
    return jnp.asarray(table)[jnp.minimum(round_ - 1, len(table) - 1)]
