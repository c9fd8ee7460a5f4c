"""Random configurations of `simulate` and of the command line, right and wrong ones.

Few shapes and many values: a case compiles nothing unless its strategy, its family and its number
of arms are new. ``python tests/helpers/fuzzing.py 10000 36000 0`` plays that many cases, for that
many seconds at most, from that seed, and prints what it met.
"""

import inspect
import os
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from pathlib import Path

import jax
import numpy as np
from right_commands import check_right_command
from watched import watched, what_was_seen
from wrong_commands import check_command

import sfmab_jax as sf
from sfmab_jax.strategies import STRATEGIES

ARMS = (1, 3)
ROUNDS = (1, 16, 33)
# Parameters of strategies and families by name: the ends of their range and between.
RIGHT: dict[str, tuple] = {
    "exploration": ("adaptive", "decaying"),
    "alpha": (1e-6, 0.5, 3.0, 1e6),
    "beta": (1e-6, 0.5, 1.0, 1e6),
    "scale": (1e-6, 0.5, 1.0, 3.0, 1e6),
    "decay": (0.0, 0.25, 0.5, 1.0),
    "lowest": (0.0,),
    "failure": (0.001, 0.05, 0.5),
    "centre": (0.0, 0.5, 1.0),
    "spread": (0.25, 1.0),
    "q": (1.5, 2.0, 8.0),
    "power": (0.25, 0.5, 0.75),
    "rate": (1e-6, 0.001, 0.006),
    "tail": (1.1, 1.5, 2.0),
    "size": (1e-3, 1.0, 100.0),
    "path_length": (0.0, 5.0, 1e6),
    "epsilon": (0.0, 0.1, 1.0),
    "learning_rate": (None, 0.01, 0.3),
    "arm": (0,),
    "num_rounds": (16, 10_000),
    "gap": (1e-6, 0.05, 0.1),
    "mean": (0.2, 0.5),
    "growth": (1.0, 1.6, 100.0),
    "degrees": (0.5, 1.0, 3.0, 100.0),
    "index": (0.5, 1.0, 3.0),
    "sigma": (0.01, 1.0, 4.0),
    "switches": (5,),
    "form": ("LS", "GD"),
    "sum_of_squares": (0.25, 10_000.0),
    "budget": (0, 100),
    "num_nonzero": (1,),
    "ratio": (1e-6, 1.0, 1e6),
    "exponent": (0.0, 1.0, 4.0),
    "factors": ((1.0, 100.0, 0.01), (1e-6, 1.0, 1e6)),
    "period": (2, 200),
    "step": (1e-6, 0.05, 1.0),
    "noise": (0.0, 0.1),
    "loss": (-1.0, 1.0),
    "constant": (0.01, 0.25),
}
NOT_NUMBERS = (float("nan"), float("inf"), -float("inf"), "x", None, [], 1e300, -1e300)
# What no argument of `simulate` may be.
WRONG: dict[str, tuple] = {
    "num_rounds": (0, -1, 2.5, "ten", True, 2**31, 2**70, float("nan")),
    "num_seeds": (0, -1, 1.5, "x", None, True, 2**31),
    "num_sequences": (0, -1, 2.5, "x", 2**31),
    "seed": (-1, 0.5, None, "x", 2**32, 2**70),
    "first_seed": (-1, 0.5, None, 2**31),
    "first_sequence": (-1, 0.5, "x", 2**31),
    "until": (3, "x", True, lambda results: True),
    "checkpoints": (0, -1, 2.5, None, "x", [], [0], [1.5], [[1]], [10**9], 10**9, {}),
    "dtype": ("float16", "x", np.int32, np.complex64, object, 3),
    "feedback": ("x", 3, True, []),
    "record": (3, "x", [], lambda state: "text"),
    "progress": (3, "yes", []),
    "devices": ([], 3, "cpu", ["cpu"], [None]),
    "chunk_rounds": (0, -1, 2.5, "x", 2**21),
    "engine": ("x", None, 3),
    "strategies": (None, {}, "exp3", [], {"a": None}, sf.strategies.exp3, 3),
    "certificate": ("yes", 3, None),
    "arm_counts": ("yes", 3, None),
    "pseudo_regret": ("yes", 3, None),
    "switches": (-1, 65, 2.5, "x", True, 2**70),
}
WRONG_LOSSES = (
    None, 3, "uniform", [], [[]], [[1.0, 2.0], [3.0]], [[np.nan]], [[np.inf, 0.0]], [[1j, 2.0]],
    [["a"]], np.zeros(3), np.zeros((0, 3)), np.zeros((2, 0)), np.zeros((1, 1, 1, 1)), {}, object(),
    np.full((2, 2), 1e39), np.full((2, 2), 1e-40), np.full((2, 2), 5e-324), sf.losses.uniform,
)  # fmt: skip


