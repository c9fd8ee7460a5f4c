"""A JAX engine for studying scale-free adversarial bandits.

    import sfmab_jax as sf

    result = sf.simulate(sf.strategies.scale_free(), sf.losses.sparse(), num_seeds=1000)
    print(result)  # its parts: result.mean(), .interval(0.95), .quantiles([0.9]), .plot()

A strategy is a sampling scheme S, an estimation scheme E and a full-information strategy F, put
together by `compose`. What there is; ``help(sf.losses.sparse)`` tells more of each:

    play            simulate -> Result or Results, load reads what they save, concat joins them;
                    or Summaries, each a Summary of very many games; until, a rule to stop
    two players     play_matrix_game -> MatrixGame, each the adversary of the other
    look closer     sweep -> Sweep, a grid of a strategy's parameters, and its Best point;
                    step_by_step, one game as a generator of every Step
    strategies      scale_free, exp3_ix, tsallis_inf, ...; STRATEGIES has all
    losses          bernoulli, sparse, switching, ...; LOSSES has all; scaled and others change
                    them; from_function, from_array and from_file make your own; ADVERSARIES, such
                    as switching_costs, answer the player, and from_adversary makes your own
    delays          fixed, geometric, from_array, from_function: when feedback arrives
    parts           sampling (S), estimation (E), full_information (F), potentials, compose
    types of parts  Sampling, Estimation, FullInformation, Round, Bandit, BanditState
    mathematics     normalizer, distribution, mixability_gap, draw_arm
    measures        hardness -> Hardness; Norms of the losses, which bounds are stated in
    theory          bounds of Algorithm 1; theory: certificates, claims, textbook bounds, figures
    worst cases     worst_case -> WorstCase, tune -> Tuned, exact_gradient; constraints, objectives
    studies         load_study reads what ``sfmab study run`` wrote
    pictures        plotting, or result.plot()
"""

from sfmab_jax import (
    delays,
    estimation,
    full_information,
    losses,
    potentials,
    sampling,
    strategies,
    theory,
    until,
)
from sfmab_jax.base import Bandit, BanditState, Estimation, FullInformation, Round, Sampling
from sfmab_jax.compose import compose
from sfmab_jax.matrix_game import MatrixGame, play_matrix_game
from sfmab_jax.numerics.draw import draw_arm
from sfmab_jax.numerics.simplex import distribution, normalizer
from sfmab_jax.numerics.stability import mixability_gap
from sfmab_jax.results import load, plotting
from sfmab_jax.results.concat import concat
from sfmab_jax.results.hardness import Hardness, hardness
from sfmab_jax.results.norms import Norms
from sfmab_jax.results.result import Result, Results
from sfmab_jax.results.summary import Summaries, Summary
from sfmab_jax.simulate import simulate
from sfmab_jax.step_by_step import Step, step_by_step
from sfmab_jax.study.study import load_study
from sfmab_jax.sweep import Best, Sweep, sweep
from sfmab_jax.theory import bounds
from sfmab_jax.worst_case import (
    Tuned,
    WorstCase,
    constraints,
    exact_gradient,
    objectives,
    tune,
    worst_case,
)

__version__ = "1.0.0"

__all__ = [
    "Bandit",
    "BanditState",
    "Best",
    "Estimation",
    "FullInformation",
    "Hardness",
    "MatrixGame",
    "Norms",
    "Result",
    "Results",
    "Round",
    "Sampling",
    "Step",
    "Summaries",
    "Summary",
    "Sweep",
    "Tuned",
    "WorstCase",
    "bounds",
    "compose",
    "concat",
    "constraints",
    "delays",
    "distribution",
    "draw_arm",
    "estimation",
    "exact_gradient",
    "full_information",
    "hardness",
    "load",
    "load_study",
    "losses",
    "mixability_gap",
    "normalizer",
    "objectives",
    "play_matrix_game",
    "plotting",
    "potentials",
    "sampling",
    "simulate",
    "step_by_step",
    "strategies",
    "sweep",
    "theory",
    "tune",
    "until",
    "worst_case",
]
