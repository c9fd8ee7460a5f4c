"""From a study file to cells.

A cell is one strategy on one loss family with one n, T and scale: all seeds and sequences of it.
Its identity is a hash of everything that determines its numbers, so a changed study file finds the
cells that are the same.
"""

import hashlib
import inspect
import itertools
import json
import platform
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

import jax
import jaxlib
import numpy as np

import sfmab_jax
from sfmab_jax.base import Bandit
from sfmab_jax.losses import LOSSES, LossSequence
from sfmab_jax.strategies import STRATEGIES
from sfmab_jax.study.config import Choice, StudyFile
from sfmab_jax.study.parameters import complete, fail, nearest, signature_of

__all__ = ["Cell", "plan_cells"]


@dataclass(frozen=True)
class Cell:
    """One strategy on one loss family: what is played, under the labels of the study."""

    strategy: str  # label
    losses: str  # label
    num_arms: int
    num_rounds: int
    scale: float
    strategy_name: str
    strategy_parameters: dict[str, Any]
    family: str
    loss_parameters: dict[str, Any]  # all, num_arms, num_rounds and scale among them
    num_sequences: int
    seed: int
    checkpoints: int | tuple[int, ...]
    dtype: str
    certificates: bool

    @property
    def setting(self) -> tuple[str, int, int, float]:
        """What strategies are compared on: (losses, n, T, scale)."""
        return self.losses, self.num_arms, self.num_rounds, self.scale

    @property
    def label(self) -> str:
        losses, n, rounds, scale = self.setting
        return f"{self.strategy} on {losses}, n = {n}, T = {rounds}, scale = {scale:g}"

    def determinants(self) -> dict[str, Any]:
        """All that the numbers depend on; labels and the number of seeds are not among it."""
        given = asdict(self)
        for label in ("strategy", "losses", "scale"):
            del given[label]
        return given | {
            "sfmab_jax": sfmab_jax.__version__,
            "jax": jax.__version__,
            "jaxlib": jaxlib.version.__version__,
            "backend": jax.default_backend(),
            "machine": platform.machine(),
        }

    @cached_property
    def identity(self) -> str:
        """A name made of the determinants: 16 hexadecimal digits."""
        text = json.dumps(self.determinants(), sort_keys=True, default=repr)
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    def bandit(self) -> Bandit:
        return STRATEGIES[self.strategy_name](**self.strategy_parameters)

    def sequence(self) -> LossSequence:
        return LOSSES[self.family](**self.loss_parameters)


def plan_cells(study: StudyFile) -> tuple[Cell, ...]:
    """The product of all grids, each strategy and loss family built once to see that it can be."""
    settings = itertools.product(_variants(study.losses, apart="scale"), study.arms, study.rounds)
    cells = []
    for (losses, family, given), num_arms, num_rounds in settings:
        parameters = complete(LOSSES[family], given | {"num_arms": num_arms})
        if "num_rounds" in parameters and "num_rounds" not in given:
            parameters["num_rounds"] = num_rounds
        place = f"losses.{losses}"
        sequence = _built(study, place, LOSSES[family], parameters)
        _check_sequence(study, place, sequence, num_rounds)
        known = parameters | {"num_rounds": num_rounds, "magnitude": sequence.magnitude}
        for strategy, name, own in _variants(study.strategies):
            own = _resolved(study, strategy, name, own, known)
            bandit = _built(study, f"strategies.{strategy}", STRATEGIES[name], own)
            _check_bandit(study, strategy, bandit, num_arms)
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
                    checkpoints=_within(study.checkpoints, num_rounds),
                    dtype=study.dtype,
                    certificates=study.certificates and name == "scale_free",
                )
            )
    _check_distinct(study, cells)
    return tuple(cells)


def _variants(
    choices: tuple[Choice, ...], apart: str | None = None
) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """(label, name, parameters) of all members of the grids; the label tells what varies.

    A parameter that is a dimension of its own, as the scale of the losses, is kept ``apart``.
    """
    for choice in choices:
        varies = [key for key, values in choice.grid.items() if len(values) > 1 and key != apart]
        for parameters in choice.members():
            shown = [f"{key}={_short(parameters[key])}" for key in varies]
            yield " ".join([choice.label, *shown]), choice.name, parameters


def _short(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value).replace(" ", "")


def _resolved(
    study: StudyFile, label: str, name: str, given: dict[str, Any], known: dict[str, Any]
) -> dict[str, Any]:
    """The parameters of a strategy: "@scale" is the scale of the cell's losses, and so on."""
    parameters = complete(STRATEGIES[name], given)
    if "num_rounds" in parameters and "num_rounds" not in given:
        parameters["num_rounds"] = known["num_rounds"]
    for key, value in given.items():
        if isinstance(value, str) and value.startswith("@"):
            numbers = [k for k, v in known.items() if isinstance(v, int | float)]
            if value[1:] not in numbers:
                hint = nearest(value, [f"@{number}" for number in numbers])
                fail(study.source, f"strategies.{label}.{key}", value, f"no such number; {hint}")
            parameters[key] = known[value[1:]]
    return parameters


def _built(study: StudyFile, place: str, factory: Any, parameters: dict[str, Any]) -> Any:
    """What the factory makes; its complaint, if it has one, in terms of the study file."""
    missing = [k for k, v in parameters.items() if v is inspect.Parameter.empty]
    if missing:
        raise ValueError(f"{study.source}: {place}: {missing[0]} has no default; give it")
    try:
        return factory(**parameters)
    except Exception as error:  # whatever a factory makes of numbers it did not expect
        shown = {k: v for k, v in parameters.items() if signature_of(factory)[k].default != v}
        raise ValueError(f"{study.source}: {place} = {shown}: {error}") from None


def _check_sequence(study: StudyFile, place: str, sequence: LossSequence, rounds: int) -> None:
    largest = float(np.finfo(study.dtype).max)
    if not 4 / largest <= sequence.magnitude <= largest / 4:
        fail(
            study.source,
            place,
            sequence.magnitude,
            f"losses of this size are beyond the range of {study.dtype}; change scale or dtype",
        )
    if sequence.num_rounds is not None and sequence.num_rounds < rounds:
        fail(study.source, "rounds", rounds, f"{place} has only {sequence.num_rounds}")


def _check_bandit(study: StudyFile, label: str, bandit: Bandit, num_arms: int) -> None:
    """Whether the strategy can begin with so many arms; nothing is computed."""
    try:
        one = jax.ShapeDtypeStruct((), np.float32)
        jax.eval_shape(lambda unit: bandit.init(num_arms, np.dtype(np.float32), unit), one)
    except Exception as error:
        fail(study.source, f"strategies.{label}", num_arms, f"cannot begin: {error}")


def _check_distinct(study: StudyFile, cells: list[Cell]) -> None:
    seen = set()
    for cell in cells:
        if (cell.strategy, cell.setting) in seen:
            raise ValueError(f"{study.source}: two cells are both called {cell.label}")
        seen.add((cell.strategy, cell.setting))


def _within(checkpoints: int | tuple[int, ...], num_rounds: int) -> int | tuple[int, ...]:
    """Checkpoints of a cell; the last round is always one."""
    if isinstance(checkpoints, int):
        return checkpoints
    return tuple(sorted({num_rounds, *(t for t in checkpoints if t < num_rounds)}))
