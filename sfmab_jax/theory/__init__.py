"""Theory of the paper, as functions of what a simulation measures.

    bounds, textbook   bounds on the expected regret, of Algorithm 1 and of others
    guarantees         which bound belongs to which result
    certificates       bounds along single paths, summed up
    local_norms        lower bounds on Bregman divergences (section 4)
    trajectories       games recorded round by round
    regret             the regret equality and its inequalities on a trajectory
    figures            the figures of the paper
    verify             every claim of the paper, tried on numbers

`figures` and `verify` are not imported here, as they are slow to load.
"""

from sfmab_jax.theory import (
    bounds,
    certificates,
    guarantees,
    local_norms,
    regret,
    textbook,
    trajectories,
)

__all__ = [
    "bounds",
    "certificates",
    "guarantees",
    "local_norms",
    "regret",
    "textbook",
    "trajectories",
]
