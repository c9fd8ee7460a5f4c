"""`sfmab run --sweep both-worlds`: who pays what between stochastic and adversarial losses.

The stations lie on one road, from losses that a stochastic bandit is made for to losses that only
an adversarial one bears. All losses are 0 or 1, so that every strategy that is told the range is
told the right one; gap is 0.2, and T the number of rounds:

    stochastic   Bernoulli losses: arm 0 has mean 1/2 - gap, the others 1/2; C = 0
    C = ...      the same with the outcomes of the first C rounds flipped, C = 0.01, 0.1, 0.3 T: arm
                 0 seems the worst until then (`losses.corrupted`)
    constrained  the means of all arms jump together, in growing phases, and arm 0 stays the best
                 by the gap (`losses.constrained_adversarial`): not identically distributed any
                 more, so that confidence bounds fail, but the gap is left
    turning      the worst arm becomes the best after T / 2 rounds (`losses.neu_switch`): what was
                 learnt in one half is wrong in the other
    minimax      one arm, drawn at the start, is better by sqrt(n / T) (`losses.minimax`): the
                 lower bound of order sqrt(n T), by which every strategy pays
    cyclic       the arm without loss moves on by one each round (`losses.cyclic`): a strategy that
                 randomises loses nothing, one that can be foreseen may lose every round

On the stochastic side, which ends with "constrained", one arm is the best throughout, and what is
shown is the pseudo-regret sum_t gap [i_t != 0] in the means before corruption: the price of having
been deceived is counted, and the flipped rounds themselves bring no profit. Where nothing is
corrupted it is ``simulate(pseudo_regret=True)``. On the adversarial side it is the expected regret
against the best fixed arm of the losses as they came, which may be negative.
"""

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from rich import box
from rich.console import Console
from rich.table import Table

from sfmab_jax.cli.options import save_picture, save_rows, say

__all__ = [
    "BUDGETS",
    "GAP",
    "STRATEGIES",
    "Row",
    "Station",
    "format_cell",
    "make_rows",
    "make_stations",
    "sweep_both_worlds",
]

# At most eight, so that a picture can be read.
STRATEGIES = "ucb1,epsilon_greedy,exp3,exp3_plus_plus,tsallis_inf,tsallis_inf_rv,scale_free"
GAP = 0.2
# Parts of all rounds that are corrupted.
BUDGETS = (0.0, 0.01, 0.1, 0.3)
_LEAST_ROUNDS = 100  # for budgets that differ
_WHAT = {
    "pseudo-regret": "in the means before the first C rounds were corrupted",
    "regret": "against the best fixed arm of the losses as they came",
}
# What labels do not say by themselves.
_LABELS = {
    "pseudo-regret": "constrained: the means of all arms jump together, the gap stays",
    "regret": "turning: the worst arm becomes the best after T / 2; minimax: gap sqrt(n / T); "
    "cyclic: arms take turns",
}
_SIDES = {
    "pseudo-regret": f"stochastic side, gap {GAP:g}",
    "regret": "adversarial side",
}


class Station(NamedTuple):
    """A place on the road.

    Attributes:
      label: for the picture and the table.
      losses: the sequence or family.
      gap: of all arms to arm 0, the best one, in the means before corruption; None where no arm is
        the best throughout.
      budget: C, the rounds corrupted; None where that is not the matter.
    """

    label: str
    losses: Any
    gap: float | None = None
    budget: int | None = None

    @property
    def regret(self) -> str:
        """Which regret is shown."""
        return "regret" if self.gap is None else "pseudo-regret"


class Row(NamedTuple):
    """A strategy at a station, as in the CSV file."""

    station: str
    losses: str
    budget: int | None
    regret_is: str  # "pseudo-regret" in the means before corruption, or "regret"
    strategy: str
    sequences: int
    games: int  # on all sequences together
    regret: float
    low: float
    high: float
    doubtful: bool  # the interval may cover less than it says, see `Result.is_doubtful`
    above_least: float  # less the least mean of the station; paired, with its interval
    above_low: float
    above_high: float
    as_played: float  # the pseudo-regret in the means after corruption; the regret

    @property
    def is_least(self) -> bool:
        return self.above_least == 0

    @property
    def is_told(self) -> bool:
        """Whether it is told from the least by the paired interval."""
        return self.above_low > 0


