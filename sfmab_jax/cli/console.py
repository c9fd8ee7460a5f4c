"""The command `sfmab`, which answers Ctrl-C with one line from its first moment on.

It is installed as a module of its own, `sfmab`, as importing anything from the package imports JAX,
which takes about a second.
"""

import os
import signal
from types import FrameType

__all__ = ["main"]


def main() -> None:
    """Run `sfmab_jax.cli.main`; Ctrl-C while that is imported ends at once."""
    signal.signal(signal.SIGINT, _stop)
    from sfmab_jax.cli import main as run_command

    run_command()


def _stop(number: int, frame: FrameType | None) -> None:
    """End without an exception, for which an import has no one to catch it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # one line, however often it is pressed
    os.write(2, b"sfmab: stopped\n")
    os._exit(130)
