"""Wrong command lines, drawn at random from tables of wrong values."""

import contextlib
import io
from pathlib import Path

COMMANDS: dict[str, dict[str, tuple[str, ...]]] = {
    "run": {
        "--arms": ("0", "-1", "x", "1.5", "", "16777217", "1e3"),
        "--rounds": ("0", "-1", "x", "2147483648", "99999999999999999999"),
        "--seeds": ("0", "-3", "many", "2147483648"),
        "--seed": ("-1", "4294967296", "0x1", "None"),
        "--losses": ("", ",", "unifrom", "uniform,,x", "uniform;sparse", "../uniform"),
        "--strategies": ("", ",", "exp4", "scale_free,exp4"),
        "--exploration": ("", "sometimes", "ADAPTIVE"),
        "--scales": ("", "x", "0", "-1", "nan", "inf", "1e39", "1e-40", "1,x", "1,0", "1,1e39"),
        "--dtype": ("", "float16", "double", "int32"),
        "--devices": ("0", "-1", "x", "1025"),
        "--output": ("", "picture", "picture.jpeg2", "nowhere/picture.png", ".png"),
        "--sweep": ("", "worlds", "both_worlds"),
        "--sweep both-worlds --losses": ("uniform", ""),
        "--sweep both-worlds --scales": ("1", "x"),
        "--sweep both-worlds --rounds": ("1", "99", "x"),
        "--unknown": ("1",),
    },
    "losses": {
        "": ("unifrom", "", "sparse uniform"),
        "uniform --arms": ("0", "-1", "x"),
        "uniform --rounds": ("0", "-1", "x", "2147483648"),
        "uniform --seed": ("-1", "x", "4294967296"),
        "uniform --scale": ("0", "-1", "nan", "inf", "x", "1e39"),
        "uniform --plot --output": ("picture", "nowhere/picture.png"),
    },
    "list": {"": ("everything", "strategies losses"), "--all": ("",)},
    "verify": {"--dtype": ("float16", ""), "--effort": ("x", "0", "-1"), "--seed": ("x", "-1")},
    "bench": {
        "--arms": ("0", "x", "-1"),
        "--rounds": ("0", "x"),
        "--seeds": ("0", "1", "x"),
        "--repeats": ("0", "x", "-1"),
    },
    "worst-case": {
        "--arms": ("0", "x", "-1"),
        "--rounds": ("0", "x", "-1", "2147483648"),
        "--strategies": ("", "exp4"),
        "--exploration": ("", "sometimes"),
        "--constraint": ("", "ball", "box"),
        "--size": ("0", "-1", "nan", "inf", "x"),
        "--constraint sparse --sparsity": ("0", "-1", "x"),
        "--rivals": ("", "unifrom"),
        "--steps": ("-1", "x"),
        "--restarts": ("0", "-1", "x"),
        "--seeds": ("0", "-1", "x"),
        "--score-seeds": ("0", "1", "x"),
        "--seed": ("-1", "x", "4294967296"),
        "--output": ("picture", "nowhere/picture.png"),
    },
    "plan": {
        "": ("", "nowhere.toml", "."),
        "paper_claims --devices": ("0", "-1", "x", "1000001"),
        "paper_claims --memory": ("", "x", "0", "-1GB", "nan"),
        "paper_claims --rounds-per-second": ("0", "-1", "x", "nan", "inf"),
    },
    "study": {
        "check": ("nowhere.toml", "", "."),
        "run": ("nowhere.toml", "", "."),
        "report": ("nowhere", ""),
        "play": ("x",),
    },
    "rum": {"": ("", "x")},
}


def check_command(rng, folder: Path) -> str:
    """A wrong command line: exit code 2, one line on stderr, nothing printed or written."""
    command = list(COMMANDS)[rng.integers(len(COMMANDS))]
    option = list(COMMANDS[command])[rng.integers(len(COMMANDS[command]))]
    values = COMMANDS[command][option]
    value = values[rng.integers(len(values))]
    arguments = [command, *option.split(), *([value] if option else value.split())]
    if command == "run" and rng.random() < 0.5:  # a right option beside the wrong one
        right = ("--arms", "3"), ("--rounds", "20"), ("--seeds", "4"), ("--scales", "1,2")
        name, number = right[rng.integers(len(right))]
        arguments += [name, number] if name != option else []
    code, printed, said = run_command(arguments, folder)
    what = " ".join(repr(argument) for argument in arguments)
    assert code == 2, f"{what}: exit code {code}: {said}"
    assert said.count("\n") == 1, f"{what}: {said}"
    assert said.startswith("sfmab: "), f"{what}: {said}"
    assert len(said) > len("sfmab: \n"), what
    assert not printed, f"{what}: {printed}"
    assert not list(folder.iterdir()), f"{what}: wrote {list(folder.iterdir())}"
    return command


def run_command(arguments, folder: Path) -> tuple[object, str, str]:
    """(exit code, stdout, stderr) of the console command, in this process."""
    from sfmab_jax.cli.main import main

    printed, said = io.StringIO(), io.StringIO()
    with (
        contextlib.chdir(folder),
        contextlib.redirect_stdout(printed),
        contextlib.redirect_stderr(said),
    ):
        try:
            main(arguments)
        except SystemExit as end:
            return end.code, printed.getvalue(), said.getvalue()
        except BaseException as error:
            return f"{type(error).__name__}: {error}", printed.getvalue(), said.getvalue()
    return "none", printed.getvalue(), said.getvalue()
