"""How processes share the work of a study, and learn of each other's ends."""

import os
import threading

import pytest
from study_folders import FOUR_SCALES

from sfmab_jax.study import processes
from sfmab_jax.study.blocks import cut_into_blocks
from sfmab_jax.study.cells import plan_cells
from sfmab_jax.study.config import parse_study
from sfmab_jax.study.hosts import Process
from sfmab_jax.study.lock import hold
from sfmab_jax.study.runner import run_study


def every_cell() -> list:
    return list(plan_cells(parse_study(FOUR_SCALES, "study.toml")))


def everything() -> list:
    return [block for cell in every_cell() for block in cut_into_blocks(cell, 24)]


def test_work_is_shared_out_evenly_and_completely():
    text = FOUR_SCALES.replace("rounds = 64", "rounds = [10, 1000, 100000]")
    text = text.replace("= 3", "= [3, 50]")
    cells = plan_cells(parse_study(text, "study.toml"))
    missing = [block for cell in cells for block in cut_into_blocks(cell, 4000)]
    for count in (1, 2, 5):
        shares = processes.share_out(missing, count)
        dealt = [block for share in shares for block in share]
        assert sorted(map(id, dealt)) == sorted(map(id, missing))
        for share in shares:  # in the order of the study
            assert share == sorted(share, key=missing.index)
        loads = [sum(block.work for block in share) for share in shares]
        assert max(loads) - min(loads) <= max(block.work for block in missing)


def test_a_silent_process_on_another_machine_is_taken_for_dead(tmp_path, monkeypatch):
    clock = [1000.0]
    monkeypatch.setattr("time.monotonic", lambda: clock[0])
    monkeypatch.setattr("platform.node", lambda: "node2")
    process = Process(1, 2, "run")
    heartbeat = processes._Heartbeat(tmp_path, process)
    heartbeat._write("plays")
    monkeypatch.setattr("platform.node", lambda: "node1")
    others = processes.OtherProcesses(tmp_path, Process(0, 2, "run"), [[], everything()])
    assert list(others.collect()) == []
    assert others.busy()
    assert others.busy_names() == "process 1 on node2"
    for _ in range(3):  # alive as long as it gives signs
        clock[0] += 100
        heartbeat._beats += 1
        heartbeat._write("plays")
        list(others.collect())
        assert others.busy()
    clock[0] += 119
    list(others.collect())
    assert others.busy()
    clock[0] += 2
    assert not others.busy()
    (sentence,) = others.failures()
    assert sentence.startswith("process 1 on node2 died")
    assert sentence.endswith("0 of its 4 blocks are there")


def test_failures_of_others_are_told_in_their_words(tmp_path, monkeypatch):
    def fail(*_):
        raise OSError("no space left")

    monkeypatch.setattr(processes, "play_block", fail)
    shares = [[], everything()]
    others = processes.OtherProcesses(tmp_path, Process(0, 2, "run"), shares)
    with pytest.raises(OSError, match="no space left"):
        processes.play_share(tmp_path, every_cell(), Process(1, 2, "run"), print)
    list(others.collect())
    assert not others.busy()
    assert "failed: no space left; 0 of its 4 blocks" in others.failures()[0]
    # And of work that the process does not know, as with other versions of the software.
    with pytest.raises(ValueError, match="does not know cell"):
        processes.play_share(tmp_path, [], Process(1, 2, "run"), print)


def test_others_are_let_go_when_process_0_cannot_begin(tmp_path):
    study = parse_study(FOUR_SCALES, "study.toml")
    errors = []

    def second() -> None:
        try:
            run_study(study, tmp_path, process=Process(1, 2, "run"))
        except OSError as error:
            errors.append(str(error))

    waiting = threading.Thread(target=second)
    waiting.start()
    with hold(tmp_path), pytest.raises(OSError, match="in use by"):
        run_study(study, tmp_path, process=Process(0, 2, "run"))
    waiting.join(30)
    assert errors[0].startswith("process 0 cannot begin")
    assert "in use by" in errors[0]


def test_a_run_waits_for_the_processes_of_an_earlier_one(tmp_path):
    (tmp_path / "processes").mkdir()
    with (
        hold(tmp_path, "processes/3.lock"),
        pytest.raises(OSError, match=f"process {os.getpid()}.*of an earlier run"),
    ):
        run_study(parse_study(FOUR_SCALES, "study.toml"), tmp_path)


def test_a_folder_that_is_not_shared_is_noticed(tmp_path, monkeypatch):
    monkeypatch.setattr(processes, "PATIENCE", 0.2)
    with pytest.raises(OSError, match="folder that all machines share"):
        processes.play_share(tmp_path / "elsewhere", every_cell(), Process(1, 2, "run"), print)
