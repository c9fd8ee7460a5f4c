"""The cells of a study file.

A cell is one strategy on one loss family with one n, T and scale, over all seeds and sequences.
Its identity is a hash of everything that determines its numbers, so that a study file which was
changed finds the cells which were not.
"""

import hashlib
import inspect
import itertools
import json
import platform
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from functools import cache, cached_property
from importlib.metadata import version
from pathlib import Path
from typing import Any

import jax
import jaxlib
import numpy as np

from sfmab_jax.base import Bandit
from sfmab_jax.engine.loss_stream import has_chance
from sfmab_jax.engine.validate import check_rounds, unit_of_losses
from sfmab_jax.losses import LossSequence
from sfmab_jax.losses.files import from_file
from sfmab_jax.strategies import STRATEGIES
from sfmab_jax.study.config import Choice, StudyFile
from sfmab_jax.study.factories import (
    FAMILIES,
    call_factory,
    digest_of,
    find_factory,
)
from sfmab_jax.study.parameters import fail, fill_defaults, parameters_of, suggest

__all__ = ["Cell", "plan_cells"]


@dataclass(frozen=True)
class Cell:
    """One strategy on one loss family with one n, T and scale."""

    strategy: str  # label in the study file
    losses: str  # likewise
    num_arms: int
    num_rounds: int
    scale: float
    strategy_name: str
    strategy_parameters: dict[str, Any]
    family: str
    loss_parameters: dict[str, Any]  # all, with num_arms, num_rounds and scale
    num_sequences: int | None  # None: each seed has its own
    seed: int
    checkpoints: int | tuple[int, ...]
    dtype: str
    certificates: bool
    digests: dict[str, str] = field(default_factory=dict)  # of the user's files
    folder: str = ""  # of the study file, where they are
    pseudo_regret: bool = False

    @property
    def setting(self) -> tuple[str, int, int, float]:
        """(losses, n, T, scale), on which strategies are compared."""
        return self.losses, self.num_arms, self.num_rounds, self.scale

    @property
    def label(self) -> str:
        losses, n, rounds, scale = self.setting
        return f"{self.strategy} on {losses}, n = {n}, T = {rounds}, scale = {scale:g}"

    def determinants(self) -> dict[str, Any]:
        """Return all that the numbers depend on, so neither labels nor the number of seeds."""
        fields = asdict(self)
        for label in ("strategy", "losses", "scale", "digests", "folder"):
            del fields[label]
        if not self.pseudo_regret:  # as in earlier versions, whose cells stay what they were
            del fields["pseudo_regret"]
        fields |= {f"file {name}": digest for name, digest in self.digests.items()}
        return fields | {
            "sfmab_jax": _own_version(),
            "jax": jax.__version__,
            "jaxlib": jaxlib.version.__version__,
            "backend": jax.default_backend(),
            "machine": platform.machine(),
        }

    def as_table(self) -> dict[str, Any]:
        """Return the cell for a manifest, which goes without the user's own paths."""
        fields = asdict(self)
        del fields["folder"]
        unused = {key for key in ("digests", "pseudo_regret") if not fields[key]}
        return {key: value for key, value in fields.items() if key not in unused}

    @cached_property
    def identity(self) -> str:
        """Hash of the determinants: 16 hexadecimal digits."""
        text = json.dumps(self.determinants(), sort_keys=True, default=repr)
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    def bandit(self) -> Bandit:
        factory = find_factory(self.strategy_name, STRATEGIES, Path(self.folder))
        return factory.make(**self.strategy_parameters)

    def sequence(self) -> LossSequence:
        factory = find_factory(self.family, FAMILIES, Path(self.folder))
        return call_factory(factory.make, self.loss_parameters, Path(self.folder))

    def check_files(self) -> None:
        """Refuse to go on with files of the user that are not those of the plan."""
        names = (self.strategy_name, self.family, self.loss_parameters)
        for path, digest in _digests(*names, Path(self.folder)).items():
            if self.digests.get(path) != digest:
                raise ValueError(
                    f"{path} has changed since the study began; run the same command again, which "
                    "plays all that depends on it anew"
                )


@cache
def _own_version() -> str:
    return version("sfmab-jax")


