"""Studies that are killed, damaged, short of disk or held by another: nothing is lost or mixed."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from study_folders import block_files, damage_file, fill_disk

import sfmab_jax as sf
from sfmab_jax.cli.main import main
from sfmab_jax.study import store
from sfmab_jax.study.analysis import summarize
from sfmab_jax.study.blocks import block_seeds, cut_into_blocks
from sfmab_jax.study.cells import plan_cells
from sfmab_jax.study.config import parse_study
from sfmab_jax.study.display import Display, format_duration
from sfmab_jax.study.lock import hold
from sfmab_jax.study.report import write_report
from sfmab_jax.study.runner import run_study

# More for a thorough look: SFMAB_KILLS=20 pytest tests/study/test_study_runner.py
KILLS = int(os.environ.get("SFMAB_KILLS", "3"))

TEXT = """
title = "Small"
arms = 3
rounds = 64
seeds = 24
sequences = 2
checkpoints = 5
[strategies.adaptive]
strategy = "scale_free"
[losses.dense]
family = "uniform"
scale = [0.5, 1.0, 2.0, 4.0]
"""


def run(text: str, folder: Path) -> tuple[int, list[str]]:
    said: list[str] = []
    return run_study(parse_study(text, "small.toml"), folder, said.append), said


@pytest.fixture(scope="module")
def finished(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("study") / "out"
    assert run(TEXT, folder)[0] == 4
    return folder


@pytest.fixture
def copy(finished, tmp_path) -> Path:
    folder = tmp_path / "copy"
    for name, content in block_files(finished).items():
        (folder / name).parent.mkdir(parents=True)
        (folder / name).write_bytes(content)
    (folder / "manifest.json").write_bytes((finished / "manifest.json").read_bytes())
    return folder


def test_results_are_those_of_simulate(finished):
    study = sf.load_study(finished)
    assert not study.incomplete
    for scale in (0.5, 4.0):
        expected = sf.simulate(
            sf.strategies.scale_free(),
            sf.losses.uniform(num_arms=3, scale=scale),
            num_rounds=64,
            num_seeds=24,
            num_sequences=2,
            checkpoints=5,
        )
        got = study["adaptive", ("dense", 3, 64, scale)]
        np.testing.assert_array_equal(got.regret, expected.regret)
        np.testing.assert_array_equal(got.expected_regret, expected.expected_regret)
        for ours, theirs in zip(got.norms, expected.norms, strict=True):
            np.testing.assert_array_equal(ours, theirs)
        assert got.identity == expected.identity


def test_blocks_of_earlier_versions_lack_the_smallest_loss_and_what_was_played(copy):
    """They count as they did; their bounds are refused."""
    (cell, *_) = plan_cells(parse_study(TEXT, "small.toml"))
    (block,) = cut_into_blocks(cell, 24)
    path = store.block_path(copy, block)
    found = store.read_arrays(path, store.block_header(block))
    assert not isinstance(found, str)
    header, arrays = found
    del arrays["identity"], arrays["norms/smallest"]
    store.write_arrays(path, header, arrays)
    result = store.read_block(copy, block)
    assert isinstance(result, sf.Result)
    assert np.isnan(result.norms.smallest).all()
    assert result.identity is None
    assert "does not say what was played" in sf.theory.guarantees.guarantee(result).reason


def test_a_finished_study_is_not_played_again(copy):
    assert run(TEXT, copy) == (0, [])


@pytest.mark.parametrize("damage", ["truncated", "emptied", "flipped", "removed", "swapped"])
def test_damaged_blocks_are_found_and_played_again(damage, finished, copy):
    first, second = sorted(copy.glob("cells/*/*.npz"))[:2]
    damage_file(damage, first, second)
    assert len(sf.load_study(copy).incomplete) == 1
    played, said = run(TEXT, copy)
    assert played == 1
    assert [line for line in said if "played again" in line] == said
    assert len(said) == (damage != "removed")
    assert block_files(copy) == block_files(finished)


def test_no_flipped_byte_changes_a_number(finished, copy):
    """Wherever a byte flips, the block is either refused or holds the same numbers."""
    (block,) = cut_into_blocks(plan_cells(parse_study(TEXT, "small.toml"))[0], 24)
    path = store.block_path(copy, block)
    good = path.read_bytes()
    expected = store.read_block(finished, block)
    generator = random.Random(0)
    refused = 0
    for place in generator.sample(range(len(good)), 200):
        damaged = bytearray(good)
        damaged[place] ^= 1 << generator.randrange(8)
        path.write_bytes(damaged)
        found = store.read_block(copy, block)
        if isinstance(found, str):
            refused += 1
        else:
            np.testing.assert_array_equal(found.regret, expected.regret)
            np.testing.assert_array_equal(found.expected_regret, expected.expected_regret)
    assert refused > 150


@pytest.mark.parametrize("full_after", [0, 3, 6])
def test_a_full_disk_loses_nothing_but_the_block_under_way(
    full_after, finished, tmp_path, monkeypatch
):
    folder = tmp_path / "out"
    fill_disk(monkeypatch, full_after)
    with pytest.raises(OSError, match="No space left"):
        run(TEXT, folder)
    monkeypatch.undo()
    assert not list(folder.glob("**/*.tmp"))
    before = block_files(folder)
    played, _ = run(TEXT, folder)
    assert played == 4 - len(before)
    assert before.items() <= block_files(finished).items()
    assert block_files(folder) == block_files(finished)


def test_a_second_process_is_told_who_holds_the_folder(copy, tmp_path, capsys):
    file = tmp_path / "small.toml"
    file.write_text(TEXT)
    with hold(copy), pytest.raises(SystemExit) as stopped:
        main(["study", "run", str(file), "--output", str(copy)])
    assert stopped.value.code == 1
    line = capsys.readouterr().err
    assert line.count("\n") == 1
    assert f"process {os.getpid()}" in line
    assert run(TEXT, copy)[0] == 0  # and it is free again


def test_a_changed_study_keeps_the_cells_that_are_the_same(finished, copy):
    changed = TEXT.replace("[0.5, 1.0, 2.0, 4.0]", "[1.0, 2, 8.0]")
    played, said = run(changed, copy)
    assert played == 1
    assert "2 of 3 cells are as before" in said[0]
    assert any(line.startswith("new:") and "scale = 8" in line for line in said)
    assert sum("no longer asked for" in line for line in said) == 2
    more, said = run(TEXT.replace("checkpoints = 5", "checkpoints = 6"), copy)
    assert more == 4
    # All blocks that were there before are as they were.
    assert block_files(finished).items() <= block_files(copy).items()
    assert run(TEXT.replace('title = "Small"', 'title = "Other"'), copy)[0] == 0


def test_changes_are_explained(copy, finished):
    for cell in finished.glob("cells/*/cell.json"):
        (copy / "cells" / cell.parent.name / "cell.json").write_bytes(cell.read_bytes())
    _, said = run(TEXT.replace("rounds = 64", "rounds = 64\nseed = 7"), copy)
    assert sum("changed:" in line and "(seed was 0)" in line for line in said) == 4


def test_a_damaged_manifest_is_written_anew(copy):
    (copy / "manifest.json").write_text("{")
    with pytest.raises(ValueError, match="cannot be read"):
        sf.load_study(copy)
    played, said = run(TEXT, copy)
    assert played == 0
    assert len(said) == 1
    assert json.loads((copy / "manifest.json").read_text())["title"] == "Small"


def test_the_manifest_says_where_the_numbers_come_from(finished):
    manifest = json.loads((finished / "manifest.json").read_text())
    assert manifest["study"] == TEXT
    assert {"sfmab_jax", "jax", "jaxlib"} <= manifest["versions"].keys()
    assert manifest["platform"]["backend"] == "cpu"
    assert manifest["dtype"] == "float32"
    assert manifest["seed"] == 0
    assert manifest["runs"][0]["blocks"] == 4
    assert manifest["runs"][0]["started"] <= manifest["runs"][0]["ended"]
    assert "study" in manifest["commits"]


def test_a_folder_with_other_things_is_left_alone(tmp_path):
    (tmp_path / "thesis.tmp").write_text("precious")
    with pytest.raises(ValueError, match=r"thesis\.tmp"):
        run(TEXT, tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tmp"]


def test_blocks_are_runs_of_seeds_that_more_seeds_leave_as_they_are():
    text = TEXT.replace("rounds = 64", "rounds = 40000")
    cell = plan_cells(parse_study(text, "small.toml"))[0]
    size = block_seeds(cell)
    few, many = cut_into_blocks(cell, 2 * size + 1), cut_into_blocks(cell, 4 * size)
    assert [b.num_seeds for b in few] == [size, size, 1]
    assert few[:2] == many[:2]
    assert sum(b.num_seeds for b in many) == 4 * size


def test_blocks_of_seeds_join_to_the_same_numbers(finished, tmp_path, monkeypatch):
    """Cut into blocks of 7 seeds, the study has bitwise the numbers of one block of 24."""
    monkeypatch.setattr("sfmab_jax.study.blocks.block_seeds", lambda cell: 7)
    assert run(TEXT, tmp_path / "cut")[0] == 4 * 4
    cut = sf.load_study(tmp_path / "cut")
    monkeypatch.undo()
    whole = sf.load_study(finished)
    for key in whole:
        np.testing.assert_array_equal(cut[key].regret, whole[key].regret)
        np.testing.assert_array_equal(cut[key].expected_regret, whole[key].expected_regret)


def test_certificates_are_kept_with_their_block(tmp_path):
    """All seeds of a cell, together again, none of them with a violation."""
    run("certificates = true\n" + TEXT, tmp_path / "out")
    for result in sf.load_study(tmp_path / "out").values():
        assert result.certificate.refined.shape == result.regret.shape
        assert result.certificate.violations.sum() == 0


@pytest.mark.parametrize("sequences", [None, 2])
def test_pseudo_regret_is_kept_with_its_blocks(sequences, tmp_path, monkeypatch):
    """That of `simulate`, joined of blocks, in the study, its tables and its report."""
    text = TEXT.replace("[0.5, 1.0, 2.0, 4.0]", "2.0").replace('"scale_free"', '"exp3"')
    text = text.replace("sequences = 2", "" if sequences is None else f"sequences = {sequences}")
    monkeypatch.setattr("sfmab_jax.study.blocks.block_seeds", lambda cell: 7)
    assert run("pseudo_regret = true\n" + text, tmp_path / "out")[0] == 4
    study = sf.load_study(tmp_path / "out")
    (result,) = study.values()
    direct = sf.simulate(
        sf.strategies.exp3(),
        sf.losses.uniform(3, scale=2.0),
        num_rounds=64,
        num_seeds=24,
        num_sequences=sequences,
        checkpoints=5,
        pseudo_regret=True,
    )
    np.testing.assert_array_equal(result.pseudo_regret, direct.pseudo_regret)
    assert study.to_pandas()["pseudo_regret"].mean() == pytest.approx(direct.pseudo_regret.mean())
    assert study.to_xarray()["pseudo_regret"].shape == (1, *direct.pseudo_regret.shape)
    (row,) = summarize(study)
    low, high = (side[0, -1] for side in direct.interval(kind="pseudo"))
    assert (row.pseudo_low, row.pseudo_high) == pytest.approx((low, high))
    assert row.pseudo_mean == pytest.approx(direct.mean("pseudo")[0, -1])
    page = write_report(tmp_path / "out").with_name("report.md").read_text()
    assert "| of bound | pseudo-regret | 95% interval |" in page
    assert f"| {row.pseudo_mean:.4g}† | {low:.4g} to {high:.4g} |" in page
    assert "The pseudo-regret is in the expected losses" in page


def test_without_pseudo_regret_nothing_speaks_of_it(finished):
    study = sf.load_study(finished)
    assert not any(result.kept for result in study.values())
    assert "pseudo_regret" not in study.to_pandas()
    assert all(np.isnan(row.pseudo_mean) for row in summarize(study))


def test_the_display_counts_what_is_played_and_what_is_left(finished, capsys):
    cells = plan_cells(parse_study(TEXT, "small.toml"))[:2]
    (block,) = cut_into_blocks(cells[1], 24)
    played = store.read_block(finished, block)
    with Display(cells, [100, 300], [24, 24], show=True) as display:
        display.skip(0, 100)
        display.begin(1)
        display.advance(1, 150)
        display.add_result(1, played)
    error = capsys.readouterr().err
    assert "62%" in error  # (100 + 150) of 400
    assert "M rounds/s" in error
    assert f"mean regret {played.expected_regret[..., -1].mean():.4g}, 24 seeds" in error
    assert [format_duration(s) for s in (3, 150, 9000, 400_000)] == [
        "3 seconds",
        "2.5 minutes",
        "2.5 hours",
        "4.6 days",
    ]


def test_killed_at_random_moments_and_resumed_it_is_bitwise_the_same(finished, tmp_path):
    """SIGKILL, SIGTERM and Ctrl-C by turns, at random moments of the blocks."""
    file, folder = tmp_path / "small.toml", tmp_path / "out"
    many = TEXT.replace("[0.5, 1.0, 2.0, 4.0]", str([0.5 + k / 8 for k in range(20 * KILLS)]))
    file.write_text(many)
    command = [sys.executable, "-c", "from sfmab_jax.cli import main; main()"]
    command += ["study", "run", str(file), "--output", str(folder)]
    generator = random.Random(1)
    signals = [signal.SIGKILL, signal.SIGTERM, signal.SIGINT]
    interrupted = 0
    for number in range(KILLS):
        process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        before, start = len(block_files(folder)), time.monotonic()
        while len(block_files(folder)) == before and time.monotonic() - start < 120:
            if process.poll() is not None:
                break
            time.sleep(0.005)
        time.sleep(generator.uniform(0, 0.1))
        sent = signals[number % 3] if KILLS == 3 else signal.SIGKILL
        process.send_signal(sent)
        error = process.communicate(timeout=120)[1]
        interrupted += process.returncode != 0
        if process.returncode == 130:
            assert error.splitlines()[-1].endswith("the same command continues"), error
        elif process.returncode != 0:
            assert process.returncode == -signal.SIGKILL, error
    assert interrupted >= KILLS / 2
    run(many, folder)
    assert not sf.load_study(folder).incomplete
    assert not list(folder.glob("**/*.tmp"))
    run(many, tmp_path / "through")
    assert block_files(folder) == block_files(tmp_path / "through")
