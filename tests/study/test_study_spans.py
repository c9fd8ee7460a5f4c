"""Long blocks are kept span by span: stopped anywhere they go on, and end with the same bits."""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from study_folders import StoppedError, block_files, damage_file, fill_disk

from sfmab_jax.engine.resume import Bookmark
from sfmab_jax.study import blocks as study_blocks
from sfmab_jax.study.blocks import Block, block_seeds, span_rounds
from sfmab_jax.study.cells import plan_cells
from sfmab_jax.study.config import parse_study
from sfmab_jax.study.runner import run_study

# More for a thorough look: SFMAB_KILLS=20 pytest tests/study/test_study_spans.py
KILLS = int(os.environ.get("SFMAB_KILLS", "3"))

TEXT = """
arms = 3
rounds = 1000
seeds = 600
checkpoints = 7
[strategies.exp3_ix]
[losses.walk]
family = "random_walk"
[losses.dense]
family = "uniform"
"""


def short_spans(monkeypatch):
    """Spans of 128 rounds, in chunks of 64."""
    monkeypatch.setattr("sfmab_jax.study.blocks.span_rounds", lambda cell: 128)
    monkeypatch.setattr("sfmab_jax.engine.layout._CHUNK_WORK", 2**17)


def states(folder: Path) -> list[Path]:
    return sorted(folder.glob("cells/*/*.state"))


def run(folder: Path) -> list[str]:
    said: list[str] = []
    run_study(parse_study(TEXT, "long.toml"), folder, said.append)
    return said


@pytest.fixture(scope="module")
def finished(tmp_path_factory) -> Path:
    """Played in one span."""
    folder = tmp_path_factory.mktemp("study") / "through"
    run(folder)
    assert not states(folder)
    return folder


@pytest.fixture
def stopped(tmp_path, monkeypatch) -> Path:
    """Stopped when both jobs of the first block have kept three places or more."""
    short_spans(monkeypatch)
    folder = tmp_path / "out"
    from sfmab_jax.study import spans

    write, done = spans.write_arrays, {}

    def count(path, header, arrays):
        if len(done) == 2 and min(done.values()) >= 3:
            raise StoppedError
        write(path, header, arrays)
        done[path.name] = done.get(path.name, 0) + 1

    with monkeypatch.context() as patched:
        patched.setattr(spans, "write_arrays", count)
        with pytest.raises(StoppedError):
            run(folder)
    assert len(states(folder)) == 2
    return folder


def test_a_study_goes_on_from_the_end_of_a_span(stopped, finished, monkeypatch):
    starts = []
    resume = Bookmark.resume

    def watched(self, carried, stream):
        found = resume(self, carried, stream)
        starts.append(found[1])
        return found

    monkeypatch.setattr(Bookmark, "resume", watched)
    assert run(stopped) == []
    assert sorted(starts)[:2] == [1, 1]  # the second cell
    assert min(sorted(starts)[2:]) > 3 * 128
    assert block_files(stopped) == block_files(finished)
    assert not states(stopped)


@pytest.mark.parametrize("damage", ["truncated", "emptied", "flipped", "swapped"])
def test_damaged_places_are_told_and_begun_again(damage, stopped, finished):
    first, second = states(stopped)[:2]
    damage_file(damage, first, second)
    (line,) = run(stopped)
    assert line.endswith("begun again")
    assert "exp3_ix on walk" in line
    assert block_files(stopped) == block_files(finished)


@pytest.mark.parametrize("full_after", [2, 9])
def test_a_full_disk_loses_no_more_than_a_span(full_after, finished, tmp_path, monkeypatch):
    short_spans(monkeypatch)
    with monkeypatch.context() as patched:
        fill_disk(patched, full_after)
        with pytest.raises(OSError, match="No space left"):
            run(tmp_path / "out")
    assert states(tmp_path / "out")
    assert not list(tmp_path.glob("**/*.tmp"))
    assert run(tmp_path / "out") == []
    assert block_files(tmp_path / "out") == block_files(finished)


def test_places_left_beside_a_whole_block_are_removed(stopped, finished):
    (cell,) = stopped.glob("cells/*")
    for path in (finished / "cells" / cell.name).glob("*.npz"):
        (cell / path.name).write_bytes(path.read_bytes())
    run(stopped)
    assert not states(stopped)
    assert block_files(stopped) == block_files(finished)


@pytest.mark.parametrize("arms", [2, 10, 100, 1000])
def test_a_span_is_a_quarter_of_a_minute_and_short_studies_have_one(arms):
    cell = plan_cells(parse_study(TEXT.replace("arms = 3", f"arms = {arms}"), "long.toml"))[0]
    games = study_blocks.cpu_games_per_call(arms)
    assert 10 <= span_rounds(cell) * games * (arms + 5) / 5e7 <= 20
    assert span_rounds(cell) > cell.num_rounds
    assert Block(cell, 0, block_seeds(cell)).num_rounds >= cell.num_rounds


SCRIPT = """
import sfmab_jax.engine.layout, sfmab_jax.study.blocks
sfmab_jax.engine.layout._CHUNK_WORK = 2**17
sfmab_jax.study.blocks.span_rounds = lambda cell: 128
from sfmab_jax.cli.main import main
main()
"""


def test_killed_within_a_block_and_resumed_it_is_bitwise_the_same(tmp_path, monkeypatch):
    """SIGKILL at random moments, several spans to a block; each is after a place was kept."""
    text = TEXT.replace("rounds = 1000", "rounds = 3000")
    file, folder = tmp_path / "long.toml", tmp_path / "out"
    file.write_text(text)
    command = [sys.executable, "-c", SCRIPT, "study", "run", str(file), "--output", str(folder)]
    generator = random.Random(3)
    killed = 0
    for _ in range(KILLS):
        process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        before, start = latest(folder), time.monotonic()
        while latest(folder) == before and time.monotonic() - start < 120:
            if process.poll() is not None:
                break
            time.sleep(0.005)
        time.sleep(generator.uniform(0, 0.4 if KILLS < 5 else 0.1))
        process.send_signal(signal.SIGKILL)
        process.communicate(timeout=120)
        killed += process.returncode == -signal.SIGKILL
    assert killed >= KILLS / 2
    study = parse_study(text, "long.toml")
    run_study(study, tmp_path / "through")
    short_spans(monkeypatch)
    run_study(study, folder)
    assert not states(folder)
    assert not list(folder.glob("**/*.tmp"))
    assert block_files(folder) == block_files(tmp_path / "through")


def latest(folder: Path) -> int:
    """When a place was last kept or a block finished."""
    times = [0]
    for path in (*states(folder), *folder.glob("cells/*/*.npz")):
        try:
            times.append(path.stat().st_mtime_ns)
        except FileNotFoundError:  # replaced or removed meanwhile
            continue
    return max(times)
