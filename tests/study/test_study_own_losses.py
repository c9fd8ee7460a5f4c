"""Studies whose seeds have losses of their own: which games are played, kept and joined."""

from pathlib import Path

import numpy as np
import pytest
from study_folders import block_files

import sfmab_jax as sf
from sfmab_jax.study import store
from sfmab_jax.study.blocks import Block, cut_into_blocks
from sfmab_jax.study.cells import Cell, plan_cells
from sfmab_jax.study.config import parse_study
from sfmab_jax.study.cost import cost_of, this_machine
from sfmab_jax.study.report import write_report
from sfmab_jax.study.runner import run_study

TEXT = """
title = "Own losses"
arms = 3
rounds = 32
seeds = 24
checkpoints = 4
[strategies.control]
strategy = "uniform"
[strategies.first]
strategy = "fixed_arm"
[losses.coins]
family = "bernoulli"
[losses.parity]
"""


def run(text: str, folder: Path) -> tuple[int, list[str]]:
    said: list[str] = []
    return run_study(parse_study(text, "own.toml"), folder, said.append), said


@pytest.fixture(scope="module")
def finished(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("study") / "out"
    assert run(TEXT, folder)[0] == 4
    return folder


def cell_of(text: str = TEXT) -> Cell:
    return plan_cells(parse_study(text, "own.toml"))[0]


def test_each_seed_of_a_random_family_has_its_own_sequence(finished):
    study = sf.load_study(finished)
    coins, parity = study.settings
    expected = sf.simulate(
        sf.strategies.uniform(),
        sf.losses.bernoulli(num_arms=3),
        num_rounds=32,
        num_seeds=24,
        checkpoints=4,
    )
    got = study["control", coins]
    assert got.regret.shape == (24, 1, 4)
    np.testing.assert_array_equal(got.regret, expected.regret)
    np.testing.assert_array_equal(got.norms.l_2, expected.norms.l_2)
    # A family without chance has one sequence.
    assert study["control", parity].regret.shape == (1, 24, 4)


def test_sequences_are_as_the_file_says(tmp_path):
    text = TEXT.replace("seeds = 24", "seeds = 24\nsequences = 2")
    assert [cell.num_sequences for cell in plan_cells(parse_study(text, "x.toml"))] == [2] * 4
    assert {cell.num_sequences for cell in plan_cells(parse_study(TEXT, "x.toml"))} == {None, 1}


def test_blocks_of_sequences_join_to_the_same_numbers(finished, tmp_path, monkeypatch):
    monkeypatch.setattr("sfmab_jax.study.blocks.block_seeds", lambda cell: 10)
    assert run(TEXT, tmp_path / "cut")[0] == 4 * 3
    cut, whole = sf.load_study(tmp_path / "cut"), sf.load_study(finished)
    for key in whole:
        np.testing.assert_array_equal(cut[key].regret, whole[key].regret)
        np.testing.assert_array_equal(cut[key].norms.best, whole[key].norms.best)


def test_more_seeds_keep_the_games_that_were_played(finished, tmp_path):
    folder = tmp_path / "out"
    run(TEXT, folder)
    more = TEXT.replace("seeds = 24", "seeds = 40")
    played, said = run(more, folder)
    assert played == 4
    assert said[0].endswith("4 of 4 cells are as before, and 96 of 160 games are there")
    assert said[1] == "changed: seeds was 24"
    assert block_files(finished).items() <= block_files(folder).items()
    run(more, tmp_path / "through")
    grown, through = sf.load_study(folder), sf.load_study(tmp_path / "through")
    for key in through:
        np.testing.assert_array_equal(grown[key].regret, through[key].regret)
        np.testing.assert_array_equal(grown[key].norms.l_1, through[key].norms.l_1)
    # Fewer seeds find their blocks, too.
    assert run(TEXT, folder)[0] == 0


def test_more_rounds_say_that_games_begin_anew(finished, tmp_path):
    folder = tmp_path / "out"
    run(TEXT, folder)
    played, said = run(TEXT.replace("rounds = 32", "rounds = [32, 40]"), folder)
    assert played == 4
    assert "4 of 8 cells are as before" in said[0]
    assert said[1].startswith("changed: rounds was 32; games of more rounds begin anew")


def test_blocks_are_cut_around_those_that_are_there(monkeypatch):
    monkeypatch.setattr("sfmab_jax.study.blocks.block_seeds", lambda cell: 8)
    cell = cell_of()

    def cut(number: int, *kept: tuple[int, int]) -> list[tuple[int, int]]:
        return [block[1:] for block in cut_into_blocks(cell, number, kept)]

    assert cut(20) == [(0, 8), (8, 8), (16, 4)]
    assert cut(30, (16, 4), (0, 8)) == [(0, 8), (8, 8), (16, 4), (20, 4), (24, 6)]
    assert cut(30, (0, 12), (0, 8), (0, 40)) == [(0, 12), (12, 4), (16, 8), (24, 6)]
    assert cut(10, (0, 16), (4, 3)) == [(0, 4), (4, 3), (7, 1), (8, 2)]


def test_games_and_files_are_counted(finished):
    cells = plan_cells(parse_study(TEXT, "own.toml"))
    own, shared = Block(cells[0], 5, 7), Block(cells[2], 5, 7)
    assert tuple(own.games) == (7, 1, 5, 0)
    assert tuple(shared.games) == (1, 7, 0, 5)
    assert own.num_rounds == shared.num_rounds == 7 * 32
    cost = cost_of(cells, 24, this_machine())
    assert cost.num_rounds == 4 * 24 * 32
    sizes = sum(path.stat().st_size for path in finished.glob("cells/*/*.npz"))
    assert 0.5 * sizes < cost.disk < 2 * sizes


def test_strategies_share_the_losses_of_each_block(finished, tmp_path):
    """Losses of another seed in one strategy's block are found, although no cell has them twice."""
    folder = tmp_path / "out"
    run(TEXT, folder)
    other = tmp_path / "other"
    run(TEXT.replace("rounds", "seed = 1\nrounds"), other)
    (mine,) = cut_into_blocks(cell_of(), 24)
    (foreign,) = cut_into_blocks(cell_of(TEXT.replace("rounds", "seed = 1\nrounds")), 24)
    store.write_block(folder, mine, store.read_block(other, foreign))
    with pytest.raises(ValueError, match="have different losses"):
        sf.load_study(folder)


def test_the_report_says_over_what_its_intervals_are(finished):
    page = write_report(finished).read_text()
    assert "24 seeds, each with its own losses if they are random" in page
    assert "over 24 sequences" in page
    assert "given this sequence" in page
    assert "†" in page  # 24 units are few


def test_another_study_is_refused_by_name(finished, tmp_path):
    before = block_files(finished)
    text = TEXT.replace("Own losses", "Mice").replace("control", "a").replace("first", "b")
    with pytest.raises(ValueError, match=r"another study, 'Own losses' of own\.toml.*--output"):
        run_study(parse_study(TEXT.replace("rounds = 32", "rounds = 9"), "mice.toml"), finished)
    with pytest.raises(ValueError, match="holds another study"):
        run(text.replace("rounds = 32", "rounds = 9"), finished)
    # Under another name, but with cells in common, it is the same study.
    assert run_study(parse_study(text, "mice.toml"), finished) == 0
    assert block_files(finished) == before


def test_an_interrupt_while_a_block_is_written_counts_it(tmp_path, monkeypatch):
    """The signal arrives after the file is there, and before anything else."""
    from sfmab_jax.study import play_block

    write, written = play_block.write_block, []

    def write_and_stop(*arguments):
        write(*arguments)
        written.append(arguments)
        if len(written) == 2:
            raise KeyboardInterrupt

    monkeypatch.setattr(play_block, "write_block", write_and_stop)
    with pytest.raises(KeyboardInterrupt, match="stopped after 2 blocks, which are kept"):
        run(TEXT, tmp_path / "out")
    assert len(block_files(tmp_path / "out")) == 2


def test_parameters_are_columns(finished):
    frame = sf.load_study(finished).to_pandas()
    assert len(frame) == 4 * 24 * 4
    first = frame[frame.strategy == "first"]
    assert (first.strategy_arm == 0).all()
    assert frame[frame.strategy == "control"].strategy_arm.isna().all()
    assert frame[frame.losses == "coins"].sequence.max() == 23
    write_report(finished)
    header = (finished / "report" / "tables" / "differences.csv").read_text().splitlines()[0]
    assert "other_arm" in header
    assert "losses_gap" in header
