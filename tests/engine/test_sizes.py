"""Blocks and chunks by platform, arms and memory."""

from types import SimpleNamespace

import jax
import numpy as np
import pytest

from sfmab_jax.engine.layout import chunk_rounds_for, cpu_games_per_call, games_per_call

ARMS = [1, 2, 10, 100, 1000, 100_000]


def device(platform, memory):
    stats = None if memory is None else {"bytes_limit": memory}
    return SimpleNamespace(platform=platform, memory_stats=lambda: stats)


def test_cpus_have_their_own_rule():
    for num_arms in ARMS:
        assert games_per_call(num_arms, jax.devices()[0]) == cpu_games_per_call(num_arms)


@pytest.mark.parametrize("platform", ["gpu", "tpu"])
@pytest.mark.parametrize("num_arms", ARMS)
def test_a_block_fits(platform, num_arms):
    """State within a sixty-fourth of the memory, losses of a chunk within a sixteenth."""
    for memory in (2**33, 12 * 2**30, 60 * 2**30):
        here = device(platform, memory)
        width = games_per_call(num_arms, here)
        assert width == 2 ** int(np.log2(width))
        assert width == 32 or width * num_arms * 64 * 4 <= memory / 64
        for engine in ("scan", "fused"):
            rounds = chunk_rounds_for(num_arms, 10**6, here, engine)
            assert rounds == 1 or rounds * num_arms * width * 4 <= memory / 16
        if platform == "tpu":
            assert chunk_rounds_for(num_arms, 10**6, here, "fused") * num_arms * 128 * 4 <= 2**26


def test_the_width_does_not_follow_small_differences():
    """Memory that a driver keeps for itself, or none reported, leaves it as it is."""
    widths = {
        games_per_call(10, device("gpu", memory)) for memory in (None, 2**33, 9 * 2**30, 2**36)
    }
    assert widths == {2**15}
    assert games_per_call(500, device("gpu", 2**33)) == games_per_call(
        500, device("gpu", 15 * 2**30)
    )


def test_short_runs_have_short_chunks():
    assert chunk_rounds_for(10, 20, device("gpu", None)) == 32
    assert chunk_rounds_for(10, 20, jax.devices()[0]) == 32
