"""The compiled program: a block of games, a chunk of rounds. Only this file knows about batches.

A block is a fixed number of lanes, one game (loss sequence, seed) each, as the last axis of every
array: state ``[n, W]``, so that one operation on an arm is one vector operation over the games.
The width never depends on how many games a run has, because vector and scalar code round
differently: a game is bitwise the same alone or among a million. Spare lanes are padded.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from sfmab_jax.base import Bandit, BanditState, Round
from sfmab_jax.certificate import Watch
from sfmab_jax.draw import draw_arm
from sfmab_jax.floating import Sum, add, arm_sum, pick, start_sum
from sfmab_jax.lanes import over_lanes
from sfmab_jax.random_bits import threefry_2x32
from sfmab_jax.reductions import made_together

__all__ = [
    "Block",
    "begin_block",
    "block_width",
    "checkpoint_slots",
    "group_width",
    "in_groups",
    "play_chunk",
    "play_game",
    "to_lanes",
]


class Block(NamedTuple):
    """All that is carried from round to round for a block of games."""

    bandit: BanditState  # leaves [..., W]
    realised: Sum  # sum of l_t(i_t), two words [W]
    advantage: Sum  # sum of l_t.p'_t - l_t(i_t), two words [W]
    totals: Array  # realised and advantage at the checkpoints [C + 1, 4, W]
    records: Any  # what `record` returned at the checkpoints, leaves [C + 1, ..., W]
    watched: Any  # what the watch carries, leaves [..., W]
    watch_rows: Any  # and its rows at the checkpoints [C + 1, R, W]


def block_width(num_arms: int) -> int:
    """Games in a block, for which losses are made once: from 32 to 512.

    A rule on the number of arms alone, so that it cannot differ between two runs of one game.
    """
    return int(np.clip(2 ** np.floor(np.log2(16384 / num_arms)), 32, 512))


def group_width(num_arms: int) -> int:
    """Games that are played side by side on a CPU.

    Of few arms as many as stay in its cache, so that vectors are of games; of many arms one, whose
    vectors are of arms: then no game waits for the Newton steps of another.
    """
    return 128 if num_arms <= 256 else 1


def begin_block(
    bandit: Bandit,
    record: Callable[[BanditState], Any] | None,
    watch: Watch | None,
    loss_unit: Array,
    *,
    num_arms: int,
    width: int,
    num_checkpoints: int,
    dtype,
) -> Block:
    """The block before round 1."""

    def init(_):
        return bandit.init(num_arms, dtype, loss_unit)

    state = jax.vmap(init, out_axes=-1, axis_size=width)(jnp.arange(width))
    zero = start_sum(jnp.zeros(width, dtype))
    rows = num_checkpoints + 1
    shapes = () if record is None else jax.eval_shape(over_lanes(record), state)
    watched, watch_rows = _begin_watch(watch, state, rows)
    return Block(
        bandit=state,
        realised=zero,
        advantage=zero,
        totals=jnp.zeros((rows, 4, width), dtype),
        records=jax.tree.map(lambda leaf: jnp.zeros((rows, *leaf.shape), leaf.dtype), shapes),
        watched=watched,
        watch_rows=watch_rows,
    )


def _begin_watch(watch: Watch | None, state: BanditState, rows: int):
    """What is watched before round 1, and room for its rows."""
    if watch is None:
        return (), ()
    watched = over_lanes(watch.init)(state)
    shape = jax.eval_shape(over_lanes(watch.row), watched, state)
    return watched, jnp.zeros((rows, *shape.shape), shape.dtype)


def play_chunk(
    bandit: Bandit,
    record: Callable[[BanditState], Any] | None,
    watch: Watch | None,
    losses: Array,
    block: Block,
    game_keys: Array,
    lane_sequence: Array,
    checkpoints: Array,
    first_round: Array,
    num_windows: Array,
    *,
    window: int,
) -> Block:
    """Plays ``num_windows * window`` rounds, the first of them ``first_round``, in every lane.

    Rounds past the last checkpoint may be played; they leave no trace in the results.

    Args:
      bandit, record, watch: pytrees of numbers with static functions.
      losses: of the chunk, [rounds, n, sequences].
      block: carried.
      game_keys: uint32 [2, W].
      lane_sequence: which of the sequences a lane plays on, int32 [W].
      checkpoints: the rounds at which totals are kept, int32 [C].
      first_round, num_windows: int32 [], traced: one program serves any number of rounds.
      window: rounds whose losses are handed to the lanes together, static.
    """

    def play_window(index: Array, block: Block) -> Block:
        rounds = first_round + index * window + jnp.arange(window, dtype=jnp.int32)
        here = lax.dynamic_slice_in_dim(losses, index * window, window)
        step = partial(_play_round, bandit, record, watch, game_keys)
        slots = checkpoint_slots(checkpoints, rounds)
        due = jnp.any(checkpoints[:, None] == rounds[None, :], axis=0)
        # Of one sequence the losses stay single numbers, which are read by all lanes.
        mine = here[..., 0] if here.shape[-1] == 1 else to_lanes(here, lane_sequence)
        return lax.scan(step, block, (rounds, slots, due, mine))[0]

    return lax.fori_loop(0, num_windows, play_window, block)


def in_groups(play: Callable[..., Block]) -> Callable[..., Block]:
    """``play``, `play_chunk` or the like, on groups of games one after the other.

    What belongs to the games, that is blocks, keys and sequences, has a first axis for the
    groups, and ``num_groups``, int32 [], tells how many of them are played.
    """

    def play_groups(
        bandit,
        record,
        watch,
        losses: Array,
        blocks: Block,
        game_keys: Array,
        lane_sequence: Array,
        checkpoints: Array,
        first_round: Array,
        num_windows: Array,
        num_groups: Array,
        *,
        window: int,
    ) -> Block:
        def play_group(index: Array, blocks: Block) -> Block:
            block, keys, sequence = jax.tree.map(
                lambda leaf: lax.dynamic_index_in_dim(leaf, index, keepdims=False),
                (blocks, game_keys, lane_sequence),
            )
            when = (checkpoints, first_round, num_windows)
            after = play(bandit, record, watch, losses, block, keys, sequence, *when, window=window)
            return jax.tree.map(lambda leaf, new: leaf.at[index].set(new), blocks, after)

        if len(game_keys) == 1:
            return play_group(jnp.int32(0), blocks)
        return lax.fori_loop(0, num_groups, play_group, blocks)

    return play_groups


def checkpoint_slots(checkpoints: Array, rounds: Array) -> Array:
    """The number of the first checkpoint not before each round; C for rounds after the last.

    Every round writes to its slot, so that what stays there is the checkpoint's own.
    """
    return jnp.sum(checkpoints[:, None] < rounds[None, :], axis=0, dtype=jnp.int32)


def to_lanes(losses: Array, lane_sequence: Array) -> Array:
    """[..., sequences] -> [..., W]; a chain of selections while there are few sequences."""
    num_sequences = losses.shape[-1]
    if num_sequences > 4:
        return jnp.take(losses, lane_sequence, axis=-1)
    lanes = jnp.broadcast_to(losses[..., :1], (*losses.shape[:-1], len(lane_sequence)))
    for k in range(1, num_sequences):
        chosen = jnp.broadcast_to(lane_sequence == k, lanes.shape)
        lanes = jnp.where(chosen, losses[..., k : k + 1], lanes)
    return lanes


def play_game(
    bandit: Bandit,
    watch: Watch | None,
    round_: Array,
    state: BanditState,
    key: Array,
    losses: Array,
    watched: Any,
    draw: Callable[..., Array] = draw_arm,
):
    """One round of one game: the state after it, l_t(i_t), l_t.p'_t - l_t(i_t), what is watched."""
    probabilities = bandit.probabilities(state)
    counter = (round_.astype(jnp.uint32), jnp.uint32(0))
    arm = draw(probabilities, threefry_2x32((key[0], key[1]), counter))
    loss = pick(losses, arm)
    # The conditional mean less the realised loss, free of any offset common to all arms; not from
    # loss itself, so that the sum is ready as early as the picks.
    first = losses[0]
    advantage = arm_sum(probabilities * (losses - first)) - (loss - first)
    after = bandit.update(state, arm, bandit.feedback(losses, arm))
    if watch is None:
        return after, loss, advantage, ()
    seen = Round(state.full_information.play, probabilities, arm, loss, probabilities)
    return after, loss, advantage, watch.follow(watched, state, seen, losses, after)


