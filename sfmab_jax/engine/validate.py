"""Validate what `simulate` is given, before anything is compiled."""

from collections.abc import Callable, Sequence
from textwrap import shorten
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from sfmab_jax.base import (
    Bandit,
    BanditState,
    Estimation,
    Round,
    has_own_functions,
    with_static_functions,
)
from sfmab_jax.checks import (
    PartError,
    check_arguments,
    check_integer,
    check_kept,
    described,
    naming_errors,
    refusing,
    strongly_typed,
)
from sfmab_jax.compose import compose, is_composed, parts_of
from sfmab_jax.delays import NEVER, Delay, as_delay
from sfmab_jax.engine.delayed import bytes_waiting
from sfmab_jax.engine.layout import Run
from sfmab_jax.engine.loss_stream import has_chance
from sfmab_jax.engine.switching import MOST_SWITCHES
from sfmab_jax.losses import LossSequence
from sfmab_jax.losses.sequence import MOST_ROUNDS
from sfmab_jax.numerics.threefry import pinned_generator, root_key

__all__ = [
    "Games",
    "check_adversary",
    "check_checkpoints",
    "check_choice",
    "check_comparator",
    "check_delay",
    "check_devices",
    "check_dtype",
    "check_engine",
    "check_games",
    "check_late_feedback",
    "check_parameters",
    "check_record",
    "check_rounds",
    "check_shapes",
    "check_switches",
    "check_tally",
    "unit_of_losses",
]


def check_parameters(name: str, bandit: Bandit, dtype: np.dtype) -> None:
    """Refuse parameters that are not numbers in this precision: 1e300 is infinite in float32."""
    for leaf in jax.tree.leaves(bandit):
        if callable(leaf):
            continue
        number = np.asarray(leaf)
        if number.dtype.kind not in "fiub":
            raise ValueError(f"strategy {name!r} has a parameter {leaf!r}; give real numbers")
        with np.errstate(over="ignore"):
            stored = number.astype(dtype)
        if np.isnan(stored).any() or (np.isinf(stored) & np.isfinite(number)).any():
            raise ValueError(
                f"strategy {name!r} has a parameter {leaf!r}, not a number in {dtype.name}; "
                "give another"
            )


# Strategies that were found good, by all but their real numbers: tracing one takes a tenth of a
# second.
_GOOD_SHAPES: set[Any] = set()


def check_shapes(name: str, bandit: Bandit, num_arms: int, dtype: np.dtype) -> None:
    """Refuse a strategy that cannot be played: laws that are not [n], states that change type."""
    # Bare functions would be leaves, of which only the type is looked at.
    leaves, structure = jax.tree.flatten(with_static_functions(bandit))
    kind = (
        structure,
        # An integer, such as the number of an arm, may be one that is refused.
        tuple(
            (np.shape(x), x if isinstance(x, int) else getattr(x, "dtype", type(x))) for x in leaves
        ),
        num_arms,
        dtype,
    )
    if kind in _GOOD_SHAPES:
        return
    with refusing():
        _trace_round(name, bandit, num_arms, dtype)
    if is_composed(bandit):
        _check_weigh(name, parts_of(bandit)[1], num_arms, dtype)
    if len(_GOOD_SHAPES) >= 256:
        _GOOD_SHAPES.clear()
    _GOOD_SHAPES.add(kind)


# The fields of a `BanditState`, in words.
_PARTS = {
    "sampling": "sampling scheme",
    "estimation": "estimation scheme",
    "full_information": "full-information strategy",
}
# What the functions of a part, or of a bandit without parts, are given.
_GIVEN = {
    "init": "num_arms, dtype, loss_unit",
    "probabilities": "state, play",
    "estimate": "state, play, probabilities, arm, loss",
    "weigh": "state, play, probabilities, arm, loss",
    "update": "state, round",
    "wait": "state, round, missing",
}
_GIVEN_OF_BANDITS = _GIVEN | {"probabilities": "state", "update": "state, arm, loss"}


