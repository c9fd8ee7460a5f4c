"""The benchmark runs, checks that its contenders play the same game, and reports ratios."""

import json
import subprocess
import sys
from pathlib import Path


def test_benchmark_in_small(tmp_path):
    output = tmp_path / "figures.json"
    options = ["--rounds", "60", "--seeds", "256", "--repeats", "1", "--output", str(output)]
    command = [sys.executable, "-m", "benchmarks", *options]
    root = Path(__file__).parent.parent
    finished = subprocess.run(command, cwd=root, capture_output=True, text=True, timeout=300)
    assert finished.returncode == 0, finished.stderr
    contenders = json.loads(output.read_text())["contenders"]
    assert contenders["sfmab_jax"]["ratio_median"] == 1
    assert contenders["vmap(scan(while_loop))"]["million_rounds_per_second"] > 0
