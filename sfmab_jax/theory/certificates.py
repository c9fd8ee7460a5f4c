"""Certificates summed up: means with little noise, the three terms of the regret, and one table.

A certificate bounds the estimated regret on every path, and the true regret in expectation.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from sfmab_jax.base import told_rounds
from sfmab_jax.certificate import CERTIFICATES
from sfmab_jax.losses import LOSSES
from sfmab_jax.results import Result
from sfmab_jax.simulate import simulate
from sfmab_jax.strategies import scale_free
from sfmab_jax.theory import bounds

__all__ = ["ORDER", "Row", "Terms", "certified_families", "decomposition", "ladder"]

# From the regret itself to the loosest bound that theory puts above it.
ORDER = ("regret", *CERTIFICATES, "tight", "corrected")
_OPTIONS: tuple[bounds.Exploration, ...] = ("decaying", "adaptive")


class Terms(NamedTuple):
    """The decomposition of the conditional regret, section 2 of the paper; [K, S, C] each."""

    sampling: np.ndarray  # (1) sum l_t.(p'_t - p_t), the price of exploring
    estimation: np.ndarray  # (2) sum (l_t - l~_t).(p_t - 1^i), of mean zero
    full_information: np.ndarray  # (3) sum l~_t.(p_t - 1^i), the regret on the estimates


def decomposition(result: Result) -> Terms:
    """Terms (1), (2) and (3), which add up to ``result.expected_regret``.

    Section 6 of the paper numbers otherwise: with D = mean_i S_i - min_i S_i from the norms, its
    terms are epsilon D, the rest, and (1).
    """
    known = _certificate(result)
    rest = result.expected_regret - known.sampling - known.estimated
    return Terms(known.sampling, rest, known.estimated)


def ladder(result: Result, exploration: bounds.Exploration) -> dict[str, np.ndarray]:
    """The mean regret, the mean certificates and the bounds, in `ORDER`, each [K, C].

    The mean of a certificate is taken as the mean of the conditional regret plus what the
    certificate has to spare: the same mean as the certificate's own, without the noise of the
    estimated regret.
    """
    known = _certificate(result)
    bound = bounds.scale_free(result.norms, exploration)
    rungs = {"regret": result.mean()}
    for name in CERTIFICATES:
        rungs[name] = (result.expected_regret + getattr(known, name)).mean(axis=1)
    return rungs | {"tight": bound.tight, "corrected": bound.corrected}


class Row(NamedTuple):
    """One loss family and option: what was checked, and how the means are ordered at the end."""

    losses: str
    exploration: str
    checks: int  # rounds times games, each with all certificates
    violations: int
    worst: float  # the least (what is to spare) / (size) on any path
    rungs: tuple[float, ...]  # in `ORDER`

    @property
    def rises(self) -> np.ndarray:
        """By how much each rung is above the one before, relative to the largest of them.

        (*) and the tight bound both lie above the best epsilon and below the corrected bound.
        Between the two theory has no order: the tight bound solves for the sum of gaps where (*)
        bounds it by two terms, and on slowly drifting losses it is the smaller.
        """
        *certified, star, tight, corrected = self.rungs
        chains = ((*certified, star, corrected), (*certified, tight, corrected))
        largest = max(abs(rung) for rung in self.rungs) or 1.0  # all are 0 on all-zero losses
        return np.diff(chains).ravel() / largest

    @property
    def ordered(self) -> bool:
        """Whether the means rise as theory says, up to a rounding of the largest of them."""
        return bool(np.all(self.rises >= -1e-6))


def certified_families(
    families: Mapping[str, Any] = LOSSES,
    *,
    num_arms: int = 5,
    num_rounds: int = 1000,
    num_seeds: int = 512,
    seed: int = 0,
    dtype: Any = np.float32,
) -> list[Row]:
    """Plays both options with certificates on every family; a row for each pair."""
    rows = []
    for name, family in families.items():
        results: Any = simulate(
            {option: scale_free(option) for option in _OPTIONS},
            family(num_arms=num_arms, **told_rounds(family, num_rounds)),
            num_rounds=num_rounds,
            num_seeds=num_seeds,
            seed=seed,
            dtype=dtype,
            certificate=True,
            progress=False,
        )
        for option in _OPTIONS:
            known = _certificate(results[option])
            rungs = ladder(results[option], option)
            rows.append(
                Row(
                    losses=name,
                    exploration=option,
                    checks=num_rounds * known.refined.shape[0] * known.refined.shape[1],
                    violations=int(known.violations[..., -1].sum()),
                    worst=float(known.worst.min()),
                    rungs=tuple(float(rungs[name][0, -1]) for name in ORDER),
                )
            )
    return rows


def _certificate(result: Result):
    if result.certificate is None:
        raise ValueError("the result has no certificate; simulate with certificate=True")
    return result.certificate
