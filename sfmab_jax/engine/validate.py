"""Validate what `simulate` is given, before anything is compiled."""

from collections.abc import Sequence
from textwrap import shorten
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from sfmab_jax.base import (
    Bandit,
    has_own_functions,
    with_static_functions,
)
from sfmab_jax.checks import (
    PartError,
    check_arguments,
    check_integer,
    described,
    naming_errors,
    refusing,
)
from sfmab_jax.compose import is_composed
from sfmab_jax.delays import NEVER, Delay, as_delay
from sfmab_jax.engine.delayed import bytes_waiting
from sfmab_jax.engine.layout import Run
from sfmab_jax.engine.loss_stream import has_chance
from sfmab_jax.engine.switching import MOST_SWITCHES
from sfmab_jax.engine.validate_parts import is_array
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
    "check_rounds",
    "check_switches",
    "check_tally",
    "unit_of_losses",
]


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
        if not is_array(drawn) or np.shape(drawn) or jnp.result_type(drawn).kind not in "iu":
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
