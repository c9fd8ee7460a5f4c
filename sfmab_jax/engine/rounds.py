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

from sfmab_jax.base import Bandit, BanditState, Round, has_own_functions
from sfmab_jax.compose import is_composed, parts_of
from sfmab_jax.engine.delayed import DelayProcess, Waiting, begin_waiting, learn_late
from sfmab_jax.engine.lanes import OverGames, keep_shared, over_lanes
from sfmab_jax.engine.loss_stream import LossProcess, RoundMaker, early_values, round_maker
from sfmab_jax.engine.measure import Measure, measure_round
from sfmab_jax.engine.observer import Observer
from sfmab_jax.engine.rows import checkpoint_rows, write_row
from sfmab_jax.engine.tally import Tally, tally_round
from sfmab_jax.losses.sequence import SEES, Sees
from sfmab_jax.numerics.arms import arm_sum, pick
from sfmab_jax.numerics.double_word import Sum, add, start_sum
from sfmab_jax.numerics.draw import draw_arm
from sfmab_jax.numerics.threefry import threefry_2x32

__all__ = [
    "GroupState",
    "begin_group",
    "draw_of_round",
    "in_groups",
    "over_games",
    "play_chunk",
    "play_late_round_of_game",
    "play_round_of_game",
    "to_lanes",
    "watch_law",
    "without_trailing_none",
]


# The laws of all first rounds are watched, later those of every so many: of all rounds it would
# take an eighth of the time of a fast strategy. An odd number, so that even and odd rounds are met.
_FIRST_WATCHED, _WATCHED_EVERY = 64, 31


class GroupState(NamedTuple):
    """All that is carried from round to round for a group of W games.

    Several groups together have leaves with a first axis [G].
    """

    bandit: BanditState  # leaves [..., W]
    realised: Sum  # sum of l_t(i_t), two words [W]
    advantage: Sum  # sum of l_t.p'_t - l_t(i_t), two words [W]
    totals: Array  # realised and advantage at the checkpoints [C, 4, W]
    records: Any  # what `record` returned at the checkpoints, leaves [C, ..., W]
    observed: Any  # what the observer carries, leaves [..., W]
    observer_rows: Any  # and its rows at the checkpoints [C, R, W]
    # The first round without a law, int32 [W], see `watch_law`; () if nothing is watched.
    first_without_law: Any
    losses: Any = ()  # the states of the lanes' own loss processes, leaves [..., W]; () if shared
    measure: Measure | tuple[()] = ()  # of the lanes' own losses; () if they are not measured here
    tally: Tally | tuple[()] = ()  # of the arms played; () if nobody asked for it
    # What the losses of the next round see: the last arm, int32 [W], and p'_t, float32 [n, W]; see
    # `LossSequence.sees`.
    seen: tuple[Array, ...] = ()
    waiting: Waiting | tuple[()] = ()  # what has not arrived; () if feedback is not delayed


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
    sees: Sees = "nothing",
    waiting_places: int = 0,
) -> GroupState:
    """Return the state of a group before round 1.

    Args:
      watch_laws: whether to check that p_t and p'_t are laws, in the first 64 rounds and every 31st
        after them; the package's own parts do not need it.
      sees: what the losses see of the play.
      waiting_places: of how many rounds a game keeps what was observed, if feedback is delayed.
    """
    mapped = over_games("vmap")  # once for a run, so that speed does not matter
    first_state = bandit.init(num_arms, dtype, loss_unit)
    watched = watch_law(bandit, first_state, jnp.int32(1), jnp.int32(0)) if watch_laws else ()
    waiting: Any = ()
    if waiting_places:
        waiting = begin_waiting(bandit, num_arms, dtype, waiting_places)
    state, watched, waiting = jax.tree.map(
        lambda x: lax.broadcast_in_dim(x, (*jnp.shape(x), num_games), range(jnp.ndim(x))),
        (first_state, watched, waiting),
    )
    zero = start_sum(jnp.zeros(num_games, dtype))
    recorded = () if record is None else jax.eval_shape(mapped(record), state)
    observed: Any = ()
    row: Any = ()
    if observer is not None:
        observed = mapped(observer.init)(state)
        row = jax.eval_shape(mapped(observer.row), observed, state)

    def rows_of(tree):
        return jax.tree.map(
            lambda leaf: jnp.zeros((num_checkpoints, *leaf.shape), leaf.dtype), tree
        )

    return GroupState(
        bandit=state,
        realised=zero,
        advantage=zero,
        totals=jnp.zeros((num_checkpoints, 4, num_games), dtype),
        records=rows_of(recorded),
        observed=observed,
        observer_rows=rows_of(row),
        first_without_law=watched,
        seen=_seen(mapped, bandit, state, jnp.full(num_games, -1, jnp.int32), sees),
        waiting=waiting,
    )


