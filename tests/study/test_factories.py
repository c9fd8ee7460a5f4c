"""Strategies and losses of the user's own in a study: import paths, files, what changes of them."""

import sys
from pathlib import Path

import numpy as np
import pytest

import sfmab_jax as sf
from sfmab_jax.study.cells import Cell, plan_cells
from sfmab_jax.study.config import read_study
from sfmab_jax.study.report import write_report
from sfmab_jax.study.runner import run_study

MODULE = """
import helper_of_parts
import sfmab_jax as sf

def mine(rate=0.5, scale: float = 1.0):
    return sf.strategies.fixed_arm(arm=helper_of_parts.ARM)

def coins(num_arms: int, gap=0.1):
    return sf.losses.bernoulli(num_arms=num_arms, gap=gap)

def wrong():
    return 3

def needy(rate):
    return mine(rate)

number = 5
"""
TEXT = """
arms = 2
rounds = 12
seeds = 6
checkpoints = 3
[strategies.mine]
strategy = "parts:mine"
rate = [0.5, 1]
[losses.coins]
family = "parts:coins"
[losses.recorded]
family = "from_file"
path = "data/recorded.csv"
"""
ROWS = "a,b\n" + "0.5,1\n1,0.25\n" * 8


@pytest.fixture
def file(tmp_path, monkeypatch) -> Path:
    monkeypatch.setattr(sys, "path", [*sys.path])
    (tmp_path / "parts.py").write_text(MODULE)
    (tmp_path / "helper_of_parts.py").write_text("ARM = 1\n")
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "recorded.csv").write_text(ROWS)
    path = tmp_path / "study.toml"
    path.write_text(TEXT)
    return path


def cells_of(file: Path) -> dict[tuple[str, str], Cell]:
    return {(c.strategy, c.losses): c for c in plan_cells(read_study(str(file)))}


def arm_of(cell: Cell) -> int:
    result = sf.simulate(cell.bandit(), [[0.0, 1.0]], num_seeds=1)
    return int(result.regret[0, 0, 0])


def test_own_parts_are_played_and_reported(file, tmp_path, monkeypatch):
    monkeypatch.chdir("/")  # files are found from the study file
    folder = tmp_path / "out"
    assert run_study(read_study(str(file)), folder) == 4
    study = sf.load_study(folder)
    recorded = np.loadtxt(tmp_path / "data" / "recorded.csv", delimiter=",", skiprows=1)
    expected = sf.simulate(
        sf.strategies.fixed_arm(arm=1), recorded, num_rounds=12, num_seeds=6, checkpoints=3
    )
    got = study["mine rate=0.5", ("recorded", 2, 12, 1.0)]
    np.testing.assert_array_equal(got.regret, expected.regret)
    frame = study.to_pandas()
    assert set(frame.strategy_rate) == {0.5, 1.0}
    assert set(frame.losses_path) == {"", "data/recorded.csv"}
    assert "parts:mine" in write_report(folder).read_text()
    # Neither the manifest nor the report needs the files or says where they were.
    assert str(tmp_path) not in (folder / "manifest.json").read_text()


def test_a_file_that_changes_plays_its_cells_again(file, tmp_path):
    before = cells_of(file)
    (tmp_path / "data" / "recorded.csv").write_text(ROWS.replace("0.25", "0.75"))
    changed = cells_of(file)
    same = [key for key in before if before[key].identity == changed[key].identity]
    assert {losses for _, losses in same} == {"coins"}
    with pytest.raises(ValueError, match=r"data/recorded\.csv has changed since the study began"):
        before["mine rate=0.5", "recorded"].check_files()
    assert arm_of(changed["mine rate=1", "coins"]) == 1
    # What the module imports from beside it counts, too, in the process that has read the old text.
    (tmp_path / "helper_of_parts.py").write_text("ARM = 0  # the other one\n")
    again = cells_of(file)
    assert not {c.identity for c in again.values()} & {c.identity for c in changed.values()}
    assert arm_of(again["mine rate=1", "coins"]) == 0


def test_a_study_that_moves_keeps_its_cells(file, tmp_path):
    before = {cell.identity for cell in cells_of(file).values()}
    moved = tmp_path.with_name(f"{tmp_path.name}_moved")
    tmp_path.rename(moved)
    assert {cell.identity for cell in cells_of(moved / "study.toml").values()} == before


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("nowhere:mine", "there is no module nowhere; put nowhere.py beside the study file"),
        ("parts:mime", "parts has no 'mime'; did you mean mine?"),
        ("parts:number", "it is a int; give a function"),
        ("parts:wrong", "its function returned 3; it must return a Bandit"),
        ("parts:needy", "rate has no default; give it"),
        ("no module:mine", "'no module' is no name of a module"),
        ("broken:mine", "broken cannot be imported: SyntaxError"),
        ("hungry:mine", "hungry needs a_package_of_mine, which is not installed"),
        ("parts.py", "unknown"),
    ],
)
def test_what_cannot_be_found_or_used_is_told_with_its_fix(name, message, file, tmp_path):
    (tmp_path / "broken.py").write_text("def mine(:\n")
    (tmp_path / "hungry.py").write_text("import a_package_of_mine\n")
    file.write_text(TEXT.replace("parts:mine", name).replace("rate = [0.5, 1]\n", ""))
    with pytest.raises(ValueError, match="mine") as refused:
        cells_of(file)
    assert message in str(refused.value)
    assert str(file) in str(refused.value)
    assert "\n" not in str(refused.value)


def test_losses_of_files_and_functions_are_checked(file):
    for old, new, message in (
        ("parts:coins", "parts:wrong", "must return a LossSequence"),
        ("recorded.csv", "missing.csv", "does not exist"),
        ("arms = 2", "arms = 2\nsequences = 2", "losses.recorded has only 1"),
        ("rounds = 12", "rounds = 17", "17"),
        ('path = "data/recorded.csv"', "", "path has no default; give it"),
        ('csv"', 'csv"\ncolumns = [["a", "c"]]', "'c'"),
    ):
        file.write_text(TEXT.replace(old, new))
        with pytest.raises(ValueError, match=r"losses|num_rounds") as refused:
            cells_of(file)
        assert message in str(refused.value)


def test_losses_with_their_own_number_of_arms_are_played_once(file):
    file.write_text(TEXT.replace("arms = 2", "arms = [2, 3]"))
    cells = plan_cells(read_study(str(file)))
    arms = [(cell.losses, cell.num_arms) for cell in cells if cell.strategy == "mine rate=1"]
    assert arms == [("coins", 2), ("coins", 3), ("recorded", 2)]
    text = TEXT.replace("parts:mine", "uniform").replace("rate = [0.5, 1]\n", "")
    file.write_text(text.replace('csv"', 'csv"\ncolumns = [["b"]]'))
    assert cells_of(file)["mine", "recorded"].num_arms == 1
