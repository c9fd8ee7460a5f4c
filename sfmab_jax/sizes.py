"""How many games a device plays side by side, and how many rounds in one call and one window.

On accelerators width is what pays, so a block takes what the memory allows; a rule of the platform,
the arms and the class of memory alone, lest two runs of one game differ in their last digits.
"""

from typing import Any

import numpy as np

from sfmab_jax.kernel_operations import padded_shape
from sfmab_jax.rounds import block_width

__all__ = ["chunk_rounds_for", "games_per_device", "window_rounds"]

# A chunk on CPU is about this many numbers of state touched: some tenths of a second.
_CHUNK_WORK = 2**24
# As many times as long is a chunk on CPU where all games share one sequence of losses.
_SHARED = 4
# Rounds whose losses are handed to the games together, and the most losses for that.
_WINDOW = 16
_WINDOW_LOSSES = 2**18
# On accelerators, numbers of state and scratch for each arm of a game.
_NUMBERS_PER_ARM = 64
# The losses of a chunk for a tile of a TPU stay in its vector memory: 4 MiB of float32.
_TPU_LOSSES = 2**20


def games_per_device(num_arms: int, device: Any) -> int:
    """Games in the block of one device, a power of two.

    On CPU `rounds.block_width`. On GPU and TPU as many as take a sixty-fourth of the memory, from
    32 to 32,768: with 8 GiB or more and up to 16 arms that is 32,768 on every device.
    """
    if device.platform == "cpu":
        return block_width(num_arms)
    games = _memory_class(device) / 64 / (4 * _NUMBERS_PER_ARM * num_arms)
    return int(np.clip(_power_of_two(games), 32, 2**15))


def chunk_rounds_for(
    num_arms: int, num_rounds: int, device: Any, engine: str = "scan", one_sequence: bool = False
) -> int:
    """Rounds in one call of the compiled program; results do not depend on it.

    On CPU more where all games share one sequence of losses, which then takes little memory. On
    accelerators the losses of a chunk, should every lane have its own, take at most a sixteenth
    of the memory.
    """
    width = games_per_device(num_arms, device)
    if device.platform == "cpu":
        longer = _SHARED if one_sequence else 1
        rounds = max(_WINDOW, longer * _power_of_two(_CHUNK_WORK / (num_arms * width)))
        most = 8192 if one_sequence else 4096
    else:
        padded, most = padded_shape((num_arms,))[0], 4096
        rounds = max(1, _power_of_two(_memory_class(device) / 16 / (4 * padded * width)))
        if engine == "fused" and device.platform == "tpu":
            rounds = max(1, min(rounds, _TPU_LOSSES // (128 * padded)))
    return int(min(rounds, most, -(-num_rounds // _WINDOW) * _WINDOW))


def window_rounds(num_arms: int, chunk_rounds: int) -> int:
    """The largest divisor of a chunk that is not too large for a window."""
    most = max(1, min(_WINDOW, _WINDOW_LOSSES // num_arms))
    return max(d for d in range(1, most + 1) if chunk_rounds % d == 0)


def _memory_class(device: Any) -> int:
    """The memory JAX may use, rounded down to a power of two; 8 GiB where it is not told."""
    stats = device.memory_stats() or {}
    return _power_of_two(stats.get("bytes_limit", 2**33))


def _power_of_two(number: float) -> int:
    """The largest power of two that is not above, or 0."""
    return 2 ** int(np.floor(np.log2(number))) if number >= 1 else 0
