"""The hardest losses for a strategy, and the best parameters for losses, by gradient."""

from sfmab_jax.worst_case import constraints, objectives
from sfmab_jax.worst_case.evaluation import WorstCase
from sfmab_jax.worst_case.find import worst_case
from sfmab_jax.worst_case.games import exact_gradient

__all__ = ["WorstCase", "constraints", "exact_gradient", "objectives", "worst_case"]
