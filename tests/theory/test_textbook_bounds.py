"""Textbook bounds of other strategies, and the guarantees that results know of themselves."""

import math

import mpmath as mp
import numpy as np
import pytest

import sfmab_jax as sf
from sfmab_jax.theory import textbook

# Bounds of other strategies.


def test_textbook_bounds_by_hand():
    """At n = 4, T = 900 and scale 2, from numbers worked out to 25 digits."""
    with mp.workdps(25):
        log = 2 * mp.log(2)
        mean_of_log = 1 + mp.log(2)
        wanted = {
            "hedge_horizon": 2 * mp.sqrt(450 * log),
            "hedge": 2 * (2 * mp.sqrt(450 * log) + mp.sqrt(log / 8)),
            "ada_hedge": 2 * (30 * mp.sqrt(log) + 4 * log / 3 + 2),
            "exp3_gamma_horizon": 4 * mp.sqrt((mp.e - 1) * 3600 * log),
            "exp3_horizon": 120 * mp.sqrt(2 * log),
            "exp3": 240 * mp.sqrt(log),
            "exp3_ix_horizon": 240 * mp.sqrt(2 * log)
            + 2 * mean_of_log * (60 * mp.sqrt(2 / log) + 1),
            "exp3_ix": 480 * mp.sqrt(log) + 2 * mean_of_log * (120 / mp.sqrt(log) + 1),
            "exp3_plus_plus": 480 * mp.sqrt(log),
            "exp3_s_horizon": 240 * mp.sqrt((mp.e - 1) * (6 * mp.log(3600) + mp.e)),
            "hybrid_barrier_horizon": 2 * (100 * mp.sqrt(3 * log) + 16 * mp.log(900) + 2),
            "poly_inf_horizon": 240 * mp.sqrt(2),
            "tsallis_inf": mp.mpf(482),
            "tsallis_spm": 512 * log * (1 + log) + 23_040 * mp.sqrt(log) + 12,
            "ahb": 8
            + 240 * mp.sqrt(2 * log)
            + 8 * (4 * log / 3 + 2) * mp.sqrt(90 / log)
            + 240 * mp.sqrt(mp.mpf(5) / 2 * log),
        }
    assert wanted.keys() == sf.theory.textbook.TEXTBOOK.keys()
    for name, value in wanted.items():
        np.testing.assert_allclose(
            sf.theory.textbook.TEXTBOOK[name](4, 900, 2.0), float(value), rtol=1e-13, err_msg=name
        )


@pytest.mark.parametrize("name", list(sf.theory.textbook.TEXTBOOK))
def test_textbook_bounds_grow_with_the_rounds_and_are_linear_in_the_scale(name):
    bound = sf.theory.textbook.TEXTBOOK[name]
    rounds = np.array([1, 10, 1000, 10**6])
    assert (np.diff(bound(5, rounds, 1.0)) > 0).all()
    np.testing.assert_allclose(bound(5, rounds, 8.0), 8 * bound(5, rounds, 1.0), rtol=1e-13)
    np.testing.assert_array_equal(bound(1, rounds, 1.0), 0)


def test_ada_hedge_bound_holds():
    """AdaHedge in full information, as a plain loop, on losses of a range it is not told."""
    generator = np.random.default_rng(7)
    n, num_rounds, scale = 5, 2000, 30.0
    losses = scale * generator.uniform(size=(num_rounds, n)) * [1, 1, 0.9, 1, 1]
    totals, gap_sum, regret = np.zeros(n), 0.0, []
    for loss in losses:
        lead = totals - totals.min()
        if gap_sum == 0:
            w = (lead == 0) / (lead == 0).sum()
            mix = (totals + loss).min() - totals.min()
        else:
            eta = math.log(n) / gap_sum
            w = np.exp(-eta * lead) / np.exp(-eta * lead).sum()
            mix = -math.log(w @ np.exp(-eta * loss)) / eta
        gap_sum += max(0.0, w @ loss - mix)
        regret.append(w @ loss)
        totals += loss
    bound = sf.theory.textbook.ada_hedge(n, np.arange(1, num_rounds + 1), scale)
    assert (np.cumsum(regret) - np.cumsum(losses, axis=0).min(axis=1) <= bound).all()


# Results and their own guarantees.


LOSSES = np.random.default_rng(0).normal(size=(2, 50, 3))
HOW = {"num_seeds": 4, "checkpoints": 5}


def test_guarantee_is_known_by_the_strategy_not_its_name(tmp_path):
    result = sf.simulate(sf.strategies.scale_free("decaying"), LOSSES, **HOW)
    lines, reason = sf.theory.guarantees.guarantee(result)
    assert not reason
    bound = sf.bounds.scale_free(result.norms, "decaying")
    np.testing.assert_array_equal(lines["strategy: bound"], bound.corrected.mean(axis=0))
    np.testing.assert_array_equal(lines["strategy: tight bound"], bound.tight.mean(axis=0))
    (read,) = sf.load(result.save(tmp_path / "x.npz")).values()
    assert read.bandit is None
    assert sf.theory.guarantees.exploration_of(read) == "decaying"


def test_plot_with_bounds_draws_the_guarantee():
    import matplotlib.pyplot as plt

    both = {o: sf.strategies.scale_free(o) for o in ("adaptive", "decaying")}
    axes = sf.simulate(both, LOSSES, **HOW).plot(bounds=True)
    labels = [text.get_text() for text in axes.get_legend().get_texts()]
    assert {"adaptive: bound", "decaying: tight bound"} <= set(labels)
    assert axes.get_yscale() == "log"
    plt.close(axes.figure)
    unknown = sf.simulate(sf.strategies.scale_free(beta=3.0), LOSSES, **HOW)
    with pytest.raises(ValueError, match="no bound holds: strategy has beta = 3, and Theorem 1 is"):
        unknown.plot(bounds=True)
    plt.close("all")


def test_textbook_bounds_belong_to_strategies():
    assert set(textbook.TEXTBOOK) <= set(sf.strategies.STRATEGIES)
