"""Potentials psi and their regularisers F: section 3 of the paper.

A potential is convex, increasing and smooth from (-inf, a) onto (0, inf). With f' = psi^{-1} it
gives the regulariser F(q) = sum_i [f(q(i)) - f(1/n)].

| potential          | psi(u)             | f(x)        |
|--------------------|--------------------|-------------|
| log_barrier()      | -1/u               | -log x      |
| negative_entropy() | exp(u)             | x log x - x |
| tsallis(power=c)   | (-u/c)^(-1/(1-c))  | -x^c        |

`entropy_with_barrier(weight=theta)` has f(x) = x log x - theta log x, and a psi with Lambert's W.

`potential(psi, inverse)` makes one from the two functions alone.
"""

from sfmab_jax.numerics.potential import Potential
from sfmab_jax.potentials.base import regularizer
from sfmab_jax.potentials.entropy import negative_entropy
from sfmab_jax.potentials.entropy_with_barrier import entropy_with_barrier
from sfmab_jax.potentials.general import potential
from sfmab_jax.potentials.log_barrier import log_barrier
from sfmab_jax.potentials.tsallis import tsallis

__all__ = [
    "Potential",
    "entropy_with_barrier",
    "log_barrier",
    "negative_entropy",
    "potential",
    "regularizer",
    "tsallis",
]
