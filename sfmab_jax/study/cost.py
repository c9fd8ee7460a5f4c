"""What a study will cost on a machine: blocks, time, memory, files, and the bottleneck."""

import math
import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np

from sfmab_jax.base import Bandit
from sfmab_jax.engine.layout import (
    chunk_rounds_for,
    cpu_games_per_call,
    streamed_sequences,
    window_rounds,
)
from sfmab_jax.engine.rounds import begin_group
from sfmab_jax.engine.threads import num_cores
from sfmab_jax.results.certificate import Certificate, observe_certificates
from sfmab_jax.study.blocks import CORE_SPEED, Block, cut_into_blocks, span_rounds
from sfmab_jax.study.cells import Cell
from sfmab_jax.study.processes import share_out

__all__ = ["Cost", "Machine", "cost_of", "num_checkpoints", "this_machine"]

# Rough figures: a disk's bytes per second, the seconds to write a file durably, the bytes of an
# .npz file beside its arrays.
_DISK_SPEED = 2e8
_FILE_SECONDS = 0.01
_FILE_BYTES = 4000
_NORMS = 8  # arrays of norms in a block
# A program as JAX holds it in memory. The engine keeps those of 40 cells: one that plays, one that
# makes losses.
_PROGRAM_BYTES = 12e6
_MOST_PROGRAMS = 80


class Machine(NamedTuple):
    """Devices that play blocks, one process for each, as SLURM starts them."""

    devices: int
    vectors: int  # calls of the engine that a device plays at a time: cores of a CPU, otherwise 1
    memory: float  # bytes of a device
    speed: float  # work, as in `Block.work`, that a device does in a second
    speeds: Mapping[str, float] = {}  # the same by strategy, where measured
    compilation: float = 5.0  # seconds for a program
    overhead: float = 0.0  # seconds for a block beside its rounds


class Cost(NamedTuple):
    """What a study will cost. The four parts of ``seconds`` add up to it."""

    num_cells: int
    num_blocks: int
    num_spans: int  # of all blocks; a block has at least one
    num_rounds: int  # of all games
    seconds: float
    computing: float  # seconds of a device, if all had the same work
    waiting: float  # seconds more of the device with the most work
    compiling: float
    writing: float
    device_memory: float  # bytes
    host_memory: float  # bytes of a process, beyond what JAX itself takes
    num_files: int
    disk: int  # bytes
    bottleneck: str


def this_machine() -> Machine:
    """Return the devices of this process, with a rough figure for their speed."""
    device = jax.local_devices()[0]
    if device.platform == "cpu":
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        return Machine(1, num_cores(), memory, CORE_SPEED * num_cores())
    stats: Mapping[str, Any] = device.memory_stats() or {}
    limit = stats.get("bytes_limit", math.inf)
    return Machine(len(jax.local_devices()), 1, limit, CORE_SPEED)


