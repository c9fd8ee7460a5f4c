"""From a finished study to its report: the ready studies, the labels, the page in a browser."""

import csv
import re
import shutil
import subprocess
import tomllib
from html.parser import HTMLParser
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest
from matplotlib.image import imread
from tiers import some_in_default

import sfmab_jax as sf
from sfmab_jax.cli.main import main
from sfmab_jax.study import analysis
from sfmab_jax.study.config import EXAMPLES, parse_study
from sfmab_jax.study.report import write_report
from sfmab_jax.study.runner import run_study

TEXT = """
title = "A <small> study | of *two*"
question = "Does <b>it</b> work?"
arms = [2, 4]
rounds = 128
seeds = 24
sequences = 1
checkpoints = 12
[strategies.adaptive]
strategy = "scale_free"
[strategies.decaying]
strategy = "scale_free"
exploration = "decaying"
[strategies.told]
strategy = "scale_free"
exploration = "decaying"
beta = "@scale"
[losses.dense]
family = "uniform"
scale = [0.25, 4.0]
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """A study with its report."""
    folder = tmp_path_factory.mktemp("report") / "out"
    run_study(parse_study(TEXT, "small.toml"), folder)
    write_report(folder)
    return folder


class Page(HTMLParser):
    """Tags that are open, and everything a page would fetch."""

    def __init__(self):
        super().__init__()
        self.open, self.fetched, self.tags = [], [], []

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        if tag not in ("meta", "img"):
            self.open.append(tag)
        names = dict(attributes)
        self.fetched += [names[key] for key in ("src", "srcset", "data") if key in names]

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def test_the_page_is_well_formed_and_fetches_nothing(folder):
    text = (folder / "report" / "index.html").read_text()
    page = Page()
    page.feed(text)
    assert not page.open
    assert page.tags.count("img") == 2 * 2 + 2
    assert all(source.startswith("data:image/svg+xml;base64,") for source in page.fetched)
    assert not {"script", "link", "iframe", "b", "small"} & set(page.tags)
    assert "A &lt;small&gt; study" in text
    assert not re.search(r"url\(|@import", text)
    for part in ("Final regret", "Paired differences", "Growth", "Plan", "Provenance", "Holm"):
        assert part in text


def test_every_figure_is_there_as_svg_png_and_data(folder):
    report = folder / "report"
    text = (report / "index.html").read_text()
    linked = re.findall(r'href="([^"]+)"', text)
    assert len(linked) == 3 * 6 + 3
    for name in linked:
        assert (report / name).stat().st_size > 0
    for picture in report.glob("figures/*.svg"):
        assert picture.read_text().startswith("<?xml")
        assert picture.with_suffix(".png").read_bytes().startswith(b"\x89PNG")
        with open(picture.with_suffix(".csv"), newline="") as file:
            assert len(list(csv.DictReader(file))) >= 4
    markdown = (report / "report.md").read_text()
    assert markdown.startswith("# A \\<small\\> study \\| of \\*two\\*\n")
    for name in re.findall(r"\]\(([^)]+)\)", markdown):
        assert (report / name).exists()


def test_tables_say_what_the_results_say(folder):
    study = sf.load_study(folder)
    with open(folder / "report" / "tables" / "summary.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == len(study) == 12
    for row, played in zip(rows, study.cells):
        final = played.result.expected_regret[0, :, -1]
        np.testing.assert_allclose(float(row["mean"]), final.mean(), rtol=1e-12)
        np.testing.assert_allclose(
            float(row["median"]), np.median(played.result.regret[0, :, -1]), rtol=1e-12
        )
        # Theorem 1 is known for the paper's parameters alone.
        if played.cell.strategy == "told":
            assert row["bound"] == "nan"
        else:
            expected = sf.bounds.scale_free(played.result.norms, played.cell.strategy).corrected
            np.testing.assert_allclose(float(row["bound"]), expected[0, -1], rtol=1e-12)
            assert float(row["ratio_to_bound"]) < 1


def test_differences_are_paired(folder):
    study = sf.load_study(folder)
    rows = analysis.compare_pairs(study)
    assert len(rows) == 4 * 3
    row = rows[0]
    setting = row[:4]
    difference = (
        study[row.strategy, setting].expected_regret - study[row.other, setting].expected_regret
    )[0, :, -1]
    np.testing.assert_allclose(row.difference, difference.mean(), rtol=1e-12)
    assert all(r.adjusted_p_value >= r.p_value for r in rows)
    counts = analysis.count_wins(study, rows)
    assert counts.shape == (3, 3)
    assert (counts + counts.T <= 4).all()
    assert counts.sum() == sum(r.adjusted_p_value < 0.05 for r in rows)


def test_growth_along_the_scale_of_an_equivariant_strategy_is_one(folder):
    """Told the unit, Algorithm 1 with decaying exploration plays the same games in any unit."""
    rows = analysis.fit_growth(sf.load_study(folder))
    told = [row for row in rows if row.strategy == "told" and row.variable == "scale"]
    assert len(told) == 2
    for row in told:
        np.testing.assert_allclose(row.exponent, 1, atol=1e-6)
    assert {row.variable for row in rows} == {"round", "n", "scale"}


def test_labels_survive_in_arrays_frames_and_files(folder, tmp_path):
    study = sf.load_study(folder)
    data = study.to_xarray()
    frame = study.to_pandas()
    assert len(frame) == 12 * 24 * 12
    key = ("told", ("dense", 4, 128, 4.0))
    one = data.isel(
        cell=((data.strategy == "told") & (data.num_arms == 4) & (data.scale == 4.0)).values
    )
    np.testing.assert_array_equal(one.regret.values[0], study[key].regret)
    np.testing.assert_array_equal(one["round"].values[0], study[key].rounds)
    mine = frame[(frame.strategy == "told") & (frame.num_arms == 4) & (frame.scale == 4.0)]
    np.testing.assert_array_equal(mine.regret, study[key].regret.ravel())
    import pandas

    read = pandas.read_csv(study.export(tmp_path / "all.csv"))
    texts = [key for key in frame if frame[key].dtype == "category"]
    plain = frame.assign(**{key: frame[key].astype(object).replace("", np.nan) for key in texts})
    pandas.testing.assert_frame_equal(read, plain, check_dtype=False)
    read = pandas.read_parquet(study.export(tmp_path / "all.parquet"))
    pandas.testing.assert_frame_equal(read, frame, check_dtype=False)
    with pytest.raises(ValueError, match=r"all\.txt"):
        study.export(tmp_path / "all.txt")
    with pytest.raises(KeyError):
        study["nobody", key[1]]


def test_the_smallest_studies_have_reports(tmp_path):
    """One arm, one round, one seed, no loss at all: nothing to fit, compare or draw on logs.

    Written again, all its files are the same to the byte.
    """
    text = "arms = 1\nrounds = 1\nseeds = 1\n[strategies.scale_free]\n[losses.zero]\n"
    run_study(parse_study(text, "least.toml"), tmp_path / "out")
    page = write_report(tmp_path / "out").read_text()
    assert "1 strategies on 1 settings" in page
    files = {path: path.read_bytes() for path in (tmp_path / "out" / "report").glob("**/*.*")}
    write_report(tmp_path / "out")
    assert len(files) == 2 + 2 * 3 + 3
    assert all(path.read_bytes() == content for path, content in files.items())
    with pytest.raises(ValueError, match="holds no study"):
        write_report(tmp_path)


def wild(num_arms: int = 2, scale: float = 1.0) -> sf.losses.LossSequence:
    """Infinite from round 60 on."""
    return sf.losses.from_function(
        lambda key, t: jnp.where(t < 60, 1.0, jnp.inf) * jnp.arange(1, num_arms + 1.0), num_arms
    )


def test_what_is_not_finite_or_nothing_at_all_is_left_blank(tmp_path, monkeypatch):
    """Losses that are no numbers from some round on, and a bound of 0."""
    monkeypatch.setitem(sf.losses.LOSSES, "wild", wild)
    text = TEXT.replace("arms = [2, 4]", "arms = 2").split("[strategies.told]")[0]
    text += "[losses.zero]\n[losses.wild]\n"
    with pytest.warns(RuntimeWarning, match="not finite"):
        run_study(parse_study(text, "wild.toml"), tmp_path / "out")
    page = write_report(tmp_path / "out").read_text()
    assert "not finite, so left blank: adaptive on wild, decaying on wild." in page
    assert ">nan<" not in page


@pytest.mark.parametrize(
    "name",
    some_in_default(sorted(path.stem for path in EXAMPLES.glob("*.toml")), ["paper_claims"]),
)
def test_the_ready_studies_run_to_their_reports(name, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    table = tomllib.loads((EXAMPLES / f"{name}.toml").read_text())
    for arguments in (["run", name, "--quick", "--output", "out"], ["report", "out"]):
        with pytest.raises(SystemExit) as stopped:
            main(["study", *arguments])
        assert stopped.value.code == 0, capsys.readouterr().err
    page = (tmp_path / "out" / "report" / "index.html").read_text()
    assert "This is the quick form" in page
    assert table["title"] in page
    assert not sf.load_study("out").incomplete


def has_ink(pixels) -> bool:
    """Whether at least one pixel in 500 is dark."""
    return (pixels[..., :3] < 0.5).any(axis=-1).mean() > 0.002


def test_pictures_and_page_are_not_blank(folder, tmp_path):
    """Every figure; and the page as Chromium lays it out from disk, on a machine that has it."""
    figures = sorted((folder / "report" / "figures").glob("*.png"))
    assert figures
    for figure in figures:
        assert has_ink(imread(figure)), figure.name
    names = ("chromium", "chromium-browser", "google-chrome")
    for browser in filter(None, map(shutil.which, names)):
        page, shot = (folder / "report" / "index.html").as_uri(), tmp_path / "page.png"
        options = ["--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"]
        options += [f"--user-data-dir={tmp_path}/profile", "--window-size=1100,2400"]
        subprocess.run(
            [browser, *options, f"--screenshot={shot}", page],
            check=True,
            capture_output=True,
            timeout=120,
        )
        pixels = imread(shot)[..., :3]
        assert pixels.shape[1] == 1100
        # Every third of the page has ink, and the first line's colours are among the pixels.
        assert all(map(has_ink, np.array_split(pixels, 3)))
        blue = np.array([0x00, 0x72, 0xB2]) / 255
        assert (np.abs(pixels - blue).max(axis=-1) < 0.02).sum() > 100
