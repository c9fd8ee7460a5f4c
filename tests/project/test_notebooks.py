"""The notebooks run from top to bottom in their small form, and are stored with small outputs."""

import ast
import inspect
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tiers import some_in_default

import sfmab_jax as sf

FOLDER = Path(__file__).parents[2] / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))


def cells(path, kind):
    read = json.loads(path.read_text())["cells"]
    return [cell for cell in read if cell["cell_type"] == kind]


def code_of(path) -> str:
    """Return all code cells as one program, without Jupyter's magic lines."""
    lines = "\n".join("".join(cell["source"]) for cell in cells(path, "code")).splitlines()
    return "\n".join(line for line in lines if not line.startswith("%"))


def run_notebook(path, folder, **environment):
    told = os.environ | {"MPLBACKEND": "Agg"} | environment
    told.pop("JAX_ENABLE_X64", None)
    done = subprocess.run(
        [sys.executable, "-c", code_of(path)], cwd=folder, env=told, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert not list(folder.iterdir()), "the notebook leaves files behind"


# The first steps; of the others the names, the arguments and the outputs.
@pytest.mark.parametrize(
    "path", some_in_default(NOTEBOOKS, NOTEBOOKS[:1]), ids=lambda path: path.stem
)
def test_runs_in_its_small_form(path, tmp_path):
    run_notebook(path, tmp_path, SFMAB_QUICK="1")


@pytest.mark.full
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_runs_at_its_size(path, tmp_path):
    run_notebook(path, tmp_path)


def named(node: ast.AST):
    """What an expression such as ``sf.losses.uniform`` stands for, or None if it is another."""
    if isinstance(node, ast.Name):
        return sf if node.id == "sf" else None
    if isinstance(node, ast.Attribute) and (owner := named(node.value)) is not None:
        return getattr(owner, node.attr)
    return None


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_names_and_arguments_exist(path):
    """Every ``sf.name`` is there, and its calls have arguments that it takes."""
    calls = 0
    for node in ast.walk(ast.parse(code_of(path))):
        named(node)
        if isinstance(node, ast.Call) and callable(function := named(node.func)):
            given = [None for argument in node.args if not isinstance(argument, ast.Starred)]
            words = {keyword.arg: None for keyword in node.keywords if keyword.arg}
            inspect.signature(function).bind_partial(*given, **words)
            calls += 1
    assert calls >= 3


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_is_stored_with_its_outputs(path):
    """Every cell ran, in order, without an error or a warning, and there are plots."""
    code = cells(path, "code")
    assert [cell["execution_count"] for cell in code] == list(range(1, len(code) + 1))
    outputs = [output for cell in code for output in cell["outputs"]]
    assert all(output["output_type"] != "error" for output in outputs)
    assert all(output.get("name") != "stderr" for output in outputs)
    assert sum("image/png" in output.get("data", {}) for output in outputs) >= 2
    assert "".join(cells(path, "markdown")[0]["source"]).startswith(f"# {path.name[0]}. ")


def test_there_are_seven_and_they_are_small():
    assert [path.name[0] for path in NOTEBOOKS] == list("1234567")
    assert sum(path.stat().st_size for path in FOLDER.iterdir()) < 2e6
