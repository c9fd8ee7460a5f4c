"""`sfmab run --sweep both-worlds`: the stations, what is measured at them, table, file, picture."""

import csv
import re
import shlex
from pathlib import Path

import numpy as np
import pytest
from loss_samples import means, rows
from made_results import made
from scipy import stats
from wrong_commands import run_command

import sfmab_jax as sf
from sfmab_jax.cli.both_worlds import (
    BUDGETS,
    GAP,
    STRATEGIES,
    Row,
    Station,
    format_cell,
    make_rows,
    make_stations,
)
from sfmab_jax.results.identity import identity_of_losses
from sfmab_jax.study.cells import plan_cells
from sfmab_jax.study.config import read_study

ROUNDS = 1000
ROOT = Path(__file__).parents[2]
BY_LABEL = {station.label: station for station in make_stations(5, ROUNDS)}


def table_of(path) -> list[dict[str, str]]:
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


# The stations are what they claim to be.


@pytest.mark.quick
def test_budgets_are_parts_of_the_rounds():
    budgets = [station.budget for station in BY_LABEL.values() if station.budget is not None]
    assert budgets == [int(part * ROUNDS) for part in BUDGETS] == [0, 10, 100, 300]
    assert list(BY_LABEL)[:4] == ["stochastic", "C = 10", "C = 100", "C = 300"]


def test_arm_0_is_the_best_by_the_gap_where_that_is_said():
    """In every round but those corrupted, in which it is the worst by the gap."""
    for label, station in BY_LABEL.items():
        ahead = means(station.losses, ROUNDS)[:, 1:] - means(station.losses, ROUNDS)[:, :1]
        if station.gap is None:
            assert label in ("turning", "minimax", "cyclic")
            continue
        assert station.gap == GAP
        flipped = station.budget or 0
        np.testing.assert_allclose(ahead[:flipped], -GAP, rtol=1e-6)
        np.testing.assert_allclose(ahead[flipped:], GAP, rtol=1e-6)


