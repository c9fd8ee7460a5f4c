"""`sfmab run`: play strategies on loss sequences, print a table and draw a picture."""

import csv
import io
import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer
from rich import box
from rich.console import Console
from rich.table import Table

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
    say,
    split_names,
)

__all__ = ["RUN_EPILOG", "run"]

RUN_EPILOG = """
Examples:

`sfmab run` plays both exploration options on three sequences at three scales.

`sfmab run --losses sparse --rounds 100000 --seeds 4096 --exploration adaptive`

`sfmab run --strategies scale_free,ahb,tsallis_inf --losses bernoulli,switching --scales 1`

`sfmab run --arms 50 --scales 1e-6,1,1e6 --dtype float64 --output wide.png`
"""


def run(
    arms: Annotated[int, count_option("Number of arms n.")] = 10,
    rounds: Annotated[int, count_option("Number of rounds T.")] = 10_000,
    seeds: Annotated[int, count_option("Independent games of each strategy.")] = 512,
    seed: Annotated[int, count_option("Seed of the losses and the games.")] = 0,
    losses: Annotated[
        str, typer.Option(help="Loss families, separated by commas; see `sfmab list losses`.")
    ] = "uniform,gaussian,sparse",
    strategies: Annotated[
        str, typer.Option(help="Strategies, separated by commas; see `sfmab list strategies`.")
    ] = "scale_free",
    exploration: Annotated[
        str, typer.Option(help="Of scale_free: adaptive, decaying or both.")
    ] = "both",
    scales: Annotated[
        str, typer.Option(help="Factors on the losses, separated by commas.")
    ] = "0.01,1,100",
    dtype: Annotated[str, typer.Option(help="float32 or float64.")] = "float32",
    devices: Annotated[
        int | None,
        count_option("Number of devices; a CPU is split into that many."),
    ] = None,
    output: Annotated[
        Path, typer.Option(help="Picture to write; the table goes beside it as .csv.")
    ] = Path("sfmab_run.png"),
    coordinator: Coordinator = None,
    num_processes: NumProcesses = None,
    process_id: ProcessId = None,
) -> None:
    """Play strategies on loss sequences; report their regret with intervals and bounds.

    Several processes share the games through a folder beside the output.
    """
    import sfmab_jax as sf
    from sfmab_jax.study.hosts import join

    configure_jax(dtype, devices)
    process = join(coordinator, num_processes, process_id)
    families = choose_several("losses", losses, sf.losses.LOSSES)
    factories = choose_several("strategies", strategies, sf.strategies.STRATEGIES)
    factors = [parse_number("scales", text) for text in split_names("scales", scales)]
    bandits = make_bandits(factories, exploration, rounds)
    check_picture(output)
    _check_losses(families, factors, arms, rounds, dtype)
    console = Console()
    cells: dict[tuple[str, str], Any] = {}
    table = _make_table(arms, rounds, seeds, dtype)
    rows = []
    settings: dict[str, Any] = {
        "arms": arms,
        "rounds": rounds,
        "seeds": seeds,
        "seed": seed,
        "dtype": dtype,
    }
    if process.total == 1:
        sequences = _play_alone(bandits, families, factors, **settings)
    else:
        from sfmab_jax.study.shared_run import play_shared

        folder = output.with_name(f"{output.stem}_blocks")
        sequences = play_shared(process, folder, bandits, families, factors, say, settings)
    for family, scale, results, speed in sequences:
        cells[family, f"{scale:g}"] = results
        for name, (_, option) in bandits.items():
            bound = None
            if option is not None:
                bounds = sf.bounds.scale_free(results[name].norms, option)
                bound = bounds.corrected[:, -1].mean()
            rows.append(_make_row(family, scale, name, results[name], bound, speed))
            table.add_row(*_format_row(rows[-1]))
    if process.number > 0:
        return
    console.print(table)
    _write_csv(output.with_suffix(".csv"), rows)
    save_picture(sf.plotting.grid(cells), output)
    console.print(f"Wrote {output} and {output.with_suffix('.csv')}")


def _check_losses(families, factors, arms: int, rounds: int, dtype: str) -> None:
    """Check all losses before the first is played, so that no later one stops the run."""
    import numpy as np

    from sfmab_jax.checks import horizon_argument
    from sfmab_jax.engine.validate import unit_of_losses

    for make, scale in itertools.product(families.values(), factors):
        sequence = make(num_arms=arms, scale=scale, **horizon_argument(make, rounds))
        unit_of_losses(sequence.magnitude, np.dtype(dtype))


def _play_alone(
    bandits, families, scales, *, arms: int, rounds: int, seeds: int, seed: int, dtype: str
) -> Iterator[tuple[str, float, Any, float | None]]:
    """Yield (family, scale, results, rounds per second) of each loss sequence."""
    import sfmab_jax as sf
    from sfmab_jax.checks import horizon_argument

    for (family, make), scale in itertools.product(families.items(), scales):
        results: Any = sf.simulate(
            {name: bandit for name, (bandit, _) in bandits.items()},
            make(num_arms=arms, scale=scale, **horizon_argument(make, rounds)),
            num_rounds=rounds,
            num_seeds=seeds,
            seed=seed,
            dtype=dtype,
        )
        speed = len(bandits) * rounds * seeds / next(iter(results.values())).seconds
        say(f"{family} at scale {scale:g}: done")
        yield family, scale, results, speed


COLUMNS = ("losses", "scale", "strategy", "regret", "low", "high", "bound", "rounds_per_second")


def _make_row(family, scale, name, result, bound, speed) -> tuple:
    low, high = (side[0, -1] for side in result.interval(0.95))
    return (family, scale, name, result.mean()[0, -1], low, high, bound, speed)


def _make_table(arms, rounds, seeds, dtype) -> Table:
    table = Table(
        title=f"Regret after {rounds:,} rounds, {arms} arms, {seeds:,} seeds ({dtype})",
        caption="mean with 95% interval; bound: Theorem 1, its proof corrected; rounds/s: with "
        "compiling",
        box=box.SIMPLE_HEAD,
        pad_edge=False,
        padding=(0, 1, 0, 0),
    )
    for heading in ("losses", "scale", "strategy"):
        table.add_column(heading, no_wrap=True)
    for heading in ("mean regret", "bound", "rounds/s"):
        table.add_column(heading, justify="right", no_wrap=True)
    return table


def _format_row(row: tuple) -> tuple[str, ...]:
    family, scale, name, regret, low, high, bound, speed = row
    return (
        family,
        f"{scale:g}",
        name,
        f"{regret:.4g} ± {(high - low) / 2:.2g}",
        "" if bound is None else f"{bound:.3g}",
        "" if speed is None else f"{speed / 1e6:.1f} M" if speed >= 1e6 else f"{speed:,.0f}",
    )


def _write_csv(path: Path, rows: list[tuple]) -> None:
    from sfmab_jax.results.files import write_atomically

    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(COLUMNS)
    writer.writerows(rows)
    write_atomically(path, lambda file: file.write(text.getvalue().encode()))
