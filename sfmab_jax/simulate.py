"""simulate: many strategies, seeds and loss sequences; regret at the checkpoints."""

import threading
import warnings
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np

from sfmab_jax.base import (
    Bandit,
    BanditState,
    feedback_of,
    has_own_functions,
    known_function,
    with_static_functions,
)
from sfmab_jax.checks import check_integer, warn_user
from sfmab_jax.compose import is_composed, parts_of
from sfmab_jax.delays import Delay
from sfmab_jax.engine.gather import BatchResults
from sfmab_jax.engine.layout import Run, chunk_rounds_for, games_per_call
from sfmab_jax.engine.loss_stream import has_chance
from sfmab_jax.engine.measure import Row
from sfmab_jax.engine.observer import Observer
from sfmab_jax.engine.progress import Progress
from sfmab_jax.engine.resume import Bookmarks
from sfmab_jax.engine.run import play_batch
from sfmab_jax.engine.threads import run_jobs
from sfmab_jax.engine.validate import (
    check_adversary,
    check_checkpoints,
    check_choice,
    check_comparator,
    check_delay,
    check_devices,
    check_dtype,
    check_engine,
    check_games,
    check_late_feedback,
    check_rounds,
    check_switches,
    check_tally,
    unit_of_losses,
)
from sfmab_jax.engine.validate_parts import check_parameters, check_record, check_shapes
from sfmab_jax.losses import LossSequence, as_loss_sequence
from sfmab_jax.numerics.threefry import pinned_generator
from sfmab_jax.results.certificate import Certificate, certificate_from_rows, observe_certificates
from sfmab_jax.results.concat import concat
from sfmab_jax.results.identity import identity_of_losses
from sfmab_jax.results.moments import Summarizer
from sfmab_jax.results.norms import (
    Norms,
    best_switching_from_row,
    norms_from_row,
    warn_if_no_regret,
    warn_if_not_finite,
)
from sfmab_jax.results.result import Result, Results
from sfmab_jax.results.statistics import FEW_UNITS
from sfmab_jax.results.summary import Summaries, Summary
from sfmab_jax.strategies.controls import fixed_arm
from sfmab_jax.until import Until

__all__ = ["simulate"]


