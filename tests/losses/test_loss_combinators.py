"""Loss sequences made from others, against the same operation on their rows."""

import jax.numpy as jnp
import numpy as np
import pytest
from loss_samples import assert_mean, means, rows
from simulated import UNIFORM

import sfmab_jax as sf

L = sf.losses
BASE = L.gaussian(num_arms=3)


def test_scaled():
    made = L.scaled(BASE, 4.0)
    np.testing.assert_array_equal(rows(made, 50), 4 * rows(BASE, 50))
    np.testing.assert_array_equal(means(made, 5), 4 * means(BASE, 5))
    assert made.magnitude == 4 * BASE.magnitude
    assert made.name == "gaussian"


@pytest.mark.parametrize("offset", [2.5, [1.0, -2.0, 0.5]])
def test_shifted(offset):
    made = L.shifted(BASE, offset)
    offset = np.float32(offset) * np.ones(3, np.float32)
    np.testing.assert_allclose(rows(made, 50), rows(BASE, 50) + offset, rtol=1e-6)
    np.testing.assert_allclose(means(made, 5), means(BASE, 5) + offset, rtol=1e-6)
    assert made.magnitude == BASE.magnitude + np.abs(offset).max()


def test_clipped():
    made = L.clipped(BASE, -0.5, 0.25)
    np.testing.assert_array_equal(rows(made, 50), np.clip(rows(BASE, 50), -0.5, 0.25))
    assert made.mean is None
    assert made.magnitude == 0.5
    assert L.clipped(BASE, 0.0, 0.0).magnitude == 1.0


def test_enveloped():
    made = L.enveloped(BASE, lambda t, power: t**power, peak=50.0, power=2.0)
    t = np.arange(1, 51)[:, None]
    np.testing.assert_allclose(rows(made, 50), t**2 * rows(BASE, 50), rtol=1e-5)
    np.testing.assert_allclose(means(made, 50), t**2 * means(BASE, 50), rtol=1e-5)
    assert made.magnitude == 50 * BASE.magnitude


def test_permuted():
    """The best arm is any of them; the losses of a round are the same set of numbers."""
    made = L.permuted(L.one_arm(num_arms=5, arm=2))
    best = [int(np.argmin(rows(made, 1, seed)[0])) for seed in range(40)]
    assert set(best) == {0, 1, 2, 3, 4}
    for seed in range(3):
        assert set(np.asarray(rows(made, 2, seed)).ravel()) == {0.0, -1.0}
        np.testing.assert_array_equal(rows(made, 3, seed), means(made, 3, seed))
    walk = L.permuted(L.random_walk(num_arms=3))
    assert np.abs(np.diff(rows(walk, 500), axis=0)).max() < 0.05 * 6


def test_mixed():
    made = L.mixed([L.one_arm(num_arms=2, loss=1.0), L.one_arm(num_arms=2, loss=-2.0)], [3, 1])
    losses = rows(made, 20_000)
    assert set(losses[:, 0]) == {1.0, -2.0}
    assert_mean(losses[:, 0] == 1, 0.75)
    assert_mean((losses[1:, 0] == 1) * (losses[:-1, 0] == 1.0), 0.75**2)
    np.testing.assert_allclose(means(made, 1)[0], [0.25, 0])
    assert made.magnitude == 2
    noisy = L.mixed([BASE, L.random_walk(num_arms=3)], [1, 1])
    assert noisy.mean is None
    assert len(np.unique(rows(noisy, 100))) == 300


def test_concatenated():
    """Each part from its own round 1, also one with memory."""
    parts = [L.cyclic(num_arms=3), L.random_walk(num_arms=3), L.parity(num_arms=3)]
    made = L.concatenated(parts, [5, 40])
    losses = rows(made, 60)
    np.testing.assert_array_equal(losses[:5], rows(parts[0], 5))
    np.testing.assert_array_equal(losses[45:], rows(parts[2], 15))
    walk = losses[5:45]
    assert np.abs(walk[0]).max() < 0.05 * 5
    assert np.abs(np.diff(walk, axis=0)).max() < 0.05 * 6
    known = L.concatenated([parts[0], parts[2]], [4])
    np.testing.assert_array_equal(means(known, 9), rows(known, 9))


def test_an_array_can_be_combined():
    table = np.arange(12.0).reshape(4, 3)
    made = L.scaled(table, 2.0)
    assert made.num_rounds == 4
    np.testing.assert_array_equal(rows(made, 4), 2 * table)
    assert L.concatenated([L.zero(num_arms=3), table], [10]).num_rounds == 14
    assert L.mixed([L.zero(num_arms=3), table], [1, 1]).num_rounds == 4
    result = sf.simulate(UNIFORM, L.permuted(table), num_seeds=2)
    assert result.rounds[-1] == 4
    with pytest.raises(ValueError, match="num_rounds is 5; the losses have only 4"):
        sf.simulate(UNIFORM, made, num_rounds=5, num_seeds=2)


def test_combined_sequences_are_played():
    """Nested, and with parameters that change without compiling again."""
    made = L.permuted(L.mixed([BASE, L.shifted(L.random_walk(num_arms=3), 0.5)], [0.5, 0.5]))
    result = sf.simulate(UNIFORM, made, num_rounds=100, num_seeds=4)
    assert np.isfinite(result.regret).all()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: L.scaled(BASE, 0.0), r"scale is 0\.0"),
        (lambda: L.scaled(BASE, 1e39), "scale is 1e[+]39, beyond the range of float32"),
        (lambda: L.shifted(BASE, [1.0, 2.0]), "offset is .* one for each of 3 arms"),
        (lambda: L.shifted(BASE, np.inf), "offset is inf"),
        (lambda: L.clipped(BASE, 2.0, 1.0), r"low is 2\.0, above high, 1\.0"),
        (lambda: L.clipped(BASE, np.nan, 1.0), "low is nan"),
        (lambda: L.enveloped(BASE, jnp.sqrt, peak=0.0), r"peak is 0\.0"),
        (lambda: L.mixed([], []), "losses is empty"),
        (lambda: L.mixed([BASE, BASE], [1.0]), r"weights are \[1\.0\]; give 2"),
        (lambda: L.mixed([BASE, BASE], [1.0, -1.0]), "weights are"),
        (lambda: L.mixed([BASE, BASE], [0.0, 0.0]), "not all zero"),
        (lambda: L.mixed([BASE, L.zero(num_arms=2)], [1, 1]), r"\[3, 2\] arms"),
        (lambda: L.concatenated([BASE, BASE], []), "2 parts need 1"),
        (lambda: L.concatenated([BASE, BASE], [0]), "length is 0"),
        (lambda: L.concatenated([np.zeros((4, 3)), BASE], [5]), "length is 5"),
        (lambda: L.scaled(np.zeros((2, 4, 3)), 2.0), "several sequences"),
    ],
)
def test_what_combinators_refuse(make, message):
    with pytest.raises(ValueError, match=message):
        make()
