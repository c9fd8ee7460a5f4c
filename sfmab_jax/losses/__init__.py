"""Loss sequences: what the adversary chose before the game, or answers in it.

`LOSSES` lists the oblivious families by name, `ADVERSARIES` those that answer the arms played. A
``[T, n]`` or ``[K, T, n]`` array works wherever a sequence does. `from_function`, `from_recurrence`
and `from_adversary` make sequences of one's own.
"""

from sfmab_jax.losses.adversaries import (
    against_the_law,
    corrupted_leader,
    crowded,
    switching_cost_walk,
    switching_costs,
    tit_for_tat,
)
from sfmab_jax.losses.changing_scale import alternating, growing, late_spike, scale_regimes
from sfmab_jax.losses.combinators import (
    clipped,
    concatenated,
    enveloped,
    mixed,
    permuted,
    scaled,
    shifted,
)
from sfmab_jax.losses.deterministic import cyclic, one_arm, parity, zero
from sfmab_jax.losses.drifting import random_walk, sinusoidal, slowly_varying
from sfmab_jax.losses.files import from_file
from sfmab_jax.losses.heavy_tailed import log_normal, pareto, student_t
from sfmab_jax.losses.light_tailed import bernoulli, gaussian, uniform
from sfmab_jax.losses.lower_bounds import minimax, shared_noise
from sfmab_jax.losses.sequence import (
    LossSequence,
    as_loss_sequence,
    from_adversary,
    from_array,
    from_function,
    from_recurrence,
)
from sfmab_jax.losses.sparse import sparse
from sfmab_jax.losses.switching import constrained_adversarial, corrupted, neu_switch, switching

# Every family that needs no data of the user's, for listings and tests.
LOSSES = {
    family.__name__: family
    for family in (
        bernoulli,
        uniform,
        gaussian,
        student_t,
        pareto,
        log_normal,
        constrained_adversarial,
        switching,
        neu_switch,
        corrupted,
        sparse,
        growing,
        late_spike,
        scale_regimes,
        alternating,
        random_walk,
        sinusoidal,
        slowly_varying,
        cyclic,
        parity,
        zero,
        one_arm,
        minimax,
        shared_noise,
    )
}

# The same of those that answer the player: every game has losses of its own.
ADVERSARIES = {
    family.__name__: family
    for family in (
        crowded,
        switching_costs,
        switching_cost_walk,
        tit_for_tat,
        corrupted_leader,
        against_the_law,
    )
}

__all__ = [
    "ADVERSARIES",
    "LOSSES",
    "LossSequence",
    "as_loss_sequence",
    "clipped",
    "concatenated",
    "enveloped",
    "from_adversary",
    "from_array",
    "from_file",
    "from_function",
    "from_recurrence",
    "mixed",
    "permuted",
    "scaled",
    "shifted",
    *LOSSES,
    *ADVERSARIES,
]
