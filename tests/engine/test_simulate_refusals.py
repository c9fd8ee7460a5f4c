"""What `simulate` refuses, and how it ends when a strategy fails or it is interrupted."""

import re
import sys
import threading

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from simulated import ADAPTIVE, UNIFORM, run_python, table_of

import sfmab_jax as sf
from sfmab_jax.engine.progress import Progress

pytestmark = pytest.mark.quick

TABLE = np.zeros((20, 2))
FAMILY = sf.losses.uniform(num_arms=2)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"strategies": {}}, "strategies is empty"),
        ({"strategies": sf.strategies.scale_free}, "function scale_free"),
        ({"strategies": "scale_free"}, "'scale_free'"),
        ({"strategies": {"mine": None}}, "'mine' is None"),
        ({"strategies": [ADAPTIVE]}, "give a Bandit"),
        ({"losses": np.zeros(3)}, r"shape \(3,\)"),
        ({"losses": [[1.0, np.nan]]}, "nan at round 1, arm 1"),
        ({"losses": [["a", "b"]]}, "dtype <U1"),
        ({"losses": None}, "dtype object"),
        ({"losses": np.full((20, 2), 1e39)}, "1e[+]39, beyond the range of float32"),
        ({"losses": np.full((20, 2), 1e-39)}, "1e-39, beyond the range of float32"),
        ({"num_rounds": 0}, "num_rounds is 0"),
        ({"num_rounds": -5}, "num_rounds is -5"),
        ({"num_rounds": 21}, "num_rounds is 21; the losses have only 20"),
        ({"num_rounds": 10.0}, "num_rounds is 10.0"),
        ({"num_rounds": "ten"}, "num_rounds is 'ten'"),
        ({"num_rounds": True}, "num_rounds is True"),
        ({"num_rounds": 2**31, "losses": FAMILY}, "num_rounds is 2147483648"),
        ({"num_seeds": 0}, "num_seeds is 0"),
        ({"num_seeds": 1.5}, "num_seeds is 1.5"),
        ({"num_seeds": None}, "num_seeds is None"),
        ({"num_sequences": 0}, "num_sequences is 0"),
        ({"num_sequences": 2}, "num_sequences is 2; the losses have only 1"),
        ({"num_sequences": 2.5, "losses": FAMILY}, "num_sequences is 2.5"),
        ({"seed": -1}, "seed is -1"),
        ({"seed": 0.5}, "seed is 0.5"),
        ({"seed": 2**64}, "seed is 18446744073709551616"),
        ({"first_seed": -1}, "first_seed is -1"),
        ({"first_seed": 2**31}, "first_seed is 2147483648"),
        ({"checkpoints": 0}, "checkpoints is 0"),
        ({"checkpoints": -2}, "checkpoints is -2"),
        ({"checkpoints": 2.5}, "checkpoints is 2.5"),
        ({"checkpoints": None}, "checkpoints is None"),
        ({"checkpoints": "all"}, "checkpoints is 'all'"),
        ({"checkpoints": []}, r"checkpoints are \[\]"),
        ({"checkpoints": [1.5, 3.0]}, r"checkpoints are \[1.5, 3.0\]"),
        ({"checkpoints": [[1, 2], [3, 4]]}, r"checkpoints are \[\[1, 2\], \[3, 4\]\]"),
        ({"checkpoints": [0, 5]}, "checkpoints run from 0 to 20"),
        ({"checkpoints": [5, 21]}, "checkpoints run from 5 to 21"),
        ({"dtype": "float16"}, "dtype is float16"),
        ({"dtype": jnp.int32}, "dtype is int32"),
        ({"dtype": "single precision"}, "dtype is 'single precision'"),
        ({"record": "play"}, "record is 'play'"),
        ({"record": lambda state: state.eta}, r"record fails: .* no attribute 'eta' \(line \d+ of"),
        ({"record": lambda state: "play"}, "record returned 'play'; return arrays"),
        ({"devices": []}, r"devices is \[\]"),
        ({"devices": ["cpu"]}, "devices has 'cpu'"),
        ({"devices": 2}, "devices is 2"),
        ({"chunk_rounds": 0}, "chunk_rounds is 0"),
        ({"chunk_rounds": -1}, "chunk_rounds is -1"),
        ({"chunk_rounds": 2.5}, "chunk_rounds is 2.5"),
    ],
    ids=lambda value: re.sub(r"0x\w+|\W+", "_", str(value))[:40],
)
def test_bad_arguments_are_refused_by_value(arguments, message, monkeypatch):
    """At once: nothing has been played when the message comes."""

    def play(*jobs):
        raise AssertionError("games are played")

    monkeypatch.setattr(sys.modules["sfmab_jax.simulate"], "run_jobs", play)
    arguments = {"strategies": ADAPTIVE, "losses": TABLE, **arguments}
    with pytest.raises(ValueError, match=message):
        sf.simulate(**arguments)


