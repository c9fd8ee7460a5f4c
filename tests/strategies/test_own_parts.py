"""Mistakes in strategies and losses of one's own are named before anything is compiled."""

import jax.numpy as jnp
import numpy as np
import pytest

import sfmab_jax as sf

pytestmark = pytest.mark.quick

S, E = sf.sampling.as_played(), sf.estimation.importance_weighted()
F = sf.full_information.ada_ftrl(sf.potentials.log_barrier())
FAMILY = sf.losses.bernoulli(num_arms=3)


def sampling(init=lambda n, dtype, unit: (), probabilities=lambda s, p: p, update=lambda s, r: s):
    return sf.Sampling(init, probabilities, update)


@pytest.mark.parametrize(
    ("parts", "named"),
    [
        ((sf.sampling.adaptive, E, F), "function adaptive .* is not of type Sampling"),
        ((E, S, F), "is not of type Sampling"),
        ((S, S, F), "is not of type Estimation"),
        ((S, E, "ada_ftrl"), "'ada_ftrl' is not of type FullInformation"),
    ],
)
def test_parts_have_their_places(parts, named):
    with pytest.raises(ValueError, match=named):
        sf.compose(*parts)


@pytest.mark.parametrize("given", ["log_barrier", sf.potentials.log_barrier, None])
@pytest.mark.parametrize(
    "make", [sf.full_information.ada_ftrl, lambda p: sf.full_information.ftrl(p, 0.1)]
)
def test_a_potential_must_be_one(make, given):
    with pytest.raises(ValueError, match=r"potential is .*; give one of sf.potentials"):
        make(given)


@pytest.mark.parametrize(
    ("part", "named"),
    [
        (
            sampling(probabilities=lambda s, p: p[:2]),
            r"probabilities .* of strategy 'mine' returns shape \[2\]",
        ),
        (
            sampling(lambda n, dtype, unit: jnp.int32(0), update=lambda s, r: r.loss),
            r"state.sampling float32\[\] of int32\[\]; keep its type",
        ),
        (
            sampling(lambda n, dtype, unit: jnp.zeros(n, dtype), update=lambda s, r: r.loss),
            r"state.sampling float32\[\] of float32\[3\]; keep its type",
        ),
        (sampling(update=lambda s, r: r.loss), "not the structure of init"),
    ],
)
def test_own_parts_keep_their_shapes_and_types(part, named):
    # Probabilities of the wrong shape do not reach the estimate of this bandit.
    estimation = sf.Estimation(E.init, lambda s, play, p, arm, loss: jnp.zeros_like(play), E.update)
    with pytest.raises(ValueError, match=named):
        sf.simulate({"mine": sf.compose(part, estimation, F)}, FAMILY, num_rounds=4)


@pytest.mark.parametrize("shape", [(), (4,), (6,), (5, 1)])
@pytest.mark.parametrize(
    "play", [sf.hardness, lambda *a, **k: sf.simulate(sf.strategies.exp3(), *a, **k)]
)
def test_a_loss_for_every_arm(shape, play):
    losses = sf.losses.from_function(lambda key, t: jnp.ones(shape), num_arms=5, name="mine")
    with pytest.raises(ValueError, match=r"mine returns losses of shape .*return \[5\]"):
        play(losses, num_rounds=4)


def test_a_family_must_be_called():
    with pytest.raises(ValueError, match=r"function sparse .* call the family"):
        sf.simulate(sf.strategies.scale_free(), sf.losses.sparse)


def test_results_show_themselves_in_a_line():
    """What a notebook prints for the last line of a cell."""
    table = np.array([[1.0, 0.0], [1.0, 0.0]])
    result = sf.simulate(sf.strategies.fixed_arm(arm=0), table, num_seeds=8)
    about = "strategy on array: 2 arms, 2 rounds, 1 x 8 games"
    assert repr(result) == f"Result({about}, mean regret 2 in every game given this sequence)"
