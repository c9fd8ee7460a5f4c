"""Tests run with float64 at hand and with JAX's silent promotions turned into errors.

Compiled programs are kept in `.pytest_cache/programs` for all workers, for the processes that tests
start, and for the next run. They are compiled without LLVM's optimisations and, before jaxlib 0.11,
by XLA's older emitters, in a third of the time; `engine/test_optimised.py` repeats what depends on
those as users have them, and so does .ci/full.
"""

import gc
import os
import shutil
from importlib.metadata import version
from pathlib import Path

PROGRAMS = Path(__file__).parents[1] / ".pytest_cache" / "programs"
MOST_BYTES_OF_PROGRAMS = 4 * 2**30
# A worker that has grown by so much forgets its programs; they are read from the folder again.
MOST_GROWTH_BYTES = 4 * 2**30

# Before JAX is imported, and for the processes that tests start.
os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(PROGRAMS))
os.environ["JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS"] = "0.05"
flags = ["--xla_backend_optimization_level=0"]
if tuple(map(int, version("jaxlib").split(".")[:2])) < (0, 11):  # an unknown flag ends the process
    flags.append("--xla_cpu_use_fusion_emitters=false")
os.environ.setdefault("XLA_FLAGS", " ".join(flags))
# Else each of those processes would compile the package's own source anew.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

import jax  # noqa: E402
import matplotlib  # noqa: E402
import psutil  # noqa: E402
import pytest  # noqa: E402

jax.config.update("jax_enable_x64", True)
jax.config.update("jax_numpy_rank_promotion", "raise")
jax.config.update("jax_numpy_dtype_promotion", "strict")
matplotlib.use("Agg")
# Looking through all the small objects of traced programs for garbage takes a tenth of the time.
gc.set_threshold(200_000, 20, 20)


def pytest_configure(config):
    """Begin with an empty folder of programs where code of the past has filled it."""
    if hasattr(config, "workerinput"):
        return
    size = sum(path.stat().st_size for path in PROGRAMS.glob("*"))
    if size > MOST_BYTES_OF_PROGRAMS:
        shutil.rmtree(PROGRAMS)
    PROGRAMS.mkdir(parents=True, exist_ok=True)


@pytest.fixture(scope="session")
def memory_limit():
    """The resident bytes above which programs are forgotten; more once some were, as not all of
    their memory goes back to the system."""
    return [psutil.Process().memory_info().rss + MOST_GROWTH_BYTES]


@pytest.fixture(autouse=True)
def bound_memory(memory_limit):
    """Keep compiled programs for the tests to come, as long as there is room for them."""
    yield
    if psutil.Process().memory_info().rss > memory_limit[0]:
        jax.clear_caches()
        memory_limit[0] = psutil.Process().memory_info().rss + MOST_GROWTH_BYTES // 4