def test_float64_must_be_enabled():
    """The message says how."""
    script = """
import sfmab_jax as sf
try:
    sf.simulate(sf.strategies.scale_free(), [[1.0, 2.0]], dtype="float64")
except ValueError as error:
    print(error)
"""
    done = run_python(script)
    assert done.returncode == 0, done.stderr
    assert "jax.config.update('jax_enable_x64', True)" in done.stdout
    assert "JAX_ENABLE_X64=1" in done.stdout


def test_interruption_stops_the_threads(monkeypatch):
    """Ctrl-C is met between chunks; the message says how to go on."""
    calls = []

    def interrupt(self):
        calls.append(self.done)
        raise KeyboardInterrupt

    threads = set(threading.enumerate())
    monkeypatch.setattr(Progress, "draw", interrupt)
    with pytest.raises(KeyboardInterrupt) as caught:
        sf.simulate(
            UNIFORM,
            sf.losses.gaussian(num_arms=3),
            num_rounds=1_000_000_000,
            num_seeds=4096,
            chunk_rounds=64,
            seed=9,
        )
    assert len(calls) == 1
    message = str(caught.value)
    assert "of 4,096,000,000,000 rounds" in message
    assert "seed=9" in message
    assert "first_seed" in message
    assert set(threading.enumerate()) <= threads


def test_errors_of_a_strategy_reach_the_caller():
    """An exception in a worker thread is raised, and the threads end."""

    def broken(state, seen):
        raise RuntimeError("no such rule")

    bandit = sf.compose(
        sf.sampling.as_played()._replace(update=broken),
        sf.estimation.importance_weighted(),
        sf.full_information.ftrl(sf.potentials.log_barrier(), 0.1),
    )
    threads = set(threading.enumerate())
    with pytest.raises(RuntimeError, match="no such rule"):
        sf.simulate(bandit, table_of(48, 3), num_seeds=2)
    assert set(threading.enumerate()) <= threads


def test_an_arm_that_there_is_not():
    with pytest.raises(ValueError, match="arm is 7; there are 3 arms: give 0 to 2"):
        sf.simulate(sf.strategies.fixed_arm(7), [[1.0, 0.0, 0.5]])


def test_a_random_key_in_the_state():
    """Refused though another bandit of bare functions was just found to be good."""
    good = sf.Bandit(
        init=lambda n, dtype=jnp.float32, loss_unit=1.0: jnp.full(n, 1 / n, dtype),
        probabilities=lambda state: state,
        update=lambda state, arm, loss: state,
    )
    sf.simulate(good, [[1.0, 0.0]], num_seeds=1)
    bandit = sf.Bandit(
        init=lambda n, dtype=jnp.float32, loss_unit=1.0: (
            jnp.full(n, 1 / n, dtype),
            jax.random.key(0),
        ),
        probabilities=lambda state: state[0],
        update=lambda state, arm, loss: state,
    )
    with pytest.raises(ValueError, match=r"has a random key in state\[1\]; parts are pure"):
        sf.simulate(bandit, [[1.0, 0.0]])
