"""Study files: what they mean; a malformed one is one line, exit code 2 and nothing written."""

import tomllib

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from study_texts import GOOD, HAND_MADE, with_losses, with_setting, with_strategy

from sfmab_jax.cli.main import main
from sfmab_jax.losses import LOSSES
from sfmab_jax.strategies import STRATEGIES
from sfmab_jax.study.cells import plan_cells
from sfmab_jax.study.config import EXAMPLES, parse_study
from sfmab_jax.study.cost import cost_of, this_machine

pytestmark = pytest.mark.quick


def refused(path, capsys) -> str:
    """Runs a study file that must be refused; returns the message."""
    before = {p: p.read_bytes() for p in path.parent.iterdir()}
    with pytest.raises(SystemExit) as stopped:
        main(["study", "run", str(path), "--output", str(path.parent / "out")])
    out, err = capsys.readouterr()
    assert stopped.value.code == 2, (path.read_bytes(), out, err)
    assert err.count("\n") == 1, err
    assert err.startswith(f"sfmab: {path}: "), err
    assert len(err) < 1500
    assert out == ""
    assert {p: p.read_bytes() for p in path.parent.iterdir()} == before
    return err


def test_there_are_two_hundred_by_hand():
    assert len(set(HAND_MADE)) >= 200


def test_the_good_file_is_good():
    (cell,) = plan_cells(parse_study(GOOD, "good.toml"))
    assert cell.label == "adaptive on dense, n = 3, T = 50, scale = 1"


def test_malformed_files_by_hand(tmp_path, capsys):
    path = tmp_path / "bad.toml"
    for text in HAND_MADE:
        path.write_bytes(text.encode())
        refused(path, capsys)


def quietly(test):
    """As many generated files as asked for, the same every time."""
    unhealthy = [HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
    return settings(
        max_examples=60, deadline=None, derandomize=True, suppress_health_check=unhealthy
    )(test)


@quietly
@given(content=st.one_of(st.binary(max_size=80), st.text(max_size=80).map(str.encode)))
def test_malformed_files_of_any_bytes(content, tmp_path, capsys):
    path = tmp_path / "bad.toml"
    path.write_bytes(content)
    refused(path, capsys)


@quietly
@given(
    key=st.text("abcdefgh_0123", min_size=1, max_size=12),
    place=st.sampled_from(["", "strategies.adaptive.", "losses.dense.", "quick."]),
    value=st.sampled_from(["1", '"x"', "[]", "{}", "1.5", "true", "1979-05-27"]),
)
def test_malformed_files_with_keys_that_do_not_exist(key, place, value, tmp_path, capsys):
    known = {"seed", "gap", "beta", "scale", "alpha"}
    assume(key not in known)
    path = tmp_path / "bad.toml"
    path.write_text(f"{place}{key} = {value}\n{GOOD}")
    text = path.read_text().replace(f"{place}{key}", f"{place}'{key}'")
    if place.startswith(("strategies", "losses")):  # keys of a table that is opened later
        text = GOOD.replace(f"[{place[:-1]}]", f"[{place[:-1]}]\n'{key}' = {value}")
    path.write_text(text)
    assert key in refused(path, capsys)


VALUES = st.one_of(
    st.none().map(lambda _: "[]"),
    st.booleans().map(lambda b: str(b).lower()),
    st.text("abcxyz@ ", max_size=6).map(lambda s: f'"{s}"'),
    st.floats(max_value=-0.5, allow_infinity=True).map(repr),
    st.integers(max_value=-1).map(str),
    st.dates().map(str),
    st.just("{ a = 1 }"),
)


@quietly
@given(key=st.sampled_from(["arms", "rounds", "seeds", "sequences", "seed"]), value=VALUES)
def test_malformed_files_with_values_of_the_wrong_kind(key, value, tmp_path, capsys):
    path = tmp_path / "bad.toml"
    path.write_text(with_setting(f"{key} = {value}"))
    assert f" {key} = " in refused(path, capsys)


@quietly
@given(
    start=st.integers(0, len(GOOD)),
    length=st.integers(1, 40),
    insert=st.text("[]=\"',x1#\n", max_size=3),
)
def test_mutated_files_are_either_planned_or_refused(start, length, insert, tmp_path, capsys):
    text = GOOD[:start] + insert + GOOD[start + length :]
    path = tmp_path / "mutated.toml"
    path.write_text(text)
    with pytest.raises(SystemExit) as stopped:
        main(["study", "check", str(path)])
    error = capsys.readouterr().err
    assert (stopped.value.code, error.count("\n")) in [(0, 0), (2, 1)], (text, error)
    assert [p.name for p in tmp_path.iterdir()] == ["mutated.toml"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (with_setting("sedes = 5"), "sedes = 5: unknown key; did you mean seeds?"),
        (
            with_losses("", "unifrom"),
            "losses.dense.family = 'unifrom': unknown; did you mean uniform?",
        ),
        (with_losses("gpa = 0.2"), "losses.dense.gpa = 0.2: unknown key; did you mean gap?"),
        (
            with_strategy('exploration = "adaptve"'),
            "strategies.adaptive.exploration = 'adaptve': did you mean adaptive?",
        ),
        (
            with_strategy('beta = "@scal"'),
            "strategies.adaptive.beta = '@scal': no such number; did you mean @scale?",
        ),
    ],
)  # fmt: skip
def test_messages_name_file_key_value_and_the_nearest_name(text, message, tmp_path, capsys):
    path = tmp_path / "bad.toml"
    path.write_text(text)
    assert refused(path, capsys) == f"sfmab: {path}: {message}\n"


