"""Files of results, losses and programs, and names in plots, as others might make them."""

import json
import os
import re
import zipfile

import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np
import pytest
from made_results import made

import sfmab_jax as sf
from sfmab_jax.cli import compilation_cache

SHORT = ["bfloat16", "float8_e4m3fn", "float8_e5m2", "float16", "int4", "float32", "bool"]


@pytest.mark.parametrize("dtype", SHORT)
def test_records_keep_their_dtype(dtype, tmp_path):
    record = jnp.arange(6).reshape(1, 2, 3).astype(dtype)
    path = made(np.zeros((1, 2, 3)), records={"x": record}).save(tmp_path / "run.npz")
    (loaded,) = sf.load(path)["mine"].records
    assert loaded.dtype == record.dtype
    np.testing.assert_array_equal(loaded.astype(np.float64), np.asarray(record, np.float64))


def test_simulated_records_keep_their_dtype(tmp_path):
    result = sf.simulate(
        sf.strategies.uniform(),
        np.ones((4, 2)),
        num_seeds=2,
        record=lambda state: state.full_information.play.astype(jnp.bfloat16),
    )
    (loaded,) = sf.load(result.save(tmp_path / "run.npz"))["strategy"].records
    assert loaded.dtype == jnp.bfloat16
    assert (loaded == 0.5).all()


@pytest.mark.parametrize("dtype", ["object", "O", "U4", "float64", "nonsense", "M8[s]"])
def test_a_header_cannot_choose_other_dtypes(dtype, tmp_path):
    path = made(np.zeros((1, 2, 3)), records=[np.zeros((1, 2, 3), np.uint16)]).save(tmp_path / "x")
    with np.load(path) as file:
        arrays = {name: file[name] for name in file.files}
    header = json.loads(str(arrays["header"])) | {"dtypes": {"0/records/0": dtype}}
    with path.open("wb") as file:
        np.savez(file, **arrays | {"header": np.array(json.dumps(header))})
    with pytest.raises(ValueError, match="is not a results file, or is damaged"):
        sf.load(path)


def write_member(path, name, pieces, compression):
    with zipfile.ZipFile(path, "w", compression) as archive, archive.open(name, "w") as member:
        for piece in pieces:
            member.write(piece)
    return path


