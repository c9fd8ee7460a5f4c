"""Play one block of a study and store it."""

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sfmab_jax.results.result import Result
from sfmab_jax.simulate import simulate
from sfmab_jax.study.blocks import Block
from sfmab_jax.study.same_losses import SameLosses
from sfmab_jax.study.spans import make_bookmarks, remove_bookmarks
from sfmab_jax.study.store import write_block

__all__ = ["play_block", "sigterm_as_interrupt"]


def play_block(
    folder: Path,
    block: Block,
    same_losses: SameLosses,
    say: Callable[[str], None],
    advance: Callable[[int], None] | bool = False,
    resumed: Callable[[int], None] = lambda rounds: None,
) -> Result:
    """Play a block from its bookmarks on and write it.

    Args:
      folder: the folder of the study.
      block: which block.
      same_losses: refuses it, before it is written, if its losses are not those of other blocks.
      say: told in single lines what is damaged.
      advance: told the rounds of games as they are played.
      resumed: told the rounds of games that an earlier run has played.
    """
    cell = block.cell
    cell.check_files()
    result: Any = simulate(
        {cell.strategy: cell.bandit()},
        cell.sequence(),
        num_rounds=cell.num_rounds,
        **block.games._asdict(),
        seed=cell.seed,
        checkpoints=cell.checkpoints,
        dtype=cell.dtype,
        certificate=cell.certificates,
        pseudo_regret=cell.pseudo_regret,
        progress=advance,
        bookmarks=make_bookmarks(folder, block, say, resumed),
    )
    same_losses.check(block, result[cell.strategy])
    write_block(folder, block, result[cell.strategy])
    remove_bookmarks(folder, block)
    return result[cell.strategy]


@contextmanager
def sigterm_as_interrupt() -> Iterator[None]:
    """Let SIGTERM stop as Ctrl-C does; without effect outside the main thread."""
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
