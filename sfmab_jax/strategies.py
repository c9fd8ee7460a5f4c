"""Named strategies: each assembles S, E and F, and holds no mathematics."""

from typing import Literal

from jax import Array

from sfmab_jax import estimation, full_information, potentials, sampling
from sfmab_jax.base import Bandit
from sfmab_jax.compose import compose

__all__ = ["STRATEGIES", "scale_free"]


def scale_free(
    exploration: Literal["adaptive", "decaying"] = "adaptive",
    alpha: Array | float | None = None,
    beta: Array | float = 1.0,
) -> Bandit:
    """Putta and Agrawal, "Scale-Free Adversarial Multi Armed Bandits" (2022): Algorithm 1.

    Log-barrier AdaFTRL on importance-weighted losses, mixed with the uniform law. With n arms,
    L_inf the largest loss, L_1 and L_2 the sums of the losses' 1-norms and squared 2-norms, the
    expected regret is O~(sqrt(n L_2) + L_inf sqrt(n T)) with decaying exploration (option 1) and
    O~(sqrt(n L_2) + L_inf sqrt(n L_1)) with adaptive exploration (option 2).

    Args:
      exploration: "adaptive" (option 2) or "decaying" (option 1).
      alpha: of the learning rate alpha / (beta + sum of mixability gaps); None means n.
      beta: likewise, in units of loss.
    """
    schemes = {"adaptive": sampling.adaptive, "decaying": sampling.decaying}
    if exploration not in schemes:
        raise ValueError(f"exploration is {exploration!r}; choose 'adaptive' or 'decaying'")
    return compose(
        schemes[exploration](),
        estimation.importance_weighted(),
        full_information.ada_ftrl(potentials.log_barrier(), alpha, beta),
    )


# Every named strategy with its default parameters, for listings and contract tests.
STRATEGIES = {"scale_free": scale_free}
