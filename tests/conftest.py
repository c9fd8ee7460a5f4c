"""Tests run with float64 at hand and with JAX's silent promotions turned into errors."""

import jax
import matplotlib

jax.config.update("jax_enable_x64", True)
jax.config.update("jax_numpy_rank_promotion", "raise")
jax.config.update("jax_numpy_dtype_promotion", "strict")
matplotlib.use("Agg")
