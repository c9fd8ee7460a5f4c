"""The fused engine, interpreted, against the scan engine.

Both play the same functions on the same random words, but XLA rounds two programs differently
(products contracted into sums, sums over padded arms), so the comparison is in float64 up to a
rounding far below what any other random word or another order of rounds would make.
"""

import jax.numpy as jnp
import numpy as np
import pytest
from tiers import some_in_default

import sfmab_jax as sf
from sfmab_jax.checks import horizon_argument
from sfmab_jax.strategies import STRATEGIES

TOLERANCE = {"float64": 1e-11, "float32": 2e-4}


def both_engines(bandit, losses, **options):
    options = {"num_seeds": 3, "dtype": "float64", "checkpoints": 12} | options
    return [sf.simulate(bandit, losses, engine=engine, **options) for engine in ("scan", "fused")]


def assert_close(one, other, dtype="float64"):
    tolerance = TOLERANCE[dtype]
    scale = np.max(np.abs(one.norms.l_1))
    for name in ("regret", "expected_regret"):
        a, b = getattr(one, name), getattr(other, name)
        assert np.isfinite(a).all()
        np.testing.assert_allclose(a, b, rtol=0, atol=tolerance * scale, err_msg=name)


def gaussian_table(num_sequences, num_rounds, num_arms):
    shape = (num_sequences, num_rounds, num_arms)
    return np.random.default_rng(num_arms).normal(size=shape) + np.arange(num_arms) / num_arms


@pytest.mark.parametrize(
    ("exploration", "num_arms", "num_rounds"),
    some_in_default(
        [
            ("adaptive", 1, 5),
            ("adaptive", 3, 100),
            ("adaptive", 100, 50),
            ("decaying", 2, 50),
            ("decaying", 10, 300),
        ],
        [("adaptive", 3, 100)],
    ),
)
def test_it_plays_the_games_of_the_scan_engine(exploration, num_arms, num_rounds):
    """Two sequences, chunks that divide neither the rounds nor the windows, state at the end."""
    assert_close(
        *both_engines(
            sf.strategies.scale_free(exploration),
            gaussian_table(2, num_rounds, num_arms),
            chunk_rounds=48,
        )
    )


@pytest.mark.parametrize(
    "name",
    some_in_default(["tsallis_inf_rv", "ucb1", "ada_ftrl_log_barrier"], ["tsallis_inf_rv"]),
)
def test_it_plays_other_strategies(name):
    """The last is shown the losses of all arms."""
    factory = STRATEGIES[name]
    bandit = factory(**horizon_argument(factory, 40))
    assert_close(*both_engines(bandit, sf.losses.bernoulli(num_arms=5), num_rounds=40))


def test_records():
    """Rows of the checkpoints, written inside the kernel, in chunks before and after."""
    scan, fused = both_engines(
        sf.strategies.exp3(),
        gaussian_table(1, 50, 3),
        record=lambda state: (
            state.full_information.play,
            state.full_information.learning_rate,
            state.full_information.learning_rate > 0.5,
        ),
        checkpoints=[1, 2, 16, 17, 40],
        chunk_rounds=16,
    )
    assert_close(scan, fused)
    for one, other in zip(scan.records, fused.records, strict=True):
        assert one.dtype == other.dtype
        np.testing.assert_allclose(one, other, rtol=1e-10)


def test_float32_and_a_game_alone_in_other_chunks():
    losses = gaussian_table(1, 100, 10)
    bandit = sf.strategies.exp3()
    scan, fused = both_engines(bandit, losses, dtype="float32", num_seeds=5)
    assert_close(scan, fused, "float32")
    options = {"dtype": "float32", "checkpoints": 12, "chunk_rounds": 16, "engine": "fused"}
    alone = sf.simulate(bandit, losses, num_seeds=1, first_seed=3, **options)
    np.testing.assert_array_equal(fused.regret[:, 3:4], alone.regret)


def test_what_kernels_cannot_do_is_refused():
    """A potential from two functions needs quadrature, a product of matrices."""
    potential = sf.potentials.potential(lambda u: jnp.exp(u), lambda p: jnp.log(p))
    bandit = sf.compose(
        sf.sampling.adaptive(),
        sf.estimation.importance_weighted(),
        sf.full_information.ada_ftrl(potential),
    )
    with pytest.raises(ValueError, match=r"strategy 'strategy' needs .* use engine='scan'"):
        sf.simulate(bandit, np.zeros((4, 3)), num_seeds=1, engine="fused")
    padded = sf.Bandit(
        bandit.init,
        lambda state: jnp.pad(state.full_information.play, (0, 4))[:3],
        bandit.update,
    )
    with pytest.raises(ValueError, match=r"needs pad of \[3\], \[\], which the fused engine"):
        sf.simulate(padded, np.zeros((4, 3)), num_seeds=1, engine="fused")
    with pytest.raises(ValueError, match="certificate=True needs engine='scan'"):
        sf.simulate(bandit, np.zeros((4, 3)), engine="fused", certificate=True)
    with pytest.raises(ValueError, match="engine is 'fast'; choose 'scan' or 'fused'"):
        sf.simulate(bandit, np.zeros((4, 3)), num_seeds=1, engine="fast")
