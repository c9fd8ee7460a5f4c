"""Losses from files: the numbers, streaming, and what is wrong with a file."""

import gzip
import subprocess
import sys
from itertools import product

import numpy as np
import pytest
from simulated import UNIFORM

import sfmab_jax as sf
from sfmab_jax.losses import text_tables

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


@pytest.mark.parametrize("kind", [".npy", ".npz", ".csv", ".parquet"])
@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_a_loss_that_is_not_finite(tmp_path, kind, bad):
    table = TABLE.copy()
    table[41, 2] = bad
    path = write(tmp_path / f"x{kind}", table)
    places = dict.fromkeys(
        [".npy", ".npz"], r"at round 42, arm 2 \(rounds count from 1, arms from 0"
    )
    places |= {".csv": r"in row 42 \(line 43 of the file\), column 'c'"}
    places |= {".parquet": "in row 42, column 'c'"}
    with pytest.raises(ValueError, match=rf"x{kind}.*{bad}.* {places[kind]}"):
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
        ("x.csv", b"1,2\n3,a\n", r"x.csv.*'a'.*row 2"),
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
    with pytest.raises(ValueError, match=r"has 'x' in row 1 .*; give numbers only, or names"):
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


NUMBERS = [[0.5, 1.0], [0.25, -3.0], [4.0, 0.0]]
# Content of x.csv, options, and the table that is read.
WITH_OPTIONS = {
    "arms by name": ("a,b,c\n9,1,.5\n9,-3,.25\n9,0,4\n", {"columns": ["c", "b"]}),
    "arms by number": ("9,1,.5\n8,-3,.25\n9,0,4\n", {"columns": (2, np.int64(1))}),
    "arms by a range": ("x,.5,1\ny,.25,-3\nz,4,0\n", {"columns": range(1, 3)}),
    "all arms, though one counts": ("1,2\n2,3\n3,9\n", {"columns": [0, 1]}),
    "dates": ("day,a,b\n2024-01-01,.5,1\n2024-01-02,.25,-3\n2024-01-03,4,0\n", {"index": "day"}),
    "dates, no names": ("2024-01-01,.5,1\n2024-01-02,.25,-3\n2024-01-03,4,0\n", {"index": 0}),
    "text last": ("a,b,note\n.5,1,x\n.25,-3,'y'\n4,0,\n", {"index": 2}),
    "rounds": ("t,a,b\n1,.5,1\n2,.25,-3\n3,4,0\n", {"index": "t"}),
    "names of pandas": (",0,1\n0,.5,1\n1,.25,-3\n2,4,0\n", {"index": 0}),
    "names of pandas, dates": (
        "d,0,1\n2024-1-1,.5,1\n2024-1-2,.25,-3\n2024-1-3,4,0",
        {"index": "d"},
    ),
    "a name of NumPy": ("# a,b,c\n.5,1,7\n.25,-3,7\n4,0,7\n", {"index": "c"}),
    "the same name, by number": ("a,a\n.5,1\n.25,-3\n4,0\n", {"columns": [0, 1]}),
    "spaces around names": (" a , b , c \n.5,1,7\n.25,-3,7\n4,0,7\n", {"columns": ["a", "b"]}),
    "semicolons": ("a;b\n.5;1\n.25;-3\n4;0\n", {"separator": ";"}),
    "spaces": (".5 1\n.25 -3\n4 0\n", {"separator": " "}),
    "a row for each arm": (".5,.25,4\n1,-3,0\n", {"transpose": True}),
    "a named row for each arm": (
        "arm,x,y,z\nl,.5,.25,4\nr,1,-3,0\n",
        {"transpose": True, "index": 0},
    ),
}


@pytest.mark.parametrize("name", WITH_OPTIONS)
def test_a_table_with_options(name, tmp_path):
    content, options = WITH_OPTIONS[name]
    (tmp_path / "x.csv").write_text(content)
    losses = sf.losses.from_file(tmp_path / "x.csv", **options)
    wanted = [[1, 2], [2, 3], [3, 9]] if "counts" in name else NUMBERS
    np.testing.assert_array_equal(losses.table[0], wanted)


