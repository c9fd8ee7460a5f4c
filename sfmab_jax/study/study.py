"""The results of a study, labelled: as arrays, data frames and files."""

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from sfmab_jax.results.certificate import Certificate
from sfmab_jax.results.concat import concat
from sfmab_jax.results.norms import warn_if_no_regret
from sfmab_jax.results.result import Result
from sfmab_jax.study.blocks import cut_into_blocks
from sfmab_jax.study.cells import Cell
from sfmab_jax.study.manifest import cell_from_manifest, read_manifest
from sfmab_jax.study.same_losses import SameLosses
from sfmab_jax.study.store import kept_blocks, read_block

__all__ = ["CellResult", "Setting", "Study", "load_study", "parameter_columns"]

Setting = tuple[str, int, int, float]


@dataclass(frozen=True)
class CellResult:
    """A cell with the result of its blocks."""

    cell: Cell
    result: Result


@dataclass(frozen=True, eq=False)
class Study(Mapping[tuple[str, Setting], Result]):
    """The results of a study, by (strategy, (losses, n, T, scale)).

    Attributes:
      folder: the folder it was read from.
      manifest: its text, cells and provenance, see `store`.
      cells: those with at least one block, in the order of the study.
      incomplete: what is missing or damaged, in words; empty for a finished study.
    """

    folder: Path
    manifest: dict[str, Any]
    cells: tuple[CellResult, ...]
    incomplete: tuple[str, ...]

    def __getitem__(self, key: tuple[str, Setting]) -> Result:
        for entry in self.cells:
            if (entry.cell.strategy, entry.cell.setting) == key:
                return entry.result
        raise KeyError(key)

    def __iter__(self) -> Iterator[tuple[str, Setting]]:
        return ((entry.cell.strategy, entry.cell.setting) for entry in self.cells)

    def __len__(self) -> int:
        return len(self.cells)

    def __repr__(self) -> str:
        return f"Study({self.manifest['title']!r}, {len(self)} cells, {self.folder})"

    @property
    def strategies(self) -> list[str]:
        return list(dict.fromkeys(entry.cell.strategy for entry in self.cells))

    @property
    def settings(self) -> list[Setting]:
        """All (losses, n, T, scale) on which strategies are compared."""
        return list(dict.fromkeys(entry.cell.setting for entry in self.cells))

    @property
    def _kinds(self) -> list[str]:
        """The kinds of regret that all cells have, by the names of arrays and columns."""
        kept = all("pseudo_regret" in entry.result.kept for entry in self.cells)
        return ["regret", "expected_regret", *(["pseudo_regret"] * kept)]

    def on(self, setting: Setting) -> dict[str, Result]:
        """Return the results of all strategies on one setting, by label."""
        return {e.cell.strategy: e.result for e in self.cells if e.cell.setting == setting}

    def to_xarray(self):
        """Return a labelled dataset with dimensions cell, sequence, seed and checkpoint.

        Cells have coordinates strategy, losses, num_arms, num_rounds, scale and those of
        `parameter_columns`, checkpoints the coordinate round [cell, checkpoint]; cells with fewer
        are filled up with NaN and 0. Seeds with their own losses are sequences.
        """
        xarray = _import_package("xarray")
        shape = np.max([entry.result.regret.shape for entry in self.cells], axis=0)
        data = {key: np.full((len(self), *shape), np.nan) for key in self._kinds}
        rounds = np.zeros((len(self), shape[2]), np.int64)
        for number, entry in enumerate(self.cells):
            here = entry.result.regret.shape
            rounds[number, : here[2]] = entry.result.rounds
            for key, array in data.items():
                array[number, : here[0], : here[1], : here[2]] = getattr(entry.result, key)
        labels = ("strategy", "losses", "num_arms", "num_rounds", "scale")
        parameters = parameter_columns([entry.cell for entry in self.cells])
        dims = ("cell", "sequence", "seed", "checkpoint")
        return xarray.Dataset(
            {key: (dims, array) for key, array in data.items()},
            coords={
                **{key: ("cell", [getattr(e.cell, key) for e in self.cells]) for key in labels},
                **{key: ("cell", values) for key, values in parameters.items()},
                "round": (("cell", "checkpoint"), rounds),
                "sequence": np.arange(shape[0]),
                "seed": np.arange(shape[1]),
            },
            attrs={"title": self.manifest["title"], "seed": self.manifest["seed"]},
        )

    def to_pandas(self):
        """Return a data frame with a row for each cell, sequence, seed and checkpoint.

        The parameters of strategies and losses are columns, too, see `parameter_columns`. Seeds
        with their own losses are sequences.
        """
        pandas = _import_package("pandas")
        parameters = parameter_columns([entry.cell for entry in self.cells])
        frames = []
        for number, entry in enumerate(self.cells):
            cell, result = entry.cell, entry.result
            sequence, seed, place = np.indices(result.regret.shape).reshape(3, -1)
            frames.append(
                pandas.DataFrame(
                    {
                        "strategy": cell.strategy,
                        "losses": cell.losses,
                        "num_arms": cell.num_arms,
                        "num_rounds": cell.num_rounds,
                        "scale": cell.scale,
                        **{key: values[number] for key, values in parameters.items()},
                        "sequence": sequence + result.first_sequence,
                        "seed": seed + result.first_seed,
                        "round": result.rounds[place],
                        **{key: getattr(result, key).ravel() for key in self._kinds},
                    }
                )
            )
        frame = pandas.concat(frames, ignore_index=True)
        texts = [key for key in parameters if frame[key].dtype.kind not in "if"]
        return frame.astype(dict.fromkeys(texts, "category"))

    def export(self, path: str | os.PathLike) -> Path:
        """Write `to_pandas` as .csv or .parquet, by the name's ending; return the path."""
        path = Path(path)
        if path.suffix not in (".csv", ".parquet"):
            raise ValueError(f"path is {path}; give a name that ends in .csv or .parquet")
        if path.suffix == ".parquet":
            _import_package("pyarrow")
            self.to_pandas().to_parquet(path, index=False)
        else:
            self.to_pandas().to_csv(path, index=False)
        return path


