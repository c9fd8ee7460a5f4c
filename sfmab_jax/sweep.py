"""sweep: a strategy over a grid of its parameters, on the same losses and random numbers."""

import inspect
import itertools
import math
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import numpy as np

from sfmab_jax.base import Bandit, with_static_functions
from sfmab_jax.checks import horizon_argument
from sfmab_jax.engine.validate import check_rounds
from sfmab_jax.losses import LossSequence, as_loss_sequence
from sfmab_jax.results.plotting import LINE_STYLES, literal
from sfmab_jax.results.result import Kind, Result, Results
from sfmab_jax.results.statistics import Interval, check_level
from sfmab_jax.simulate import simulate

__all__ = ["Best", "Sweep", "sweep"]

# Of `simulate`, those that may be lists.
_LISTS = ("checkpoints", "delay", "devices")
# The most columns and cells of a heat map whose numbers are written out.
_MOST_COLUMNS, _MOST_CELLS = 12, 120


class Best(NamedTuple):
    """The point of a grid with the least mean regret at the end, and how sure that is.

    All points play the same losses with the same random numbers, so they are compared game by game,
    by intervals of the paired differences (`Results.difference`). The best of many points is lucky,
    too; but where all are about equally noisy, to set the winner against the runner-up by a
    two-sided interval needs no further correction (Hung and Fithian, "Rank Verification for
    Exponential Families", 2019).

    Attributes:
      point: its parameters, by name.
      mean: its mean regret.
      runner_up: the parameters of the second best.
      difference: the mean regret of the runner-up less that of the best, with its interval.
      is_doubtful: whether that interval may cover less than it says; see `Result.is_doubtful`.
      ties: the parameters of all points that cannot be told from the best: the interval of the
        difference holds 0, or there is none, as from a single game.
    """

    point: dict[str, Any]
    mean: float
    runner_up: dict[str, Any]
    difference: Interval
    is_doubtful: bool
    ties: tuple[dict[str, Any], ...]

    @property
    def is_distinguishable(self) -> bool:
        """Whether the best is told from every other point."""
        return not self.ties


