"""Folders of others, links, damaged manifests, mixed losses: refused in a line, left untouched."""

import json
import os
import shutil
from dataclasses import replace
from importlib import import_module
from pathlib import Path

import pytest
from study_folders import FOUR_SCALES, block_files, play_in_blocks

import sfmab_jax as sf
from sfmab_jax.cli.main import main
from sfmab_jax.results.files import write_atomically
from sfmab_jax.study import cells as study_cells
from sfmab_jax.study import cost, play_block, store
from sfmab_jax.study.blocks import cut_into_blocks
from sfmab_jax.study.cells import plan_cells
from sfmab_jax.study.config import parse_study
from sfmab_jax.study.folder import clear_leftovers
from sfmab_jax.study.lock import hold
from sfmab_jax.study.runner import run_study

STUDY = parse_study(FOUR_SCALES, "study.toml")


def contents(folder: Path) -> dict[str, bytes | str | None]:
    """Bytes of the files below a folder, targets of links, and nothing for folders."""
    found: dict[str, bytes | str | None] = {}
    for path in sorted(folder.rglob("*")):
        content = os.readlink(path) if path.is_symlink() else None
        found[str(path.relative_to(folder))] = path.read_bytes() if path.is_file() else content
    return found


def refused(capsys, *arguments: str | Path) -> str:
    """Runs a command that must be refused; returns the message."""
    with pytest.raises(SystemExit) as stopped:
        main(list(map(str, arguments)))
    out, err = capsys.readouterr()
    assert (stopped.value.code, out, err.count("\n")) == (2, "", 1), err
    return err


@pytest.fixture(scope="module")
def file(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("file") / "study.toml"
    path.write_text(FOUR_SCALES)
    return path


@pytest.fixture(scope="module")
def finished(tmp_path_factory) -> Path:
    """In blocks of 8 seeds, three to a cell."""
    return play_in_blocks(tmp_path_factory.mktemp("study") / "out", 8)


@pytest.fixture
def copy(finished, tmp_path, monkeypatch) -> Path:
    monkeypatch.setattr("sfmab_jax.study.blocks.block_seeds", lambda cell: 8)
    return shutil.copytree(finished, tmp_path / "copy")


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("cells/sample1/raw.tmp", "data"),
        ("cells/0123456789abcdef/raw.tmp", "data"),
        ("cells/0123456789abcdef/cell.json.bak", "data"),
        ("cells/notes.txt", "data"),
        ("cells", "a file"),
        ("cells_of_mice.csv", "data"),
        ("report/index.html", "a page"),
        ("report/figures/a.png", "a picture"),
        ("reports/a.txt", "data"),
        ("report.md", "data"),
        ("lockfile", "data"),
        ("lock", "a list of locks"),
        ("processes/notes.txt", "data"),
        ("processes.csv", "data"),
        ("manifest.json", '{"name": "a site"}'),
        ("manifest.json", '{"format": 1}'),
        ("manifest.json", "// not JSON"),
        ("manifest.json.tmp", "data"),
        ("manifest.json_old.tmp", "data"),
    ],
)
def test_a_folder_of_others_is_refused_and_left_as_it_is(name, text, file, tmp_path, capsys):
    path = tmp_path / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    before = contents(tmp_path)
    line = refused(capsys, "study", "run", file, "--output", tmp_path)
    assert str(tmp_path) in line
    assert "folder" in line
    assert contents(tmp_path) == before


def test_files_of_others_in_a_study_are_left_alone(copy):
    cell = next(copy.glob("cells/*"))
    mine = ("cells/sample1/raw.tmp", "notes.tmp", "processes/a.txt", f"cells/{cell.name}/a.tmp")
    for name in (*mine, "manifest.json_old.tmp"):
        (copy / name).parent.mkdir(exist_ok=True)
        (copy / name).write_text("precious")
    left = [copy / "manifest.jsona1_b2c3d.tmp", cell / "00000000_000008.npza1_b2c3d.tmp"]
    left.append(copy / "processes" / "run.1.json")
    for path in left:
        path.write_text("half of it")
    assert run_study(STUDY, copy) == 0
    assert [(copy / name).read_text() for name in mine] == ["precious"] * len(mine)
    assert not any(path.exists() for path in left)


