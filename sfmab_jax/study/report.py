"""The report of a study: one HTML page, the same in Markdown, figures and tables beside them."""

import csv
import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib

from sfmab_jax.study.analysis import (
    DifferenceRow,
    GrowthRow,
    SummaryRow,
    compare_pairs,
    fit_growth,
    summarize,
)
from sfmab_jax.study.display import describe_games
from sfmab_jax.study.document import (
    Heading,
    Part,
    Picture,
    Preformatted,
    Table,
    Text,
    to_html,
    to_markdown,
)
from sfmab_jax.study.figures import Drawing, draw_all
from sfmab_jax.study.folder import refuse_links
from sfmab_jax.study.store import write_durably
from sfmab_jax.study.study import Study, load_study, parameter_columns

__all__ = ["write_report"]

_EXTERNAL = (
    " The losses of {losses} answer the player: there it is external regret, on the losses that "
    "came in each game, and strategies share the adversary and its key, but not the losses."
)
_HOW_TO_READ = (
    "Regret compares with the best fixed arm in hindsight. Means are of the expected regret given "
    "the play, which has the mean of the realised regret and less noise; medians, quantiles and "
    "CVaR (the mean of the worst 5%) are of the realised regret of single games. Intervals are "
    "for 95%: Student's t, and in CSV files also bootstrap-t. Over several loss sequences they are "
    "about the mean over the family, and their units are the sequences; given a single one they "
    "are about the expected regret on that sequence alone. A dagger marks doubtful intervals, "
    "which may cover less than they say: of fewer than 50 units, of fewer than Cochran's rule asks "
    "for (25 times the squared skewness), or of tails too heavy for a variance. Bound: Theorem 1 "
    "of the paper with its constants, as corrected; blank where no bound is known."
)
_PSEUDO = (
    " The pseudo-regret is in the expected losses of the rounds as they were played, and compares "
    "with the arm that is the best in them; all else is of the regret."
)
_COMPARING = (
    "Strategies play on the same losses with the same random numbers, and differences are taken "
    "game by game. There are {number} comparisons here; at 5% each, about {false:.0f} would seem "
    "real by chance alone. The adjusted p-values are Holm's over all of them: the chance of any "
    "false claim among those below 0.05 is at most 5%. The intervals are not adjusted; a dagger "
    "marks those that are doubtful, as above, and so are their p-values."
)
_GROWTH = (
    "Exponents a of regret ~ x^a, by least squares on logarithms of mean regrets: along the rounds "
    "of single runs from T/32 on, and along each grid of the study. The interval is a bootstrap "
    "over units: it holds chance, not how far a power is the wrong shape. Blank where a mean is "
    "not positive; a dagger marks exponents of means whose intervals are doubtful."
)


def write_report(folder: Path) -> Path:
    """Write the report of a study into its folder; return the path of the HTML page."""
    study = load_study(folder)
    if not study.cells:
        raise ValueError(f"{folder} has no finished block yet; run the study first")
    refuse_links(folder, ("report", "report/figures", "report/tables"))
    summaries, comparisons, growths = summarize(study), compare_pairs(study), fit_growth(study)
    target = folder / "report"
    pictures = [_write_drawing(target, d) for d in draw_all(study, summaries, comparisons)]
    tables = target / "tables"
    known = _parameters_by_cell(study)
    ends = [known[row.strategy, row[:4]] for row in summaries]
    _write_csv(tables / "summary.csv", *_with_columns(SummaryRow._fields, summaries, ends))
    ends = [
        known[row.strategy, row[:4]] | _of_other(known[row.other, row[:4]]) for row in comparisons
    ]
    _write_csv(tables / "differences.csv", *_with_columns(DifferenceRow._fields, comparisons, ends))
    _write_csv(tables / "growth.csv", GrowthRow._fields, growths)
    parts = _make_parts(study, summaries, comparisons, growths, pictures)
    title = study.manifest["title"]
    _write_text(target / "report.md", to_markdown(title, parts))
    _write_text(target / "index.html", to_html(title, parts))
    return target / "index.html"