@dataclass(frozen=True)
class Sweep:
    """Regret of one strategy at every point of a grid of parameters, made by `sweep`.

    Attributes:
      axes: the values of each parameter that varies, by name, in the order they were given.
      results: the `Result` of each point, by a label such as "alpha=1, beta=0.5"; the last axis
        runs fastest. ``results.plot()`` draws the curves; `at` finds one by its parameters.
    """

    axes: dict[str, tuple[Any, ...]]
    results: Results

    def __repr__(self) -> str:
        best = self.best()
        axes = ", ".join(f"{name}: {len(values)}" for name, values in self.axes.items())
        ties = f", not distinguishable from {len(best.ties)} more" if best.ties else ""
        mark = ", doubtful: few games or heavy tails" if best.is_doubtful else ""
        return (
            f"Sweep({axes}; {self._first.losses}, {self._first.rounds[-1]} rounds, "
            f"best {_label(self.axes, tuple(best.point.values()))} with mean regret "
            f"{best.mean:.4g}{ties}{mark})"
        )

    @property
    def shape(self) -> tuple[int, ...]:
        """Points along each axis."""
        return tuple(map(len, self.axes.values()))

    @property
    def rounds(self) -> np.ndarray:
        """The checkpoints [C]."""
        return self._first.rounds

    @property
    def _first(self) -> Result:
        return next(iter(self.results.values()))

    def at(self, **parameters: Any) -> Result:
        """Return the result of one point, as in ``at(alpha=1.0, beta=0.5)``."""
        if parameters.keys() != self.axes.keys():
            raise ValueError(
                f"the axes are {', '.join(self.axes)}, not {', '.join(parameters) or 'none'}; "
                "give a value for each"
            )
        places = [_place(name, values, parameters[name]) for name, values in self.axes.items()]
        return list(self.results.values())[np.ravel_multi_index(places, self.shape)]

    def mean(self, kind: Kind = "expected") -> np.ndarray:
        """Mean regret at every point of the grid and every checkpoint, [*grid, C].

        Over the family if there are several loss sequences, else given the sequence.
        """
        return self._gathered([result.mean(kind) for result in self.results.values()])

    def interval(
        self, level: float = 0.95, kind: Kind = "expected"
    ) -> tuple[np.ndarray, np.ndarray]:
        """Confidence interval for the mean: low and high, each [*grid, C]; see `Result`."""
        intervals = [result.interval(level, kind=kind) for result in self.results.values()]
        low, high = map(self._gathered, zip(*intervals))
        return low, high

    def best(self, level: float = 0.95, kind: Kind = "expected") -> Best:
        """Return the point of the least mean regret at the last checkpoint; see `Best`."""
        check_level(level)
        final = self.mean(kind)[..., -1].ravel()
        if np.isnan(final).all():
            raise ValueError("the regret is not a number at any point of the grid")
        order = np.argsort(final, kind="stable")  # NaN comes last
        points = self._parameters()
        winner = order[0]
        labels = list(self.results)

        def difference(place: int) -> Interval:
            pair = self.results.difference(labels[place], labels[winner], level=level, kind=kind)
            return Interval(*(side[0, -1].item() for side in pair))

        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # a single game has no interval
            differences = {place: difference(place) for place in order[1:]}
        second = order[1]
        doubtful = self.results.is_doubtful(labels[second], labels[winner], kind)
        return Best(
            point=points[winner],
            mean=float(final[winner]),
            runner_up=points[second],
            difference=differences[second],
            is_doubtful=bool(doubtful[:, -1].any()),
            ties=tuple(points[place] for place, gap in differences.items() if not gap.low > 0),
        )

    def to_xarray(self):
        """Return a labelled dataset with the axes, then sequence, seed and round."""
        stacked = self.results.to_xarray()
        arrays = {
            name: (
                (*self.axes, *array.dims[1:]),
                array.values.reshape(*self.shape, *array.shape[1:]),
            )
            for name, array in stacked.data_vars.items()
        }
        own = {name: list(values) for name, values in self.axes.items()}
        shared = {name: stacked.coords[name] for name in ("sequence", "seed", "round")}
        return type(stacked)(arrays, coords=own | shared, attrs=stacked.attrs)

    def plot(self, *, axes: Any = None, level: float = 0.95):
        """Plot the final mean regret: a line with its interval over one axis, a heat map over two.

        A star marks the best point, and rings mark those that cannot be told from it. Numbers stand
        on a logarithmic scale where they are positive and differ by a factor of ten or more.

        Args:
          axes: Matplotlib axes to draw on; by default new ones.
          level: of the intervals, and of the differences to the best.

        Returns:
          The axes.
        """
        if len(self.axes) > 2:
            raise ValueError(
                f"a plot has one or two axes, and this sweep {len(self.axes)}: "
                f"{', '.join(self.axes)}; sweep fewer at a time, or plot parts of to_xarray()"
            )
        import matplotlib.pyplot as plt

        if axes is None:
            _, axes = plt.subplots(figsize=(6.4, 4.2), layout="constrained")
        draw = _draw_line if len(self.axes) == 1 else _draw_map
        draw(self, axes, level)
        return axes

    def _parameters(self) -> list[dict[str, Any]]:
        return [dict(zip(self.axes, values)) for values in itertools.product(*self.axes.values())]

    def _gathered(self, arrays: list[np.ndarray]) -> np.ndarray:
        """One array for each point, [1, C] -> [*grid, C]."""
        return np.stack(arrays).reshape(*self.shape, -1)


