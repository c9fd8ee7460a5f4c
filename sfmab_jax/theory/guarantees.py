"""Which bound belongs to which result: by what was played, on which losses, never by its name.

A bound is proven for a strategy, so for its parts and parameters, and under assumptions: a range
and a sign of the losses, a number of rounds, a feedback. Importing this module lets
`plotting.regret` draw what holds, and say why nothing does.
"""

import inspect
from collections.abc import Iterator
from functools import cache
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from sfmab_jax import strategies
from sfmab_jax.base import Bandit, feedback_of
from sfmab_jax.results.identity import identity_of
from sfmab_jax.results.norms import Norms
from sfmab_jax.results.plotting import register_bounds
from sfmab_jax.results.result import Result
from sfmab_jax.theory import bounds
from sfmab_jax.theory.textbook import TEXTBOOK

__all__ = ["Guarantee", "exploration_of", "guarantee"]

_OPTIONS: tuple[bounds.Exploration, ...] = ("adaptive", "decaying")
# Losses may exceed a strategy's scale by this factor: a scale such as 0.1 is rounded in float32.
_ROUNDING = 1 + 2**-20


class Guarantee(NamedTuple):
    """What is proven of the expected regret of a result.

    Attributes:
      lines: the bounds by label, each [C], NaN at checkpoints where nothing is proven; those with
        nothing but NaN are left out.
      reason: why nothing is proven at some checkpoints or at all, as a sentence whose subject is
        the strategy; "" if all lines hold at every checkpoint.
    """

    lines: dict[str, np.ndarray]
    reason: str


def guarantee(result: Result) -> Guarantee:
    """Return the bounds that are proven for a result, or the reason why there are none.

    A strategy is known by its parts and parameters (``result.identity``), whatever it is called.
    Algorithm 1 has its corrected and its tight bound, for alpha = n and beta = 1; with decaying
    exploration for every beta, as the regret on losses l is beta times that of beta = 1 on l /
    beta. The strategies of `textbook.TEXTBOOK` have the bound for their own scale and number of
    rounds, while the losses lie in [0, scale] (for the hybrid barrier and Tsallis-FTRL-SPM in
    [-scale, scale]), or with full feedback in any interval of that length. A strategy that was told
    T has its bound after T rounds and, as all later losses might be 0, at every round before. Over
    several sequences a line is the mean of their bounds.

    >>> import sfmab_jax as sf
    >>> losses = [[1.0, 0.0], [0.0, 0.5]]
    >>> named = {"exp3": sf.strategies.exp3(), "hedge": sf.strategies.uniform()}
    >>> results = sf.simulate(named, losses, num_seeds=4)
    >>> print(guarantee(results["exp3"]).lines["exp3: bound"].round(3))
    [2.355 3.33 ]
    >>> guarantee(results["hedge"])
    Guarantee(lines={}, reason='has parts and parameters for which no bound is known')
    """
    if result.sees != "nothing":
        return Guarantee({}, "met losses that answered it, and bounds are for oblivious ones")
    if result.delay is not None:
        return Guarantee(
            {},
            f"was played with delayed feedback ({result.delay}), and bounds here are for feedback "
            "that arrives at once",
        )
    if result.identity is None:
        return Guarantee({}, "is from a file that does not say what was played; simulate it again")
    found = _recognize(result.identity)
    if found is None:
        return Guarantee({}, "has parts and parameters for which no bound is known")
    known, parameters = found
    if not _has_feedback(result.identity, known.feedback):
        return Guarantee({}, f"has a bound for {known.feedback} feedback, and was given another")
    if known.option is not None:
        lines, reason = _bounds_of_algorithm_1(known.option, parameters, result.norms)
    else:
        lines, reason = _bounds_of_textbook(known, parameters, result.norms)
    means = {f"{result.name}: {kind}": line.mean(axis=0) for kind, line in lines.items()}
    if not reason and not all(np.isfinite(line).all() for line in means.values()):
        reason = "has met losses that are not finite, for which nothing is proven"
    return Guarantee({k: x for k, x in means.items() if np.isfinite(x).any()}, reason)


def exploration_of(result: Result) -> bounds.Exploration | None:
    """Return the option of Algorithm 1 that was played, with the paper's alpha and beta.

    None if it was another strategy, if its feedback was delayed, or if a file does not say what it
    was.
    """
    if result.identity is None or result.delay is not None:
        return None
    found = _recognize(result.identity)
    if found is None or not _has_feedback(result.identity, "bandit"):
        return None
    known, parameters = found
    is_papers = parameters.get("alpha") in (None, result.norms.num_arms)
    return known.option if is_papers and parameters.get("beta", 1) == 1 else None


