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
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from functools import cache, cached_property
from importlib.metadata import version
from typing import Any

import jax
import jaxlib
import numpy as np

from sfmab_jax.base import Bandit
from sfmab_jax.engine.validate import check_rounds, unit_of_losses
from sfmab_jax.losses import LOSSES, LossSequence
from sfmab_jax.strategies import STRATEGIES
from sfmab_jax.study.config import Choice, StudyFile
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
    num_sequences: int
    seed: int
    checkpoints: int | tuple[int, ...]
    dtype: str
    certificates: bool

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
        for label in ("strategy", "losses", "scale"):
            del fields[label]
        return fields | {
            "sfmab_jax": _own_version(),
            "jax": jax.__version__,
            "jaxlib": jaxlib.version.__version__,
            "backend": jax.default_backend(),
            "machine": platform.machine(),
        }

    @cached_property
    def identity(self) -> str:
        """Hash of the determinants: 16 hexadecimal digits."""
        text = json.dumps(self.determinants(), sort_keys=True, default=repr)
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    def bandit(self) -> Bandit:
        return STRATEGIES[self.strategy_name](**self.strategy_parameters)

    def sequence(self) -> LossSequence:
        return LOSSES[self.family](**self.loss_parameters)


@cache
def _own_version() -> str:
    return version("sfmab-jax")


def plan_cells(study: StudyFile) -> tuple[Cell, ...]:
    """Return the product of all grids; each strategy and loss family is built once as a check."""
    begun: set[tuple] = set()  # strategies that are known to begin
    variants = _expand_grids(study.losses, dimension="scale")
    cells = []
    for (losses, family, values), num_arms, num_rounds in itertools.product(
        variants, study.arms, study.rounds
    ):
        parameters = fill_defaults(LOSSES[family], values | {"num_arms": num_arms})
        if "num_rounds" in parameters and "num_rounds" not in values:
            parameters["num_rounds"] = num_rounds
        place = f"losses.{losses}"
        sequence = _build(study, place, LOSSES[family], parameters)
        _check_sequence(study, place, sequence, num_rounds)
        numbers = parameters | {"num_rounds": num_rounds, "magnitude": sequence.magnitude}
        for strategy, name, own in _expand_grids(study.strategies):
            own = _resolve_parameters(study, strategy, name, own, numbers)
            bandit = _build(study, f"strategies.{strategy}", STRATEGIES[name], own)
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
                    scale=parameters["scale"],
                    strategy_name=name,
                    strategy_parameters=own,
                    family=family,
                    loss_parameters=parameters,
                    num_sequences=study.sequences,
                    seed=study.seed,
                    checkpoints=_checkpoints_within(study.checkpoints, num_rounds),
                    dtype=study.dtype,
                    certificates=study.certificates and name == "scale_free",
                )
            )
    _check_distinct(study, cells)
    return tuple(cells)


def _expand_grids(
    choices: tuple[Choice, ...], dimension: str | None = None
) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Yield (label, name, parameters) of all members of the grids.

    The label tells what varies, except a parameter that is a ``dimension`` of the study.
    """
    for choice in choices:
        varying = [k for k, values in choice.grid.items() if len(values) > 1 and k != dimension]
        for parameters in choice.members():
            words = [f"{key}={_format_value(parameters[key])}" for key in varying]
            yield " ".join([choice.label, *words]), choice.name, parameters


def _format_value(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value).replace(" ", "")


def _resolve_parameters(
    study: StudyFile, label: str, name: str, values: dict[str, Any], numbers: dict[str, Any]
) -> dict[str, Any]:
    """Return all parameters of a strategy.

    Args:
      study, label: the study file and the label of the strategy, for messages.
      name: of the strategy.
      values: the parameters in the study file; "@scale" stands for the scale of the losses.
      numbers: what such references may name: the parameters of the cell's losses and more.
    """
    parameters = fill_defaults(STRATEGIES[name], values)
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


def _build(study: StudyFile, place: str, factory: Any, parameters: dict[str, Any]) -> Any:
    """Call the factory; restate its error, if any, in terms of the study file."""
    missing = [k for k, v in parameters.items() if v is inspect.Parameter.empty]
    if missing:
        raise ValueError(f"{study.source}: {place}: {missing[0]} has no default; give it")
    try:
        return factory(**parameters)
    except Exception as error:  # whatever a factory makes of numbers it did not expect
        shown = {k: v for k, v in parameters.items() if parameters_of(factory)[k].default != v}
        raise ValueError(f"{study.source}: {place} = {shown}: {error}") from None


def _check_sequence(study: StudyFile, place: str, sequence: LossSequence, rounds: int) -> None:
    try:
        unit_of_losses(sequence.magnitude, np.dtype(study.dtype))
        check_rounds(rounds, sequence)
    except ValueError as error:
        raise ValueError(f"{study.source}: {place}: {error}") from None


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
