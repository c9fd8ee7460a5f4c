"""A slice of the fuzz: many values on few programs. See fuzzing.py for the long run."""

import numpy as np
import pytest
from fuzzing import check_right, check_wrong
from tiers import some_in_default
from wrong_commands import check_command


@pytest.mark.parametrize("part", some_in_default(range(4), [0]))
def test_right_configurations_play_finite_games_on_the_simplex(part):
    """Two strategies, tables of all kinds; certificates hold where asked for."""
    rng = np.random.default_rng(part)
    for _ in range(25 if part else 5):
        check_right(rng, ("scale_free", "tsallis_inf"), ())


@pytest.mark.parametrize("part", range(4))
def test_wrong_arguments_are_refused_with_a_message(part):
    rng = np.random.default_rng(10 + part)
    for _ in range(60):
        check_wrong(rng)


def test_wrong_command_lines_are_one_line_and_exit_code_2(tmp_path):
    rng = np.random.default_rng(20)
    for _ in range(120):
        check_command(rng, tmp_path)