# Strategies that have a bound.


class _Known(NamedTuple):
    """A strategy that has a bound.

    Attributes:
      name: of the function that makes it.
      option: of Algorithm 1; None for other strategies.
      feedback: "bandit" or "full", for which the bound is proven.
      pattern: the identity of its parts with `_MARKS` as parameters.
    """

    name: str
    option: bounds.Exploration | None
    feedback: str
    pattern: dict[str, Any]


# Parameters to make strategies with, to learn where in their identities parameters stand. They are
# exact in float32, and no strategy has such numbers of its own.
_MARKS = {
    "scale": 1.0078125,
    "num_rounds": 4097.0625,
    "alpha": 1.01171875,
    "beta": 1.03515625,
    "decay": 0.8125,
    "power": 0.875,
    "switches": 6.03125,
    "sum_of_squares": 7.015625,
    "q": 8.0,  # the identity has the power 1 - 1/q
}
_NAMES = {mark: name for name, mark in _MARKS.items() if name != "q"}
# Parameters of strategies in `TEXTBOOK` for which alone their bounds are proven.
_PROVEN_AT = {"power": 0.5, "decay": 0.5}
# Those whose bounds are for losses in [-scale, scale].
_SIGNED = ("hybrid_barrier_horizon", "tsallis_spm")


@cache
def _all_known() -> tuple[_Known, ...]:
    known = []
    for name, option, bandit in _made_of_marks():
        pattern = identity_of(bandit)
        feedback = "full" if _has_feedback(pattern, "full") else "bandit"
        known.append(_Known(name, option, feedback, _parts_of(pattern)))
    return tuple(known)


def _made_of_marks() -> Iterator[tuple[str, bounds.Exploration | None, Bandit]]:
    """Yield name, option and strategy; some have other parts for some kinds of parameters."""
    for option in _OPTIONS:
        for beta in (_MARKS["beta"], jnp.float32(_MARKS["beta"])):
            yield "scale_free", option, strategies.scale_free(option, _MARKS["alpha"], beta)
    for name in TEXTBOOK:
        make = strategies.STRATEGIES[name]
        # With a learning rate of the user's a strategy has another schedule, and no bound.
        taken = inspect.signature(make).parameters.keys() - {"learning_rate"}
        marks = {key: _MARKS[key] for key in taken}
        yield name, None, make(**marks)
        for key, value in {"power": 0.5, "q": 2.0}.items():
            if key in marks:
                yield name, None, make(**marks | {key: value})


def _recognize(identity: Any) -> tuple[_Known, dict[str, Any]] | None:
    """Return the strategy that has an identity, and its parameters; None if it has no bound."""
    if not isinstance(identity, dict):
        return None
    parts = _parts_of(identity)
    for known in _all_known():
        parameters: dict[str, Any] = {}
        if _match(known.pattern, parts, parameters):
            return known, parameters
    return None


def _parts_of(identity: dict[str, Any]) -> dict[str, Any]:
    """Return the identity without that of the feedback."""
    return {key: part for key, part in identity.items() if key != "feedback"}


@cache
def _feedback_identity(kind: str) -> Any:
    given = strategies.hedge()._replace(feedback=feedback_of(kind))
    return identity_of(given)["feedback"]


def _has_feedback(identity: dict[str, Any], kind: str) -> bool:
    """Whether a strategy is shown what `feedback_of` says for the kind, "bandit" or "full"."""
    return identity.get("feedback") == _feedback_identity(kind)


def _match(pattern: Any, value: Any, parameters: dict[str, Any]) -> bool:
    """Whether a value is as the pattern says; write what stands at its marks to ``parameters``."""
    if isinstance(pattern, float) and pattern in _NAMES:
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        name = _NAMES[pattern]
        fits = is_number or (name == "alpha" and value is None)
        return fits and parameters.setdefault(name, value) == value
    if isinstance(pattern, dict):
        return (
            isinstance(value, dict)
            and pattern.keys() == value.keys()
            and all(_match(part, value[key], parameters) for key, part in pattern.items())
        )
    if isinstance(pattern, list):
        return (
            isinstance(value, list)
            and len(pattern) == len(value)
            and all(_match(*pair, parameters) for pair in zip(pattern, value, strict=True))
        )
    return pattern == value


