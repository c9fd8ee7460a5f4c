"""`sfmab plan`: what a study will cost on this machine, or on one that is described."""

import re
from typing import Annotated

import typer

from sfmab_jax.study.commands import File, Quick, say, use_dtype

__all__ = ["plan"]

_BYTES = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4}
_ARMS = 10  # of the speed that is given


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
    """Plans a study: blocks, time, memory and files on this machine or a described one."""
    from sfmab_jax.study.calibration import measured
    from sfmab_jax.study.config import read_study
    from sfmab_jax.study.cost import cost_of, this_machine
    from sfmab_jax.study.display import duration, size
    from sfmab_jax.study.plan import plan_cells

    if devices is not None and not 1 <= devices <= 10**6:
        raise ValueError(f"--devices is {devices}; give an integer from 1 to 1000000")
    if rounds_per_second is not None and not 0 < rounds_per_second < 1e18:
        raise ValueError(f"--rounds-per-second is {rounds_per_second}; give a number above 0")
    room = None if memory is None else _bytes(memory)
    study = read_study(file, quick)
    use_dtype(study.dtype)
    cells = plan_cells(study)
    machine = this_machine()
    if rounds_per_second is None:
        machine = measured(machine, cells, say)
    else:
        machine = machine._replace(vectors=1, speed=rounds_per_second * (_ARMS + 5))
    machine = machine._replace(devices=devices or machine.devices, memory=room or machine.memory)
    cost = cost_of(cells, study.seeds, machine)
    played = cost.num_rounds / (cost.computing * machine.devices)
    print(f"{study.title}: {cost.num_cells:,} cells, {cost.num_rounds:,} rounds of games")
    print(
        f"machine   {machine.devices:,} devices of {size(machine.memory)}, "
        f"{played / 1e6:.3g} million rounds per second each on this study"
    )
    print(
        f"blocks    {cost.num_blocks:,}, {cost.num_blocks / machine.devices:.3g} for a device, "
        f"in {cost.num_spans:,} spans of rounds"
    )
    print(f"time      {duration(cost.seconds)}:")
    print(
        f"          computing {duration(cost.computing)}, waiting for the last device "
        f"{duration(cost.waiting)}, compiling {duration(cost.compiling)}, "
        f"writing {duration(cost.writing)}"
    )
    print(f"memory    {size(cost.device_memory)} on a device, {size(cost.host_memory)} beside it")
    print(f"files     {cost.num_files:,}, {size(cost.disk)}")
    print(f"limit     {cost.bottleneck}")


def _bytes(text: str) -> float:
    """The number of bytes in "80GB", "24 GiB" or "8e9"."""
    match = re.fullmatch(r"\s*([0-9.]+(?:e[0-9]+)?)\s*([kmgt]?)(i?)b?\s*", text.lower())
    try:
        assert match is not None
        number = float(match[1]) * (1024 if match[3] else 1000) ** _BYTES[match[2]]
        assert number > 0
    except (AssertionError, ValueError):
        raise ValueError(f"--memory is {text!r}; give a size, as 80GB") from None
    return number