def sweep(factory: Callable[..., Bandit], losses: LossSequence | Any, /, **arguments: Any) -> Sweep:
    """Play a strategy at every point of a grid of its parameters.

    Parameters of the factory that are lists (or tuples, ranges, arrays) are the axes of the grid;
    all others hold for every point. Arguments of `simulate`, such as ``num_rounds`` and
    ``num_seeds``, are handed to it. All points play the same losses with the same random numbers,
    and a point has the bits of the same strategy played alone. What differs by numbers only is
    compiled once.

    Where the factory has a parameter of the same name as an argument of `simulate`, the argument
    goes to `simulate`. ``num_rounds`` and ``switches`` go to both, so that a strategy is told the
    length of the game and what it is compared with. To sweep such a parameter, call it otherwise:
    ``lambda horizon: exp3_horizon(num_rounds=horizon)``.

    Args:
      factory: such as ``sf.strategies.scale_free``, or a function of your own that returns a
        `Bandit`. Numbers that it binds by `jax.tree_util.Partial` are compiled once for all.
      losses: a `LossSequence`, or an array [T, n] or [K, T, n].
      **arguments: parameters of the factory, and arguments of `simulate` but ``keep``.

    >>> import sfmab_jax as sf
    >>> grid = sf.sweep(
    ...     sf.strategies.exp3, [[1.0, 0.0]] * 20, learning_rate=[0.01, 0.1, 1.0], num_seeds=16
    ... )
    >>> grid.best().point
    {'learning_rate': 1.0}
    >>> grid.mean()[:, -1].round(1).tolist()
    [9.6, 6.5, 1.9]
    """
    own = set(list(inspect.signature(simulate).parameters)[2:])
    options = {name: value for name, value in arguments.items() if name in own}
    parameters = {name: value for name, value in arguments.items() if name not in own}
    _check(factory, parameters, options)
    axes = {name: _axis(name, x) for name, x in parameters.items() if _is_axis(x)}
    fixed = {name: x for name, x in parameters.items() if name not in axes}
    if math.prod(map(len, axes.values())) < 2:
        raise ValueError(
            "the grid has no more than one point; give a list of values to at least one parameter "
            "of the factory, as in sweep(sf.strategies.scale_free, losses, beta=[0.1, 1, 10])"
        )
    sequence = as_loss_sequence(losses)
    fixed |= horizon_argument(factory, check_rounds(options.get("num_rounds"), sequence))
    if options.get("switches") is not None and "switches" in inspect.signature(factory).parameters:
        fixed["switches"] = options["switches"]
    bandits = {}
    for values in itertools.product(*axes.values()):
        bandit = factory(**fixed, **dict(zip(axes, values)))
        if not isinstance(bandit, Bandit):
            raise ValueError(
                f"factory returns {bandit!r}; return a Bandit, as sf.compose(...) does"
            )
        bandits[_label(axes, values)] = bandit
    _warn_if_compiled_apart(axes, bandits)
    results: Any = simulate(bandits, sequence, **options)
    return Sweep(axes, results)


def _check(factory: Any, parameters: Mapping[str, Any], options: Mapping[str, Any]) -> None:
    """Refuse a factory that is none, and arguments that nobody takes."""
    if isinstance(factory, Bandit):
        raise ValueError(
            "factory is a Bandit; give the function that makes it, uncalled, as "
            "sf.strategies.scale_free"
        )
    if not callable(factory):
        raise ValueError(f"factory is {factory!r}; give a function that returns a Bandit")
    for name, value in options.items():
        if _is_axis(value) and name not in _LISTS:
            raise ValueError(
                f"{name} is {value!r}, but it is an argument of simulate and cannot be swept; give "
                "one value. A parameter of the factory with this name can be, by another one: "
                f"lambda my_{name}: factory({name}=my_{name})"
            )
    if options.get("keep", "games") != "games":
        raise ValueError(
            f"keep is {options['keep']!r}; a sweep compares points game by game: use keep='games'"
        )
    signature = inspect.signature(factory)
    try:
        signature.bind_partial(**parameters)
    except TypeError:
        taken = [name for name, p in signature.parameters.items() if p.kind != p.VAR_KEYWORD]
        unknown = [name for name in parameters if name not in taken]
        raise ValueError(
            f"neither the factory nor simulate takes {', '.join(unknown)}; the factory takes "
            f"{', '.join(taken) or 'no parameters'}"
        ) from None


