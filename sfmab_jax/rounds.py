"""The compiled program: a block of games, a span of rounds. Only this file knows about batches.

A block is a fixed number of lanes, one game (loss sequence, seed) each, as the last axis of every
array: state ``[n, W]``, so that one operation on an arm is one vector operation over the games.
The width never depends on how many games a run has, because vector and scalar code round
differently: a game is bitwise the same alone or among a million. Spare lanes are padded.

The rounds go in windows. First the losses of a window are made, once for each sequence; then they
are handed to the lanes; then the games are played in a scan.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from sfmab_jax.base import Bandit, BanditState
from sfmab_jax.draw import draw_arm
from sfmab_jax.floating import Sum, add, arm_sum, pick, start_sum
from sfmab_jax.lanes import over_lanes
from sfmab_jax.random_bits import threefry_2x32

__all__ = [
    "Block",
    "Source",
    "begin_block",
    "block_width",
    "play_chunk",
    "window_of_losses",
]


class Source(NamedTuple):
    """Where the losses of a block's sequences come from: a generator or a piece of a table."""

    next: Callable[..., Any] | None  # of `LossSequence`
    table: Array | None  # [rounds of the chunk, n, sequences], already in loss units
    keys: Array  # one typed key for each sequence [sequences]
    to_units: Array  # losses are multiplied by this power of two []


class Block(NamedTuple):
    """All that is carried from round to round for a block of games."""

    bandit: BanditState  # leaves [..., W]
    losses: Any  # states of the loss sequences, leaves [..., sequences]
    realised: Sum  # sum of l_t(i_t), two words [W]
    advantage: Sum  # sum of l_t.p'_t - l_t(i_t), two words [W]
    totals: Array  # realised and advantage at the checkpoints [C + 1, 4, W]
    records: Any  # what `record` returned at the checkpoints, leaves [C + 1, ..., W]


def block_width(num_arms: int) -> int:
    """Games in a block: as many as keep the state near the cores, from 16 to 512.

    A rule on the number of arms alone, so that it cannot differ between two runs of one game.
    """
    return int(np.clip(2 ** int(np.log2(8192 / num_arms)), 16, 512))


def begin_block(
    bandit: Bandit,
    init_losses: Callable[[Array], Any] | None,
    record: Callable[[BanditState], Any] | None,
    sequence_keys: Array,
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
    if record is None:
        records = ()
    else:
        shapes = jax.eval_shape(over_lanes(record), state)
        rows = num_checkpoints + 1
        records = jax.tree.map(lambda leaf: jnp.zeros((rows, *leaf.shape), leaf.dtype), shapes)
    return Block(
        bandit=state,
        losses=() if init_losses is None else jax.vmap(init_losses, out_axes=-1)(sequence_keys),
        realised=zero,
        advantage=zero,
        totals=jnp.zeros((num_checkpoints + 1, 4, width), dtype),
        records=records,
    )


def play_chunk(
    bandit: Bandit,
    record: Callable[[BanditState], Any] | None,
    source: Source,
    block: Block,
    game_keys: Array,
    lane_sequence: Array,
    checkpoints: Array,
    first_round: Array,
    num_windows: Array,
    *,
    window: int,
    num_sequences: int,
) -> Block:
    """Plays ``num_windows * window`` rounds, the first of them ``first_round``, in every lane.

    Rounds past the last checkpoint may be played; they leave no trace in the results.

    Args:
      bandit, record: pytrees of numbers with static functions.
      source: of the losses.
      block: carried.
      game_keys: uint32 [2, W].
      lane_sequence: which of the source's sequences a lane plays on, int32 [W].
      checkpoints: the rounds at which totals are kept, int32 [C].
      first_round, num_windows: int32 [], traced: one program serves any number of rounds.
      window: rounds in a window, static.
      num_sequences: how many of the source's sequences the lanes use, static; the rest of them
        only fill up vectors.
    """
    dtype = block.realised.value.dtype

    def play_window(index: Array, block: Block) -> Block:
        offset = index * window
        rounds = first_round + offset + jnp.arange(window, dtype=jnp.int32)
        loss_states, losses = window_of_losses(source, block.losses, rounds, offset)
        losses = _to_lanes(losses[..., :num_sequences].astype(dtype), lane_sequence)
        slots = jnp.sum(checkpoints[:, None] < rounds, axis=0, dtype=jnp.int32)
        step = partial(_play_round, bandit, record, game_keys)
        block = block._replace(losses=loss_states)
        return lax.scan(step, block, (rounds, slots, losses))[0]

    return lax.fori_loop(0, num_windows, play_window, block)


def window_of_losses(source: Source, states: Any, rounds: Array, offset: Array):
    """The losses of a window, [window, n, sequences], in units of the loss."""
    if source.table is not None:
        return states, lax.dynamic_slice_in_dim(source.table, offset, len(rounds))

    next_losses = jax.vmap(source.next, in_axes=(-1, 0, None), out_axes=-1)
    if not jax.tree.leaves(states):
        # Without memory the rounds are independent: all of the window at once.
        over_rounds = jax.vmap(next_losses, in_axes=(None, None, 0))
        states, losses = over_rounds(states, source.keys, rounds)
    else:
        states, losses = lax.scan(lambda s, t: next_losses(s, source.keys, t), states, rounds)
    return states, losses * source.to_units.astype(losses.dtype)


def _to_lanes(losses: Array, lane_sequence: Array) -> Array:
    """[..., sequences] -> [..., W]; a chain of selections while there are few sequences."""
    num_sequences = losses.shape[-1]
    if num_sequences > 4:
        return jnp.take(losses, lane_sequence, axis=-1)
    shape = (*losses.shape[:-1], *lane_sequence.shape)
    lanes = jnp.broadcast_to(losses[..., :1], shape)
    for k in range(1, num_sequences):
        lanes = jnp.where(lane_sequence == k, losses[..., k : k + 1], lanes)
    return lanes


def _play_round(bandit, record, game_keys: Array, block: Block, now) -> tuple[Block, None]:
    """One round in all lanes; the games are mapped over the last axis."""
    round_, slot, losses = now

    def play(state: BanditState, key: Array, losses: Array):
        probabilities = bandit.probabilities(state)
        counter = (round_.astype(jnp.uint32), jnp.uint32(0))
        arm = draw_arm(probabilities, threefry_2x32((key[0], key[1]), counter))
        loss = pick(losses, arm)
        # The conditional mean less the realised loss: free of any offset common to all arms.
        advantage = arm_sum(probabilities * (losses - loss))
        return bandit.update(state, arm, loss), loss, advantage

    state, loss, advantage = over_lanes(play)(block.bandit, game_keys, losses)
    block = block._replace(
        bandit=state, realised=add(block.realised, loss), advantage=add(block.advantage, advantage)
    )
    totals = jnp.stack([*block.realised, *block.advantage])
    # Every round overwrites the slot of the next checkpoint; the last write is the checkpoint's.
    block = block._replace(totals=block.totals.at[slot].set(totals))
    if record is not None:
        rows = over_lanes(record)(state)
        records = jax.tree.map(lambda kept, row: kept.at[slot].set(row), block.records, rows)
        block = block._replace(records=records)
    return block, None
