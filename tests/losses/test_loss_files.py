"""Losses from files: the numbers, streaming, and what is wrong with a file."""

import subprocess
import sys
from itertools import product

import numpy as np
import pytest
from simulated import UNIFORM

import sfmab_jax as sf

TABLE = np.random.default_rng(0).normal(size=(50, 3))


def write(path, table):
    if path.suffix == ".npy":
        np.save(path, table)
    elif path.suffix == ".npz":
        np.savez(path, losses=table)
    elif path.suffix == ".csv":
        np.savetxt(path, table, delimiter=",", header="a,b,c", comments="")
    else:
        pandas = pytest.importorskip("pandas")
        pytest.importorskip("pyarrow")
        pandas.DataFrame(table, columns=["a", "b", "c"]).to_parquet(path)
    return path


@pytest.mark.parametrize("kind", [".npy", ".npz", ".csv", ".parquet"])
def test_a_file_is_played_like_its_array(tmp_path, kind):
    losses = sf.losses.from_file(write(tmp_path / f"x{kind}", TABLE))
    assert losses.num_rounds == 50
    assert losses.num_arms == 3
    assert losses.name == f"x{kind}"
    assert losses.magnitude == np.abs(TABLE).max()
    options = {"num_seeds": 3, "chunk_rounds": 16}
    from_file = sf.simulate(UNIFORM, losses, **options)
    from_array = sf.simulate(UNIFORM, TABLE, **options)
    np.testing.assert_array_equal(from_file.regret, from_array.regret)


def test_several_sequences_in_a_file(tmp_path):
    table = np.random.default_rng(1).normal(size=(2, 20, 3)).astype(np.float32)
    losses = sf.losses.from_file(write(tmp_path / "x.npy", table))
    assert losses.num_sequences == 2
    from_file = sf.simulate(UNIFORM, losses, num_seeds=3)
    np.testing.assert_array_equal(from_file.regret, sf.simulate(UNIFORM, table, num_seeds=3).regret)


def test_a_csv_file_without_names(tmp_path):
    (tmp_path / "x.csv").write_text("1,2\n3,4.5\n")
    losses = sf.losses.from_file(tmp_path / "x.csv")
    np.testing.assert_array_equal(losses.table[0], [[1, 2], [3, 4.5]])


def test_an_array_of_an_npz_file_by_name(tmp_path):
    np.savez(tmp_path / "x.npz", a=TABLE, b=2 * TABLE)
    losses = sf.losses.from_file(tmp_path / "x.npz", key="b")
    np.testing.assert_array_equal(losses.table[0], 2 * TABLE)
    with pytest.raises(ValueError, match=r"x.npz has 2 arrays; choose one of \['a', 'b'\]"):
        sf.losses.from_file(tmp_path / "x.npz")
    with pytest.raises(ValueError, match=r"x.npz has no array 'c'"):
        sf.losses.from_file(tmp_path / "x.npz", key="c")
    with pytest.raises(ValueError, match=r"only \.npz files have named arrays"):
        sf.losses.from_file(write(tmp_path / "x.npy", TABLE), key="a")


@pytest.mark.parametrize("kind", [".npy", ".npz", ".csv"])
@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_a_loss_that_is_not_finite(tmp_path, kind, bad):
    table = TABLE.copy()
    table[41, 2] = bad
    path = write(tmp_path / f"x{kind}", table)
    with pytest.raises(ValueError, match=rf"x{kind}.*{bad} at sequence 0, row 42, arm 2"):
        sf.losses.from_file(path)


def test_a_truncated_file(tmp_path):
    path = write(tmp_path / "x.npy", TABLE)
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) - 24 * 9 - 1])
    with pytest.raises(ValueError, match=r"x.npy is truncated: it ends in row 41 of 50"):
        sf.losses.from_file(path)
    path.write_bytes(whole[:40])
    with pytest.raises(ValueError, match=r"x.npy is not an .npy file"):
        sf.losses.from_file(path)
    zipped = write(tmp_path / "x.npz", TABLE)
    zipped.write_bytes(zipped.read_bytes()[:300])
    with pytest.raises(ValueError, match=r"x.npz"):
        sf.losses.from_file(zipped)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("x.txt", b"1,2", "x.txt is of no known kind"),
        ("x.csv", b"1,2\n3\n", r"x.csv.*row 2"),
        ("x.csv", b"1,2\n3,a\n", r"x.csv.*'a'.*row 1"),
        ("x.csv", b"", "x.csv"),
        ("x.npy", b"not numpy at all", "x.npy is not an .npy file"),
        ("x.npz", b"not a zip file", "x.npz"),
    ],
)
def test_files_of_the_wrong_form(tmp_path, name, content, message):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ValueError, match=message):
        sf.losses.from_file(tmp_path / name)


@pytest.mark.parametrize("shape", [(3,), (0, 3), (2, 2, 2, 2)])
def test_arrays_of_the_wrong_shape(tmp_path, shape):
    with pytest.raises(ValueError, match=r"x.npy has shape"):
        sf.losses.from_file(write(tmp_path / "x.npy", np.zeros(shape)))


