"""The losses of a run: one round of one sequence, and chunks of rounds of several.

Lanes that make their own losses do it by a `RoundMaker`. Losses that many games share come in a
stream, made on the device in the same way or read from a table.
"""

from collections.abc import Callable
from functools import cache, lru_cache, partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from sfmab_jax.base import has_own_functions, with_static_functions
from sfmab_jax.engine.lanes import (
    OverGames,
    compile_loop,
    depends_on_first,
    in_two_parts,
    keep_shared,
    over_lanes,
)
from sfmab_jax.losses.sequence import LossSequence, LossTable, first_shown
from sfmab_jax.numerics.hints import keep
from sfmab_jax.numerics.threefry import key_of_words, pinned_generator, root_key

__all__ = [
    "MOST_WINDOW_LOSSES",
    "LossProcess",
    "LossStream",
    "RoundMaker",
    "early_values",
    "generate_pieces",
    "has_chance",
    "round_maker",
    "start_sequences",
]

# Losses are made in vectors of at least this many (of rounds, or of sequences where rounds depend
# on each other), so that they never meet scalar code, which may round differently.
_VECTOR = 16
# The most losses of one sequence in a window. A rule of the arms alone, since every shape is a
# program of its own.
MOST_WINDOW_LOSSES = 2**18


class LossProcess(NamedTuple):
    """How the losses of any sequence of a family are made, round by round."""

    next: Callable[..., tuple[Any, Array]]  # see `LossSequence`
    to_units: Any  # what a loss is multiplied by to be counted in units of the run, []


class RoundMaker(NamedTuple):
    """How one round of one sequence is made, in two steps.

    What depends on the round alone is computed for a vector of rounds, and only the rest for each
    sequence. So it is done once for all sequences, and always in vectors.
    """

    early: Callable[[Array], list[Any]]  # round -> values
    # (values, state, key [2], *what it sees of the play) -> (state, losses [n])
    late: Callable[..., tuple[Any, Array]]


def round_maker(process: LossProcess, states: Any, seen: tuple[Array, ...] = ()) -> RoundMaker:
    """Return how rounds are made of sequences with these ``states``, leaves [..., K].

    Args:
      process: how the losses of any sequence are made.
      states: of the sequences.
      seen: what they see of the play, arrays [..., K]; see `LossSequence`.
    """

    def make_round(round_: Array, state: Any, words: Array, *seen: Array) -> tuple[Any, Array]:
        state, losses = process.next(state, key_of_words(words), round_, *seen)
        # Stored: whatever reads the losses, in whatever program, finds the same bits.
        (losses,) = keep(losses.astype(process.to_units.dtype) * process.to_units)
        return state, losses

    of_one = partial(jax.tree.map, lambda x: jax.ShapeDtypeStruct(x.shape[:-1], x.dtype))
    words = jax.ShapeDtypeStruct((2,), jnp.uint32)
    round_ = jax.ShapeDtypeStruct((), jnp.int32)
    return RoundMaker(*in_two_parts(make_round, round_, of_one(states), words, *of_one(seen)))


def early_values(
    mapped: OverGames, maker: RoundMaker, first_round: Array, rounds: int
) -> list[Any]:
    """Return what depends on the round alone, for some rounds: leaves [rounds, ...]."""
    vector = first_round + jnp.arange(max(rounds, _VECTOR), dtype=jnp.int32)
    return [jnp.moveaxis(x, -1, 0)[:rounds] for x in mapped(maker.early)(vector)]


def _early_of_lanes(maker: RoundMaker, rounds: Array) -> list[Any]:
    """Return what depends on the round alone, for rounds [R] that are lanes: leaves [..., R].

    A vector of rounds at a time, as everywhere: a longer one may round differently. Stored in one
    piece, as loops that read them in another order are not vectorised.
    """
    vector = min(_VECTOR, len(rounds))
    values = lax.map(over_lanes(maker.early), rounds.reshape(-1, vector))
    return [
        keep_shared(jnp.moveaxis(x, 0, -2).reshape(*x.shape[1:-1], len(rounds))) for x in values
    ]


