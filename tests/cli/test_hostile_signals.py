"""Ctrl-C in commands, at several moments, once and three times: one line and exit code 130."""

import os
import signal
import subprocess
import sys
import time

import pytest
from tiers import some_in_default

# The child says on its stdout that `main` has begun, before anything of the command is done.
START = """
from importlib import import_module

cli = import_module("sfmab_jax.cli.main")
run = cli._run

def announce_and_run(arguments):
    print("begun", flush=True)
    run(arguments)

cli._run = announce_and_run
cli.main()
"""
COMMANDS = {
    "run": "run --arms 3 --rounds 300000000 --seeds 64 --losses uniform --scales 1",
    "verify": "verify --effort 1000",
    "worst-case": "worst-case --arms 3 --rounds 20 --steps 1000000 --restarts 2 --seeds 4 "
    "--rivals uniform --strategies exp3 --score-seeds 64",
}


def interrupted(command, folder, after, times):
    """Exit code and stderr of a command that is sent Ctrl-C some seconds after its start."""
    environment = os.environ
    child = subprocess.Popen(
        [sys.executable, "-c", START, *command.split()],
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert child.stdout.readline() == "begun\n"
        time.sleep(after)
        assert child.poll() is None, "ended before it was interrupted"
        for _ in range(times):
            child.send_signal(signal.SIGINT)
            time.sleep(0.2)
        output, errors = child.communicate(timeout=120)
    finally:
        child.kill()
    return child.returncode, output, errors


@pytest.mark.parametrize(
    ("name", "after", "times"),
    some_in_default(
        [
            ("run", 0.0, 1),  # at the start
            ("run", 1.0, 3),  # while it compiles
            ("run", 4.0, 1),  # at play
            ("run", 8.0, 3),
            ("verify", 0.0, 3),
            ("verify", 4.0, 1),
            ("worst-case", 1.0, 1),
            ("worst-case", 4.0, 3),
        ],
        [("run", 1.0, 3), ("run", 4.0, 1), ("verify", 0.0, 3), ("worst-case", 4.0, 3)],
    ),
)
def test_interrupted(name, after, times, tmp_path):
    code, _, errors = interrupted(COMMANDS[name], tmp_path, after, times)
    assert code == 130, errors
    lines = [line for line in errors.splitlines() if not line.startswith("step ")]
    assert len(lines) == 1, errors
    assert "stopped" in lines[0]
    if "the best found is kept" in errors:
        assert (tmp_path / "worst_case_exp3.npy").exists()


def test_one_that_insists_ends_at_once(tmp_path):
    """Ctrl-C again, seconds later, while the first still waits for something."""
    script = """
import time
from sfmab_jax.cli.main import app, main

@app.command()
def wait():
    try:
        print("imported", flush=True)
        time.sleep(100)
    finally:
        time.sleep(100)

main(["wait"])
"""
    child = subprocess.Popen(
        [sys.executable, "-c", script],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert child.stdout.readline() == "imported\n"
        for _ in range(2):
            child.send_signal(signal.SIGINT)
            time.sleep(2.5)
        _, errors = child.communicate(timeout=30)
    finally:
        child.kill()
    assert child.returncode == 130
    assert errors == "sfmab: stopped at once; what was under way is lost\n"