def test_a_study_without_its_manifest_is_still_one(copy, finished):
    (copy / "manifest.json").unlink()
    (copy / "report").mkdir()
    (copy / "report" / "index.html").write_text("an old report")
    assert run_study(STUDY, copy) == 0
    assert block_files(copy) == block_files(finished)
    assert len(sf.load_study(copy)) == 4


@pytest.mark.parametrize("name", ["lock", "cells", "processes", "cells/*"])
@pytest.mark.parametrize("manifest", [True, False])
def test_links_in_a_study_are_refused(name, manifest, copy, file, tmp_path, capsys):
    target = tmp_path / "elsewhere"
    (copy / "processes").mkdir()
    path = next(copy.glob(name))
    path.rename(target)
    path.symlink_to(target)
    if not manifest:
        (copy / "manifest.json").unlink()
    before = contents(tmp_path)
    line = refused(capsys, "study", "run", file, "--output", copy)
    assert str(copy) in line
    assert ("is a link" if manifest else path.name) in line
    assert contents(tmp_path) == before


def test_a_lock_that_is_a_link_keeps_its_target(tmp_path, file, capsys):
    precious = tmp_path / "precious.txt"
    precious.write_text("precious")
    folder = tmp_path / "out"
    folder.mkdir()
    (folder / "lock").symlink_to(precious)
    with pytest.raises(ValueError, match="lock is a link"), hold(folder):
        pass
    refused(capsys, "study", "run", file, "--output", folder)
    assert precious.read_text() == "precious"
    assert [path.name for path in folder.iterdir()] == ["lock"]


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir])
def test_a_lock_that_is_no_file_is_refused(make, copy, capsys):
    (copy / "lock").unlink()
    make(copy / "lock")
    with pytest.raises((ValueError, OSError), match="lock"):
        run_study(STUDY, copy)


@pytest.mark.parametrize("name", ["report", "report/figures", "report/tables"])
def test_a_report_is_not_written_behind_a_link(name, copy, tmp_path, capsys):
    target = tmp_path / "elsewhere"
    target.mkdir()
    (copy / name).parent.mkdir(exist_ok=True)
    (copy / name).symlink_to(target)
    line = refused(capsys, "study", "report", copy)
    assert f"{copy / name} is a link" in line
    assert not list(target.iterdir())


def places(value, here: tuple = ()) -> list[tuple]:
    """Paths to the fields of a manifest, of lists those of the first entry."""
    inner = value.items() if isinstance(value, dict) else enumerate(value[:1])
    found = []
    for key, member in inner:
        found.append((*here, key))
        free = key in ("versions", "platform", "commits", "strategy_parameters", "loss_parameters")
        if isinstance(member, dict | list) and not free:
            found += places(member, (*here, key))
    return found


GARBAGE = (None, -1, 1.5, "../../x", [], {}, [[1]], True, 10**30)


def test_a_manifest_with_any_field_missing_or_garbled(copy, capsys):
    """One line and exit code 2, or a value that can be read as well."""
    path = copy / "manifest.json"
    text = path.read_text()
    fields = [place for place in places(json.loads(text)) if place != ("runs", 0, "seconds")]
    assert len(fields) > 35
    counts = {"refused": 0, "missing": 0}
    for *way, key in fields:
        for value in ("missing", *GARBAGE):
            manifest = json.loads(text)
            table = manifest
            for step in way:
                table = table[step]
            if value == "missing":
                del table[key]
            else:
                table[key] = value
            path.write_text(json.dumps(manifest))
            try:
                sf.load_study(copy)
            except ValueError as error:
                line = str(error)
                assert str(path) in line, (way, key, value)
                assert line.endswith(
                    "run the study again, which writes it anew and keeps the blocks"
                )
                assert "\n" not in line
                counts["refused"] += 1
                counts["missing"] += value == "missing"
    # Lists may be shorter, and processes are told for the record only.
    assert counts["missing"] >= len(fields) - 4
    assert counts["refused"] > 0.7 * len(fields) * len(GARBAGE)


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "null", "\x00\xff", "[" * 100_000, '{"format": 1}']
)
def test_a_manifest_that_is_none_is_told_and_written_anew(text, copy, capsys, finished):
    (copy / "manifest.json").write_text(text, encoding="latin-1")
    line = refused(capsys, "study", "report", copy)
    assert str(copy / "manifest.json") in line
    assert "run the study again" in line
    said: list[str] = []
    assert run_study(STUDY, copy, said.append) == 0
    assert len(said) == 1
    assert len(sf.load_study(copy)) == 4
    assert block_files(copy) == block_files(finished)