def test_the_adversarial_stations():
    """The worst arm becomes the best; one arm leads by sqrt(n / T); arms take turns."""
    turning = means(BY_LABEL["turning"].losses, ROUNDS)
    assert (turning[: ROUNDS // 2].argmax(axis=1) == 4).all()
    assert (turning[ROUNDS // 2 :].argmin(axis=1) == 4).all()
    minimax = means(BY_LABEL["minimax"].losses, ROUNDS)
    np.testing.assert_allclose(np.ptp(minimax, axis=1), np.sqrt(5 / ROUNDS), rtol=1e-6)
    cyclic = rows(BY_LABEL["cyclic"].losses, ROUNDS)
    np.testing.assert_array_equal(cyclic.sum(axis=0), ROUNDS * 4 / 5)


def test_the_first_station_has_the_bits_of_bernoulli_and_all_losses_are_0_or_1():
    bernoulli = rows(sf.losses.bernoulli(5, gap=GAP), ROUNDS)
    np.testing.assert_array_equal(rows(BY_LABEL["stochastic"].losses, ROUNDS), bernoulli)
    for station in BY_LABEL.values():
        assert set(np.unique(rows(station.losses, ROUNDS))) == {0, 1}


@pytest.mark.quick
def test_the_strategies_make_at_most_eight_lines():
    names = STRATEGIES.split(",")
    assert set(names) <= set(sf.strategies.STRATEGIES)
    assert len(names) + ("scale_free" in names) <= 8


@pytest.mark.quick
def test_the_ready_study_has_the_same_losses_and_strategies():
    cells = plan_cells(read_study("both_worlds"))
    stations = make_stations(10, 10_000)
    played = {identity_of_losses(cell.sequence()): cell for cell in cells}
    assert list(played) == [identity_of_losses(station.losses) for station in stations]
    assert list(dict.fromkeys(cell.strategy_name for cell in cells)) == STRATEGIES.split(",")
    quick = plan_cells(read_study("both_worlds", quick=True))
    assert [cell.sequence().name for cell in quick] == [cell.sequence().name for cell in cells]
    assert {cell.num_rounds for cell in quick} == {10_000}


# What is measured.


@pytest.mark.quick
def test_rows_against_textbook_formulas():
    """Means with Student's intervals, and paired differences to the least, written out."""
    generator = np.random.default_rng(3)
    plays = generator.integers(0, 70, (60, 1, 1, 3))
    counts = {"one": plays, "other": plays + generator.integers(0, 20, plays.shape)}
    results = {
        name: made(
            np.zeros((60, 1, 1)),
            name=name,
            rounds=np.array([300]),
            kept={"arm_counts": count, "pseudo_regret": 7.0 + np.zeros((60, 1, 1))},
        )
        for name, count in counts.items()
    }
    one, other = make_rows(Station("some", None, 0.5, 9), results)
    samples = {name: 0.5 * (300 - count[:, 0, 0, 0]) for name, count in counts.items()}
    for row, sample in zip((one, other), samples.values()):
        wanted = stats.t.interval(0.95, 59, sample.mean(), stats.sem(sample))
        assert (row.regret, row.low, row.high) == pytest.approx((sample.mean(), *wanted))
        assert (row.regret_is, row.budget, row.sequences, row.games) == ("pseudo-regret", 9, 60, 60)
        assert row.as_played == 7
    gaps = samples["one"] - samples["other"]
    assert gaps.mean() > 0
    wanted = (gaps.mean(), *stats.t.interval(0.95, 59, gaps.mean(), stats.sem(gaps)))
    assert (one.above_least, one.above_low, one.above_high) == pytest.approx(wanted)
    assert other.is_least
    assert not one.is_least
    assert one.is_told


def test_pseudo_regret_is_in_the_means_before_corruption():
    """That of `simulate`, which is in the means as played, and 2 gap for each round deceived."""
    station = next(s for s in make_stations(3, 200) if s.budget == 20)
    results = sf.simulate(
        {"exp3": sf.strategies.exp3()},
        station.losses,
        num_rounds=200,
        num_seeds=50,
        checkpoints=[20, 200],
        arm_counts=True,
        pseudo_regret=True,
    )
    (row,) = make_rows(station, results)
    result = results["exp3"]
    deceived = result.arm_counts[:, :, 0, 1:].sum(axis=-1).mean()
    assert row.regret == pytest.approx(row.as_played + 2 * GAP * deceived, rel=1e-5)
    assert row.as_played == pytest.approx(result.mean("pseudo")[0, -1], rel=1e-12)


# The command.


@pytest.fixture(scope="module")
def small_sweep(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sweep")
    options = "--arms 3 --rounds 100 --seeds 60 --strategies uniform,fixed_arm"
    return folder, run_command(["run", "--sweep", "both-worlds", *options.split()], folder)


def test_tables_file_and_picture(small_sweep):
    folder, (code, printed, said) = small_sweep
    assert code == 0, said
    assert said.splitlines() == [f"{s.label}: done" for s in make_stations(3, 100)]
    words = " ".join(printed.split())
    assert "Stochastic side, gap 0.2: pseudo-regret after 100 rounds, 3 arms (float32)" in words
    assert "Adversarial side: regret after 100 rounds, 3 arms (float32)" in words
    assert "over 60 sequences (turning, minimax); given the sequence (cyclic)" in words
    assert "pseudo-regret in the means before the first C rounds were corrupted" in words
    assert "regret against the best fixed arm of the losses as they came" in words
    assert "Wrote both_worlds.png and both_worlds.csv" in words
    assert sorted(path.name for path in folder.iterdir()) == ["both_worlds.csv", "both_worlds.png"]
    assert (folder / "both_worlds.png").read_bytes().startswith(b"\x89PNG")
    table = table_of(folder / "both_worlds.csv")
    assert len(table) == 8 * 2
    kinds = {row["station"]: row["regret_is"] for row in table}
    assert list(kinds.values()) == ["pseudo-regret"] * 5 + ["regret"] * 3
    for row in table:
        assert float(row["low"]) <= float(row["regret"]) <= float(row["high"])
        assert float(row["above_least"]) >= 0


def test_figures_are_known_or_those_of_simulate(small_sweep):
    """The best arm has no pseudo-regret, uniform play 2/3 of the gap a round; regret as played."""
    table = table_of(small_sweep[0] / "both_worlds.csv")
    for row in table:
        if row["regret_is"] == "pseudo-regret" and row["strategy"] == "fixed_arm":
            assert float(row["regret"]) == 0
        elif row["regret_is"] == "pseudo-regret":
            error = GAP * np.sqrt(100 * 2 / 9 / 60)
            assert abs(float(row["regret"]) - 100 * GAP * 2 / 3) < 4 * error
        elif (row["station"], row["strategy"]) == ("minimax", "uniform"):
            result = sf.simulate(
                sf.strategies.uniform(),
                sf.losses.minimax(3, 100, constant=1.0),
                num_rounds=100,
                num_seeds=60,
            )
            assert float(row["regret"]) == pytest.approx(result.mean()[0, -1], rel=1e-12)


@pytest.mark.quick
@pytest.mark.parametrize(
    ("regret", "half", "above", "doubtful", "text"),
    [
        (163.97, 3.61, (0.0, 0.0), False, "164.0±3.6*"),
        (581.7, 29.4, (43.0, 14.0), True, "582±29†"),
        (64.2, 0.951, (1.0, -0.2), False, "64.20±0.95≈"),
        (1000.0, 0.0, (998.0, 998.0), False, "1000±0"),
        (12.34567, np.nan, (3.0, np.nan), False, "12.35"),  # a single game
        (-592.3, 6.0, (0.0, 0.0), True, "-592.3±6.0*†"),
    ],
)
def test_cells_of_the_tables(regret, half, above, doubtful, text):
    """As many digits as the interval has; the least, those not told from it, the doubtful."""
    row = Row(
        *("station", "losses", None, "regret", "exp3", 60, 60),
        *(regret, regret - half, regret + half, doubtful),
        *(*above, above[0], regret),
    )
    assert format_cell(row) == text


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (
            "--sweep both-worlds --losses uniform",
            "--losses is 'uniform', but --sweep both-worlds has losses of its own; leave out one "
            "of the two",
        ),
        (
            "--sweep both-worlds --scales 1",
            "--scales is '1', but --sweep both-worlds has losses of its own; leave out one of the "
            "two",
        ),
        ("--sweep worlds", "--sweep is 'worlds'; choose both-worlds"),
        (
            "--sweep both-worlds --rounds 99",
            "num_rounds is 99; --sweep both-worlds corrupts a hundredth of the rounds: give 100 or "
            "more",
        ),
        ("--sweep both-worlds --arms 1", "num_arms is 1; give an integer from 2 to 16777216"),
        ("--sweep both-worlds --seeds 0", "num_seeds is 0"),
        ("--sweep both-worlds --output worlds", "--output is worlds; give a name that ends in"),
        ("--sweep both-worlds --strategies exp4", "--strategies: there is no 'exp4'"),
    ],
)
def test_what_makes_no_sense_is_refused_in_a_sentence(options, said, tmp_path):
    code, printed, errors = run_command(["run", *options.split()], tmp_path)
    assert (code, printed) == (2, "")
    assert errors.startswith(f"sfmab: {said}")
    assert errors.count("\n") == 1
    assert not list(tmp_path.iterdir())


def test_several_processes_are_refused(tmp_path, monkeypatch):
    for key, value in {"STEP_NODELIST": "node", "PROCID": "0", "NTASKS": "2"}.items():
        monkeypatch.setenv(f"SLURM_{key}", value)
    code, _, said = run_command(["run", "--sweep", "both-worlds"], tmp_path)
    assert code == 2
    assert said.startswith("sfmab: --sweep is played by one process, and there are 2;")


def test_the_command_of_the_readme(tmp_path):
    readme = (ROOT / "README.md").read_text()
    (shown,) = re.findall(r"(?m)^sfmab (run --sweep .*)$", readme)
    small = "--rounds 100 --seeds 4 --arms 3 --strategies fixed_arm --output few.svg"
    code, printed, said = run_command(
        [*shlex.split(shown, comments=True), *small.split()], tmp_path
    )
    assert code == 0, said
    assert "†: doubtful" in printed
    assert {path.name for path in tmp_path.iterdir()} == {"few.svg", "few.csv"}
