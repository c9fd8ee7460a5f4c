"""Named strategies: each assembles S, E and F, and holds no mathematics.

By what they know of the losses: nothing (`scale_free`), their range (`known_range`,
`data_dependent`), that a moment is finite (`heavy_tailed`), all of them after each round
(`full_feedback`). `controls` are what to compare with.
"""

from collections.abc import Callable

from sfmab_jax.base import Bandit
from sfmab_jax.strategies.controls import (
    epsilon_greedy,
    fixed_arm,
    follow_the_leader_on_estimates,
    ucb1,
    uniform,
)
from sfmab_jax.strategies.data_dependent import (
    broad,
    broad_increasing_horizon,
    broad_optimistic,
    bubeck_li_luo_wei_horizon,
    green_horizon,
    hybrid_barrier,
    hybrid_barrier_horizon,
    lb_inf_v_horizon,
    log_barrier_horizon,
    tsallis_spm,
)
from sfmab_jax.strategies.full_feedback import (
    ada_ftrl_log_barrier,
    ada_ftrl_tsallis,
    ada_hedge,
    follow_the_leader,
    hedge,
    hedge_horizon,
)
from sfmab_jax.strategies.heavy_tailed import (
    ada_tinf_horizon,
    htinf,
    omd_lb_heavy_tails_horizon,
    uni_inf_horizon,
)
from sfmab_jax.strategies.known_range import (
    exp3,
    exp3_gamma_horizon,
    exp3_horizon,
    exp3_in_batches_horizon,
    exp3_ix,
    exp3_ix_horizon,
    exp3_p_horizon,
    exp3_plus_plus,
    exp3_s_horizon,
    exp3_side_information,
    poly_inf_horizon,
    tsallis_inf,
    tsallis_inf_delayed,
    tsallis_inf_rv,
)
from sfmab_jax.strategies.scale_free import (
    ahb,
    ahb_published_code,
    bandit_ada_ftrl_tsallis,
    bandit_ada_ftrl_tsallis_proxy,
    exp3_light_a_horizon,
    scale_free,
    umab_g,
    umab_g_both_horizon,
    umab_g_horizon,
)

__all__ = [
    "STRATEGIES",
    "ada_ftrl_log_barrier",
    "ada_ftrl_tsallis",
    "ada_hedge",
    "ada_tinf_horizon",
    "ahb",
    "ahb_published_code",
    "bandit_ada_ftrl_tsallis",
    "bandit_ada_ftrl_tsallis_proxy",
    "broad",
    "broad_increasing_horizon",
    "broad_optimistic",
    "bubeck_li_luo_wei_horizon",
    "epsilon_greedy",
    "exp3",
    "exp3_gamma_horizon",
    "exp3_horizon",
    "exp3_in_batches_horizon",
    "exp3_ix",
    "exp3_ix_horizon",
    "exp3_light_a_horizon",
    "exp3_p_horizon",
    "exp3_plus_plus",
    "exp3_s_horizon",
    "exp3_side_information",
    "fixed_arm",
    "follow_the_leader",
    "follow_the_leader_on_estimates",
    "green_horizon",
    "hedge",
    "hedge_horizon",
    "htinf",
    "hybrid_barrier",
    "hybrid_barrier_horizon",
    "lb_inf_v_horizon",
    "log_barrier_horizon",
    "omd_lb_heavy_tails_horizon",
    "poly_inf_horizon",
    "scale_free",
    "tsallis_inf",
    "tsallis_inf_delayed",
    "tsallis_inf_rv",
    "tsallis_spm",
    "ucb1",
    "umab_g",
    "umab_g_both_horizon",
    "umab_g_horizon",
    "uni_inf_horizon",
    "uniform",
]

# Every named strategy with its default parameters, for listings and contract tests.
STRATEGIES: dict[str, Callable[..., Bandit]] = {
    make.__name__: make
    for make in (
        # Scale-free.
        scale_free,
        ahb,
        ahb_published_code,
        bandit_ada_ftrl_tsallis,
        bandit_ada_ftrl_tsallis_proxy,
        umab_g,
        umab_g_horizon,
        umab_g_both_horizon,
        exp3_light_a_horizon,
        # Known range.
        exp3,
        exp3_horizon,
        exp3_gamma_horizon,
        exp3_p_horizon,
        exp3_in_batches_horizon,
        exp3_ix,
        exp3_ix_horizon,
        exp3_plus_plus,
        exp3_s_horizon,
        exp3_side_information,
        poly_inf_horizon,
        tsallis_inf,
        tsallis_inf_rv,
        tsallis_inf_delayed,
        # Data-dependent.
        log_barrier_horizon,
        green_horizon,
        broad,
        broad_increasing_horizon,
        broad_optimistic,
        bubeck_li_luo_wei_horizon,
        hybrid_barrier,
        hybrid_barrier_horizon,
        tsallis_spm,
        lb_inf_v_horizon,
        # Heavy tails.
        htinf,
        ada_tinf_horizon,
        uni_inf_horizon,
        omd_lb_heavy_tails_horizon,
        # Full information.
        hedge,
        hedge_horizon,
        ada_hedge,
        ada_ftrl_log_barrier,
        ada_ftrl_tsallis,
        follow_the_leader,
        # Controls.
        uniform,
        fixed_arm,
        follow_the_leader_on_estimates,
        epsilon_greedy,
        ucb1,
    )
}
