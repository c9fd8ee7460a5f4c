"""`sfmab losses`: describe, measure and draw one loss family."""

import inspect
import re
from pathlib import Path
from typing import Annotated

import typer
from rich import box
from rich.console import Console
from rich.table import Table

from sfmab_jax.cli.options import check_picture, choose, count_option, save_picture

__all__ = ["LOSSES_EPILOG", "losses"]

LOSSES_EPILOG = """
Examples:

`sfmab losses sparse` measures how hard the sequence is.

`sfmab losses switching --arms 5 --rounds 20000 --plot` also draws it to losses.png.
"""


def losses(
    name: Annotated[str, typer.Argument(help="A loss family; see `sfmab list losses`.")],
    arms: Annotated[int, count_option("Number of arms n.")] = 10,
    rounds: Annotated[int, count_option("Number of rounds T.")] = 10_000,
    seed: Annotated[int, count_option("Seed of the sequence.")] = 0,
    scale: Annotated[float, typer.Option(help="Factor on the losses.")] = 1.0,
    plot: Annotated[bool, typer.Option("--plot", help="Draw the sequence.")] = False,
    output: Annotated[Path, typer.Option(help="Picture that --plot writes.")] = Path("losses.png"),
) -> None:
    """Describe a loss family, measure one of its sequences and draw it."""
    import sfmab_jax as sf
    from sfmab_jax.checks import horizon_argument

    make = choose("losses", name, sf.losses.LOSSES)
    if plot:
        check_picture(output)
    sequence = make(num_arms=arms, scale=scale, **horizon_argument(make, rounds))
    measured = sf.hardness(sequence, num_rounds=rounds, seed=seed)
    text, _, _ = inspect.cleandoc(make.__doc__ or "").partition(">>>")  # without the doctest
    print(f"{name}: {text.strip()}\n")
    table = Table(
        title=f"{name}, {arms} arms, {rounds:,} rounds, seed {seed}",
        box=box.SIMPLE_HEAD,
        pad_edge=False,
    )
    table.add_column("measure", no_wrap=True)
    table.add_column("", justify="right", no_wrap=True)
    table.add_column("what it is")
    explanations = dict(re.findall(r"(?m)^ +(\w+): (.*)\.$", sf.Hardness.__doc__ or ""))
    for label, values in measured._asdict().items():
        table.add_row(label, f"{values[0]:.6g}", explanations[label])
    Console().print(table)
    if plot:
        save_picture(sf.plotting.losses(sequence, num_rounds=rounds, seed=seed), output)
        print(f"Wrote {output}")
