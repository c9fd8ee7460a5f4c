"""`sfmab worst-case`: search for hard losses, print a table and draw a picture."""

from pathlib import Path
from typing import Annotated, Any

import typer
from rich import box as boxes
from rich.console import Console
from rich.table import Table

from sfmab_jax.cli.options import (
    StoppedError,
    check_picture,
    choose_several,
    count_option,
    make_bandits,
    save_picture,
    say,
)

__all__ = ["WORST_CASE_EPILOG", "worst_case"]

WORST_CASE_EPILOG = """
Examples:

`sfmab worst-case` finds losses in [0, 1] that are hard for five strategies.

`sfmab worst-case --strategies scale_free --constraint total_l2 --size 200`

`sfmab worst-case --rounds 500 --steps 1000 --checkpoint search.npz` can be stopped and goes on.
"""

CONSTRAINTS = ("range", "sup_norm", "total_l2", "total_l1", "sparse")


def worst_case(
    strategies: Annotated[
        str, typer.Option(help="Separated by commas; see `sfmab list strategies`.")
    ] = "scale_free,exp3_ix,tsallis_inf,ahb",
    exploration: Annotated[
        str, typer.Option(help="Of scale_free: adaptive, decaying or both.")
    ] = "both",
    arms: Annotated[int, count_option("Number of arms n.")] = 5,
    rounds: Annotated[int, count_option("Number of rounds T.")] = 200,
    constraint: Annotated[str, typer.Option(help=f"One of {', '.join(CONSTRAINTS)}.")] = "range",
    size: Annotated[
        float, typer.Option(help="G of range [0, G], sup_norm and sparse; L_2; L_1.")
    ] = 1.0,
    sparsity: Annotated[int, count_option("Non-zero losses of a round, for sparse.")] = 1,
    rivals: Annotated[
        str | None, typer.Option(help="Loss families to start from and beat; by default all.")
    ] = None,
    steps: Annotated[int, count_option("Steps of Adam.")] = 200,
    restarts: Annotated[int, count_option("Tables that climb side by side.")] = 8,
    seeds: Annotated[int, count_option("Games of each table in each step.")] = 64,
    score_seeds: Annotated[int, count_option("Fresh games that judge.")] = 4096,
    seed: Annotated[int, count_option("Seed of the search.")] = 0,
    checkpoint: Annotated[
        Path | None, typer.Option(help="File (.npz) to go on from after a stop.")
    ] = None,
    output: Annotated[
        Path, typer.Option(help="Picture; the sequences go beside it, NAME_STRATEGY.npy.")
    ] = Path("worst_case.png"),
) -> None:
    """Search for the losses on which strategies do worst, by gradient; Ctrl-C keeps the best."""
    import sfmab_jax as sf
    from sfmab_jax.worst_case.figures import worst_cases

    factories = choose_several("strategies", strategies, sf.strategies.STRATEGIES)
    if exploration not in ("adaptive", "decaying", "both"):
        raise ValueError(f"--exploration is {exploration!r}; choose adaptive, decaying or both")
    bandits = make_bandits(factories, exploration, rounds)
    families = None if rivals is None else list(choose_several("rivals", rivals, sf.losses.LOSSES))
    check_picture(output)
    found: Any = sf.worst_case(
        {name: bandit for name, (bandit, _) in bandits.items()},
        arms,
        rounds,
        constraint=_make_constraint(constraint, size, sparsity),
        rivals=families,
        num_restarts=restarts,
        num_steps=steps,
        num_seeds=seeds,
        seed=seed,
        score_seeds=score_seeds,
        checkpoint=checkpoint,
        progress=say,
    )
    Console().print(_make_table(found, arms, rounds))
    save_picture(worst_cases(found), output)
    for name, worst in found.items():
        worst.save(output.with_name(f"{output.stem}_{name.replace(' ', '_')}.npy"))
    print(f"Wrote {output} and {len(found)} sequences beside it")
    if not all(worst.finished for worst in found.values()):
        raise StoppedError


def _make_constraint(name: str, size: float, sparsity: int) -> Any:
    from sfmab_jax import constraints

    if name not in CONSTRAINTS:
        raise ValueError(f"--constraint is {name!r}; choose one of {', '.join(CONSTRAINTS)}")
    if name == "range":
        return constraints.box(0.0, size)
    if name == "sparse":
        return constraints.sparse(sparsity, size)
    return getattr(constraints, name)(size)


def _make_table(found: dict[str, Any], arms: int, rounds: int) -> Table:
    label = next(iter(found.values())).constraint
    table = Table(
        title=f"Worst regret found, {arms} arms, {rounds:,} rounds, {label}",
        caption="on fresh games, with 95% interval; lead: over the best built-in adversary, in "
        "standard errors; ratio: found / bound",
        box=boxes.SIMPLE_HEAD,
        pad_edge=False,
        padding=(0, 1, 0, 0),
    )
    table.add_column("strategy", no_wrap=True)
    for heading in ("found", "best built-in", "lead", "bound", "ratio"):
        table.add_column(heading, justify="right", no_wrap=True)
    for name, worst in found.items():
        low, high = worst.score.interval()
        bound = "" if worst.bound is None else f"{worst.bound:.4g}"
        table.add_row(
            name,
            f"{worst.score.value:.4g} ± {(high - low) / 2:.1g}",
            f"{worst.rival} {worst.rival_score.value:.4g}",
            f"{worst.lead:.0f}",
            bound,
            "" if worst.ratio is None else f"{worst.ratio:.3f}",
        )
    return table
