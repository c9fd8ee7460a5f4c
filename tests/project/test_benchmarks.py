"""The benchmark: every rival plays the same game as the engine, and the figures are written."""

import json
from functools import partial

import numpy as np
import pytest
from paper_loop import play_game

import sfmab_jax as sf
from benchmarks.child import Cell, Child, contender_spec
from benchmarks.contests import CONTESTS
from benchmarks.machine import describe_machine
from benchmarks.report import contest_record, text_table, write_readme
from benchmarks.rivals.c_lanes import (
    c_free,
    c_own_free,
    c_own_same_work,
    c_same_work,
    checkpoint_rounds,
    own_same_work_library,
    play_in_c,
    same_work_library,
)
from benchmarks.rivals.numpy_loop import numpy_loop
from benchmarks.rivals.numpy_over_seeds import numpy_over_seeds
from benchmarks.rivals.vmap_own_losses import vmap_own_losses
from benchmarks.sweeps import SWEEPS, Point, Sweep, run_sweep
from sfmab_jax.cli.bench import (
    Contender,
    MissingRivalError,
    Timing,
    losses_for_bench,
    race,
    short_form,
    vmap_scan_while_loop,
)
from sfmab_jax.cli.main import main as command_line
from sfmab_jax.numerics.threefry import threefry_2x32

ROUNDS, ARMS, GAP = 60, 10, 0.2


@pytest.fixture(scope="module")
def losses():
    return losses_for_bench(ROUNDS, ARMS)


@pytest.fixture(scope="module")
def played(losses):
    """The engine's games: mean realised loss, and its standard error."""
    bandit = sf.strategies.scale_free("adaptive")
    result = sf.simulate(bandit, losses, num_seeds=4096, progress=False)
    return mean_and_error(result.regret[0, :, -1] + result.norms.best[0, -1])


@pytest.fixture(scope="module")
def played_on_own_losses():
    """The same of games that each draw their own losses."""
    ours = CONTESTS["algorithm_1_own_losses"](ARMS, ROUNDS).contenders[0]
    return mean_and_error(ours.make(4096)(0))


def mean_and_error(totals):
    return totals.mean(), totals.std(ddof=1) / np.sqrt(len(totals))


@pytest.mark.parametrize(
    ("rival", "games"),
    [
        (c_same_work, 4096),
        (c_free, 4096),
        (vmap_scan_while_loop, 4096),
        (numpy_over_seeds, 4096),
        (numpy_loop, 128),
    ],
)
def test_rivals_play_the_same_game(losses, played, rival, games):
    totals = rival(losses, games)(1)
    assert totals.shape == (games,)
    mean, error = mean_and_error(totals)
    assert abs(mean - played[0]) < 4 * np.hypot(error, played[1])


@pytest.mark.parametrize("rival", [c_own_same_work, c_own_free, vmap_own_losses])
def test_rivals_play_the_same_game_on_losses_of_their_own(played_on_own_losses, rival):
    totals = rival(ARMS, ROUNDS, GAP, 4096)(1)
    assert totals.shape == (4096,)
    mean, error = mean_and_error(totals)
    assert abs(mean - played_on_own_losses[0]) < 4 * np.hypot(error, played_on_own_losses[1])
    # The same spread, too.
    assert abs(error - played_on_own_losses[1]) < 0.1 * error


@pytest.mark.parametrize(
    ("contest", "rival"),
    [
        ("algorithm_1", "Numba prange"),
        ("algorithm_1_own_losses", "Numba prange"),
        ("exp3", "pymab (Rust)"),
        ("tsallis_inf", "SMPyBandits"),
    ],
)
def test_optional_rivals_play_the_same_game_or_say_what_is_missing(contest, rival):
    contenders = CONTESTS[contest](ARMS, ROUNDS).contenders
    (optional,) = (contender for contender in contenders if contender.name == rival)
    try:
        optional.make(2)
    except MissingRivalError as missing:
        assert "pip install" in str(missing)  # noqa: PT017, it is missing on most machines
    else:
        timings, skipped = race([contenders[0], optional], 512, ROUNDS, 1)
        assert [timing.name for timing in timings] == ["sfmab_jax", rival]
        assert skipped == []


