"""What several commands share: options, checks of their values, messages and pictures."""

import csv
import io
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any

import typer

__all__ = [
    "Coordinator",
    "File",
    "NumProcesses",
    "ProcessId",
    "Quick",
    "StoppedError",
    "check_picture",
    "choose",
    "choose_several",
    "configure_jax",
    "count_option",
    "exit_on_interrupt",
    "make_bandits",
    "parse_number",
    "save_picture",
    "save_rows",
    "say",
    "split_names",
]

File = Annotated[str, typer.Argument(help="A study file, or the name of a ready study.")]
Quick = Annotated[bool, typer.Option("--quick", help="The quick form: [quick] in the file.")]
Coordinator = Annotated[
    str | None,
    typer.Option(metavar="HOST:PORT", help="Of several processes: where process 0 is."),
]
NumProcesses = Annotated[
    int | None,
    typer.Option(metavar="N", help="How many processes; SLURM and Open MPI say it themselves."),
]
ProcessId = Annotated[
    int | None, typer.Option(metavar="N", help="Which process this is, from 0 on.")
]


def _parse_integer(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise typer.BadParameter(f"{text!r} is not an integer; write it in digits") from None


def count_option(help_text: str) -> Any:
    """Return a Typer option that takes an integer N."""
    return typer.Option(parser=_parse_integer, metavar="N", help=help_text)


def configure_jax(dtype: str, devices: int | None = None) -> None:
    """Set the precision and the number of CPU devices, before JAX starts."""
    import jax

    if dtype not in ("float32", "float64"):
        raise ValueError(f"--dtype is {dtype!r}; choose float32 or float64")
    if dtype == "float64":
        jax.config.update("jax_enable_x64", True)
    if devices is not None:
        if not 1 <= devices <= 1024:
            raise ValueError(f"--devices is {devices}; give an integer from 1 to 1024")
        jax.config.update("jax_num_cpu_devices", devices)


def split_names(option: str, text: str) -> list[str]:
    names = [name.strip() for name in text.split(",") if name.strip()]
    if not names:
        raise ValueError(f"--{option} is empty; give at least one, separated by commas")
    return list(dict.fromkeys(names))


def choose_several(option: str, text: str, known: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the names in ``text``, separated by commas, stand for."""
    return {name: choose(f"--{option}", name, known) for name in split_names(option, text)}


def choose(option: str, name: str, known: Mapping[str, Any]) -> Any:
    if name not in known:
        near = get_close_matches(name, known, n=1)
        hint = f"did you mean {near[0]}?" if near else f"known: {', '.join(known)}"
        raise ValueError(f"{option}: there is no {name!r}; {hint}")
    return known[name]


def parse_number(option: str, text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise ValueError(f"--{option} has {text!r}; give numbers separated by commas") from None


def make_bandits(
    factories: Mapping[str, Any], exploration: str, rounds: int
) -> dict[str, tuple[Any, Any]]:
    """Return bandits by name, with the exploration option of those that have one.

    Args:
      factories: of the strategies, by name.
      exploration: "adaptive", "decaying" or "both", which makes two of scale_free.
      rounds: T, for strategies that must know it.
    """
    from sfmab_jax.checks import horizon_argument

    options = ("adaptive", "decaying") if exploration == "both" else (exploration,)
    bandits: dict[str, tuple[Any, Any]] = {}
    for name, make in factories.items():
        if name == "scale_free":
            for option in options:
                bandits[f"{name} {option}"] = make(exploration=option), option
        else:
            bandits[name] = make(**horizon_argument(make, rounds)), None
    return bandits


def check_picture(output: Path) -> None:
    if output.suffix.lower() not in (".png", ".pdf", ".svg"):
        raise ValueError(f"--output is {output}; give a name that ends in .png, .pdf or .svg")
    if not output.parent.is_dir():
        raise ValueError(f"--output is {output}; the folder {output.parent} does not exist")


def save_picture(figure: Any, path: Path) -> None:
    from sfmab_jax.results.files import write_atomically

    kind = path.suffix[1:].lower()
    write_atomically(path, lambda file: figure.savefig(file, format=kind, dpi=150))


def save_rows(path: Path, rows: Sequence[Any]) -> None:
    """Write named tuples as a CSV file with their fields as its first row."""
    from sfmab_jax.results.files import write_atomically

    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(rows[0]._fields)
    writer.writerows(rows)
    write_atomically(path, lambda file: file.write(text.getvalue().encode()))


def say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


class StoppedError(Exception):
    """Ctrl-C was met; the message says what was stopped, none that it was said already."""


@contextmanager
def exit_on_interrupt() -> Iterator[None]:
    """Tell `main` what Ctrl-C stopped; some versions of Typer would end without a word."""
    try:
        yield
    except KeyboardInterrupt as interrupt:
        raise StoppedError(str(interrupt) or "stopped") from None
