"""simulate: many strategies, seeds and loss sequences; regret at the checkpoints."""

import threading
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np

from sfmab_jax.arguments import check_parameters, check_record, check_shapes, check_switches
from sfmab_jax.base import Bandit, BanditState, feedback_of, with_static_functions
from sfmab_jax.bookmarks import Bookmarks
from sfmab_jax.certificate import Certificate, certificate_from_rows, watch
from sfmab_jax.checks import check_integer
from sfmab_jax.engine import Games, play_games
from sfmab_jax.losses import LossSequence, as_loss_sequence
from sfmab_jax.losses.base import MOST_ROUNDS
from sfmab_jax.measuring import measure_losses
from sfmab_jax.norms import warn_of_what_is_not_finite
from sfmab_jax.progress import Progress
from sfmab_jax.results import Result, Results
from sfmab_jax.sizes import chunk_rounds_for
from sfmab_jax.workers import run_jobs

__all__ = ["simulate", "unit_of_losses"]


def simulate(
    strategies: Bandit | Mapping[str, Bandit],
    losses: LossSequence | Any,
    *,
    num_rounds: int | None = None,
    num_seeds: int = 1024,
    num_sequences: int | None = None,
    seed: int = 0,
    first_seed: int = 0,
    checkpoints: int | Sequence[int] = 64,
    dtype: Any = jnp.float32,
    feedback: Literal["bandit", "full"] | None = None,
    record: Callable[[BanditState], Any] | None = None,
    certificate: bool = False,
    progress: bool | Callable[[int], None] | None = None,
    devices: Sequence[Any] | None = None,
    chunk_rounds: int | None = None,
    engine: Literal["scan", "fused"] = "scan",
    bookmarks: Bookmarks | None = None,
) -> Result | Results:
    """Plays every strategy on the same loss sequences with the same random numbers.

    The game of sequence k and seed s is the same, bit for bit on one kind of machine, whatever
    the other games, the chunks and the devices.

    Args:
      strategies: one bandit, or a mapping from names to bandits.
      losses: a `LossSequence`, or an array [T, n] or [K, T, n].
      num_rounds: T. By default the length of the array, or 10,000.
      num_seeds: S, independent games of each strategy on each sequence.
      num_sequences: K, independent members of a random family. By default 1.
      seed: names the whole run: losses and games.
      first_seed: the number of the first seed; seeds are first_seed ... first_seed + S - 1.
      checkpoints: how many, spread evenly on a logarithmic scale, or the rounds themselves. The
        last round is always one.
      dtype: float32, or float64 when JAX has it enabled.
      feedback: what the players are shown: "bandit" the loss of the arm they played, "full" the
        losses of all arms; None leaves it to each strategy.
      record: ``record(state)`` of one game, kept at the checkpoints; for instance
        ``lambda state: state.full_information.learning_rate``.
      certificate: whether to follow the pathwise certificates of log-barrier AdaFTRL, see
        `sfmab_jax.certificate`; ``result.certificate`` then holds them.
      progress: whether to show a progress bar; None shows one in a terminal when it takes long.
        A function is called instead, with the rounds played since its last call.
      devices: JAX devices to spread the games over; by default all local devices.
      chunk_rounds: rounds in one call of the compiled program.
      engine: "scan", a scan over the rounds; or "fused", a kernel in which a tile of games plays
        a chunk of rounds, for GPU and TPU: see `sfmab_jax.fused`. Their results agree up to
        rounding. On CPU the kernel is interpreted, slowly, to compare.
      bookmarks: where a long run keeps its places, to go on from them; see
        `sfmab_jax.bookmarks`. They belong to the arguments of one call.

    Returns:
      A `Result` for one bandit, `Results` for a mapping.

    >>> import sfmab_jax as sf
    >>> bandit = sf.strategies.scale_free()
    >>> result = sf.simulate(bandit, [[1.0, 0.0], [0.0, 0.5]], num_seeds=8)
    >>> result.regret.shape
    (1, 8, 2)
    """
    named = dict(strategies) if isinstance(strategies, Mapping) else {"strategy": strategies}
    if not named:
        raise ValueError("strategies is empty; give at least one bandit")
    for name, bandit in named.items():
        if not isinstance(bandit, Bandit):
            raise ValueError(
                f"strategy {name!r} is {bandit!r}; give a Bandit, as made by "
                "sf.strategies.scale_free() or sf.compose(...)"
            )
    if feedback is not None:
        shown = feedback_of(feedback)
        named = {name: bandit._replace(feedback=shown) for name, bandit in named.items()}
    sequence = as_loss_sequence(losses)
    dtype = _checked_dtype(dtype)
    for name, bandit in named.items():
        check_parameters(name, bandit, dtype)
        check_record(record, bandit, sequence.num_arms, dtype)
    rounds = _checked_rounds(num_rounds, sequence)
    chosen = _checked_devices(devices)
    if engine not in ("scan", "fused"):
        raise ValueError(f"engine is {engine!r}; choose 'scan' or 'fused'")
    if certificate and engine == "fused":
        raise ValueError("certificate=True needs engine='scan'; the fused engine follows none")
    sequences = _checked_sequences(num_sequences, sequence)
    if chunk_rounds is None:
        one = sequences == 1
        chunk_rounds = chunk_rounds_for(sequence.num_arms, rounds, chosen[0], engine, one)
    games = Games(
        losses=sequence,
        num_rounds=rounds,
        num_sequences=sequences,
        num_seeds=check_integer("num_seeds", num_seeds, 1, 2**31 - 1),
        first_seed=check_integer("first_seed", first_seed, 0, 2**31 - 1),
        seed=check_integer("seed", seed, 0, 2**32 - 1),
        checkpoints=_checkpoints(checkpoints, rounds),
        dtype=dtype,
        unit=unit_of_losses(sequence.magnitude, dtype),
        chunk_rounds=check_integer("chunk_rounds", chunk_rounds, 1, 2**20),
        devices=chosen,
        engine=engine,
    )
    check_switches(progress, certificate)
    for name, bandit in named.items():
        check_shapes(name, bandit, sequence.num_arms, dtype)
    watches = {name: watch(bandit) if certificate else None for name, bandit in named.items()}
    if engine == "fused":
        from sfmab_jax.fused import check_fusible  # Pallas takes its time to import

        for name, bandit in named.items():
            check_fusible(name, bandit, record, sequence.num_arms, dtype, chosen[0])
    one = isinstance(strategies, Bandit)
    return _simulate(games, named, record, watches, progress, one, bookmarks)


