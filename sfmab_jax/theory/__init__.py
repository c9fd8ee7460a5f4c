"""What the paper proves, as functions of numbers a simulation measures."""

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