def simulate(
    strategies: Bandit | Mapping[str, Bandit],
    losses: LossSequence | Any,
    *,
    num_rounds: int | None = None,
    num_seeds: int = 1024,
    num_sequences: int | None = None,
    seed: int = 0,
    first_sequence: int | None = None,
    first_seed: int = 0,
    checkpoints: int | Sequence[int] = 64,
    dtype: Any = jnp.float32,
    feedback: Literal["bandit", "full"] | None = None,
    delay: Delay | int | Literal["geometric"] | Sequence[int] | Callable | None = None,
    record: Callable[[BanditState], Any] | None = None,
    certificate: bool = False,
    arm_counts: bool = False,
    pseudo_regret: bool = False,
    policy_regret: bool = False,
    switches: int | None = None,
    keep: Literal["games", "moments"] = "games",
    until: Until | None = None,
    progress: bool | Callable[[int], None] | None = None,
    devices: Sequence[Any] | None = None,
    chunk_rounds: int | None = None,
    engine: Literal["scan", "fused"] = "scan",
    batching: Literal["lanes", "vmap"] = "lanes",
    bookmarks: Bookmarks | None = None,
) -> Result | Results | Summary | Summaries:
    """Play every strategy on the same loss sequences with the same random numbers.

    The game of sequence k and seed s is the same, bit for bit on one kind of machine, whatever
    the other games, the chunks and the devices. ``jax.debug.print`` in a part prints the first of
    the games that are played side by side, with rounds past the last; `step_by_step` prints one
    game, every round once.

    Args:
      strategies: one bandit, or a mapping from names to bandits.
      losses: a `LossSequence`, or an array [T, n] or [K, T, n]. Those that answer the player
        (`sf.losses.ADVERSARIES`, `sf.losses.from_adversary`) make a sequence for every game, and
        regret is *external*: it compares with the best arm on the losses that came.
      num_rounds: T. By default the length of the array, or 10,000.
      num_seeds: S, independent games of each strategy on each sequence.
      num_sequences: K, independent members of a random family, or the first of an array. By default
        all of an array; and of a random family one for each game: ``num_seeds`` games in all, on as
        many sequences, so that intervals tell the luck of the losses, too. With 1 all games share
        one sequence, and results are given that sequence.
      seed: names the whole run: losses and games.
      first_sequence: the number of the first sequence, by default 0. To add games to those of
        another call, see `concat`.
      first_seed: the number of the first seed; seeds are first_seed ... first_seed + S - 1. Where
        every game has its own sequence, it counts the sequences.
      checkpoints: how many, spread evenly on a logarithmic scale, or the rounds themselves. The
        last round is always one.
      dtype: float32, or float64 when JAX has it enabled.
      feedback: what the players are shown: "bandit" the loss of the arm they played, "full" the
        losses of all arms; None leaves it to each strategy.
      delay: how late they are shown it. The observation of round t arrives at the end of round
        t + d_t, and what has not arrived by the last round never does. A number of rounds, the same
        for all; "geometric", drawn with mean 10; an array [T]; a function of key and round, with
        delays up to 1,000; or one of `sf.delays`. With None, or 0, it arrives at once.
      record: ``record(state)`` of one game, kept at the checkpoints; for instance
        ``lambda state: state.full_information.learning_rate``.
      certificate: whether to follow the pathwise certificates of log-barrier AdaFTRL, see
        `sfmab_jax.results.certificate`; ``result.certificate`` then holds them.
      arm_counts: whether to keep how often each arm was played, ``result.arm_counts``; it takes as
        much memory as n regrets.
      pseudo_regret: whether to keep the regret in expected losses, ``result.pseudo_regret``, of a
        family that knows its means.
      policy_regret: whether to keep the regret against what each arm would have met if it had been
        played in every round, ``result.policy_regret``. On losses that answer the player this plays
        n more games for every game; on oblivious ones it is the regret itself.
      switches: m, to compare with the best sequence of arms with at most m switches, too:
        ``result.tracking_regret``. It takes n (m + 1) sums a round and sequence, m up to 64.
      keep: "games", the regret of every game; or "moments", only the moments of the regret and a
        histogram, in memory that does not grow with the number of games.
      until: play more games, as many again at each look, until this rule says that there are
        enough; see `sfmab_jax.until`. Intervals then hold whenever it stops.
      progress: whether to show a progress bar; None shows one in a terminal when it takes long.
        A function is called instead, with the rounds played since its last call.
      devices: JAX devices to spread the games over; by default all local devices.
      chunk_rounds: rounds in one call of the compiled program.
      engine: "scan", a scan over the rounds; or "fused", a kernel in which a tile of games plays
        a chunk of rounds, for GPU and TPU: see `sfmab_jax.engine.pallas`. Their results agree up to
        rounding. On CPU the kernel is interpreted, slowly, to compare.
      batching: how the scan engine maps one game over many: "lanes", our own transform; or "vmap",
        `jax.vmap` and nothing else, several times slower, to compare. Their results agree up to
        rounding.
      bookmarks: where a long run keeps its places, to go on from them; see
        `sfmab_jax.engine.resume`. They belong to the arguments of one call.

    Returns:
      A `Result` for one bandit, `Results` for a mapping; with ``keep="moments"`` a `Summary` or
      `Summaries`.

    >>> import sfmab_jax as sf
    >>> bandit = sf.strategies.scale_free()
    >>> result = sf.simulate(bandit, [[1.0, 0.0], [0.0, 0.5]], num_seeds=8)
    >>> result.regret.shape
    (1, 8, 2)
    """
    if isinstance(strategies, list | tuple | set) and not isinstance(strategies, Bandit):
        raise ValueError(
            f"strategies is a {type(strategies).__name__} of {len(strategies)}; give a Bandit, or "
            'a dict that names them, as {"first": ..., "second": ...}'
        )
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
    dtype = check_dtype(dtype)
    for name, bandit in named.items():
        check_parameters(name, bandit, dtype)
    rounds = check_rounds(num_rounds, sequence)
    chosen = check_devices(devices)
    check_choice("engine", engine, ("scan", "fused"))
    check_choice("batching", batching, ("lanes", "vmap"))
    if certificate and engine == "fused":
        raise ValueError("certificate=True needs engine='scan'; the fused engine follows none")
    check_adversary(sequence, engine, certificate)
    games = check_games(num_sequences, num_seeds, first_sequence, first_seed, sequence)
    given_rounds = 1 if chunk_rounds is None else chunk_rounds  # by default chosen below
    run = Run(
        losses=sequence,
        num_rounds=rounds,
        **games._asdict(),
        seed=check_integer("seed", seed, 0, 2**32 - 1),
        checkpoints=check_checkpoints(checkpoints, rounds),
        dtype=dtype,
        unit=unit_of_losses(sequence.magnitude, dtype),
        chunk_rounds=check_integer("chunk_rounds", given_rounds, 1, 2**20),
        devices=chosen,
        engine=engine,
        batching=batching,
        arm_counts=arm_counts,
        pseudo_regret=pseudo_regret,
        switches=check_comparator(switches),
        delay=check_delay(delay, rounds),
    )
    if chunk_rounds is None:
        streamed = 0 if run.has_own_losses else run.sequences_per_device
        size = chunk_rounds_for(sequence.num_arms, rounds, chosen[0], engine, streamed)
        run = replace(run, chunk_rounds=size)
    check_switches(
        progress,
        certificate=certificate,
        arm_counts=arm_counts,
        pseudo_regret=pseudo_regret,
        policy_regret=policy_regret,
    )
    check_tally(run)
    check_choice("keep", keep, ("games", "moments"))
    of_games = certificate or arm_counts or pseudo_regret or policy_regret or record is not None
    of_games = of_games or switches is not None
    if keep == "moments" and (of_games or bookmarks is not None):
        raise ValueError(
            "keep='moments' keeps nothing of single games: no record, certificate, arm_counts, "
            "pseudo_regret, policy_regret, switches or bookmarks; use keep='games'"
        )
    _check_until(until, named, run, keep, bookmarks)
    for name, bandit in named.items():
        check_shapes(name, bandit, sequence.num_arms, dtype)
        check_record(record, bandit, sequence.num_arms, dtype)
        check_engine(engine, name, bandit, record, sequence.num_arms, dtype, chosen[0])
        check_late_feedback(name, bandit, run, certificate)
    observers = {
        name: observe_certificates(bandit) if certificate else None
        for name, bandit in named.items()
    }

    def play(run: Run) -> Any:
        how = (record, observers, progress, bookmarks)
        play_all = partial(_play_batches, run, named, *how)
        if keep == "moments":
            return _summarize(run, named, play_all)
        constant_totals = _constant_totals(run, progress) if policy_regret else None
        return _gather(run, named, play_all, constant_totals)

    if until is None:
        results: Any = play(run)
    else:
        is_sample = num_sequences is None and has_chance(sequence)
        has_own_losses = is_sample or not sequence.is_oblivious
        results = _play_until(until, run, play, has_own_losses)
    return results["strategy"] if isinstance(strategies, Bandit) else results


