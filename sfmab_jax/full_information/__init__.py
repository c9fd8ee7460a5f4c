"""F: full-information strategies on the simplex."""

from sfmab_jax.full_information.ada_ftrl import ada_ftrl
from sfmab_jax.full_information.ftrl import ftrl

__all__ = ["ada_ftrl", "ftrl"]
