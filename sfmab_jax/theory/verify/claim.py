"""Claims and slips of the paper, and how they are judged."""

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np

__all__ = ["Claim", "Setting", "Slip", "Verdict", "equal", "judge", "judge_slip"]


class Setting(NamedTuple):
    """Precision, number and seed of the inputs on which a claim is tried."""

    dtype: np.dtype  # in which the package computes
    effort: int  # multiplies the number of inputs
    seed: int

    def generator(self, number: int) -> np.random.Generator:
        """Return the random generator of one claim."""
        return np.random.default_rng([self.seed, number])


class Claim(NamedTuple):
    """A statement of the paper, or a sharpening of one, that can be tried on numbers.

    ``inputs(setting)`` yields tuples; ``slack(*input)`` gives an array of numbers that are not
    negative when the claim holds, each relative to the size of what it is computed from. An
    equation has the slack -|left - right|.
    """

    number: int  # in the list of claims
    statement: str
    reference: str  # where in the paper; "new" if it is not there
    inputs: Callable[[Setting], Iterable[tuple]]
    slack: Callable[..., Any]
    roundings: float = 64  # how many epsilons of slack rounding may cost


class Slip(NamedTuple):
    """A place where the paper slips: its form fails on an example, the corrected one holds."""

    letter: str
    printed_statement: str
    corrected_statement: str
    reference: str
    printed: Callable[[], float]  # a slack below zero
    corrected: Callable[[], float]  # a slack of zero or more


class Verdict(NamedTuple):
    """The outcome of trying one claim."""

    claim: Claim
    dtype: str
    tried: int
    worst: float
    allowed: float
    holds: bool


def judge(claim: Claim, setting: Setting) -> Verdict:
    """Try a claim; it holds if no slack is below what rounding explains."""
    parts = [np.ravel(claim.slack(*inputs)) for inputs in claim.inputs(setting)]
    slacks = np.concatenate(parts) if parts else np.array([np.nan])
    worst = float(np.min(slacks)) if np.isfinite(slacks).all() else float("nan")
    allowed = -claim.roundings * float(np.finfo(setting.dtype).eps)
    return Verdict(claim, setting.dtype.name, slacks.size, worst, allowed, worst >= allowed)


def judge_slip(slip: Slip) -> tuple[float, float, bool]:
    """Return the slacks of the printed and the corrected form, and whether only the first fails."""
    printed, corrected = slip.printed(), slip.corrected()
    return printed, corrected, bool(printed < -1e-8 and corrected >= -1e-10)


def equal(left: Any, right: Any, size: Any) -> np.ndarray:
    """Slack of an equation: -|left - right| / size."""
    return -np.abs(np.asarray(left) - np.asarray(right)) / size