def _simulate(
    games: Games, named, record, watches, progress, one: bool, bookmarks: Bookmarks | None
) -> Result | Results:
    """Plays what has been checked."""
    kept = None if record is None else with_static_functions(record)
    bar = Progress(games.num_games * games.num_rounds * len(named), progress)
    jobs: list[Callable[[threading.Event], Any]] = [
        partial(measure_losses, games, bookmarks=bookmarks)
    ]
    for number, (name, bandit) in enumerate(named.items()):
        play = partial(play_games, bookmarks=bookmarks, place=f"games_{number}")
        how = (games, with_static_functions(bandit), kept, watches[name])
        for block in range(games.num_blocks):
            jobs.append(partial(play, *how, block, bar.advance))
    try:
        with bar:
            norms, *blocks = run_jobs(jobs, games.devices, bar.show)
    except KeyboardInterrupt:
        raise KeyboardInterrupt(
            f"stopped after {bar.done:,} of {bar.total:,} rounds; nothing was kept. The same call "
            f"with seed={games.seed} plays the same games again; fewer rounds or seeds, or some "
            "seeds at a time with first_seed=, take less time"
        ) from None
    warn_of_what_is_not_finite(norms, games.losses)
    results = {}
    shape = (games.num_sequences, games.num_seeds, -1)
    best = norms.best[:, None, :]
    for number, (name, bandit) in enumerate(named.items()):
        mine = blocks[number * games.num_blocks : (number + 1) * games.num_blocks]
        results[name] = Result(
            name=name,
            rounds=games.checkpoints,
            regret=_above(best, [b.realised for b in mine], shape),
            expected_regret=_above(best, [b.expected for b in mine], shape),
            norms=norms,
            seed=games.seed,
            first_seed=games.first_seed,
            losses=games.losses.name,
            dtype=games.dtype.name,
            seconds=bar.seconds,
            unit=games.unit,
            records=jax.tree.map(
                lambda *leaves: np.concatenate(leaves).reshape(*shape[:2], *leaves[0].shape[1:]),
                *[b.records for b in mine],
            ),
            bandit=bandit,
            certificate=None if watches[name] is None else _certificate(mine, games),
        )
    return results["strategy"] if one else Results(results)


def _above(best: np.ndarray, blocks: list[np.ndarray], shape: tuple[int, ...]) -> np.ndarray:
    """Total losses less those of the best arms."""
    totals = np.concatenate(blocks).reshape(shape)
    totals -= best
    return totals