def make_stations(num_arms: int, num_rounds: int) -> tuple[Station, ...]:
    """Return the road for n arms and T rounds; see the module."""
    from sfmab_jax import losses

    if num_rounds < _LEAST_ROUNDS:
        raise ValueError(
            f"num_rounds is {num_rounds}; --sweep both-worlds corrupts a hundredth of the rounds: "
            f"give {_LEAST_ROUNDS} or more"
        )
    budgets = [round(part * num_rounds) for part in BUDGETS]
    corrupted = [
        Station(
            f"C = {budget:,}" if budget else "stochastic",
            # Of one family with the others, so that one program plays all.
            losses.corrupted(num_arms, gap=GAP, budget=budget),
            GAP,
            budget,
        )
        for budget in budgets
    ]
    return (
        *corrupted,
        Station("constrained", losses.constrained_adversarial(num_arms, gap=GAP), GAP),
        Station("turning", losses.neu_switch(num_arms, num_rounds=num_rounds)),
        Station("minimax", losses.minimax(num_arms, num_rounds, constant=1.0)),
        Station("cyclic", losses.cyclic(num_arms)),
    )


def sweep_both_worlds(bandits: Mapping[str, Any], output: Path, settings: dict[str, Any]) -> None:
    """Play all strategies at all stations; print the tables, write picture and CSV file.

    Args:
      bandits: by name.
      output: the picture; the CSV file goes beside it.
      settings: arms, rounds, seeds, sequences, seed and dtype of the run.
    """
    from sfmab_jax.results.worlds_picture import both_worlds

    stations = make_stations(settings["arms"], settings["rounds"])
    rows = []
    for station in stations:
        rows += _play(station, bandits, settings)
        say(f"{station.label}: done")
    console = Console()
    for regret in _SIDES:
        console.print(_make_table(regret, [r for r in rows if r.regret_is == regret], settings))
    save_rows(output.with_suffix(".csv"), rows)
    sides = [_make_side(regret, [r for r in rows if r.regret_is == regret]) for regret in _SIDES]
    note = (
        f"{settings['arms']} arms, {settings['rounds']:,} rounds; means with 95% intervals, "
        f"{_over_what(rows)}; pseudo-regret in the means before corruption; below, paired "
        f"differences to the least of the station. {'; '.join(_LABELS.values())}"
    )
    save_picture(both_worlds(sides, note), output)
    console.print(f"Wrote {output} and {output.with_suffix('.csv')}")


def _play(station: Station, bandits: Mapping[str, Any], settings: dict[str, Any]) -> list[Row]:
    """Return a row for each strategy at a station."""
    import sfmab_jax as sf

    is_pseudo = station.gap is not None
    results: Any = sf.simulate(
        bandits,
        station.losses,
        num_rounds=settings["rounds"],
        num_seeds=settings["seeds"],
        num_sequences=settings["sequences"],
        seed=settings["seed"],
        dtype=settings["dtype"],
        checkpoints=[settings["rounds"]],
        arm_counts=is_pseudo,
        pseudo_regret=is_pseudo,
    )
    return make_rows(station, results)


