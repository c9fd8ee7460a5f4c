"""The hardest losses for a strategy, and the best parameters for losses, by gradient."""

from sfmab_jax.worst_case import constraints, objectives
from sfmab_jax.worst_case.evaluation import WorstCase
from sfmab_jax.worst_case.find import worst_case
from sfmab_jax.worst_case.games import exact_gradient
from sfmab_jax.worst_case.tune import Tuned, tune

__all__ = [
    "Tuned",
    "WorstCase",
    "constraints",
    "exact_gradient",
    "objectives",
    "tune",
    "worst_case",
]