def cost_of(cells: Sequence[Cell], num_seeds: int, machine: Machine) -> Cost:
    """Return what cells will cost: counts are exact, times are work divided by speed."""
    blocks = [block for cell in cells for block in cut_into_blocks(cell, num_seeds)]
    loads = [_load(share, machine) for share in share_out(blocks, machine.devices)]
    # Of the device that ends last.
    computing, num_programs = max(loads, key=lambda load: load[0] + machine.compilation * load[1])
    compiling = machine.compilation * num_programs
    mean = sum(computing for computing, _ in loads) / machine.devices
    # Blocks, a description of each cell, the manifest and the lock.
    num_files = len(blocks) + len(cells) + 2
    disk = sum(map(_disk, blocks))
    writing = disk / _DISK_SPEED + _FILE_SECONDS * num_files / machine.devices
    largest = max(blocks, key=lambda block: _device_memory(block, machine))
    cost = Cost(
        num_cells=len(cells),
        num_blocks=len(blocks),
        num_spans=sum(-(-b.cell.num_rounds // span_rounds(b.cell)) for b in blocks),
        num_rounds=sum(block.num_rounds for block in blocks),
        seconds=computing + compiling + writing,
        computing=mean,
        waiting=computing - mean,
        compiling=compiling,
        writing=writing,
        device_memory=_device_memory(largest, machine),
        host_memory=3 * max(map(_disk, blocks))
        + _PROGRAM_BYTES * min(num_programs, _MOST_PROGRAMS),
        num_files=num_files,
        disk=disk,
        bottleneck="",
    )
    return cost._replace(bottleneck=_bottleneck(cost, machine, largest))


def _bottleneck(cost: Cost, machine: Machine, largest: Block) -> str:
    """Return what to change first, in words."""
    if cost.device_memory > machine.memory:
        return f"memory: {largest.cell.label} does not fit on a device; take fewer arms"
    parts = {
        "computing: more or faster devices help": cost.computing,
        _describe_waiting(cost, machine): cost.waiting,
        "compiling: fewer strategies, loss families or numbers of arms help": cost.compiling,
        "writing: fewer checkpoints, or a faster disk": cost.writing,
    }
    return max(parts, key=lambda part: parts[part])


def _describe_waiting(cost: Cost, machine: Machine) -> str:
    if cost.num_blocks < machine.devices:
        return (
            f"too few blocks: {machine.devices - cost.num_blocks} of {machine.devices} devices "
            "have none; fewer devices, or more seeds"
        )
    return "uneven blocks: some devices wait for the last; fewer devices, or more seeds"


def _load(share: Iterable[Block], machine: Machine) -> tuple[float, int]:
    """Return the seconds of computing and the number of programs for the blocks of one device."""
    seconds, programs = 0.0, set()
    for block in share:
        filled = machine.vectors * -(-block.num_calls // machine.vectors) / block.num_calls
        speed = machine.speeds.get(block.cell.strategy_name, machine.speed)
        seconds += block.work * filled / speed + machine.overhead
        programs |= _programs(block.cell)
    return seconds, len(programs)


def _programs(cell: Cell) -> set[tuple]:
    """Return names of the programs that play a cell and make its losses, free of its numbers."""
    parameters = cell.strategy_parameters.values()
    choices = (*map(type, parameters), *(value for value in parameters if isinstance(value, str)))
    shape = (cell.num_arms, cell.dtype, num_checkpoints(cell))
    return {(*shape, cell.strategy_name, *choices), (*shape, cell.family)}


def num_checkpoints(cell: Cell) -> int:
    checkpoints = cell.checkpoints
    return min(checkpoints, cell.num_rounds) if isinstance(checkpoints, int) else len(checkpoints)


def _disk(block: Block) -> int:
    """Return the bytes of a block's file: regrets, certificates and norms of the losses."""
    cell = block.cell
    arrays = 2 + cell.pseudo_regret + len(Certificate._fields) * cell.certificates
    numbers = arrays * block.num_games + _NORMS * block.games.num_sequences
    return 8 * (numbers + 1) * num_checkpoints(cell) + _FILE_BYTES


def _device_memory(block: Block, machine: Machine) -> float:
    """Return the bytes on a device.

    Each call at a time has its state, twice while it is made anew; the losses of a chunk, which
    are made and then cut, unless every game makes its own; and those of a window for every game
    where not all games share them.
    """
    cell = block.cell
    width = cpu_games_per_call(cell.num_arms)
    parameters = (cell.strategy_name, *cell.strategy_parameters.items(), cell.folder)
    shape = (cell.num_arms, cell.dtype, cell.certificates, num_checkpoints(cell))
    if (state := _STATE_BYTES.get((parameters, shape))) is None:
        state = _STATE_BYTES[parameters, shape] = _state_bytes(cell.bandit(), *shape)
    games = block.games
    sequences = streamed_sequences(cell.num_arms, games.num_sequences, games.num_seeds)
    rounds = chunk_rounds_for(
        cell.num_arms, cell.num_rounds, jax.local_devices()[0], num_sequences=sequences
    )
    size = cell.num_arms * np.dtype(cell.dtype).itemsize  # of the losses of a round
    window = window_rounds(cell.num_arms, rounds) * width * size if sequences != 1 else 0
    each = 2.0 * (state + rounds * sequences * size) + window
    return min(machine.vectors, block.num_calls) * each


# Traced once for all numbers that a strategy may have, as in the engine.
_begin_group = jax.jit(
    begin_group, static_argnames=("num_arms", "num_games", "num_checkpoints", "dtype")
)


# By strategy, its parameters and what else they depend on.
_STATE_BYTES: dict[tuple, int] = {}


def _state_bytes(
    bandit: Bandit, num_arms: int, dtype: str, certificates: bool, num_checkpoints: int
) -> int:
    """Return the bytes of the games of a call as the engine begins them; nothing is computed."""
    games = _begin_group.eval_shape(
        bandit,
        None,
        observe_certificates(bandit) if certificates else None,
        jax.ShapeDtypeStruct((), dtype),
        num_arms=num_arms,
        num_games=cpu_games_per_call(num_arms),
        num_checkpoints=num_checkpoints,
        dtype=np.dtype(dtype),
    )
    return sum(math.prod(leaf.shape) * leaf.dtype.itemsize for leaf in jax.tree.leaves(games))