@pytest.mark.parametrize("kind", [".csv", ".csv.gz", ".tsv", ".tsv.gz", ".TSV"])
def test_packed_and_with_tabs(kind, tmp_path):
    text = '\ufeffa,b\r\n"0.5",1\r\n.25,-3\r\n4,0\r\n'.encode()
    text = text if "csv" in kind else text.replace(b",", b"\t")
    path = tmp_path / f"x{kind}"
    path.write_bytes(gzip.compress(text) if kind.endswith(".gz") else text)
    np.testing.assert_array_equal(sf.losses.from_file(path).table[0], NUMBERS)


@pytest.mark.parametrize("kind", [".npy", ".npz", ".csv", ".parquet"])
def test_a_row_for_each_arm_is_played_like_its_array(tmp_path, kind):
    table = np.ascontiguousarray(TABLE[:40].T)
    if kind == ".parquet":
        pandas = pytest.importorskip("pandas")
        pandas.DataFrame(table, columns=[f"round {t}" for t in range(40)]).to_parquet(
            tmp_path / "x.parquet"
        )
    elif kind == ".csv":
        np.savetxt(tmp_path / "x.csv", table, delimiter=",")
    else:
        write(tmp_path / f"x{kind}", table)
    losses = sf.losses.from_file(tmp_path / f"x{kind}", transpose=True)
    assert (losses.num_rounds, losses.num_arms) == (40, 3)
    np.testing.assert_array_equal(losses.table[0], TABLE[:40])
    np.testing.assert_array_equal(losses.table[np.array([0]), slice(3, 5)][0], TABLE[3:5])
    options = {"num_seeds": 2, "chunk_rounds": 16}
    played = sf.simulate(UNIFORM, losses, **options).regret
    np.testing.assert_array_equal(played, sf.simulate(UNIFORM, TABLE[:40], **options).regret)


def test_sequences_with_a_row_for_each_arm(tmp_path):
    table = np.random.default_rng(1).normal(size=(2, 20, 3))
    stored = np.swapaxes(table, 1, 2).copy()
    losses = sf.losses.from_file(write(tmp_path / "x.npy", stored), transpose=True)
    np.testing.assert_array_equal(losses.table[:], table)
    stored[1, 2, 4] = np.inf
    path = write(tmp_path / "x.npy", stored)
    with pytest.raises(
        ValueError, match=r"inf at sequence 1, round 5, arm 2 \(rounds count from 1"
    ):
        sf.losses.from_file(path, transpose=True)


@pytest.mark.parametrize(
    "content",
    [
        "0,1\n2,3\n4,5\n6,7\n8,9\n",  # made up: all columns go by even steps
        "1,7\n1,3\n1,5\n1,2\n1,9\n",  # a constant arm
        "5,1\n7,2\n6,3\n",  # three rows may be chance
        "0,1\n1,3\n0,2\n1,4\n0,7\n",
    ],
)
def test_tables_whose_columns_count_nothing(content, tmp_path):
    (tmp_path / "x.csv").write_text(content)
    table = sf.losses.from_file(tmp_path / "x.csv").table[0]
    np.testing.assert_array_equal(table, np.loadtxt(content.splitlines(), delimiter=","))