def _play_round(bandit, record, watch, game_keys: Array, block: Block, now) -> tuple[Block, None]:
    """One round in all lanes, with losses [n] for all or [n, W]."""
    round_, slot, due, losses = now
    own = (losses,) if losses.ndim > 1 else ()
    # Read from the window once: a loop that looks them up for itself is not vectorised.
    (round_,) = made_together(round_)
    if not own:
        (losses,) = made_together(losses)

    def play(state, key, watched, mine=losses):
        return play_game(bandit, watch, round_, state, key, mine, watched)

    state, loss, advantage, watched = over_lanes(play)(block.bandit, game_keys, block.watched, *own)
    block = block._replace(
        bandit=state,
        realised=over_lanes(add)(block.realised, loss),
        advantage=over_lanes(add)(block.advantage, advantage),
        watched=watched,
    )

    def keep(kept: Any, row: Callable[..., Any], *args: Any) -> Any:
        """``kept`` with the row of this round, made only where it is asked for."""
        nothing = jax.tree.map(lambda leaf: jnp.zeros_like(leaf[0]), kept)
        made = lax.cond(due, lambda: over_lanes(row)(*args), lambda: nothing)
        return jax.tree.map(lambda leaf, new: leaf.at[slot].set(new), kept, made)

    totals = block.totals
    # One by one: of a row put together XLA makes no vector operation.
    for word, numbers in enumerate((*block.realised, *block.advantage)):
        totals = lax.dynamic_update_slice(
            totals, numbers[None, None], (slot, jnp.int32(word), jnp.int32(0))
        )
    block = block._replace(totals=totals)
    if watch is not None:
        block = block._replace(watch_rows=keep(block.watch_rows, watch.row, watched, state))
    if record is not None:
        block = block._replace(records=keep(block.records, record, state))
    return block, None