@pytest.mark.parametrize("arms", [2, 33])
def test_c_gives_the_paper_loops_regret(arms):
    """Realised and conditional losses at the checkpoints, against a loop that shares no code."""
    num_rounds, num_games = 16, 100
    losses = losses_for_bench(num_rounds, arms)
    checkpoints = checkpoint_rounds(num_rounds)
    totals = play_in_c(same_work_library(arms), losses, 4096, 5, checkpoints)
    generator = np.random.default_rng(arms)
    expected = np.empty((num_games, len(checkpoints), 2))
    for game in range(num_games):
        seen = play_game(losses, "adaptive", generator.random(num_rounds))
        realised = np.take_along_axis(losses, seen.arms[:, None], axis=1)[:, 0]
        conditional = np.sum(losses * seen.probabilities, axis=1)
        both = np.cumsum(np.stack([realised, conditional], axis=-1), axis=0)
        expected[game] = both[checkpoints - 1]
    error = np.hypot(expected.std(axis=0) / 10, totals.std(axis=0) / 64)
    # Round 1 has no chance in its conditional loss. 32 dependent comparisons: 5 standard errors.
    assert np.all(np.abs(totals.mean(axis=0) - expected.mean(axis=0)) <= 5 * error + 1e-5)


def losses_drawn_in_c(seed, num_games, num_rounds, arms):
    """The losses that the games draw for themselves: float32 [games, T, n]."""
    shape = (num_games, num_rounds, (arms + 1) // 2)
    games, rounds, blocks = np.indices(shape, dtype=np.uint32)
    root = (np.full_like(games, seed), np.full_like(games, 0x1055))
    keys = threefry_2x32(root, (games, np.zeros_like(games)))
    words = np.concatenate(threefry_2x32(keys, (rounds + 1, blocks)), axis=-1)[..., :arms]
    losses = ((words >> 8).astype(np.float64) - 2**23 + 0.5) / 2**23
    losses[..., 0] -= np.float32(GAP)
    return losses.astype(np.float32)


@pytest.mark.parametrize("arms", [2, 33])
def test_c_plays_on_the_losses_it_draws_and_measures_them(arms):
    num_rounds, num_games = 16, 100
    checkpoints = checkpoint_rounds(num_rounds)
    kept = play_in_c(own_same_work_library(arms, GAP), None, num_games, 5, checkpoints)
    losses = losses_drawn_in_c(5, num_games, num_rounds, arms)
    sums = np.cumsum(losses, axis=1, dtype=np.float64)
    size = np.abs(losses).astype(np.float64)
    expected = [
        sums.min(axis=2),
        sums.mean(axis=2),
        np.abs(sums).max(axis=2),
        np.cumsum(size.sum(axis=2), axis=1),
        np.cumsum((size**2).sum(axis=2), axis=1),
        np.maximum.accumulate(size.max(axis=2), axis=1),
    ]
    measured = np.stack(expected, axis=-1)[:, checkpoints - 1]
    np.testing.assert_allclose(kept[:, :, 2:], measured, rtol=1e-6, atol=1e-5)

    generator = np.random.default_rng(arms)
    played = np.empty((num_games, num_rounds, 2))
    for game, table in enumerate(losses):
        seen = play_game(table, "adaptive", generator.random(num_rounds))
        realised = np.take_along_axis(table, seen.arms[:, None], axis=1)[:, 0]
        conditional = np.sum(table * seen.probabilities, axis=1)
        played[game] = np.cumsum(np.stack([realised, conditional], axis=-1), axis=0)
    difference = kept[:, :, :2] - played[:, checkpoints - 1]
    # Round 1 has no chance in its conditional loss. 32 dependent comparisons: 5 standard errors.
    error = difference.std(axis=0) / np.sqrt(num_games)
    assert np.all(np.abs(difference.mean(axis=0)) <= 5 * error + 1e-5)


def test_c_compares_any_number_of_games_and_repeats_itself(losses):
    library = same_work_library(ARMS)
    checkpoints = checkpoint_rounds(ROUNDS)
    many = play_in_c(library, losses, 37, 3, checkpoints)
    assert np.array_equal(many[:5], play_in_c(library, losses, 5, 3, checkpoints))
    assert not np.array_equal(many, play_in_c(library, losses, 37, 4, checkpoints))


def test_another_game_is_refused():
    def make(shift, games):
        return lambda seed: np.random.default_rng(seed).normal(size=games) + shift

    ours, same = Contender("ours", partial(make, 0)), Contender("same", partial(make, 0), 100)
    timings, skipped = race([ours, same], 1000, 7, 3)
    assert [timing.games for timing in timings] == [1000, 100]
    assert [len(timing.seconds) for timing in timings] == [3, 3]
    assert skipped == []
    with pytest.raises(ValueError, match="other plays another game"):
        race([ours, Contender("other", partial(make, 0.5))], 1000, 7, 3)


def test_missing_rivals_are_named():
    def make(games):
        raise MissingRivalError("it is not installed; pip install it")

    ours = Contender("ours", lambda games: lambda seed: np.arange(games))
    timings, skipped = race([ours, Contender("absent", make)], 4, 1, 1)
    assert [timing.name for timing in timings] == ["ours"]
    assert skipped == ["absent skipped: it is not installed; pip install it"]


def test_ratios_are_taken_within_a_repeat():
    ours = Timing("ours", 100, 10, 0.0, 1.0, 3.0, [1.0, 2.0])
    slow = Timing("slow", 10, 10, 0.0, 1.0, 3.0, [1.0, 4.0])
    assert slow.ratio_of(ours).tolist() == [10, 20]
    assert ours.compile_seconds == 1.5
    record = contest_record("Title", "settings", [ours, slow], {"ours": 5.0}, ["x skipped: y"])
    assert "15 (10 to 20)" in text_table(record)
    assert "x skipped: y" in text_table(record)
    single = contest_record("Title", "", [ours._replace(standard_error=np.nan)], {}, [])
    assert single["rows"][0]["standard_error"] is None


def test_short_form(capsys):
    timings = short_form(4, 30, 64, 1)
    assert [timing.name for timing in timings] == ["sfmab_jax", "vmap(scan(while_loop))"]
    with pytest.raises(SystemExit) as stopped:
        command_line(["bench", "--arms", "4", "--rounds", "30", "--seeds", "64", "--repeats", "1"])
    assert stopped.value.code == 0
    assert "python -m benchmarks" in capsys.readouterr().out
    with pytest.raises(SystemExit) as stopped:
        command_line(["bench", "--seeds", "1"])
    assert stopped.value.code == 2


def test_cost_is_per_round_of_a_game():
    point = Point("label", Cell(rounds=10, sequences=4, seeds=5), [2e-6], 0.0, 0.0)
    assert point.nanoseconds_per_round == pytest.approx([10])
    for quick in (True, False):
        cells = SWEEPS["sequences"](quick).cells.values()
        assert len({cell.sequences * cell.seeds for cell in cells}) == 1
        assert [cell.seeds for cell in cells][-1] == 1


@pytest.mark.full
def test_sweeps_in_small():
    cells = {
        "1": Cell(seeds=16, rounds=20),
        "2": Cell(seeds=16, rounds=20, dtype="float64"),
        "3": Cell(sequences=16, seeds=1, rounds=20),
    }
    points = run_sweep(Sweep("Title", "cell", cells), 2, lambda line: None)
    assert [point.label for point in points] == ["1", "2", "3"]
    assert all(len(point.seconds) == 2 and point.peak_megabytes > 50 for point in points)
    for make in SWEEPS.values():
        for cell in [*make(True).cells.values(), *make(False).cells.values()]:
            assert cell.strategy in sf.strategies.STRATEGIES


def test_a_child_plays_as_a_contender():
    child = Child(contender_spec("algorithm_1", "C, same work", ARMS, ROUNDS, 256))
    answers = [child.play(seed) for seed in range(2)]
    child.close()
    assert all(answer["seconds"] > 0 and answer["peak_megabytes"] > 10 for answer in answers)


def test_readme_region(tmp_path):
    readme = tmp_path / "README.md"
    marked = "Before\n<!-- results: begin -->\nold\n<!-- results: end -->\nAfter\n"
    readme.write_text(marked)
    results = tmp_path / "results"
    results.mkdir()
    timing = Timing("ours", 100, 10, 0.0, 1.0, 3.0, [1.0, 2.0])
    record = contest_record("Title", "10 arms", [timing], {}, [])
    machine = describe_machine()
    (results / "contests.json").write_text(json.dumps({"machine": machine, "records": [record]}))
    write_readme(readme, results)
    write_readme(readme, results)  # again, to the same effect
    text = readme.read_text()
    assert text.startswith("Before\n")
    assert text.endswith("\nAfter\n")
    assert "old" not in text
    assert text.count("**Title: 10 arms**") == 1
    readme.write_text("no marks")
    with pytest.raises(ValueError, match="once each"):
        write_readme(readme, results)
