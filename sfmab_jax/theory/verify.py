"""Tries every claim of the paper on numbers, and shows its slips beside what is right.

It doubles as the self-test of an installation: a backend that miscompiles shows up here.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import jax
import numpy as np
from rich import box
from rich.table import Table

from sfmab_jax.checks import check_integer
from sfmab_jax.theory import (
    claims_algorithm,
    claims_certificates,
    claims_ftrl,
    claims_potentials,
    claims_theorem,
)
from sfmab_jax.theory.claim import Claim, Setting, Slip, Verdict, judge, judge_slip
from sfmab_jax.theory.slips import SLIPS

__all__ = ["CLAIMS", "QUICK", "Report", "claims_table", "slips_table", "verify"]

QUICK = tuple(
    sorted(
        claims_potentials.CLAIMS
        + claims_algorithm.CLAIMS
        + claims_ftrl.CLAIMS
        + claims_theorem.CLAIMS,
        key=lambda claim: claim.number,
    )
)
CLAIMS = QUICK + claims_certificates.CLAIMS


class Report(NamedTuple):
    """What came out."""

    verdicts: list[Verdict]
    slips: list[tuple[Slip, float, float, bool]]  # printed slack, corrected slack, as it should

    @property
    def green(self) -> bool:
        """Whether every claim holds and every slip is as described."""
        return all(v.holds for v in self.verdicts) and all(right for *_, right in self.slips)


def verify(
    dtypes: Sequence[str] = ("float32", "float64"),
    effort: int = 4,
    seed: int = 0,
    claims: Iterable[Claim] | None = None,
    slips: Iterable[Slip] = SLIPS,
) -> Report:
    """Tries the claims in each precision, and the slips.

    Args:
      dtypes: in which the package computes. Both sides of a claim are compared in float64, so JAX
        must have it enabled.
      effort: multiplies the number of inputs; at 1 the dearer games are left out, too.
      seed: of the random inputs.
      claims: by default all of them, and at effort 1 those that need no simulation.
      slips: by default all.
    """
    check_integer("effort", effort, 1, 10_000)
    check_integer("seed", seed, 0, 2**32 - 1)
    if not jax.config.read("jax_enable_x64"):
        raise ValueError(
            "the claims are compared in float64, which JAX has turned off; call "
            "jax.config.update('jax_enable_x64', True) first, or set JAX_ENABLE_X64=1"
        )
    chosen = tuple((QUICK if effort == 1 else CLAIMS) if claims is None else claims)
    verdicts = [
        judge(claim, Setting(np.dtype(dtype), effort, seed)) for dtype in dtypes for claim in chosen
    ]
    return Report(verdicts, [(slip, *judge_slip(slip)) for slip in slips])


def claims_table(report: Report) -> Table:
    """A row for each claim, with both precisions' worst slack in roundings."""
    dtypes = list(dict.fromkeys(verdict.dtype for verdict in report.verdicts))
    table = Table(
        title="Claims of the paper",
        caption="worst slack in units of the precision's epsilon, relative to the numbers "
        "compared; below zero only by rounding",
        box=box.SIMPLE_HEAD,
        pad_edge=False,
        padding=(0, 1, 0, 0),
    )
    for heading in ("no.", "claim", "paper", "tried"):
        table.add_column(heading, justify="right" if heading in ("no.", "tried") else "left")
    for dtype in dtypes:
        table.add_column(dtype, justify="right", no_wrap=True)
    table.add_column("verdict", no_wrap=True)
    for claim in dict.fromkeys(id(v.claim) for v in report.verdicts):
        mine = [v for v in report.verdicts if id(v.claim) == claim]
        first = mine[0].claim
        table.add_row(
            str(first.number),
            first.statement.replace("[", "\\["),
            first.reference,
            f"{sum(v.tried for v in mine):,}",
            *(f"{v.worst / np.finfo(v.dtype).eps:.2g}" for v in mine),
            "holds" if all(v.holds for v in mine) else "FAILS",
        )
    return table


def slips_table(report: Report) -> Table:
    """A row for each slip: its counter-example and the form that holds."""
    table = Table(
        title="Where the paper slips",
        caption="slack of the printed form on a counter-example, and of the corrected form",
        box=box.SIMPLE_HEAD,
        pad_edge=False,
        padding=(0, 1, 0, 0),
    )
    for heading in ("", "printed", "slack", "corrected", "slack", "paper", "verdict"):
        table.add_column(heading, justify="right" if heading == "slack" else "left")
    for slip, printed, corrected, right in report.slips:
        table.add_row(
            slip.letter,
            slip.printed_statement,
            f"{printed:.3g}",
            slip.corrected_statement,
            f"{corrected:.3g}",
            slip.reference,
            "shown" if right else "FAILS",
        )
    return table
