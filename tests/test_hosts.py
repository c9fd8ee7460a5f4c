"""Several processes, on one machine here: the same study to the bit, whoever dies."""

import csv
import json
import os
import random
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

import sfmab_jax as sf
from sfmab_jax.hosts import ALONE, Process, join
from sfmab_jax.study import together
from sfmab_jax.study.blocks import blocks
from sfmab_jax.study.config import parse_study
from sfmab_jax.study.lock import hold
from sfmab_jax.study.plan import plan_cells
from sfmab_jax.study.runner import run_study

TEXT = """
arms = 3
rounds = 64
seeds = 24
sequences = 2
checkpoints = 5
[strategies.exp3_ix]
[losses.dense]
family = "uniform"
scale = [0.5, 1.0, 2.0, 4.0]
"""
# Blocks of 4 seeds, 24 of them. A process that is to be killed waits for that in a given block.
SCRIPT = """
import os, pathlib, time
import sfmab_jax.study.blocks, sfmab_jax.study.playing as playing
sfmab_jax.study.blocks.block_seeds = lambda cell: 4
play, played = playing.simulate, []
def simulate(*games, **options):
    if len(played) == int(os.environ.get("WAIT_IN_BLOCK", 100)):
        pathlib.Path(os.environ["WAITING"]).touch()
        time.sleep(300)
    played.append(games)
    return play(*games, **options)
playing.simulate = simulate
from sfmab_jax.cli import main
main()
"""


def start(
    count: int, *arguments, script: str = SCRIPT, slurm: bool = False, victim: dict | None = None
) -> list[subprocess.Popen]:
    """Starts so many processes on this machine, told who they are by options or as SLURM does.

    ``victim`` has more of the environment for some processes.
    """
    port = free_port()
    started = []
    for number in range(count):
        told, given = os.environ | (victim or {}).get(number, {}), []
        if slurm:
            job = port - (65535 - 2**12 + 1)  # JAX makes the port of the job's number
            told |= {"SLURM_JOB_ID": f"{job}", "SLURM_STEP_NODELIST": "localhost"}
            told |= {"SLURM_NTASKS": f"{count}", "SLURM_PROCID": f"{number}"}
            told |= {"SLURM_LOCALID": f"{number}"}
        else:
            given = ["--coordinator", f"127.0.0.1:{port}", "--num-processes", count]
            given += ["--process-id", number]
        command = [sys.executable, "-c", script, *map(str, (*arguments, *given))]
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        started.append(subprocess.Popen(command, env=told, **pipes))
    return started


def free_port() -> int:
    """One of those that JAX takes under SLURM."""
    for port in random.sample(range(65535 - 2**12 + 1, 65535), 100):
        with socket.socket() as probe:
            try:
                probe.bind(("", port))
            except OSError:
                continue
            return port
    raise AssertionError("no port is free")


def ended(processes: list[subprocess.Popen]) -> list[tuple[int, str]]:
    """(Exit code, stderr) of each."""
    return [(p.wait(), e) for p, (_, e) in ((p, p.communicate(timeout=300)) for p in processes)]


def block_files(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.glob("cells/*/*.npz")}


