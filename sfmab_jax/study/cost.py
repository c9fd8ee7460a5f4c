"""What a study will cost on a machine: blocks, time, memory, files, and what holds it up."""

import math
import os
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from sfmab_jax.certificate import Certificate, watch
from sfmab_jax.engine import sequences_per_vector
from sfmab_jax.rounds import begin_block, block_width
from sfmab_jax.sizes import chunk_rounds_for, window_rounds
from sfmab_jax.study.blocks import CORE_SPEED, Block, blocks, span_rounds
from sfmab_jax.study.plan import Cell
from sfmab_jax.study.together import share_out
from sfmab_jax.workers import num_cores

__all__ = ["Cost", "Machine", "cost_of", "num_checkpoints", "this_machine"]

# Rough figures: a disk's bytes per second, the seconds to put a file on it for certain, the bytes
# of an .npz file beside its arrays.
_DISK_SPEED = 2e8
_FILE_SECONDS = 0.01
_FILE_BYTES = 4000
_NORMS = 6  # arrays of norms in a block


class Machine(NamedTuple):
    """Devices that play blocks, each its own: a process for each, as SLURM starts them."""

    devices: int
    vectors: int  # of games that a device plays at a time: the cores of a CPU, otherwise 1
    memory: float  # bytes of a device
    speed: float  # work that a device does in a second, see `Block.work`
    speeds: Mapping[str, float] = {}  # the same for strategies that have been measured
    compilation: float = 5.0  # seconds for a program
    overhead: float = 0.0  # seconds for a block, whatever its rounds


class Cost(NamedTuple):
    """What a study will cost. The four parts of ``seconds`` add up to it."""

    num_cells: int
    num_blocks: int
    num_spans: int  # parts of rounds that blocks are played in; a block of one span has one
    num_rounds: int  # of all games
    seconds: float
    computing: float  # seconds of a device, if all had the same to do
    waiting: float  # what the device with most to do takes longer
    compiling: float
    writing: float
    device_memory: float  # bytes
    host_memory: float  # bytes of a process, beyond what JAX itself takes
    num_files: int
    disk: int  # bytes
    bottleneck: str


def this_machine() -> Machine:
    """What this process sees, with a rough figure for its speed."""
    device = jax.local_devices()[0]
    if device.platform == "cpu":
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        return Machine(1, num_cores(), memory, CORE_SPEED * num_cores())
    stats: Mapping[str, Any] = device.memory_stats() or {}
    limit = stats.get("bytes_limit", math.inf)
    return Machine(len(jax.local_devices()), 1, limit, CORE_SPEED)


