"""The fused engine: a chunk of rounds for a tile of games in one kernel, written with Pallas.

The scan engine starts some device programs in every round, which on a GPU takes longer than the
round. Here a kernel holds the state of a tile of games from the first to the last round of the
chunk; random bits are made inside. It plays the same one-game functions on the same random words.

For GPUs the kernel is compiled by Triton, for TPUs by Mosaic; on CPU it is interpreted, which is
slow and serves to compare it with the scan engine.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from jax.experimental import pallas as pl
from jax.experimental.pallas import triton as plgpu

from sfmab_jax.base import Bandit, BanditState, with_static_functions
from sfmab_jax.engine.lanes.jaxpr import Laned, Tape, tape_of
from sfmab_jax.engine.layout import padded_shape
from sfmab_jax.engine.pallas.arrays import (
    PackedNumber,
    held_shape,
    held_type,
    hold,
    lane_spec,
    load,
    loss_spec,
    pack_numbers,
    pad_to,
    release,
    scalar_spec,
    store,
    whole_spec,
)
from sfmab_jax.engine.pallas.hoist import hoist
from sfmab_jax.engine.pallas.interpreter import run_tape, unsupported_operation
from sfmab_jax.engine.rounds import (
    GroupState,
    play_round_of_game,
    to_lanes,
    watch_law,
)
from sfmab_jax.engine.rows import checkpoint_rows
from sfmab_jax.numerics.double_word import Sum, add
from sfmab_jax.numerics.draw import draw_arm

__all__ = ["check_fusible", "play_chunk_fused", "tile_width"]


class KernelState(NamedTuple):
    """What goes from round to round in a kernel; leaves [..., W]."""

    bandit: BanditState
    realised: Sum
    advantage: Sum
    first_without_law: Any = ()


class Rows(NamedTuple):
    """What is kept of a checkpoint; leaves [..., W], or [C, ..., W] for all of them."""

    totals: Any
    records: Any


def tile_width(num_arms: int, platform: str) -> int:
    """Return the games in a tile, by the arms and the platform alone.

    On TPU 128, the width of a vector register. On GPU 128 up to 32 arms, then so many that a vector
    over the arms has 2^12 numbers, but never fewer than 16 games.
    """
    if platform == "tpu":
        return 128
    return int(np.clip(2**12 // padded_shape((num_arms,))[0], 16, 128))


def play_chunk_fused(
    bandit: Bandit,
    record: Callable[[BanditState], Any] | None,
    observer: None,
    losses: Array,
    group: GroupState,
    game_keys: Array,
    lane_losses: Array,
    checkpoints: Array,
    first_round: Array,
    num_windows: Array,
    *,
    window: int,
    platform: str,
) -> GroupState:
    """`rounds.play_chunk` as a kernel for ``platform``: "gpu", "tpu" or "cpu"."""
    width = game_keys.shape[-1]
    num_arms = losses.shape[1]
    # On CPU one tile, as the scan engine has: vectors of another length may round differently.
    tile = width if platform == "cpu" else min(width, tile_width(num_arms, platform))
    carried = KernelState(group.bandit, group.realised, group.advantage, group.first_without_law)
    tape, shared, (_, row_shapes) = _tape(bandit, record, carried, num_arms)
    rounds = first_round + jnp.arange(len(losses), dtype=jnp.int32)
    if losses.shape[-1] > 1:
        losses = to_lanes(losses, lane_losses, width)
    losses = pad_to(losses, (len(losses), *held_shape((num_arms,)), losses.shape[-1]))
    numbers, packed = pack_numbers(shared)
    vectors = {x: value for x, value in shared.items() if jnp.ndim(value)}
    copied = [hold(jnp.broadcast_to(v[..., None], (*v.shape, tile))) for v in vectors.values()]
    leaves, tree = jax.tree.flatten(carried)
    by_lane = [hold(leaf) for leaf in (game_keys, *leaves)]
    row_leaves, row_tree = jax.tree.flatten(row_shapes)
    num_rows = len(checkpoints)
    out_shape = [
        *(jax.ShapeDtypeStruct(x.shape, x.dtype) for x in by_lane[1:]),
        *(
            jax.ShapeDtypeStruct((num_rows, *held_shape(x.shape), width), held_type(x.dtype))
            for x in row_leaves
        ),
    ]
    scalars = [
        jnp.stack([first_round, num_windows * window]),
        _rows_to_write(checkpoints, rounds),
        *numbers,
    ]
    layout = _Layout(tape, packed, tuple(vectors), tuple(row_leaves), len(leaves), platform)
    results = pl.pallas_call(
        partial(_kernel, layout),
        grid=(width // tile,),
        in_specs=[
            *(scalar_spec(platform) for _ in scalars),
            *(lane_spec(x.shape, tile) for x in by_lane),
            *(whole_spec(x.shape) for x in copied),
            loss_spec(losses.shape, tile),
        ],
        out_specs=[lane_spec(x.shape, tile) for x in out_shape],
        out_shape=out_shape,
        # The state after a chunk takes the place of the state before it.
        input_output_aliases={len(scalars) + 1 + i: i for i in range(len(leaves))},
        interpret=platform == "cpu",
        compiler_params=_compiler_params(platform),
        name="play_chunk_fused",
    )(*scalars, *by_lane, *copied, losses)
    after = [release(x, leaf.shape, leaf.dtype) for x, leaf in zip(results, leaves)]
    rows = [
        release(x, (num_rows, *leaf.shape, width), leaf.dtype)
        for x, leaf in zip(results[len(leaves) :], row_leaves, strict=True)
    ]
    is_met = (checkpoints >= first_round) & (checkpoints < first_round + num_windows * window)
    return _merge(
        group,
        jax.tree.unflatten(tree, after),
        jax.tree.unflatten(row_tree, rows),
        is_met,
    )


def _rows_to_write(checkpoints: Array, rounds: Array) -> Array:
    """Return the row of each round that is a checkpoint, -1 for the others."""
    rows, is_checkpoint = checkpoint_rows(checkpoints, rounds)
    return jnp.where(is_checkpoint, rows, -1)


def _merge(group: GroupState, after: KernelState, rows: Rows, is_met: Array) -> GroupState:
    """Return the group after a chunk, in which the checkpoints ``is_met`` [C] were met."""

    def take(new: Array, old: Array) -> Array:
        return jnp.where(is_met.reshape(-1, *[1] * (new.ndim - 1)), new, old)

    totals = jnp.stack(rows.totals, axis=1)
    return group._replace(
        **after._asdict(),
        totals=take(totals, group.totals),
        records=jax.tree.map(take, rows.records, group.records),
    )


def _compiler_params(platform: str) -> Any:
    return plgpu.CompilerParams(num_warps=4) if platform == "gpu" else None


def check_fusible(name: str, bandit: Bandit, record, num_arms: int, dtype, device) -> None:
    """Refuse a strategy whose rounds kernels on this device cannot play."""
    if device.platform == "tpu" and dtype == np.float64:
        raise ValueError("dtype is float64, which kernels on TPU do not have; use engine='scan'")
    bandit, record = with_static_functions((bandit, record))
    state = jax.eval_shape(lambda: bandit.init(num_arms, dtype, 1.0))
    zero: Any = jax.ShapeDtypeStruct((), dtype)
    carried = KernelState(state, Sum(zero, zero), Sum(zero, zero))
    one_lane = jax.tree.map(lambda x: jax.ShapeDtypeStruct((*x.shape, 1), x.dtype), carried)
    tape, _, _ = _tape(bandit, record, one_lane, num_arms)
    operation = unsupported_operation(tape.operations)
    if operation is not None:
        raise ValueError(
            f"strategy {name!r} needs {operation}, which the fused engine does not have; "
            "use engine='scan'"
        )


def _tape(bandit, record, carried: KernelState, num_arms: int):
    """Return the operations of a round of one game, their parameters, and the results' shapes."""

    def one_round(carried: KernelState, key: Array, losses: Array, round_: Array):
        state, _, loss, advantage, _ = play_round_of_game(
            bandit, None, round_, carried.bandit, key, losses, (), _draw_padded
        )
        realised, advantage = add(carried.realised, loss), add(carried.advantage, advantage)
        rows = Rows((*realised, *advantage), () if record is None else record(state))
        watched = watch_law(bandit, carried.bandit, round_, carried.first_without_law)
        return KernelState(state, realised, advantage, watched), rows

    one_game = jax.tree.map(lambda x: jax.ShapeDtypeStruct(x.shape[:-1], x.dtype), carried)
    losses = jax.ShapeDtypeStruct((num_arms,), carried.realised.value.dtype)
    key = jax.ShapeDtypeStruct((2,), jnp.uint32)
    tape, outside, shapes = tape_of(
        one_round, one_game, key, losses, jax.ShapeDtypeStruct((), jnp.int32)
    )
    return *hoist(tape, outside), shapes


