"""S: sampling schemes, which make p'_t [n], the law of the arm, from the play p_t [n]."""

from sfmab_jax.sampling.each_arm_first import each_arm_first
from sfmab_jax.sampling.favouring_last import favouring_last
from sfmab_jax.sampling.gap_exploration import gap_exploration
from sfmab_jax.sampling.in_batches import in_batches
from sfmab_jax.sampling.lifting import lifted
from sfmab_jax.sampling.mixing import adaptive, as_played, decaying, fixed, scheduled
from sfmab_jax.sampling.stability_matched import stability_matched
from sfmab_jax.sampling.truncation import truncated

__all__ = [
    "adaptive",
    "as_played",
    "decaying",
    "each_arm_first",
    "favouring_last",
    "fixed",
    "gap_exploration",
    "in_batches",
    "lifted",
    "scheduled",
    "stability_matched",
    "truncated",
]
