"""Oblivious loss sequences: what the adversary chose before the game.

`LOSSES` lists the families by name. A ``[T, n]`` or ``[K, T, n]`` array works wherever a sequence
does.
"""

from sfmab_jax.losses.base import LossSequence, as_loss_sequence, from_array, from_function
from sfmab_jax.losses.independent import gaussian, uniform
from sfmab_jax.losses.sparse import sparse

__all__ = [
    "LOSSES",
    "LossSequence",
    "as_loss_sequence",
    "from_array",
    "from_function",
    "gaussian",
    "sparse",
    "uniform",
]

# Every family that needs no data of the user's, for listings and tests.
LOSSES = {"uniform": uniform, "gaussian": gaussian, "sparse": sparse}