def _seen(
    mapped: OverGames, bandit: Bandit, state: BanditState, last_arms: Array, sees: Sees
) -> tuple[Array, ...]:
    """Return what the losses of the next round see of the play in all lanes."""
    if sees == "nothing":
        return ()
    if sees == "arm":
        return (last_arms,)
    return last_arms, mapped(bandit.probabilities)(state).astype(jnp.float32)


def play_chunk(
    bandit: Bandit,
    record: Callable[[BanditState], Any] | None,
    observer: Observer | None,
    losses: Array | LossProcess,
    group: GroupState,
    game_keys: Array,
    lane_losses: Array,
    checkpoints: Array,
    first_round: Array,
    num_windows: Array,
    means: LossProcess | None = None,
    delays: DelayProcess | None = None,
    *,
    window: int,
    batching: str = "lanes",
    exact: bool = True,
) -> GroupState:
    """Play ``num_windows * window`` rounds, the first of them ``first_round``, in every lane.

    Rounds past the last checkpoint may be played; they leave no trace in the results.

    Args:
      bandit, record, observer: pytrees of numbers with static functions.
      losses: of the chunk, [rounds, n, sequences], or the process by which every lane makes its
        own.
      group: carried from chunk to chunk.
      game_keys: uint32 [2, W].
      lane_losses: which of the sequences each lane plays on, int32 [W]; or [1, R] if lane w
        plays on the (w mod R)-th of R in a row; with a process the keys of their own, uint32
        [2, W].
      checkpoints: the rounds at which totals are kept, int32 [C].
      first_round, num_windows: int32 [], traced: one program serves any number of rounds.
      means: the expected losses, if the group tallies them.
      delays: how late feedback is, if it is.
      window: rounds whose losses are handed to the lanes together, static.
      batching: how one game becomes many, "lanes" or "vmap".
      exact: see `sfmab_jax.engine.lanes`.
    """
    mapped, parts = over_games(batching, exact), (bandit, record, observer)
    width = game_keys.shape[-1]
    streamed: Any = losses  # if there is no maker
    maker = None
    if isinstance(losses, LossProcess):
        maker = round_maker(losses, group.losses, group.seen)

    mean_maker = None
    if means is not None:
        tally: Any = group.tally
        mean_maker = round_maker(means, tally.expected.start)

    def step(group: GroupState, now) -> tuple[GroupState, None]:
        round_, row, is_checkpoint, given, means_given = now
        if batching == "lanes":
            # Read from the window once: a loop that looks them up for itself is not vectorised.
            round_ = keep_shared(round_)
            given, means_given = jax.tree.map(keep_shared, (given, means_given))
        if maker is not None:
            group, given = _make_losses(
                mapped, maker, given, lane_losses, group, row, is_checkpoint
            )
        elif lane_losses.ndim == 2:
            given = to_lanes(given, lane_losses, width)
        now = (round_, given, row, is_checkpoint)
        group, arms = _play_round_of_group(mapped, parts, game_keys, group, *now, delays=delays)
        if group.seen:
            sees = SEES[len(group.seen)]
            group = group._replace(seen=_seen(mapped, bandit, group.bandit, arms, sees))
        if isinstance(group.tally, Tally):
            how = (mapped, mean_maker, means_given)
            tally = tally_round(*how, group.tally, arms, row, is_checkpoint)
            group = group._replace(tally=tally)
        return group, None

    def play_window(index: Array, group: GroupState) -> GroupState:
        rounds = first_round + index * window + jnp.arange(window, dtype=jnp.int32)
        given: Any
        if maker is not None:
            given = early_values(mapped, maker, rounds[0], window)
        else:
            given = _window_losses(streamed, lane_losses, index * window, window)
            if lane_losses.ndim == 1:
                given = to_lanes(given, lane_losses, width)
        means_given: Any = ()
        if mean_maker is not None:
            means_given = early_values(mapped, mean_maker, rounds[0], window)
        rows = checkpoint_rows(checkpoints, rounds)
        return lax.scan(step, group, (rounds, *rows, given, means_given))[0]

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
        losses: Array | LossProcess,
        groups: GroupState,
        game_keys: Array,
        lane_losses: Array,
        checkpoints: Array,
        first_round: Array,
        num_windows: Array,
        num_groups: Array,
        means: LossProcess | None = None,
        delays: DelayProcess | None = None,
        *,
        window: int,
    ) -> GroupState:
        def play_group(index: Array, groups: GroupState) -> GroupState:
            group, keys, lane = jax.tree.map(
                lambda leaf: lax.dynamic_index_in_dim(leaf, index, keepdims=False),
                (groups, game_keys, lane_losses),
            )
            when = (checkpoints, first_round, num_windows)
            others = without_trailing_none(means, delays)
            after = play_group_chunk(
                bandit, record, observer, losses, group, keys, lane, *when, *others, window=window
            )
            return jax.tree.map(lambda leaf, new: leaf.at[index].set(new), groups, after)

        if len(game_keys) == 1:
            return play_group(jnp.int32(0), groups)
        return lax.fori_loop(0, num_groups, play_group, groups)

    return play_groups