def make_rows(station: Station, results: Mapping[str, Any]) -> list[Row]:
    """Return a row for each strategy at a station, from their results at the last round."""
    from sfmab_jax.results import statistics

    units = {
        name: statistics.units_of(_final_regret(station, result))[:, 0]
        for name, result in results.items()
    }
    least = min(units, key=lambda name: units[name].mean())
    rows = []
    for name, result in results.items():
        mean, low, high = map(float, statistics.student_interval(units[name]))
        paired = statistics.student_interval(units[name] - units[least])
        sequences, seeds, _ = result.regret.shape
        rows.append(
            Row(
                station=station.label,
                losses=result.losses,
                budget=station.budget,
                regret_is=station.regret,
                strategy=name,
                sequences=sequences,
                games=sequences * seeds,
                regret=mean,
                low=low,
                high=high,
                doubtful=bool(low < high and statistics.is_doubtful(units[name])),
                above_least=float(paired.estimate),
                above_low=float(paired.low),
                above_high=float(paired.high),
                as_played=result.mean("expected" if station.gap is None else "pseudo")[0, -1],
            )
        )
    return rows


def _final_regret(station: Station, result: Any) -> Any:
    """Return the regret of each game at the last round, [K, S]."""
    if station.gap is None:
        return result.samples("expected")[..., -1]
    return station.gap * (result.rounds[-1] - result.arm_counts[..., -1, 0])


def _make_side(regret: str, rows: list[Row]) -> Any:
    """Return what the picture shows of the stations with this regret."""
    import numpy as np

    from sfmab_jax.results.worlds_picture import Regrets, Side

    fields = ("regret", "low", "high", "doubtful", "above_least", "above_low", "above_high")
    strategies = dict.fromkeys(row.strategy for row in rows)
    return Side(
        title=f"{_SIDES[regret]}: {regret}",
        regret=regret,
        stations=tuple(dict.fromkeys(row.station for row in rows)),
        joined=len({row.station for row in rows if row.budget is not None}),
        regrets={
            name: Regrets(
                *(np.array([getattr(r, key) for r in rows if r.strategy == name]) for key in fields)
            )
            for name in strategies
        },
    )


def _make_table(regret: str, rows: list[Row], settings: dict[str, Any]) -> Table:
    captions = [
        f"mean±half of the 95% interval, {_over_what(rows)}",
        f"{regret} {_WHAT[regret]}",
        _LABELS[regret],
        "*: the least of its station; ≈: not told from it by the paired 95% interval",
    ]
    if any(row.doubtful for row in rows):
        captions.append("†: doubtful, the interval may cover less; few games or heavy tails")
    table = Table(
        title=f"{_SIDES[regret].capitalize()}: {regret} after {settings['rounds']:,} rounds, "
        f"{settings['arms']} arms ({settings['dtype']})",
        caption="\n".join(captions),
        box=box.SIMPLE_HEAD,
        pad_edge=False,
        padding=0,
    )
    table.add_column("strategy", no_wrap=True)
    stations = list(dict.fromkeys(row.station for row in rows))
    for station in stations:
        table.add_column(station, justify="right")
    for name in dict.fromkeys(row.strategy for row in rows):
        cells = {row.station: row for row in rows if row.strategy == name}
        table.add_row(name, *(format_cell(cells[station]) for station in stations))
    return table


def format_cell(row: Row) -> str:
    """Return the mean with its interval and marks, for a cell of the table."""
    half = (row.high - row.low) / 2
    if not half > 0 or abs(row.regret) >= 1e6:
        text = f"{row.regret:.4g}"  # a single game has no interval
        text += f"±{half:.2g}" if half >= 0 else ""
    else:  # the mean to the second digit of its interval
        digits = max(0, 1 - math.floor(math.log10(half)))
        text = f"{row.regret:.{digits}f}±{half:.{digits}f}"
    mark = "*" if row.is_least else "" if row.is_told or row.low != row.low else "≈"
    return f"{text}{mark}{'†' * row.doubtful}"


def _over_what(rows: list[Row]) -> str:
    """Return over what the means are, by station where stations differ."""
    stations: dict[int, list[str]] = {}
    for row in rows:
        stations.setdefault(row.sequences, []).append(row.station)
    words = []
    for number, names in stations.items():
        over = "given the sequence" if number == 1 else f"over {number:,} sequences"
        words.append(f"{over} ({', '.join(dict.fromkeys(names))})" if len(stations) > 1 else over)
    return "; ".join(words)