# Their bounds at the checkpoints of K sequences, [K, C] by kind, and why some are missing.


def _bounds_of_algorithm_1(
    option: bounds.Exploration, parameters: dict[str, Any], norms: Norms
) -> tuple[dict[str, np.ndarray], str]:
    alpha, beta = parameters["alpha"], parameters["beta"]
    if alpha not in (None, norms.num_arms):
        return {}, f"has alpha = {alpha:g}, and Theorem 1 is for alpha = n, here {norms.num_arms}"
    if option == "adaptive" and beta != 1:
        return {}, f"has beta = {beta:g}, and Theorem 1 is for beta = 1 with adaptive exploration"
    if not beta > 0:
        return {}, f"has beta = {beta:g}, and Theorem 1 is for a positive beta"
    found = bounds.scale_free(_in_unit(norms, beta), option)
    return {"bound": beta * found.corrected, "tight bound": beta * found.tight}, ""


def _in_unit(norms: Norms, unit: float) -> Norms:
    """Return the norms of the same losses counted in another unit."""
    linear = ("l_1", "l_inf", "s_inf", "best", "mean", "smallest")
    changed = {name: getattr(norms, name) / unit for name in linear}
    return norms._replace(l_2=norms.l_2 / unit / unit, **changed)


def _bounds_of_textbook(
    known: _Known, parameters: dict[str, Any], norms: Norms
) -> tuple[dict[str, np.ndarray], str]:
    for key, value in _PROVEN_AT.items():
        if parameters.get(key, value) != value:
            return {}, f"has {key} {parameters[key]:.4g}, and its bound is for {key} {value:g}"
    scale = parameters.get("scale", _width(norms))
    rounds = parameters.get("num_rounds", norms.rounds)
    others = {key: parameters[key] for key in ("switches", "sum_of_squares") if key in parameters}
    line = TEXTBOOK[known.name](norms.num_arms, rounds, scale, **others)
    line = np.broadcast_to(line, norms.l_inf.shape)
    failures = list(_failures(known, parameters, norms))
    for fails, _ in failures:
        line = np.where(fails, np.nan, line)
    return {"bound": line}, failures[0][1] if failures else ""


def _width(norms: Norms) -> np.ndarray:
    """Return max |l| - min l [K, C]: the length of an interval that has all losses so far."""
    return norms.l_inf - norms.smallest


def _failures(
    known: _Known, parameters: dict[str, Any], norms: Norms
) -> Iterator[tuple[np.ndarray, str]]:
    """Yield each assumption that does not hold everywhere: where it fails [K, C], and a reason."""
    unknown = np.isnan(_width(norms)) & np.isfinite(norms.l_inf)
    if unknown.any():
        yield unknown, "is from a file that does not tell the smallest loss; simulate it again"
    scale, horizon = parameters.get("scale"), parameters.get("num_rounds")
    if scale is not None:
        wide = _width(norms) > scale * _ROUNDING
        if known.feedback == "full":
            fails, wanted = wide, f"of a range of {scale:g}"
        elif known.name in _SIGNED:
            fails, wanted = norms.l_inf > scale * _ROUNDING, f"in [{-scale:g}, {scale:g}]"
        else:
            fails = (norms.smallest < 0) | (norms.l_inf > scale * _ROUNDING)
            wanted = f"in [0, {scale:g}]"
        if fails.any():
            first = int(np.argmax(fails.any(axis=0)))
            low, size = norms.smallest[:, first].min(), norms.l_inf[:, first].max()
            is_large = low >= 0 or known.name in _SIGNED
            met = f"of size {size:.4g}" if is_large else f"down to {low:.4g}"
            yield (
                fails,
                f"has a bound for losses {wanted}, and met some {met} by round "
                f"{norms.rounds[first]}",
            )
    if "sum_of_squares" in parameters and scale is not None:
        most = parameters["sum_of_squares"] * scale**2
        many = norms.l_2 > most * _ROUNDING
        if many.any():
            first = int(np.argmax(many.any(axis=0)))
            yield (
                many,
                f"has a bound for losses whose squares sum to {most:.4g} at most, and met more by "
                f"round {norms.rounds[first]}",
            )
    if horizon is not None and norms.rounds[-1] > horizon:
        late = np.broadcast_to(norms.rounds > horizon, norms.l_inf.shape)
        yield late, f"is tuned for {horizon:g} rounds, and {norms.rounds[-1]} were played"


register_bounds(guarantee)
