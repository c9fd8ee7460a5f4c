"""The paper's frame, section 2, as a function: compose(S, E, F)."""

from textwrap import shorten
from typing import Literal

import jax.numpy as jnp
from jax import Array
from jax.tree_util import Partial

from sfmab_jax.base import (
    Bandit,
    BanditState,
    Estimation,
    FullInformation,
    Round,
    Sampling,
    feedback_of,
    with_static_functions,
)
from sfmab_jax.numerics.arms import pick

__all__ = ["Parts", "compose", "is_composed", "learn", "observe", "parts_of"]

Parts = tuple[Sampling, Estimation, FullInformation]


def compose(
    sampling: Sampling,
    estimation: Estimation,
    full_information: FullInformation,
    feedback: Literal["bandit", "full"] = "bandit",
) -> Bandit:
    """Compose a bandit strategy of a sampling scheme S, an estimation scheme E and a strategy F.

    Args:
      sampling: S, one of `sf.sampling`.
      estimation: E, one of `sf.estimation`.
      full_information: F, one of `sf.full_information`.
      feedback: "bandit" to show it the loss of the arm played; "full" to show it the losses of all
        arms, with l~_t = l_t. Either kind of strategy can be updated with both: from a number []
        it makes an estimate, a vector [n] it takes as it is.

    >>> from sfmab_jax import estimation, full_information, potentials, sampling
    >>> bandit = compose(
    ...     sampling.fixed(0.1),
    ...     estimation.importance_weighted(),
    ...     full_information.ftrl(potentials.negative_entropy(), 0.05),
    ... )
    >>> state = bandit.update(bandit.init(3), jnp.int32(1), jnp.float32(2.0))
    >>> [f"{p:.3f}" for p in bandit.probabilities(state)]
    ['0.362', '0.277', '0.362']
    """
    show = feedback_of(feedback)
    for part, kind in zip(
        (sampling, estimation, full_information), (Sampling, Estimation, FullInformation)
    ):
        if not isinstance(part, kind):
            raise ValueError(
                f"{shorten(repr(part), 80)} is not of type {kind.__name__}; give compose(S, E, F) "
                "a sampling scheme, an estimation scheme and a full-information strategy, as "
                "sf.sampling.adaptive()"
            )
    parts = with_static_functions((sampling, estimation, full_information))
    return Bandit(
        init=Partial(_init, parts),
        probabilities=Partial(_probabilities, parts),
        update=Partial(_update, parts),
        feedback=show,
    )


def is_composed(bandit: Bandit) -> bool:
    """Whether a bandit is as `compose` made it, but for its feedback."""
    functions = [getattr(function, "func", None) for function in bandit[:3]]
    return functions == [_init, _probabilities, _update]


def parts_of(bandit: Bandit) -> Parts:
    """Return the parts that a bandit was composed of."""
    if not isinstance(bandit.update, Partial) or bandit.update.func is not _update:
        raise ValueError("the bandit was not made by sf.compose, so it has no parts; compose it")
    return bandit.update.args[0]


def observe(
    parts: Parts,
    state: BanditState,
    probabilities: Array,
    arm: Array,
    shown: Array,
    play: Array | None = None,
    missing: Array | None = None,
) -> Round:
    """Return a round as the parts see it, l~_t included.

    Args:
      parts: S, E and F.
      state: before the round.
      probabilities: p'_t [n].
      arm: i_t [].
      shown: l_t(i_t) [], or l_t [n] where the feedback is full.
      play: p_t [n] of the round that was played, if it is not the present one.
      missing: see `Round`.
    """
    _, estimation, _ = parts
    present = state.full_information.play
    if jnp.ndim(shown) == 1:
        return Round(present, probabilities, arm, pick(shown, arm), shown, None, missing)
    arguments = (state.estimation, present if play is None else play, probabilities, arm, shown)
    estimate = estimation.estimate(*arguments)
    weighted = estimation.weigh(*arguments) if estimation.weigh else None
    return Round(present, probabilities, arm, shown, estimate, weighted, missing)


def learn(parts: Parts, state: BanditState, seen: Round) -> BanditState:
    """Return the states of the parts after a round."""
    sampling, estimation, full_information = parts
    return BanditState(
        sampling.update(state.sampling, seen),
        estimation.update(state.estimation, seen),
        full_information.update(state.full_information, seen),
    )


def _init(parts, num_arms: int, dtype=jnp.float32, loss_unit: Array | float = 1.0) -> BanditState:
    dtype = jnp.dtype(dtype)
    loss_unit = jnp.asarray(loss_unit, dtype)
    return BanditState(*(part.init(num_arms, dtype, loss_unit) for part in parts))


def _probabilities(parts, state: BanditState) -> Array:
    return parts[0].probabilities(state.sampling, state.full_information.play)


def _update(parts, state: BanditState, arm: Array, loss: Array) -> BanditState:
    probabilities = _probabilities(parts, state)
    return learn(parts, state, observe(parts, state, probabilities, arm, loss))
