"""Tables, JSON files, and the marked region of benchmarks/README.md."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.machine import describe_in_words
from benchmarks.sweeps import Point, Sweep
from sfmab_jax.cli.bench import Timing
from sfmab_jax.results.files import write_atomically

__all__ = ["contest_record", "markdown", "sweep_record", "text_table", "write_json", "write_readme"]

_BEGIN, _END = "<!-- results: begin -->", "<!-- results: end -->"
_CONTEST_HEAD = (
    "",
    "million rounds/s",
    "ours is faster by (range)",
    "compile, s",
    "peak memory, MB",
)
_SWEEP_HEAD = ("ns per round (range)", "million rounds/s", "compile, s", "peak memory, MB")


def contest_record(
    title: str, settings: str, timings: list[Timing], peaks: dict[str, float], skipped: list[str]
) -> dict[str, Any]:
    """A contest as it is kept in JSON."""
    rows = []
    for timing in timings:
        ratios = timing.ratio_of(timings[0])
        rows.append(
            {
                "name": timing.name,
                "games": timing.games,
                "rounds": timing.rounds,
                "million_rounds_per_second": float(np.median(timing.rounds_per_second)) / 1e6,
                "ratio_median": float(np.median(ratios)),
                "ratios": ratios.tolist(),
                "compile_seconds": timing.compile_seconds,
                "peak_megabytes": peaks.get(timing.name),
                "mean_loss": timing.mean_loss,
                # A single loss sequence gives a single number.
                "standard_error": error if np.isfinite(error := timing.standard_error) else None,
            }
        )
    return {"title": title, "settings": settings, "rows": rows, "skipped": skipped}


def sweep_record(sweep: Sweep, points: list[Point]) -> dict[str, Any]:
    """A sweep as it is kept in JSON."""
    rows = [
        {
            "label": point.label,
            **point.cell._asdict(),
            "nanoseconds_per_round": point.nanoseconds_per_round.tolist(),
            "compile_seconds": point.compile_seconds,
            "peak_megabytes": point.peak_megabytes,
        }
        for point in points
    ]
    return {
        "title": sweep.title,
        "along": sweep.along,
        "compared": sweep.compared,
        "rows": rows,
    }


def _figure(value: float | None) -> str:
    """Three significant digits, without exponents."""
    if value is None:
        return ""
    return np.format_float_positional(value, precision=3, fractional=False, trim="-", min_digits=1)


def _spread(values) -> str:
    return f"{_figure(min(values))} to {_figure(max(values))}"


def _contest_rows(record: dict[str, Any]) -> Iterable[tuple[str, ...]]:
    for row in record["rows"]:
        faster = f"{_figure(row['ratio_median'])} ({_spread(row['ratios'])})"
        yield (
            row["name"],
            _figure(row["million_rounds_per_second"]),
            "1" if row is record["rows"][0] else faster,
            f"{row['compile_seconds']:.1f}",
            "" if row["peak_megabytes"] is None else f"{row['peak_megabytes']:.0f}",
        )


def _sweep_rows(record: dict[str, Any]) -> Iterable[tuple[str, ...]]:
    rows = record["rows"]
    # True compares all cells with the first, a number every so many with the first of them.
    size = record["compared"] if record["compared"] not in (True, False) else len(rows)
    for place, row in enumerate(rows):
        cost = row["nanoseconds_per_round"]
        middle = float(np.median(cost))
        # Cells take turns: what happened in one turn happened to all.
        ratios = np.array(rows[place - place % size]["nanoseconds_per_round"]) / cost
        faster = f"{_figure(float(np.median(ratios)))} ({_spread(ratios)})"
        yield (
            row["label"],
            *((faster,) if record["compared"] else ()),
            f"{_figure(middle)} ({_spread(cost)})",
            _figure(1e3 / middle),
            f"{row['compile_seconds']:.1f}",
            f"{row['peak_megabytes']:.0f}",
        )


def _table(record: dict[str, Any]) -> list[tuple[str, ...]]:
    if "settings" in record:
        return [_CONTEST_HEAD, *_contest_rows(record)]
    ratio = ("times as fast as the first (range)",) if record["compared"] else ()
    return [(record["along"], *ratio, *_SWEEP_HEAD), *_sweep_rows(record)]


def text_table(record: dict[str, Any]) -> str:
    """For the terminal."""
    rows = _table(record)
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    heading = ": ".join(filter(None, (record["title"], record.get("settings"))))
    lines = [heading]
    for row in rows:
        cells = [row[0].ljust(widths[0]), *(c.rjust(w) for c, w in zip(row[1:], widths[1:]))]
        lines.append("  ".join(cells).rstrip())
    return "\n".join([*lines, *record.get("skipped", [])])


def markdown(record: dict[str, Any]) -> str:
    """For the README."""
    head, *rows = _table(record)
    heading = ": ".join(filter(None, (record["title"], record.get("settings"))))
    lines = [f"**{heading}**", "", f"| {' | '.join(head)} |", "|---" * len(head) + "|"]
    lines += [f"| {' | '.join(row)} |" for row in rows]
    return "\n".join([*lines, *("\n" + line for line in record.get("skipped", []))])


def write_json(path: Path, machine: dict[str, str], records: list[dict[str, Any]]) -> None:
    text = json.dumps({"machine": machine, "records": records}, indent=2) + "\n"
    write_atomically(path, lambda file: file.write(text.encode()))


def write_readme(readme: Path, results: Path) -> None:
    """Replaces what stands between the marks by the tables of all JSON files in ``results``."""
    text = readme.read_text()
    if text.count(_BEGIN) != 1 or text.count(_END) != 1:
        raise ValueError(f"{readme} must have the lines {_BEGIN} and {_END} once each")
    parts = []
    for path in sorted(results.glob("*.json")):
        kept = json.loads(path.read_text())
        parts.append(f"Measured on {describe_in_words(kept['machine'])}.")
        parts += [markdown(record) for record in kept["records"]]
    before, after = text.split(_BEGIN)[0], text.split(_END)[1]
    new = before + "\n\n".join([_BEGIN, *parts, _END]) + after
    write_atomically(readme, lambda file: file.write(new.encode()))