def _is_axis(value: Any) -> bool:
    if isinstance(value, np.ndarray | jax.Array):
        return value.ndim > 0
    is_named = hasattr(value, "_fields")  # a potential, a rule to stop: one value each
    return isinstance(value, list | tuple | range) and not is_named


def _axis(name: str, given: Any) -> tuple[Any, ...]:
    """Return the values of an axis: numbers of one type, for which one program is compiled."""
    if np.ndim(given) > 1:
        raise ValueError(
            f"{name} has {np.ndim(given)} dimensions; an axis is a list of values. Bind an array "
            "that all points share with functools.partial"
        )
    values = [x.item() if isinstance(x, np.generic | np.ndarray | jax.Array) else x for x in given]
    if any(isinstance(x, float) for x in values):
        values = [float(x) if type(x) is int else x for x in values]
    if not values:
        raise ValueError(f"{name} is empty; give it at least one value")
    twice = [x for place, x in enumerate(values) if x in values[:place]]
    if twice:
        raise ValueError(f"{name} has {twice[0]!r} more than once; give each value once")
    return tuple(values)


def _place(name: str, values: tuple[Any, ...], wanted: Any) -> int:
    """Return where a value lies on its axis; a number may be off by rounding."""

    def is_it(value: Any) -> bool:
        if isinstance(value, int | float) and isinstance(wanted, int | float | np.generic):
            return math.isclose(value, wanted, rel_tol=1e-6)
        return value == wanted

    for place, value in enumerate(values):
        if is_it(value):
            return place
    raise ValueError(f"{name} is {wanted!r}; its axis has {', '.join(map(str, values))}")


def _ticks(values: tuple[Any, ...]) -> list[str]:
    """Return labels for the values of an axis, as short as they can be and still differ."""
    for digits in (3, 6, 17):
        labels = [f"{x:.{digits}g}" if isinstance(x, float) else _name_of(x) for x in values]
        if len(set(labels)) == len(labels):
            return labels
    return [repr(x) for x in values]


def _name_of(value: Any) -> str:
    return getattr(value, "__name__", str(value))


def _label(axes: Mapping[str, tuple[Any, ...]], values: tuple[Any, ...]) -> str:
    """Return the label of a point, such as "alpha=1, beta=0.5"."""
    pairs = zip(axes.items(), values)
    return ", ".join(f"{name}={_ticks(axis)[axis.index(x)]}" for (name, axis), x in pairs)


def _warn_if_compiled_apart(
    axes: Mapping[str, tuple[Any, ...]], bandits: Mapping[str, Bandit]
) -> None:
    """Warn if points that differ in numbers only have functions of their own."""
    kinds = math.prod(
        len({type(x) if type(x) in (int, float) else id(x) for x in values})
        for values in axes.values()
    )
    structures = {jax.tree.structure(with_static_functions(bandit)) for bandit in bandits.values()}
    if len(structures) > kinds:
        warnings.warn(
            f"the {len(bandits)} points need {len(structures)} programs, as the factory makes new "
            "functions for each; define them once, outside of it, and bind the numbers with "
            "jax.tree_util.Partial(function, number): one program then serves all",
            UserWarning,
            stacklevel=3,
        )


def _positions(values: tuple[Any, ...]) -> tuple[np.ndarray, str | None]:
    """Return where values stand on an axis, and its scale; None for labels in a row."""
    if len(values) < 2 or not all(type(x) in (int, float) for x in values):
        return np.arange(len(values), dtype=float), None
    numbers = np.array(values, float)
    is_wide = numbers.min() > 0 and numbers.max() >= 10 * numbers.min()
    return numbers, "log" if is_wide else "linear"


