"""Play a batch of games on the devices: compile, stream the losses, play chunk after chunk."""

import threading
import time
from collections.abc import Callable
from functools import cache, lru_cache, partial
from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.sharding import AxisType, Mesh, PartitionSpec

from sfmab_jax.base import Bandit, has_own_functions
from sfmab_jax.engine.gather import BatchResults, gather_results
from sfmab_jax.engine.lanes import compile_loop
from sfmab_jax.engine.layout import Run
from sfmab_jax.engine.loss_stream import LossProcess, start_sequences
from sfmab_jax.engine.measure import Measure, Row, begin_measure, compiled_measure
from sfmab_jax.engine.observer import Observer
from sfmab_jax.engine.resume import Bookmark, Bookmarks
from sfmab_jax.engine.rounds import (
    GroupState,
    begin_group,
    in_groups,
    play_chunk,
    without_trailing_none,
)
from sfmab_jax.engine.tally import Tally, begin_tally, mean_process
from sfmab_jax.numerics.threefry import game_keys, root_key

__all__ = ["keys_of_games", "play_batch"]

# `functools.cache` would let two threads make the same value, each with programs of its own. Only
# the programs that play are large enough to matter: `begin_group` may well be compiled twice.
_CACHE_LOCK = threading.Lock()


@lru_cache(maxsize=32)
def _compiled_begin_group(**sizes: Any) -> Callable:
    """Return `begin_group` compiled for these sizes; the least recently used are dropped."""
    return jax.jit(partial(begin_group, **sizes))


@jax.jit
def keys_of_games(root: Array, sequences: Array, seeds: Array) -> Array:
    """Return the key words of games; losses draw from the other half of the split."""
    return game_keys(jax.random.split(root)[0], sequences, seeds)


def _program_finder(devices: tuple, engine: str, batching: str, exact: bool) -> Callable:
    """Return `_make_program_finder` of the same arguments, made once for all threads."""
    with _CACHE_LOCK:
        return _make_program_finder(devices, engine, batching, exact)


@cache
def _make_program_finder(devices: tuple, engine: str, batching: str, exact: bool) -> Callable:
    """Return a function of arguments that gives the program compiled for them.

    Its lanes are split evenly over the devices if there are several. ``exact``: see
    `sfmab_jax.engine.lanes`.
    """
    platform = devices[0].platform
    mesh = Mesh(np.array(devices), ("lanes",), axis_types=(AxisType.Auto,))
    wrap = partial(_shard, mesh) if len(devices) > 1 else lambda play: play
    static, donated = ("window",), ("groups",)
    if engine == "fused":
        from sfmab_jax.engine.pallas.kernel import play_chunk_fused  # Pallas is slow to import

        play = wrap(in_groups(partial(play_chunk_fused, platform=platform)))
    elif batching == "vmap":
        play = wrap(in_groups(partial(play_chunk, batching="vmap")))
    else:
        return compile_loop(
            in_groups(partial(play_chunk, exact=exact)),
            platform,
            wrap=wrap,
            static_argnames=static,
            donate_argnames=donated,
            exact=exact,
        )
    program = jax.jit(play, static_argnames=static, donate_argnames=donated)
    return lambda *args, **kwargs: program


def _shard(mesh: Mesh, play: Callable) -> Callable:
    """Return ``play`` with every device playing its own lanes."""
    everywhere = PartitionSpec()

    def specs_of(tree):
        return jax.tree.map(lambda x: PartitionSpec(*[None] * (x.ndim - 1), "lanes"), tree)

    def sharded_play(
        bandit, record, observer, losses, groups, game_keys, lane_losses, *shared, window: int
    ) -> GroupState:
        by_lane = (groups, game_keys, lane_losses)
        of_losses = everywhere if isinstance(losses, LossProcess) else specs_of(losses)
        return jax.shard_map(
            partial(play, window=window),
            mesh=mesh,
            in_specs=(
                *[everywhere] * 3,
                of_losses,
                *specs_of(by_lane),
                *[everywhere] * len(shared),
            ),
            out_specs=specs_of(groups),
            check_vma=False,
        )(bandit, record, observer, losses, *by_lane, *shared)

    return sharded_play