def _certificate(blocks, games: Games) -> Certificate:
    """Of all games of one strategy."""
    rows = np.concatenate([block.watched for block in blocks])
    rows = rows.reshape(games.num_sequences, games.num_seeds, *rows.shape[1:])
    return certificate_from_rows(rows, games.losses.num_arms, games.unit)


def _checked_dtype(dtype: Any) -> np.dtype:
    try:
        dtype = np.dtype(dtype)
    except TypeError:
        raise ValueError(f"dtype is {dtype!r}; give float32 or float64") from None
    if dtype not in (np.float32, np.float64):
        raise ValueError(f"dtype is {dtype}; give float32 or float64")
    if dtype == np.float64 and not jax.config.read("jax_enable_x64"):
        raise ValueError(
            "dtype is float64, which JAX has turned off; call "
            "jax.config.update('jax_enable_x64', True) first, or set JAX_ENABLE_X64=1"
        )
    return dtype


def _checked_devices(devices: Sequence[Any] | None) -> tuple[Any, ...]:
    if devices is None:
        return tuple(jax.local_devices())
    if not isinstance(devices, Sequence) or not devices:
        raise ValueError(f"devices is {devices!r}; give a list of JAX devices, or None for all")
    for device in devices:
        if not isinstance(device, jax.Device):
            raise ValueError(f"devices has {device!r}; give members of jax.local_devices()")
    if len({device.platform for device in devices}) > 1:
        kinds = ", ".join(sorted({device.platform for device in devices}))
        raise ValueError(f"devices are of several kinds, {kinds}; give devices of one kind")
    return tuple(devices)


def _checked_rounds(num_rounds: int | None, sequence: LossSequence) -> int:
    available = sequence.num_rounds
    if num_rounds is None:
        return 10_000 if available is None else available
    rounds = check_integer("num_rounds", num_rounds, 1, MOST_ROUNDS)
    if available is not None and rounds > available:
        raise ValueError(f"num_rounds is {rounds}; the losses have only {available}")
    return rounds


def _checked_sequences(num_sequences: int | None, sequence: LossSequence) -> int:
    available = sequence.num_sequences
    if num_sequences is None:
        return available or 1
    number = check_integer("num_sequences", num_sequences, 1, 2**31 - 1)
    if available is not None and number > available:
        raise ValueError(f"num_sequences is {number}; the losses have only {available}")
    return number


def _checkpoints(checkpoints: int | Sequence[int], num_rounds: int) -> np.ndarray:
    """The rounds at which results are kept, increasing, the last of them the last round."""
    if np.ndim(checkpoints) == 0:
        number = check_integer("checkpoints", checkpoints, 1, 100_000)
        if number >= num_rounds:
            return np.arange(1, num_rounds + 1)
        spread = np.geomspace(1, num_rounds, number) if number > 1 else np.array([num_rounds])
        # Early on the scale is finer than the rounds: move each to the next free one.
        place = np.arange(number)
        rounds = np.maximum.accumulate(np.rint(spread).astype(np.int64) - place) + place
        return np.minimum(rounds, num_rounds - number + 1 + place)
    rounds = np.asarray(checkpoints)
    if rounds.ndim != 1 or rounds.dtype.kind not in "iu" or not len(rounds):
        raise ValueError(f"checkpoints are {checkpoints!r}; give a number or a list of rounds")
    rounds = np.unique(np.append(rounds, num_rounds))
    if rounds[0] < 1 or rounds[-1] > num_rounds:
        raise ValueError(
            f"checkpoints run from {rounds[0]} to {rounds[-1]}; rounds run from 1 to {num_rounds}"
        )
    return rounds


def unit_of_losses(magnitude: float, dtype: np.dtype) -> float:
    """The power of two that losses are counted in, an exact change of unit.

    1 unless the losses are so large or small that float32 sums of them would leave its range. It
    stays within 2^+-100, so that constants of the strategies counted in it keep within range, too.
    """
    largest = float(np.finfo(dtype).max)
    if not 4 / largest <= magnitude <= largest / 4:
        raise ValueError(
            f"losses have size {magnitude:.3g}, beyond the range of {dtype.name}; "
            "change their unit, or use float64"
        )
    if 1e-6 <= magnitude <= 1e6:
        return 1.0
    return float(2.0 ** np.clip(np.rint(np.log2(magnitude)), -100, 100))
