"""Feedback that arrives later: what of one game is on its way, and what its parts learn of it.

A game with delays up to D keeps its last D + 1 rounds in a ring, round t at place t mod (D + 1).
What arrives in one round is a circle of places, the newest of which is known and leads on to the
oldest, so that nothing need be searched for.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array, lax

from sfmab_jax.base import Bandit, BanditState
from sfmab_jax.compose import learn, observe, parts_of
from sfmab_jax.delays import NEVER
from sfmab_jax.numerics.arms import is_arm
from sfmab_jax.numerics.threefry import key_of_words, threefry_2x32

__all__ = ["DelayProcess", "Waiting", "begin_waiting", "bytes_waiting", "learn_late"]


class DelayProcess(NamedTuple):
    """How the delays of any game are made."""

    next: Any  # (key of the game and the round, round) -> d_t, as a pytree of numbers
    most: Any  # the largest delay but `NEVER`, int32 []


class Waiting(NamedTuple):
    """The observations of one game that have not arrived; P = D + 1 places, m = 2n + 1 or 3n."""

    rounds: Array  # p, p' and what was shown at each place, one after the other [P m]
    arms: Array  # int32 [P]
    following: Array  # the next place of a circle, int32 [P]
    newest: Array  # of what arrives in round u, at u mod P: its newest place or -1, int32 [P]
    missing: Array  # how many have not arrived, int32 []
    first_fault: Array  # the first round of a negative or too large delay, or 0, int32 []


def begin_waiting(bandit: Bandit, num_arms: int, dtype: Any, places: int) -> Waiting:
    """Return the state of a game before round 1 that keeps its last ``places`` rounds."""
    zero = jnp.zeros((), jnp.int32)
    slots = jnp.zeros(places, jnp.int32)
    size = 2 * num_arms + _shown_size(bandit, num_arms, dtype)
    return Waiting(jnp.zeros(places * size, dtype), slots, slots, slots - 1, zero, zero)


def bytes_waiting(bandit: Bandit, num_arms: int, dtype: Any, places: int) -> int:
    """Return the size of a game's `Waiting`."""
    size = 2 * num_arms + _shown_size(bandit, num_arms, dtype)
    return places * (size * jnp.dtype(dtype).itemsize + 3 * 4)


def learn_late(
    bandit: Bandit,
    delays: DelayProcess,
    round_: Array,
    key: Array,
    state: BanditState,
    waiting: Waiting,
    probabilities: Array,
    arm: Array,
    shown: Array,
) -> tuple[BanditState, Waiting]:
    """End a round of a game: keep what was shown, and let the parts learn what arrives.

    What arrives is handed over from the oldest to the newest. E makes the estimate from p_s and
    p'_s of the round s that was played; the parts see the present p_t as ``Round.play``.

    Args:
      bandit: made by `compose`.
      delays: of the game.
      round_: t, int32 [].
      key: of the game, uint32 [2].
      state: before the round.
      waiting: before the round.
      probabilities: p'_t [n].
      arm: i_t [].
      shown: what the player is to learn, l_t(i_t) [] or l_t [n].
    """
    parts, places = parts_of(bandit), len(waiting.arms)
    play = state.full_information.play
    num_arms, size = len(play), len(waiting.rounds) // places
    delay, first_fault = _delay_of_round(delays, round_, key, waiting.first_fault)
    numbers = jnp.concatenate(
        [x.astype(waiting.rounds.dtype) for x in (play, probabilities, jnp.atleast_1d(shown))]
    )
    place = round_ % places
    waiting = waiting._replace(
        rounds=lax.dynamic_update_slice(waiting.rounds, numbers, (place * size,)),
        arms=_put(waiting.arms, place, arm),
        missing=waiting.missing + 1,
        first_fault=first_fault,
    )
    waiting = _join_circle(waiting, place, (round_ + delay) % places, delay < places)

    # What arrives now.
    newest = _take(waiting.newest, place)
    oldest = jnp.where(newest < 0, -1, _take(waiting.following, jnp.maximum(newest, 0)))

    def hand_over(carry: tuple[Array, Array, BanditState]):
        at, missing, state = carry
        # One by one, as not all parts look at all of it.
        play_then, law, told = (
            lax.dynamic_slice(waiting.rounds, (at * size + start,), (length,))
            for start, length in ((0, num_arms), (num_arms, num_arms), (2 * num_arms, shown.size))
        )
        seen = observe(
            parts,
            state,
            law.astype(probabilities.dtype),
            _take(waiting.arms, at),
            told.astype(shown.dtype).reshape(shown.shape),
            play=play_then.astype(play.dtype),
            missing=missing - 1,
        )
        after = jnp.where(at == newest, -1, _take(waiting.following, at))
        return after, missing - 1, learn(parts, state, seen)

    _, missing, state = lax.while_loop(
        lambda carry: carry[0] >= 0, hand_over, (oldest, waiting.missing, state)
    )
    waiting = waiting._replace(newest=_put(waiting.newest, place, jnp.int32(-1)), missing=missing)
    wait = parts[2].wait
    if wait is not None:
        state = state._replace(full_information=wait(state.full_information, round_, missing))
    return state, waiting


