"""F: full-information strategies, which make the play p_{t+1} [n] from the estimates so far."""

from sfmab_jax.full_information.ada_ftrl import ada_ftrl, proxy_gap
from sfmab_jax.full_information.barrier_descent import barrier_descent
from sfmab_jax.full_information.clipped_ftrl import clipped_ftrl
from sfmab_jax.full_information.constant import constant
from sfmab_jax.full_information.delayed import delayed_ftrl
from sfmab_jax.full_information.fixed_share import fixed_share
from sfmab_jax.full_information.ftrl import ftrl, ftrl_by_arms
from sfmab_jax.full_information.heavy_tails import balanced_ftrl, doubling_ftrl
from sfmab_jax.full_information.hybrid_barrier import hybrid_barrier_ftrl
from sfmab_jax.full_information.leader import follow_the_leader, lowest_index
from sfmab_jax.full_information.restarting_ftrl import restarting_ftrl
from sfmab_jax.full_information.stability_matched import stability_matched_ftrl
from sfmab_jax.full_information.variance_adaptive import variance_adaptive_ftrl

__all__ = [
    "ada_ftrl",
    "balanced_ftrl",
    "barrier_descent",
    "clipped_ftrl",
    "constant",
    "delayed_ftrl",
    "doubling_ftrl",
    "fixed_share",
    "follow_the_leader",
    "ftrl",
    "ftrl_by_arms",
    "hybrid_barrier_ftrl",
    "lowest_index",
    "proxy_gap",
    "restarting_ftrl",
    "stability_matched_ftrl",
    "variance_adaptive_ftrl",
]