def _draw_padded(probabilities: Array, words: tuple[Array, Array]) -> Array:
    """Draw an arm as `draw_arm` does, with impossible arms added up to a power of two.

    The sums are grouped differently, so in two of 2^44 draws the arm may differ.
    """
    num_arms = len(probabilities)
    spare = padded_shape((num_arms,))[0] - num_arms
    return jnp.minimum(draw_arm(jnp.pad(probabilities, (0, spare)), words), num_arms - 1)


class _Layout(NamedTuple):
    """What a kernel knows when it is traced."""

    tape: Tape
    numbers: tuple[PackedNumber, ...]
    vectors: tuple[int, ...]
    row_types: tuple[jax.ShapeDtypeStruct, ...]  # of one game
    num_carried: int
    platform: str


def _kernel(layout: _Layout, *refs) -> None:
    """Play a tile of games from the first to the last round of the chunk."""
    tape, num_carried = layout.tape, layout.num_carried
    num_arrays = 1 + max((number.array for number in layout.numbers), default=-1)
    when_ref, rows_ref, *rest = refs
    number_refs, rest = rest[:num_arrays], rest[num_arrays:]
    key_ref, *rest = rest
    before_refs, rest = rest[:num_carried], rest[num_carried:]
    vector_refs, rest = rest[: len(layout.vectors)], rest[len(layout.vectors) :]
    losses_ref, *rest = rest
    after_refs, row_refs = rest[:num_carried], rest[num_carried:]

    *carried_names, key_name, losses_name, round_name = tape.inputs
    types = [tape.types[x] for x in carried_names]
    width = key_ref.shape[-1]
    shared = {key_name: Laned(key_ref[...], True)}
    for number in layout.numbers:
        value = number_refs[number.array][number.place]
        shared[number.variable] = Laned(value != 0 if number.dtype == jnp.bool_ else value, False)
    for x, ref in zip(layout.vectors, vector_refs, strict=True):
        shared[x] = Laned(load(ref, tape.types[x].shape, tape.types[x].dtype), True)
    first_round, num_rounds = when_ref[0], when_ref[1]

    def one_round(index, carried):
        now = dict(shared)
        now.update((x, Laned(value, True)) for x, value in zip(carried_names, carried, strict=True))
        losses = jnp.broadcast_to(losses_ref[index], (losses_ref.shape[1], width))
        now[losses_name] = Laned(losses, True)
        now[round_name] = Laned(jnp.full((width,), first_round + index, jnp.int32), True)
        outputs = run_tape(tape, now, width, layout.platform)
        place = rows_ref[index]

        @pl.when(place >= 0)
        def _():
            for ref, row, kind in zip(
                row_refs, outputs[num_carried:], layout.row_types, strict=True
            ):
                ref[place] = store(row, kind.shape, ref.dtype)

        return outputs[:num_carried]

    before = [load(ref, kind.shape, kind.dtype) for ref, kind in zip(before_refs, types)]
    after = lax.fori_loop(jnp.int32(0), num_rounds, one_round, before)
    for ref, value, kind in zip(after_refs, after, types, strict=True):
        ref[...] = store(value, kind.shape, ref.dtype)
