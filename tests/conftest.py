"""Tests run with float64 at hand and with JAX's silent promotions turned into errors."""

import os

import jax
import matplotlib
import pytest

# Programs are compiled anew, and nothing is left in the home of who runs the tests.
os.environ["JAX_ENABLE_COMPILATION_CACHE"] = "false"
jax.config.update("jax_enable_compilation_cache", False)
jax.config.update("jax_enable_x64", True)
jax.config.update("jax_numpy_rank_promotion", "raise")
jax.config.update("jax_numpy_dtype_promotion", "strict")
matplotlib.use("Agg")


@pytest.fixture(scope="module", autouse=True)
def forget_programs():
    """Compiled programs are shared within a file; kept for longer they would fill the memory."""
    yield
    jax.clear_caches()
