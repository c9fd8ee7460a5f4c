"""Long blocks are kept span by span: stopped anywhere they go on, and end with the same bits."""

import errno
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import sfmab_jax as sf
from sfmab_jax.bookmarks import Bookmarks
from sfmab_jax.study import blocks as study_blocks
from sfmab_jax.study.blocks import Block, block_seeds, span_rounds
from sfmab_jax.study.config import parse_study
from sfmab_jax.study.plan import plan_cells
from sfmab_jax.study.runner import run_study

# More for a thorough look: SFMAB_KILLS=20 pytest tests/test_study_spans.py
KILLS = int(os.environ.get("SFMAB_KILLS", "3"))

TEXT = """
arms = 3
rounds = 1000
seeds = 600
checkpoints = 7
[strategies.scale_free]
[losses.walk]
family = "random_walk"
[losses.dense]
family = "uniform"
"""


class StoppedError(Exception):
    """Raised in place of a kill."""


class Memory:
    """Bookmarks in a dictionary; stops the run at a given writing."""

    def __init__(self, span_rounds: int):
        self.span_rounds, self.kept, self.resumed = span_rounds, {}, 0
        self.written, self.stop_at = [], None

    def write(self, place, done, arrays):
        if len(self.written) == self.stop_at:
            raise StoppedError
        self.written.append((place, done))
        self.kept[place] = done, [np.array(array) for array in arrays]

    def add(self, rounds):
        self.resumed += rounds

    def bookmarks(self):
        return Bookmarks(self.span_rounds, self.kept.get, self.write, self.add)


GAMES = {
    "num_rounds": 500,
    "num_seeds": 300,
    "num_sequences": 3,
    "checkpoints": 9,
    "chunk_rounds": 24,  # no multiple of the window in which losses are made
    "certificate": True,
    "record": lambda state: state.full_information.learning_rate,
}


@pytest.mark.parametrize("family", ["random_walk", "uniform", "permuted"])
def test_a_run_goes_on_from_its_bookmarks_bitwise(family):
    """Stopped at several writings in turn; families with and without memory."""
    losses = (
        sf.losses.permuted(sf.losses.random_walk(num_arms=4))
        if family == "permuted"
        else sf.losses.LOSSES[family](num_arms=4)
    )
    bandit = sf.strategies.scale_free()
    through = sf.simulate(bandit, losses, **GAMES)
    memory, played = Memory(span_rounds=100), []
    for stop_at in (1, 2, 7):
        memory.stop_at = stop_at
        with pytest.raises(StoppedError):
            sf.simulate(bandit, losses, **GAMES, bookmarks=memory.bookmarks())
    memory.stop_at, memory.resumed = None, 0
    resumed = sf.simulate(
        bandit, losses, **GAMES, bookmarks=memory.bookmarks(), progress=played.append
    )
    assert memory.resumed > 0
    assert sum(played) + memory.resumed == 500 * 900
    for name in ("regret", "expected_regret", "records"):
        np.testing.assert_array_equal(getattr(resumed, name), getattr(through, name))
    for name, array in through.certificate._asdict().items():
        np.testing.assert_array_equal(getattr(resumed.certificate, name), array)
    for one, other in zip(resumed.norms, through.norms):
        np.testing.assert_array_equal(one, other)
    # What is finished is read, not played again: nothing is written in the first chunk.
    before = len(memory.written)
    sf.simulate(bandit, losses, **GAMES, bookmarks=memory.bookmarks())
    assert len(memory.written) == before


def test_runs_of_one_span_keep_nothing_and_others_each_span():
    memory = Memory(span_rounds=500)
    losses = sf.losses.uniform(num_arms=4)
    games = GAMES | {"num_seeds": 10, "num_sequences": 1}
    sf.simulate(sf.strategies.scale_free(), losses, **games, bookmarks=memory.bookmarks())
    assert not memory.written
    memory.span_rounds = 100
    sf.simulate(sf.strategies.scale_free(), losses, **games, bookmarks=memory.bookmarks())
    # The ends of the first chunks of 24 rounds at or after 100, 200, ..., and the last round.
    for job in ("norms_0_1", "games_0_0_512"):
        done = [rounds for place, rounds in memory.written if place == job]
        assert done == [120, 216, 312, 408, 500]


