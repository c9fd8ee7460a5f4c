"""Files of results: complete or absent, and nothing else is read."""

import gc
import json
import os
import re

import numpy as np
import pytest
from made_results import made, two_strategies

import sfmab_jax as sf

pytestmark = pytest.mark.quick


@pytest.fixture(scope="module")
def only_new_garbage():
    """What there is by now is left out of collections, which then take no time."""
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()


@pytest.fixture
def pair():
    return two_strategies()


def assert_equal(ours, theirs):
    """Two results agree bit for bit; records as lists of leaves."""
    for field in ("name", "seed", "first_seed", "losses", "dtype", "seconds", "unit"):
        assert getattr(ours, field) == getattr(theirs, field)
    for field in ("rounds", "regret", "expected_regret"):
        np.testing.assert_array_equal(getattr(ours, field), getattr(theirs, field))
    assert ours.norms.num_arms == theirs.norms.num_arms
    for mine, other in zip(ours.norms[1:], theirs.norms[1:], strict=True):
        np.testing.assert_array_equal(mine, other)


def test_save_and_load(pair, tmp_path):
    path = tmp_path / "deep" / "down" / "run.npz"
    assert pair.save(path) == path
    loaded = sf.load(path)
    assert list(loaded) == ["first", "second"]
    for name in pair:
        assert_equal(pair[name], loaded[name])
        # Records come back as a list of leaves, in the order of the tree.
        play, rate = loaded[name].records
        np.testing.assert_array_equal(play, pair[name].records["play"])
        np.testing.assert_array_equal(rate, pair[name].records["rate"])
    assert os.listdir(path.parent) == ["run.npz"]


def test_save_and_load_one(tmp_path):
    result = made(np.random.default_rng(0).normal(size=(2, 3, 4)), name="a/b ü")
    path = result.save(str(tmp_path / "one"))
    assert path == tmp_path / "one"
    (loaded,) = sf.load(path).values()
    assert_equal(result, loaded)
    assert len(loaded.records) == 0


@pytest.mark.parametrize("name", ["run.csv", "run.npy", "run.pkl", "run.parquet"])
def test_a_foreign_ending_is_refused(pair, tmp_path, name):
    for results in (pair, pair["first"]):
        with pytest.raises(ValueError, match=r"ends in \.npz, or write .*to_pandas\(\)\.to_csv"):
            results.save(tmp_path / name)
    assert os.listdir(tmp_path) == []


def test_simulated_results_survive_a_file(tmp_path):
    bandits = {"exp3": sf.strategies.exp3(), "exp3_ix": sf.strategies.exp3_ix()}
    results = sf.simulate(
        bandits,
        1e9 * np.random.default_rng(0).normal(size=(2, 16, 3)),  # counted in a unit of their own
        num_seeds=3,
        checkpoints=4,
        record=lambda state: (state.full_information.learning_rate, state.full_information.play),
    )
    loaded = sf.load(results.save(tmp_path / "run.npz"))
    for name, result in results.items():
        assert result.unit > 1e6
        assert_equal(result, loaded[name])
        for mine, other in zip(result.records, loaded[name].records, strict=True):
            np.testing.assert_array_equal(mine, other)
            assert mine.dtype == other.dtype


def test_failed_write_leaves_the_old_file(pair, tmp_path, monkeypatch):
    path = pair.save(tmp_path / "run.npz")
    before = path.read_bytes()

    def write_a_little(file, **arrays):
        file.write(b"PK")
        raise OSError("No space left on device")

    monkeypatch.setattr(np, "savez", write_a_little)
    with pytest.raises(OSError, match="No space left"):
        sf.Results({"other": made(np.zeros((1, 2, 3)))}).save(path)
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["run.npz"]


def test_save_replaces_an_older_file(pair, tmp_path):
    path = pair.save(tmp_path / "run.npz")
    made(np.zeros((1, 2, 3)), name="other").save(path)
    assert list(sf.load(path)) == ["other"]
    assert os.listdir(tmp_path) == ["run.npz"]


def test_load_of_a_missing_file(tmp_path):
    with pytest.raises(FileNotFoundError):
        sf.load(tmp_path / "nothing.npz")


class Bomb:
    """An object whose unpickling would be noticed."""

    def __reduce__(self):
        return (os.mkdir, ("unpickled",))


def without(path, name):
    """The arrays of a file but one."""
    with np.load(path) as file:
        return {key: file[key] for key in file.files if key != name}


NOT_RESULTS = {
    "empty": lambda file, whole: None,
    "garbage": lambda file, whole: file.write(b"\x00\x01 not an archive" * 50),
    "text": lambda file, whole: file.write(b"regret,1,2,3\n"),
    "half": lambda file, whole: file.write(whole.read_bytes()[:3000]),
    "cut_short": lambda file, whole: file.write(whole.read_bytes()[:-10]),
    "corrupted": lambda file, whole: file.write(whole.read_bytes().replace(b"\x3f", b"\x40")),
    "array": lambda file, whole: np.save(file, np.zeros(3)),
    "other_arrays": lambda file, whole: np.savez(file, weights=np.zeros(3)),
    "broken_header": lambda file, whole: np.savez(file, header=np.array("{broken")),
    "list_as_header": lambda file, whole: np.savez(file, header=np.array("[1, 2]")),
    "later_format": lambda file, whole: np.savez(file, header=np.array('{"format": 99}')),
    "header_alone": lambda file, whole: np.savez(
        file, header=np.array(json.dumps({"format": 1, "results": []}))
    ),
    "lacks_regret": lambda file, whole: np.savez(file, **without(whole, "1/regret")),
    "lacks_norm": lambda file, whole: np.savez(file, **without(whole, "norms/l_2")),
    "pickle_inside": lambda file, whole: np.savez(file, header=np.array([Bomb()], dtype=object)),
    "pickle": lambda file, whole: np.save(file, np.array([Bomb()], dtype=object)),
}


@pytest.mark.parametrize("kind", NOT_RESULTS)
@pytest.mark.usefixtures("only_new_garbage")
def test_load_refuses_what_save_did_not_write(kind, pair, tmp_path, monkeypatch):
    """A ValueError with the path, no file left open, nothing unpickled."""
    monkeypatch.chdir(tmp_path)
    whole = pair.save(tmp_path / "whole.npz")
    assert whole.stat().st_size > 6000
    path = tmp_path / "strange.npz"
    with path.open("wb") as file:
        NOT_RESULTS[kind](file, whole)
    with pytest.raises(ValueError, match=re.escape(str(path))):
        sf.load(path)
    gc.collect()  # a file left open would warn here
    assert not (tmp_path / "unpickled").exists()
