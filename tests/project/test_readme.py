"""Every Python block of the README runs; every command runs or at least parses."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import typer

from sfmab_jax.cli.main import app

README = (Path(__file__).parents[2] / "README.md").read_text()
BLOCKS = re.findall(r"(?ms)^```(\w*)\n(.*?)^```$", README)
PYTHON = [text for language, text in BLOCKS if language == "python"]


def commands():
    """Return the arguments of every `sfmab` command in the shell blocks and in the text."""
    found = []
    for language, text in BLOCKS:
        if language != "python":
            lines = text.replace("\\\n", " ").splitlines()
            found += [m[1] for line in lines if (m := re.search(r"(?:^|[\s/])sfmab (.*)", line))]
    prose = re.sub(r"(?ms)^```.*?^```$", "", README)
    found += re.findall(r"`sfmab ([^`]*)`", prose.replace("\n", " "))
    return list(dict.fromkeys(words for line in found if (words := arguments(line))))


def arguments(line: str) -> tuple[str, ...]:
    """Split a command line; drop comments and shell operators, give NAME and $i values."""
    words = shlex.split(line.replace("$i", "0"), comments=True)
    words = ["sparse" if word == "NAME" else word for word in words]
    return tuple(word for word in words if word not in ("&", "|", "..."))


# Searches of few steps, for a strategy that is quick to compile.
SMALL_SEARCH = """
import sfmab_jax as sf
few = dict(num_steps=2, num_restarts=2, num_seeds=8, score_seeds=64, rivals=["bernoulli"])
search = sf.worst_case
sf.worst_case = lambda strategy, **given: search(sf.strategies.exp3(), **given, **few)
"""


def shrunk(text: str) -> str:
    """Return the same program with fewer and shorter games."""
    return re.sub(r"num_(rounds|seeds)=[\d_]+", r"num_\1=40", text)


def run(program, folder):
    environment = os.environ | {"MPLBACKEND": "Agg"}
    environment.pop("JAX_ENABLE_X64", None)
    return subprocess.run(
        program, cwd=folder, env=environment, capture_output=True, text=True, timeout=300
    )


def test_python_blocks_run_in_order_in_one_namespace(tmp_path):
    assert len(PYTHON) >= 5
    done = run([sys.executable, "-c", "\n".join([SMALL_SEARCH, *map(shrunk, PYTHON)])], tmp_path)
    assert done.returncode == 0, done.stderr[-3000:]
    assert {path.name for path in tmp_path.iterdir()} == {"regret.png", "hard.npy"}
    # The output shown below the example has the same form; its numbers come from more games.
    after = README.split(PYTHON[0])[1]
    shown = re.search(r"(?ms)^prints\n\n```\n(.*?)^```", after)[1]
    printed = "\n".join(done.stdout.splitlines()[: shown.count("\n")]) + "\n"
    number = r"-?\d[\d.e+]*"
    assert re.sub(number, "#", printed) == re.sub(number, "#", shown)
    # The number of violations is the one in the comment.
    said = re.search(r"violations.*# (\S+)", README)[1]
    assert said == "0.0"
    assert said in done.stdout.splitlines()


@pytest.mark.parametrize("words", commands(), ids=" ".join)
def test_commands_are_understood(words):
    """The command exists and takes these options; nothing runs."""
    command, rest = typer.main.get_command(app), list(words)
    context = command.make_context("sfmab", rest[:0], resilient_parsing=True)
    while hasattr(command, "commands") and rest:
        command = command.commands[rest.pop(0)]
    if not hasattr(command, "commands"):
        needed = [p for p in command.params if p.param_type_name == "argument" and p.required]
        if not rest and needed:  # the text names the command alone
            return
        rest = [word for word in rest if word != "--help"]
        command.make_context("sfmab", rest, parent=context)


def test_studies_as_shown(tmp_path):
    """new, check, run and report work in the order of the README, on a small study."""
    shown = [words for words in commands() if words[0] == "study" and "mine" in " ".join(words)]
    shown = [words for words in shown if "--coordinator" not in words and "/" not in str(words)]
    assert [words[1] for words in shown] == ["new", "check", "run", "report"]
    script = ["from sfmab_jax.cli.main import app", "from pathlib import Path"]
    for words in shown:
        script.append(f"app({list(words)}, standalone_mode=False)")
        if words[1] == "new":  # make the study small
            script.append("file = Path('mine.toml')")
            script.append("text = file.read_text().replace('seeds = 256', 'seeds = 8')")
            script.append("text = text.replace('rounds = 10000 ', 'rounds = 40 ')")
            script.append("text = text.replace('scale = [1e-3, 1.0, 1e3]', '')")
            script.append("file.write_text(text)")
    done = run([sys.executable, "-c", "\n".join(script)], tmp_path)
    assert done.returncode == 0, done.stderr[-3000:]
    assert (tmp_path / "mine" / "report").is_dir()


def test_run_as_shown(tmp_path):
    """The command with several strategies works, in short games."""
    (shown,) = (words for words in commands() if words[0] == "run" and "--strategies" in words)
    words = [*shown, "--rounds", "20", "--seeds", "4", "--scales", "1"]
    program = f"from sfmab_jax.cli import main; main({words})"
    done = run([sys.executable, "-c", program], tmp_path)
    assert done.returncode == 0, done.stderr[-3000:]