@pytest.mark.parametrize(
    ("key", "value"),
    [("strategy_name", "nobody"), ("strategy_parameters", {"a": 1})],
)
def test_a_report_on_a_strategy_that_is_none(key, value, copy, capsys):
    path = copy / "manifest.json"
    manifest = json.loads(path.read_text())
    manifest["cells"][0]["cell"][key] = value
    path.write_text(json.dumps(manifest))
    assert "run the study again" in refused(capsys, "study", "report", copy)


def test_a_damaged_description_of_a_cell_explains_nothing(copy):
    for text in ("", "3", "[1]", "[" * 100_000):
        for path in copy.glob("cells/*/cell.json"):
            path.write_text(text)
        said: list[str] = []
        study = parse_study(f"seed = {7 + len(text)}\n{FOUR_SCALES}", "study.toml")
        run_study(study, shutil.copytree(copy, copy.parent / f"{len(text)}"), said.append)
        assert sum(line.startswith("changed:") for line in said) == 4


def mix_losses(folder: Path, cell: int, number: int) -> None:
    """Stores a block as if it had been played on losses of other random numbers."""
    block = cut_into_blocks(plan_cells(STUDY)[cell], 24)[number]
    result = store.read_block(folder, block)
    store.write_block(folder, block, replace(result, norms=other_norms(result.norms)))


def other_norms(norms):
    return norms._replace(l_1=norms.l_1 * 1.004)


def test_blocks_of_one_cell_on_different_losses_are_refused(copy, file, capsys):
    mix_losses(copy, cell=1, number=2)
    before = block_files(copy)
    cell = plan_cells(STUDY)[1]
    for command in (("run", file, "--output", copy), ("report", copy)):
        line = refused(capsys, "study", *command)
        assert f"{cell.label}, seeds from 0, and {cell.label}, seeds from 16" in line
        assert "l_1 is" in line
        assert f"remove {copy / 'cells' / cell.identity}," in line
    with pytest.raises(ValueError, match="have different losses"):
        sf.load_study(copy)
    assert block_files(copy) == before
    shutil.rmtree(copy / "cells" / cell.identity)  # as the message says
    assert run_study(STUDY, copy) == 3
    assert not sf.load_study(copy).incomplete


def test_regrets_that_are_no_numbers_are_told(copy, monkeypatch):
    module = import_module("sfmab_jax.study.study")
    join = module._join_seeds

    def broken(results):
        joined = join(results)
        return replace(joined, expected_regret=joined.expected_regret * float("nan"))

    monkeypatch.setattr(module, "_join_seeds", broken)
    with pytest.warns(RuntimeWarning, match="exp3_ix .* has regret that is not finite") as caught:
        sf.load_study(copy)
    assert [warning.filename for warning in caught] == [__file__] * 4