def _play_until(
    until: Until, run: Run, play: Callable[[Run], Results], has_own_losses: bool
) -> Results:
    """Play more and more games, until the rule says that there are enough.

    More sequences of a family, if there are several or every game has its own; otherwise more
    seeds. The rule is not asked before there are 50: so few have an uncertain spread, and would
    seem decided by chance.
    """
    is_sample = run.num_sequences > 1 and run.losses.table is None
    grows = "sequence" if has_own_losses or is_sample else "seed"
    count, first = f"num_{grows}s", f"first_{grows}"
    first_look = getattr(run, count)
    while first_look < FEW_UNITS:
        first_look *= 2

    def at_looks(results: Results) -> Results:
        named = {name: replace(result, first_look=first_look) for name, result in results.items()}
        return Results(named)

    results = at_looks(play(run))
    played = run
    while (number := getattr(played, count)) < first_look or not until.is_enough(results):
        if 2 * played.num_games > until.most_games:
            warnings.warn(
                f"after {played.num_games:,} games the wait for {until.aim} is given up: twice as "
                f"many would be more than most_games={until.most_games:,}",
                RuntimeWarning,
                stacklevel=3,
            )
            break
        more = replace(run, **{count: number, first: getattr(run, first) + number})
        try:
            results = concat([results, at_looks(play(more))])
        except KeyboardInterrupt:
            warnings.warn(
                f"stopped while waiting for {until.aim}; the results are those of the first "
                f"{played.num_games:,} games",
                RuntimeWarning,
                stacklevel=3,
            )
            break
        played = replace(run, **{count: 2 * number})
    return results


