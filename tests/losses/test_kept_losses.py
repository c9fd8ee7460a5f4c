"""The losses of a seed stay what they are, from version to version."""

import json

import kept_losses
import numpy as np
import pytest

import sfmab_jax as sf

KEPT = json.loads(kept_losses.PATH.read_text())


def test_every_family_is_held():
    assert list(KEPT) == list(sf.losses.LOSSES)


@pytest.mark.parametrize("name", KEPT)
def test_losses_of_a_seed(name):
    """Draws are the same bits; functions such as exp may be rounded by another processor."""
    losses = kept_losses.first_losses(name)
    wanted = np.reshape(np.float32(KEPT[name]), losses.shape)
    if set(np.unique(wanted)) <= {-100.0, 0.0, 1.0, 100.0}:
        np.testing.assert_array_equal(losses, wanted)
    else:
        np.testing.assert_allclose(losses, wanted, rtol=2e-6, atol=1e-6)