# Content of x.csv, options, and what is said.
TRAPS = {
    "a count from 0": (
        "0,.5\n1,.25\n2,4\n",
        {},
        r"column 0 .* counts the rows: 0, 1, 2, .*; give index=0 to leave it out, or list",
    ),
    "a count from 1": (
        "t,a\n1,.5\n2,.25\n3,4\n",
        {},
        "column 't' counts the rows: 1, 2, 3, .*; give index='t' to",
    ),
    "years": (
        "t,a\n1999,.5\n2000,.25\n2001,4\n",
        {},
        "column 't' counts the rows: 1999, .*index='t'",
    ),
    "every fifth round": (
        "t,a\n0,.5\n5,.25\n10,4\n15,1\n20,1\n",
        {},
        "column 't' counts the rows: 0, 5, 10, .*; give index='t' to",
    ),
    "seconds": (
        "t,a\n1700000000,.5\n1700000060,.25\n1700000120,4\n1700000180,1\n1700000240,1\n",
        {},
        "column 't' counts the rows: 1700000000, .*; give index='t' to",
    ),
    "a count down": (
        "t,a\n9,.5\n8,.25\n7,4\n6,1\n5,1\n",
        {},
        "column 't' counts the rows: 9, 8, 7, .*; give index='t' to",
    ),
    "a count at the end": (
        "a,t\n.5,1\n.25,2\n4,3\n1,4\n1,5\n",
        {},
        "column 't' counts the rows: 1, 2, 3, .*; give index='t' to",
    ),
    "days at the end": (
        "a,t\n.5,20240131\n.25,20240205\n4,20240206\n",
        {},
        "column 't' holds dates, as 20240131; give index='t' to",
    ),
    "an index of pandas": (
        ",0,1\n0,.5,1\n1,.25,2\n2,4,3\n",
        {},
        "column 0 .* counts the rows.*index=0",
    ),
    "dates": (
        "day,a\n2024-01-01,1\n2024-01-02,2\n",
        {},
        "column 'day' holds dates, as '2024-01-01'; give index='day'",
    ),
    "dates and times": (
        "a,b\n1,2024/01/01 12:30\n2,2024/01/02 12:30\n",
        {},
        "column 'b' holds dates.*index='b'",
    ),
    "dates as numbers": (
        "day,a\n20240131,1\n20240201,2\n20240202,3\n",
        {},
        "column 'day' holds dates, as 20240131; give index='day'",
    ),
    "text": ("x,a,b\nu,1,2\nv,3,4\n", {}, "column 'x' holds text, as 'u'; give index='x'"),
    "two columns of text": (
        "x,y,a,b\nu,w,1,2\nv,w,3,4\n",
        {},
        r"column 'x' holds text, as 'u'; choose the arms by columns=\['a', 'b'\]",
    ),
    "an empty column": (
        "a,b,\n1,2,\n3,4,\n",
        {},
        r"column 2 \(the first is 0\) begins with empty cells; give index=2",
    ),
    "an empty cell": (
        "a,b\n1,2\n\n,4\n",
        {},
        r"an empty cell in row 2 \(line 4 of the file\), column 'a'; .* leave out the row",
    ),
    "an empty cell in row 1": (
        "1,\n3,4\n",
        {},
        r"an empty cell in row 1 \(line 1 of the file\), column 1 \(the first is 0\)",
    ),
    "NaN": (
        "a,b\n1,NaN\n3,4\n",
        {},
        r"'NaN' in row 1 \(line 2 of the file\), column 'b'; give a finite",
    ),
    "NA": (
        "a,b\n1,2\n3,NA\n",
        {},
        r"'NA' in row 2 \(line 3 of the file\), column 'b'; give a finite",
    ),
    "an underscore": ("a,b\n1,2\n3,1_0\n", {}, r"'1_0' in row 2 .*column 'b'"),
    "NA in all of row 1": ("NA,NA\n1,2\n3,4\n", {}, r"'NA' in row 1 \(line 1 of the file\)"),
    "no table": ("<html>\n<body>\n", {}, "holds text, as '<body>'; give a table of numbers"),
    "a column of text and semicolons": ("a;b\nx;1\n", {}, "give separator=';'"),
    "runs of spaces": ("1  2\n3  4\n", {}, "separator=' ', and write one space between cells"),
    "a short row": (
        "a,b\n1,2\n3\n",
        {},
        r"1 cell in row 2 \(line 3 of the file\) and 2 cells in row 1",
    ),
    "a long row, some columns": ("a,b\n1,2\n3,4,5\n", {"columns": ["a"]}, "3 cells in row 2"),
    "names alone": ("a,b\n", {}, "no numbers, only names"),
    "a name too few": (
        "a,b\nx,1,2\ny,3,4\n",
        {},
        "2 cells in the line of names and 3 cells in row 1",
    ),
    "thousands": (
        'a,b\n"1,234.5",2\n3,4\n',
        {},
        "'1,234.5' in row 1 .*nothing between thousands.*pandas.read_csv",
    ),
    "decimal commas": (
        "a;b\n1,5;2\n3;4\n",
        {"separator": ";"},
        "'1,5' in row 1 .*decimal point.*pandas.read_csv",
    ),
    "semicolons, decimal commas": (
        "d;a\n1.1.24;1,5\n2.1.24;3,0\n",
        {},
        "separated by ';', not by ','; .* '3,0'",
    ),
    "semicolons": ("a;b\n1;2\n", {}, "separated by ';', not by ','; give separator=';'"),
    "a bar": ("a|b\n1|2\n", {}, r"give separator='\|'"),
    "spaces": ("1.0e+00 2.0\n3 4\n", {}, "give separator=' '"),
    "commas, not semicolons": ("1,2\n3,4\n", {"separator": ";"}, "separated by ','"),
    "a name twice": (
        "a,b,a\n1,2,3\n4,4,4\n6,1,5\n",
        {},
        r"name 'a' for columns 0 and 2 .*columns=range\(3\)",
    ),
    "a name twice, chosen": (
        "a,b,a\n1,2,3\n",
        {"columns": ["a"]},
        "columns has 'a', the name of columns 0 and 2 .*give a number",
    ),
    "half a line of names": (
        "day,2019,2020\n2024-01-01,1,2\n",
        {"index": 0},
        "'day' above numbers or dates in row 1",
    ),
    "no such name": (
        "a,b\n1,2\n",
        {"columns": ["a", "c"]},
        "columns has 'c'; .* has the columns 'a', 'b'",
    ),
    "no names": (
        "1,2\n3,4\n",
        {"index": "a"},
        "index has 'a'; the columns of .* have no names, give numbers from 0 to 1",
    ),
    "no such number": ("1,2\n3,4\n", {"columns": [2]}, "columns has 2; .* from 0 to 1"),
    "a negative number": ("1,2\n3,4\n", {"index": -1}, "index has -1; .* from 0 to 1"),
    "no number": ("1,2\n3,4\n", {"columns": [1.5]}, "columns has 1.5; give a name or a number"),
    "a text for a list": (
        "ab,b\n1,2\n",
        {"columns": "ab"},
        r"columns is 'ab'; give a list, as columns=\['ab'\]",
    ),
    "a number for a list": (
        "1,2\n",
        {"columns": 1},
        r"columns is 1; give a list, as columns=\[1\]",
    ),
    "an arm twice": ("a,b\n1,2\n", {"columns": ["b", 1]}, "columns has column 'b' twice"),
    "an arm and the index": (
        "a,b\n1,2\n",
        {"columns": ["b"], "index": "b"},
        "column 'b' is in columns= and in index=",
    ),
    "no arms": ("a,b\n1,2\n", {"columns": []}, "no column left"),
    "a long separator": ("1,2\n", {"separator": ", "}, "separator is ', '; give one character"),
    "a digit as a separator": ("1,2\n", {"separator": "1"}, "separator is '1'; give one character"),
    "a text for a switch": (
        "1,2\n",
        {"transpose": "yes"},
        "transpose is 'yes'; give True or False",
    ),
}


