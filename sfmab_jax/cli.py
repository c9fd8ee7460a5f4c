"""The command line: `sfmab run`, `study`, `plan`, `losses`, `verify`, `bench` and `list`."""

import csv
import inspect
import io
import itertools
import sys
from collections.abc import Iterable, Iterator, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any

import typer
from rich import box
from rich.console import Console
from rich.table import Table

from sfmab_jax.study.commands import Coordinator, NumProcesses, ProcessId, said_when_stopped, say
from sfmab_jax.study.commands import app as study_app
from sfmab_jax.study.plan_command import plan

__all__ = ["app", "main"]

app = typer.Typer(
    name="sfmab",
    help="Study scale-free adversarial bandits: simulate strategies and compare their regret.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
)
app.add_typer(study_app)
app.command()(plan)

RUN_EPILOG = """
Examples:

`sfmab run` plays both exploration options on three sequences at three scales.

`sfmab run --losses sparse --rounds 100000 --seeds 4096 --exploration adaptive`

`sfmab run --strategies scale_free,ahb,tsallis_inf --losses bernoulli,switching --scales 1`

`sfmab run --arms 50 --scales 1e-6,1,1e6 --dtype float64 --output wide.png`
"""


def _integer(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise typer.BadParameter(f"{text!r} is not an integer") from None


@app.callback()
def _commands() -> None:
    """Study scale-free adversarial bandits: simulate strategies and compare their regret."""


@app.command(epilog=RUN_EPILOG)
def run(
    arms: Annotated[int, typer.Option(parser=_integer, metavar="N", help="Number of arms n.")] = 10,
    rounds: Annotated[
        int, typer.Option(parser=_integer, metavar="N", help="Number of rounds T.")
    ] = 10_000,
    seeds: Annotated[
        int, typer.Option(parser=_integer, metavar="N", help="Independent games of each strategy.")
    ] = 512,
    seed: Annotated[
        int, typer.Option(parser=_integer, metavar="N", help="Names the run: losses and games.")
    ] = 0,
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
        typer.Option(
            parser=_integer, metavar="N", help="Devices to use; on CPU that many are made."
        ),
    ] = None,
    output: Annotated[
        Path, typer.Option(help="Picture to write; the table goes beside it as .csv.")
    ] = Path("sfmab_run.png"),
    coordinator: Coordinator = None,
    num_processes: NumProcesses = None,
    process_id: ProcessId = None,
) -> None:
    """Plays strategies on loss sequences and reports their regret with intervals and bounds.

    Several processes share the games through a folder beside the output.
    """
    _configure(dtype, devices)
    from sfmab_jax.hosts import join

    process = join(coordinator, num_processes, process_id)
    import sfmab_jax as sf

    families = _choices("losses", losses, sf.losses.LOSSES)
    chosen = _choices("strategies", strategies, sf.strategies.STRATEGIES)
    factors = [_number("scales", text) for text in _split("scales", scales)]
    bandits = dict(_bandits(chosen, exploration, rounds))
    _check_output(output)
    console = Console()
    cells: dict[tuple[str, str], Any] = {}
    table = _new_table(arms, rounds, seeds, dtype)
    rows = []
    settings: dict[str, Any] = {
        "arms": arms,
        "rounds": rounds,
        "seeds": seeds,
        "seed": seed,
        "dtype": dtype,
    }
    if process.total == 1:
        played = _play_alone(bandits, families, factors, **settings)
    else:
        from sfmab_jax.study.shared_run import play_together

        folder = output.with_name(f"{output.stem}_blocks")
        played = play_together(process, folder, bandits, families, factors, say, settings)
    for family, scale, results, speed in played:
        cells[family, f"{scale:g}"] = results
        for name, (_, option) in bandits.items():
            bound = None
            if option is not None:
                bound = sf.bounds.scale_free(results[name].norms, option).printed[0, -1]
            rows.append(_row(family, scale, name, results[name], bound, speed))
            table.add_row(*_readable(rows[-1]))
    if process.number > 0:
        return
    console.print(table)
    _write_csv(output.with_suffix(".csv"), rows)
    _draw(output, cells)
    console.print(f"Wrote {output} and {output.with_suffix('.csv')}")


@app.command()
def verify(
    effort: Annotated[
        int, typer.Option(parser=_integer, metavar="N", help="Multiplies the inputs tried.")
    ] = 4,
    quick: Annotated[bool, typer.Option("--quick", help="Under 30 s: effort 1, float32.")] = False,
    dtype: Annotated[
        str | None, typer.Option(help="float32, float64 or both; both unless --quick.")
    ] = None,
    seed: Annotated[
        int, typer.Option(parser=_integer, metavar="N", help="Of the random inputs.")
    ] = 0,
) -> None:
    """Tries every claim of the paper on numbers; exit code 1 if one fails. A self-test, too."""
    wanted = dtype or ("float32" if quick else "both")
    _configure("float64" if wanted == "both" else wanted, None)
    # Both sides of a claim are compared in float64, whatever precision computes them.
    _configure("float64", None)
    from sfmab_jax.theory import verify as verification

    dtypes = ("float32", "float64") if wanted == "both" else (wanted,)
    report = verification.verify(dtypes, 1 if quick else effort, seed)
    console = Console()
    console.print(verification.claims_table(report))
    console.print(verification.slips_table(report))
    if not report.green:
        print("sfmab: a claim failed; see FAILS in the table", file=sys.stderr)
        raise typer.Exit(1)


