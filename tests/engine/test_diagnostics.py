"""The engine under JAX's own watchdogs: numbers that are none, keys used twice, leaks, transfers.

In processes of their own and by environment variables, as games are played in threads, which
context managers of the caller do not reach.
"""

import os
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tiers import some_in_default

import sfmab_jax as sf
from sfmab_jax.engine.layout import cpu_games_per_call
from sfmab_jax.engine.rounds import begin_group
from sfmab_jax.engine.run import _program_finder

GAMES = """
import numpy as np
import sfmab_jax as sf
how = dict(num_rounds=40, num_seeds=4, checkpoints=3, chunk_rounds=16, progress=False)
strategies = {option: sf.strategies.scale_free(option) for option in OPTIONS}
result = sf.simulate(strategies, sf.losses.sparse(num_arms=3), certificate=True, **how)
assert all(np.isfinite(r.regret).all() for r in result.values())
assert sum(r.certificate.violations.sum() for r in result.values()) == 0
others = {name: sf.strategies.STRATEGIES[name]() for name in NAMES}
result = sf.simulate(others, sf.losses.random_walk(num_arms=3), **how)
assert all(np.isfinite(r.regret).all() for r in result.values())
print("played")
"""
# Every loss family and what is made of them, where keys are split and folded.
LOSSES = """
import jax
import numpy as np
import sfmab_jax as sf
families = {name: make(num_arms=3) for name, make in sf.losses.LOSSES.items()}
some = [families["gaussian"], families["switching"]]
families["mixed"] = sf.losses.permuted(sf.losses.mixed(some, [1.0, 2.0]))
families["concatenated"] = sf.losses.concatenated(some, [8])
def two_rounds(losses):
    key = jax.random.key(0)
    state, first = losses.next(losses.init(key), key, np.int32(1))
    return first, losses.next(state, key, np.int32(2))[1]
rounds = jax.jit(lambda: {name: two_rounds(losses) for name, losses in families.items()})()
for name, losses in rounds.items():
    assert np.isfinite(losses).all(), name
print("played")
"""
# A gradient, a search by gradients, and a descent on parameters.
SEARCHES = """
import numpy as np
import sfmab_jax as sf
few = dict(num_restarts=2, num_steps=3, num_seeds=8, score_seeds=64)
value, slope = sf.exact_gradient(sf.strategies.scale_free(), np.eye(2, dtype=np.float32))
assert np.isfinite(slope).all()
found = sf.worst_case(sf.strategies.scale_free(), 2, 8, rivals=["uniform"], **few)
assert np.isfinite(found.score.value)
losses = sf.losses.bernoulli(num_arms=2)
tuned = sf.tune(sf.strategies.scale_free, {"beta": (0.1, 2.0)}, losses, num_rounds=8, **few)
assert np.isfinite(tuned.score.value)
print("played")
"""
# One of each kind of potential and estimator.
NAMES = ("tsallis_inf", "ahb", "broad", "exp3_ix", "ada_hedge", "ucb1")
OPTIONS = ("adaptive", "decaying")


def run_under(variable: str, script: str):
    return subprocess.run(
        [sys.executable, "-c", script],
        env=os.environ | {variable: "1", "JAX_ENABLE_X64": "0"},
        capture_output=True,
        text=True,
        timeout=300,
    )


def games_of(names, options) -> str:
    return f"NAMES, OPTIONS = {names!r}, {options!r}\n{GAMES}"


@pytest.mark.parametrize(
    ("variable", "names", "options"),
    some_in_default(
        [
            ("JAX_DEBUG_NANS", NAMES[:1], OPTIONS[:1]),
            ("JAX_DEBUG_NANS", NAMES[1:], OPTIONS[1:]),
            ("JAX_DEBUG_KEY_REUSE", NAMES, OPTIONS),
        ],
        [("JAX_DEBUG_NANS", NAMES[:1], OPTIONS[:1])],
    ),
)
def test_games_under(variable, names, options):
    done = run_under(variable, games_of(names, options))
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.split() == ["played"]


@pytest.mark.parametrize(
    "variable",
    some_in_default(
        ["JAX_DEBUG_NANS", "JAX_DEBUG_KEY_REUSE", "JAX_CHECK_TRACER_LEAKS"],
        ["JAX_DEBUG_KEY_REUSE"],
    ),
)
def test_losses_under(variable):
    done = run_under(variable, LOSSES)
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.split() == ["played"]


@pytest.mark.full
@pytest.mark.parametrize("variable", ["JAX_DEBUG_NANS", "JAX_DEBUG_KEY_REUSE"])
def test_searches_under(variable):
    done = run_under(variable, SEARCHES)
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.split() == ["played"]


@pytest.mark.full
def test_games_leak_no_tracers():
    """Fewer strategies: every call is traced anew under this check."""
    done = run_under("JAX_CHECK_TRACER_LEAKS", games_of(NAMES[:2], OPTIONS))
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.split() == ["played"]


@pytest.mark.parametrize(
    ("variable", "script", "named"),
    [
        ("JAX_DEBUG_NANS", "import jax.numpy as jnp; jnp.log(-1.0)", "FloatingPointError"),
        (
            "JAX_DEBUG_KEY_REUSE",
            "import jax; k = jax.random.key(0); jax.random.bits(k); jax.random.bits(k)",
            "KeyReuseError",
        ),
        (
            "JAX_CHECK_TRACER_LEAKS",
            "import jax; kept = []; jax.jit(lambda x: kept.append(x))(1.0)",
            "Leaked",
        ),
    ],
)
def test_the_watchdogs_bark(variable, script, named):
    """What the tests above rely on: each notices what it is for."""
    done = run_under(variable, script)
    assert done.returncode != 0
    assert named in done.stderr


def test_nothing_is_transferred_within_a_chunk():
    """With everything on the device, rounds are played with all transfers forbidden."""
    num_arms, rounds = 3, 16
    width = cpu_games_per_call(num_arms)
    bandit = sf.strategies.scale_free(beta=jnp.float32(1))
    shape = {"num_arms": num_arms, "num_games": width, "num_checkpoints": 1}
    made = begin_group(bandit, None, None, jnp.float32(1), dtype=np.dtype(np.float32), **shape)
    # One group of games. Copied, as zeros made together share memory, and it is given away.
    block = jax.tree.map(lambda leaf: jnp.copy(leaf[None]), made)
    table = np.random.default_rng(0).random((rounds, num_arms, 1)).astype(np.float32)
    losses = jnp.asarray(table)
    keys = jnp.zeros((1, 2, width), jnp.uint32).at[:, 1].set(jnp.arange(width, dtype=jnp.uint32))
    lanes = jnp.zeros((1, width), jnp.int32)
    when = (jnp.full(1, rounds, jnp.int32), jnp.int32(1), jnp.int32(1), jnp.int32(1))
    program_for = _program_finder(tuple(jax.devices()[:1]), "scan", "lanes", exact=False)
    # Compiled first: constants of a program are placed when it is made.
    given = (bandit, None, None, losses, block, keys, lanes, *when)
    play = program_for(*given, window=rounds)
    first = play(*given, window=rounds)
    again = jax.tree.map(jnp.copy, first)
    with jax.transfer_guard("disallow_explicit"):
        after = play(bandit, None, None, losses, again, keys, lanes, *when, window=rounds)
    assert np.isfinite(np.asarray(after.totals)).all()
    with jax.transfer_guard("disallow_explicit"), pytest.raises(Exception, match="isallowed"):
        jnp.asarray(table) + jnp.float32(1)
