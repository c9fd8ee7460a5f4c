"""Options of the command line: reading them, checking them, acting on them."""

from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import typer

__all__ = [
    "check_picture",
    "choice",
    "choices",
    "configure",
    "count_option",
    "integer",
    "named_bandits",
    "number",
    "save_picture",
    "split_names",
]


def integer(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise typer.BadParameter(f"{text!r} is not an integer; write it in digits") from None


def count_option(help_text: str) -> Any:
    """A Typer option that takes an integer N."""
    return typer.Option(parser=integer, metavar="N", help=help_text)


def configure(dtype: str, devices: int | None) -> None:
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


def split_names(option: str, text: str) -> list[str]:
    names = [name.strip() for name in text.split(",") if name.strip()]
    if not names:
        raise ValueError(f"--{option} is empty; give at least one, separated by commas")
    return list(dict.fromkeys(names))


def choices(option: str, text: str, known: Mapping[str, Any]) -> dict[str, Any]:
    """Of the names separated by commas."""
    return {name: choice(f"--{option}", name, known) for name in split_names(option, text)}


def choice(whose: str, name: str, known: Mapping[str, Any]) -> Any:
    if name not in known:
        near = get_close_matches(name, known, n=1)
        hint = f"did you mean {near[0]}?" if near else f"known: {', '.join(known)}"
        raise ValueError(f"{whose}: there is no {name!r}; {hint}")
    return known[name]


def number(option: str, text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise ValueError(f"--{option} has {text!r}; give numbers separated by commas") from None


def named_bandits(
    chosen: dict[str, Any], exploration: str, rounds: int
) -> Iterable[tuple[str, tuple]]:
    """Names with bandits; scale_free once for each exploration option asked for."""
    from sfmab_jax.base import told_rounds

    options = ("adaptive", "decaying") if exploration == "both" else (exploration,)
    for name, make in chosen.items():
        if name == "scale_free":
            for option in options:
                yield f"{name} {option}", (make(exploration=option), option)
        else:
            yield name, (make(**told_rounds(make, rounds)), None)


def check_picture(output: Path) -> None:
    if output.suffix.lower() not in (".png", ".pdf", ".svg"):
        raise ValueError(f"--output is {output}; give a name that ends in .png, .pdf or .svg")
    if not output.parent.is_dir():
        raise ValueError(f"--output is {output}; the folder {output.parent} does not exist")


def save_picture(figure: Any, path: Path) -> None:
    from sfmab_jax.results import write_atomically

    kind = path.suffix[1:].lower()
    write_atomically(path, lambda file: figure.savefig(file, format=kind, dpi=150))
