"""The command line, as a stranger meets it: output, files, messages and exit codes."""

import csv
import os
import subprocess
import sys

import pytest
from wrong_commands import run_command

import sfmab_jax as sf


def sfmab(*arguments, folder):
    """Runs the console command in its own process, with float64 off as users have it."""
    command = [sys.executable, "-c", "from sfmab_jax.cli import main; main()", *arguments]
    environment = os.environ
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=300
    )


@pytest.fixture(scope="module")
def small_run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("run")
    options = "--arms 3 --rounds 200 --seeds 64 --losses uniform,sparse --scales 1,1e6"
    return folder, sfmab("run", *options.split(), "--output", "picture.png", folder=folder)


def test_run_prints_a_table_and_writes_picture_and_figures(small_run):
    folder, finished = small_run
    assert finished.returncode == 0, finished.stderr
    for word in ("uniform", "sparse", "scale_free adaptive", "scale_free decaying", "bound"):
        assert word in finished.stdout
    assert (folder / "picture.png").read_bytes().startswith(b"\x89PNG")
    with open(folder / "picture.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 2 * 2 * 2
    for row in rows:
        assert float(row["low"]) <= float(row["regret"]) <= float(row["high"])
        assert float(row["regret"]) <= float(row["bound"])
    assert sorted(path.name for path in folder.iterdir()) == ["picture.csv", "picture.png"]


def test_run_is_reproducible_from_its_seed(small_run, tmp_path):
    """The same command line gives the same regrets to the last digit, in another process."""
    folder, _ = small_run
    options = "--arms 3 --rounds 200 --seeds 64 --losses uniform --scales 1 --devices 2"
    options += " --exploration adaptive"
    finished = sfmab("run", *options.split(), folder=tmp_path)
    assert finished.returncode == 0, finished.stderr
    with (
        open(folder / "picture.csv", newline="") as all_,
        open(tmp_path / "sfmab_run.csv", newline="") as few,
    ):
        earlier = [r["regret"] for r in csv.DictReader(all_) if r["losses"] == "uniform"][:1]
        assert [r["regret"] for r in csv.DictReader(few)] == earlier


def table_of(path) -> list[dict[str, str]]:
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


def test_run_says_over_what_its_intervals_are(tmp_path):
    """Own losses of each game by default; a family without chance has one sequence."""
    options = "--arms 3 --rounds 100 --seeds 60 --losses bernoulli,parity --scales 1"
    options = [*options.split(), "--strategies", "uniform,ucb1"]
    code, printed, _ = run_command(["run", *options], tmp_path)
    assert code == 0
    words = " ".join(printed.split())
    assert "95% interval, bernoulli over 60 sequences; parity given this sequence" in words
    assert "in every game" in words  # ucb1 on parity, which does not draw
    rows = table_of(tmp_path / "sfmab_run.csv")
    assert [(row["sequences"], row["games"]) for row in rows] == [("60", "60")] * 2 + [
        ("1", "60")
    ] * 2
    expected = sf.simulate(
        sf.strategies.uniform(), sf.losses.bernoulli(num_arms=3), num_rounds=100, num_seeds=60
    )
    assert float(rows[0]["regret"]) == pytest.approx(expected.mean()[0, -1], rel=1e-12)
    speeds = [float(row["rounds_per_second"]) for row in rows]
    assert min(speeds) > 0
    assert len(set(speeds)) == len(rows)  # each strategy's own


def test_doubtful_intervals_and_single_games_are_marked(tmp_path):
    options = "--arms 3 --rounds 100 --seeds 2 --losses bernoulli --scales 1 --strategies uniform"
    printed = run_command(["run", *options.split(), "--sequences", "4"], tmp_path)[1]
    assert "†: doubtful" in printed
    assert "over 4 sequences" in printed
    (row,) = table_of(tmp_path / "sfmab_run.csv")
    assert (row["sequences"], row["games"], row["doubtful"]) == ("4", "8", "True")
    single = [*options.replace("seeds 2", "seeds 1").split(), "--sequences", "1"]
    printed = run_command(["run", *single], tmp_path)[1]
    assert "95% interval, given this sequence" in printed
    assert "in one game" in printed
    assert "†" not in printed


def test_float64_is_one_switch(tmp_path):
    options = "--arms 2 --rounds 50 --seeds 8 --losses gaussian --scales 1 --strategies exp3"
    finished = sfmab("run", *options.split(), "--dtype", "float64", folder=tmp_path)
    assert finished.returncode == 0, finished.stderr
    assert "float64" in finished.stdout


def test_list_has_a_line_for_each(tmp_path):
    code, everything, _ = run_command(["list"], tmp_path)
    assert code == 0
    assert {"scale_free", "uniform", "gaussian", "sparse"} <= set(everything.split())
    _, only, _ = run_command(["list", "losses"], tmp_path)
    assert "uniform" in only
    assert "scale_free" not in only


def test_version(tmp_path):
    assert sfmab("--version", folder=tmp_path).stdout.strip() == sf.__version__


def test_help_shows_examples(tmp_path):
    code, printed, _ = run_command(["run", "--help"], tmp_path)
    assert code == 0
    assert "--losses sparse" in printed


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ("run --losses unifrom", "uniform"),
        ("run --strategies exp4", "exp4"),
        ("run --exploration sometimes", "sometimes"),
        ("run --arms 0", "num_arms is 0"),
        ("run --arms three", "three"),
        ("run --rounds 0", "num_rounds is 0"),
        ("run --seeds -5", "num_seeds is -5"),
        ("run --sequences 0", "num_sequences is 0"),
        ("run --seed -1", "seed is -1"),
        ("run --scales 1,x", "'x'"),
        ("run --scales 0", "scale is 0"),
        ("run --scales inf", "inf"),
        ("run --dtype float16", "float16"),
        ("run --devices 0", "--devices is 0"),
        ("run --output picture.jpeg2", "picture.jpeg2"),
        ("run --output nowhere/picture.png", "nowhere"),
        ("run --no-such-option", "no-such-option"),
        ("rum", "rum"),
        ("list everything", "everything"),
    ],
)
def test_bad_usage_is_one_line_and_exit_code_2(arguments, named, tmp_path):
    code, printed, said = run_command(arguments.split(), tmp_path)
    assert code == 2
    assert not printed
    assert said.count("\n") == 1, said
    assert named in said
    assert not list(tmp_path.iterdir())


def test_bad_usage_in_a_process_of_its_own(tmp_path):
    finished = sfmab("run", "--arms", "0", folder=tmp_path)
    assert finished.returncode == 2
    assert finished.stderr.count("\n") == 1, finished.stderr
    assert "num_arms is 0" in finished.stderr


def test_losses_are_described_measured_and_drawn(tmp_path):
    picture = tmp_path / "sparse.png"
    options = ("--rounds", "200", "--plot", "--output", "sparse.png")
    done = sfmab("losses", "sparse", *options, folder=tmp_path)
    assert done.returncode == 0
    assert "with probability" in done.stdout
    assert ">>>" not in done.stdout
    assert all(f" {measure} " in done.stdout for measure in sf.Hardness._fields)
    assert picture.read_bytes()[:4] == b"\x89PNG"


def test_an_unknown_loss_family(tmp_path):
    code, _, said = run_command(["losses", "spars"], tmp_path)
    assert code == 2
    assert said.strip() == "sfmab: losses: there is no 'spars'; did you mean sparse?"
    assert run_command(["losses", "sparse", "--scale", "-1"], tmp_path)[0] == 2
