"""Right command lines, drawn at random: small runs that must end well and write what they say."""

import csv
from pathlib import Path

from study_texts import GOOD
from wrong_commands import run_command

import sfmab_jax as sf
from sfmab_jax.strategies import STRATEGIES


def run_line(rng) -> tuple[list[str], int, str]:
    """(`sfmab run` with few rounds and games, rows of its table, the picture)."""

    def one_of(values) -> str:
        return str(values[rng.integers(len(values))])

    def some_of(values) -> list[str]:
        return [str(value) for value in rng.choice(list(values), int(rng.integers(1, 3)), False)]

    families, names = some_of(sf.losses.LOSSES), some_of(STRATEGIES)
    scales, exploration = some_of(("1e-6", "0.5", "1", "1e6")), one_of(("adaptive", "both"))
    picture = f"picture{one_of(('.png', '.svg', '.pdf'))}"
    needed = 2 if "neu_switch" in families else 1
    options = {
        "--arms": one_of((needed, 3)),
        "--rounds": one_of((1, 16, 33)),
        "--seeds": one_of((1, 2, 8)),
        "--seed": one_of((0, 7, 2**32 - 1)),
        "--losses": ",".join(families),
        "--strategies": ",".join(names),
        "--exploration": exploration,
        "--scales": ",".join(scales),
        "--dtype": one_of(("float32", "float32", "float64")),
        "--output": picture,
    }
    together = len(names) + (exploration == "both" and "scale_free" in names)
    line = [word for option in options.items() for word in option]
    return ["run", *line], len(families) * len(scales) * together, picture


def check_right_command(rng, folder: Path) -> str:
    """A right command line: exit code 0, no traceback, finite numbers, no file but those named."""
    kind, rows, wanted = rng.integers(4), 0, set()
    if kind == 0:
        arguments, rows, picture = run_line(rng)
        wanted = {picture, "picture.csv"}
    elif kind == 1:
        arguments = ["list", ("strategies", "losses", "all")[rng.integers(3)]]
    elif kind == 2:
        name = list(sf.losses.LOSSES)[rng.integers(len(sf.losses.LOSSES))]
        numbers = ["--arms", "3", "--rounds", "33", "--seed", str(rng.integers(2**32))]
        arguments = ["losses", name, *numbers, "--scale", str(10.0 ** rng.uniform(-6, 6))]
    else:
        (folder / "study.toml").write_text(GOOD)
        machine = ["--devices", str(rng.integers(1, 100)), "--memory", f"{rng.integers(1, 90)}GB"]
        speed = ["--rounds-per-second", str(10.0 ** rng.uniform(4, 9))]
        planned = ["plan", "study.toml", *machine, *speed]
        arguments = planned if rng.random() < 0.5 else ["study", "check", "study.toml"]
        wanted = {"study.toml"}
    code, printed, said = run_command(arguments, folder)
    what = " ".join(arguments)
    assert code == 0, f"{what}: exit code {code}: {said}"
    assert "Traceback" not in said, f"{what}: {said}"
    assert printed, what
    assert {path.name for path in folder.iterdir()} == wanted, f"{what}: {list(folder.iterdir())}"
    if rows:
        table = list(csv.DictReader((folder / "picture.csv").open()))
        assert len(table) == rows, f"{what}: {len(table)} rows, not {rows}"
        for row in table:
            # The interval of one game has no width that is known.
            known = ("regret",) if "--seeds 1 " in what else ("regret", "low", "high")
            assert all(abs(float(row[name])) < 1e30 for name in known), f"{what}: {row}"
    for path in folder.iterdir():
        path.unlink()
    return arguments[0]