def test_a_block_on_other_losses_than_those_stored_is_not_written(copy, monkeypatch):
    block = cut_into_blocks(plan_cells(STUDY)[3], 24)[1]
    store.block_path(copy, block).unlink()
    before = block_files(copy)
    simulate = play_block.simulate

    def simulate_others(*games, **options):
        results = simulate(*games, **options)
        return {k: replace(r, norms=other_norms(r.norms)) for k, r in results.items()}

    with monkeypatch.context() as patch:
        patch.setattr(play_block, "simulate", simulate_others)
        with pytest.raises(ValueError, match="have different losses"):
            run_study(STUDY, copy)
    assert block_files(copy) == before
    assert run_study(STUDY, copy) == 1


def test_strategies_are_not_compared_on_different_losses(tmp_path):
    text = FOUR_SCALES.replace("[0.5, 1.0, 2.0, 4.0]", "1") + "[strategies.uniform]\n"
    study = parse_study(text, "study.toml")
    run_study(study, tmp_path / "out")
    block = cut_into_blocks(plan_cells(study)[1], 24)[0]
    result = store.read_block(tmp_path / "out", block)
    # As another kind of processor may round.
    near = result.norms._replace(l_2=result.norms.l_2 * (1 + 1e-7), best=result.norms.best + 1e-7)
    store.write_block(tmp_path / "out", block, replace(result, norms=near))
    assert len(sf.load_study(tmp_path / "out")) == 2
    store.write_block(tmp_path / "out", block, replace(result, norms=other_norms(near)))
    with pytest.raises(
        ValueError, match=r"exp3_ix on dense.* and uniform on dense.*different losses"
    ):
        sf.load_study(tmp_path / "out")


def test_a_large_study_is_checked_without_doing_the_same_again(monkeypatch):
    """Its strategies are traced by kind, not by cell; none is left out."""
    begun, asked, traced = [], [], []
    compose = import_module("sfmab_jax.compose")  # also the name of a function of the package
    check, version, init = study_cells._check_bandit, study_cells.version, compose._init

    def count_trace(*arguments):
        traced.append(arguments)
        return init(*arguments)

    monkeypatch.setattr(compose, "_init", count_trace)

    def count(study, label, bandit, num_arms):
        begun.append((label, num_arms))
        check(study, label, bandit, num_arms)

    monkeypatch.setattr(study_cells, "_check_bandit", count)
    monkeypatch.setattr(study_cells, "version", lambda name: (asked.append(name), version(name))[1])
    scales = [1 + k / 100 for k in range(250)]
    text = f"""
    arms = [2, 3]
    [strategies.scale_free]
    [strategies.fixed_arm]
    arm = [0, 1]
    [losses.uniform]
    scale = {scales}
    """
    cells = plan_cells(parse_study(text, "large.toml"))
    assert len({cell.identity for cell in cells}) == 2 * 3 * 250
    assert sorted(begun) == sorted(
        (label, n) for label in ("scale_free", "fixed_arm arm=0", "fixed_arm arm=1") for n in (2, 3)
    )
    assert len(asked) <= 1
    traced.clear()
    many = parse_study(f"[strategies.scale_free]\nbeta = {scales}\n[losses.uniform]", "large.toml")
    assert cost.cost_of(plan_cells(many), 64, cost.this_machine()).num_cells == 250
    assert 1 <= len(traced) <= 5
    with pytest.raises(ValueError, match="arm is 2; there are 2 arms"):
        plan_cells(parse_study(text.replace("[0, 1]", "[0, 1, 2]"), "large.toml"))


def test_a_folder_that_is_a_file(tmp_path, file, capsys):
    path = tmp_path / "out"
    path.write_text("data")
    assert "is a file" in refused(capsys, "study", "run", file, "--output", path)
    assert "manifest.json" in refused(capsys, "study", "report", path)
    assert path.read_text() == "data"


@pytest.mark.parametrize("name", ["manifest.json", "cells/0123456789abcdef/00000000_000008.npz"])
def test_unfinished_files_are_known_by_their_names(name, tmp_path):
    """As `write_atomically` calls them."""

    def clear(_) -> None:
        (path,) = tmp_path.glob(f"{name}*.tmp")
        clear_leftovers(tmp_path)
        assert not path.exists()
        path.touch()  # to be renamed

    write_atomically(tmp_path / name, clear)
