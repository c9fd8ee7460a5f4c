"""Losses for a run, a chunk of rounds at a time: made on the device, or from a table."""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from sfmab_jax.base import with_static_functions
from sfmab_jax.losses.base import LossSequence

__all__ = ["Feed"]

# Numbers are made in vectors of at least this many, so that they never meet scalar code, which may
# round differently: rounds of a window without memory, sequences with it.
_VECTOR = 16
# The most losses of one sequence in a window. By the number of arms alone, as another shape is
# another program.
_WINDOW_LOSSES = 2**18


class Feed:
    """The losses of some members of a family, chunk after chunk from round 1 on.

    A chunk is an array [rounds, n, sequences] on the device, counted in units of ``unit``. It is
    the only piece of the sequences that exists at a time.
    """

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
        self._window = _VECTOR if losses.num_arms * _VECTOR <= _WINDOW_LOSSES else 1
        self._spare: Array | None = None  # rounds made already for the next chunk
        if losses.table is None:
            root = jax.random.key(seed)
            self._next = with_static_functions(losses.next)
            init = with_static_functions(losses.init)
            self._keys, self._states = _start(init, root, jnp.uint32(sequences))
            if self._window == 1 or jax.tree.leaves(self._states):
                filled = np.resize(sequences, -(-len(sequences) // _VECTOR) * _VECTOR)
                root = jax.random.key(seed)  # the same beginning again, in more lanes
                self._keys, self._states = _start(init, root, jnp.uint32(filled))

    def chunk(self, first_round: int) -> Array:
        """The losses of ``chunk_rounds`` rounds from this one on; zeros past a table's end."""
        if self._losses.table is not None:
            rounds = slice(first_round - 1, first_round - 1 + self._chunk_rounds)
            rows = self._losses.table[self._sequences, rounds].astype(np.float64) / self._unit
            shape = (self._chunk_rounds, rows.shape[2], rows.shape[0])
            filled = np.zeros(shape, self._dtype)
            filled[: rows.shape[1]] = np.moveaxis(rows, 0, -1)
            return jnp.asarray(filled)
        made = self._spare
        missing = self._chunk_rounds - (0 if made is None else len(made))
        if missing > 0:
            new = self._generate(first_round + self._chunk_rounds - missing, missing)
            made = new if made is None else jnp.concatenate([made, new])
        assert made is not None
        self._spare = made[self._chunk_rounds :] if len(made) > self._chunk_rounds else None
        return made[: self._chunk_rounds, :, : len(self._sequences)]

    def state(self) -> list[Array]:
        """All that the chunks to come depend on, beside the round."""
        if self._losses.table is not None:
            return []
        spare = [] if self._spare is None else [self._spare]
        return [*jax.tree.leaves(self._states), *spare]

    def restore(self, state: list[np.ndarray]) -> None:
        """Continues where another feed of the same losses had this `state`."""
        if self._losses.table is None:
            arrays = [jnp.array(array) for array in state]
            leaves, structure = jax.tree.flatten(self._states)
            own = len(leaves)
            self._states = jax.tree.unflatten(structure, arrays[:own])
            self._spare = arrays[own] if len(arrays) > own else None

    def _generate(self, first_round: int, num_rounds: int) -> Array:
        """At least so many rounds, in whole windows."""
        num_windows = -(-num_rounds // self._window)
        self._states, losses = _generate(
            self._next,
            self._states,
            self._keys,
            jnp.int32(first_round),
            jnp.int32(num_windows),
            jnp.int32(len(self._sequences)),
            jnp.asarray(1 / self._unit, self._dtype),
            num_arms=self._losses.num_arms,
            most_windows=num_windows,
            window=self._window,
        )
        return losses


@jax.jit
def _start(init, root: Array, sequences: Array) -> tuple[Array, Any]:
    """Keys and first states of the sequences. Games draw from the other half of the split."""
    mine = jax.random.split(root)[1]
    keys = jax.vmap(partial(jax.random.fold_in, mine))(sequences)
    return keys, jax.vmap(init, out_axes=-1)(keys)


@partial(jax.jit, static_argnames=("num_arms", "most_windows", "window"))
def _generate(
    next_loss,
    states: Any,
    keys: Array,
    first_round: Array,
    num_windows: Array,
    num_sequences: Array,
    to_units: Array,
    *,
    num_arms: int,
    most_windows: int,
    window: int,
) -> tuple[Any, Array]:
    """The losses of num_windows * window rounds, [rounds, n, sequences].

    The numbers of windows and sequences are traced: a loop of known length may be unrolled, and
    then round differently.
    """

    def counted(losses: Array) -> Array:
        return losses.astype(to_units.dtype) * to_units

    def one_round(states, round_):
        over_sequences = jax.vmap(next_loss, in_axes=(-1, 0, None), out_axes=-1)
        states, losses = over_sequences(states, keys, round_)
        return states, counted(losses)

    def rounds_of(window_index):
        return first_round + window_index * window + jnp.arange(window, dtype=jnp.int32)

    if window == 1 or jax.tree.leaves(states):

        def one_window(index, carry):
            states, made = carry
            states, losses = lax.scan(one_round, states, rounds_of(index))
            return states, lax.dynamic_update_slice_in_dim(made, losses, index * window, 0)

        made = jnp.zeros((most_windows * window, num_arms, len(keys)), to_units.dtype)
        return lax.fori_loop(0, num_windows, one_window, (states, made))

    def window_of_sequence(index, made):
        # Without memory the rounds are independent: a vector of them. One sequence after another
        # and each in one run of memory, so that no shape or stride depends on their number.
        sequence, window_index = index // num_windows, index % num_windows
        over_rounds = jax.vmap(lambda t: next_loss(states, keys[sequence], t)[1])
        losses = counted(over_rounds(rounds_of(window_index)))[None]
        start = (sequence, window_index * window, jnp.zeros_like(sequence))
        return lax.dynamic_update_slice(made, losses, start)

    made = jnp.zeros((len(keys), most_windows * window, num_arms), to_units.dtype)
    made = lax.fori_loop(0, num_sequences * num_windows, window_of_sequence, made)
    return states, jnp.moveaxis(made, 0, -1)