def _play_batches(
    run: Run,
    bandits: Mapping[str, Bandit],
    record: Callable[[BanditState], Any] | None,
    observers: Mapping[str, Observer | None],
    progress: bool | Callable[[int], None] | None,
    bookmarks: Bookmarks | None,
    measures: Callable[[int], Literal["nothing", "begun", "all"]],
    take: Callable[..., Any] = lambda number, batch, played: played,
) -> tuple[list[Any], list[float]]:
    """Play what has been checked, batch by batch, strategy after strategy.

    Args:
      measures: which losses strategy number ... measures, see `play_batch`.
      take: (number of the strategy, number of the batch, what `play_batch` returned) -> what is
        kept of it; called as soon as it is played, from several threads.

    Returns:
      What was kept, in order, and the seconds that each strategy took, without compiling, added
      up over the threads.
    """
    recorder = None if record is None else with_static_functions(known_function(record))
    bar = Progress(run.num_games * run.num_rounds * len(bandits), progress)
    seconds, lock = [0.0] * len(bandits), threading.Lock()

    def advance(number: int, rounds: int, taken: float) -> None:
        bar.advance(rounds)
        with lock:
            seconds[number] += taken

    def jobs() -> Iterator[Callable[[threading.Event], Any]]:
        for number, (name, bandit) in enumerate(bandits.items()):
            play = partial(
                play_batch,
                run,
                with_static_functions(bandit),
                recorder,
                observers[name],
                measures=measures(number),
                advance=partial(advance, number),
                bookmarks=bookmarks,
                bookmark_prefix=f"games_{number}",
            )
            for batch in range(run.num_batches):
                yield _under_own_settings()(partial(one_job, play, number, batch))

    def one_job(play: Callable[..., Any], number: int, batch: int, stop: threading.Event) -> Any:
        try:
            played = play(batch, stop=stop)
        except jax.errors.UnexpectedTracerError:
            raise ValueError(
                f"strategy {list(bandits)[number]!r} or the losses keep a number of one call for "
                "another, in a variable of theirs; they are pure functions: keep it in the state"
            ) from None
        return None if played is None else take(number, batch, played)

    try:
        with bar:
            kept = run_jobs(jobs(), run.devices, bar.draw)
    except KeyboardInterrupt:
        raise KeyboardInterrupt(
            f"stopped after {bar.done:,} of {bar.total:,} rounds; nothing was kept. The same call "
            f"with seed={run.seed} plays the same games again; fewer rounds or seeds, or some "
            "seeds at a time with first_seed=, take less time"
        ) from None
    return kept, seconds


