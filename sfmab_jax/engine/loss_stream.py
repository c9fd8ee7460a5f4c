"""The losses of a run, a chunk of rounds at a time: made on the device, or read from a table."""

from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from sfmab_jax.base import with_static_functions
from sfmab_jax.losses.sequence import LossSequence
from sfmab_jax.numerics.threefry import pinned_generator, root_key

__all__ = ["MOST_WINDOW_LOSSES", "LossStream"]

# Losses are made in vectors of at least this many (of rounds, or of sequences where rounds depend
# on each other), so that they never meet scalar code, which may round differently.
_VECTOR = 16
# The most losses of one sequence in a window. A rule of the arms alone, since every shape is a
# program of its own.
MOST_WINDOW_LOSSES = 2**18


class LossStream:
    """The losses of some members of a family, chunk after chunk from round 1 on.

    A chunk is an array [rounds, n, sequences] on the device, counted in units of ``unit``. No other
    losses of the sequences exist at the time.
    """

    @pinned_generator()
    def __init__(
        self,
        losses: LossSequence,
        sequences: np.ndarray,
        *,
        seed: int,
        unit: float,
        dtype: np.dtype,
        chunk_rounds: int,
    ):
        self._losses = losses
        self._sequences = sequences
        self._unit, self._dtype = unit, dtype
        self._chunk_rounds = chunk_rounds
        self._piece_rounds = _VECTOR if losses.num_arms * _VECTOR <= MOST_WINDOW_LOSSES else 1
        self._spare: Array | None = None  # rounds made already for the next chunk
        if losses.table is None:
            self._next = with_static_functions(losses.next)
            init = with_static_functions(losses.init)
            _, states = jax.eval_shape(_start, init, root_key(seed), jnp.uint32(sequences))
            if _is_made_round_by_round(self._piece_rounds, states):  # in whole vectors of sequences
                sequences = np.resize(sequences, -(-len(sequences) // _VECTOR) * _VECTOR)
            self._keys, self._states = _start(init, root_key(seed), jnp.uint32(sequences))

    @pinned_generator()
    def chunk(self, first_round: int) -> Array:
        """Return the losses of the next ``chunk_rounds`` rounds; zeros past a table's end.

        Chunks are asked for in order.
        """
        if self._losses.table is not None:
            rounds = slice(first_round - 1, first_round - 1 + self._chunk_rounds)
            rows = self._losses.table[self._sequences, rounds].astype(np.float64) / self._unit
            shape = (self._chunk_rounds, rows.shape[2], rows.shape[0])
            filled = np.zeros(shape, self._dtype)
            filled[: rows.shape[1]] = np.moveaxis(rows, 0, -1)
            return jnp.asarray(filled)
        losses = self._spare
        missing = self._chunk_rounds - (0 if losses is None else len(losses))
        if missing > 0:
            new = self._make_rounds(first_round + self._chunk_rounds - missing, missing)
            losses = new if losses is None else jnp.concatenate([losses, new])
        assert losses is not None
        self._spare = losses[self._chunk_rounds :] if len(losses) > self._chunk_rounds else None
        return losses[: self._chunk_rounds, :, : len(self._sequences)]

    def state(self) -> list[Array]:
        """Return all that the chunks to come depend on, beside the round."""
        if self._losses.table is not None:
            return []
        spare = [] if self._spare is None else [self._spare]
        return [*jax.tree.leaves(self._states), *spare]

    def restore(self, state: list[np.ndarray]) -> None:
        """Continue where another stream of the same losses had this `state`."""
        if self._losses.table is None:
            arrays = [jnp.array(array) for array in state]
            leaves, structure = jax.tree.flatten(self._states)
            own = len(leaves)
            self._states = jax.tree.unflatten(structure, arrays[:own])
            self._spare = arrays[own] if len(arrays) > own else None

    def _make_rounds(self, first_round: int, num_rounds: int) -> Array:
        """Make at least so many rounds, in whole pieces."""
        num_pieces = -(-num_rounds // self._piece_rounds)
        generate = _compiled_generate_pieces(
            num_arms=self._losses.num_arms,
            buffer_pieces=num_pieces,
            piece_rounds=self._piece_rounds,
        )
        self._states, losses = generate(
            self._next,
            self._states,
            self._keys,
            jnp.int32(first_round),
            jnp.int32(num_pieces),
            jnp.int32(len(self._sequences)),
            jnp.asarray(1 / self._unit, self._dtype),
        )
        return losses


def _is_made_round_by_round(piece_rounds: int, states: Any) -> bool:
    """Whether rounds depend on each other, or have too many arms for a vector of rounds.

    Then they are made one by one, in vectors of sequences instead.
    """
    return piece_rounds == 1 or bool(jax.tree.leaves(states))


@jax.jit
def _start(init, root: Array, sequences: Array) -> tuple[Array, Any]:
    """Return keys and first states of sequences. Games draw from the other half of the split."""
    family = jax.random.split(root)[1]
    keys = jax.vmap(partial(jax.random.fold_in, family))(sequences)
    return keys, jax.vmap(init, out_axes=-1)(keys)


@lru_cache(maxsize=32)
def _compiled_generate_pieces(**sizes: Any) -> Callable:
    """Return `_generate_pieces` compiled for these sizes; the least recently used are dropped."""
    return jax.jit(partial(_generate_pieces, **sizes))


def _generate_pieces(
    next_loss,
    states: Any,
    keys: Array,
    first_round: Array,
    num_pieces: Array,
    num_sequences: Array,
    to_units: Array,
    *,
    num_arms: int,
    buffer_pieces: int,
    piece_rounds: int,
) -> tuple[Any, Array]:
    """Return the losses of ``num_pieces * piece_rounds`` rounds, [rounds, n, sequences].

    The numbers of pieces and sequences are traced, as a loop of known length may be unrolled and
    then round differently; ``buffer_pieces`` is ``num_pieces`` once more, for the result's shape.
    """

    def in_units(losses: Array) -> Array:
        return losses.astype(to_units.dtype) * to_units

    def one_round(states, round_):
        over_sequences = jax.vmap(next_loss, in_axes=(-1, 0, None), out_axes=-1)
        states, losses = over_sequences(states, keys, round_)
        return states, in_units(losses)

    def rounds_of(piece):
        within = jnp.arange(piece_rounds, dtype=jnp.int32)
        return first_round + piece * piece_rounds + within

    if _is_made_round_by_round(piece_rounds, states):

        def add_piece(index, carry):
            states, buffer = carry
            states, losses = lax.scan(one_round, states, rounds_of(index))
            return states, lax.dynamic_update_slice_in_dim(buffer, losses, index * piece_rounds, 0)

        buffer = jnp.zeros((buffer_pieces * piece_rounds, num_arms, len(keys)), to_units.dtype)
        return lax.fori_loop(0, num_pieces, add_piece, (states, buffer))

    def piece_of_sequence(index, buffer):
        # Without a state the rounds are independent: a vector of them. One sequence after another,
        # each contiguous, so that no shape or stride depends on their number.
        sequence, piece = index // num_pieces, index % num_pieces
        over_rounds = jax.vmap(lambda t: next_loss(states, keys[sequence], t)[1])
        losses = in_units(over_rounds(rounds_of(piece)))[None]
        start = (sequence, piece * piece_rounds, jnp.zeros_like(sequence))
        return lax.dynamic_update_slice(buffer, losses, start)

    buffer = jnp.zeros((len(keys), buffer_pieces * piece_rounds, num_arms), to_units.dtype)
    buffer = lax.fori_loop(0, num_sequences * num_pieces, piece_of_sequence, buffer)
    return states, jnp.moveaxis(buffer, 0, -1)
