"""The notebooks run from top to bottom, in their small form, and are kept with small outputs."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[1] / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))


def cells(path, kind):
    read = json.loads(path.read_text())["cells"]
    return [cell for cell in read if cell["cell_type"] == kind]


def code_of(path) -> str:
    """All code cells as one program; lines for Jupyter alone are left out."""
    lines = "\n".join("".join(cell["source"]) for cell in cells(path, "code")).splitlines()
    return "\n".join(line for line in lines if not line.startswith("%"))


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_runs_in_its_small_form(path, tmp_path):
    environment = os.environ | {"SFMAB_QUICK": "1", "MPLBACKEND": "Agg"}
    environment.pop("JAX_ENABLE_X64", None)
    done = subprocess.run(
        [sys.executable, "-c", code_of(path)],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert not list(tmp_path.iterdir()), "it leaves files behind"


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_is_kept_with_its_outputs(path):
    """Every cell was run, in order, without an error or a warning, and there are plots."""
    code = cells(path, "code")
    assert [cell["execution_count"] for cell in code] == list(range(1, len(code) + 1))
    outputs = [output for cell in code for output in cell["outputs"]]
    assert all(output["output_type"] != "error" for output in outputs)
    assert all(output.get("name") != "stderr" for output in outputs)
    assert sum("image/png" in output.get("data", {}) for output in outputs) >= 2
    assert "".join(cells(path, "markdown")[0]["source"]).startswith(f"# {path.name[0]}. ")


def test_there_are_six_and_they_are_small():
    assert [path.name[0] for path in NOTEBOOKS] == list("123456")
    assert sum(path.stat().st_size for path in FOLDER.iterdir()) < 2e6