def _constant_totals(run: Run, progress: Any) -> np.ndarray | Literal["best"]:
    """Return the least total loss of an arm that is played in every round, [K, C].

    Every arm is played against the same adversary, with the same key. "best" on oblivious losses,
    where that is the total of the best arm.
    """
    if run.losses.is_oblivious:
        return "best"
    arms = {f"arm {arm}": fixed_arm(jnp.int32(arm)) for arm in range(run.losses.num_arms)}
    observers: dict[str, Observer | None] = dict.fromkeys(arms)
    alone = replace(run, arm_counts=False, switches=None, delay=None)
    how = (alone, arms, None, observers, progress, None)
    totals, _ = _play_batches(
        *how, lambda number: "nothing", lambda number, batch, played: played[0].realised
    )
    of_arms = np.concatenate(totals).reshape(len(arms), run.num_sequences, -1)
    return of_arms.min(axis=0)


def _gather(
    run: Run,
    bandits: Mapping[str, Bandit],
    play: Callable[..., Any],
    constant_totals: np.ndarray | Literal["best"] | None,
) -> Results:
    """Return the results of all games.

    Args:
      run: what was played.
      bandits: by name.
      play: see `_play_batches`.
      constant_totals: see `_constant_totals`; None if nobody asks for policy regret.
    """
    # The first strategy measures the losses on which all of them play; if the losses answer it,
    # each measures its own.
    is_oblivious = run.losses.is_oblivious
    played, seconds = play(lambda number: "nothing" if number and is_oblivious else "begun")
    results = {}
    losses_identity = identity_of_losses(run.losses)
    shape = (run.num_sequences, run.num_seeds, -1)
    for number, (name, bandit) in enumerate(bandits.items()):
        mine = played[number * run.num_batches : (number + 1) * run.num_batches]
        own = [batch for batch, _ in mine]
        if number == 0 or not is_oblivious:
            norms, best_switching = _norms(run, [row for _, row in mine])
        best = norms.best[:, None, :]
        has_laws = True
        if own[0].first_without_law is not None:
            first = np.concatenate([batch.first_without_law for batch in own]).reshape(shape[:2])
            is_finite = np.isfinite(norms.l_1).all(axis=1)[:, None]
            first = first[np.broadcast_to(is_finite, first.shape)]
            has_laws = _warn_if_no_law(name, bandit, first, run)
        if own[0].first_fault is not None:
            _warn_of_delays(name, np.concatenate([batch.first_fault for batch in own]), run)
        realised = [batch.realised for batch in own]
        kept = _kept(own, shape[:2])
        if best_switching is not None:
            kept["tracking_regret"] = _regret(best_switching[:, None, :], realised, shape)
        if constant_totals is not None:
            least = best if isinstance(constant_totals, str) else constant_totals[:, None, :]
            kept["policy_regret"] = _regret(least, realised, shape)
        results[name] = Result(
            name=name,
            rounds=run.checkpoints,
            regret=_regret(best, realised, shape),
            expected_regret=_regret(best, [batch.expected for batch in own], shape),
            norms=norms,
            **_description(run, seconds[number]),
            records=jax.tree.map(
                lambda *leaves: np.concatenate(leaves).reshape(*shape[:2], *leaves[0].shape[1:]),
                *[batch.records for batch in own],
            ),
            bandit=bandit,
            losses_identity=losses_identity,
            certificate=None if own[0].observed is None else _certificate(own, run),
            kept=kept,
            switches=run.switches,
            best_switching=best_switching,
        )
        if has_laws:
            is_finite = np.isfinite(norms.l_1).all(axis=1)
            warn_if_no_regret(name, results[name].expected_regret[is_finite])
    return Results(results)


