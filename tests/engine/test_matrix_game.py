"""Two strategies in a matrix game: against a loop that replays both, and in known games."""

import numpy as np
import pytest
from known_range_loops import exp3

import sfmab_jax as sf

EXP3 = sf.strategies.exp3()
PENNIES = [[1.0, 0.0], [0.0, 1.0]]


def test_a_game_is_that_of_a_loop():
    """The arms of both players, from what the row player paid and met; their laws by NumPy.

    Entries are distinct, so that they tell the column; the column player's laws must make its arms
    as likely as they were: sum of (j_t - E j_t) within 4 standard deviations.
    """
    matrix = np.array([[0.0, 0.5], [0.75, 0.25]])
    rounds, games = 60, 200
    game = sf.play_matrix_game(
        matrix, EXP3, EXP3, num_rounds=rounds, num_seeds=games, checkpoints=rounds
    )
    rows = np.diff(game.row.arm_counts[:, 0], axis=1, prepend=0).argmax(axis=-1)
    paid = np.diff(game.row.regret[:, 0] + game.row.norms.best, axis=1, prepend=0)
    columns = np.abs(matrix[rows] - paid[..., None]).argmin(axis=-1)
    np.testing.assert_allclose(matrix[rows, columns], paid, atol=1e-6)
    # Both losses have one range: the column player's are max A + min A - A.
    excess, variance = 0.0, 0.0
    for i, j, exploitability, regret in zip(rows, columns, game.exploitability, game.column_regret):
        laws = exp3(j, 0.75 - matrix[i])
        excess += np.sum(j - laws[:-1, 1])
        variance += np.sum(laws[:-1, 0] * laws[:-1, 1])
        of_columns, of_rows = matrix[i].cumsum(axis=0), matrix[:, j].T.cumsum(axis=0)
        t = np.arange(1, rounds + 1)
        wanted = (of_columns.max(axis=1) - of_rows.min(axis=1)) / t
        np.testing.assert_allclose(exploitability, wanted, atol=1e-6)
        np.testing.assert_allclose(
            regret, of_columns.max(axis=1) - matrix[i, j].cumsum(), atol=2e-5
        )
    assert abs(excess) < 4 * np.sqrt(variance)


def test_the_average_play_goes_to_the_equilibrium():
    """Exploitability falls with the regrets: to less than half of it in ten times the rounds."""
    players = sf.strategies.scale_free(), sf.strategies.scale_free()
    game = sf.play_matrix_game(
        PENNIES, *players, num_rounds=4000, num_seeds=200, checkpoints=[400, 4000]
    )
    early, last = game.mean()
    assert early > 2 * last
    assert last < 0.05
    assert (game.exploitability >= -1e-9).all()
    sums = game.row.regret[:, 0] + game.column_regret
    np.testing.assert_allclose(game.exploitability, sums / game.rounds, atol=1e-12)
    np.testing.assert_allclose(game.row_play[:, -1].mean(axis=0), [0.5, 0.5], atol=0.02)
    low, high = game.interval()
    assert (low <= game.mean()).all()
    assert (game.mean() <= high).all()
    assert "mean exploitability" in repr(game)
    axes = game.plot()
    assert (
        axes.get_ylabel() == "mean exploitability of the average play\n95% interval over 200 games"
    )


def test_full_feedback_and_any_unit():
    """A column player that sees all its losses, and a matrix of very large numbers."""
    matrix = 2.0**100 * np.array([[0.0, 2.0, 1.0], [1.0, 0.0, 2.0]])
    players = sf.strategies.ada_hedge(), sf.strategies.ada_hedge()
    large = sf.play_matrix_game(matrix, *players, num_rounds=500, num_seeds=20)
    small = sf.play_matrix_game(matrix / 2.0**100, *players, num_rounds=500, num_seeds=20)
    np.testing.assert_allclose(large.exploitability, 2.0**100 * small.exploitability, rtol=1e-5)
    assert small.mean()[-1] < 0.15


def test_a_single_game_has_no_interval():
    game = sf.play_matrix_game(PENNIES, EXP3, EXP3, num_rounds=10, num_seeds=1)
    with pytest.warns(RuntimeWarning, match="interval"):
        assert np.isnan(game.interval()).all()
    assert "games, mean" in repr(game)


@pytest.mark.quick
@pytest.mark.parametrize(
    ("arguments", "options", "sentence"),
    [
        (([1.0, 2.0], EXP3, EXP3), {}, r"matrix has shape \[2\]; give \[n, m\]"),
        (("pennies", EXP3, EXP3), {}, "matrix is 'pennies'; give a table of numbers"),
        (([[np.inf]], EXP3, EXP3), {}, "not finite in float32"),
        ((PENNIES, "exp3", EXP3), {}, "row is 'exp3'; give a Bandit"),
        ((PENNIES, EXP3, None), {}, "column is None; give a Bandit"),
        ((PENNIES, EXP3, sf.strategies.fixed_arm(3)), {}, "arm is 3; there are 2 arms"),
        ((PENNIES, EXP3, EXP3), {"keep": "moments"}, "keep"),
    ],
)
def test_refused(arguments, options, sentence):
    with pytest.raises(ValueError, match=sentence):
        sf.play_matrix_game(*arguments, num_rounds=5, num_seeds=2, **options)
