"""`sfmab plan`: what a study will cost on this machine or a described one."""

import re
from typing import Annotated

import typer

from sfmab_jax.cli.options import File, Quick, configure_jax, say

__all__ = ["plan"]

_POWERS = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4}
_ARMS = 10  # that --rounds-per-second is about


def plan(
    file: File,
    quick: Quick = False,
    devices: Annotated[
        int | None, typer.Option(metavar="N", help="Devices, each with blocks of its own.")
    ] = None,
    memory: Annotated[
        str | None, typer.Option(metavar="SIZE", help="Memory of a device, as 80GB.")
    ] = None,
    rounds_per_second: Annotated[
        float | None,
        typer.Option(
            metavar="X", help="Of a device, with 10 arms in float32; measured here if not given."
        ),
    ] = None,
) -> None:
    """Plan a study: blocks, time, memory and files on this machine or a described one."""
    from sfmab_jax.study.calibration import measure_speed
    from sfmab_jax.study.cells import plan_cells
    from sfmab_jax.study.config import read_study
    from sfmab_jax.study.cost import cost_of, this_machine
    from sfmab_jax.study.display import format_duration, format_size

    if devices is not None and not 1 <= devices <= 10**6:
        raise ValueError(f"--devices is {devices}; give an integer from 1 to 1000000")
    if rounds_per_second is not None and not 0 < rounds_per_second < 1e18:
        raise ValueError(f"--rounds-per-second is {rounds_per_second}; give a number above 0")
    memory_bytes = None if memory is None else _parse_bytes(memory)
    study = read_study(file, quick)
    configure_jax(study.dtype)
    cells = plan_cells(study)
    machine = this_machine()
    if rounds_per_second is None:
        machine = measure_speed(machine, cells, study.seeds, say)
    else:
        machine = machine._replace(vectors=1, speed=rounds_per_second * (_ARMS + 5))
    machine = machine._replace(
        devices=devices or machine.devices, memory=memory_bytes or machine.memory
    )
    cost = cost_of(cells, study.seeds, machine)
    speed = cost.num_rounds / (cost.computing * machine.devices)
    print(f"{study.title}: {cost.num_cells:,} cells, {cost.num_rounds:,} rounds of games")
    print(
        f"machine   {machine.devices:,} devices of {format_size(machine.memory)}, "
        f"{speed / 1e6:.3g} million rounds per second each on this study"
    )
    print(
        f"blocks    {cost.num_blocks:,}, {cost.num_blocks / machine.devices:.3g} for a device, "
        f"in {cost.num_spans:,} spans of rounds"
    )
    print(f"time      {format_duration(cost.seconds)}:")
    print(
        f"          computing {format_duration(cost.computing)}, waiting for the last device "
        f"{format_duration(cost.waiting)}, compiling {format_duration(cost.compiling)}, "
        f"writing {format_duration(cost.writing)}"
    )
    print(
        f"memory    {format_size(cost.device_memory)} on a device, "
        f"{format_size(cost.host_memory)} beside it"
    )
    print(f"files     {cost.num_files:,}, {format_size(cost.disk)}")
    print(f"limit     {cost.bottleneck}")


def _parse_bytes(text: str) -> float:
    """Return the number of bytes in "80GB", "24 GiB" or "8e9"."""
    pattern = r"\s*((?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:e[0-9]+)?)\s*([kmgt]?)(i?)b?\s*"
    match = re.fullmatch(pattern, text.lower())
    number = float(match[1]) * (1024 if match[3] else 1000) ** _POWERS[match[2]] if match else 0.0
    if number <= 0:
        raise ValueError(f"--memory is {text!r}; give a size, as 80GB")
    return number