def plan_cells(study: StudyFile) -> tuple[Cell, ...]:
    """Return the product of all grids; each strategy and loss family is built once as a check."""
    begun: set[tuple] = set()  # strategies that are known to begin
    variants = _expand_grids(study.losses, dimension="scale")
    cells = []
    for (losses, family, values), arms, num_rounds in itertools.product(
        variants, study.arms, study.rounds
    ):
        make = family.factory.make
        if "num_arms" not in parameters_of(make) and arms != study.arms[0]:
            continue  # the losses themselves say how many arms there are
        parameters = fill_defaults(make, values | {"num_arms": arms})
        if "num_rounds" in parameters and "num_rounds" not in values:
            parameters["num_rounds"] = num_rounds
        place = f"losses.{losses}"
        sequence = _build(study, place, make, parameters, LossSequence)
        _check_sequence(study, place, sequence, num_rounds)
        num_arms, num_sequences = sequence.num_arms, _num_sequences(study, place, sequence)
        scale = _scale_of(study, place, parameters)
        numbers = {"scale": scale, **parameters}
        numbers |= {"num_rounds": num_rounds, "magnitude": sequence.magnitude, "num_arms": num_arms}
        for strategy, choice, own in _expand_grids(study.strategies):
            name, make_bandit = choice.name, choice.factory.make
            own = _resolve_parameters(study, strategy, make_bandit, own, numbers)
            bandit = _build(study, f"strategies.{strategy}", make_bandit, own, Bandit)
            kind = (name, num_arms, *map(_kind_of, own.values()))
            if kind not in begun:
                _check_bandit(study, strategy, bandit, num_arms)
                begun.add(kind)
            cells.append(
                Cell(
                    strategy=strategy,
                    losses=losses,
                    num_arms=num_arms,
                    num_rounds=num_rounds,
                    scale=scale,
                    strategy_name=name,
                    strategy_parameters=own,
                    family=family.name,
                    loss_parameters=parameters,
                    num_sequences=num_sequences,
                    seed=study.seed,
                    checkpoints=_checkpoints_within(study.checkpoints, num_rounds),
                    dtype=study.dtype,
                    certificates=study.certificates
                    and name == "scale_free"
                    and sequence.is_oblivious,
                    digests=_digests(name, family.name, parameters, study.folder),
                    folder=str(study.folder),
                    pseudo_regret=study.pseudo_regret,
                )
            )
    _check_distinct(study, cells)
    return tuple(cells)


def _expand_grids(
    choices: tuple[Choice, ...], dimension: str | None = None
) -> Iterator[tuple[str, Choice, dict[str, Any]]]:
    """Yield (label, choice, parameters) of all members of the grids.

    The label tells what varies, except a parameter that is a ``dimension`` of the study.
    """
    for choice in choices:
        varying = [k for k, values in choice.grid.items() if len(values) > 1 and k != dimension]
        for parameters in choice.members():
            words = [f"{key}={_format_value(parameters[key])}" for key in varying]
            yield " ".join([choice.label, *words]), choice, parameters


def _format_value(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value).replace(" ", "")


def _resolve_parameters(
    study: StudyFile,
    label: str,
    make: Callable,
    values: dict[str, Any],
    numbers: dict[str, Any],
) -> dict[str, Any]:
    """Return all parameters of a strategy.

    Args:
      study, label: the study file and the label of the strategy, for messages.
      make: the factory of the strategy.
      values: the parameters in the study file; "@scale" stands for the scale of the losses.
      numbers: what such references may name: the parameters of the cell's losses and more.
    """
    parameters = fill_defaults(make, values)
    if "num_rounds" in parameters and "num_rounds" not in values:
        parameters["num_rounds"] = numbers["num_rounds"]
    for key, value in values.items():
        if isinstance(value, str) and value.startswith("@"):
            known = [k for k, v in numbers.items() if isinstance(v, int | float)]
            if value[1:] not in known:
                hint = suggest(value, [f"@{number}" for number in known])
                fail(study.source, f"strategies.{label}.{key}", value, f"no such number; {hint}")
            parameters[key] = numbers[value[1:]]
    return parameters


