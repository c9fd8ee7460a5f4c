"""`sfmab study new | check | run | report`."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer
from rich import box
from rich.console import Console
from rich.table import Table

__all__ = ["app"]

app = typer.Typer(
    name="study",
    help="Studies: from a file to a report, without losing work.",
    no_args_is_help=True,
    rich_markup_mode="markdown",
)

File = Annotated[str, typer.Argument(help="A study file, or the name of a ready study.")]
Quick = Annotated[bool, typer.Option("--quick", help="The quick form: [quick] in the file.")]

Coordinator = Annotated[
    str | None,
    typer.Option(metavar="HOST:PORT", help="Of several processes: where process 0 is."),
]
NumProcesses = Annotated[
    int | None,
    typer.Option(metavar="N", help="How many there are. SLURM and others tell by themselves."),
]
ProcessId = Annotated[int | None, typer.Option(metavar="N", help="Which this one is, from 0 on.")]

RUN_EPILOG = """
Examples:

`sfmab study run paper_claims --quick --output claims` plays a ready study in its quick form.

`sfmab study run my_study.toml` plays your own; after an interruption the same command continues.
"""


@app.command()
def new(file: Annotated[Path, typer.Argument(help="The file to write.")]) -> None:
    """Writes a commented study file to start from."""
    from sfmab_jax.study.config import EXAMPLES
    from sfmab_jax.study.store import write_durably

    if file.exists():
        raise ValueError(f"{file} is there already; give another name")
    if not file.parent.is_dir():
        raise ValueError(f"{file}: the folder {file.parent} does not exist")
    text = (EXAMPLES / "template" / "study.toml").read_bytes()
    write_durably(file, lambda opened: opened.write(text))
    print(f"Wrote {file}; see its plan with: sfmab study check {file}")


@app.command()
def check(file: File, quick: Quick = False) -> None:
    """Shows the plan of a study: its cells, rounds, and what they will cost, roughly."""
    from sfmab_jax.study.blocks import blocks
    from sfmab_jax.study.config import read_study
    from sfmab_jax.study.cost import cost_of, this_machine
    from sfmab_jax.study.display import duration, size
    from sfmab_jax.study.plan import plan_cells

    study = read_study(file, quick)
    cells = plan_cells(study)
    table = Table(title=study.title, box=box.SIMPLE_HEAD, pad_edge=False)
    for heading in ("strategy", "losses", "n", "T", "scale", "blocks", "rounds", "cell"):
        words = heading in ("strategy", "losses", "cell")
        table.add_column(heading, justify="left" if words else "right", no_wrap=True)
    for cell in cells:
        mine = blocks(cell, study.seeds)
        rounds = sum(block.num_rounds for block in mine)
        numbers = (cell.num_arms, f"{cell.num_rounds:,}", f"{cell.scale:g}", len(mine))
        labels = (cell.strategy, cell.losses, *map(str, numbers), f"{rounds:,}", cell.identity)
        table.add_row(*labels)
    Console().print(table)
    cost = cost_of(cells, study.seeds, this_machine())
    print(
        f"{len(cells)} cells, {study.seeds:,} seeds, {study.sequences:,} sequences, {study.dtype}"
    )
    print(f"{cost.num_rounds:,} rounds of games, about {duration(cost.seconds)} on this machine")
    memory = cost.device_memory + cost.host_memory
    print(f"about {size(memory)} of memory and {size(cost.disk)} of disk; see also: sfmab plan")


@app.command(epilog=RUN_EPILOG)
def run(
    file: File,
    output: Annotated[
        Path | None, typer.Option(help="Folder for the results; by default as the file says.")
    ] = None,
    quick: Quick = False,
    coordinator: Coordinator = None,
    num_processes: NumProcesses = None,
    process_id: ProcessId = None,
) -> None:
    """Plays a study, or what is not yet there of it. Stopped, it continues where it was."""
    from sfmab_jax.hosts import join
    from sfmab_jax.study.config import read_study

    study = read_study(file, quick)
    use_dtype(study.dtype)
    process = join(coordinator, num_processes, process_id)
    from sfmab_jax.study.runner import run_study

    folder = output or Path((study.output or Path(study.source).stem) + "_quick" * quick)
    with said_when_stopped():
        played = run_study(study, folder, say=say, show=None, process=process)
    if process.number > 0:
        print(f"process {process.number} of {process.total}: {played} blocks played")
        return
    print(f"{played} blocks played; {folder} has all of the study")
    print(f"Its report: sfmab study report {folder}")


@app.command()
def report(folder: Annotated[Path, typer.Argument(help="Folder of a study.")]) -> None:
    """Writes tables, figures, an HTML page and Markdown into the study's folder."""
    from sfmab_jax.study.report import write_report

    print(f"Wrote {write_report(folder)}")


def say(line: str) -> None:
    print(line, file=sys.stderr)


@contextmanager
def said_when_stopped() -> Iterator[None]:
    """Says what Ctrl-C stopped; some versions of Typer would end without a word."""
    try:
        yield
    except KeyboardInterrupt as stopped:
        say(f"sfmab: {str(stopped) or 'stopped'}")
        raise typer.Exit(130) from None


def use_dtype(dtype: str) -> None:
    import jax

    if dtype == "float64":
        jax.config.update("jax_enable_x64", True)