def play_batch(
    run: Run,
    bandit: Bandit,
    record: Callable | None,
    observer: Observer | None,
    index: int,
    *,
    measures: Literal["nothing", "begun", "all"],
    advance: Callable[[int, float], None],
    stop: threading.Event,
    bookmarks: Bookmarks | None = None,
    bookmark_prefix: str = "games",
) -> tuple[BatchResults, Row | None] | None:
    """Play batch number ``index`` to the last round; None if stopped.

    Args:
      run: what is played.
      bandit, record, observer: pytrees of numbers with static functions.
      index: number of the batch.
      measures: the loss sequences to measure: none, those that begin in this batch, or that of
        every game.
      advance: told rounds times games after each call, and the seconds since the one before or,
        for the first, since all programs were compiled (`jax.jit` compiles others than our own
        later, in their first call).
      stop: set from another thread to stop at the next chunk.
      bookmarks: where the batch keeps its place, and from where it goes on.
      bookmark_prefix: how the names of this strategy's bookmarks begin.

    Returns:
      What the games left, and the `measure.Row` of the sequences measured, arrays [sequences, C];
      None if there are none.
    """
    games = _games_of_batch(run, index)
    process = run.loss_process if run.has_own_losses else None
    parts = (bandit, record, observer)
    means = mean_process(run.losses, run.to_units) if run.pseudo_regret else None
    delays = run.delay_process
    exact = not _is_own((*parts, process, means, delays))
    program_for = _program_finder(run.devices, run.engine, run.batching, exact=exact)
    measuring = measures != "nothing"
    states = _first_states(run, parts, games, measuring)
    stream = None if process else run.loss_stream(games.sequences)
    measure = _first_measure(run, len(games.sequences)) if stream and measuring else ()
    checkpoints = jnp.int32(run.checkpoints)
    bookmark = Bookmark(
        bookmarks,
        f"{bookmark_prefix}_{index * run.batch_games}_{run.batch_games}",
        num_rounds=run.num_rounds,
        num_games=games.num_games,
    )
    (states, measure), start = bookmark.resume((states, measure), stream)
    told = time.perf_counter()

    def finish(call_index: int, rounds: int) -> None:
        """Wait for a call and report its rounds."""
        nonlocal told
        jax.block_until_ready(states[call_index])
        before, told = told, time.perf_counter()
        played = np.count_nonzero(games.calls[call_index].places < games.num_games)
        advance(rounds * int(played), told - before)

    for chunk in run.chunks(start):
        if stop.is_set():
            return None
        losses: Any = stream.chunk(chunk.first_round) if stream else process
        if isinstance(measure, Measure):
            given = (losses, measure, checkpoints, np.int32(chunk.first_round))
            measure = compiled_measure(run.devices[0].platform)(*given)(*given)
        when = (checkpoints, np.int32(chunk.first_round), np.int32(chunk.num_windows))
        others = without_trailing_none(means, delays)
        arguments = [
            (*parts, losses, state, call.keys, call.losses, *when, call.num_groups, *others)
            for state, call in zip(states, games.calls, strict=True)
        ]
        program = program_for(*arguments[0], window=run.window)
        rounds = chunk.last_round - chunk.first_round + 1
        if chunk.first_round == start:
            told = time.perf_counter()
        # Two calls are under way at a time: with all of them at once the last might end first, and
        # progress would stand still.
        for call_index, one_call in enumerate(arguments):
            states[call_index] = program(*one_call, window=run.window)
            if call_index:
                finish(call_index - 1, rounds)
        finish(len(arguments) - 1, rounds)
        bookmark.keep(chunk.last_round, (states, measure), stream)
    places = [call.places for call in games.calls]
    results = gather_results(states, places, games.num_games, run.unit)
    chosen = np.arange(games.num_games)
    if measures == "begun":
        chosen = chosen[games.begins[: games.num_games]]
    if isinstance(measure, Measure):
        numbers, columns = np.unique(games.sequences, return_index=True)
        wanted = columns[np.searchsorted(numbers, games.sequence[chosen])]
        return results, Row(*np.asarray(measure.rows).transpose(1, 2, 0)[:, wanted])
    rows = results.loss_rows
    if rows is not None and len(chosen) < games.num_games:  # otherwise they would only be copied
        rows = jax.tree.map(lambda column: column[chosen], rows)
    return results, rows


class _Call(NamedTuple):
    """The games that one call of the compiled program plays, in G groups of W lanes."""

    # Of its games in the batch [groups played, W]; the last call may play fewer than G.
    places: np.ndarray
    num_groups: np.int32  # that are played
    keys: np.ndarray  # uint32 [G, 2, W]
    losses: np.ndarray  # `lane_losses` of `rounds.play_chunk`, with a first axis [G]
    loss_states: Any  # of the lanes' own loss processes, leaves [G, ..., W]; () if shared
    mean_states: Any  # the first states of all sequences, the same way; () if nothing needs them


class _Games(NamedTuple):
    """The games of a batch."""

    num_games: int
    sequence: np.ndarray  # the number of the loss sequence of each game, and of spare lanes
    begins: np.ndarray  # whether a game is the first of its sequence, bool of the same shape
    sequences: np.ndarray  # numbers of the loss sequences, equally many for each device
    calls: list[_Call]