def _trace_round(name: str, bandit: Bandit, num_arms: int, dtype: np.dtype) -> None:
    """Trace the start of a game and one round, and check what every function returns."""
    subject = f"strategy {name!r}"
    if is_composed(bandit):
        parts = (
            _checked(part, f"the {words} of {subject}", f"state.{field}", num_arms)
            for part, (field, words) in zip(parts_of(bandit), _PARTS.items(), strict=True)
        )
        checked = compose(*parts)._replace(feedback=bandit.feedback)
    else:
        checked = _checked(bandit, subject, "state", num_arms)
    unit = jax.ShapeDtypeStruct((), dtype)
    state = strongly_typed(jax.eval_shape(lambda unit: checked.init(num_arms, dtype, unit), unit))
    if is_composed(bandit):
        _check_play(subject, state.full_information, num_arms)
    jax.eval_shape(checked.probabilities, state)
    arm, losses = jax.ShapeDtypeStruct((), np.int32), jax.ShapeDtypeStruct((num_arms,), dtype)
    later = jax.eval_shape(
        lambda s, arm, losses: checked.update(s, arm, checked.feedback(losses, arm)),
        state,
        arm,
        losses,
    )
    if is_composed(bandit):
        for field, words in _PARTS.items():
            before, after = getattr(state, field), getattr(later, field)
            check_kept(f"update of the {words} of {subject}", f"state.{field}", before, after)
        if (wait := parts_of(checked)[2].wait) is not None:
            waited = jax.eval_shape(wait, later.full_information, arm, arm)
            what = f"wait of the full-information strategy of {subject}"
            check_kept(what, "state.full_information", later.full_information, waited)
    else:
        check_kept(f"update of {subject}", "state", state, later)


def _checked(part: Any, subject: str, place: str, num_arms: int) -> Any:
    """Return a part, or a bandit, with functions that check what they are given and return."""
    given = _GIVEN_OF_BANDITS if isinstance(part, Bandit) else _GIVEN
    shapes = {"probabilities": (num_arms,), "estimate": (num_arms,), "weigh": ()}

    def checked(kind: str) -> Callable[..., Any]:
        function, what = getattr(part, kind), f"{kind} of {subject}"
        hint = f"define {kind}({given[kind]})"
        if not callable(function):
            raise PartError(f"{what} is {shorten(repr(function), 80)}; {hint}")
        check_arguments(what, function, given[kind], hint)

        def call(*arguments: Any) -> Any:
            with naming_errors(what):
                returned = function(*arguments)
            if kind in shapes:
                _check_shape(what, returned, shapes[kind])
                if kind == "probabilities":
                    _check_floats(what, returned)
            else:
                _check_leaves(what, place, returned)
            return returned

        return call

    kinds = [kind for kind in given if kind in part._fields]
    for kind in ("weigh", "wait"):
        if getattr(part, kind, given) is None:  # it may be left out
            kinds.remove(kind)
    return part._replace(**{kind: checked(kind) for kind in kinds})


def _check_shape(what: str, returned: Any, shape: tuple[int, ...]) -> None:
    """Refuse what is not an array of this shape."""
    if not _is_array(returned) or np.shape(returned) != shape:
        text = f"shape {list(np.shape(returned))}" if _is_array(returned) else described(returned)
        wanted = "one number for each arm, " if shape else "a number, "
        raise PartError(f"{what} returns {shorten(text, 80)}; return {wanted}{list(shape)}")


def _check_floats(what: str, law: Any) -> None:
    """Refuse an array of integers, truth values or small floats for a law."""
    if law.dtype not in (np.float32, np.float64):
        raise PartError(
            f"{what} returns {described(law)}; return a law of play's type, as by "
            "law.astype(play.dtype)"
        )


def _is_array(value: Any) -> bool:
    """Whether a value is an array or a number; keys are, texts are not."""
    if isinstance(value, np.ndarray | np.generic):
        return value.dtype.kind in "fiubc"
    return isinstance(value, jax.Array | int | float)


def _check_leaves(what: str, place: str, state: Any) -> None:
    """Refuse a state with a leaf that is no array, or that is a random key."""
    for path, leaf in jax.tree.leaves_with_path(state):
        where = f"{place}{jax.tree_util.keystr(path)}"
        if not _is_array(leaf):
            raise PartError(
                f"{what} puts {shorten(repr(leaf), 60)} in {where}; a state holds arrays and "
                "numbers: leave the rest to the function that makes the part"
            )
        if isinstance(leaf, jax.Array) and jax.dtypes.issubdtype(leaf.dtype, jax.dtypes.prng_key):
            raise PartError(
                f"{what} has a random key in {where}; parts are pure functions of what was played "
                "and get no random numbers of their own"
            )