def test_objects_are_not_loaded(tmp_path):
    np.save(tmp_path / "x.npy", np.array([[{}, 1]]), allow_pickle=True)
    with pytest.raises(ValueError, match=r"x.npy has dtype object"):
        sf.losses.from_file(tmp_path / "x.npy")
    np.savez(tmp_path / "x.npz", np.array([[{}, 1]]))
    with pytest.raises(ValueError, match=r"x.npz"):
        sf.losses.from_file(tmp_path / "x.npz")


def test_a_missing_file(tmp_path):
    with pytest.raises(ValueError, match=r"gone.npy does not exist"):
        sf.losses.from_file(tmp_path / "gone.npy")


STREAM = """
import re
import sys
import numpy as np
import sfmab_jax as sf

losses = sf.losses.from_file(sys.argv[1])
assert losses.table.shape == (1, 1_000_000, 1000), losses.table.shape
result = sf.simulate(sf.strategies.scale_free(), losses, num_rounds=512, num_seeds=1)
assert np.isfinite(result.regret).all()
peak = int(re.search(r"VmHWM:\\s+(\\d+)", open("/proc/self/status").read())[1]) / 1024
print(f"peak {peak:.0f} MB")
assert peak < 1000, peak
"""


@pytest.mark.full
def test_a_file_of_4_gigabytes(tmp_path):
    """All of it is read, with less than 1 GB of memory. A file of holes takes no disk."""
    path = tmp_path / "large.npy"
    table = np.lib.format.open_memmap(path, "w+", np.float32, (1_000_000, 1000))
    table[::1000, 0] = 1.0
    table[-1, -1] = -2.0
    del table
    assert path.stat().st_size > 4e9
    subprocess.run([sys.executable, "-c", STREAM, str(path)], check=True)


def test_a_file_that_changes_under_a_run(tmp_path):
    """The row is named when it is met, and what was played before it is kept."""
    path = tmp_path / "losses.npy"
    np.save(path, np.random.default_rng(0).uniform(-1, 1, (200, 3)))
    losses = sf.losses.from_file(path)
    changed = np.load(path, mmap_mode="r+")
    changed[150, 1] = np.nan
    changed.flush()
    with pytest.warns(RuntimeWarning, match=r"losses\.npy: sequence 0 .* in row 151, which"):
        result = sf.simulate(
            sf.strategies.scale_free(), losses, num_seeds=2, chunk_rounds=64, progress=False
        )
    good = np.isfinite(result.regret).all(axis=(0, 1))
    np.testing.assert_array_equal(good, result.rounds <= 150)
    assert good.any()


CSV_FILES = {
    "a byte-order mark": "\ufeff1,2\n3,4\n5,6\n".encode(),
    "a byte-order mark and names": "\ufeffa,b\n1,2\n3,4\n5,6\n".encode(),
    "names in latin-1": "caf\xe9,b\n1,2\n3,4\n5,6\n".encode("latin-1"),
    "quotes": b'"1","2"\n"3","4"\n"5","6"\n',
    "quoted names": b'"a","b,c"\n1,2\n3,4\n5,6\n',
    "lines that end as on Windows": b"1,2\r\n3,4\r\n5,6\r\n",
    "no end of the last line": b"1,2\n3,4\n5,6",
}


@pytest.mark.parametrize("name", CSV_FILES)
def test_csv_with(name, tmp_path):
    path = tmp_path / "losses.csv"
    path.write_bytes(CSV_FILES[name])
    np.testing.assert_array_equal(sf.losses.from_file(path).table[0], [[1, 2], [3, 4], [5, 6]])


def test_csv_whose_first_row_is_partly_numbers(tmp_path):
    path = tmp_path / "losses.csv"
    path.write_text("1,x\n3,4\n")
    with pytest.raises(ValueError, match="has 'x' in row 1; give numbers only, or names"):
        sf.losses.from_file(path)


def test_csv_written_in_every_way(tmp_path):
    """Every encoding with every end of lines, kind of names, form of numbers and last line."""
    path = tmp_path / "losses.csv"
    rows = [[1.0, 2.5], [-3.0, 4.0], [5.0, 6.0]]
    forms = ["{}", '"{}"', " {} ", "{:e}", "{:+}"]
    names = ["", "a,b", '"a","b"', '"a,x",b', "caf\u00e9,b", "# a,b"]
    ways = product(["utf-8", "utf-8-sig"], ["\n", "\r\n", "\r"], names, forms, [True, False])
    for encoding, end, header, form, ended in ways:
        lines = [header] * bool(header) + [",".join(map(form.format, row)) for row in rows]
        path.write_bytes((end.join(lines) + end * ended).encode(encoding))
        read = sf.losses.from_file(path).table[0]
        np.testing.assert_array_equal(read, rows, err_msg=repr((encoding, end, header, form)))
