"""The hardest losses for a strategy, and the best parameters of a strategy, by gradient."""

from sfmab_jax.worst_case import constraints, objectives
from sfmab_jax.worst_case.evaluation import WorstCase
from sfmab_jax.worst_case.exact import exact_gradient
from sfmab_jax.worst_case.find import worst_case
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
