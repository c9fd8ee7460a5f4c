"""What a simulation may follow beside the regret, as pure functions of one game."""

from collections.abc import Callable
from typing import Any, NamedTuple

from jax import Array

from sfmab_jax.base import BanditState, Round

__all__ = ["Observer"]


class Observer(NamedTuple):
    """Functions that watch every round of a game.

    Attributes:
      init: ``init(state)`` gives what is carried from round to round.
      follow: ``follow(carried, before, seen, losses, after)`` gives what is carried on, from
        the bandit's states before and after the round, the `Round` and the losses [n]. The round's
        ``estimate`` is not filled in; it holds p'_t.
      row: ``row(carried, state)`` gives the numbers to keep at a checkpoint [R].
    """

    init: Callable[[BanditState], Any]
    follow: Callable[[Any, BanditState, Round, Array, BanditState], Any]
    row: Callable[[Any, BanditState], Array]
