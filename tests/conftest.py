"""Tests run with float64 at hand and with JAX's silent promotions turned into errors."""

import jax
import matplotlib
import pytest

jax.config.update("jax_enable_x64", True)
jax.config.update("jax_numpy_rank_promotion", "raise")
jax.config.update("jax_numpy_dtype_promotion", "strict")
matplotlib.use("Agg")


@pytest.fixture(scope="module", autouse=True)
def forget_programs():
    """Compiled programs are shared within a file; kept for longer they would fill the memory."""
    yield
    jax.clear_caches()