def start_sequences(losses: LossSequence, seed: int, sequences: np.ndarray) -> tuple[Array, Any]:
    """Return the keys, uint32 [2, K], and the first states, leaves [..., K], of K sequences."""
    init = with_static_functions(losses.init)
    return _start(init, root_key(seed), jnp.uint32(sequences))


@pinned_generator()
@jax.disable_jit(False)
def has_chance(losses: LossSequence) -> bool:
    """Whether the members of a family differ: whether their losses depend on their keys."""
    if losses.table is not None:
        return False
    leaves, structure = jax.tree.flatten(with_static_functions((losses.init, losses.next)))
    kinds = tuple((np.shape(x), np.result_type(x), isinstance(x, int | float)) for x in leaves)
    family = jax.tree.unflatten(structure, leaves)
    # A user's function may hold on to a table, so nothing of it is kept.
    shown = tuple((x.shape, x.dtype) for x in first_shown(losses))
    return (_own_has_chance if has_own_functions(family) else _has_chance)(structure, kinds, shown)


def _has_chance(
    structure: Any,
    kinds: tuple[tuple[tuple[int, ...], np.dtype, bool], ...],
    shown: tuple[tuple[tuple[int, ...], np.dtype], ...],
) -> bool:
    """Whether the first round depends on the key.

    Args:
      structure: of the family's functions (init, next).
      kinds: shapes and dtypes of their parameters, and whether they are numbers of Python's.
      shown: shapes and dtypes of what they see of the play.
    """

    def first_round(words: Array, *leaves: Array) -> Any:
        init, next_loss = jax.tree.unflatten(structure, leaves)
        key = key_of_words(words)
        seen = (jnp.zeros(*kind) for kind in shown)
        return next_loss(init(key), key, jnp.int32(1), *seen)

    words = jax.ShapeDtypeStruct((2,), jnp.uint32)
    leaves = [jax.ShapeDtypeStruct(*kind, weak_type=is_weak) for *kind, is_weak in kinds]
    return depends_on_first(first_round, words, *leaves)


