"""`sfmab verify`: green as it is, and not when a claim is broken."""

import numpy as np
import pytest
from typer.testing import CliRunner
from wrong_commands import run_command

from sfmab_jax import cli
from sfmab_jax.theory.verify import report as verification
from sfmab_jax.theory.verify.claim import Setting, Slip, judge, judge_slip
from sfmab_jax.theory.verify.sample_games import uneven_games
from sfmab_jax.theory.verify.slips import SLIPS

# Every number of the audit's list; 16 was never given.
NUMBERS = set(range(1, 49)) - {16}


def test_every_claim_of_the_list_is_tried():
    assert {claim.number for claim in verification.QUICK} == NUMBERS
    assert set(verification.QUICK) < set(verification.CLAIMS)


def test_every_slip_of_the_list_is_shown():
    assert "".join(slip.letter for slip in SLIPS) == "abcdhjkmnos"
    for slip in SLIPS:
        printed, corrected, right = judge_slip(slip)
        assert right, (slip.letter, printed, corrected)


def test_slips_have_the_numbers_found_by_hand():
    """Found with 40 digits before any code of this project existed."""
    slack = {slip.letter: slip.printed() for slip in SLIPS}
    np.testing.assert_allclose(slack["b"], -0.172, atol=5e-4)
    np.testing.assert_allclose(slack["c"], -abs(-0.4556 + 0.300), atol=5e-5)
    np.testing.assert_allclose(slack["m"], -1.618, atol=1e-3)


def run(*arguments, monkeypatch, claims=None):
    """The command in this process, with a few claims so that it is quick."""
    quick = [c for c in verification.QUICK if c.number in (2, 14, 32, 34)]
    monkeypatch.setattr(verification, "QUICK", tuple(quick if claims is None else claims))
    return CliRunner().invoke(cli.app, ["verify", *arguments])


def test_quick_prints_both_tables_and_exits_with_0(monkeypatch):
    finished = run("--quick", monkeypatch=monkeypatch)
    assert finished.exit_code == 0, finished.output
    for word in ("claim", "paper", "tried", "float32", "holds", "shown"):
        assert word in finished.output
    assert "FAILS" not in finished.output
    assert "float64" not in finished.output


@pytest.mark.parametrize("number", [13, 14, 32, 34, 35, 37])
def test_a_flipped_sign_makes_it_fail(number, monkeypatch):
    claim = next(c for c in verification.QUICK if c.number == number)
    if number in (14, 32):  # equations: a wrong side instead of a flipped inequality
        broken = claim._replace(slack=lambda *given: claim.slack(*given) - 1e-3)
    else:
        broken = claim._replace(slack=lambda *given: -claim.slack(*given))
    finished = run("--quick", "--dtype", "float64", monkeypatch=monkeypatch, claims=[broken])
    assert finished.exit_code == 1
    assert "FAILS" in finished.output


@pytest.mark.parametrize("number", [25, 29])
def test_a_flipped_sign_in_the_package_makes_it_fail(number):
    """Not the claim but the thing claimed about: mixability gaps with the wrong sign."""
    claim = next(c for c in verification.QUICK if c.number == number)

    def games(setting, sign):
        for potential, game in uneven_games(setting):
            yield potential, game._replace(gaps=sign * game.gaps)

    setting = Setting(np.dtype("float64"), 1, seed=1)
    for sign in (1, -1):
        tried = claim._replace(inputs=lambda setting, sign=sign: games(setting, sign))
        assert judge(tried, setting).holds == (sign == 1)


def test_a_slip_that_is_none_makes_it_fail(monkeypatch):
    """If the printed form held, or the corrected one did not, the report would not be green."""
    for printed, corrected in ((0.0, 0.0), (-1.0, -1.0)):
        slip = Slip("z", "", "", "", lambda p=printed: p, lambda c=corrected: c)
        assert not verification.verify(("float64",), 1, claims=(), slips=(slip,)).green


def test_numbers_that_are_not_finite_make_a_claim_fail():
    claim = verification.QUICK[0]._replace(
        inputs=lambda setting: [(1.0,)], slack=lambda x: np.array([np.nan, 1.0])
    )
    assert not judge(claim, Setting(np.dtype("float32"), 1, 0)).holds
    nothing = claim._replace(inputs=lambda setting: [])
    assert not judge(nothing, Setting(np.dtype("float32"), 1, 0)).holds


@pytest.mark.parametrize(
    ("arguments", "named"),
    [("--dtype float16", "float16"), ("--effort 0", "effort is 0"), ("--effort x", "x")],
)
def test_bad_usage(arguments, named, tmp_path):
    code, _, said = run_command(["verify", *arguments.split()], tmp_path)
    assert code == 2
    assert said.count("\n") == 1
    assert named in said