def parameters(rng, factory) -> dict:
    """Some of the parameters of a factory, with right values."""
    names = [name for name in inspect.signature(factory).parameters if name != "num_arms"]
    values = {name: RIGHT[name][rng.integers(len(RIGHT[name]))] for name in names}
    return {name: value for name, value in values.items() if rng.random() < 0.5 or name == "arm"}


def table(rng, num_arms: int, num_rounds: int) -> np.ndarray:
    """Losses in [0, 1] for strategies of known range, [rounds, n]."""
    shape = (num_rounds, num_arms)
    sizes = rng.uniform(-40, 0, (num_rounds, 1))
    kinds = (
        lambda: np.zeros(shape),
        lambda: np.full(shape, rng.random()),
        lambda: rng.random(shape),
        lambda: rng.integers(0, 2, shape).astype(np.float64),
        lambda: (rng.random(shape) < 0.05).astype(np.float64),
        lambda: rng.random(shape) * 10.0 ** (sizes - sizes.max()),
        lambda: np.tile(np.arange(num_rounds)[:, None] % 2.0, (1, num_arms)),
    )
    return kinds[rng.integers(len(kinds))]()


def wide_table(rng, num_arms: int, num_rounds: int) -> np.ndarray:
    """Losses of any sign and scale, for strategies that are told nothing."""
    sign = rng.choice([1.0, -1.0], (num_rounds, 1 if rng.random() < 0.5 else num_arms))
    return table(rng, num_arms, num_rounds) * sign * 10.0 ** rng.uniform(-25, 36)


def right_case(rng, strategies, families) -> tuple:
    """(strategy, its parameters, losses, options of simulate)."""
    name = strategies[rng.integers(len(strategies))]
    num_arms, num_rounds = int(rng.choice(ARMS)), int(rng.choice(ROUNDS))
    given = parameters(rng, STRATEGIES[name])
    if name in ("scale_free", "ahb", "ahb_published_code", "ada_hedge", "uniform"):
        losses = wide_table(rng, num_arms, num_rounds)
    else:
        losses = given.get("scale", 1.0) * table(rng, num_arms, num_rounds)
    if families and rng.random() < 0.3:
        family = families[rng.integers(len(families))]
        make = sf.losses.LOSSES[family]
        num_arms = max(num_arms, 2) if family == "neu_switch" else num_arms
        losses = make(num_arms=num_arms, **parameters(rng, make))
    options = {"num_rounds": num_rounds, "num_seeds": int(rng.integers(1, 9))}
    options |= {"seed": int(rng.integers(2**32)), "first_seed": int(rng.integers(2**31))}
    if families and name in UNUSUALLY_PLAYED and rng.random() < 0.3:
        options |= unusual(rng, losses)
    return name, given, losses, options


# Each is a program of its own, so few strategies are played with them.
UNUSUAL: dict[str, tuple] = {
    "dtype": ("float64", np.float64),
    "checkpoints": (3, [1], np.array([1])),
    "num_sequences": (3,),
    "feedback": ("full", "bandit"),
    "chunk_rounds": (1, 7),
    "progress": (lambda rounds: None,),
}
UNUSUALLY_PLAYED = ("scale_free", "tsallis_inf", "exp3", "ucb1")


def unusual(rng, losses) -> dict:
    """One option of `simulate` that is not as usual."""
    name = list(UNUSUAL)[rng.integers(len(UNUSUAL))]
    if name == "num_sequences" and isinstance(losses, np.ndarray):
        return {}  # for families only
    if name == "dtype" and not jax.config.jax_enable_x64:
        return {}  # until a command has asked for it
    return {name: UNUSUAL[name][rng.integers(len(UNUSUAL[name]))]}


def play(name, given, losses, options, certificate: bool):
    """One game or a few through the engine; with the certificates, or watched round by round."""
    bandit = STRATEGIES[name](**given)
    how = {"checkpoints": 1, "chunk_rounds": 16, "dtype": "float32", "progress": False}
    how = {key: value for key, value in how.items() if key not in options}
    if certificate:
        return sf.simulate(bandit, losses, **how, certificate=True, **options)
    return sf.simulate(watched(bandit), losses, **how, record=what_was_seen, **options)


