"""One round of one game, and many rounds of many: the compiled program of the scan engine.

The games of a group are lanes, the last axis of every array: state ``[n, W]``, so that one
operation on an arm is one vector operation over the games. Strategies and numerics are written for
a single game.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array, lax

from sfmab_jax.base import Bandit, BanditState, Round
from sfmab_jax.engine.lanes import OverGames, keep_alike, over_lanes
from sfmab_jax.engine.observer import Observer
from sfmab_jax.numerics.arms import arm_sum, pick
from sfmab_jax.numerics.double_word import Sum, add, start_sum
from sfmab_jax.numerics.draw import draw_arm
from sfmab_jax.numerics.threefry import threefry_2x32

__all__ = [
    "GroupState",
    "begin_group",
    "checkpoint_rows",
    "in_groups",
    "over_games",
    "play_chunk",
    "play_round_of_game",
    "to_lanes",
    "watch_law",
]


class GroupState(NamedTuple):
    """All that is carried from round to round for a group of W games.

    Several groups together have leaves with a first axis [G].
    """

    bandit: BanditState  # leaves [..., W]
    realised: Sum  # sum of l_t(i_t), two words [W]
    advantage: Sum  # sum of l_t.p'_t - l_t(i_t), two words [W]
    # Rounds after the last checkpoint go to row C.
    totals: Array  # realised and advantage at the checkpoints [C + 1, 4, W]
    records: Any  # what `record` returned at the checkpoints, leaves [C + 1, ..., W]
    observed: Any  # what the observer carries, leaves [..., W]
    observer_rows: Any  # and its rows at the checkpoints [C + 1, R, W]
    # The first round whose p'_t is no law, int32 [W], 0 if there is none; () if none is watched.
    first_without_law: Any


def over_games(batching: str, exact: bool = True) -> OverGames:
    """Return the transform that maps a function of one game over the last axis of everything."""
    if batching == "lanes":
        return partial(over_lanes, exact=exact)
    return partial(jax.vmap, in_axes=-1, out_axes=-1)


def begin_group(
    bandit: Bandit,
    record: Callable[[BanditState], Any] | None,
    observer: Observer | None,
    loss_unit: Array,
    *,
    num_arms: int,
    num_games: int,
    num_checkpoints: int,
    dtype,
    watch_laws: bool = False,
) -> GroupState:
    """Return the state of a group before round 1.

    ``watch_laws``: whether to check in every round that p'_t is a law; the package's own parts do
    not need it.
    """
    mapped = over_games("vmap")  # once for a run, so that speed does not matter
    state = jax.tree.map(
        lambda x: lax.broadcast_in_dim(x, (*jnp.shape(x), num_games), range(jnp.ndim(x))),
        bandit.init(num_arms, dtype, loss_unit),
    )
    zero = start_sum(jnp.zeros(num_games, dtype))
    num_rows = num_checkpoints + 1
    recorded = () if record is None else jax.eval_shape(mapped(record), state)
    observed: Any = ()
    row: Any = ()
    if observer is not None:
        observed = mapped(observer.init)(state)
        row = jax.eval_shape(mapped(observer.row), observed, state)

    def rows_of(tree):
        return jax.tree.map(lambda leaf: jnp.zeros((num_rows, *leaf.shape), leaf.dtype), tree)

    return GroupState(
        bandit=state,
        realised=zero,
        advantage=zero,
        totals=jnp.zeros((num_rows, 4, num_games), dtype),
        records=rows_of(recorded),
        observed=observed,
        observer_rows=rows_of(row),
        first_without_law=jnp.zeros(num_games, jnp.int32) if watch_laws else (),
    )


def play_chunk(
    bandit: Bandit,
    record: Callable[[BanditState], Any] | None,
    observer: Observer | None,
    losses: Array,
    group: GroupState,
    game_keys: Array,
    lane_sequence: Array,
    checkpoints: Array,
    first_round: Array,
    num_windows: Array,
    *,
    window: int,
    batching: str = "lanes",
    exact: bool = True,
) -> GroupState:
    """Play ``num_windows * window`` rounds, the first of them ``first_round``, in every lane.

    Rounds past the last checkpoint may be played; they leave no trace in the results.

    Args:
      bandit, record, observer: pytrees of numbers with static functions.
      losses: of the chunk, [rounds, n, sequences].
      group: carried from chunk to chunk.
      game_keys: uint32 [2, W].
      lane_sequence: which of the sequences a lane plays on, int32 [W].
      checkpoints: the rounds at which totals are kept, int32 [C].
      first_round, num_windows: int32 [], traced: one program serves any number of rounds.
      window: rounds whose losses are handed to the lanes together, static.
      batching: how one game becomes many, "lanes" or "vmap".
      exact: see `sfmab_jax.engine.lanes`.
    """

    def step(group: GroupState, now) -> tuple[GroupState, None]:
        round_, row, is_checkpoint, losses = now
        if batching == "lanes":
            # Round and losses, read from the window once: a loop that looks them up for itself
            # is not vectorised.
            (round_,) = keep_alike(round_)
            if losses.ndim == 1:
                (losses,) = keep_alike(losses)
        mapped, parts = over_games(batching, exact), (bandit, record, observer)
        now = (round_, losses, row, is_checkpoint)
        return _play_round_of_group(mapped, parts, game_keys, group, *now), None

    def play_window(index: Array, group: GroupState) -> GroupState:
        rounds = first_round + index * window + jnp.arange(window, dtype=jnp.int32)
        window_losses = lax.dynamic_slice_in_dim(losses, index * window, window)
        rows = checkpoint_rows(checkpoints, rounds)
        is_checkpoint = jnp.any(checkpoints[:, None] == rounds[None, :], axis=0)
        # With one sequence the losses stay single numbers, which all lanes read.
        shared = window_losses.shape[-1] == 1
        given = window_losses[..., 0] if shared else to_lanes(window_losses, lane_sequence)
        return lax.scan(step, group, (rounds, rows, is_checkpoint, given))[0]

    return lax.fori_loop(0, num_windows, play_window, group)


def in_groups(play_group_chunk: Callable[..., GroupState]) -> Callable[..., GroupState]:
    """Turn `play_chunk`, or its like, into a function that plays several groups in turn.

    What belongs to the games (state, keys, sequences) has a first axis for the groups, and
    ``num_groups``, int32 [], tells how many of them are played.
    """

    def play_groups(
        bandit,
        record,
        observer,
        losses: Array,
        groups: GroupState,
        game_keys: Array,
        lane_sequence: Array,
        checkpoints: Array,
        first_round: Array,
        num_windows: Array,
        num_groups: Array,
        *,
        window: int,
    ) -> GroupState:
        def play_group(index: Array, groups: GroupState) -> GroupState:
            group, keys, sequence = jax.tree.map(
                lambda leaf: lax.dynamic_index_in_dim(leaf, index, keepdims=False),
                (groups, game_keys, lane_sequence),
            )
            when = (checkpoints, first_round, num_windows)
            after = play_group_chunk(
                bandit, record, observer, losses, group, keys, sequence, *when, window=window
            )
            return jax.tree.map(lambda leaf, new: leaf.at[index].set(new), groups, after)

        if len(game_keys) == 1:
            return play_group(jnp.int32(0), groups)
        return lax.fori_loop(0, num_groups, play_group, groups)

    return play_groups


def checkpoint_rows(checkpoints: Array, rounds: Array) -> Array:
    """Return the row that each round writes to: that of the next checkpoint, or C after the last.

    Later rounds overwrite earlier ones, so the checkpoint's own values remain.
    """
    return jnp.sum(checkpoints[:, None] < rounds[None, :], axis=0, dtype=jnp.int32)


def to_lanes(losses: Array, lane_sequence: Array) -> Array:
    """Give each lane the losses of its sequence, [..., sequences] -> [..., W]."""
    num_sequences = losses.shape[-1]
    if num_sequences > 4:
        return jnp.take(losses, lane_sequence, axis=-1)
    # With few sequences a chain of selections is faster than a gather.
    lanes = jnp.broadcast_to(losses[..., :1], (*losses.shape[:-1], len(lane_sequence)))
    for k in range(1, num_sequences):
        is_k = jnp.broadcast_to(lane_sequence == k, lanes.shape)
        lanes = jnp.where(is_k, losses[..., k : k + 1], lanes)
    return lanes


def play_round_of_game(
    bandit: Bandit,
    observer: Observer | None,
    round_: Array,
    state: BanditState,
    key: Array,
    losses: Array,
    observed: Any,
    draw: Callable[..., Array] = draw_arm,
):
    """Play one round of one game: law, arm, feedback, update.

    Args:
      round_: t, int32 [].
      state: of the bandit before the round.
      key: of the game, uint32 [2].
      losses: l_t [n].
      observed: what the observer carries.
      draw: (p'_t, two random words) -> arm.

    Returns:
      The state after the round, l_t(i_t), l_t.p'_t - l_t(i_t), and what the observer carries.
    """
    # `update` works out p'_t again; equal operations are merged before they are compiled.
    probabilities = bandit.probabilities(state)
    counter = (round_.astype(jnp.uint32), jnp.uint32(0))
    arm = draw(probabilities, threefry_2x32((key[0], key[1]), counter))
    loss = pick(losses, arm)
    # The conditional mean less the realised loss, counted from the loss of the first arm: free of
    # any offset common to all arms.
    first = losses[0]
    advantage = arm_sum(probabilities * (losses - first)) - (loss - first)
    after = bandit.update(state, arm, bandit.feedback(losses, arm))
    if observer is None:
        return after, loss, advantage, ()
    # There is no estimate here; see `Observer`.
    play = state.full_information.play
    seen = Round(play, probabilities, arm, loss, estimate=probabilities)
    return after, loss, advantage, observer.follow(observed, state, seen, losses, after)


def watch_law(bandit: Bandit, state: BanditState, round_: Array, first_without_law: Any) -> Any:
    """Return the first round up to this one whose p'_t is no law, 0 if all are.

    A law is finite, of sum 1 up to 1e-3 and not negative up to 1e-5. ``first_without_law`` is the
    same of the round before, int32 []; () if nothing is watched, and then so is the result.
    """
    if not isinstance(first_without_law, Array):
        return first_without_law
    law = bandit.probabilities(state)
    # NaN is neither below nor above anything.
    is_law = (jnp.abs(arm_sum(law) - 1) <= 1e-3) & (jnp.min(law) >= -1e-5)
    return jnp.where((first_without_law == 0) & ~is_law, round_, first_without_law)


def _play_round_of_group(
    mapped: OverGames,
    parts: tuple[Bandit, Callable[[BanditState], Any] | None, Observer | None],
    game_keys: Array,
    group: GroupState,
    round_: Array,
    losses: Array,
    row: Array,
    is_checkpoint: Array,
) -> GroupState:
    """Play one round in all lanes.

    Args:
      mapped: the transform that maps one game over the lanes.
      parts: bandit, record and observer.
      game_keys: uint32 [2, W].
      group: the state before the round.
      round_: t, int32 [].
      losses: l_t [n] for all lanes, or [n, W].
      row: where results go, int32 [].
      is_checkpoint: whether t is one, bool [].
    """
    bandit, record, observer = parts
    # One sequence for all lanes: [n], closed over. One for each: [n, W], mapped like the state.
    own_losses = (losses,) if losses.ndim > 1 else ()

    def play_lane(state, key, observed, first_without_law, losses=losses):
        played = play_round_of_game(bandit, observer, round_, state, key, losses, observed)
        return *played, watch_law(bandit, state, round_, first_without_law)

    state, loss, advantage, observed, first_without_law = mapped(play_lane)(
        group.bandit, game_keys, group.observed, group.first_without_law, *own_losses
    )
    group = group._replace(
        bandit=state,
        realised=mapped(add)(group.realised, loss),
        advantage=mapped(add)(group.advantage, advantage),
        observed=observed,
        first_without_law=first_without_law,
    )

    def write_row(rows: Any, function: Callable[..., Any], *args: Any) -> Any:
        """Write this round's row: the function's value at a checkpoint, else zeros, which the
        checkpoint will overwrite."""
        nothing = jax.tree.map(lambda leaf: jnp.zeros_like(leaf[0]), rows)
        new = lax.cond(is_checkpoint, lambda: mapped(function)(*args), lambda: nothing)
        return jax.tree.map(lambda leaf, new: leaf.at[row].set(new), rows, new)

    totals = group.totals
    # Word by word: XLA does not vectorise the write of a stacked row.
    for word, numbers in enumerate((*group.realised, *group.advantage)):
        totals = lax.dynamic_update_slice(
            totals, numbers[None, None], (row, jnp.int32(word), jnp.int32(0))
        )
    group = group._replace(totals=totals)
    if observer is not None:
        rows = write_row(group.observer_rows, observer.row, observed, state)
        group = group._replace(observer_rows=rows)
    if record is not None:
        group = group._replace(records=write_row(group.records, record, state))
    return group
