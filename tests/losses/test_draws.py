"""Random numbers of the built-in families: the words, and what is made of them."""

import jax
import jax.extend.random
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from sfmab_jax.losses import draws

pytestmark = pytest.mark.quick

KEY = jax.random.key(3, impl="threefry2x32")
WORDS = np.random.default_rng(0).integers(0, 2**32, 20_000, dtype=np.uint32)
ENDS = np.array([0, 1, 255, 256, 2**31 - 1, 2**31, 2**32 - 257, 2**32 - 1], np.uint32)


@pytest.mark.parametrize("count", [1, 2, 5, 8])
def test_words_are_both_halves_of_blocks_at_the_round_and_the_block(count):
    words = jax.jit(draws.round_words, static_argnums=2)(KEY, jnp.int32(77), count)
    blocks = np.arange(-(-count // 2), dtype=np.uint32)
    counter = np.concatenate([np.full_like(blocks, 77), blocks])
    wanted = jax.extend.random.threefry_2x32(tuple(jax.random.key_data(KEY)), counter)
    assert words.dtype == jnp.uint32
    np.testing.assert_array_equal(words, wanted[:count])


def test_uniform_numbers():
    for words in (WORDS, ENDS):
        steps = (words >> 8).astype(np.float64)
        np.testing.assert_array_equal(draws.unit(words), steps / 2**24)
        np.testing.assert_array_equal(
            draws.symmetric(words), np.float32((steps - 2**23 + 0.5) / 2**23)
        )
        np.testing.assert_allclose(
            draws.positive(words), (words.astype(np.float64) + 0.5) / 2**32, rtol=1e-7
        )
    ends = np.asarray(draws.symmetric(ENDS))
    assert np.abs(ends).max() < 1
    assert 0 < np.asarray(draws.positive(ENDS)).min() < 2e-10


def test_normal_numbers_are_quantiles():
    """Within 4e-6: the approximation has 1e-6, and the uniform number is rounded."""
    for words in (WORDS, ENDS):
        level = (np.asarray(draws.symmetric(words), np.float64) + 1) / 2
        np.testing.assert_allclose(draws.normal(words), stats.norm.ppf(level), rtol=4e-6, atol=1e-6)


def test_cosines():
    for words in (WORDS, ENDS):
        angle = 2 * np.pi * np.asarray(draws.unit(words), np.float64)
        np.testing.assert_allclose(draws.cosine(words), np.cos(angle), atol=2.5e-7)


@pytest.mark.parametrize("bound", [1, 2, 3, 10, 1000, 65_536, 65_537, 2**24, 2**31 - 1])
def test_integers_below_a_bound(bound):
    drawn = np.asarray(draws.below(jnp.asarray(WORDS), bound))
    assert drawn.dtype == np.int32
    np.testing.assert_array_equal(drawn, WORDS.astype(np.uint64) * np.uint64(bound) >> 32)
    assert int(draws.below(jnp.asarray(ENDS[-1:]), bound)[0]) == bound - 1


@pytest.mark.parametrize("mean", [0.0, 2.0**-30, 0.1, 0.4, 0.5, 0.7, 1 - 2.0**-24, 1.0])
def test_bernoulli_is_exact(mean):
    """Over all 2^16 values of an arm's own bits, and the thresholds of the common number."""
    own = np.arange(2**16, dtype=np.uint32)
    means = jnp.full(2**16, mean, jnp.float32)
    packed = own[0::2] | (own[1::2] << 16)
    exact = float(np.float32(mean)) * 2**16
    whole = np.floor(exact)

    @jax.jit
    def count(common):
        return jnp.sum(draws.bernoulli(jnp.append(packed, common), means), dtype=jnp.int32)

    part = exact - whole  # the chance that the next one counts, too
    for step in {0, int(part * 2**24) - 1, int(np.ceil(part * 2**24)), 2**24 - 1}:
        if 0 <= step < 2**24:
            wanted = whole + (step / 2**24 < part)
            assert int(count(np.uint32(step << 8))) == wanted, (mean, step)


def test_arms_have_bits_of_their_own():
    means = jnp.full(9, 0.5, jnp.float32)
    assert draws.bernoulli_words(9) == 6
    words = np.random.default_rng(1).integers(0, 2**32, (20_000, 6), dtype=np.uint32)
    drawn = np.asarray(jax.vmap(lambda one: draws.bernoulli(one, means))(jnp.asarray(words)))
    # Means and correlations within five standard errors.
    assert np.abs(drawn.mean(axis=0) - 0.5).max() < 5 * 0.5 / np.sqrt(20_000)
    correlation = np.corrcoef(drawn.T) - np.eye(9)
    assert np.abs(correlation).max() < 5 / np.sqrt(20_000)
