"""Several processes, on one machine here: the same study to the bit, whoever dies."""

import csv
import json
import os
import signal
import socket
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from study_folders import FOUR_SCALES, block_files, play_in_blocks
from tiers import some_in_default

import sfmab_jax as sf
from sfmab_jax.study import hosts
from sfmab_jax.study.config import parse_study
from sfmab_jax.study.hosts import ALONE, join
from sfmab_jax.study.runner import run_study

# Blocks of 4 seeds, 24 of them. A process that is to be killed waits for that in a given block.
SCRIPT = """
import os, pathlib, time
import sfmab_jax.study.blocks
from sfmab_jax.study import play_block
sfmab_jax.study.blocks.block_seeds = lambda cell: 4
simulate, blocks = play_block.simulate, []
def simulate_or_wait(*games, **options):
    if len(blocks) == int(os.environ.get("WAIT_IN_BLOCK", 100)):
        pathlib.Path(os.environ["WAITING"]).touch()
        time.sleep(300)
    blocks.append(games)
    return simulate(*games, **options)
play_block.simulate = simulate_or_wait
from sfmab_jax.cli.main import main
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
            told |= {"SLURM_JOB_ID": "1234", "SLURM_STEP_ID": "0"}
            told |= {"SLURM_STEP_NODELIST": "localhost"}
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
    with socket.socket() as probe:
        probe.bind(("", 0))
        return probe.getsockname()[1]


def ended(processes: list[subprocess.Popen]) -> list[tuple[int, str]]:
    """(Exit code, stderr) of each."""
    return [(p.wait(), e) for p, (_, e) in ((p, p.communicate(timeout=300)) for p in processes)]


@pytest.fixture(scope="module")
def study_file(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("file") / "study.toml"
    path.write_text(FOUR_SCALES)
    return path


@pytest.fixture(scope="module")
def alone(tmp_path_factory) -> Path:
    """The study by one process."""
    return play_in_blocks(tmp_path_factory.mktemp("alone") / "out", 4)


@pytest.mark.parametrize(("count", "slurm"), some_in_default([(2, False), (3, True)], [(2, False)]))
def test_several_processes_play_the_same_study(count, slurm, study_file, alone, tmp_path):
    folder = tmp_path / "out"
    arguments = ("study", "run", study_file, "--output", folder)
    for code, error in ended(start(count, *arguments, slurm=slurm)):
        assert code == 0, error
    assert block_files(folder) == block_files(alone)
    run = json.loads((folder / "manifest.json").read_text())["runs"][-1]
    assert (run["blocks"], run["processes"]) == (24, count)
    assert sorted(path.name for path in folder.iterdir()) == ["cells", "lock", "manifest.json"]


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
    run_study(parse_study(FOUR_SCALES, "study.toml"), folder)
    assert block_files(folder) == block_files(alone)
    assert not list(folder.glob("**/*.tmp"))
    assert not (folder / "processes").exists()


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


@pytest.fixture
def clean(monkeypatch) -> pytest.MonkeyPatch:
    """An environment that tells of no other process; no device is chosen by it either."""
    for name in list(os.environ):
        if name.startswith(("SLURM_", "OMPI_", "PMIX_", "TPU_", "JOB_COMPLETION_INDEX")):
            monkeypatch.delenv(name)
    monkeypatch.setattr(hosts, "_use_own_device", lambda: None)
    return monkeypatch


def test_processes_meet_at_the_coordinator(clean):
    """Whoever comes first; a stranger who connects is no reason to stop."""
    port = free_port()
    with ThreadPoolExecutor(4) as pool:
        others = [pool.submit(join, f"localhost:{port}", 4, number) for number in (2, 1)]
        first = pool.submit(join, f"localhost:{port}", 4, 0)
        stranger = None
        while stranger is None:
            try:
                stranger = socket.create_connection(("localhost", port))
            except ConnectionRefusedError:
                time.sleep(0.01)
        stranger.sendall(b"GET / HTTP/1.0\r\n\r\n")
        stranger.close()
        clean.setenv("JOB_COMPLETION_INDEX", "3")  # Kubernetes
        last = join(f"localhost:{port}", 4)
        everyone = [first.result(), *(other.result() for other in others), last]
    assert [process.number for process in everyone] == [0, 2, 1, 3]
    assert {process.total for process in everyone} == {4}
    assert len({process.run for process in everyone}) == 1
    assert len(last.run) == 16


def test_processes_that_do_not_come_are_missed(clean):
    clean.setattr(hosts, "PATIENCE", 0.2)
    coordinator = f"localhost:{free_port()}"
    for number, problem in ((0, "0 of 2 others came"), (1, "refused")):
        with pytest.raises(OSError, match=f"did not meet at {coordinator}: .*{problem}"):
            join(coordinator, 3, number)


def test_the_environment_tells_who_is_who(clean):
    mpi = {"OMPI_COMM_WORLD_SIZE": "3", "PMIX_NAMESPACE": "prterun-node1-77@1"}
    slurm = {"SLURM_STEP_NODELIST": "node[1-4]", "SLURM_NTASKS": "3", "SLURM_JOB_ID": "77"}
    runs = []
    for told, rank in ((mpi, "OMPI_COMM_WORLD_RANK"), (slurm, "SLURM_PROCID")):
        for name, value in told.items():
            clean.setenv(name, value)
        for number in range(3):
            clean.setenv(rank, str(number))
            process = join()
            assert process[:2] == (number, 3)
            runs.append(process.run)
    clean.setenv("SLURM_RESTART_COUNT", "1")
    runs.append(join().run)
    assert runs == [runs[0]] * 3 + [runs[3]] * 3 + [runs[6]]
    assert len(set(runs)) == 3


def test_every_process_of_a_node_has_a_gpu_of_its_own(monkeypatch):
    chosen = {}
    monkeypatch.setattr("jax.config.update", chosen.__setitem__)
    for name, value in (("NTASKS", 4), ("PROCID", 3), ("LOCALID", 1), ("JOB_ID", 77)):
        monkeypatch.setenv(f"SLURM_{name}", str(value))
    monkeypatch.setenv("SLURM_STEP_NODELIST", "node[1-2]")
    join()
    assert chosen == {"jax_cuda_visible_devices": "1", "jax_rocm_visible_devices": "1"}


def test_one_process_needs_no_others(clean, monkeypatch):
    assert join("node1:1234", 1, 0) == ALONE
    assert join() == ALONE
    # Within a SLURM allocation, but not started by srun; and a step of one task.
    monkeypatch.setenv("SLURM_NTASKS", "8")
    assert join() == ALONE
    monkeypatch.setenv("SLURM_STEP_NODELIST", "node[1-4]")
    monkeypatch.setenv("SLURM_NTASKS", "1")
    assert join() == ALONE
