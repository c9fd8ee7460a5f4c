"""Summaries of certificates: means with little noise, the three terms of the regret, one table.

A certificate bounds the estimated regret on every path, and the true regret in expectation.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from sfmab_jax import strategies
from sfmab_jax.checks import horizon_argument
from sfmab_jax.losses import LOSSES
from sfmab_jax.results.certificate import CERTIFICATES, Certificate
from sfmab_jax.results.result import Result
from sfmab_jax.simulate import simulate
from sfmab_jax.theory import bounds

__all__ = ["ORDER", "Row", "Terms", "certified_families", "decomposition", "ladder"]

# From the regret itself to the loosest bound that theory puts above it.
ORDER = ("regret", *CERTIFICATES, "tight", "corrected")
_OPTIONS: tuple[bounds.Exploration, ...] = ("decaying", "adaptive")


class Terms(NamedTuple):
    """Decomposition of the conditional regret, section 2 of the paper; [K, S, C] each."""

    sampling: np.ndarray  # (1) sum l_t.(p'_t - p_t), the price of exploring
    estimation: np.ndarray  # (2) sum (l_t - l~_t).(p_t - 1^i), of mean zero
    full_information: np.ndarray  # (3) sum l~_t.(p_t - 1^i), the regret on the estimates


def decomposition(result: Result) -> Terms:
    """Split the conditional regret into terms (1), (2) and (3), which add up to it.

    Section 6 of the paper numbers otherwise: with D = mean_i S_i - min_i S_i from the norms, its
    terms are epsilon D, the rest, and (1).
    """
    certificate = _certificate(result)
    rest = result.expected_regret - certificate.sampling - certificate.estimated
    return Terms(certificate.sampling, rest, certificate.estimated)


def ladder(result: Result, exploration: bounds.Exploration) -> dict[str, np.ndarray]:
    """Return the mean regret, the mean certificates and the bounds, in `ORDER`, each [K, C].

    The mean of a certificate is taken as the mean of the conditional regret plus what the
    certificate has to spare: the same mean as the certificate's own, without the noise of the
    estimated regret.
    """
    certificate = _certificate(result)
    bound = bounds.scale_free(result.norms, exploration)
    rungs = {"regret": result.mean(over="sequence")}
    for name in CERTIFICATES:
        rungs[name] = (result.expected_regret + getattr(certificate, name)).mean(axis=1)
    return rungs | {"tight": bound.tight, "corrected": bound.corrected}


class Row(NamedTuple):
    """Certificates of one loss family and option: violations, and the means at the end."""

    losses: str
    exploration: str
    checks: int  # rounds times games, each with all certificates
    violations: int
    worst: float  # the least (what is to spare) / (size) on any path
    rungs: tuple[float, ...]  # in `ORDER`

    @property
    def rises(self) -> np.ndarray:
        """Rise of each rung above the one before, relative to the largest of them.

        (*) and the tight bound both lie above the best epsilon and below the corrected bound.
        Theory does not order these two: the tight bound solves for the sum of gaps, which (*)
        bounds by two terms, and on slowly drifting losses it is the smaller.
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
    """Play both options with certificates on every family; a row for each pair."""
    rows = []
    for name, family in families.items():
        results: Any = simulate(
            {option: strategies.scale_free(option) for option in _OPTIONS},
            family(num_arms=num_arms, **horizon_argument(family, num_rounds)),
            num_rounds=num_rounds,
            num_seeds=num_seeds,
            num_sequences=1,
            seed=seed,
            dtype=dtype,
            certificate=True,
            progress=False,
        )
        for option in _OPTIONS:
            certificate = _certificate(results[option])
            rungs = ladder(results[option], option)
            rows.append(
                Row(
                    losses=name,
                    exploration=option,
                    checks=num_rounds * certificate.refined[..., 0].size,
                    violations=int(certificate.violations[..., -1].sum()),
                    worst=float(certificate.worst.min()),
                    rungs=tuple(float(rungs[name][0, -1]) for name in ORDER),
                )
            )
    return rows


def _certificate(result: Result) -> Certificate:
    if result.certificate is None:
        raise ValueError("the result has no certificate; simulate with certificate=True")
    return result.certificate
