"""One block played and kept."""

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sfmab_jax.results import Result
from sfmab_jax.simulate import simulate
from sfmab_jax.study.blocks import Block
from sfmab_jax.study.spans import forget_spans, keep_spans
from sfmab_jax.study.store import write_block

__all__ = ["play_block", "sigterm_as_interrupt"]


def play_block(
    folder: Path,
    block: Block,
    say: Callable[[str], None],
    advance: Callable[[int], None] | bool = False,
    resumed: Callable[[int], None] = lambda rounds: None,
) -> Result:
    """Plays what is not yet there of a block and writes it.

    Args:
      folder, block: which.
      say: told in single lines what is damaged.
      advance, resumed: told the rounds of games that have been played, now and earlier.
    """
    cell = block.cell
    result: Any = simulate(
        {cell.strategy: cell.bandit()},
        cell.sequence(),
        num_rounds=cell.num_rounds,
        num_seeds=block.num_seeds,
        num_sequences=cell.num_sequences,
        seed=cell.seed,
        first_seed=block.first_seed,
        checkpoints=cell.checkpoints,
        dtype=cell.dtype,
        certificate=cell.certificates,
        progress=advance,
        bookmarks=keep_spans(folder, block, say, resumed),
    )
    write_block(folder, block, result[cell.strategy])
    forget_spans(folder, block)
    return result[cell.strategy]


@contextmanager
def sigterm_as_interrupt() -> Iterator[None]:
    """SIGTERM stops as Ctrl-C does. Only the main thread can ask for that."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def interrupt(*_) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