def _check_play(subject: str, state: Any, num_arms: int) -> None:
    """Refuse a full-information strategy whose state has no play [n]."""
    what = f"the full-information strategy of {subject}"
    if not hasattr(state, "play"):
        raise PartError(
            f"{what} has the state {described(state)}, without play; return a NamedTuple with "
            f"the field play, p_{{t+1}} [{num_arms}]"
        )
    shape = getattr(state.play, "shape", None)
    if shape != (num_arms,):
        raise PartError(
            f"{what} has play {described(state.play)}; give one number for each arm, [{num_arms}]"
        )
    if state.play.dtype.kind not in "fV":
        raise PartError(
            f"{what} has play {described(state.play)}; make it of the dtype that init is given"
        )


def _check_weigh(name: str, estimation: Estimation, num_arms: int, dtype: np.dtype) -> None:
    """Refuse a user's ``weigh`` that is not what ``estimate`` has at the arm, and 0 elsewhere."""
    if estimation.weigh is None or has_own_functions(estimation):
        return
    rounds, generator = 2, np.random.default_rng(0)
    laws = (0.5 / num_arms + 0.5 * generator.dirichlet(np.ones(num_arms), rounds)).astype(dtype)
    arms = np.array([0, num_arms - 1], np.int32)
    losses = generator.uniform(0.1, 1, rounds).astype(dtype)

    @jax.jit
    def first_rounds(estimation: Any, laws, arms, losses) -> list[Any]:
        state, estimates = estimation.init(num_arms, dtype, jnp.ones((), dtype)), []
        for law, arm, loss in zip(laws, arms, losses):
            arguments = (state, law, law, arm, loss)
            estimates.append((estimation.estimate(*arguments), estimation.weigh(*arguments)))
            state = estimation.update(state, Round(law, law, arm, loss, *estimates[-1]))
        return estimates

    made = first_rounds(estimation, list(laws), list(arms), list(losses))
    for t, (arm, (estimate, weighed)) in enumerate(zip(arms, made)):
        estimate, weighed = np.asarray(estimate), np.asarray(weighed)
        expected = np.where(np.arange(num_arms) == arm, weighed, 0)
        largest = np.maximum(np.abs(estimate).max(), np.abs(weighed))
        off = np.abs(estimate - expected) > 1e-3 * largest  # never where one is not a number
        if off.any():
            i = int(np.argmax(off))
            whose = "the arm that was played" if i == arm else f"arm {i}, which was not played"
            raise ValueError(
                f"weigh of the estimation scheme of strategy {name!r} does not agree with "
                f"estimate: in round {t + 1}, with arm {arm} played, estimate has "
                f"{estimate[i]:.4g} for {whose}, and weigh says {expected[i]:.4g}; mend one of "
                "them, or leave out weigh, which is for estimates that are 0 on all other arms"
            )


def check_record(
    record: Callable[[BanditState], Any] | None, bandit: Bandit, num_arms: int, dtype: np.dtype
) -> None:
    """Refuse a record that is no function, or that returns what cannot be kept in arrays."""
    if record is None:
        return
    if not callable(record):
        raise ValueError(f"record is {record!r}; give a function of the bandit's state, or None")

    def check_leaves() -> None:
        with naming_errors("record"):
            kept = record(bandit.init(num_arms, dtype))
        for leaf in jax.tree.leaves(kept):
            if not isinstance(leaf, jax.Array | np.ndarray | np.generic | int | float):
                raise ValueError(f"record returned {leaf!r}; return arrays, or a pytree of them")

    with refusing():
        jax.eval_shape(check_leaves)


def check_choice(name: str, value: Any, choices: Sequence[str]) -> None:
    """Refuse a value that is none of the choices."""
    if value not in choices:
        raise ValueError(f"{name} is {value!r}; choose {' or '.join(map(repr, choices))}")


def check_engine(
    engine: str, name: str, bandit: Bandit, record, num_arms: int, dtype: np.dtype, device: Any
) -> None:
    """Refuse a strategy that the engine cannot play on the device."""
    if engine == "fused":
        from sfmab_jax.engine.pallas.kernel import check_fusible  # Pallas is slow to import

        check_fusible(name, bandit, record, num_arms, dtype, device)


# A function of delays is tried in so many rounds of so many games.
_TRIED_ROUNDS, _TRIED_GAMES = 64, 4


def check_delay(delay: Any, num_rounds: int) -> Delay | None:
    """Return the delay of the feedback; None if it is not delayed in any of the rounds."""
    found = as_delay(delay)
    if found is None:
        return None
    if found.table is not None and len(found.table) < num_rounds:
        raise ValueError(
            f"there are delays of {len(found.table)} rounds, and {num_rounds} are played; give one "
            "for each round"
        )
    if found.is_zero(num_rounds):
        return None
    if found.delay is not None and not has_own_functions(with_static_functions(found.delay)):
        with refusing():
            _try_delays(found, num_rounds)
    return found


