"""Log-barrier descent on the part of the simplex where no probability is below a floor."""

import any_range_loops as any_range
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from loop_parts import bisect

import sfmab_jax as sf
from sfmab_jax import full_information
from sfmab_jax.full_information.barrier_descent import floored_point
from sfmab_jax.numerics.double_word import Sum


def wanted_point(theta, inverse_rates, floor):
    gaps = theta - theta.min()

    def mass(m):
        return np.maximum(inverse_rates / (gaps + m), floor).sum()

    m = bisect(lambda m: 1 - mass(m), 1e-12 * inverse_rates.min(), 2 * inverse_rates.sum())
    return np.maximum(inverse_rates / (gaps + m), floor)


@pytest.mark.parametrize("n", [2, 5, 40])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_newton_finds_the_point(n, dtype):
    """Scores of many sizes, rates that differ by a factor of up to 5, floors from 0.9/n down."""
    generator = np.random.default_rng(n)
    solve = jax.jit(jax.vmap(floored_point))
    size = 10.0 ** generator.uniform(-2, 4, (400, 1))
    theta = size * generator.exponential(size=(400, n)) ** generator.integers(1, 4, (400, 1))
    inverse_rates = 10.0 ** generator.uniform(-3, 3, (400, 1)) * generator.uniform(1, 5, (400, n))
    theta, inverse_rates = (x.astype(dtype) for x in (theta * inverse_rates, inverse_rates))
    floors = (0.9 / n * 10.0 ** -generator.uniform(0, 4, 400)).astype(dtype)
    got, _, m = solve(Sum(theta, np.zeros_like(theta)), inverse_rates, floors)
    rows = [np.float64(x) for x in (theta, inverse_rates, floors)]
    wanted = np.array([wanted_point(*row) for row in zip(*rows)])
    np.testing.assert_allclose(got, wanted, rtol=60 * np.finfo(dtype).eps)
    assert (np.asarray(m) > 0).all()
    assert (wanted == floors[:, None]).any()
    assert (wanted > floors[:, None]).all(axis=1).any()


def test_an_arm_on_the_floor_leaves_it_at_once():
    """Without a floor the arm has all its losses to make up for."""
    options = {"correction": 0.0, "floor": lambda n: 0.05 / n}
    floored = full_information.barrier_descent(lambda n: 0.5, **options)
    plain = full_information.barrier_descent(0.5, correction=0.0)

    @jax.jit
    def play(losses):
        def step(states, row):
            seen = [sf.Round(s.play, s.play, jnp.int32(0), row[0], row) for s in states]
            states = [part.update(s, x) for part, s, x in zip((floored, plain), states, seen)]
            return states, [s.play for s in states]

        first = [part.init(3, jnp.dtype("float64"), jnp.float64(1)) for part in (floored, plain)]
        return jax.lax.scan(step, first, losses)[1]

    losses = np.where(np.arange(520)[:, None] < 300, [[1.0, 0.0, 0.5]], [[0.0, 1.0, 1.0]])
    plays, without = map(np.asarray, play(losses))
    point, wanted = np.full(3, 1 / 3), []
    for row in losses:
        point = any_range.descend_on_floor(point, row, np.full(3, 0.5), 0.05 / 3)
        wanted.append(point)
    np.testing.assert_allclose(plays, wanted, rtol=1e-10)
    assert (plays[200:300, 0] == 0.05 / 3).all()
    assert plays[-1, 0] > 0.8
    assert without[-1, 0] < 0.5


def test_a_floor_is_not_for_predictions():
    with pytest.raises(ValueError, match="optimistic is True; with a floor choose False"):
        full_information.barrier_descent(0.1, optimistic=True, floor=lambda n: 0.1 / n)
    with pytest.raises(ValueError, match=r"floor is 0\.1; give a function"):
        full_information.barrier_descent(0.1, floor=0.1)