def _norms(run: Run, rows: list[Row]) -> tuple[Norms, np.ndarray | None]:
    """Return the norms of all sequences from the rows of the batches; warn if one is no number.

    And the total loss of the best sequence of arms with few switches, if it is asked for, [K, C].
    """
    row = jax.tree.map(lambda *columns: np.concatenate(columns), *rows)
    norms = norms_from_row(row, run.losses.num_arms, run.checkpoints, run.unit)
    warn_if_not_finite(norms, run.losses, run.first_sequence + np.arange(run.num_sequences))
    return norms, best_switching_from_row(row, run.unit)


def _summarize(run: Run, bandits: Mapping[str, Bandit], play: Callable[..., Any]) -> Summaries:
    """Return moments and histograms of all games."""
    summarizers = [
        Summarizer(
            num_sequences=run.num_sequences,
            num_seeds=run.num_seeds,
            num_checkpoints=len(run.checkpoints),
            block=games_per_call(run.losses.num_arms, run.devices[0]),
            unit=run.unit,
        )
        for _ in bandits
    ]

    not_finite: dict[int, Norms] = {}  # of the losses of all games, by batch
    # By strategy and batch [C]: against adversaries each strategy meets its own.
    largest_loss: dict[tuple[int, int], np.ndarray] = {}

    def add(number: int, batch: int, played: tuple[BatchResults, Row]) -> Any:
        """Add a batch; return the first rounds without a law, and with a wrong delay, if any."""
        results, row = played
        norms = norms_from_row(row, run.losses.num_arms, run.checkpoints, run.unit)
        if not np.isfinite(norms.l_1).all():
            not_finite[batch] = norms
        largest_loss[number, batch] = norms.l_inf.max(axis=0)
        totals = np.stack([results.realised, results.expected], axis=1)
        summarizers[number].add(batch * run.batch_games, totals - norms.best[:, None])
        firsts = (results.first_without_law, results.first_fault)
        return [None if x is None or not x.any() else x[x != 0] for x in firsts]

    kept, seconds = play(lambda number: "all", add)
    if not_finite:
        batch = min(not_finite)
        games = batch * run.batch_games + np.arange(len(not_finite[batch].l_1))
        numbers = run.first_sequence + games // run.num_seeds
        warn_if_not_finite(not_finite[batch], run.losses, numbers)
    summaries = {}
    for number, (name, bandit) in enumerate(bandits.items()):
        summaries[name] = Summary(
            name=name,
            rounds=run.checkpoints,
            num_sequences=run.num_sequences,
            num_seeds=run.num_seeds,
            num_arms=run.losses.num_arms,
            largest_loss=np.max([largest_loss[number, k] for k in range(run.num_batches)], axis=0),
            **_description(run, seconds[number]),
            **summarizers[number].collected(),
        )
        own = kept[number * run.num_batches : (number + 1) * run.num_batches]
        first = [rounds for rounds, _ in own if rounds is not None]
        faults = [rounds for _, rounds in own if rounds is not None]
        if faults:
            _warn_of_delays(name, np.concatenate(faults), run)
        has_laws = not first or _warn_if_no_law(name, bandit, np.concatenate(first), run)
        if has_laws and not not_finite:
            warn_if_no_regret(name, summaries[name].mean())
    return Summaries(summaries)


def _description(run: Run, seconds: float) -> dict[str, Any]:
    """Return what results say of their run."""
    return {
        "seed": run.seed,
        "first_sequence": run.first_sequence,
        "first_seed": run.first_seed,
        "losses": run.losses.name,
        "dtype": run.dtype.name,
        "seconds": seconds,
        "unit": run.unit,
        "sees": run.losses.sees,
        "delay": None if run.delay is None else run.delay.name,
    }