@pinned_generator()
@jax.disable_jit(False)
def _try_delays(delay: Delay, num_rounds: int) -> None:
    """Refuse a function of the user's whose delays are no integers from 0 to the largest."""
    what, function = "the function of delays", delay.delay
    assert function is not None
    check_arguments(what, function, "key, round", "define it as delay(key, round)")

    def named(key, round_):
        with naming_errors(what):
            drawn = function(key, round_)
        if not _is_array(drawn) or np.shape(drawn) or jnp.result_type(drawn).kind not in "iu":
            text = described(drawn) if isinstance(drawn, jax.Array) else repr(drawn)
            raise PartError(f"{what} returns {shorten(text, 80)}; return an integer, as int32[]")
        return jnp.asarray(drawn)

    rounds = np.arange(1, min(num_rounds, _TRIED_ROUNDS) + 1, dtype=np.int32)
    keys = jax.random.split(root_key(0), (_TRIED_GAMES, len(rounds)))
    of_games = jax.vmap(jax.vmap(named), in_axes=(0, None))
    drawn = np.asarray(jax.jit(of_games)(keys, rounds)).astype(np.int64)
    wrong = (drawn < 0) | ((drawn > delay.most) & (drawn != NEVER))
    if wrong.any():
        game, place = np.argwhere(wrong)[0]
        raise ValueError(
            f"{what} returns {drawn[game, place]} in round {place + 1}; return a delay from 0 to "
            f"most={delay.most:,}, or sf.delays.NEVER, or give sf.delays.from_function a larger "
            "most"
        )


def check_late_feedback(name: str, bandit: Bandit, run: Run, certificate: bool) -> None:
    """Refuse to delay the feedback of what cannot be told of old rounds, or remember them."""
    if run.delay is None:
        return
    if run.engine == "fused":
        raise ValueError("delay= needs engine='scan'; the fused engine keeps no observations")
    if certificate:
        raise ValueError(
            "certificate=True is for feedback without delay, for which the bounds along the path "
            "are proven; play without delay="
        )
    if not is_composed(bandit):
        raise ValueError(
            f"strategy {name!r} was not made by sf.compose, so it has no parts that could be told "
            "of old rounds; compose it, or play without delay="
        )
    num_arms, places = run.losses.num_arms, run.waiting_places
    size = bytes_waiting(with_static_functions(bandit), num_arms, run.dtype, places)
    if size * run.batch_width > run.most_waiting_bytes:
        raise ValueError(
            f"delays up to {places - 1:,} rounds take {size / 2**20:.3g} MiB of each of the "
            f"{run.batch_width:,} games that are played together on a device, "
            f"{size * run.batch_width / 2**30:.3g} GiB in all, for strategy {name!r} with "
            f"{num_arms:,} arms; the limit is {run.most_waiting_bytes / 2**30:g} GiB: give shorter "
            "delays"
        )


def check_switches(progress: Any, **switches: Any) -> None:
    """Validate the boolean options."""
    if not (progress is None or isinstance(progress, bool) or callable(progress)):
        raise ValueError(f"progress is {progress!r}; give True, False, None or a function")
    for name, switch in switches.items():
        if not isinstance(switch, bool):
            raise ValueError(f"{name} is {switch!r}; give True or False")


def check_adversary(losses: LossSequence, engine: str, certificate: bool) -> None:
    """Refuse what is only for losses that do not answer the player."""
    if losses.is_oblivious:
        return
    if engine == "fused":
        raise ValueError(
            f"losses {losses.name!r} answer the player, which the fused engine does not play; use "
            "engine='scan'"
        )
    if certificate:
        raise ValueError(
            f"certificate=True is for oblivious losses, and {losses.name!r} answer the player: the "
            "mean of a certificate bounds the regret against an arm that is fixed beforehand only; "
            "leave it out"
        )


def check_comparator(switches: Any) -> int | None:
    """Return m of the sequences of arms to compare with, at most m switches; None for none."""
    if switches is None:
        return None
    number = check_integer("switches", switches, 0, MOST_ROUNDS)
    if number > MOST_SWITCHES:
        raise ValueError(
            f"switches is {number}; a round of n arms takes n (switches + 1) sums in two words for "
            f"each loss sequence: give {MOST_SWITCHES} or fewer"
        )
    return number