@pytest.mark.parametrize("name", TRAPS)
def test_what_is_wrong_with_a_table_is_said(name, tmp_path):
    content, options, message = TRAPS[name]
    (tmp_path / "x.csv").write_text(content)
    with pytest.raises(ValueError, match=message) as caught:
        sf.losses.from_file(tmp_path / "x.csv", **options)
    assert "usecols" not in str(caught.value)


def test_doubtful_tables_are_read_with_a_warning(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text("a,b,c\n.5,1,2\n1,2,3\n")
    with pytest.warns(UserWarning, match="3 arms and 2 rounds; if each row is an arm, .*=True"):
        assert sf.losses.from_file(path).num_arms == 3
    path.write_text("1,2\n1,3\n5,1\n")
    with pytest.warns(UserWarning, match="3 arms and 2 rounds; if each column is an arm, .*=False"):
        assert sf.losses.from_file(path, transpose=True).num_arms == 3
    with pytest.warns(UserWarning, match="3 arms and 1 rounds"):
        sf.losses.from_file(write(tmp_path / "x.npy", np.ones((1, 3))))
    path.write_text("0,1,2\n.5,1,2\n.5,1,2\n")
    with pytest.warns(UserWarning, match="row 1 counts the columns, 0, 1, 2, .*names"):
        assert sf.losses.from_file(path).num_rounds == 3


@pytest.mark.parametrize(
    ("kind", "options", "message"),
    [
        (".npy", {"columns": [0]}, r"columns is \[0\]; \.npy files hold arrays: .*from_array"),
        (".npz", {"index": "a"}, r"index is 'a'; \.npz files hold arrays"),
        (".npy", {"separator": ";"}, r"separator is ';'; only \.csv and \.tsv files have one"),
        (".parquet", {"separator": ";"}, r"separator is ';'; only \.csv and \.tsv files have one"),
    ],
)
def test_options_that_a_kind_of_file_has_not(tmp_path, kind, options, message):
    with pytest.raises(ValueError, match=message):
        sf.losses.from_file(write(tmp_path / f"x{kind}", TABLE), **options)


def test_columns_of_a_parquet_file(tmp_path):
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    path = tmp_path / "x.parquet"
    frame = pandas.DataFrame(TABLE, columns=["a", "b", "c"])
    frame.insert(0, "day", pandas.date_range("2024-01-01", periods=50))
    frame.to_parquet(path)
    losses = sf.losses.from_file(path, index="day")
    np.testing.assert_array_equal(losses.table[0], TABLE)
    losses = sf.losses.from_file(path, columns=["c", 1])
    np.testing.assert_array_equal(losses.table[0], TABLE[:, [2, 0]])
    with pytest.raises(ValueError, match=r"column 'day' holds dates, as '2024-01-01.*index='day'"):
        sf.losses.from_file(path)
    frame["day"] = range(50)
    frame.to_parquet(path)
    with pytest.raises(ValueError, match=r"column 'day' counts the rows.*index='day'"):
        sf.losses.from_file(path)
    frame["day"] = frame["day"].astype("Int64").where(frame.index != 7)
    frame.to_parquet(path)
    with pytest.raises(ValueError, match="nan in row 8, column 'day'"):
        sf.losses.from_file(path)
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(ValueError, match=r"x\.parquet is not a complete \.parquet file"):
        sf.losses.from_file(path)


def test_packed_files_that_are_damaged_or_too_large(tmp_path, monkeypatch):
    path = tmp_path / "x.csv.gz"
    whole = gzip.compress(b"1,2\n3,4\n" * 500)
    for damaged in (whole[:30], b"1,2\n3,4\n", whole[:20] + b"\xff" * 8 + whole[28:]):
        path.write_bytes(damaged)
        with pytest.raises(ValueError, match=r"x\.csv\.gz is not a complete \.gz file"):
            sf.losses.from_file(path)
    monkeypatch.setattr(text_tables, "_MOST_UNPACKED", 1000)
    monkeypatch.setattr(text_tables, "_MOST_PACKING", 2)
    path.write_bytes(whole)
    with pytest.raises(ValueError, match="unpacks to more than 1,000 characters; unpack it first"):
        sf.losses.from_file(path)
    monkeypatch.setattr(text_tables, "_LONGEST_LINE", 100)
    path.write_bytes(gzip.compress(b"1" * 10_000))
    with pytest.raises(ValueError, match="a line of 100 characters or more"):
        sf.losses.from_file(path)