def _check_until(
    until: Any, names: Collection[str], run: Run, keep: str, bookmarks: Bookmarks | None
) -> None:
    """Refuse what is no rule to stop, and what a run with one cannot do."""
    if until is None:
        return
    if not isinstance(until, Until):
        raise ValueError(
            f"until is {until!r}; give sf.until.precise(...), sf.until.decided(...) or an "
            "sf.until.Until of your own"
        )
    for name in until.names:
        if name not in names:
            raise ValueError(
                f"until= waits for {until.aim}, but there is no strategy {name!r}; there are "
                f"{', '.join(map(repr, names))}"
            )
    if keep == "moments" or bookmarks is not None:
        raise ValueError("until= needs the games themselves: keep='games', and no bookmarks")
    if run.losses.table is not None and run.num_sequences > 1 and until.over != "sequence":
        raise ValueError(
            f"losses are {run.num_sequences} given sequences, and more seeds tell no more of the "
            "family that they are from; give the rule over='sequence', or play num_sequences=1"
        )


@contextmanager
def _under_own_settings() -> Iterator[None]:
    """Compile, and draw random numbers, as JAX does by default, whatever its settings are."""
    with pinned_generator(), jax.disable_jit(False):
        yield


def _warn_if_no_law(name: str, bandit: Bandit, first: np.ndarray, run: Run) -> bool:
    """Warn if some p_t or p'_t of a strategy was no law; return whether all were.

    Args:
      name: of the strategy.
      bandit: the strategy.
      first: the first round of games without a law, as in `rounds.watch_law`.
      run: what was played; rounds past its last one do not count.
    """
    bad = first[(first != 0) & (np.abs(first) <= run.num_rounds)]
    if bad.size:
        earliest = bad[np.argmin(np.abs(bad))]
        subject = "probabilities" if earliest > 0 else "plays p_t"
        culprit = "sampling scheme" if is_composed(bandit) else "function probabilities"
        if earliest < 0:
            _, *parts = parts_of(bandit)
            words = zip(parts, ("estimation scheme", "full-information strategy"), strict=True)
            culprit = " or ".join(text for part, text in words if not has_own_functions(part))
        warn_user(
            f"strategy {name!r} has {subject} that are no law: negative, not finite, or not of "
            f"sum 1. They were first seen in round {abs(earliest)} of {run.num_rounds}, and there "
            f"are some in {bad.size} of {run.num_games} games, whose results mean nothing; mend "
            f"what its {culprit} returns"
        )
    return not bad.size


def _warn_of_delays(name: str, first: np.ndarray, run: Run) -> None:
    """Warn if some delays were not from 0 to the largest.

    Args:
      name: of the strategy.
      first: the first round of games in which it was so, or 0.
      run: what was played; rounds past its last one do not count.
    """
    bad = first[(first != 0) & (first <= run.num_rounds)]
    if bad.size and run.delay is not None:
        warn_user(
            f"strategy {name!r} was played with delays below 0 or above most={run.delay.most:,}, "
            f"which counted as these. They were first met in round {bad.min()} of "
            f"{run.num_rounds}, and there are some in {bad.size} of {run.num_games} games; mend "
            "the function of the delays, or give sf.delays.from_function a larger most"
        )


def _regret(best: np.ndarray, totals: list[np.ndarray], shape: tuple[int, ...]) -> np.ndarray:
    """Return the total losses less those of the best arms, [K, S, C]."""
    regret = np.concatenate(totals).reshape(shape)
    regret -= best
    return regret


def _kept(batches: list[BatchResults], shape: tuple[int, int]) -> dict[str, np.ndarray]:
    """Return what was kept of all games because it was asked for, by name; arrays [K, S, ...]."""
    kept = {}
    for name in ("arm_counts", "pseudo_regret"):
        parts = [getattr(batch, name) for batch in batches]
        if parts[0] is not None:
            kept[name] = np.concatenate(parts).reshape(*shape, *parts[0].shape[1:])
    return kept


def _certificate(batches: list[BatchResults], run: Run) -> Certificate:
    """Return the certificate of all games of one strategy."""
    rows = np.concatenate([batch.observed for batch in batches])
    rows = rows.reshape(run.num_sequences, run.num_seeds, *rows.shape[1:])
    return certificate_from_rows(rows, run.losses.num_arms, run.unit)
