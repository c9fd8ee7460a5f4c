"""Validate what `simulate` is given, before anything is compiled."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from sfmab_jax.base import Bandit, BanditState, with_static_functions
from sfmab_jax.checks import check_integer
from sfmab_jax.engine.layout import Run
from sfmab_jax.engine.loss_stream import has_chance
from sfmab_jax.losses import LossSequence
from sfmab_jax.losses.sequence import MOST_ROUNDS
from sfmab_jax.numerics.threefry import pinned_generator, root_key

__all__ = [
    "Games",
    "check_checkpoints",
    "check_choice",
    "check_devices",
    "check_dtype",
    "check_engine",
    "check_games",
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


# Strategies that were found good, by all but their numbers: tracing one takes a tenth of a second.
_GOOD_SHAPES: set[Any] = set()


def check_shapes(name: str, bandit: Bandit, num_arms: int, dtype: np.dtype) -> None:
    """Refuse a strategy whose p'_t is not [n], or whose state does not keep its types."""
    # Bare functions would be leaves, of which only the type is looked at.
    leaves, structure = jax.tree.flatten(with_static_functions(bandit))
    kind = (
        structure,
        tuple((np.shape(x), getattr(x, "dtype", type(x))) for x in leaves),
        num_arms,
        dtype,
    )
    if kind in _GOOD_SHAPES:
        return
    _trace_shapes(name, bandit, num_arms, dtype)
    if len(_GOOD_SHAPES) >= 256:
        _GOOD_SHAPES.clear()
    _GOOD_SHAPES.add(kind)


def _trace_shapes(name: str, bandit: Bandit, num_arms: int, dtype: np.dtype) -> None:
    arm, losses = jax.ShapeDtypeStruct((), np.int32), jax.ShapeDtypeStruct((num_arms,), dtype)
    state = jax.eval_shape(lambda: bandit.init(num_arms, dtype))
    for path, leaf in jax.tree.leaves_with_path(state):
        if jax.dtypes.issubdtype(leaf.dtype, jax.dtypes.prng_key):
            raise ValueError(
                f"strategy {name!r} has a random key in state{jax.tree_util.keystr(path)}; parts "
                "are pure functions of what was played and get no random numbers of their own"
            )
    shape = jax.eval_shape(bandit.probabilities, state).shape
    if shape != (num_arms,):
        raise ValueError(
            f"strategy {name!r} has probabilities of shape {list(shape)}; give [{num_arms}]"
        )
    later = jax.eval_shape(
        lambda s, arm, losses: bandit.update(s, arm, bandit.feedback(losses, arm)),
        state,
        arm,
        losses,
    )
    expected: Any = jax.tree.structure(state)
    returned: Any = jax.tree.structure(later)
    if expected != returned:
        raise ValueError(
            f"strategy {name!r}: update returns {returned}, not the structure of init, {expected}; "
            "return the same"
        )
    for (path, before), after in zip(jax.tree.leaves_with_path(state), jax.tree.leaves(later)):
        if (before.shape, before.dtype) != (after.shape, after.dtype) and not before.weak_type:
            raise ValueError(
                f"strategy {name!r}: update makes state{jax.tree_util.keystr(path)} "
                f"{after.dtype}{list(after.shape)} of {before.dtype}{list(before.shape)}; "
                "keep its type and shape"
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
        for leaf in jax.tree.leaves(record(bandit.init(num_arms, dtype))):
            if not isinstance(leaf, jax.Array | np.ndarray | np.generic | int | float):
                raise ValueError(f"record returned {leaf!r}; return arrays, or a pytree of them")

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


def check_switches(progress: Any, **switches: Any) -> None:
    """Validate the boolean options."""
    if not (progress is None or isinstance(progress, bool) or callable(progress)):
        raise ValueError(f"progress is {progress!r}; give True, False, None or a function")
    for name, switch in switches.items():
        if not isinstance(switch, bool):
            raise ValueError(f"{name} is {switch!r}; give True or False")


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

    Where nothing is said of the sequences, and those of the family differ, every game has its own:
    the numbers of the seeds are then those of sequences with one seed each.
    """
    num_seeds = check_integer("num_seeds", num_seeds, 1, 2**31 - 1)
    first_seed = check_integer("first_seed", first_seed, 0, 2**31 - 1)
    if num_sequences is None and has_chance(losses):
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
