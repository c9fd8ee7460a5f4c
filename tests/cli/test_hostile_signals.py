"""Ctrl-C in commands, at several moments, once and three times: one line and exit code 130."""

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
cli._PATIENCE = 1000.0
run = cli._run

def announce_and_run(arguments):
    print("begun", flush=True)
    run(arguments)

cli._run = announce_and_run
cli.main()
"""
COMMANDS = {
    "run": "run --arms 3 --rounds 300000000 --seeds 64 --losses uniform --scales 1",
    "sweep": "run --sweep both-worlds --rounds 300000000 --strategies exp3",
    "verify": "verify --effort 1000",
    "worst-case": "worst-case --arms 3 --rounds 20 --steps 1000000 --restarts 2 --seeds 4 "
    "--rivals uniform --strategies exp3 --score-seeds 64",
}


def interrupt(script, folder, after=0.0, times=1, pause=0.2, arguments=(), says_when=False):
    """Exit code and stderr of a script that is sent Ctrl-C some seconds after it says "begun".

    And again a moment later, or when it says "again".
    """
    with subprocess.Popen(
        [sys.executable, "-c", script, *arguments],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as child:
        try:
            assert child.stdout.readline() == "begun\n"
            time.sleep(after)
            assert child.poll() is None, "ended before it was interrupted"
            for _ in range(times - 1):
                child.send_signal(signal.SIGINT)
                if says_when:
                    assert child.stdout.readline() == "again\n"
                else:
                    time.sleep(pause)
            child.send_signal(signal.SIGINT)
            _, errors = child.communicate(timeout=120)
        finally:
            child.kill()
    return child.returncode, errors


@pytest.mark.parametrize(
    ("name", "after", "times"),
    some_in_default(
        [
            ("run", 0.0, 1),  # at the start
            ("run", 1.0, 3),  # while it compiles
            ("run", 4.0, 1),  # at play
            ("run", 8.0, 3),
            ("sweep", 8.0, 3),
            ("verify", 0.0, 3),
            ("verify", 4.0, 1),
            ("worst-case", 1.0, 1),
            ("worst-case", 4.0, 3),
        ],
        [("run", 1.0, 3), ("run", 4.0, 1), ("worst-case", 4.0, 3)],
    ),
)
def test_interrupted(name, after, times, tmp_path):
    code, errors = interrupt(START, tmp_path, after, times, arguments=COMMANDS[name].split())
    assert code == 130, errors
    lines = [line for line in errors.splitlines() if not line.startswith("step ")]
    assert len(lines) == 1, errors
    assert "stopped" in lines[0]
    if "the best found is kept" in errors:
        assert (tmp_path / "worst_case_exp3.npy").exists()


def test_one_that_insists_ends_at_once(tmp_path):
    """Ctrl-C again, after one's patience has ended, while the first still waits for something."""
    script = """
import time
from importlib import import_module

cli = import_module("sfmab_jax.cli.main")
cli._PATIENCE = 0.0

@cli.app.command()
def wait():
    try:
        print("begun", flush=True)
        time.sleep(100)
    finally:
        print("again", flush=True)
        time.sleep(100)

cli.main(["wait"])
"""
    code, errors = interrupt(script, tmp_path, times=2, says_when=True)
    assert code == 130
    assert errors == "sfmab: stopped at once; what was under way is lost\n"


def test_in_a_callback_of_the_garbage_collector(tmp_path):
    """Python ignores exceptions there, and JAX has such a callback: Ctrl-C is not lost."""
    script = """
import gc
import time
from importlib import import_module

cli = import_module("sfmab_jax.cli.main")
cli._PATIENCE = 1000.0

def callback(phase, info):
    print("begun", flush=True)
    time.sleep(5)

@cli.app.command()
def wait():
    gc.callbacks.append(callback)
    gc.collect()
    time.sleep(100)

cli.main(["wait"])
"""
    code, errors = interrupt(script, tmp_path, after=0.5, times=3)
    assert code == 130
    assert errors == "sfmab: stopped\n"


def test_while_the_package_is_imported(tmp_path):
    script = """
import sys
import time

class SlowImports:
    def find_spec(self, name, path, target=None):
        if name == "jax":
            print("begun", flush=True)
            time.sleep(100)

sys.meta_path.insert(0, SlowImports())
from sfmab import main

main()
"""
    code, errors = interrupt(script, tmp_path, times=3, pause=0.0)
    assert code == 130
    assert errors == "sfmab: stopped\n"