def _parameters_by_cell(study: Study) -> dict[tuple, dict[str, Any]]:
    """Return the columns of the parameters of each cell, by strategy and setting."""
    cells = [entry.cell for entry in study.cells]
    columns = parameter_columns(cells)
    rows = zip(*columns.values()) if columns else [()] * len(cells)
    return {
        (cell.strategy, cell.setting): dict(zip(columns, row)) for cell, row in zip(cells, rows)
    }


def _of_other(columns: dict[str, Any]) -> dict[str, Any]:
    """Return the columns of a strategy's parameters as those of the other one of a pair."""
    prefix = "strategy_"
    return {
        f"other_{key.removeprefix(prefix)}": value
        for key, value in columns.items()
        if key.startswith(prefix)
    }


def _with_columns(
    fields: Sequence[str], rows: Sequence[tuple], ends: Sequence[dict[str, Any]]
) -> tuple[list[str], list[tuple]]:
    """Return columns and rows of a table with more columns at its end."""
    more = list(ends[0]) if ends else []
    return [*fields, *more], [(*row, *end.values()) for row, end in zip(rows, ends, strict=True)]


def _make_parts(study: Study, summaries, comparisons, growths, pictures) -> list[Part]:
    parts: list[Part] = []
    if study.manifest["question"]:
        parts.append(Text(study.manifest["question"]))
    parts.append(Text(_describe_study(study)))
    parts += [Text(f"Not finished: {line}.") for line in study.incomplete[:20]]
    blank = [f"{row.strategy} on {row.losses}" for row in summaries if row.mean != row.mean]
    if blank:
        parts.append(Text(f"Regret that is not finite, so left blank: {', '.join(blank)}."))
    parts += [Heading("Figures"), *pictures]
    answering = sorted({x.cell.losses for x in study.cells if x.result.sees != "nothing"})
    note = _HOW_TO_READ + _PSEUDO * _has_pseudo_regret(summaries)
    note += _EXTERNAL.format(losses=", ".join(answering)) * bool(answering)
    parts += [Heading("Final regret"), Text(note), _summary_table(summaries)]
    if comparisons:
        note = _COMPARING.format(number=len(comparisons), false=0.05 * len(comparisons))
        parts += [Heading("Paired differences"), Text(note), _difference_table(comparisons)]
    parts += [Heading("Growth"), Text(_GROWTH), _growth_table(growths)]
    parts += [Heading("Plan"), Preformatted(study.manifest["study"])]
    return [*parts, Heading("Provenance"), Preformatted(_describe_provenance(study.manifest))]


def _describe_study(study: Study) -> str:
    manifest = study.manifest
    quick = " This is the quick form: a look at the report, not at the question." * bool(
        manifest["quick"]
    )
    games = describe_games(manifest["seeds"], manifest["sequences"])
    return (
        f"{len(study.strategies)} strategies on {len(study.settings)} settings, {len(study)} "
        f"cells; {games}; {manifest['dtype']}, seed {manifest['seed']}.{quick}"
    )


def _format_number(value: float, digits: int = 4) -> str:
    return "" if value != value else f"{value:.{digits}g}"


def _format_percent(value: float) -> str:
    return "" if value != value else f"{100 * value:.2g}%"


def _format_interval(low: float, high: float) -> str:
    return "" if low != low else f"{low:.4g} to {high:.4g}"


def _format_sequences(number: int) -> str:
    return "given this sequence" if number == 1 else f"over {number:,} sequences"


def _format_mark(row: Any) -> str:
    """Return a dagger after what has a doubtful interval."""
    return "†" * (row.doubtful and row.low == row.low)


def _format_setting(row: Any) -> tuple[str, ...]:
    return (row.losses, str(row.num_arms), str(row.num_rounds), f"{row.scale:g}")


_SETTING = ("losses", "n", "T", "scale")


def _has_pseudo_regret(rows: list[SummaryRow]) -> bool:
    return any(row.pseudo_mean == row.pseudo_mean for row in rows)