@app.command()
def bench(
    arms: Annotated[int, typer.Option(parser=_integer, metavar="N", help="Number of arms n.")] = 10,
    rounds: Annotated[
        int, typer.Option(parser=_integer, metavar="N", help="Number of rounds T.")
    ] = 1000,
    seeds: Annotated[
        int, typer.Option(parser=_integer, metavar="N", help="Games in each run, at least 2.")
    ] = 4096,
    repeats: Annotated[
        int, typer.Option(parser=_integer, metavar="N", help="Turns that each program takes.")
    ] = 5,
) -> None:
    """Times the engine against the obvious JAX program, in turns, in a minute or less."""
    from sfmab_jax import bench as benchmark

    print(benchmark.report(arms, benchmark.short_form(arms, rounds, seeds, repeats)))


@app.command("list")
def list_(
    what: Annotated[str, typer.Argument(help="strategies, losses or all.")] = "all",
) -> None:
    """Lists the strategies and loss families with one line each."""
    from sfmab_jax import losses, strategies

    tables: dict[str, dict[str, Any]] = {
        "strategies": strategies.STRATEGIES,
        "losses": losses.LOSSES,
    }
    if what not in (*tables, "all"):
        raise ValueError(f"cannot list {what!r}; choose strategies, losses or all")
    for title, members in tables.items():
        if what in (title, "all"):
            print(title)
            width = max(map(len, members))
            for name, factory in members.items():
                print(f"  {name:<{width}} {(factory.__doc__ or '').splitlines()[0]}")


LOSSES_EPILOG = """
Examples:

`sfmab losses sparse` measures how hard the sequence is.

`sfmab losses switching --arms 5 --rounds 20000 --plot` also draws it to losses.png.
"""


@app.command("losses", epilog=LOSSES_EPILOG)
def losses_(
    name: Annotated[str, typer.Argument(help="A loss family; see `sfmab list losses`.")],
    arms: Annotated[int, typer.Option(parser=_integer, metavar="N", help="Number of arms n.")] = 10,
    rounds: Annotated[
        int, typer.Option(parser=_integer, metavar="N", help="Number of rounds T.")
    ] = 10_000,
    seed: Annotated[
        int, typer.Option(parser=_integer, metavar="N", help="Names the sequence.")
    ] = 0,
    scale: Annotated[float, typer.Option(help="Factor on the losses.")] = 1.0,
    plot: Annotated[bool, typer.Option("--plot", help="Draw the sequence.")] = False,
    output: Annotated[Path, typer.Option(help="Picture that --plot writes.")] = Path("losses.png"),
) -> None:
    """Describes a loss family, measures one of its sequences and draws it."""
    import sfmab_jax as sf
    from sfmab_jax.base import told_rounds

    ((_, make),) = _choices("losses", name, sf.losses.LOSSES).items()
    if plot:
        _check_output(output)
    sequence = make(num_arms=arms, scale=scale, **told_rounds(make, rounds))
    measured = sf.hardness(sequence, num_rounds=rounds, seed=seed)
    print(f"{name}: {inspect.getdoc(make)}\n")
    table = Table(
        title=f"{name}, {arms} arms, {rounds:,} rounds, seed {seed}",
        box=box.SIMPLE_HEAD,
        pad_edge=False,
    )
    table.add_column("measure")
    table.add_column("", justify="right")
    for label, values in measured._asdict().items():
        table.add_row(label.replace("_", " "), f"{values[0]:.6g}")
    Console().print(table)
    if plot:
        _save(sf.plotting.losses(sequence, num_rounds=rounds, seed=seed), output)
        print(f"Wrote {output}")


def main(arguments: list[str] | None = None) -> None:
    """The console command. Bad usage is one line on stderr and exit code 2."""
    # Typer's own errors, whichever copy of Click they come from.
    usage_error: Any = next(c for c in typer.BadParameter.__mro__ if c.__name__ == "ClickException")
    try:
        code = app(arguments, standalone_mode=False)
    except usage_error as error:
        _fail(error.format_message(), 2)
    except ValueError as error:
        _fail(str(error), 2)
    except (KeyboardInterrupt, typer.Abort) as error:
        # Typer puts its own exception in front of the one that says what was done.
        _fail(str(error) or str(error.__cause__ or "") or "stopped", 130)
    except OSError as error:
        _fail(str(error), 1)
    sys.exit(code if isinstance(code, int) else 0)


def _fail(message: str, code: int) -> None:
    if message:  # none where the help was shown instead
        print(f"sfmab: {' '.join(message.split())}", file=sys.stderr)
    sys.exit(code)


