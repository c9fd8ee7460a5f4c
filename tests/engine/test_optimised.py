"""What may depend on LLVM's optimisations, once more with programs as users have them.

The other tests compile without them, see `conftest.py`. LLVM may turn loops into vectors and join
multiplications and additions, but is not to reorder sums: two-word arithmetic, the laws of the
draws, golden trajectories, and games that are the same alone and among others.
"""

import os
import subprocess
import sys
from pathlib import Path

TESTS = Path(__file__).parents[1]


def test_marked_tests():
    command = [sys.executable, "-m", "pytest", "-n", "0", "-m", "optimised and not full"]
    others = set(TESTS.rglob("test_*.py")) - {Path(__file__)}
    marked = [path for path in others if "@pytest.mark.optimised" in path.read_text()]
    done = subprocess.run(
        [*command, *sorted(map(str, marked))],
        cwd=TESTS.parent,
        env=os.environ | {"XLA_FLAGS": ""},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout[-3000:]
    assert " passed" in done.stdout
