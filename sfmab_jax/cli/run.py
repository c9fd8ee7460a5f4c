"""`sfmab run`: play strategies on loss sequences, print a table and draw a picture."""

import itertools
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer
from rich import box
from rich.console import Console
from rich.table import Table

from sfmab_jax.cli import both_worlds
from sfmab_jax.cli.options import (
    Coordinator,
    NumProcesses,
    ProcessId,
    check_picture,
    choose_several,
    configure_jax,
    count_option,
    make_bandits,
    parse_number,
    save_picture,
    save_rows,
    say,
    split_names,
)

__all__ = ["RUN_EPILOG", "run"]

RUN_EPILOG = """
Examples:

`sfmab run` plays both exploration options on three loss families at three scales.

`sfmab run --losses sparse --rounds 100000 --seeds 4096 --exploration adaptive`

`sfmab run --strategies scale_free,ahb,tsallis_inf --losses bernoulli,switching --scales 1`

`sfmab run --sequences 1` plays all games on one sequence of each family, which results are given.

`sfmab run --sequences 64 --seeds 16` plays 16 games on each of 64 sequences.

`sfmab run --sweep both-worlds` shows who pays what from stochastic to adversarial losses.

`sfmab run --arms 50 --scales 1e-6,1,1e6 --dtype float64 --output wide.png`
"""
LOSSES = "uniform,gaussian,sparse"
SCALES = "0.01,1,100"


def run(
    arms: Annotated[int, count_option("Number of arms n.")] = 10,
    rounds: Annotated[int, count_option("Number of rounds T.")] = 10_000,
    seeds: Annotated[
        int, count_option("Games of each strategy; with --sequences, on each of them.")
    ] = 512,
    sequences: Annotated[
        int | None,
        count_option(
            "Loss sequences of each family; by default every game has its own if they are random."
        ),
    ] = None,
    seed: Annotated[int, count_option("Seed of the losses and the games.")] = 0,
    losses: Annotated[
        str | None,
        typer.Option(
            help="Loss families, separated by commas; see `sfmab list losses`.",
            show_default=LOSSES,
        ),
    ] = None,
    strategies: Annotated[
        str | None,
        typer.Option(
            help="Strategies, separated by commas; see `sfmab list strategies`.",
            show_default="scale_free",
        ),
    ] = None,
    exploration: Annotated[
        str, typer.Option(help="Of scale_free: adaptive, decaying or both.")
    ] = "both",
    scales: Annotated[
        str | None,
        typer.Option(help="Factors on the losses, separated by commas.", show_default=SCALES),
    ] = None,
    sweep: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="both-worlds: eight strategies from stochastic over corrupted to adversarial "
            "losses, in place of --losses and --scales.",
        ),
    ] = None,
    dtype: Annotated[str, typer.Option(help="float32 or float64.")] = "float32",
    devices: Annotated[
        int | None,
        count_option("Number of devices; a CPU is split into that many."),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            help="Picture to write; the table goes beside it as .csv.",
            show_default="sfmab_run.png, or that of the sweep",
        ),
    ] = None,
    coordinator: Coordinator = None,
    num_processes: NumProcesses = None,
    process_id: ProcessId = None,
) -> None:
    """Play strategies on loss sequences; report their regret with intervals and bounds.

    Intervals are over the family of the losses, or given the sequence if there is but one.

    Several processes share the games through a folder beside the output.
    """
    import sfmab_jax as sf
    from sfmab_jax.study.hosts import join

    configure_jax(dtype, devices)
    _check_sweep(sweep, losses, scales)
    process = join(coordinator, num_processes, process_id)
    if sweep is not None and process.total > 1:
        raise ValueError(
            f"--sweep is played by one process, and there are {process.total}; start only one"
        )
    losses = LOSSES if losses is None else losses
    families = choose_several("losses", losses, sf.losses.LOSSES | sf.losses.ADVERSARIES)
    if strategies is None:
        strategies = "scale_free" if sweep is None else both_worlds.STRATEGIES
    factories = choose_several("strategies", strategies, sf.strategies.STRATEGIES)
    scales = SCALES if scales is None else scales
    factors = [parse_number("scales", text) for text in split_names("scales", scales)]
    bandits = make_bandits(factories, exploration, rounds)
    if output is None:
        output = Path("sfmab_run.png" if sweep is None else "both_worlds.png")
    check_picture(output)
    settings: dict[str, Any] = {
        "arms": arms,
        "rounds": rounds,
        "seeds": seeds,
        "sequences": sequences,
        "seed": seed,
        "dtype": dtype,
    }
    if sweep is not None:
        both_worlds.sweep_both_worlds(
            {name: bandit for name, (bandit, _) in bandits.items()}, output, settings
        )
        return
    _check_losses(families, factors, arms, rounds, dtype)
    console = Console()
    cells: dict[tuple[str, str], Any] = {}
    rows = []
    if process.total == 1:
        played = _play_alone(bandits, families, factors, **settings)
    else:
        from sfmab_jax.study.shared_run import play_shared

        folder = output.with_name(f"{output.stem}_blocks")
        played = play_shared(process, folder, bandits, families, factors, say, settings)
    for family, scale, results in played:
        cells[family, f"{scale:g}"] = results
        for name, (_, option) in bandits.items():
            bound = None
            if option is not None and results[name].sees == "nothing":
                bounds = sf.bounds.scale_free(results[name].norms, option)
                bound = bounds.corrected[:, -1].mean()
            rows.append(_make_row(family, scale, name, results[name], bound))
    if process.number > 0:
        return
    answering = [name for name in families if name in sf.losses.ADVERSARIES]
    console.print(_make_table(arms, rounds, dtype, rows, answering))
    save_rows(output.with_suffix(".csv"), rows)
    save_picture(sf.plotting.grid(cells), output)
    console.print(f"Wrote {output} and {output.with_suffix('.csv')}")