def _configure(dtype: str, devices: int | None) -> None:
    """What must be told to JAX before it starts."""
    import jax

    if dtype not in ("float32", "float64"):
        raise ValueError(f"--dtype is {dtype!r}; choose float32 or float64")
    if dtype == "float64":
        jax.config.update("jax_enable_x64", True)
    if devices is not None:
        if not 1 <= devices <= 1024:
            raise ValueError(f"--devices is {devices}; give an integer from 1 to 1024")
        jax.config.update("jax_num_cpu_devices", devices)


def _split(option: str, text: str) -> list[str]:
    names = [name.strip() for name in text.split(",") if name.strip()]
    if not names:
        raise ValueError(f"--{option} is empty; give at least one, separated by commas")
    return list(dict.fromkeys(names))


def _choices(option: str, text: str, known: Mapping[str, Any]) -> dict[str, Any]:
    chosen = {}
    for name in _split(option, text):
        if name not in known:
            near = get_close_matches(name, known, n=1)
            hint = f"did you mean {near[0]}?" if near else f"known: {', '.join(known)}"
            raise ValueError(f"--{option} has no {name!r}; {hint}")
        chosen[name] = known[name]
    return chosen


def _number(option: str, text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise ValueError(f"--{option} has {text!r}; give numbers separated by commas") from None


def _bandits(chosen: dict[str, Any], exploration: str, rounds: int) -> Iterable[tuple[str, tuple]]:
    """Names with bandits; scale_free once for each exploration option asked for."""
    from sfmab_jax.base import told_rounds

    options = ("adaptive", "decaying") if exploration == "both" else (exploration,)
    for name, make in chosen.items():
        if name == "scale_free":
            for option in options:
                yield f"{name} {option}", (make(exploration=option), option)
        else:
            yield name, (make(**told_rounds(make, rounds)), None)


def _play_alone(
    bandits, families, scales, *, arms: int, rounds: int, seeds: int, seed: int, dtype: str
) -> Iterator[tuple[str, float, Any, float | None]]:
    """(Family, scale, results, rounds per second) of each loss sequence."""
    import sfmab_jax as sf
    from sfmab_jax.base import told_rounds

    for (family, make), scale in itertools.product(families.items(), scales):
        with said_when_stopped():
            results: Any = sf.simulate(
                {name: bandit for name, (bandit, _) in bandits.items()},
                make(num_arms=arms, scale=scale, **told_rounds(make, rounds)),
                num_rounds=rounds,
                num_seeds=seeds,
                seed=seed,
                dtype=dtype,
            )
        speed = len(bandits) * rounds * seeds / next(iter(results.values())).seconds
        print(f"{family} at scale {scale:g}: done", file=sys.stderr)
        yield family, scale, results, speed


def _check_output(output: Path) -> None:
    if output.suffix.lower() not in (".png", ".pdf", ".svg"):
        raise ValueError(f"--output is {output}; give a name that ends in .png, .pdf or .svg")
    if not output.parent.is_dir():
        raise ValueError(f"--output is {output}; the folder {output.parent} does not exist")


COLUMNS = ("losses", "scale", "strategy", "regret", "low", "high", "bound", "rounds_per_second")


def _row(family, scale, name, result, bound, speed) -> tuple:
    low, high = (side[0, -1] for side in result.interval(0.95))
    return (family, scale, name, result.mean()[0, -1], low, high, bound, speed)


def _new_table(arms, rounds, seeds, dtype) -> Table:
    table = Table(
        title=f"Regret after {rounds:,} rounds, {arms} arms, {seeds:,} seeds ({dtype})",
        caption="mean with 95% interval; bound: Theorem 1 of the paper, with its constants",
        box=box.SIMPLE_HEAD,
        pad_edge=False,
        padding=(0, 1, 0, 0),
    )
    for heading in ("losses", "scale", "strategy"):
        table.add_column(heading, no_wrap=True)
    for heading in ("mean regret", "bound", "rounds/s"):
        table.add_column(heading, justify="right", no_wrap=True)
    return table


def _readable(row: tuple) -> tuple[str, ...]:
    family, scale, name, regret, low, high, bound, speed = row
    return (
        family,
        f"{scale:g}",
        name,
        f"{regret:.4g} ± {(high - low) / 2:.2g}",
        "" if bound is None else f"{bound:.3g}",
        "" if speed is None else f"{speed / 1e6:.2f} M",
    )


def _write_csv(path: Path, rows: list[tuple]) -> None:
    from sfmab_jax.results import write_atomically

    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(COLUMNS)
    writer.writerows(rows)
    write_atomically(path, lambda file: file.write(text.getvalue().encode()))


def _draw(path: Path, cells: dict[tuple[str, str], Any]) -> None:
    """One panel for each loss family and scale."""
    from sfmab_jax import plotting

    _save(plotting.grid(cells), path)


def _save(figure: Any, path: Path) -> None:
    from sfmab_jax.results import write_atomically

    kind = path.suffix[1:].lower()
    write_atomically(path, lambda file: figure.savefig(file, format=kind, dpi=150))
