"""Study files: what they mean; a malformed one is one line, exit code 2 and nothing written."""

import tomllib

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from sfmab_jax.cli import main
from sfmab_jax.losses import LOSSES
from sfmab_jax.strategies import STRATEGIES
from sfmab_jax.study.config import EXAMPLES, parse_study
from sfmab_jax.study.cost import cost_of, this_machine
from sfmab_jax.study.plan import plan_cells

GOOD = """
title = "Good"
arms = 3
rounds = 50
seeds = 4
[strategies.adaptive]
strategy = "scale_free"
[losses.dense]
family = "uniform"
"""


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


def with_setting(line: str) -> str:
    """GOOD with this line in place of what it sets."""
    key = line.split("=")[0].strip()
    kept = [old for old in GOOD.splitlines() if not old.startswith(f"{key} =")]
    return "\n".join([line, *kept])


def with_strategy(line: str) -> str:
    return GOOD.replace('strategy = "scale_free"', f'strategy = "scale_free"\n{line}')


def with_losses(line: str, family: str = "uniform") -> str:
    return GOOD.replace('family = "uniform"', f'family = "{family}"\n{line}')


SETTINGS = [
    "seeds = 0", "seeds = -1", "seeds = 1.5", 'seeds = "many"', "seeds = true", "seeds = [1, 2]",
    "seeds = 99999999999999999999", "seeds = {}", "seeds = 2020-01-01", "seeds = nan",
    "arms = 0", "arms = -3", "arms = []", "arms = [3, 3]", "arms = [3, 0]", 'arms = ["3"]',
    "arms = 3.0", "arms = [[3]]", "arms = true", "arms = 10000000000", "arms = inf",
    "rounds = 0", "rounds = []", "rounds = 1e4", "rounds = [10, 10]", "rounds = -5",
    "rounds = [10, 0]", 'rounds = "1000"', "rounds = 3000000000", "rounds = 07:32:00",
    "sequences = 0", "sequences = 1.0", "sequences = [1]", "sequences = -2", 'sequences = ""',
    "seed = -1", "seed = 4294967296", 'seed = "0"', "seed = 0.0", "seed = [0]", "seed = false",
    "checkpoints = 0", "checkpoints = []", "checkpoints = [0]", "checkpoints = [1, 1]",
    "checkpoints = -1", "checkpoints = 20000", "checkpoints = [1.5]", 'checkpoints = "all"',
    "checkpoints = true", "checkpoints = [[1]]",
    'dtype = "float16"', "dtype = 32", 'dtype = "flaot32"', 'dtype = ["float32"]', "dtype = {}",
    "certificates = 1", 'certificates = "yes"', "certificates = []",
    "title = 5", "title = []", "title = true", 'title = "a\\u0000b"', "question = 1",
    "output = 7", "output = []", "output = true",
    "sedes = 5", "round = 10", "Seeds = 5", "strategy = 1", "family = 1", "scale = 1.0", "n = 3",
    "quick = 5", "quick = []", "quick = { seeds = 0 }", "quick = { seed = 1 }",
    "quick = { rounds = [] }", "quick = { title = 'x' }", "quick = { arms = 'x' }",
    "strategies = 5", "strategies = []", "losses = 5", 'losses = ["uniform"]',
]  # fmt: skip
STRATEGY_LINES = [
    'exploration = "adaptve"', "exploration = 1", "exploration = []",
    'exploration = ["adaptive", 1]',
    "exploration = true", "beta = nan", "beta = inf", 'beta = "1"', "beta = true", "beta = []",
    "beta = [1, 1.0]", "beta = [[1.0]]", "beta = {}", "beta = 2020-01-01", 'beta = "@scal"',
    'beta = "@"', 'beta = "@uniform"', "bata = 1.0", "alpha = 'n'", "alpha = -inf", "num_arms = 3",
    "learning_rate = 0.1", 'strategy = "exp4"', "exploration = { a = 1 }",
    'alpha = ["@scale", "x"]',
    "[strategies.other]", "[strategies.other]\nstrategy = 5", "[strategies.'a|b']",
    "[strategies.'']",
    "[strategies.'$x$']\nstrategy = 'scale_free'", "[strategies]\nx = 5",
    "[[strategies.list]]", "[strategies.é]\nstrategy = 'scale_free'",
]  # fmt: skip
LOSS_LINES = [
    "scale = 0", "scale = 0.0", "scale = -1", "scale = nan", "scale = inf", 'scale = "1"',
    "scale = []", "scale = [1, 1]", "scale = [1, 0]", "scale = [[1]]", "scale = 1e300",
    "scale = 1e-300", "scale = 1e39", "scale = true", "scale = {}", 'scale = "@scale"',
    "gap = 'wide'", "gap = nan", "gap = []", "gpa = 0.2", "num_arms = 3", "rate = 0.1",
    "scale = 1" + "0" * 400, "gap = [0.1, 'x']", 'family = "uniform"', "gap = 1979-05-27T07:32:00Z",
]  # fmt: skip
OTHER_FAMILIES = [
    ("unifrom", ""), ("", ""), ("UNIFORM", ""), ("zeros", ""), ("from_file", ""),
    ("bernoulli", "mean = 2.0"), ("bernoulli", "mean = -0.5"), ("sparse", "rate = 2"),
    ("sparse", "num_nonzero = 1.5"), ("sparse", "num_nonzero = 9"), ("switching", "switches = 1.5"),
    ("switching", "switches = ['a']"), ("student_t", "degrees = 0"), ("pareto", "index = -1"),
    ("scale_regimes", "factors = [1.0, 2.0]"), ("scale_regimes", "period = 0"),
    ("one_arm", "arm = 7"), ("one_arm", "arm = 0.5"), ("log_normal", "sigma = 0"),
]  # fmt: skip
WHOLE = [
    "", " ", "\n\n", "#", "=", "[", "]", "x", "title", "title =", 'title = "', "[strategies",
    "[strategies]", "[losses]", "[strategies]\n[losses]", GOOD + GOOD, GOOD + "\n[losses.dense]",
    GOOD.replace("[losses.dense]", ""), GOOD.replace("[strategies.adaptive]", ""),
    GOOD.replace("[losses.dense]", "[loses.dense]"), GOOD.replace("=", ":"),
    GOOD.replace("=", "=="), GOOD.replace('"', "\u201d"), GOOD[: len(GOOD) // 2], "{}", "[]",
    "null", '{"title": "json"}', "title: yaml\n", "<xml/>", "\ufeff" + GOOD, "\x00", GOOD + "\x00",
    "a = " + "[" * 5000, "a = " + "{a = " * 2000, "a.b.c.d = 1", "1 = 1", "'' = 1",
    "[strategies.x]\n[losses.x]", "x" * 2_000_000,
    with_setting("arms = [" + ", ".join(map(str, range(1, 200))) + "]").replace(
        "rounds = 50", "rounds = [" + ", ".join(map(str, range(1, 200))) + "]"
    ),
]  # fmt: skip
HAND_MADE = [
    *map(with_setting, SETTINGS),
    *map(with_strategy, STRATEGY_LINES),
    *map(with_losses, LOSS_LINES),
    *(with_losses(line, family) for family, line in OTHER_FAMILIES),
    *WHOLE,
]


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
