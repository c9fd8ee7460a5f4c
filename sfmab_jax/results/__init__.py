"""Results of a simulation: regret and its statistics, norms, certificates, plots."""

from sfmab_jax.results.certificate import Certificate
from sfmab_jax.results.files import write_atomically
from sfmab_jax.results.hardness import Hardness, hardness
from sfmab_jax.results.norms import Norms
from sfmab_jax.results.result import Result, Results, load

__all__ = [
    "Certificate",
    "Hardness",
    "Norms",
    "Result",
    "Results",
    "hardness",
    "load",
    "write_atomically",
]
