"""Games recorded round by round, for the identities and inequalities of the paper's proofs."""

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from sfmab_jax.base import Bandit
from sfmab_jax.full_information.ftrl import follow
from sfmab_jax.numerics.arms import is_arm, pick
from sfmab_jax.numerics.double_word import Sum
from sfmab_jax.numerics.draw import draw_arm
from sfmab_jax.numerics.stability import mixability_gap
from sfmab_jax.numerics.threefry import pinned_generator, root_key
from sfmab_jax.potentials import Potential

__all__ = ["Trajectory", "every_path", "follow_losses", "play_games"]


class Trajectory(NamedTuple):
    """A game of T rounds, as float64 copies of what the package computed in its own precision.

    Points of the simplex are divided by their sums, which differ from 1 by a rounding.
    """

    losses: np.ndarray  # l_t [T, n]
    arms: np.ndarray  # i_t [T]; 0 in full information
    probabilities: np.ndarray  # p'_t [T, n]
    estimates: np.ndarray  # l~_t [T, n]; l_t in full information
    gaps: np.ndarray  # M_t(eta_{t-1}) [T]
    maximiser: np.ndarray  # q*_t, where the supremum in M_t(eta_{t-1}) is attained [T, n]
    play: np.ndarray  # p_1 ... p_{T+1} [T + 1, n]
    learning_rate: np.ndarray  # eta_0 ... eta_T [T + 1]
    exploration: np.ndarray  # gamma_0 ... gamma_T [T + 1]; 0 in full information

    @property
    def cumulative(self) -> np.ndarray:
        """L_0 = 0, L_1, ..., L_T [T + 1, n]."""
        zero = np.zeros_like(self.estimates[:1])
        return np.concatenate([zero, np.cumsum(self.estimates, axis=0)])


@pinned_generator()
def play_games(
    bandit: Bandit, potential: Potential, losses: np.ndarray, seed: int = 0, arms: Any = None
) -> list[Trajectory]:
    """Play games of a bandit with importance weighting and FTRL, in the dtype of the losses.

    Args:
      bandit: its full-information state has ``play`` and ``learning_rate``.
      potential: of its regulariser.
      losses: of G games [G, T, n].
      seed: of the arms drawn.
      arms: [G, T]; those not below 0 are played whatever the probabilities. None draws all.
    """
    forced = np.full(losses.shape[:2], -1) if arms is None else arms
    words = np.asarray(jax.random.bits(root_key(seed), (*forced.shape, 2), jnp.uint32))
    rows, states = _play_in_batches(bandit, losses, forced, words)
    arms, probabilities, estimates = rows
    play, rates, exploration = states
    gaps, maximiser = _gaps_and_maximisers(potential, play, estimates, rates)
    return _trajectories(
        losses, arms, probabilities, estimates, gaps, maximiser, play, rates, exploration
    )


def follow_losses(
    potential: Potential, losses: np.ndarray, learning_rate: np.ndarray
) -> list[Trajectory]:
    """Play FTRL in full information on losses [G, T, n] with positive rates eta_0 ... eta_T."""
    rates = np.broadcast_to(learning_rate, (len(losses), losses.shape[1] + 1)).astype(losses.dtype)
    play = np.asarray(_points(potential, *_two_words(losses), jnp.asarray(rates)))
    gaps, maximiser = _gaps_and_maximisers(potential, play, losses, rates)
    arms = np.zeros(losses.shape[:2])
    return _trajectories(
        losses, arms, play[:, :-1], losses, gaps, maximiser, play, rates, np.zeros_like(rates)
    )


# Games are played this many at a time, so that one program serves any number.
_BATCH = 256


def _play_in_batches(bandit: Bandit, losses: np.ndarray, arms: np.ndarray, words: np.ndarray):
    """Call `_play` in batches, the last filled up with copies of the last game; NumPy arrays."""
    parts = []
    for start in range(0, len(losses), _BATCH):
        places = np.minimum(start + np.arange(_BATCH), len(losses) - 1)
        batch = (jnp.asarray(losses[places]), jnp.int32(arms[places]), jnp.asarray(words[places]))
        parts.append(jax.tree.map(np.asarray, _play(bandit, *batch)))
    return jax.tree.map(lambda *leaves: np.concatenate(leaves)[: len(losses)], *parts)