def _shown_size(bandit: Bandit, num_arms: int, dtype: Any) -> int:
    """Return how many numbers the player is shown, 1 or n."""
    losses, arm = jax.ShapeDtypeStruct((num_arms,), dtype), jax.ShapeDtypeStruct((), jnp.int32)
    return jax.eval_shape(bandit.feedback, losses, arm).size


def _delay_of_round(
    delays: DelayProcess, round_: Array, key: Array, first_fault: Array
) -> tuple[Array, Array]:
    """Return d_t, kept in its limits, and the first round in which it was not.

    The counter of the key is not that of the draw of arms, see `rounds.draw_of_round`.
    """
    words = threefry_2x32((key[0], key[1]), (round_.astype(jnp.uint32), jnp.uint32(1)))
    drawn = jnp.asarray(delays.next(key_of_words(jnp.stack(words)), round_))
    if drawn.dtype.itemsize == 8:  # what does not fit into int32 stays too large, or negative
        drawn = jnp.clip(drawn, max(-1, jnp.iinfo(drawn.dtype).min), NEVER)
    drawn, most = drawn.astype(jnp.int32), jnp.asarray(delays.most, jnp.int32)
    is_wrong = (drawn < 0) | ((drawn > most) & (drawn != NEVER))
    fault = jnp.where(is_wrong & (first_fault == 0), round_, first_fault)
    return jnp.where(is_wrong, jnp.clip(drawn, 0, most), drawn), fault


def _join_circle(waiting: Waiting, place: Array, circle: Array, arrives: Array) -> Waiting:
    """Add a place, as the newest, to a circle; to none if it never arrives."""
    before = _take(waiting.newest, circle)
    is_alone = before < 0
    last = jnp.where(is_alone, place, before)
    # A place that joins no circle leads on to itself, and nothing leads to it.
    last = jnp.where(arrives, last, place)
    first = jnp.where(is_alone | ~arrives, place, _take(waiting.following, last))
    following = _put_own(_put(waiting.following, place, first), last, place)
    newest = _put_own(waiting.newest, circle, jnp.where(arrives, place, before))
    return waiting._replace(following=following, newest=newest)


def _take(x: Array, place: Array) -> Array:
    return lax.dynamic_slice(x, (place,), (1,))[0]


def _put(x: Array, place: Array, value: Array) -> Array:
    """Write to a place that all games share: one row of the lanes."""
    return lax.dynamic_update_slice(x, value.astype(x.dtype)[None], (place,))


def _put_own(x: Array, place: Array, value: Array) -> Array:
    """Write to a place of the game's own.

    By a mask: on CPU a scatter in lanes was slower at every size tried, from 2 to 1,000 places.
    """
    return jnp.where(is_arm(place, x), value.astype(x.dtype), x)
