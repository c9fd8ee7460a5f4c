"""Measures of hardness against their definitions on the whole table at once."""

import subprocess
import sys

import numpy as np
import pytest
from loss_samples import rows

import sfmab_jax as sf
from sfmab_jax.results.hardness import loss_chunks


def definition(table):
    table = np.asarray(table, np.float64)
    totals = table.sum(axis=0)
    return {
        "l_1": np.abs(table).sum(),
        "l_2": (table**2).sum(),
        "l_inf": np.abs(table).max(),
        "s_inf": np.abs(totals).max(),
        "small_loss": totals.min(),
        "variance": ((table - table.mean(axis=0)) ** 2).sum(),
        "path_length": np.abs(np.diff(table, axis=0)).max(axis=1).sum(),
        "effective_range": (table.max(axis=1) - table.min(axis=1)).max(),
        "sparsity": (table != 0).sum(axis=1).max(),
    }


@pytest.mark.parametrize("offset", [0.0, 1e6])
def test_an_array(offset):
    """An offset of a million would leave nothing of a variance taken as a difference."""
    tables = np.random.default_rng(0).normal(size=(2, 10_000, 3)) + offset
    tables[0, 5] = 0
    measured = sf.hardness(tables)
    for k in range(2):
        for name, wanted in definition(tables[k]).items():
            np.testing.assert_allclose(getattr(measured, name)[k], wanted, rtol=1e-9)


@pytest.mark.parametrize("name", ["sparse", "random_walk", "parity"])
def test_the_sequences_that_are_played(name):
    """The norms are those that a simulation of the same seed reports."""
    sequence = sf.losses.LOSSES[name](num_arms=3)
    measured = sf.hardness(sequence, num_rounds=5000, num_sequences=2, seed=4)
    result = sf.simulate(
        sf.strategies.uniform(),
        sequence,
        num_rounds=5000,
        num_sequences=2,
        num_seeds=1,
        seed=4,
    )
    for norm in ("l_1", "l_2", "l_inf", "s_inf"):
        np.testing.assert_allclose(
            getattr(measured, norm), getattr(result.norms, norm)[:, -1], rtol=1e-6
        )
    np.testing.assert_allclose(measured.small_loss, result.norms.best[:, -1], rtol=1e-5, atol=1e-4)


def test_tail_index_of_pareto_losses():
    """Hill's estimate has a relative standard error of 1 / sqrt(k), here 1 / sqrt(1000)."""
    for index in (0.8, 1.5, 3.0):
        losses = sf.losses.pareto(num_arms=10, index=index, gap=0.0)
        measured = sf.hardness(losses, num_rounds=100_000).tail_index[0]
        assert abs(measured / index - 1) < 4 / np.sqrt(1000)


def test_tail_index_at_its_limits():
    assert np.isinf(sf.hardness(sf.losses.cyclic(num_arms=3), num_rounds=100).tail_index[0])
    assert np.isnan(sf.hardness(sf.losses.zero(num_arms=3), num_rounds=100).tail_index[0])


def test_one_round():
    measured = sf.hardness([[3.0, -4.0]])
    assert measured.path_length == 0
    assert measured.variance == 0
    assert measured.effective_range == 7


def test_chunks_are_the_rows():
    sequence = sf.losses.bernoulli(num_arms=3)
    chunks = list(loss_chunks(sequence, 5000))
    assert sum(map(len, chunks)) == 5000
    assert {chunk.shape[1] for chunk in chunks} == {3}
    assert set(np.unique(np.concatenate(chunks))) == {0.0, 1.0}
    assert rows(sequence, 3).shape == (3, 3)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"num_rounds": 0}, "num_rounds is 0"),
        ({"num_sequences": 0}, "num_sequences is 0"),
        ({"seed": -1}, "seed is -1"),
    ],
)
def test_what_is_refused(options, message):
    with pytest.raises(ValueError, match=message):
        sf.hardness(sf.losses.zero(), **options)
    with pytest.raises(ValueError, match="num_rounds is 3"):
        sf.hardness([[1.0], [2.0]], num_rounds=3)


LONG = """
import re
import numpy as np
import sfmab_jax as sf
from sfmab_jax.results.hardness import loss_chunks

def peak():
    return int(re.search(r"VmHWM:\\s+(\\d+)", open("/proc/self/status").read())[1]) / 1024

for family, rounds in ((sf.losses.uniform, 10_000_000), (sf.losses.random_walk, 1_000_000)):
    count, largest = 0, 0.0
    for chunk in loss_chunks(family(num_arms=2), rounds):
        count += len(chunk)
        largest = max(largest, np.abs(chunk).max())
        if count == len(chunk):
            start = peak()
    assert count == rounds and largest < 1.21
    print(family.__name__, start, peak())
    assert peak() - start < 50, (start, peak())
"""


@pytest.mark.full
def test_ten_million_rounds_without_a_table():
    """As a table they would take 80 MB; with memory, a tenth as many."""
    subprocess.run([sys.executable, "-c", LONG], check=True)