def _build(
    study: StudyFile, place: str, factory: Callable, parameters: dict[str, Any], kind: type
) -> Any:
    """Call the factory; restate its error, if any, in terms of the study file.

    Args:
      study, place: the study file and the place in it, for messages.
      factory: of strategies or losses.
      parameters: all of them.
      kind: `Bandit` or `LossSequence`, which it must return.
    """
    missing = [k for k, v in parameters.items() if v is inspect.Parameter.empty]
    if missing:
        raise ValueError(f"{study.source}: {place}: {missing[0]} has no default; give it")
    try:
        made = call_factory(factory, parameters, study.folder)
    except Exception as error:  # whatever a factory makes of numbers it did not expect
        shown = {k: v for k, v in parameters.items() if parameters_of(factory)[k].default != v}
        raise ValueError(f"{study.source}: {place} = {shown}: {error}") from None
    if not isinstance(made, kind):
        raise ValueError(
            f"{study.source}: {place}: its function returned {made!r:.60}; it must return a "
            f"{kind.__name__}"
        )
    return made


def _num_sequences(study: StudyFile, place: str, sequence: LossSequence) -> int | None:
    """Return on how many sequences a cell is played; None where each seed has its own."""
    available = sequence.num_sequences
    if not sequence.is_oblivious:
        if study.sequences is not None:
            fail(
                study.source,
                "sequences",
                study.sequences,
                f"{place} answer the player, so that every seed has its own; leave it out",
            )
        return None
    if study.sequences is None:
        try:
            return None if has_chance(sequence) else available or 1
        except Exception as error:  # whatever a user's family raises
            raise ValueError(f"{study.source}: {place}: {error}") from None
    if available is not None and study.sequences > available:
        fail(study.source, "sequences", study.sequences, f"{place} has only {available}")
    return study.sequences


def _scale_of(study: StudyFile, place: str, parameters: dict[str, Any]) -> float:
    scale = parameters.get("scale", 1.0)
    if not isinstance(scale, int | float) or isinstance(scale, bool):
        fail(study.source, f"{place}.scale", scale, "give a number")
    return float(scale)


def _digests(
    strategy: str, family: str, loss_parameters: dict[str, Any], folder: Path
) -> dict[str, str]:
    """Return the digests of the user's files that a cell depends on, by module or path."""
    digests = {}
    for name, known in ((strategy, STRATEGIES), (family, FAMILIES)):
        digest = find_factory(name, known, folder).digest
        if digest is not None:
            digests[name.partition(":")[0]] = digest
    if FAMILIES.get(family) is from_file:
        digests[str(loss_parameters["path"])] = digest_of(folder / loss_parameters["path"])
    return digests


def _check_sequence(study: StudyFile, place: str, sequence: LossSequence, rounds: int) -> None:
    try:
        unit_of_losses(sequence.magnitude, np.dtype(study.dtype))
        check_rounds(rounds, sequence)
    except ValueError as error:
        raise ValueError(f"{study.source}: {place}: {error}") from None
    if study.pseudo_regret and sequence.mean is None:
        raise ValueError(
            f"{study.source}: {place}: its expected losses are not known, in which pseudo_regret = "
            "true counts; leave that out, or these losses"
        )


def _check_bandit(study: StudyFile, label: str, bandit: Bandit, num_arms: int) -> None:
    """Refuse a strategy that cannot begin with so many arms; nothing is computed."""
    try:
        one = jax.ShapeDtypeStruct((), np.float32)
        jax.eval_shape(lambda unit: bandit.init(num_arms, np.dtype(np.float32), unit), one)
    except Exception as error:
        fail(study.source, f"strategies.{label}", num_arms, f"cannot begin: {error}")


def _kind_of(value: Any) -> Any:
    """Return what of a parameter can decide whether a strategy begins.

    The engine traces real numbers, so only their sizes, down to one digit, are told apart: a zero
    or an overflow may still matter where Python computes.
    """
    return (float, f"{value:.0e}") if isinstance(value, float) else (type(value), value)


def _check_distinct(study: StudyFile, cells: list[Cell]) -> None:
    seen = set()
    for cell in cells:
        if (cell.strategy, cell.setting) in seen:
            raise ValueError(f"{study.source}: two cells are both called {cell.label}")
        seen.add((cell.strategy, cell.setting))


def _checkpoints_within(
    checkpoints: int | tuple[int, ...], num_rounds: int
) -> int | tuple[int, ...]:
    """Return the checkpoints up to the last round, which is always one."""
    if isinstance(checkpoints, int):
        return checkpoints
    return tuple(sorted({num_rounds, *(t for t in checkpoints if t < num_rounds)}))
