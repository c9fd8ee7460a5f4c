"""The random words against JAX's own generator."""

import jax
import jax.extend.random
import jax.numpy as jnp
import numpy as np
import pytest

from sfmab_jax.numerics.threefry import game_key, threefry_2x32

pytestmark = pytest.mark.quick

NUM_WORDS = 1000

block = jax.jit(threefry_2x32)


def key_words(seed: int, shape) -> tuple:
    words = jax.random.key_data(jax.random.key(seed, impl="threefry2x32"))
    return tuple(jnp.full(shape, word) for word in words)


@pytest.mark.parametrize("seed", [0, 1, 42, 2**31 - 1])
def test_threefry_gives_the_words_of_jax_random(seed):
    """jax.random.bits counts (0, i); its 64-bit word is the first output above the second."""
    assert jax.config.jax_threefry_partitionable
    counter = jnp.arange(NUM_WORDS, dtype=jnp.uint32)
    first, second = block(key_words(seed, counter.shape), (jnp.zeros_like(counter), counter))
    assert first.dtype == second.dtype == jnp.uint32
    key = jax.random.key(seed, impl="threefry2x32")
    wide = np.asarray(jax.random.bits(key, (NUM_WORDS,), jnp.uint64))
    np.testing.assert_array_equal(first, (wide >> np.uint64(32)).astype(np.uint32))
    np.testing.assert_array_equal(second, (wide & np.uint64(0xFFFFFFFF)).astype(np.uint32))


def test_threefry_agrees_on_any_key_and_counter():
    """Both counter words and both key words, including the extreme ones."""
    rng = np.random.default_rng(5)
    extremes = np.array([0, 1, 2**31, 2**32 - 1], np.uint32)
    counter = rng.integers(0, 2**32, (2, NUM_WORDS), np.uint32)
    counter[0, :4], counter[1, :4] = extremes, extremes[::-1]
    for key in (np.zeros(2, np.uint32), np.full(2, 2**32 - 1, np.uint32), extremes[1:3]):
        got = block(tuple(jnp.full(NUM_WORDS, word) for word in key), tuple(counter))
        wanted = jax.extend.random.threefry_2x32(tuple(jnp.asarray(key)), jnp.ravel(counter))
        np.testing.assert_array_equal(np.concatenate(got), wanted)


def test_threefry_is_the_same_for_one_word_or_many():
    counter = jnp.arange(37, dtype=jnp.uint32)
    many = block(key_words(7, counter.shape), (counter, jnp.zeros_like(counter)))
    for i in (0, 1, 36):
        one = threefry_2x32(key_words(7, ()), (counter[i], jnp.uint32(0)))
        assert [int(word) for word in one] == [int(word[i]) for word in many]


def keys_of(root, sequences, seeds):
    return jax.vmap(game_key, in_axes=(None, 0, 0))(root, sequences, seeds)


def test_a_game_has_the_same_key_alone_or_among_many():
    root = jax.random.key(11)
    sequences = jnp.asarray(np.repeat(np.arange(4), 25), jnp.uint32)
    seeds = jnp.asarray(np.tile(np.arange(25), 4), jnp.uint32)
    everyone = keys_of(root, sequences, seeds)
    assert everyone.shape == (100, 2)
    assert everyone.dtype == jnp.uint32
    shuffled = np.random.default_rng(6).permutation(100)
    np.testing.assert_array_equal(
        keys_of(root, sequences[shuffled], seeds[shuffled]), everyone[shuffled]
    )
    for i in (0, 17, 99):
        np.testing.assert_array_equal(game_key(root, sequences[i], seeds[i]), everyone[i])
        np.testing.assert_array_equal(
            jax.jit(keys_of)(root, sequences[i : i + 1], seeds[i : i + 1])[0], everyone[i]
        )


def test_different_games_have_different_keys():
    """Sequence and seed do not commute: game (1, 2) is not game (2, 1)."""
    sequences, seeds = (jnp.asarray(x.ravel(), jnp.uint32) for x in np.mgrid[:30, :30])
    keys = np.concatenate(
        [keys_of(jax.random.key(root), sequences, seeds) for root in (0, 1)], axis=0
    )
    assert len(np.unique(keys, axis=0)) == 2 * 30 * 30