def test_a_missing_file_and_a_ready_study_misspelt(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, hint in (("paper_claim", "did you mean paper_claims?"), ("x.toml", "choose from")):
        with pytest.raises(SystemExit) as stopped:
            main(["study", "run", name])
        assert stopped.value.code == 2
        assert hint in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_grids_multiply_and_label_what_varies():
    text = GOOD.replace("arms = 3", "arms = [2, 4]").replace("rounds = 50", "rounds = [50, 60, 70]")
    text = text.replace('"scale_free"', '"scale_free"\nbeta = [1, 2.5]')
    text = text.replace('"uniform"', '"uniform"\nscale = [1, 10]\ngap = [0.1, 0.2]')
    cells = plan_cells(parse_study(text, "grid.toml"))
    assert len(cells) == len({cell.identity for cell in cells}) == 2 * 3 * 2 * 2 * 2
    assert {cell.strategy for cell in cells} == {"adaptive beta=1", "adaptive beta=2.5"}
    assert {cell.losses for cell in cells} == {"dense gap=0.1", "dense gap=0.2"}


def test_references_and_horizons_are_filled_in():
    text = GOOD.replace('"scale_free"', '"scale_free"\nbeta = "@scale"')
    text = text.replace('"uniform"', '"switching"\nscale = 4')
    (cell,) = plan_cells(parse_study(text, "reference.toml"))
    assert cell.strategy_parameters["beta"] == 4.0
    assert cell.loss_parameters["num_rounds"] == 50


def test_identity_is_what_determines_the_numbers():
    def identity(text):
        return plan_cells(parse_study(text, "x.toml"))[0].identity

    same = [
        GOOD.replace("seeds = 4", "seeds = 400"),
        with_setting("pseudo_regret = false"),
        GOOD.replace("Good", "Other"),
        GOOD.replace("adaptive]", "mine]").replace("dense]", "other]"),
        with_losses("scale = 1"),
        with_losses("scale = [1.0, 2.0]\ngap = 0.2"),
    ]
    other = [
        with_losses("gap = 0.3"),
        with_strategy("beta = 2"),
        with_setting("seed = 1"),
        with_setting("sequences = 2"),
        with_setting("checkpoints = 3"),
        with_setting("rounds = 51"),
        with_setting('dtype = "float64"'),
        with_setting("pseudo_regret = true"),
    ]
    assert {identity(text) for text in same} == {identity(GOOD)}
    assert len({identity(GOOD), *map(identity, other)}) == 1 + len(other)


def test_every_strategy_and_family_can_be_studied_with_its_defaults():
    tables = [f"[strategies.{name}]" for name in STRATEGIES] + [f"[losses.{f}]" for f in LOSSES]
    cells = plan_cells(parse_study("rounds = 100\n" + "\n".join(tables), "all.toml"))
    assert len(cells) == len(STRATEGIES) * len(LOSSES)
    assert cost_of(cells, 64, this_machine()).num_rounds == len(cells) * 64 * 100


def test_certificates_are_planned():
    text = with_setting("certificates = true")
    assert plan_cells(parse_study(text, "x.toml"))[0].certificates


def test_pseudo_regret_needs_losses_that_know_their_means(tmp_path, capsys):
    (tmp_path / "recorded.csv").write_text("0.5,2,1\n" * 50)
    path = tmp_path / "study.toml"
    table = with_losses('path = "recorded.csv"', "from_file")
    path.write_text("pseudo_regret = true\n" + table)
    said = refused(path, capsys)
    assert "losses.dense: its expected losses are not known, in which pseudo_regret = true" in said
    path.write_text(table)
    assert not plan_cells(parse_study(table, str(path)))[0].pseudo_regret


def test_the_new_file_is_commented_and_good(tmp_path, capsys):
    path = tmp_path / "mine.toml"
    with pytest.raises(SystemExit) as stopped:
        main(["study", "new", str(path)])
    assert stopped.value.code == 0
    assert path.read_text().count("#") > 10
    with pytest.raises(SystemExit) as stopped:
        main(["study", "check", str(path), "--quick"])
    assert stopped.value.code == 0
    out = capsys.readouterr().out
    assert "12 cells" in out
    assert "rounds of games" in out
    assert "memory" in out
    with pytest.raises(SystemExit) as stopped:
        main(["study", "new", str(path)])
    assert stopped.value.code == 2
    assert capsys.readouterr().err.count("\n") == 1


@pytest.mark.parametrize("quick", [False, True])
def test_quick_forms_are_smaller(quick):
    for path in sorted(EXAMPLES.glob("*.toml")):
        table = tomllib.loads(path.read_text())
        assert {"title", "question", "quick"} <= table.keys()
    study = parse_study(GOOD + "[quick]\nseeds = 2", "x.toml", quick)
    assert study.seeds == (2 if quick else 4)
    assert parse_study(GOOD.replace("50", "5000"), "x.toml", True).rounds == (500,)
