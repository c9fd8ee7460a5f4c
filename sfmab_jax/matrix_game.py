"""play_matrix_game: two strategies in a zero-sum game, each the other's adversary."""

import warnings
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.tree_util import Partial

from sfmab_jax.base import Bandit, with_static_functions
from sfmab_jax.checks import check_integer
from sfmab_jax.engine.validate import unit_of_losses
from sfmab_jax.engine.validate_parts import check_parameters, check_shapes
from sfmab_jax.losses.draws import round_words
from sfmab_jax.losses.sequence import LossSequence
from sfmab_jax.numerics.arms import is_arm
from sfmab_jax.numerics.draw import draw_arm
from sfmab_jax.results import statistics
from sfmab_jax.results.curves import (
    Curve,
    band_words,
    draw_curves,
    has_several_units,
    label_y,
    name_lines,
    new_axes,
)
from sfmab_jax.results.plot_style import add_legend
from sfmab_jax.results.result import Result
from sfmab_jax.simulate import simulate

__all__ = ["MatrixGame", "play_matrix_game"]


@dataclass(frozen=True)
class MatrixGame:
    """Games of two strategies in a zero-sum matrix game A [n, m]: G games, C checkpoints.

    In round t the row player loses A(i_t, j_t) and the column player (max A + min A) - A(i_t, j_t),
    so that the losses of both have one range.

    Attributes:
      matrix: A [n, m], float64.
      row: the `Result` of the row player on the losses A(., j_t); ``row.regret`` is its external
        regret, ``row.arm_counts`` tells its average play.
      column_regret: sum_t A(i_t, j_t) with the best column less that with the columns played,
        max_j sum_t A(i_t, j) - sum_t A(i_t, j_t), [G, C].
      exploitability: of the average plays x and y of the first tau rounds, [G, C]: max_j (x'A)_j -
        min_i (A y)_i, how much their opponents could gain against them. It is the sum of both
        regrets over tau, not negative, and 0 in equilibrium.
    """

    matrix: np.ndarray
    row: Result
    column_regret: np.ndarray
    exploitability: np.ndarray

    def __repr__(self) -> str:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # a single game has no interval
            low, high = (side[-1] for side in self.interval())
        n, m = self.matrix.shape
        between = f" in [{low:.4g}, {high:.4g}]" if np.isfinite(low) else ""
        return (
            f"MatrixGame({n} x {m}, {self.rounds[-1]} rounds, {len(self.exploitability)} games, "
            f"mean exploitability {self.mean()[-1]:.4g}{between})"
        )

    @property
    def rounds(self) -> np.ndarray:
        """The checkpoints [C]."""
        return self.row.rounds

    @property
    def row_play(self) -> np.ndarray:
        """The average play of the row player, x [G, C, n]."""
        return self.row.arm_counts[:, 0] / self.rounds[:, None]

    def mean(self) -> np.ndarray:
        """Mean exploitability over the games [C]."""
        return self.exploitability.mean(axis=0)

    def interval(self, level: float = 0.95) -> tuple[np.ndarray, np.ndarray]:
        """Student's confidence interval of the mean exploitability: low and high [C]."""
        statistics.check_level(level)
        statistics.warn_if_no_interval(len(self.exploitability), "sequence")
        _, low, high = statistics.student_interval(self.exploitability, level)
        return low, high

    def plot(self, axes: Any = None, level: float = 0.95):
        """Plot the mean exploitability against the rounds, with its interval; return the axes."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)
            low, high = self.interval(level)
        doubtful = has_several_units(self.row, None) and bool(
            statistics.is_doubtful(self.exploitability[:, None])[0, -1]
        )
        said = (band_words("interval", level), f"over {len(self.exploitability):,} games", doubtful)
        mean, low, high = (line[None] for line in (self.mean(), low, high))
        curve = Curve("exploitability", self.rounds, mean, low, high, *said)
        axes = new_axes() if axes is None else axes
        words = name_lines(draw_curves(axes, [curve]), [curve])
        axes.set(xscale="log", yscale="log")
        axes.set_xlabel("round")
        label_y(axes, f"mean exploitability of the average play\n{words}")
        axes.grid(alpha=0.3)
        add_legend(axes)
        return axes


def play_matrix_game(
    matrix: Any,
    row: Bandit,
    column: Bandit,
    *,
    num_rounds: int = 10_000,
    num_seeds: int = 1024,
    **options: Any,
) -> MatrixGame:
    """Play two strategies against each other in a zero-sum matrix game.

    Each sees its own loss only, unless its feedback is full: then the losses of all its arms
    against the opponent's. Both draw in every round without knowing what the other draws.

    Args:
      matrix: A [n, m]: what the row player loses; the column player loses (max A + min A) - A.
      row, column: strategies with n and with m arms.
      num_rounds: T.
      num_seeds: how many games.
      **options: of `simulate`, such as ``seed``, ``checkpoints`` and ``dtype``; a ``delay`` is that
        of what the row player sees.

    Matching pennies, whose only equilibrium is to play both sides alike:

    >>> import sfmab_jax as sf
    >>> player = sf.strategies.exp3()
    >>> game = play_matrix_game([[1, 0], [0, 1]], player, player, num_rounds=2000, num_seeds=64)
    >>> bool(game.mean()[-1] < 0.1)
    True
    """
    table = _checked_matrix(matrix)
    for name, player, num_arms in (("row", row, len(table)), ("column", column, len(table[0]))):
        if not isinstance(player, Bandit):
            raise ValueError(
                f"{name} is {player!r}; give a Bandit, as made by sf.strategies.scale_free()"
            )
        check_parameters(name, player, np.dtype(np.float32))
        check_shapes(name, player, num_arms, np.dtype(np.float32))
    check_integer("num_rounds", num_rounds, 1, 2**31 - 1)
    losses = _column_player(table, column)
    given = {"arm_counts": True, "num_rounds": num_rounds, "num_seeds": num_seeds}
    result: Any = simulate({"row": row}, losses, **options | given)
    if not isinstance(result["row"], Result):
        raise ValueError("keep='moments' is not for matrix games; leave it out")
    return _game(table, result["row"])


def _checked_matrix(matrix: Any) -> np.ndarray:
    try:
        table = np.asarray(matrix, np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"matrix is {matrix!r}; give a table of numbers [n, m]") from None
    if table.ndim != 2 or 0 in table.shape:
        raise ValueError(f"matrix has shape {list(table.shape)}; give [n, m], not empty")
    if not np.isfinite(table.astype(np.float32)).all():
        raise ValueError("matrix has entries that are not finite in float32; give others")
    return table


def _game(table: np.ndarray, row: Result) -> MatrixGame:
    paid = row.regret[:, 0] + row.norms.best
    best_column = (row.arm_counts[:, 0] @ table).max(axis=-1)
    column_regret = best_column - paid
    exploitability = (best_column - row.norms.best) / row.rounds
    return MatrixGame(table, row, column_regret, exploitability)


def _column_player(table: np.ndarray, column: Bandit) -> LossSequence:
    """Return the column player as an adversary: the losses A(., j_t) of the arm that it draws."""
    largest = float(np.abs(table).max())
    unit = unit_of_losses(largest if largest > 0 else 1.0, np.dtype(np.float32))
    losses = table.astype(np.float32)
    # In units of the column player's own.
    own = ((table.max() + table.min() - table) / unit).astype(np.float32)
    player = with_static_functions(column)
    return LossSequence(
        num_arms=len(table),
        init=Partial(_init, player, np.float32(1 / unit), own),
        next=Partial(_next, player, losses, own),
        magnitude=largest if largest > 0 else 1.0,
        name="matrix game",
        sees="arm",
    )


def _init(column: Bandit, loss_unit, own: Array, key: Array):
    """Return the state of the column player before round 1, and an arm that stands for none."""
    return column.init(own.shape[1], jnp.float32, jnp.asarray(loss_unit)), jnp.int32(0)


def _next(column: Bandit, losses, own, state, key: Array, round_: Array, last_arm: Array):
    """Let the column player see the round before, and draw.

    Args:
      column: its strategy.
      losses: A [n, m].
      own: what it loses [n, m].
      state: its state before the last round, and the arm that it played in it.
      key: of the game's losses.
      round_: t.
      last_arm: i_{t-1}, -1 in round 1.
    """
    before, arm = state
    seen = column.feedback(_rows(own, last_arm), arm)
    after = column.update(before, arm, seen)
    now = jax.tree.map(lambda old, new: jnp.where(last_arm < 0, old, new), before, after)
    words = round_words(key, round_, 2)
    arm = draw_arm(column.probabilities(now), (words[0], words[1]))
    return (now, arm), _rows(jnp.asarray(losses).T, arm)


def _rows(table: Array, row: Array) -> Array:
    """Return row ``row`` of a table [n, m]; zeros if there is none."""
    table = jnp.asarray(table)
    return jnp.sum(jnp.where(is_arm(row, table)[:, None], table, 0), axis=0)
