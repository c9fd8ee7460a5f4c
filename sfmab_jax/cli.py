"""The command line: `sfmab run`, `list`, `losses`, `study`, `plan`, `verify` and more."""

import sys
from typing import Annotated, Any

import typer
from rich.console import Console

from sfmab_jax.losses_command import LOSSES_EPILOG, losses
from sfmab_jax.options import configure, count_option
from sfmab_jax.program_cache import keep_programs
from sfmab_jax.run_command import RUN_EPILOG, run
from sfmab_jax.study.commands import app as study_app
from sfmab_jax.study.plan_command import plan
from sfmab_jax.worst_case.command import add_to as add_worst_case

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
    keep_programs()


def verify(
    effort: Annotated[int, count_option("Multiplies the inputs tried.")] = 4,
    quick: Annotated[bool, typer.Option("--quick", help="Under 30 s: effort 1, float32.")] = False,
    dtype: Annotated[
        str | None, typer.Option(help="float32, float64 or both; both unless --quick.")
    ] = None,
    seed: Annotated[int, count_option("Of the random inputs.")] = 0,
) -> None:
    """Tries every claim of the paper on numbers; exit code 1 if one fails. A self-test, too."""
    wanted = ("float32" if quick else "both") if dtype is None else dtype
    if wanted not in ("float32", "float64", "both"):
        raise ValueError(f"--dtype is {wanted!r}; choose float32, float64 or both")
    # Both sides of a claim are compared in float64, whatever precision computes them.
    configure("float64", None)
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
    """Times the engine against the obvious JAX program, in turns, in a minute or less."""
    from sfmab_jax import bench as benchmark

    print(benchmark.report(arms, benchmark.short_form(arms, rounds, seeds, repeats)))


def list_(
    what: Annotated[str, typer.Argument(help="strategies, losses or all.")] = "all",
) -> None:
    """Lists the strategies and loss families with one line each."""
    from sfmab_jax import losses, strategies

    tables: dict[str, dict[str, Any]] = {
        "strategies": strategies.STRATEGIES,
        "losses": losses.LOSSES,
    }
    if what not in (*tables, "all"):
        raise ValueError(f"cannot list {what!r}; choose strategies, losses or all")
    for title, members in tables.items():
        if what in (title, "all"):
            print(title)
            width = max(map(len, members))
            for name, factory in members.items():
                print(f"  {name:<{width}} {(factory.__doc__ or '').splitlines()[0]}")


# In the order of the help: first what a newcomer runs first.
app.command(epilog=RUN_EPILOG)(run)
app.command("list")(list_)
app.command(epilog=LOSSES_EPILOG)(losses)
app.add_typer(study_app)
app.command()(plan)
app.command()(verify)
add_worst_case(app)
app.command()(bench)


def main(arguments: list[str] | None = None) -> None:
    """The console command. Bad usage is one line on stderr and exit code 2."""
    # Typer's own errors, whichever copy of Click they come from.
    usage_error: Any = next(c for c in typer.BadParameter.__mro__ if c.__name__ == "ClickException")
    try:
        code = app(arguments, standalone_mode=False)
    except usage_error as error:
        _fail(error.format_message(), 2)
    except ValueError as error:
        _fail(str(error), 2)
    except (KeyboardInterrupt, typer.Abort) as error:
        # Typer puts its own exception in front of the one that says what was done.
        _fail(str(error) or str(error.__cause__ or "") or "stopped", 130)
    except OSError as error:
        _fail(str(error), 1)
    sys.exit(code if isinstance(code, int) else 0)


def _fail(message: str, code: int) -> None:
    if message:  # none where the help was shown instead
        print(f"sfmab: {' '.join(message.split())}", file=sys.stderr)
    sys.exit(code)