def without_trailing_none(*values: Any) -> tuple[Any, ...]:
    """Return the values up to the last that is not None, as arguments that have defaults."""
    while values and values[-1] is None:
        values = values[:-1]
    return values


def to_lanes(losses: Array, lane_losses: Array, width: int) -> Array:
    """Give each lane the losses of its sequence, [..., sequences] -> [..., W].

    With one sequence for all lanes, [...]: single numbers, which all of them read.

    Args:
      losses: of the sequences that the lanes play on, or of more if ``lane_losses`` is [W].
      lane_losses: which of them, see `play_chunk`.
      width: W.
    """
    *rest, num_sequences = losses.shape
    if num_sequences == 1:
        return losses[..., 0]
    if lane_losses.ndim == 2:
        # A concatenation copies whole rows; a broadcast would go from number to number.
        return lax.optimization_barrier(
            jnp.concatenate([losses] * (width // num_sequences), axis=-1)
        )
    if num_sequences > 4:
        return jnp.take(losses, lane_losses, axis=-1)
    # With few sequences a chain of selections is faster than a gather.
    lanes = jnp.broadcast_to(losses[..., :1], (*rest, width))
    for k in range(1, num_sequences):
        is_k = jnp.broadcast_to(lane_losses == k, lanes.shape)
        lanes = jnp.where(is_k, losses[..., k : k + 1], lanes)
    return lanes


def _window_losses(losses: Array, lane_losses: Array, start: Array, window: int) -> Array:
    """Return the losses of a window, [window, n, sequences]: of the group's own if in a row."""
    _, num_arms, num_sequences = losses.shape
    first = jnp.int32(0)
    if lane_losses.ndim == 2 and num_sequences > 1:
        first, num_sequences = lane_losses[0, 0], lane_losses.shape[1]
    sizes = (window, num_arms, num_sequences)
    return lax.dynamic_slice(losses, (start, jnp.int32(0), first), sizes)


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
      The state after the round, i_t, l_t(i_t), l_t.p'_t - l_t(i_t), and what the observer carries.
    """
    # `update` works out p'_t again; equal operations are merged before they are compiled.
    probabilities, arm, loss, advantage = _meet_losses(bandit, round_, state, key, losses, draw)
    after = bandit.update(state, arm, bandit.feedback(losses, arm))
    if observer is None:
        return after, arm, loss, advantage, ()
    # There is no estimate here; see `Observer`.
    play = state.full_information.play
    seen = Round(play, probabilities, arm, loss, estimate=probabilities)
    return after, arm, loss, advantage, observer.follow(observed, state, seen, losses, after)


def play_late_round_of_game(
    bandit: Bandit,
    delays: DelayProcess,
    round_: Array,
    state: BanditState,
    key: Array,
    losses: Array,
    waiting: Waiting,
):
    """Play one round of one game with delayed feedback: law, arm, and the feedback that arrives.

    Args and results are those of `play_round_of_game`, with what has not arrived in place of what
    the observer carries.
    """
    probabilities, arm, loss, advantage = _meet_losses(bandit, round_, state, key, losses)
    shown = bandit.feedback(losses, arm)
    after, waiting = learn_late(
        bandit, delays, round_, key, state, waiting, probabilities, arm, shown
    )
    return after, arm, loss, advantage, waiting


def _meet_losses(
    bandit: Bandit,
    round_: Array,
    state: BanditState,
    key: Array,
    losses: Array,
    draw: Callable[..., Array] = draw_arm,
) -> tuple[Array, Array, Array, Array]:
    """Return p'_t, i_t, l_t(i_t) and l_t.p'_t - l_t(i_t); see `play_round_of_game`."""
    probabilities = bandit.probabilities(state)
    arm = draw_of_round(probabilities, key, round_, draw)
    loss = pick(losses, arm)
    # The conditional mean less the realised loss, counted from the loss of the first arm: free of
    # any offset common to all arms.
    first = losses[0]
    advantage = arm_sum(probabilities * (losses - first)) - (loss - first)
    return probabilities, arm, loss, advantage


def draw_of_round(
    probabilities: Array, key: Array, round_: Array, draw: Callable[..., Array] = draw_arm
) -> Array:
    """Return i_t [], drawn from p'_t [n]; see `play_round_of_game`."""
    counter = (round_.astype(jnp.uint32), jnp.uint32(0))
    return draw(probabilities, threefry_2x32((key[0], key[1]), counter))


def watch_law(bandit: Bandit, state: BanditState, round_: Array, first_without_law: Any) -> Any:
    """Return the first round seen, up to this one, whose p_t or p'_t is no law; 0 if there is none.

    Negated where it is p_t, from the full-information strategy; this is looked at where functions
    of the user's may have made it. A law is finite, of sum 1 up to 1e-3 and not negative up to
    1e-5. ``first_without_law`` is the same of the round before, int32 []; () if nothing is watched,
    and then so is the result.
    """
    if not isinstance(first_without_law, Array):
        return first_without_law
    fault = jnp.where(_is_law(bandit.probabilities(state)), 0, round_)
    if is_composed(bandit) and not has_own_functions(parts_of(bandit)[1:]):
        fault = jnp.where(_is_law(state.full_information.play), fault, -round_)
    return jnp.where(first_without_law == 0, fault, first_without_law)


def _is_law(law: Array) -> Array:
    # NaN is neither below nor above anything.
    return (jnp.abs(arm_sum(law) - 1) <= 1e-3) & (jnp.min(law) >= -1e-5)


def _make_losses(
    mapped: OverGames,
    maker: RoundMaker,
    early: list[Any],
    sequence_keys: Array,
    group: GroupState,
    row: Array,
    is_checkpoint: Array,
) -> tuple[GroupState, Array]:
    """Make a round of the lanes' own losses, and measure it.

    Args:
      mapped: the transform that maps one game over the lanes.
      maker: of the rounds of one sequence.
      early: what depends on the round alone.
      sequence_keys: uint32 [2, W].
      group: the state before the round.
      row, is_checkpoint: where the round belongs, see `checkpoint_rows`.

    Returns:
      The group with the states of its losses after the round, and l_t [n, W].
    """
    make = mapped(partial(maker.late, early))
    state, losses = make(group.losses, sequence_keys, *group.seen)
    group = group._replace(losses=state)
    if isinstance(group.measure, Measure):
        measure = measure_round(mapped, group.measure, losses, row, is_checkpoint)
        group = group._replace(measure=measure)
    return group, losses


def _play_round_of_group(
    mapped: OverGames,
    parts: tuple[Bandit, Callable[[BanditState], Any] | None, Observer | None],
    game_keys: Array,
    group: GroupState,
    round_: Array,
    losses: Array,
    row: Array,
    is_checkpoint: Array,
    *,
    delays: DelayProcess | None = None,
) -> tuple[GroupState, Any]:
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
      delays: how late feedback is, if it is.

    Returns:
      The group after the round, and i_t, int32 [W]; () if nothing needs them.
    """
    bandit, record, observer = parts
    needs_arms = isinstance(group.tally, Tally) or bool(group.seen)
    # One sequence for all lanes: [n], closed over. One for each: [n, W], mapped like the state.
    own_losses = (losses,) if losses.ndim > 1 else ()

    def play_lane(state, key, observed, losses=losses):
        after, arm, *played = play_round_of_game(
            bandit, observer, round_, state, key, losses, observed
        )
        return after, arm if needs_arms else (), *played

    observed, waiting = group.observed, group.waiting
    if delays is None:
        state, arms, loss, advantage, observed = mapped(play_lane)(
            group.bandit, game_keys, observed, *own_losses
        )
    else:
        play_late = partial(play_late_round_of_game, bandit, delays, round_)

        def play_late_lane(state, key, waiting, losses=losses):
            after, arm, *played = play_late(state, key, losses, waiting)
            return after, arm if needs_arms else (), *played

        state, arms, loss, advantage, waiting = mapped(play_late_lane)(
            group.bandit, game_keys, waiting, *own_losses
        )
    group = group._replace(
        bandit=state,
        realised=mapped(add)(group.realised, loss),
        advantage=mapped(add)(group.advantage, advantage),
        observed=observed,
        waiting=waiting,
    )

    group = _write_totals(mapped, bandit, group, round_, row, is_checkpoint)
    if observer is not None:
        follow = partial(mapped(observer.row), observed, state)
        rows = write_row(group.observer_rows, row, is_checkpoint, follow)
        group = group._replace(observer_rows=rows)
    if record is not None:
        rows = write_row(group.records, row, is_checkpoint, partial(mapped(record), state))
        group = group._replace(records=rows)
    return group, arms


def _write_totals(
    mapped: OverGames,
    bandit: Bandit,
    group: GroupState,
    round_: Array,
    row: Array,
    is_checkpoint: Array,
) -> GroupState:
    """Write the totals at a checkpoint; if laws are watched, look at those of the next round.

    Both in one branch, as every branch costs a fast strategy some percent of its time.
    """
    totals, watched = group.totals, group.first_without_law

    def current_totals() -> Array:
        return jnp.stack([*group.realised, *group.advantage])

    if not isinstance(watched, Array):
        return group._replace(totals=write_row(totals, row, is_checkpoint, current_totals))
    is_watched = (round_ < _FIRST_WATCHED) | (round_ % _WATCHED_EVERY == 0)

    def watch(totals: Array, watched: Array) -> tuple[Array, Array]:
        def watch_lane(state: BanditState, first: Array) -> Array:
            return watch_law(bandit, state, round_ + 1, first)

        kept = jnp.where(is_checkpoint, current_totals(), totals[row])
        return totals.at[row].set(kept), mapped(watch_lane)(group.bandit, watched)

    totals, watched = lax.cond(
        is_checkpoint | is_watched, watch, lambda *same: same, totals, watched
    )
    return group._replace(totals=totals, first_without_law=watched)
