"""Which cases of a long list the default tests try; all of them are tried by .ci/full.

What is the same mathematics in other numbers is left to the full tests. A strategy is a sampling
scheme, an estimation scheme and a full-information strategy, so that those below, in which every
such part and every potential occurs, stand for the rest in tests of the engine. Trajectories and
contracts are tested for every strategy.
"""

from collections.abc import Collection, Iterable

import pytest

from sfmab_jax.strategies import STRATEGIES

ARCHETYPES = (
    "scale_free",  # mixing, importance weights, AdaFTRL, log barrier
    "ahb",  # each arm first, centred estimates
    "umab_g",  # lifting of rare arms, clipping, FTRL at the rate of the clipped losses
    "exp3_light_a_horizon",  # a growing range, FTRL with restarts
    "exp3_gamma_horizon",  # estimates of gains, FTRL, entropy
    "exp3_ix",  # implicit exploration
    "exp3_in_batches_horizon",  # one arm for a batch of rounds
    "exp3_plus_plus",  # exploration by gaps
    "exp3_s_horizon",  # fixed share
    "tsallis_inf_rv",  # reduced variance, Tsallis entropy
    "green_horizon",  # truncation
    "tsallis_inf_delayed",  # the hybrid regulariser for delayed feedback
    "broad_optimistic",  # barrier descent, predictions from the last losses
    "bubeck_li_luo_wei_horizon",  # the last arm favoured
    "hybrid_barrier",  # the hybrid of entropy and log barrier
    "tsallis_spm",  # exploration and a weight that match the stability
    "lb_inf_v_horizon",  # predictions by regression, a rate for each arm
    "htinf",  # skipping
    "ada_tinf_horizon",  # heavy tails
    "epsilon_greedy",  # the leader by an index
    "hedge",  # full information
    "uniform",  # a constant
)


def some_in_default(cases: Iterable, default: Collection) -> list:
    """Mark the cases that are not in ``default`` as left to the full tests; tuples are spread."""
    return [
        pytest.param(
            *(case if isinstance(case, tuple) else (case,)),
            marks=() if case in default else pytest.mark.full,
        )
        for case in cases
    ]


each_strategy = pytest.mark.parametrize("name", STRATEGIES)
each_archetype = pytest.mark.parametrize("name", some_in_default(STRATEGIES, ARCHETYPES))