@jax.jit
@partial(jax.vmap, in_axes=(None, 0, 0, 0))
def _play(bandit: Bandit, losses: Array, arms: Array, words: Array):
    def step(state, now):
        loss, forced, word = now
        probabilities = bandit.probabilities(state)
        arm = jnp.where(forced >= 0, forced, draw_arm(probabilities, (word[0], word[1])))
        here = is_arm(arm, loss)
        seen = pick(loss, arm)
        estimate = jnp.where(here, seen / pick(probabilities, arm), jnp.zeros_like(loss))
        state = bandit.update(state, arm, seen)
        return state, ((arm, probabilities, estimate), carried(state))

    def carried(state):
        follower = state.full_information
        return follower.play, follower.learning_rate, state.sampling.exploration

    first = bandit.init(losses.shape[1], losses.dtype)
    rows, after = jax.lax.scan(step, first, (losses, arms, words))[1]
    return rows, jax.tree.map(lambda x, xs: jnp.concatenate([x[None], xs]), carried(first), after)


@jax.jit
def _points(potential: Potential, high: Array, low: Array, rates: Array) -> Array:
    """The FTRL points of cumulative losses in two words [G, T + 1, n] and rates [G, T + 1]."""
    return jax.vmap(jax.vmap(partial(follow, potential)))(Sum(high, low), rates)


@jax.jit
def _gaps(potential: Potential, play: Array, losses: Array, rates: Array) -> Array:
    return jax.vmap(jax.vmap(partial(mixability_gap, potential)))(play, losses, rates)


def _two_words(losses: np.ndarray) -> tuple[Array, Array]:
    """L_0 = 0, L_1, ..., L_T in the losses' precision, and their rounding errors."""
    zero = np.zeros_like(losses[:, :1], np.float64)
    totals = np.concatenate([zero, np.cumsum(losses.astype(np.float64), axis=1)], axis=1)
    high = totals.astype(losses.dtype)
    return jnp.asarray(high), jnp.asarray((totals - high).astype(losses.dtype))


def _gaps_and_maximisers(potential, play, estimates, rates) -> tuple[np.ndarray, np.ndarray]:
    """M_t(eta_{t-1}) and q*_t, the FTRL point of (eta_{t-1}, L_t)."""
    gaps = _gaps(potential, *(jnp.asarray(x) for x in (play[:, :-1], estimates, rates[:, :-1])))
    # The rates of a round before; the first point is not used.
    late = np.concatenate([rates[:, :1], rates[:, :-1]], axis=1)
    maximiser = _points(potential, *_two_words(estimates), jnp.asarray(late))
    return np.asarray(gaps), np.asarray(maximiser)[:, 1:]


def _trajectories(
    losses, arms, probabilities, estimates, gaps, maximiser, play, rates, exploration
):
    def normalised(points):
        points = points.astype(np.float64)
        return points / points.sum(axis=-1, keepdims=True)

    columns = (
        losses.astype(np.float64),
        arms.astype(np.int64),
        normalised(probabilities),
        estimates.astype(np.float64),
        gaps.astype(np.float64),
        normalised(maximiser),
        normalised(play),
        rates.astype(np.float64),
        exploration.astype(np.float64),
    )
    return [Trajectory(*(column[game] for column in columns)) for game in range(len(losses))]


def every_path(
    bandit: Bandit, losses: np.ndarray, num_rounds: int | None = None
) -> tuple[np.ndarray, Trajectory]:
    """Play all n^T arm sequences on losses [T, n], and find how likely each is.

    Args:
      bandit: as in `play_games`.
      losses: of T rounds.
      num_rounds: the length to which rounds without loss are added. They do not count: arm 0 is
        played in them, and their probabilities are left out.

    Returns:
      The probabilities of the paths [P], and their games with a leading axis [P]; gaps and
      maximiser are empty.
    """
    depth, n = losses.shape
    more = (num_rounds or depth) - depth
    arms = np.indices((n,) * depth).reshape(depth, -1).T
    arms = np.pad(arms, ((0, 0), (0, more)))
    tables = np.broadcast_to(np.pad(losses, ((0, more), (0, 0))), (*arms.shape, n))
    words = np.zeros((*arms.shape, 2), np.uint32)
    rows, states = _play_in_batches(bandit, tables, arms, words)
    _, probabilities, estimates = (x.astype(np.float64) for x in rows)
    play, rates, exploration = (x.astype(np.float64) for x in states)
    chances = np.take_along_axis(probabilities, arms[..., None], axis=2)[:, :depth, 0]
    empty = np.empty(0)
    game = Trajectory(
        tables.astype(np.float64), arms, probabilities, estimates, empty, empty, play, rates,
        exploration,
    )  # fmt: skip
    return chances.prod(axis=1), game