def test_places_of_another_arrangement_are_not_used():
    memory = Memory(span_rounds=100)
    losses, bandit = sf.losses.uniform(num_arms=4), sf.strategies.scale_free()
    games = GAMES | {"num_seeds": 10, "num_sequences": 1}
    expected = sf.simulate(bandit, losses, **games, bookmarks=memory.bookmarks())
    for place, (done, arrays) in memory.kept.items():
        memory.kept[place] = done, [array[..., :-1] for array in arrays]
    got = sf.simulate(bandit, losses, **games, bookmarks=memory.bookmarks())
    np.testing.assert_array_equal(got.regret, expected.regret)
    assert memory.resumed == 0


def short_spans(monkeypatch):
    """Spans of 128 rounds, in chunks of 64."""
    monkeypatch.setattr("sfmab_jax.study.blocks.span_rounds", lambda cell: 128)
    monkeypatch.setattr("sfmab_jax.sizes._CHUNK_WORK", 2**17)


def block_files(folder: Path) -> dict[str, bytes]:
    return {
        path.name + path.parent.name: path.read_bytes() for path in folder.glob("cells/*/*.npz")
    }


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
    """Stopped when all three jobs of the first block have kept three places or more."""
    short_spans(monkeypatch)
    folder = tmp_path / "out"
    from sfmab_jax.study import spans

    write, done = spans.write_arrays, {}

    def count(path, header, arrays):
        if len(done) == 3 and min(done.values()) >= 3:
            raise StoppedError
        write(path, header, arrays)
        done[path.name] = done.get(path.name, 0) + 1

    with monkeypatch.context() as patched:
        patched.setattr(spans, "write_arrays", count)
        with pytest.raises(StoppedError):
            run(folder)
    assert len(states(folder)) == 3
    return folder


def test_a_study_goes_on_from_the_end_of_a_span(stopped, finished, monkeypatch):
    starts = []
    find = sf.bookmarks.Bookmark.find

    def watched(self, carried, feed):
        found = find(self, carried, feed)
        starts.append(found[1])
        return found

    monkeypatch.setattr("sfmab_jax.bookmarks.Bookmark.find", watched)
    assert run(stopped) == []
    assert sorted(starts)[:3] == [1, 1, 1]  # the second cell
    assert min(sorted(starts)[3:]) > 3 * 128
    assert block_files(stopped) == block_files(finished)
    assert not states(stopped)


@pytest.mark.parametrize("damage", ["truncated", "emptied", "flipped", "swapped"])
def test_damaged_places_are_told_and_begun_again(damage, stopped, finished):
    first, second = states(stopped)[:2]
    content = bytearray(first.read_bytes())
    if damage == "truncated":
        first.write_bytes(content[: len(content) // 2])
    elif damage == "emptied":
        first.write_bytes(b"")
    elif damage == "flipped":
        content[len(content) // 2] ^= 1
        first.write_bytes(content)
    else:
        first.write_bytes(second.read_bytes())
    (line,) = run(stopped)
    assert line.endswith("begun again")
    assert "scale_free on walk" in line
    assert block_files(stopped) == block_files(finished)


@pytest.mark.parametrize("full_after", [2, 9])
def test_a_full_disk_loses_no_more_than_a_span(full_after, finished, tmp_path, monkeypatch):
    short_spans(monkeypatch)
    sync, written = os.fsync, []

    def fsync(handle):
        if len(written) >= full_after:
            raise OSError(errno.ENOSPC, "No space left on device")
        written.append(handle)
        sync(handle)

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", fsync)
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
    games = study_blocks.block_width(arms)
    assert 10 <= span_rounds(cell) * games * (arms + 5) / 5e7 <= 20
    assert span_rounds(cell) > cell.num_rounds
    assert Block(cell, 0, block_seeds(cell)).num_rounds >= cell.num_rounds


SCRIPT = """
import sfmab_jax.sizes, sfmab_jax.study.blocks
sfmab_jax.sizes._CHUNK_WORK = 2**17
sfmab_jax.study.blocks.span_rounds = lambda cell: 128
from sfmab_jax.cli import main
main()
"""


@pytest.mark.slow
def test_killed_within_a_block_and_resumed_it_is_bitwise_the_same(tmp_path, monkeypatch):
    """SIGKILL at random moments, several spans to a block; each is after a place was kept."""
    text = TEXT.replace("rounds = 1000", "rounds = 6000")
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