def check_tally(run: Run) -> None:
    """Refuse to tally what is not known, or what the engine does not see."""
    for name in ("arm_counts", "pseudo_regret"):
        if getattr(run, name) and run.engine == "fused":
            raise ValueError(f"{name}=True needs engine='scan'; the fused engine keeps none")
    if run.pseudo_regret:
        _check_mean(run.losses)


@pinned_generator()
def _check_mean(losses: LossSequence) -> None:
    """Refuse a family whose expected losses are not known, or are not [n]."""
    if losses.mean is None:
        what = "of a table are" if losses.table is not None else f"of {losses.name} are"
        raise ValueError(
            f"the expected losses {what} not known, in which pseudo_regret=True counts; give a "
            "family that states them, as sf.losses.from_function(..., mean=...), or use the regret"
        )
    init, mean = with_static_functions((losses.init, losses.mean))
    shape = jax.eval_shape(lambda: jnp.asarray(mean(init(root_key(0)), jnp.int32(1)))).shape
    if shape != (losses.num_arms,):
        raise ValueError(
            f"mean of {losses.name} returns shape {list(shape)}; return the expected losses of all "
            f"arms, [{losses.num_arms}]"
        )


def check_dtype(dtype: Any) -> np.dtype:
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


def check_devices(devices: Sequence[Any] | None) -> tuple[Any, ...]:
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
    if len(set(devices)) < len(devices):
        twice = next(device for device in devices if list(devices).count(device) > 1)
        raise ValueError(f"devices has {twice!r} more than once; give each device once")
    return tuple(devices)


def check_rounds(num_rounds: int | None, sequence: LossSequence) -> int:
    available = sequence.num_rounds
    if num_rounds is None:
        return 10_000 if available is None else available
    rounds = check_integer("num_rounds", num_rounds, 1, MOST_ROUNDS)
    if available is not None and rounds > available:
        raise ValueError(f"num_rounds is {rounds}; the losses have only {available}")
    return rounds


class Games(NamedTuple):
    """Which games are played: those of K sequences and S seeds, numbered from the first."""

    num_sequences: int
    num_seeds: int
    first_sequence: int
    first_seed: int


def check_games(
    num_sequences: int | None,
    num_seeds: int,
    first_sequence: int | None,
    first_seed: int,
    losses: LossSequence,
) -> Games:
    """Return which games are played.

    Where nothing is said of the sequences, and those of the family differ or answer the player,
    every game has its own: the numbers of the seeds are then those of sequences with one seed each.
    """
    num_seeds = check_integer("num_seeds", num_seeds, 1, 2**31 - 1)
    first_seed = check_integer("first_seed", first_seed, 0, 2**31 - 1)
    if num_sequences is not None and not losses.is_oblivious and num_seeds > 1:
        raise ValueError(
            f"num_sequences is {num_sequences} with num_seeds = {num_seeds}, but losses "
            f"{losses.name!r} answer the player, so that no two games share a sequence; give the "
            "number of games as num_seeds= and leave out num_sequences"
        )
    if num_sequences is None and (not losses.is_oblivious or has_chance(losses)):
        if first_sequence is not None and first_seed:
            raise ValueError(
                f"first_sequence is {first_sequence} and first_seed is {first_seed}, but every "
                "game has its own sequence: give one of them, or num_sequences= as well"
            )
        num_sequences, num_seeds = num_seeds, 1
        first_sequence, first_seed = first_seed if first_sequence is None else first_sequence, 0
    first = check_integer("first_sequence", first_sequence or 0, 0, 2**31 - 1)
    available = losses.num_sequences
    if num_sequences is None:
        num_sequences = 1 if available is None else max(1, available - first)
    number = check_integer("num_sequences", num_sequences, 1, 2**31 - 1)
    if available is not None and first + number > available:
        which = f"num_sequences is {number}" + (f" from number {first} on" if first else "")
        raise ValueError(f"{which}; the losses have only {available}")
    return Games(number, num_seeds, first, first_seed)


def check_checkpoints(checkpoints: int | Sequence[int], num_rounds: int) -> np.ndarray:
    """Return the rounds at which results are kept, increasing, the last round among them."""
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
    """Return the power of two that losses are counted in, an exact change of unit.

    1 for losses of sizes from 1e-6 to 1e6. Otherwise the nearest power of two, within 2^+-100, so
    that sums and products of losses and constants of the strategies stay in range.
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
