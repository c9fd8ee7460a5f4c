"""`sfmab study new | check | run | report`."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from sfmab_jax.cli.options import (
    Coordinator,
    File,
    NumProcesses,
    ProcessId,
    Quick,
    configure_jax,
    exit_on_interrupt,
    say,
)

__all__ = ["app"]

app = typer.Typer(
    name="study",
    help="Studies: from a file to a report, without losing work.",
    no_args_is_help=True,
    rich_markup_mode="markdown",
)

RUN_EPILOG = """
Examples:

`sfmab study run paper_claims --quick --output claims` plays a ready study in its quick form.

`sfmab study run my_study.toml` plays your own; after an interruption the same command continues.
"""


@app.command()
def new(file: Annotated[Path, typer.Argument(help="The file to write.")]) -> None:
    """Write a commented study file to start from."""
    from sfmab_jax.study.config import EXAMPLES
    from sfmab_jax.study.store import write_durably

    if file.exists():
        raise ValueError(f"{file} exists already; give another name")
    if not file.parent.is_dir():
        raise ValueError(f"{file}: the folder {file.parent} does not exist")
    text = (EXAMPLES / "template" / "study.toml").read_bytes()
    write_durably(file, lambda opened: opened.write(text))
    print(f"Wrote {file}; see its cells with: sfmab study check {file}")


@app.command()
def check(file: File, quick: Quick = False) -> None:
    """Show the cells of a study, their rounds, and roughly what they will cost."""
    from sfmab_jax.study.blocks import cut_into_blocks
    from sfmab_jax.study.cells import plan_cells
    from sfmab_jax.study.config import read_study
    from sfmab_jax.study.cost import cost_of, this_machine
    from sfmab_jax.study.display import describe_games, format_duration, format_size

    study = read_study(file, quick)
    cells = plan_cells(study)
    rows = [("strategy", "losses", "n", "T", "scale", "blocks", "rounds", "cell")]
    for cell in cells:
        blocks = cut_into_blocks(cell, study.seeds)
        rounds = sum(block.num_rounds for block in blocks)
        numbers = (str(cell.num_arms), f"{cell.num_rounds:,}", f"{cell.scale:g}", str(len(blocks)))
        rows.append((cell.strategy, cell.losses, *numbers, f"{rounds:,}", cell.identity))
    print(f"{study.title}\n\n{_align(rows)}\n")
    cost = cost_of(cells, study.seeds, this_machine())
    print(f"{len(cells)} cells, {describe_games(study.seeds, study.sequences)}, {study.dtype}")
    time = format_duration(cost.seconds)
    memory = format_size(cost.device_memory + cost.host_memory)
    print(f"{cost.num_rounds:,} rounds of games, about {time} on this machine")
    print(f"about {memory} of memory and {format_size(cost.disk)} of disk; see also: sfmab plan")


def _align(rows: Sequence[tuple[str, ...]]) -> str:
    """Return rows of words, numbers and a last word as lines, with a rule below the first."""
    widths = [max(map(len, column)) for column in zip(*rows)]
    lines = []
    for row in (rows[0], tuple("-" * width for width in widths), *rows[1:]):
        words = [w.ljust(n) for w, n in zip(row[:2], widths)]
        numbers = [w.rjust(n) for w, n in zip(row[2:-1], widths[2:])]
        lines.append("  ".join([*words, *numbers, row[-1]]))
    return "\n".join(lines)


@app.command(epilog=RUN_EPILOG)
def run(
    file: File,
    output: Annotated[
        Path | None, typer.Option(help="Folder for the results; by default what the file says.")
    ] = None,
    quick: Quick = False,
    coordinator: Coordinator = None,
    num_processes: NumProcesses = None,
    process_id: ProcessId = None,
) -> None:
    """Play what is missing of a study; after a stop the same command continues."""
    from sfmab_jax.study.config import read_study
    from sfmab_jax.study.hosts import join
    from sfmab_jax.study.runner import run_study

    study = read_study(file, quick)
    configure_jax(study.dtype)
    process = join(coordinator, num_processes, process_id)
    folder = output or Path((study.output or Path(study.source).stem) + "_quick" * quick)
    with exit_on_interrupt():
        num_blocks = run_study(study, folder, say=say, show=None, process=process)
    if process.number > 0:
        print(f"process {process.number} of {process.total}: {num_blocks} blocks played")
        return
    print(f"{num_blocks} blocks played; {folder} has all of the study")
    print(f"Its report: sfmab study report {folder}")


@app.command()
def report(folder: Annotated[Path, typer.Argument(help="Folder of a study.")]) -> None:
    """Write tables, figures, an HTML page and Markdown into the study's folder."""
    from sfmab_jax.study.report import write_report

    print(f"Wrote {write_report(folder)}")
