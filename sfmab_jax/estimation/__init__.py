"""E: estimation schemes, which make an estimate l~_t [n] of all losses from the one loss seen."""

from sfmab_jax.estimation.centred import (
    centred,
    centred_on_best,
    centred_on_last,
    centred_on_mean,
)
from sfmab_jax.estimation.clipping import clipped_below
from sfmab_jax.estimation.gains import gain_weighted
from sfmab_jax.estimation.growing_range import within_range
from sfmab_jax.estimation.heavy_tails import balanced_skipping, doubling_skipping
from sfmab_jax.estimation.implicit import implicit_exploration
from sfmab_jax.estimation.importance import importance_weighted
from sfmab_jax.estimation.in_batches import in_batches
from sfmab_jax.estimation.last_seen import predicted_by_last_seen
from sfmab_jax.estimation.reduced_variance import reduced_variance
from sfmab_jax.estimation.regression import predicted_by_regression
from sfmab_jax.estimation.skipping import skipping, skipping_above

__all__ = [
    "balanced_skipping",
    "centred",
    "centred_on_best",
    "centred_on_last",
    "centred_on_mean",
    "clipped_below",
    "doubling_skipping",
    "gain_weighted",
    "implicit_exploration",
    "importance_weighted",
    "in_batches",
    "predicted_by_last_seen",
    "predicted_by_regression",
    "reduced_variance",
    "skipping",
    "skipping_above",
    "within_range",
]
