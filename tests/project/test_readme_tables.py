"""The README's tables of strategies and losses, and its other claims, match the code."""

import inspect
import re
import subprocess
import tomllib
from pathlib import Path

import pytest

import sfmab_jax as sf
from sfmab_jax.cli.main import main
from sfmab_jax.losses import combinators

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()
PARTS = (sf.sampling, sf.estimation, sf.full_information)


def names(text):
    return re.findall(r"`([a-z_0-9]+)`", text)


def rows(heading):
    """Return the cells of each row of the table whose second column has this heading."""
    pattern = rf"(?m)^\| kind \| {re.escape(heading)} \|.*\n\|-.*\n((?:\|.*\n)+)"
    table = re.search(pattern, README)[1]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()]


def compositions():
    """Return the name of every strategy listed, with its cells S, E and F."""
    table = rows("`sf.strategies.`")
    return [(name, cells) for _, listed, *cells in table for name in names(listed)]


def test_every_strategy_is_listed():
    assert sorted(name for name, _ in compositions()) == sorted(sf.strategies.STRATEGIES)


@pytest.mark.parametrize("name", sf.strategies.STRATEGIES)
def test_compositions_as_shown(name, monkeypatch):
    """Building a strategy calls the factories of the parts that the table shows."""
    called = set()

    def note_calls(part, make):
        def wrapper(*args, **kwargs):
            called.add(part)
            return make(*args, **kwargs)

        return wrapper

    for module in PARTS:
        for part in module.__all__:
            make = getattr(module, part)
            returned = getattr(make, "__annotations__", {}).get("return")
            if returned in (sf.Sampling, sf.Estimation, sf.FullInformation):
                monkeypatch.setattr(module, part, note_calls(part, make))
    make = sf.strategies.STRATEGIES[name]
    make()
    if "exploration" in inspect.signature(make).parameters:
        make(exploration="decaying")
    cells = dict(compositions())[name]
    unused = {"importance_weighted"} if "sees all losses" in cells else set()
    assert called - unused == set(names(" ".join(cells)))


def test_every_loss_family_and_combinator_is_listed():
    table = {kind: set(names(cell)) for kind, cell in rows("`sf.losses.`")}
    sources = {"from_function", "from_recurrence", "from_array", "from_file"}
    assert table.pop("your own") == sources
    assert table.pop("built from other sequences") == set(combinators.__all__)
    families = [name for cell in table.values() for name in cell]
    assert sorted(families) == sorted(sf.losses.LOSSES)
    assert set(sf.losses.__all__) >= {*families, *sources, *combinators.__all__}


def test_every_adversary_is_listed():
    table = re.search(r"(?m)^\| adversary \|.*\n\|-.*\n((?:\|.*\n)+)", README)[1]
    listed = [names(line.split("|")[2])[0] for line in table.splitlines()]
    assert sorted(listed) == sorted([*sf.losses.ADVERSARIES, "from_adversary"])


def test_number_of_families():
    for text in re.findall(r"all (\d+) loss families|of the (\d+) families", README):
        assert "".join(text) == str(len(sf.losses.LOSSES))


def test_extras_and_links_exist():
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    named = re.findall(r"'\.\[(\w+)\]'", README)
    assert named
    assert set(named) <= set(extras["optional-dependencies"])
    for target in re.findall(r"\]\(([^)]+)\)", README):
        if target.startswith("#"):
            heading = target[1:].replace("-", " ")
            assert re.search(rf"(?mi)^#+ {heading}$", README), target
        else:
            assert (ROOT / target).exists(), target


def test_blocks_for_the_shell_are_shell(tmp_path):
    blocks = re.findall(r"(?ms)^```(\w*)\n(.*?)^```$", README)
    assert {language for language, _ in blocks} == {"", "bash", "python"}
    for language, text in blocks:
        if language == "bash":
            subprocess.run(["bash", "-n"], input=text, text=True, check=True)
    # Blocks without a language show the output of the example (see test_readme) and of the plan.
    (plan,) = (text for language, text in blocks if not language and "$ sfmab" in text)
    assert sum(not language for language, _ in blocks) == 2
    assert plan.startswith("$ sfmab plan large.toml")


def test_a_plan_looks_as_shown(tmp_path, capsys, monkeypatch):
    """A small study prints the same lines in the same order."""
    monkeypatch.chdir(tmp_path)
    study = 'title = "A"\nseeds = 4\nrounds = 20\n[strategies.scale_free]\n[losses.uniform]\n'
    (tmp_path / "large.toml").write_text(study)
    command, *shown = re.search(r"(?m)^\$ sfmab ((?:.+\n)+)```", README)[1].splitlines()
    with pytest.raises(SystemExit) as ended:
        main(command.split())
    assert ended.value.code == 0
    printed = capsys.readouterr().out.splitlines()
    assert [line[:10] for line in printed[1:]] == [line[:10] for line in shown[1:]]


def test_paths_for_contributors_exist():
    """Every file or folder that CONTRIBUTING.md names, but for what a source distribution lacks."""
    text = (ROOT / "CONTRIBUTING.md").read_text()
    paths = re.findall(r"`((?:sfmab_jax|tests|benchmarks)/[\w/.*]+)`", text)
    assert len(paths) > 10
    assert not [path for path in paths if not list(ROOT.glob(path))]


def test_contributors_run_what_ci_runs():
    ci = ROOT / ".ci" / "run"
    (checks,) = re.findall(r"(?m)^\.venv/bin/ruff .*$", README)
    if ci.exists():  # a source distribution has none
        assert all(f"\n{check}\n" in ci.read_text() for check in checks.split(" && "))


def test_the_accuracy_of_trajectories_has_a_horizon():
    """The algorithm amplifies rounding, so that no accuracy holds for games of any length."""
    said = " ".join(README.split()).partition("**The right algorithm.**")[2].partition("- **")[0]
    assert re.search(r"Trajectories of \d+ to \d+ rounds agree .* to 1e-8 in float64", said)
    assert re.search(r"off by 9e-6 after \d+ rounds", said)
