"""Every claim of the paper tried on numbers, and its slips beside their corrections.

It doubles as the self-test of an installation: a backend that miscompiles shows up here.

    report         `verify` and its tables
    claim          what a claim and a slip are, and how they are judged
    claims_*       the claims, by the part of the paper
    slips          the slips, each with a counter-example
    sample_games   games on which claims are tried
"""

from sfmab_jax.theory.verify.claim import Claim, Setting, Slip, Verdict, judge, judge_slip
from sfmab_jax.theory.verify.report import CLAIMS, QUICK, Report, claims_table, slips_table, verify
from sfmab_jax.theory.verify.slips import SLIPS

__all__ = [
    "CLAIMS",
    "QUICK",
    "SLIPS",
    "Claim",
    "Report",
    "Setting",
    "Slip",
    "Verdict",
    "claims_table",
    "judge",
    "judge_slip",
    "slips_table",
    "verify",
]
