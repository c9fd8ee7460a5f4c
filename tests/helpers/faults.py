"""Forty small faults, each of which the tests must catch: a check of the tests themselves.

    python tests/helpers/faults.py              # each in a copy of the project, two at a time
    python tests/helpers/faults.py --only 3,7   # some of them
    python tests/helpers/faults.py --root OTHER # with the tests of another checkout

Every copy is tested by the files that are likely to notice, and by the whole default suite if those
do not. A fault that is not caught is a test that is missing. None stops the package from being
imported, and most give wrong numbers and no error.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import NamedTuple

__all__ = ["FAULTS", "Fault", "plant"]

ROOT = Path(__file__).parents[2]
COPIED = ("sfmab_jax", "tests", "benchmarks", "notebooks", "pyproject.toml", "README.md")
COPIED += ("CHANGELOG.md", "CITATION.cff", "CONTRIBUTING.md", "LICENSE")


class Fault(NamedTuple):
    """A text in a file of the project, and a wrong one to put in its place."""

    name: str  # what is wrong then
    file: str  # relative to the root of the project
    before: str  # occurs once in the file
    after: str
    where: str  # test files, by their stems, that are likely to catch it: tried first


def plant(fault: Fault, root: Path) -> None:
    """Put the fault into the project at ``root``, or raise ValueError if its place is not there."""
    path = root / fault.file
    text = path.read_text(encoding="utf-8")
    count = text.count(fault.before)
    if count != 1:
        raise ValueError(
            f"{fault.name}: {fault.before!r} occurs {count} times in {fault.file}; give a text "
            "that occurs once"
        )
    path.write_text(text.replace(fault.before, fault.after), encoding="utf-8")


def copy_project(root: Path, folder: Path) -> None:
    for name in COPIED:
        if (root / name).is_dir():
            shutil.copytree(root / name, folder / name)
        else:
            shutil.copy(root / name, folder / name)


def first_failure(folder: Path, programs: Path, *tests: str) -> str | None:
    """Return the first test that fails in the project at ``folder``, or None if all pass."""
    command = [sys.executable, "-m", "pytest", "-x", "-n", "0", "--no-header", *tests]
    told = os.environ | {"PYTHONPATH": str(folder), "JAX_COMPILATION_CACHE_DIR": str(programs)}
    done = subprocess.run(command, cwd=folder, env=told, capture_output=True, text=True)
    if done.returncode in (0, 5):  # all pass, or none was chosen
        return None
    named = re.search(r"^(?:FAILED|ERROR) (\S+)", done.stdout, re.MULTILINE)
    return named[1] if named else f"pytest ended with {done.returncode}: {done.stdout[-300:]}"


def try_fault(fault: Fault, root: Path, programs: Path, likely_only: bool) -> tuple[str, float]:
    """Return what catches the fault, or an empty text, and the seconds that it took."""
    start = time.monotonic()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        copy_project(root, folder)
        plant(fault, folder)
        likely = [str(p) for stem in fault.where.split() for p in folder.glob(f"**/{stem}.py")]
        caught = first_failure(folder, programs, *likely)
        if caught is None and not likely_only:
            caught = first_failure(folder, programs)
    return (caught or "").removeprefix(f"{folder}/"), time.monotonic() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--root", type=Path, default=ROOT, help="the project whose tests are tried")
    parser.add_argument("--only", help="numbers of faults, separated by commas")
    parser.add_argument("--likely-only", action="store_true", help="not the whole suite")
    given = parser.parse_args()
    numbers = range(1, len(FAULTS) + 1)
    chosen = [int(n) for n in given.only.split(",")] if given.only else list(numbers)
    if not set(chosen) <= set(numbers):
        parser.error(f"--only is {given.only}; give numbers from 1 to {len(FAULTS)}")
    count = 0
    with tempfile.TemporaryDirectory() as programs, ThreadPoolExecutor(2) as pool:
        attempt = partial(
            try_fault, root=given.root, programs=Path(programs), likely_only=given.likely_only
        )
        for number, (caught, seconds) in zip(
            chosen, pool.map(attempt, [FAULTS[number - 1] for number in chosen])
        ):
            count += bool(caught)
            by = f"caught by {caught}" if caught else "NOT CAUGHT"
            print(f"{number:2} {FAULTS[number - 1].name}: {by}, {seconds:.0f} s", flush=True)
    print(f"{count} of {len(chosen)} are caught")
    sys.exit(count < len(chosen))


FAULTS: tuple[Fault, ...] = (
    # Numerics.
    Fault(
        "the sign of the move in the entropy's mixability gap is flipped",
        "sfmab_jax/numerics/stability.py",
        "exp_remainder(-(offsets + log_mass))",
        "exp_remainder(offsets + log_mass)",
        "test_potentials test_mixability",
    ),
    Fault(
        "a sum of two-word numbers drops the second word of the first",
        "sfmab_jax/numerics/double_word.py",
        "low = low + (a.error + b.error)",
        "low = low + b.error",
        "test_floating test_draw",
    ),
    Fault(
        "the binomials of the series for a small loss are those of the next power",
        "sfmab_jax/numerics/stability_series.py",
        "(exponent + j - 1) / j",
        "(exponent + j) / j",
        "test_gap_of_arm",
    ),
    Fault(
        "Newton's method for the normaliser stops a step too early",
        "sfmab_jax/numerics/root_finding.py",
        "eps ** 0.5 / (8 * exponent)",
        "eps ** 0.25 / (8 * exponent)",
        "test_simplex",
    ),
    Fault(
        "the derivative of the distribution forgets that the normaliser moves",
        "sfmab_jax/numerics/simplex.py",
        "(potential_dot, nu_dot - gaps_dot),",
        "(potential_dot, -gaps_dot),",
        "test_simplex_derivatives",
    ),
    Fault(
        "exponents in the entropy's mixability gap are not kept below overflow",
        "sfmab_jax/numerics/stability.py",
        "    offsets = offsets - jnp.minimum(jnp.min(offsets) + 60, 0)\n",
        "",
        "test_mixability_properties",
    ),
    # Potentials.
    Fault(
        "psi' of a Tsallis entropy has c in place of 1 - c, the same at 1/2",
        "sfmab_jax/potentials/tsallis.py",
        "return _psi(c, u) / (-u * (1 - c))",
        "return _psi(c, u) / (-u * c)",
        "test_potentials",
    ),
    # Sampling.
    Fault(
        "a uniform number on the border of two arms draws the one before",
        "sfmab_jax/numerics/draw.py",
        "is_behind = running.value - high <= low - running.error",
        "is_behind = running.value - high < low - running.error",
        "test_draw",
    ),
    Fault(
        "decaying exploration is a round late",
        "sfmab_jax/sampling/mixing.py",
        "gamma = jnp.sqrt(len(seen.play) / t.astype(dtype))",
        "gamma = jnp.sqrt(len(seen.play) / state.num_rounds.astype(dtype))",
        "test_properties_parts test_algorithm",
    ),
    # Estimation; see also Exp3-IX below.
    Fault(
        "losses are weighted by the play p, not by the law p' of the arm",
        "sfmab_jax/estimation/importance.py",
        "return loss / pick(probabilities, arm)",
        "return loss / pick(play, arm)",
        "test_algorithm test_simulate",
    ),
    # Full information.
    Fault(
        "AdaFTRL's learning rate is without the gap of the last round",
        "sfmab_jax/full_information/ada_ftrl.py",
        "rate = _rate(alpha, len(seen.play), gaps)",
        "rate = _rate(alpha, len(seen.play), state.gaps)",
        "test_algorithm",
    ),
    Fault(
        "AdaTINF's learning rate is not halved for the other regulariser",
        "sfmab_jax/full_information/heavy_tails.py",
        "return 0.5 / inverse_rate(scale)",
        "return 1 / inverse_rate(scale)",
        "test_strategy_trajectories",
    ),
    # The constants of ten strategies.
    Fault(
        "Hedge has 2 in place of 8",
        "sfmab_jax/strategies/schedules.py",
        "jnp.sqrt(8 * math.log(n) / (t + 1))",
        "jnp.sqrt(2 * math.log(n) / (t + 1))",
        "test_strategy_trajectories",
    ),
    Fault(
        "Exp3 for known T lacks its 2",
        "sfmab_jax/strategies/schedules.py",
        "jnp.sqrt(2 * math.log(n) / (n * num_rounds))",
        "jnp.sqrt(math.log(n) / (n * num_rounds))",
        "test_strategy_trajectories",
    ),
    Fault(
        "Exp3.P explores by 1.15 in place of 1.05",
        "sfmab_jax/strategies/schedules.py",
        "jnp.minimum(0.5, 1.05 * jnp.sqrt(",
        "jnp.minimum(0.5, 1.15 * jnp.sqrt(",
        "test_strategy_trajectories",
    ),
    Fault(
        "the implicit exploration of Exp3-IX is twice as large",
        "sfmab_jax/strategies/schedules.py",
        "return implicit_rate(1.0, t, n) / 2",
        "return implicit_rate(1.0, t, n)",
        "test_strategy_trajectories",
    ),
    Fault(
        "the learning rate of Exp3++ is not halved",
        "sfmab_jax/strategies/schedules.py",
        "return implicit_rate(scale, t, n) / 2",
        "return implicit_rate(scale, t, n)",
        "test_strategy_trajectories",
    ),
    Fault(
        "AHB explores with 2.5 in place of 5",
        "sfmab_jax/strategies/schedules.py",
        "jnp.sqrt(5 * (1 - decay) * n",
        "jnp.sqrt(2.5 * (1 - decay) * n",
        "test_strategy_trajectories",
    ),
    Fault(
        "Tsallis-INF with reduced variance has its baseline from eta'^2 / 4 on",
        "sfmab_jax/strategies/schedules.py",
        "return 16 / (t + 1)",
        "return 4 / (t + 1)",
        "test_strategy_trajectories test_strategy_regressions",
    ),
    Fault(
        "HTINF's learning rate is not divided by the tail index",
        "sfmab_jax/strategies/schedules.py",
        "return 1 / (tail * size * (t + 1) ** (1 / tail))",
        "return 1 / (size * (t + 1) ** (1 / tail))",
        "test_strategy_trajectories",
    ),
    Fault(
        "UCB1's bonus lacks its 2",
        "sfmab_jax/strategies/schedules.py",
        "jnp.sqrt(2 * jnp.log(t) / num_plays)",
        "jnp.sqrt(jnp.log(t) / num_plays)",
        "test_strategy_trajectories",
    ),
    Fault(
        "the rate of BROAD has two digits exchanged",
        "sfmab_jax/strategies/data_dependent.py",
        "LARGEST_RATE = 1 / 162",
        "LARGEST_RATE = 1 / 126",
        "test_strategy_trajectories",
    ),
    # Losses.
    Fault(
        "sequences draw the same words in every round",
        "sfmab_jax/losses/draws.py",
        "counter = (jnp.full_like(number, round_), number)",
        "counter = (jnp.full_like(number, 1), number)",
        "test_loss_laws test_losses",
    ),
    Fault(
        "the means of a permuted sequence are those of the wrong arms",
        "sfmab_jax/losses/combinators.py",
        "return mean(inner, round_)[order]",
        "return mean(inner, round_)",
        "test_loss_combinators",
    ),
    Fault(
        "the best arm switches a round late",
        "sfmab_jax/losses/switching.py",
        "jnp.sum(times <= round_, dtype=jnp.int32)",
        "jnp.sum(times < round_, dtype=jnp.int32)",
        "test_loss_laws",
    ),
    # Engine.
    Fault(
        "a checkpoint shows the round before it",
        "sfmab_jax/engine/rows.py",
        "checkpoints[:, None] < rounds[None, :]",
        "checkpoints[:, None] <= rounds[None, :]",
        "test_simulate",
    ),
    Fault(
        "games draw their arms from the key of the losses",
        "sfmab_jax/engine/run.py",
        "game_keys(jax.random.split(root)[0], sequences, seeds)",
        "game_keys(jax.random.split(root)[1], sequences, seeds)",
        "test_algorithm",
    ),
    Fault(
        "a bookmark forgets the losses that were made ahead",
        "sfmab_jax/engine/loss_stream.py",
        "return [*jax.tree.leaves(self._states), *spare]",
        "return jax.tree.leaves(self._states)",
        "test_bookmarks",
    ),
    Fault(
        "a maximum in lanes, beside other reductions, is never below 0",
        "sfmab_jax/engine/lanes/reductions.py",
        '"reduce_max": -jnp.inf',
        '"reduce_max": 0.0',
        "test_reductions",
    ),
    # Results.
    Fault(
        "a standard error divides by n in place of n - 1",
        "sfmab_jax/results/statistics.py",
        "return values.std(axis=0, ddof=1) / np.sqrt(count)",
        "return values.std(axis=0, ddof=0) / np.sqrt(count)",
        "test_results",
    ),
    Fault(
        "files of results forget the unit of the losses",
        "sfmab_jax/results/result.py",
        '    "unit",\n',
        "",
        "test_result_files",
    ),
    Fault(
        "files are written in place, not beside it and renamed",
        "sfmab_jax/results/files.py",
        """\
        with os.fdopen(handle, "wb") as file:
            write(file)
        os.replace(temporary, path)