@pytest.fixture(scope="module")
def study_file(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("file") / "study.toml"
    path.write_text(TEXT)
    return path


@pytest.fixture(scope="module")
def alone(tmp_path_factory) -> Path:
    """The study by one process."""
    folder = tmp_path_factory.mktemp("alone") / "out"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sfmab_jax.study.blocks.block_seeds", lambda cell: 4)
        assert run_study(parse_study(TEXT, "study.toml"), folder) == 24
    return folder


@pytest.mark.slow
@pytest.mark.parametrize(("count", "slurm"), [(2, False), (3, True)])
def test_several_processes_play_the_same_study(count, slurm, study_file, alone, tmp_path):
    folder = tmp_path / "out"
    arguments = ("study", "run", study_file, "--output", folder)
    for code, error in ended(start(count, *arguments, slurm=slurm)):
        assert code == 0, error
    assert block_files(folder) == block_files(alone)
    run = json.loads((folder / "manifest.json").read_text())["runs"][-1]
    assert (run["blocks"], run["processes"]) == (24, count)
    assert sorted(path.name for path in folder.iterdir()) == ["cells", "lock", "manifest.json"]


@pytest.mark.slow
def test_who_is_killed_is_named_and_fewer_processes_go_on(study_file, alone, tmp_path, monkeypatch):
    """Of three process 1 is killed, of two process 0; one alone plays what is left."""
    folder = tmp_path / "out"
    for count, victim, block in ((3, 1, 2), (2, 0, 1)):
        waiting = tmp_path / f"waiting_{count}"
        fate = {victim: {"WAIT_IN_BLOCK": str(block), "WAITING": str(waiting)}}
        arguments = ("study", "run", study_file, "--output", folder)
        processes = start(count, *arguments, victim=fate)
        begun = time.monotonic()
        while not waiting.exists() and time.monotonic() - begun < 200:
            time.sleep(0.05)
        processes[victim].send_signal(signal.SIGKILL)
        codes, errors = zip(*ended(processes))
        assert codes[victim] == -signal.SIGKILL
        if victim == 1:
            assert codes == (1, -signal.SIGKILL, 0), errors
            (last,) = (line for line in errors[0].splitlines() if line.startswith("sfmab:"))
            assert "process 1 on" in last
            assert "2 of its 8 blocks are there" in last
            assert last.endswith("the same command continues")
            assert len(block_files(folder)) == 18
        else:  # nobody is left to report, but process 1 has finished its blocks
            assert codes[1] == 0, errors
            assert len(block_files(folder)) == 18 + 1 + 3
    monkeypatch.setattr("sfmab_jax.study.blocks.block_seeds", lambda cell: 4)
    run_study(parse_study(TEXT, "study.toml"), folder)
    assert block_files(folder) == block_files(alone)
    assert not list(folder.glob("**/*.tmp"))
    assert not (folder / "processes").exists()


@pytest.mark.slow
def test_sfmab_run_by_two_processes_has_the_numbers_of_one(tmp_path):
    options = "--arms 3 --rounds 100 --seeds 600 --losses uniform --scales 1e-3,1".split()
    options += ["--strategies", "exp3_ix", "--output", tmp_path / "together.png"]
    script = "from sfmab_jax.cli import main; main()"
    for code, error in ended(start(2, "run", *options, script=script)):
        assert code == 0, error
    assert (tmp_path / "together.png").read_bytes().startswith(b"\x89PNG")
    with open(tmp_path / "together.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 2
    for row in rows:
        losses = sf.losses.LOSSES[row["losses"]](num_arms=3, scale=float(row["scale"]))
        expected = sf.simulate(sf.strategies.exp3_ix(), losses, num_rounds=100, num_seeds=600)
        assert float(row["regret"]) == expected.mean()[0, -1]
    assert not sf.load_study(tmp_path / "together_blocks").incomplete


def everything() -> list:
    return [b for cell in plan_cells(parse_study(TEXT, "study.toml")) for b in blocks(cell, 24)]


def test_work_is_shared_out_evenly_and_completely():
    text = TEXT.replace("rounds = 64", "rounds = [10, 1000, 100000]").replace("= 3", "= [3, 50]")
    cells = plan_cells(parse_study(text, "study.toml"))
    missing = [block for cell in cells for block in blocks(cell, 4000)]
    for count in (1, 2, 5):
        shares = together.share_out(missing, count)
        together_again = [block for share in shares for block in share]
        assert sorted(map(id, together_again)) == sorted(map(id, missing))
        for share in shares:  # in the order of the study
            assert share == sorted(share, key=missing.index)
        loads = [sum(block.work for block in share) for share in shares]
        assert max(loads) - min(loads) <= max(block.work for block in missing)


def test_a_silent_process_on_another_machine_is_taken_for_dead(tmp_path, monkeypatch):
    clock = [1000.0]
    monkeypatch.setattr("time.monotonic", lambda: clock[0])
    monkeypatch.setattr("platform.node", lambda: "node2")
    process = Process(1, 2, "run")
    signs = together._Signs(tmp_path, process)
    signs._write("plays")
    monkeypatch.setattr("platform.node", lambda: "node1")
    others = together.Others(tmp_path, Process(0, 2, "run"), [[], everything()])
    assert list(others.finished()) == []
    assert others.busy()
    assert others.waited_for() == "process 1 on node2"
    for _ in range(3):  # alive as long as it gives signs
        clock[0] += 100
        signs._beats += 1
        signs._write("plays")
        list(others.finished())
        assert others.busy()
    clock[0] += 119
    list(others.finished())
    assert others.busy()
    clock[0] += 2
    assert not others.busy()
    (sentence,) = others.losses()
    assert sentence.startswith("process 1 on node2 died")
    assert sentence.endswith("0 of its 4 blocks are there")


def test_failures_of_others_are_told_in_their_words(tmp_path, monkeypatch):
    def fail(*_):
        raise OSError("no space left")

    monkeypatch.setattr(together, "play_block", fail)
    shares = [[], everything()]
    others = together.Others(tmp_path, Process(0, 2, "run"), shares)
    with pytest.raises(OSError, match="no space left"):
        together.assist(tmp_path, shares[1], Process(1, 2, "run"), print)
    list(others.finished())
    assert not others.busy()
    assert "failed: no space left; 0 of its 4 blocks" in others.losses()[0]
    # And of work that the process does not know, as with other versions of the software.
    with pytest.raises(ValueError, match="does not know cell"):
        together.assist(tmp_path, [], Process(1, 2, "run"), print)


def test_others_are_let_go_when_process_0_cannot_begin(tmp_path):
    study = parse_study(TEXT, "study.toml")
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
        run_study(parse_study(TEXT, "study.toml"), tmp_path)


def test_a_folder_that_is_not_shared_is_noticed(tmp_path, monkeypatch):
    monkeypatch.setattr(together, "_SILENCE", 0.2)
    with pytest.raises(OSError, match="folder that all machines share"):
        together.assist(tmp_path / "elsewhere", everything(), Process(1, 2, "run"), print)


@pytest.mark.parametrize(
    ("given", "named"),
    [
        (("node1:1234", None, None), "without --num-processes"),
        ((None, 2, 0), "without --coordinator"),
        (("node1", 2, 0), "--coordinator is 'node1'"),
        (("node1:port", 2, 0), "--coordinator"),
        (("node1:1234", 0, 0), "--num-processes is 0"),
        (("node1:1234", 2, 2), "--process-id is 2"),
    ],
)
def test_bad_options_are_named(given, named):
    with pytest.raises(ValueError, match=named):
        join(*given)


def test_one_process_needs_no_others(monkeypatch):
    assert join("node1:1234", 1, 0) == ALONE
    for name in ("SLURM_NTASKS", "OMPI_COMM_WORLD_SIZE", "JOB_COMPLETION_INDEX"):
        monkeypatch.delenv(name, raising=False)
    assert join() == ALONE
    # Within a SLURM allocation, but not started by srun; and a step of one task.
    monkeypatch.setenv("SLURM_NTASKS", "8")
    assert join() == ALONE
    monkeypatch.setenv("SLURM_STEP_NODELIST", "node[1-4]")
    monkeypatch.setenv("SLURM_NTASKS", "1")
    assert join() == ALONE