def _games_of_batch(run: Run, index: int) -> _Games:
    """Return which games batch number ``index`` has, call by call.

    Lanes past the last game play it again; their results are left out.
    """
    first_game = index * run.batch_games
    num_games = min(run.batch_games, run.num_games - first_game)
    games = np.minimum(first_game + np.arange(run.batch_games), run.num_games - 1)
    sequence, seed = np.divmod(games, run.num_seeds)
    sequence += run.first_sequence
    # Each device has its own run of consecutive sequences.
    by_device = sequence.reshape(len(run.devices), run.batch_width)
    first = by_device[:, :1]
    numbers = first + np.arange(run.sequences_per_device)
    last = run.first_sequence + run.num_sequences - 1
    sequences = np.minimum(numbers, last).ravel()
    keys = np.asarray(
        keys_of_games(root_key(run.seed), jnp.uint32(sequence), jnp.uint32(seed + run.first_seed))
    )
    lane_losses, loss_states, mean_states = (by_device - first).ravel().astype(np.int32), (), ()
    if run.has_own_losses or run.pseudo_regret:
        started = start_sequences(run.losses, run.seed, sequence)
        own_keys, states = jax.tree.map(np.asarray, started)
        if run.has_own_losses:
            lane_losses, loss_states = own_keys, states
        if run.pseudo_regret:
            mean_states = states
    groups = _lanes_of_groups(run)
    groups = groups[groups.min(axis=1) < num_games]
    per_call = run.groups_per_call

    def call_of(places: np.ndarray) -> _Call:
        # Groups that are not played are there, too: one program serves all calls.
        filled = np.resize(places, (per_call, places.shape[1]))

        def of_lanes(leaf: np.ndarray) -> np.ndarray:
            """[..., lanes of the batch] -> [G, ..., W]."""
            return np.moveaxis(leaf[..., filled], -2, 0)

        losses = of_lanes(lane_losses)
        if run.sequences_in_row:
            by_device = losses.reshape(per_call, len(run.devices), -1)
            losses = by_device[..., : run.sequences_in_row].reshape(per_call, 1, -1)
        states = jax.tree.map(of_lanes, (loss_states, mean_states))
        return _Call(places, np.int32(len(places)), of_lanes(keys), losses, *states)

    starts = range(0, len(groups), per_call)
    calls = [call_of(groups[at : at + per_call]) for at in starts]
    return _Games(num_games, sequence, seed == 0, sequences, calls)


def _first_states(
    run: Run, parts: tuple[Any, ...], games: _Games, measures: bool
) -> list[GroupState]:
    """Return the state of the groups of each call before round 1, in host memory.

    All begin alike, but for their own losses; the first call copies it to the device.
    """
    begin = _compiled_begin_group(
        num_arms=run.losses.num_arms,
        num_games=run.group_games,
        num_checkpoints=len(run.checkpoints),
        dtype=run.dtype,
        watch_laws=not _is_own(parts[0]),
        sees=run.losses.sees,
        waiting_places=run.waiting_places,
    )
    loss_unit = jnp.asarray(1 / run.unit, run.dtype)  # a loss of 1, as it is counted
    state = begin(*parts, loss_unit)
    if run.has_own_losses and measures:
        state = state._replace(measure=_first_measure(run, run.group_games))

    def of_call(call: _Call) -> GroupState:
        own = state._replace(losses=call.loss_states)
        if run.arm_counts or run.pseudo_regret:
            own = own._replace(tally=_first_tally(run, call.mean_states))
        return own

    groups = run.groups_per_call
    state = jax.tree.map(lambda x: np.broadcast_to(np.asarray(x), (groups, *x.shape)), state)
    return [of_call(call) for call in games.calls]


def _first_measure(run: Run, num_sequences: int) -> Measure:
    return begin_measure(
        num_arms=run.losses.num_arms,
        num_sequences=num_sequences,
        num_checkpoints=len(run.checkpoints),
        dtype=run.dtype,
        switches=run.switches,
    )


def _first_tally(run: Run, starts: Any) -> Tally:
    """Return the tally of the groups of a call before round 1; ``starts`` leaves [G, ..., W]."""
    return begin_tally(
        starts,
        counts=run.arm_counts,
        expected=run.pseudo_regret,
        num_groups=run.groups_per_call,
        num_arms=run.losses.num_arms,
        num_games=run.group_games,
        num_checkpoints=len(run.checkpoints),
        dtype=run.dtype,
    )


def _is_own(parts: Any) -> bool:
    """Whether the parts of a game have functions of the package and of libraries only.

    These meet no NaN and do not look at the sign of a zero.
    """
    return _has_own_functions(jax.tree.structure(parts))


@lru_cache(maxsize=64)
def _has_own_functions(structure: Any) -> bool:
    return has_own_functions(jax.tree.unflatten(structure, [0] * structure.num_leaves))


def _lanes_of_groups(run: Run) -> np.ndarray:
    """Return which games of a batch each group has, [groups, lanes]: as many on every device.

    Where the lanes play on some sequences in a row, the first of them play the first seeds of the
    sequences, the next ones the second seeds, and so on: whole vectors of losses are then handed to
    the lanes.
    """
    num_devices = len(run.devices)
    width = run.group_games // num_devices
    games: Any = np.arange(run.batch_games).reshape(num_devices, -1, width).swapaxes(0, 1)
    if run.sequences_in_row:
        games = games.reshape(*games.shape[:2], run.sequences_in_row, -1).swapaxes(-1, -2)
    return games.reshape(-1, run.group_games)