""",
        """\
        with os.fdopen(handle, "wb"), path.open("wb") as file:
            write(file)
        os.unlink(temporary)
""",
        "test_result_files",
    ),
    # Theory.
    Fault(
        "the tight bound of option 1 has 2n in place of 4n under its root",
        "sfmab_jax/theory/bounds.py",
        "4 * n * np.cumsum(spent, axis=1)",
        "2 * n * np.cumsum(spent, axis=1)",
        "test_bounds",
    ),
    # Worst case.
    Fault(
        "the search for hard losses keeps the easiest table",
        "sfmab_jax/worst_case/search.py",
        "better = scores > ascent.scores",
        "better = scores < ascent.scores",
        "test_worst_case",
    ),
    # Study.
    Fault(
        "the blocks of a cell are joined in the wrong order",
        "sfmab_jax/study/study.py",
        "np.concatenate([getattr(result, key) for result in results], axis=1)",
        "np.concatenate([getattr(result, key) for result in reversed(results)], axis=1)",
        "test_study_runner",
    ),
    Fault(
        "the identity of a cell does not tell the seeds of studies apart",
        "sfmab_jax/study/cells.py",
        'for label in ("strategy", "losses", "scale", "digests", "folder"):',
        'for label in ("strategy", "losses", "scale", "digests", "folder", "seed"):',
        "test_study_files",
    ),
    Fault(
        "the lock of a folder can be held by several",
        "sfmab_jax/study/lock.py",
        "fcntl.LOCK_EX | fcntl.LOCK_NB",
        "fcntl.LOCK_SH | fcntl.LOCK_NB",
        "test_study_runner",
    ),
    # Command line and report.
    Fault(
        "sfmab verify ends with exit code 0 though a claim failed",
        "sfmab_jax/cli/main.py",
        "raise typer.Exit(1)",
        "raise typer.Exit(0)",
        "test_verify",
    ),
    Fault(
        "the title of a study goes into its page as HTML",
        "sfmab_jax/study/document.py",
        "<h1>{escape(title)}</h1>",
        "<h1>{title}</h1>",
        "test_study_report",
    ),
    # Checks.
    Fault(
        "NaN counts as a finite number",
        "sfmab_jax/checks.py",
        "if not np.isfinite(number) or (positive and number <= 0):",
        "if np.isinf(number) or (positive and number <= 0):",
        "test_strategies test_losses",
    ),
)

if __name__ == "__main__":
    main()
