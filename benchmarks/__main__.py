"""`python -m benchmarks`: the engine against its rivals, in turns, or its cost along a sweep."""

import argparse
import sys
from itertools import product
from pathlib import Path
from typing import Any

from benchmarks.child import Child, contender_spec
from benchmarks.contests import CONTESTS
from benchmarks.machine import describe_in_words, describe_machine
from benchmarks.plots import contest_figure, save_figure, sweep_figure
from benchmarks.report import contest_record, sweep_record, text_table, write_json, write_readme
from benchmarks.sweeps import SWEEPS, run_sweep
from sfmab_jax.cli.bench import Timing, race

HERE = Path(__file__).parent


def main(arguments: list[str] | None = None) -> None:
    options = _options(arguments)
    machine = describe_machine()
    _say(describe_in_words(machine))
    options.output.mkdir(parents=True, exist_ok=True)
    if options.sweep is None:
        _contests(options, machine)
    else:
        for name in SWEEPS if options.sweep == "all" else (options.sweep,):
            _sweep(name, options, machine)
    if options.write_readme:
        write_readme(HERE / "README.md", options.output)
        print(f"Wrote {HERE / 'README.md'}")


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--arms", type=_positive, default=10)
    parser.add_argument(
        "--rounds", type=_positive, nargs="+", default=[1000, 10_000], help="one race for each"
    )
    parser.add_argument(
        "--seeds", type=_positive, nargs="+", default=[4096, 16384], help="games, a race for each"
    )
    parser.add_argument("--repeats", type=_positive, default=None, help="5; 3 in a sweep")
    parser.add_argument("--sweep", choices=(*SWEEPS, "all"), help="instead of the rivals")
    parser.add_argument("--quick", action="store_true", help="small sizes, to try it out")
    parser.add_argument("--output", type=Path, default=HERE / "results", help="a folder")
    parser.add_argument(
        "--write-readme", action="store_true", help="put the tables into benchmarks/README.md"
    )
    options = parser.parse_args(arguments)
    if options.quick:
        options.rounds, options.seeds = [min(100, *options.rounds)], [256]
    return options


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text} is not a positive integer")
    return number


def _contests(options: argparse.Namespace, machine: dict[str, str]) -> None:
    records = []
    for name in CONTESTS:
        sizes = list(product(options.rounds, options.seeds))
        # The packages are far behind at any size.
        for rounds, seeds in sizes if name.startswith("algorithm_1") else sizes[:1]:
            records.append(_contest(name, rounds, seeds, options))
            print(text_table(records[-1]), end="\n\n", flush=True)
    write_json(options.output / "contests.json", machine, records)
    save_figure(contest_figure(records), options.output / "contests.png")
    print(f"Wrote contests.json and contests.png to {options.output}")


def _contest(name: str, rounds: int, seeds: int, options: argparse.Namespace) -> dict[str, Any]:
    contest = CONTESTS[name](options.arms, rounds)
    repeats = options.repeats or 5
    _say(f"{contest.title}, {rounds:,} rounds, {seeds:,} games")
    timings, skipped = race(contest.contenders, seeds, rounds, repeats)
    peaks = {timing.name: _peak(name, timing, options) for timing in timings}
    settings = f"{options.arms} arms, {rounds:,} rounds, {seeds:,} games, float32, {repeats} turns"
    return contest_record(contest.title, settings, timings, peaks, skipped)


def _peak(contest: str, timing: Timing, options: argparse.Namespace) -> float:
    child = Child(contender_spec(contest, timing.name, options.arms, timing.rounds, timing.games))
    peak = child.play(0)["peak_megabytes"]
    child.close()
    return peak


def _sweep(name: str, options: argparse.Namespace, machine: dict[str, str]) -> None:
    sweep = SWEEPS[name](options.quick)
    record = sweep_record(sweep, run_sweep(sweep, options.repeats or 3, _say))
    print(text_table(record), end="\n\n", flush=True)
    write_json(options.output / f"sweep_{name}.json", machine, [record])
    save_figure(sweep_figure(record), options.output / f"sweep_{name}.png")
    print(f"Wrote sweep_{name}.json and sweep_{name}.png to {options.output}")


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