def _draw_line(grid: Sweep, axes: Any, level: float) -> None:
    """Draw the final mean regret with its interval over the one axis."""
    ((name, values),) = grid.axes.items()
    mean = grid.mean()[:, -1]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # a single game has no interval
        low, high = (side[:, -1] for side in grid.interval(level))
    places, scale = _positions(values)
    order = np.argsort(places)
    style = LINE_STYLES[0]
    if scale is None:
        axes.errorbar(
            places, mean, [mean - low, high - mean], color=style["color"], fmt="o", capsize=4
        )
        axes.set_xticks(places, _ticks(values))
        axes.margins(x=0.2)
    else:
        axes.plot(places[order], mean[order], marker="o", ms=4, **style)
        axes.fill_between(
            places[order], low[order], high[order], color=style["color"], alpha=0.2, lw=0
        )
        axes.set_xscale(scale)
    _mark(
        grid,
        axes,
        level,
        lambda point: (places[values.index(point[name])], mean[values.index(point[name])]),
    )
    axes.set_xlabel(literal(name))
    axes.set_ylabel(f"{_what_is_drawn(grid)}, {level:.0%} interval")
    axes.grid(alpha=0.3)
    axes.legend(frameon=False)


def _draw_map(grid: Sweep, axes: Any, level: float) -> None:
    """Draw a heat map of the final mean regret, with the first axis upwards."""
    from matplotlib.colors import LogNorm, Normalize

    (up, up_values), (along, along_values) = grid.axes.items()
    mean = grid.mean()[..., -1]
    finite = mean[np.isfinite(mean)]
    is_wide = finite.min() > 0 and finite.max() > 10 * finite.min()
    norm = (LogNorm if is_wide else Normalize)(finite.min(), finite.max())
    picture = axes.imshow(mean, norm=norm, cmap="viridis_r", aspect="auto", origin="lower")
    axes.figure.colorbar(picture, ax=axes, label=_what_is_drawn(grid))
    if len(along_values) <= _MOST_COLUMNS and mean.size <= _MOST_CELLS:
        for (row, column), value in np.ndenumerate(mean):
            is_dark = np.isfinite(value) and norm(value) > 0.5
            axes.text(
                column, row - 0.2, _short(value), ha="center", va="center", fontsize=8,
                color="white" if is_dark else "black",
            )  # fmt: skip
    for set_ticks, values in ((axes.set_yticks, up_values), (axes.set_xticks, along_values)):
        step = -(-len(values) // _MOST_COLUMNS)
        set_ticks(np.arange(len(values))[::step], _ticks(values)[::step])
    _mark(
        grid,
        axes,
        level,
        lambda point: (along_values.index(point[along]), up_values.index(point[up]) + 0.15),
    )
    axes.set_xlabel(literal(along))
    axes.set_ylabel(literal(up))
    axes.legend(loc="lower center", bbox_to_anchor=(0.5, 1), ncols=2, frameon=False)


def _short(value: float) -> str:
    return f"{value:,.0f}" if 1000 <= abs(value) < 1e6 else f"{value:.3g}"


def _what_is_drawn(grid: Sweep) -> str:
    number = len(grid._first.regret)
    given = "given this sequence" if number == 1 else f"over {number:,} sequences"
    return f"mean regret after {grid.rounds[-1]:,} rounds,\n{given}"


def _mark(grid: Sweep, axes: Any, level: float, place: Callable[[dict[str, Any]], tuple]) -> None:
    """Mark the best point with a star, and those that cannot be told from it with rings."""
    best = grid.best(level)
    from matplotlib.patheffects import withStroke

    # A white rim, as cells may be as dark as the marks.
    rim = [withStroke(linewidth=3, foreground="white")]
    how = {"linestyle": "none", "markeredgecolor": "black", "zorder": 5, "path_effects": rim}
    label = "best (doubtful)" if best.is_doubtful else "best"
    axes.plot(*place(best.point), marker="*", ms=14, color="#D55E00", label=label, **how)
    if best.ties:
        x, y = zip(*map(place, best.ties))
        label = f"not distinguishable at {level:.0%}"
        axes.plot(
            x, y, marker="o", ms=min(8, 120 / max(grid.shape)), color="none", label=label, **how
        )
