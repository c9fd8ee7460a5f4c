"""All commands of `sfmab` put together."""

import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Annotated, Any, NoReturn

import typer
from rich.console import Console

from sfmab_jax.cli.compilation_cache import enable_cache
from sfmab_jax.cli.losses import LOSSES_EPILOG, losses
from sfmab_jax.cli.options import StoppedError, configure_jax, count_option, exit_on_interrupt
from sfmab_jax.cli.plan import plan
from sfmab_jax.cli.run import RUN_EPILOG, run
from sfmab_jax.cli.study import app as study_app
from sfmab_jax.cli.worst_case import WORST_CASE_EPILOG, worst_case

__all__ = ["app", "main"]

app = typer.Typer(
    name="sfmab",
    help="Study scale-free adversarial bandits: simulate strategies and compare their regret.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
)


def _show_version(wanted: bool) -> None:
    if wanted:
        from sfmab_jax import __version__

        print(__version__)
        raise typer.Exit


@app.callback()
def _commands(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    """Study scale-free adversarial bandits: simulate strategies and compare their regret."""
    enable_cache()


def verify(
    effort: Annotated[int, count_option("Factor on the number of inputs tried.")] = 4,
    quick: Annotated[bool, typer.Option("--quick", help="Under 30 s: effort 1, float32.")] = False,
    dtype: Annotated[
        str | None, typer.Option(help="float32, float64 or both; both unless --quick.")
    ] = None,
    seed: Annotated[int, count_option("Seed of the random inputs.")] = 0,
) -> None:
    """Test every claim of the paper on numbers, and so the package; exit code 1 if one fails."""
    wanted = ("float32" if quick else "both") if dtype is None else dtype
    if wanted not in ("float32", "float64", "both"):
        raise ValueError(f"--dtype is {wanted!r}; choose float32, float64 or both")
    # Both sides of a claim are compared in float64, whatever precision computes them.
    configure_jax("float64")
    from sfmab_jax.theory import verify as verification

    dtypes = ("float32", "float64") if wanted == "both" else (wanted,)
    report = verification.verify(dtypes, 1 if quick else effort, seed)
    console = Console()
    console.print(verification.claims_table(report))
    console.print(verification.slips_table(report))
    if not report.green:
        print("sfmab: a claim failed; see FAILS in the table", file=sys.stderr)
        raise typer.Exit(1)


def bench(
    arms: Annotated[int, count_option("Number of arms n.")] = 10,
    rounds: Annotated[int, count_option("Number of rounds T.")] = 1000,
    seeds: Annotated[int, count_option("Games in each run, at least 2.")] = 4096,
    repeats: Annotated[int, count_option("Turns that each program takes.")] = 5,
) -> None:
    """Time the engine against the obvious JAX program, in turns, in a minute or less."""
    from sfmab_jax.cli import bench as benchmark

    print(benchmark.report(arms, benchmark.short_form(arms, rounds, seeds, repeats)))


def list_(
    what: Annotated[str, typer.Argument(help="strategies, losses, adversaries or all.")] = "all",
) -> None:
    """List the strategies, loss families and adversaries with one line each."""
    from sfmab_jax import losses, strategies

    tables: dict[str, dict[str, Any]] = {
        "strategies": strategies.STRATEGIES,
        "losses": losses.LOSSES,
        "adversaries": losses.ADVERSARIES,
    }
    if what not in (*tables, "all"):
        raise ValueError(f"cannot list {what!r}; choose {', '.join(tables)} or all")
    for title, members in tables.items():
        if what in (title, "all"):
            print(title)
            width = max(map(len, members))
            for name, factory in members.items():
                print(f"  {name:<{width}} {(factory.__doc__ or '').splitlines()[0]}")


# In the order of the help, which begins with what a newcomer runs first.
_stoppable = exit_on_interrupt()
app.command(epilog=RUN_EPILOG)(_stoppable(run))
app.command("list")(_stoppable(list_))
app.command(epilog=LOSSES_EPILOG)(_stoppable(losses))
app.add_typer(study_app)
app.command()(_stoppable(plan))
app.command()(_stoppable(verify))
app.command("worst-case", epilog=WORST_CASE_EPILOG)(_stoppable(worst_case))
app.command()(_stoppable(bench))

# Seconds in which one who presses Ctrl-C again means the same.
_PATIENCE = 2.0
_MOMENT = 0.05


def main(arguments: list[str] | None = None) -> None:
    """Run the console command; bad usage is one line on stderr and exit code 2.

    Ctrl-C ends with one line, too, and exit code 130, after everything is kept. Pressed again
    after some seconds it ends at once.
    """
    try:
        with _one_interrupt():
            _run(arguments)
    except KeyboardInterrupt:  # before the command itself had begun
        _leave("stopped")


def _run(arguments: list[str] | None) -> NoReturn:
    # Typer's own errors, whichever copy of Click they come from.
    usage_error: Any = next(c for c in typer.BadParameter.__mro__ if c.__name__ == "ClickException")
    try:
        code = app(arguments, standalone_mode=False)
    except usage_error as error:
        _fail(error.format_message(), 2)
    except ValueError as error:
        _fail(str(error), 2)
    except StoppedError as stopped:
        _leave(str(stopped))
    except (KeyboardInterrupt, typer.Abort):
        _leave("stopped")
    except OSError as error:
        _fail(str(error), 1)
    if code == 130:  # Typer's own answer to Ctrl-C
        _leave("stopped")
    sys.exit(code if isinstance(code, int) else 0)


def _fail(message: str, code: int) -> NoReturn:
    _say(message)
    sys.exit(code)


def _leave(message: str) -> NoReturn:
    """End at once: JAX's threads may still compute, and would crash in an orderly end."""
    _say(message)
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            stream.flush()
    os._exit(130)


def _say(message: str) -> None:
    if message:  # none where the help was shown instead
        print(f"sfmab: {' '.join(message.split())}", file=sys.stderr)


def _interrupt_main_thread() -> None:
    """Send Ctrl-C to the main thread, so that it does not go on sleeping or waiting."""
    main_thread = threading.main_thread().ident
    if hasattr(signal, "pthread_kill") and main_thread is not None:
        signal.pthread_kill(main_thread, signal.SIGINT)
    else:
        signal.raise_signal(signal.SIGINT)


@contextmanager
def _one_interrupt() -> Iterator[None]:
    """Let the first Ctrl-C interrupt; then nothing does, so that all is kept, or one that insists.

    Without effect outside the main thread.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    pressed: list[float] = []
    report_ignored = sys.unraisablehook

    def interrupt(*_: Any) -> None:
        pressed.append(time.monotonic())
        if len(pressed) == 1:
            raise KeyboardInterrupt
        if pressed[-1] - pressed[0] > _PATIENCE:
            _leave("stopped at once; what was under way is lost")

    def interrupt_again(ignored: Any) -> None:
        """Python ignores what is raised in a callback of its garbage collector, of which JAX has
        one, or in a `__del__`: interrupt once more, a moment after it. Until then nothing does,
        as an interrupt in here would be lost."""
        if issubclass(ignored.exc_type, KeyboardInterrupt):
            threading.Timer(_MOMENT, first_again).start()
        else:
            report_ignored(ignored)

    def first_again() -> None:
        pressed.clear()
        _interrupt_main_thread()

    before = signal.signal(signal.SIGINT, interrupt)
    sys.unraisablehook = interrupt_again
    try:
        yield
    finally:
        sys.unraisablehook = report_ignored
        signal.signal(signal.SIGINT, before)
