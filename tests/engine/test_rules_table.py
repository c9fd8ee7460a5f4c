"""The rules of the batching transform against `jax.vmap`, form by form."""

import warnings

import pytest
from rules_table import PARTS, try_part


@pytest.mark.parametrize("name", PARTS)
@pytest.mark.parametrize("step", [97, pytest.param(1, marks=pytest.mark.full)])
def test_the_lanes_agree_with_vmap(name, step):
    """Some of the 12,000 cases by default, all of them in the full tests."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of operations without a rule
        number, found = try_part(name, step)
    assert number >= 4
    assert not found, "\n".join(found)