def cost_of(cells: Sequence[Cell], num_seeds: int, machine: Machine) -> Cost:
    """Rounds, blocks and files are counted; times are work divided by the machine's speed."""
    work = [blocks(cell, num_seeds) for cell in cells]
    every = [block for mine in work for block in mine]
    spent = [_spent(share, machine) for share in share_out(every, machine.devices)]
    computing, compiling = max(spent, key=sum)  # of the device that ends last
    mean = sum(seconds for seconds, _ in spent) / machine.devices
    # Blocks and what describes each cell, the study, the lock.
    num_files = len(every) + len(cells) + 2
    disk = sum(map(_disk, every))
    writing = disk / _DISK_SPEED + _FILE_SECONDS * num_files / machine.devices
    needed = max(every, key=lambda block: _device_memory(block, machine))
    cost = Cost(
        num_cells=len(cells),
        num_blocks=len(every),
        num_spans=sum(-(-b.cell.num_rounds // span_rounds(b.cell)) for b in every),
        num_rounds=sum(block.num_rounds for block in every),
        seconds=computing + compiling + writing,
        computing=mean,
        waiting=computing - mean,
        compiling=compiling,
        writing=writing,
        device_memory=_device_memory(needed, machine),
        host_memory=3 * max(map(_disk, every)),
        num_files=num_files,
        disk=disk,
        bottleneck="",
    )
    return cost._replace(bottleneck=_bottleneck(cost, machine, needed))


def _bottleneck(cost: Cost, machine: Machine, needed: Block) -> str:
    """What to change first."""
    if cost.device_memory > machine.memory:
        return f"memory: {needed.cell.label} does not fit on a device; take fewer arms"
    parts = {
        "computing: more or faster devices help": cost.computing,
        _why_waiting(cost, machine): cost.waiting,
        "compiling: fewer strategies, loss families or numbers of arms help": cost.compiling,
        "writing: fewer checkpoints, or a faster disk": cost.writing,
    }
    return max(parts, key=lambda part: parts[part])


def _why_waiting(cost: Cost, machine: Machine) -> str:
    if cost.num_blocks < machine.devices:
        return (
            f"too few blocks: {machine.devices - cost.num_blocks} of {machine.devices} devices "
            "have none; fewer devices, or more seeds"
        )
    return "uneven blocks: some devices wait for the last; fewer devices, or more seeds"


def _spent(share: Iterable[Block], machine: Machine) -> tuple[float, float]:
    """Seconds of computing and of compiling for the blocks of one device."""
    seconds, programs = 0.0, set()
    for block in share:
        filled = machine.vectors * -(-block.vectors // machine.vectors) / block.vectors
        speed = machine.speeds.get(block.cell.strategy_name, machine.speed)
        seconds += block.work * filled / speed + machine.overhead
        programs |= _programs(block.cell)
    return seconds, machine.compilation * len(programs)


def _programs(cell: Cell) -> set[tuple]:
    """What is compiled for it: to play and to make losses. Other numbers need no other program."""
    given = cell.strategy_parameters.values()
    choices = (*map(type, given), *(value for value in given if isinstance(value, str)))
    shape = (cell.num_arms, cell.dtype, num_checkpoints(cell))
    return {(*shape, cell.strategy_name, *choices), (*shape, cell.family)}


def num_checkpoints(cell: Cell) -> int:
    given = cell.checkpoints
    return min(given, cell.num_rounds) if isinstance(given, int) else len(given)


def _disk(block: Block) -> int:
    """Bytes of a block's file: regrets and certificates of its games, norms of its losses."""
    cell = block.cell
    arrays = 2 + len(Certificate._fields) * cell.certificates
    numbers = cell.num_sequences * (arrays * block.num_seeds + _NORMS)
    return 8 * (numbers + 1) * num_checkpoints(cell) + _FILE_BYTES


def _device_memory(block: Block, machine: Machine) -> float:
    """Bytes on a device: of each vector being played the state, twice while it is made anew, the
    losses of a chunk, which are made and then cut, and those of a window for every game where not
    all games share them."""
    cell = block.cell
    name, given = cell.strategy_name, tuple(cell.strategy_parameters.items())
    width = block_width(cell.num_arms)
    state = _state_bytes(
        name, given, cell.num_arms, cell.dtype, cell.certificates, num_checkpoints(cell)
    )
    sequences = sequences_per_vector(cell.num_sequences, block.num_seeds, width)
    rounds = chunk_rounds_for(cell.num_arms, cell.num_rounds, jax.local_devices()[0])
    size = cell.num_arms * np.dtype(cell.dtype).itemsize  # of the losses of a round
    window = window_rounds(cell.num_arms, rounds) * width * size if sequences > 1 else 0
    each = 2.0 * (state + rounds * sequences * size) + window
    return min(machine.vectors, block.vectors) * each


@cache
def _state_bytes(
    name: str, given: tuple, num_arms: int, dtype: str, certificates: bool, num_checkpoints: int
) -> int:
    """Of a vector of games, as the engine would begin it; nothing is computed."""
    from sfmab_jax.strategies import STRATEGIES

    bandit = STRATEGIES[name](**dict(given))
    block = jax.eval_shape(
        lambda unit: begin_block(
            bandit,
            None,
            watch(bandit) if certificates else None,
            unit,
            num_arms=num_arms,
            width=block_width(num_arms),
            num_checkpoints=num_checkpoints,
            dtype=np.dtype(dtype),
        ),
        jnp.zeros((), dtype),
    )
    return sum(math.prod(leaf.shape) * leaf.dtype.itemsize for leaf in jax.tree.leaves(block))