def check_right(rng, strategies, families) -> str:
    """Plays a right case; raises AssertionError with the case where something is off."""
    name, given, losses, options = case = right_case(rng, strategies, families)
    certificate = name == "scale_free" and rng.random() < 0.5
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = play(name, given, losses, options, certificate)
    assert np.isfinite(result.regret).all(), case
    assert np.isfinite(result.expected_regret).all(), case
    if certificate:
        assert (result.certificate.violations == 0).all(), case
    else:
        worst_sum, lowest, all_finite = result.records
        assert worst_sum.max() <= 20 * np.finfo(np.float32).eps, case
        assert lowest.min() >= 0, case
        assert all_finite.min() == 1, case
    return f"{name}{' with certificate' if certificate else ''}"


def check_wrong(rng) -> str:
    """A wrong argument is refused by a ValueError raised in this package before anything runs."""
    kind = rng.integers(3)
    how = {"num_rounds": 4, "num_seeds": 2, "progress": False}
    how |= {"strategies": sf.strategies.scale_free(), "losses": np.ones((4, 2))}
    if kind == 0:
        name = list(WRONG)[rng.integers(len(WRONG))]
        value = WRONG[name][rng.integers(len(WRONG[name]))]
        call, what = lambda: sf.simulate(**(how | {name: value})), f"{name}={value!r}"
    elif kind == 1:
        value = WRONG_LOSSES[rng.integers(len(WRONG_LOSSES))]
        call, what = lambda: sf.simulate(**(how | {"losses": value})), f"losses={value!r}"
    else:
        factories = STRATEGIES | {f"losses.{name}": f for name, f in sf.losses.LOSSES.items()}
        names = [name for name, f in factories.items() if inspect.signature(f).parameters]
        name = names[rng.integers(len(names))]
        listed = list(inspect.signature(factories[name]).parameters.items())
        parameter, described = listed[rng.integers(len(listed))]
        # None stands for a default in some; no switches at all are right.
        wrong = NOT_NUMBERS if described.default is not None else NOT_NUMBERS[:4]
        wrong = NOT_NUMBERS[:4] if parameter == "switches" else wrong
        value = wrong[rng.integers(len(wrong))]
        what = f"{name}({parameter}={value!r})"

        def call():
            made = factories[name](**{parameter: value})
            key = "losses" if name.startswith("losses.") else "strategies"
            extra = {"losses": sf.losses.zero(num_arms=2)} if key == "strategies" else {}
            sf.simulate(**(how | extra | {key: made}))

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        error = error_of(call)
    assert isinstance(error, ValueError), f"{what}: {type(error).__name__}: {error}"
    last = traceback.extract_tb(error.__traceback__)[-1].filename
    assert f"sfmab_jax{os.sep}" in last, f"{what}: raised in {last}: {error}"
    assert "\n" not in str(error), what
    return what


def error_of(call) -> Exception | None:
    try:
        call()
    except Exception as error:
        return error
    return None


def note(failed: Counter, text: str) -> bool:
    """Counts a failure, and prints it if it is the first of its kind."""
    text = " ".join(text.split())
    failed[text[:70]] += 1
    if failed[text[:70]] == 1:
        print(text[:600], flush=True)
    return failed[text[:70]] == 1


def fuzz(count: int, seconds: float, seed: int = 0) -> None:
    """Half of the cases right, half wrong, a quarter of all command lines; prints what failed."""
    kinds = {
        "right": lambda: check_right(rng, strategies, families),
        "right command": lambda: check_right_command(rng, Path(folder)),
        "wrong": lambda: check_wrong(rng),
        "wrong command": lambda: check_command(rng, Path(folder)),
    }
    shares = (0.42, 0.08, 0.33, 0.17)
    rng = np.random.default_rng(seed)
    strategies, families = tuple(STRATEGIES), tuple(sf.losses.LOSSES)
    met, failed, began = Counter(), Counter(), time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        for number in range(count):
            if time.monotonic() - began > seconds:
                print(f"stopped by the clock after {number} cases")
                break
            kind = str(rng.choice(list(kinds), p=shares))
            try:
                kinds[kind]()
            except AssertionError as error:
                note(failed, f"FAILED {kind} {error}")
            except Exception as error:
                if note(failed, f"RAISED {kind} {type(error).__name__} {error}"):
                    traceback.print_exc(limit=-3)
            for path in Path(folder).iterdir():  # what a failed case has left
                path.unlink()
            met[kind] += 1
            if number % 500 == 0:
                print(number, dict(met), f"{time.monotonic() - began:.0f} s", flush=True)
    print("cases", dict(met), "failed", sum(failed.values()), f"{time.monotonic() - began:.0f} s")


if __name__ == "__main__":
    fuzz(int(sys.argv[1]), float(sys.argv[2]), int(sys.argv[3]) if len(sys.argv) > 3 else 0)