_own_has_chance = lru_cache(maxsize=256)(_has_chance)


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
        if not losses.is_oblivious:
            raise ValueError(
                f"losses {losses.name!r} answer the arms played, so there are none before a game; "
                "give an oblivious sequence here, or play them with sf.simulate"
            )
        self._losses = losses
        self._sequences = sequences
        self._unit, self._dtype = unit, dtype
        self._chunk_rounds = chunk_rounds
        self._spare: Array | None = None  # rounds made already for the next chunk
        if losses.table is None:
            to_units = np.asarray(1 / unit, dtype)
            self._process = LossProcess(with_static_functions(losses.next), to_units)
            start = partial(start_sequences, losses, seed)
            _, states = jax.eval_shape(start, sequences)
            self._piece_rounds = _rounds_of_piece(losses.num_arms, states)
            if _is_made_round_by_round(self._piece_rounds, states):  # in whole vectors of sequences
                sequences = np.resize(sequences, -(-len(sequences) // _VECTOR) * _VECTOR)
            self._keys, self._states = start(sequences)

    @pinned_generator()
    def chunk(self, first_round: int) -> Array:
        """Return the losses of the next ``chunk_rounds`` rounds; zeros past a table's end.

        Chunks are asked for in order.
        """
        if self._losses.table is not None:
            return self._read_rounds(self._losses.table, first_round)
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

    def _read_rounds(self, table: LossTable, first_round: int) -> Array:
        """Return the losses of a chunk from a table, with the sequences last."""
        index: Any = self._sequences
        if isinstance(table, np.ndarray) and (np.diff(index) == 1).all():
            index = slice(index[0], index[-1] + 1)  # a view: nothing is copied yet
        last = min(first_round - 1 + self._chunk_rounds, table.shape[1])
        losses = table[index, first_round - 1 : last]
        if self._unit != 1:
            # Exact where the table has the precision of the run: the unit is a power of two.
            losses = losses.astype(np.result_type(losses.dtype, self._dtype)) / self._unit
        losses = losses.astype(self._dtype, copy=False)
        past_end = self._chunk_rounds - losses.shape[1]
        if past_end:
            losses = np.pad(losses, ((0, 0), (0, past_end), (0, 0)))
        # On its way to the device the view is transposed by JAX, which is faster than NumPy.
        return jax.device_put(np.moveaxis(losses, 0, -1), may_alias=False)

    def _make_rounds(self, first_round: int, num_rounds: int) -> Array:
        """Make at least so many rounds, in whole pieces."""
        num_pieces = -(-num_rounds // self._piece_rounds)
        (device,) = self._keys.devices()
        given = (
            self._process,
            self._states,
            self._keys,
            np.int32(first_round),
            np.int32(num_pieces),
            np.int32(len(self._sequences)),
        )
        sizes = {
            "num_arms": self._losses.num_arms,
            "buffer_pieces": num_pieces,
            "piece_rounds": self._piece_rounds,
        }
        generate = _compiled_generate(device.platform)(*given, **sizes)
        self._states, losses = generate(*given, **sizes)
        return losses


def _rounds_of_piece(num_arms: int, states: Any) -> int:
    """Return how many rounds are made together; many if they do not depend on each other."""
    sizes = (_VECTOR,) if jax.tree.leaves(states) else (8 * _VECTOR, _VECTOR)
    return next((size for size in sizes if num_arms * size <= MOST_WINDOW_LOSSES), 1)


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
    return jax.random.key_data(keys).T, jax.vmap(init, out_axes=-1)(keys)


@cache
def _compiled_generate(platform: str) -> Callable:
    """Return a function of arguments that gives `generate_pieces` compiled for them."""
    sizes = ("num_arms", "buffer_pieces", "piece_rounds")
    return compile_loop(generate_pieces, platform, static_argnames=sizes)


def generate_pieces(
    process: LossProcess,
    states: Any,
    keys: Array,
    first_round: Array,
    num_pieces: Array,
    num_sequences: Array,
    *,
    num_arms: int,
    buffer_pieces: int,
    piece_rounds: int,
) -> tuple[Any, Array]:
    """Return the losses of ``num_pieces * piece_rounds`` rounds, [rounds, n, sequences].

    Rounds that do not depend on each other are made as the lanes of one sequence, a piece of them
    at a time. Otherwise the sequences are the lanes, and rounds are made one after another.

    The numbers of pieces and sequences are traced, as a loop of known length may be unrolled and
    then round differently; ``buffer_pieces`` is ``num_pieces`` once more, for the result's shape.
    """
    dtype = process.to_units.dtype
    maker = round_maker(process, states)

    if _is_made_round_by_round(piece_rounds, states):

        def one_round(states, values):
            values = [keep_shared(value) for value in values]
            return over_lanes(partial(maker.late, values))(states, keys)

        def add_piece(index, carry):
            states, buffer = carry
            start = first_round + index * piece_rounds
            values = early_values(over_lanes, maker, start, piece_rounds)
            states, losses = lax.scan(one_round, states, values, length=piece_rounds)
            return states, lax.dynamic_update_slice_in_dim(buffer, losses, index * piece_rounds, 0)

        buffer = jnp.zeros((buffer_pieces * piece_rounds, num_arms, keys.shape[1]), dtype)
        return lax.fori_loop(0, num_pieces, add_piece, (states, buffer))

    def piece_of_sequence(index, buffer):
        # One sequence after another, so that no shape or stride depends on their number.
        sequence, piece = index // num_pieces, index % num_pieces
        words = keep_shared(lax.dynamic_index_in_dim(keys, sequence, 1, keepdims=False))
        rounds = first_round + piece * piece_rounds + jnp.arange(piece_rounds, dtype=jnp.int32)

        def losses_of(round_, values):
            return maker.late(values, states, words)[1]

        losses = over_lanes(losses_of)(rounds, _early_of_lanes(maker, rounds))[None, None]
        zero = jnp.zeros_like(sequence)
        return lax.dynamic_update_slice(buffer, losses, (sequence, piece, zero, zero))

    buffer = jnp.zeros((keys.shape[1], buffer_pieces, num_arms, piece_rounds), dtype)
    buffer = lax.fori_loop(0, num_sequences * num_pieces, piece_of_sequence, buffer)
    return states, buffer.transpose(1, 3, 2, 0).reshape(-1, num_arms, keys.shape[1])