def _check_sweep(sweep: str | None, losses: str | None, scales: str | None) -> None:
    """Refuse an unknown sweep, and options that a sweep sets itself."""
    if sweep is None:
        return
    if sweep != "both-worlds":
        raise ValueError(f"--sweep is {sweep!r}; choose both-worlds")
    for option, given in (("losses", losses), ("scales", scales)):
        if given is not None:
            raise ValueError(
                f"--{option} is {given!r}, but --sweep {sweep} has losses of its own; leave out "
                "one of the two"
            )


def _check_losses(families, factors, arms: int, rounds: int, dtype: str) -> None:
    """Check all losses before the first is played, so that no later one stops the run."""
    import numpy as np

    from sfmab_jax.checks import horizon_argument
    from sfmab_jax.engine.validate import unit_of_losses

    for make, scale in itertools.product(families.values(), factors):
        sequence = make(num_arms=arms, scale=scale, **horizon_argument(make, rounds))
        unit_of_losses(sequence.magnitude, np.dtype(dtype))


def _play_alone(
    bandits,
    families,
    scales,
    *,
    arms: int,
    rounds: int,
    seeds: int,
    sequences: int | None,
    seed: int,
    dtype: str,
) -> Iterator[tuple[str, float, Any]]:
    """Yield (family, scale, results) of each family at each scale."""
    import sfmab_jax as sf
    from sfmab_jax.checks import horizon_argument

    for (family, make), scale in itertools.product(families.items(), scales):
        results: Any = sf.simulate(
            {name: bandit for name, (bandit, _) in bandits.items()},
            make(num_arms=arms, scale=scale, **horizon_argument(make, rounds)),
            num_rounds=rounds,
            num_seeds=seeds,
            num_sequences=sequences,
            seed=seed,
            dtype=dtype,
        )
        say(f"{family} at scale {scale:g}: done")
        yield family, scale, results


class Row(NamedTuple):
    """A strategy on a family at a scale, as in the CSV file."""

    losses: str
    scale: float
    strategy: str
    sequences: int
    games: int  # on all sequences together
    regret: float
    low: float
    high: float
    doubtful: bool  # the interval may cover less than it says, see `Result.is_doubtful`
    bound: float | None
    rounds_per_second: float | None  # of a thread, without compiling; None if it is not known


def _make_row(family, scale, name, result, bound) -> Row:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # a single game has no interval
        low, high = (side[0, -1] for side in result.interval(0.95))
    sequences, seeds, _ = result.regret.shape
    num_rounds = sequences * seeds * result.rounds[-1]
    return Row(
        losses=family,
        scale=scale,
        strategy=name,
        sequences=sequences,
        games=sequences * seeds,
        regret=result.mean()[0, -1],
        low=low,
        high=high,
        doubtful=bool(low < high and result.is_doubtful()[0, -1]),
        bound=bound,
        rounds_per_second=num_rounds / result.seconds if result.seconds > 0 else None,
    )


def _make_table(arms: int, rounds: int, dtype: str, rows: list[Row], answering: list[str]) -> Table:
    captions = [
        f"mean with 95% interval, {_over_what(rows)}",
        "bound: Theorem 1, its proof corrected; rounds/s: of one thread, without compiling",
    ]
    if answering:
        captions.append(f"{', '.join(answering)}: external regret, on the losses that came")
    if any(row.doubtful for row in rows):
        captions.append("†: doubtful, the interval may cover less; few games or heavy tails")
    table = Table(
        title=f"Regret after {rounds:,} rounds, {arms} arms ({dtype})",
        caption="\n".join(captions),
        box=box.SIMPLE_HEAD,
        pad_edge=False,
        padding=(0, 1, 0, 0),
    )
    for heading in ("losses", "scale", "strategy"):
        table.add_column(heading, no_wrap=True)
    for heading in ("mean regret", "bound", "rounds/s"):
        table.add_column(heading, justify="right", no_wrap=True)
    for row in rows:
        table.add_row(*_format_row(row))
    return table


def _over_what(rows: list[Row]) -> str:
    """Return over what the means are, by family where families differ."""
    families: dict[int, list[str]] = {}
    for row in rows:
        families.setdefault(row.sequences, []).append(row.losses)
    words = []
    for number, names in families.items():
        over = "given this sequence" if number == 1 else f"over {number:,} sequences"
        words.append(f"{', '.join(dict.fromkeys(names))} {over}" if len(families) > 1 else over)
    return "; ".join(words)


def _format_row(row: Row) -> tuple[str, ...]:
    speed = row.rounds_per_second
    return (
        row.losses,
        f"{row.scale:g}",
        row.strategy,
        _format_regret(row),
        "" if row.bound is None else f"{row.bound:.3g}",
        "" if speed is None else f"{speed / 1e6:.1f} M" if speed >= 1e6 else f"{speed:,.0f}",
    )


def _format_regret(row: Row) -> str:
    if row.low == row.high:
        return f"{row.regret:.4g} in every game"
    if row.games == 1:
        return f"{row.regret:.4g} in one game"
    half = float(f"{(row.high - row.low) / 2:.2g}")
    return f"{row.regret:.4g} ± {half:.4g}{'†' * row.doubtful}"