def parameter_columns(cells: Sequence[Cell]) -> dict[str, list[Any]]:
    """Return the parameters of strategies and losses, by column: a value for each cell.

    ``strategy_beta`` is the parameter beta of the strategy, ``losses_gap`` the gap of the losses.
    Columns of numbers have NaN where a cell has no such number, others are texts, "" for none;
    parameters that are None in all cells have no column.
    """
    columns: dict[str, list[Any]] = {}
    for number, cell in enumerate(cells):
        own = {f"strategy_{key}": value for key, value in cell.strategy_parameters.items()}
        for key, value in cell.loss_parameters.items():
            if key not in ("num_arms", "scale"):  # columns of every cell
                own[f"losses_{key}"] = value
        for key, value in own.items():
            columns.setdefault(key, [None] * len(cells))[number] = value
    return {
        key: _of_one_kind(values)
        for key, values in columns.items()
        if any(value is not None for value in values)
    }


def _of_one_kind(values: list[Any]) -> list[Any]:
    """Return numbers, NaN for None, if all others are numbers; otherwise texts."""
    present = [value for value in values if value is not None]
    if all(isinstance(v, int | float) and not isinstance(v, bool) for v in present):
        return [float("nan") if value is None else value for value in values]
    return ["" if value is None else _text(value) for value in values]


def _text(value: Any) -> str:
    return " ".join(map(_text, value)) if isinstance(value, list | tuple) else str(value)


def load_study(path: str | os.PathLike) -> Study:
    """Read the folder of a study, finished or not; every block is checked.

    Each cell has its blocks up to the first that is missing or damaged; ``study.incomplete`` says
    where that happened. Blocks that were played on different losses are refused.

    >>> import tempfile
    >>> from sfmab_jax.study.config import read_study
    >>> from sfmab_jax.study.runner import run_study
    >>> text = '''
    ... title = "Two arms"
    ... arms = 2
    ... rounds = 8
    ... seeds = 4
    ... [strategies.control]
    ... strategy = "uniform"
    ... [losses.coins]
    ... family = "bernoulli"
    ... '''
    >>> with tempfile.TemporaryDirectory() as name:
    ...     file = Path(name, "mine.toml")
    ...     _ = file.write_text(text)
    ...     _ = run_study(read_study(str(file)), Path(name, "mine"))
    ...     study = load_study(Path(name, "mine"))
    >>> study.settings
    [('coins', 2, 8, 1.0)]
    >>> study["control", study.settings[0]].regret.shape
    (4, 1, 8)
    """
    folder = Path(path)
    try:
        manifest = read_manifest(folder)
    except ValueError as error:
        fix = "run the study again, which writes it anew and keeps the blocks"
        raise ValueError(f"{error}; {fix}") from None
    if manifest is None:
        raise ValueError(f"{folder} holds no study: there is no manifest.json")
    same_losses = SameLosses(folder)
    cells, incomplete = [], []
    for entry in manifest["cells"]:
        cell = cell_from_manifest(entry)
        results: list[Result] = []
        for block in cut_into_blocks(cell, manifest["seeds"], kept_blocks(folder, cell)):
            result = read_block(folder, block)
            if not isinstance(result, Result):
                incomplete.append(f"{cell.label}, seeds from {block.first_seed}: {result}")
                break
            same_losses.check(block, result)
            results.append(result)
        if results:
            # Seeds with their own losses are sequences.
            join = concat if cell.num_sequences is None else _join_seeds
            joined: Any = join(results)
            is_finite = np.isfinite(joined.norms.l_1).all(axis=1)
            warn_if_no_regret(cell.label, joined.expected_regret[is_finite])
            cells.append(CellResult(cell, joined))
    return Study(folder, manifest, tuple(cells), tuple(incomplete))


def _join_seeds(results: list[Result]) -> Result:
    """Return the results of consecutive seeds as one."""
    regret, expected = (
        np.concatenate([getattr(result, key) for result in results], axis=1)
        for key in ("regret", "expected_regret")
    )
    certificates = [result.certificate for result in results if result.certificate is not None]
    certificate = None
    if certificates:
        columns = zip(*certificates, strict=True)
        certificate = Certificate(*(np.concatenate(parts, axis=1) for parts in columns))
    kept = {
        key: np.concatenate([result.kept[key] for result in results], axis=1)
        for key in results[0].kept
    }
    return replace(
        results[0], regret=regret, expected_regret=expected, certificate=certificate, kept=kept
    )


def _import_package(name: str):
    try:
        return __import__(name)
    except ImportError:
        raise ImportError(f"{name} is not installed; run: pip install {name}") from None