def header_of(shape, dtype="<f8"):
    from io import BytesIO

    file = BytesIO()
    described = {"descr": dtype, "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(file, described)
    return file.getvalue()


def test_a_bomb_is_not_unpacked(tmp_path, monkeypatch):
    """30 MB of zeros in 30 kB: refused by what the archive declares, before any is read."""
    pieces = [header_of((30 * 2**17,)), *[bytes(2**20)] * 30]
    path = write_member(tmp_path / "bomb.npz", "header.npy", pieces, zipfile.ZIP_DEFLATED)
    assert path.stat().st_size < 2**17
    monkeypatch.setattr(np, "load", lambda *_, **__: pytest.fail("was read"))
    with pytest.raises(ValueError, match=r"bomb\.npz .*header\.npy is compressed, to 31,45"):
        sf.load(path)


@pytest.mark.parametrize("shape", [(10**12,), (2**62, 8), (3, 2**40)])
def test_an_array_that_claims_more_than_it_has(shape, tmp_path, monkeypatch):
    pieces = [header_of(shape), bytes(64)]
    path = write_member(tmp_path / "claims.npz", "header.npy", pieces, zipfile.ZIP_STORED)
    monkeypatch.setattr(np, "load", lambda *_, **__: pytest.fail("was read"))
    with pytest.raises(ValueError, match=r"claims\.npz .*header\.npy claims [\d,]+ bytes and has"):
        sf.load(path)


NAMES = [r"$\frac$", "_x", "_", "$", "$$", r"\$", "$_x$", r"a $\alpha$ b", "x_1", "^", "100 %", ""]


def drawn(text):
    """What Matplotlib draws of a text, formulas apart."""
    shown, is_formula = text._preprocess_math(text.get_text())
    assert not is_formula, text.get_text()
    return shown.removeprefix("\u200b")


def test_names_are_drawn_as_they_are(tmp_path):
    results = {name: made(np.ones((1, 60, 4)), name=name) for name in NAMES if name}
    axes = sf.Results(results).plot()
    axes.figure.savefig(tmp_path / "x.png")
    assert [drawn(text) for text in axes.get_legend().get_texts()] == list(results)
    plt.close(axes.figure)
    figure = sf.plotting.grid({(name, "1"): results for name in results})
    figure.savefig(tmp_path / "x.png", dpi=20)
    assert [drawn(text) for text in figure.legends[0].get_texts()] == list(results)
    titles = [drawn(axes.title) for axes in figure.axes]
    assert titles[: len(results)] == [f"{name}, losses times 1" for name in results]
    for name in results:
        losses = sf.losses.from_array(np.ones((3, 2)), name=name)
        figure = sf.plotting.losses(losses, num_rounds=3)
        figure.savefig(tmp_path / "x.png", dpi=20)
        assert drawn(figure.axes[0].title) == f"{name}, 2 arms"
        plt.close(figure)


def test_bounds_of_a_strategy_with_a_formula_as_name(tmp_path):
    result = sf.simulate({r"$\frac$": sf.strategies.scale_free()}, np.ones((8, 2)), num_seeds=64)
    axes = result.plot(bounds=True)
    axes.figure.savefig(tmp_path / "x.png")
    shown = [drawn(text) for text in axes.get_legend().get_texts()]
    assert shown == [r"$\frac$", r"$\frac$: bound", r"$\frac$: tight bound"]
    plt.close(axes.figure)


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """Where programs would be kept; JAX's settings are put back."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    names = [
        "jax_enable_compilation_cache",
        "jax_compilation_cache_dir",
        "jax_persistent_cache_min_compile_time_secs",
    ]
    before = {name: getattr(jax.config, name) for name in names}
    jax.config.update("jax_enable_compilation_cache", True)
    jax.config.update("jax_compilation_cache_dir", None)
    yield compilation_cache.cache_folder()
    for name, value in before.items():
        jax.config.update(name, value)


def is_used():
    compilation_cache.enable_cache()
    return jax.config.jax_compilation_cache_dir is not None


def test_programs_are_kept_in_a_private_folder(cache):
    before = os.umask(0o000)
    try:
        assert is_used()
    finally:
        os.umask(before)
    for folder in (cache, cache.parent):
        assert folder.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("mode", [0o770, 0o707, 0o777, 0o1777])
@pytest.mark.parametrize("outer", [False, True])
def test_programs_are_not_kept_where_others_write(mode, outer, cache):
    cache.mkdir(parents=True, mode=0o700)
    cache.parent.chmod(0o700)
    (cache.parent if outer else cache).chmod(mode)
    assert not is_used()


@pytest.mark.parametrize("outer", [False, True])
def test_programs_are_not_kept_behind_a_link(outer, cache, tmp_path):
    link = cache.parent if outer else cache
    target = tmp_path / "elsewhere"
    target.mkdir(mode=0o700)
    link.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    link.symlink_to(target)
    assert not is_used()


def test_programs_are_not_kept_in_a_folder_of_others(cache, monkeypatch):
    cache.mkdir(parents=True, mode=0o700)
    owner = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: owner + 1)
    assert not is_used()


def test_the_oldest_programs_go(cache, monkeypatch):
    monkeypatch.setattr(compilation_cache, "_MOST_BYTES", 250)
    cache.mkdir(parents=True, mode=0o700)
    cache.parent.chmod(0o700)
    for age in range(5):
        path = cache / f"{age}-cache"
        path.write_bytes(bytes(100))
        os.utime(path, (1e9 - age, 1e9 - age))
    assert is_used()
    assert sorted(path.name for path in cache.iterdir()) == ["0-cache", "1-cache"]


ROWS = [[1, 2], [3, 4]]
READ = {
    "empty lines": b"1,2\n\n\n3,4\n\n",
    "empty lines first": b"\n\n1,2\n3,4\n",
    "empty lines before names": b"\n\na,b\n1,2\n3,4\n",
    "names over two lines": b'"a\nb",c\n1,2\n3,4\n',
    "lines that end as on old Macs": b"1,2\r3,4\r",
    "a byte-order mark, names, Windows": "\ufeffa,b\r\n1,2\r\n3,4".encode(),
    "spaces": b" 1 , 2 \n 3 , 4 \n",
    "quotes and names": b'"a","b"\n"1","2"\n"3","4"',
    "exponents": b"1e0,+2.0\n3E0,4.\n",
    "names as a comment": b"# a,b\n1,2\n3,4\n",
}


@pytest.mark.parametrize("name", READ)
def test_csv_with(name, tmp_path):
    path = tmp_path / "losses.csv"
    path.write_bytes(READ[name])
    np.testing.assert_array_equal(sf.losses.from_file(path).table[0], ROWS)


REFUSED = {
    "nothing": (b"", "is empty"),
    "a byte-order mark alone": ("\ufeff".encode(), "is empty"),
    "empty lines alone": (b"\n\n\n", "is empty"),
    "spaces alone": (b"   \n", "is empty"),
    "names alone": (b"a,b\n", "has no numbers"),
    "names alone, no end": (b"a,b", "has no numbers"),
    "semicolons": (b"1;2\n3;4\n", "separated by ';', not by ','; give separator=';'"),
    "semicolons and decimal commas": (
        b"1,5;2,5\n",
        "separated by ';'.* it also has '1,5'; .* decimal point",
    ),
    "one line with semicolons": (b"1;2\n", "give separator=';'"),
    "tabs": (b"1\t2\n3\t4\n", r"give separator='\\t'"),
    "thousands": (
        b'"1,000","2,000"\n"3,000","4,000"\n',
        "'3,000' in row 1 .line 2 .*nothing between thousands",
    ),
    "thousands without quotes": (
        b"1,000,2,000\n3,000,4\n",
        "3 cells in row 2 .* and 4 cells in row 1.* no ',' inside",
    ),
    "a comma too many": (
        b"1,2,\n3,4,\n",
        r"column 2 \(the first is 0\) begins with empty cells; give index=2 to leave it out",
    ),
    "a missing number": (b"1,2\n3,\n", "an empty cell in row 2 .* column 1 "),
    "not a number": (b"1,2\n3,nan\n", "'nan' in row 2 .* column 1 "),
    "too large": (b"1,2\n3,1e400\n", "'1e400' in row 2 .* column 1 "),
    "an open quote": (b'1,2\n"3,4\n', "1 cell in row 2"),
    "UTF-16": ("1,2\n3,4\n".encode("utf-16"), "UTF-16; write it in UTF-8"),
    "zero bytes": (b"1,2\n3,\0\n", r"'\\x00' in row 2"),
    "an endless cell": (b'"' + b"1" * 200_000, "larger than field limit"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_csv_refused_for(name, tmp_path):
    content, message = REFUSED[name]
    path = tmp_path / "losses.csv"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=f"(?s){re.escape(str(path))}.*{message}"):
        sf.losses.from_file(path)