def _format_pseudo_regret(row: SummaryRow) -> tuple[str, str]:
    mark = "†" * (row.pseudo_doubtful and row.pseudo_low == row.pseudo_low)
    interval = _format_interval(row.pseudo_low, row.pseudo_high)
    return _format_number(row.pseudo_mean) + mark, interval


def _summary_table(rows: list[SummaryRow]) -> Table:
    with_pseudo = _has_pseudo_regret(rows)
    return Table(
        (*_SETTING, "strategy", "mean", "95% interval", "holds", "median", "5% to 95%", "CVaR",
         "bound", "of bound", *(("pseudo-regret", "95% interval") if with_pseudo else ())),
        [
            (
                *_format_setting(row),
                row.strategy,
                _format_number(row.mean) + _format_mark(row),
                _format_interval(row.low, row.high),
                _format_sequences(row.sequences),
                _format_number(row.median),
                _format_interval(row.quantile_05, row.quantile_95),
                _format_number(row.cvar_95),
                _format_number(row.bound, 3),
                _format_percent(row.ratio_to_bound),
                *(_format_pseudo_regret(row) if with_pseudo else ()),
            )
            for row in rows
        ],
        5,
        "tables/summary.csv",
    )  # fmt: skip


def _difference_table(rows: list[DifferenceRow]) -> Table:
    return Table(
        (*_SETTING, "strategy", "less", "difference", "95% interval", "holds", "p", "adjusted p"),
        [
            (
                *_format_setting(row),
                row.strategy,
                row.other,
                _format_number(row.difference) + _format_mark(row),
                _format_interval(row.low, row.high),
                _format_sequences(row.sequences),
                _format_number(row.p_value, 2),
                _format_number(row.adjusted_p_value, 2),
            )
            for row in rows
        ],
        6,
        "tables/differences.csv",
    )


def _growth_table(rows: list[GrowthRow]) -> Table:
    return Table(
        ("strategy", "along", "at", "points", "exponent", "95% interval"),
        [
            (
                row.strategy,
                row.variable,
                row.fixed,
                str(row.points),
                _format_number(row.exponent) + _format_mark(row),
                _format_interval(row.low, row.high),
            )
            for row in rows
        ],
        3,
        "tables/growth.csv",
    )


def _describe_provenance(manifest: dict[str, Any]) -> str:
    lines = [f"study file   {manifest['source']}"]
    lines += [f"{name:<12} {version}" for name, version in manifest["versions"].items()]
    lines += [f"{name:<12} {value}" for name, value in manifest["platform"].items()]
    lines += [
        f"{name:<12} commit {value or 'unknown'}" for name, value in manifest["commits"].items()
    ]
    lines.append(f"created      {manifest['created']}")
    for run in manifest["runs"]:
        ended = run["ended"] or "killed"
        lines.append(f"run          {run['started']} to {ended}, {run['blocks']} blocks")
    return "\n".join(lines)


def _write_drawing(target: Path, drawing: Drawing) -> Picture:
    """Write a figure as SVG and PNG, and its data as CSV."""
    stem = f"figures/{drawing.name}"
    contents: dict[str, bytes] = {}
    # Equal data give equal files: no dates, and identifiers from a fixed salt.
    with matplotlib.rc_context({"svg.hashsalt": "sfmab"}):
        for kind, metadata in (("svg", {"Date": None}), ("png", {"Software": None})):
            buffer = io.BytesIO()
            drawing.figure.savefig(buffer, format=kind, dpi=150, metadata=metadata)
            contents[kind] = buffer.getvalue()
    for kind, content in contents.items():
        _write_bytes(target / f"{stem}.{kind}", content)
    _write_csv(target / f"{stem}.csv", drawing.columns, drawing.rows)
    return Picture(stem, drawing.caption, contents["svg"])


def _write_csv(path: Path, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(columns)
    writer.writerows(rows)
    _write_text(path, text.getvalue())


def _write_text(path: Path, text: str) -> None:
    _write_bytes(path, text.encode())


def _write_bytes(path: Path, content: bytes) -> None:
    write_durably(path, lambda file: file.write(content))
