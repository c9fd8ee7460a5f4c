"""Random draws in lanes have the bits of `jax.random`."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from scipy import special

from sfmab_jax.engine.lanes import over_lanes
from sfmab_jax.numerics.threefry import pinned_generator

WORDS = np.random.default_rng(0).integers(0, 2**32, (2, 5), dtype=np.uint32)


def split_in_a_loop(key):
    def step(key, x):
        key, other = jax.random.split(key)
        return key, jax.random.bits(other, (2,))

    return lax.scan(step, key, jnp.arange(3))[1]


def until_large(key):
    def grow(carry):
        key, total = carry
        key, other = jax.random.split(key)
        return key, total + jax.random.uniform(other, dtype=jnp.float32)

    return lax.while_loop(lambda carry: carry[1] < 2, grow, (key, jnp.float32(0)))[1]


def by_choice(key):
    keys = jax.random.split(key, 4)
    even = jax.random.bits(key) % 2 == 0
    drawn = lax.cond(even, lambda k: jax.random.bits(k), lambda k: jax.random.bits(k) + 1, keys[2])
    return jnp.where(even, jax.random.bits(keys[0]), drawn)


DRAWS = {
    "bits_8": lambda key: jax.random.bits(key, (3,), jnp.uint8),
    "bits_16": lambda key: jax.random.bits(key, (3, 2), jnp.uint16),
    "bits_32": lambda key: jax.random.bits(key, (7,)),
    "bits_64": lambda key: jax.random.bits(key, (3,), jnp.uint64),
    "one": lambda key: jax.random.bits(key),
    "fold_in": lambda key: jax.random.key_data(jax.random.fold_in(key, 2**31 + 5)),
    "split": lambda key: jax.random.key_data(jax.random.split(key, (2, 3))),
    "mapped": lambda key: jax.vmap(lambda k: jax.random.bits(k, (2,)))(jax.random.split(key, 3)),
    "joined": lambda key: jax.random.key_data(jnp.stack([key, jax.random.fold_in(key, 1)])[::-1]),
    "uniform": lambda key: jax.random.uniform(key, (4,), jnp.float32),
    "randint": lambda key: jax.random.randint(key, (4,), 0, 7, jnp.int32),
    "permutation": lambda key: jax.random.permutation(key, 6),
    "in_a_loop": split_in_a_loop,
    "until_large": until_large,
    "by_choice": by_choice,
}


@pytest.mark.parametrize("name", DRAWS)
def test_the_bits_are_those_of_jax_random(name):
    """Given keys, and given their words."""
    draw = DRAWS[name]

    @jax.jit
    def draw_all(words):
        keys = jax.vmap(jax.random.wrap_key_data, in_axes=-1)(words)
        from_words = over_lanes(lambda words: draw(jax.random.wrap_key_data(words)))(words)
        return jax.vmap(draw, out_axes=-1)(keys), over_lanes(draw)(keys), from_words

    with pinned_generator():
        wanted, *drawn = draw_all(jnp.asarray(WORDS))
    for bits in drawn:
        assert bits.dtype == wanted.dtype
        np.testing.assert_array_equal(bits, wanted)


def test_no_draw_is_left():
    """All of them become arithmetic."""
    with pinned_generator():
        for name in DRAWS.keys() - {"permutation"}:

            def draw(words, name=name):
                return DRAWS[name](jax.random.wrap_key_data(words))

            text = str(jax.make_jaxpr(over_lanes(draw))(WORDS))
            assert "random_" not in text, name
            assert "threefry2x32" not in text, name


def test_draws_of_another_generator_are_left_as_they_are():
    words = np.random.default_rng(0).integers(0, 2**32, (4, 5), dtype=np.uint32)

    def draw(words):
        return jax.random.bits(jax.random.wrap_key_data(words, impl="rbg"), (3,))

    text = str(jax.make_jaxpr(over_lanes(draw))(words))
    assert "random_bits" in text


def test_the_inverse_error_function_is_right():
    """`lax.erf_inv` is off by 6e-6."""
    near_one = 1 - np.geomspace(2**-24, 0.5, 200)
    x = np.float32([*np.linspace(-0.6, 0.6, 301), *near_one, *-near_one, 1, -1, np.nan, 1.5])
    expected = special.erfinv(x.astype(np.float64))
    np.testing.assert_allclose(over_lanes(lax.erf_inv)(x), expected, rtol=4e-7)


def test_normal_numbers_are_those_of_jax_random():
    with pinned_generator():
        keys = jax.random.split(jax.random.key(0), 64)
        expected = jax.vmap(lambda key: jax.random.normal(key, (8,), jnp.float32))(keys)
        words = jax.random.key_data(keys).T

        def draw(words):
            return jax.random.normal(jax.random.wrap_key_data(words), (8,), jnp.float32)

        np.testing.assert_allclose(over_lanes(draw)(words).T, expected, rtol=1e-5, atol=1e-7)
