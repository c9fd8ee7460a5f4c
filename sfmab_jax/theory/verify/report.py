"""The report: every claim tried on numbers, every slip beside its correction."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import jax
import numpy as np
from rich import box
from rich.table import Table

from sfmab_jax.checks import check_integer
from sfmab_jax.theory.verify import (
    claims_algorithm,
    claims_certificates,
    claims_ftrl,
    claims_potentials,
    claims_theorem,
)
from sfmab_jax.theory.verify.claim import Claim, Setting, Slip, Verdict, judge, judge_slip
from sfmab_jax.theory.verify.slips import SLIPS

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
    """Verdicts on the claims and slips."""

    verdicts: list[Verdict]
    slips: list[tuple[Slip, float, float, bool]]  # printed and corrected slack, as expected

    @property
    def green(self) -> bool:
        """Whether every claim holds and every slip is as described."""
        return all(v.holds for v in self.verdicts) and all(shown for *_, shown in self.slips)


def verify(
    dtypes: Sequence[str] = ("float32", "float64"),
    effort: int = 4,
    seed: int = 0,
    claims: Iterable[Claim] | None = None,
    slips: Iterable[Slip] = SLIPS,
) -> Report:
    """Try the claims in each precision, and the slips.

    Args:
      dtypes: in which the package computes. Both sides of a claim are compared in float64, so JAX
        must have it enabled.
      effort: multiplies the number of inputs; at 1 the costlier games are left out, too.
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
    tried = tuple((QUICK if effort == 1 else CLAIMS) if claims is None else claims)
    verdicts = [
        judge(claim, Setting(np.dtype(dtype), effort, seed)) for dtype in dtypes for claim in tried
    ]
    return Report(verdicts, [(slip, *judge_slip(slip)) for slip in slips])


def claims_table(report: Report) -> Table:
    """Table of the claims, with the worst slack in each precision, in roundings."""
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
    for claim in dict.fromkeys(verdict.claim for verdict in report.verdicts):
        verdicts = [verdict for verdict in report.verdicts if verdict.claim == claim]
        table.add_row(
            str(claim.number),
            claim.statement.replace("[", "\\["),
            claim.reference,
            f"{sum(v.tried for v in verdicts):,}",
            *(f"{v.worst / np.finfo(v.dtype).eps:.2g}" for v in verdicts),
            "holds" if all(v.holds for v in verdicts) else "FAILS",
        )
    return table


def slips_table(report: Report) -> Table:
    """Table of the slips: the counter-example and the form that holds."""
    table = Table(
        title="Where the paper slips",
        caption="slack of the printed form on a counter-example, and of the corrected form",
        box=box.SIMPLE_HEAD,
        pad_edge=False,
        padding=(0, 1, 0, 0),
    )
    for heading in ("", "printed", "slack", "corrected", "slack", "paper", "verdict"):
        table.add_column(heading, justify="right" if heading == "slack" else "left")
    for slip, printed, corrected, shown in report.slips:
        table.add_row(
            slip.letter,
            slip.printed_statement,
            f"{printed:.3g}",
            slip.corrected_statement,
            f"{corrected:.3g}",
            slip.reference,
            "shown" if shown else "FAILS",
        )
    return table
