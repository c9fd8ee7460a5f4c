"""The engines lowered for accelerators on a machine without them.

To lower is not to run: it shows that every operation of a round has a translation, and what the
program would ask of the host (nothing) and of the device (no float64).
"""

import contextlib
import re
from functools import partial
from itertools import cycle, product

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import export, lax
from jax.tree_util import Partial
from tiers import ARCHETYPES, some_in_default

import sfmab_jax as sf
from sfmab_jax.base import with_static_functions
from sfmab_jax.checks import horizon_argument
from sfmab_jax.engine.loss_stream import LossProcess, generate_pieces, start_sequences
from sfmab_jax.engine.measure import begin_measure, measure_chunk
from sfmab_jax.engine.pallas.kernel import play_chunk_fused
from sfmab_jax.engine.rounds import begin_group, in_groups, play_chunk
from sfmab_jax.strategies import STRATEGIES

PLATFORMS = ["cuda", "rocm", "tpu"]
# The names under which kernels are called: ours, and JAX's own for random bits.
KERNELS = {"__gpu$xla.gpu.triton", "tpu_custom_call"}
RANDOM_BITS = {"cu_threefry2x32_ffi", "hip_threefry2x32_ffi"}
WIDTH, WINDOW, ROUNDS = 256, 16, 64


def arguments_of_a_chunk(bandit, num_arms, num_sequences=1, record=None):
    """As `engine.run.play_batch` makes them."""
    bandit = with_static_functions(bandit)
    block = jax.eval_shape(
        lambda: begin_group(
            bandit,
            record,
            None,
            jnp.float32(1.0),
            num_arms=num_arms,
            num_games=WIDTH,
            num_checkpoints=5,
            dtype=jnp.float32,
        )
    )
    groups = jax.tree.map(lambda x: jax.ShapeDtypeStruct((1, *x.shape), x.dtype), block)
    number = jax.ShapeDtypeStruct((), jnp.int32)
    return (
        bandit,
        record,
        None,
        jax.ShapeDtypeStruct((ROUNDS, num_arms, num_sequences), jnp.float32),
        groups,
        jax.ShapeDtypeStruct((1, 2, WIDTH), jnp.uint32),
        jax.ShapeDtypeStruct((1, WIDTH), jnp.int32),
        jax.ShapeDtypeStruct((5,), jnp.int32),
        number,
        number,
        number,
    )


def lowered_text(function, arguments, platform):
    """The program as text; the only call out of it may be the kernel."""
    allowed = [export.DisabledSafetyCheck.custom_call(name) for name in KERNELS]
    compiled = jax.jit(function, donate_argnames="groups")
    exporter = export.export(compiled, platforms=[platform], disabled_checks=allowed)
    with on_a_described(platform):
        return exporter(*arguments).mlir_module()


def on_a_described(platform):
    """The context in which JAX, from 0.12 on, takes it that there is such a GPU."""
    kinds = {"cuda": "NVIDIA H100", "rocm": "gfx942"}
    if platform not in kinds or jax.__version_info__ < (0, 12):
        return contextlib.nullcontext()
    device = jax.sharding.AbstractDevice(kinds[platform], None, platform)
    mesh = jax.sharding.AbstractMesh((1,), ("lanes",), abstract_device=device)
    return jax.sharding.use_abstract_mesh(mesh)


def assert_device_only(text, kernel=False):
    for word in ("callback", "infeed", "outfeed", "stablehlo.send", "stablehlo.recv"):
        assert word not in text
    # As a type: a kernel's bytes may spell it by chance; `wide_numbers` looks into those.
    assert not re.search(r"[<x]f64>", text)
    called = set(re.findall(r"custom_call @([\w$.]+)", text)) - RANDOM_BITS
    assert called <= KERNELS
    assert len(called) == kernel


def wide_numbers(jaxpr):
    """All float64 values in a program and its inner functions."""
    found = []
    for eqn in jaxpr.eqns:
        found += [var for var in eqn.outvars if getattr(var.aval, "dtype", None) == np.float64]
        for inner in jax.tree.leaves(
            list(eqn.params.values()), is_leaf=lambda x: hasattr(x, "eqns") or hasattr(x, "jaxpr")
        ):
            inner = getattr(inner, "jaxpr", inner)
            if hasattr(inner, "eqns"):
                found += wide_numbers(inner)
    return found


@pytest.fixture(autouse=True)
def without_float64():
    with jax.enable_x64(False):
        yield


@pytest.mark.parametrize("platform", PLATFORMS)
@pytest.mark.parametrize("num_sequences", some_in_default([1, 3, 8], [3]))
def test_the_scan_engine(platform, num_sequences):
    """Both options; the state after a chunk takes the place of the state before."""
    for exploration in ("adaptive", "decaying"):
        bandit = sf.strategies.scale_free(exploration)
        arguments = arguments_of_a_chunk(bandit, 10, num_sequences)
        text = lowered_text(partial(in_groups(play_chunk), window=WINDOW), arguments, platform)
        assert_device_only(text)
        held = len(jax.tree.leaves(arguments[4]))
        assert text.count("tf.aliasing_output") + text.count("jax.buffer_donor") == held


@pytest.mark.parametrize("platform", PLATFORMS)
def test_games_that_make_and_measure_their_own_losses(platform):
    """Random draws are written out: not even JAX's own kernels are called."""
    for family in ("gaussian", "switching"):
        losses = sf.losses.LOSSES[family](num_arms=10)
        keys, states = jax.eval_shape(partial(start_sequences, losses, 0), np.arange(WIDTH))
        sizes = {"num_arms": 10, "num_sequences": WIDTH, "num_checkpoints": 5, "switches": 3}
        measure = jax.eval_shape(partial(begin_measure, **sizes, dtype="float32"))
        arguments = list(arguments_of_a_chunk(sf.strategies.exp3_ix(), 10))
        of_lanes = jax.tree.map(
            lambda x: jax.ShapeDtypeStruct((1, *x.shape), x.dtype), (keys, states, measure)
        )
        arguments[3] = LossProcess(with_static_functions(losses.next), np.float32(1))
        arguments[4] = arguments[4]._replace(losses=of_lanes[1], measure=of_lanes[2])
        arguments[6] = of_lanes[0]
        text = lowered_text(partial(in_groups(play_chunk), window=WINDOW), arguments, platform)
        assert_device_only(text)
        assert "threefry2x32" not in text


@pytest.mark.parametrize("platform", PLATFORMS)
def test_losses_and_their_norms(platform):
    for family in ("gaussian", "pareto", "random_walk"):
        losses = sf.losses.LOSSES[family](num_arms=10)
        sequences = np.arange(16)
        keys, states = jax.eval_shape(partial(start_sequences, losses, 0), sequences)
        process = LossProcess(with_static_functions(losses.next), np.float32(1))
        make = partial(generate_pieces, num_arms=10, buffer_pieces=4, piece_rounds=WINDOW)
        number = jax.ShapeDtypeStruct((), jnp.int32)
        given = (process, states, keys, number, number, number)
        assert_device_only(export.export(jax.jit(make), platforms=[platform])(*given).mlir_module())
    sizes = {"num_arms": 10, "num_sequences": 16, "num_checkpoints": 5, "switches": 3}
    measure = jax.eval_shape(partial(begin_measure, **sizes, dtype="float32"))
    table = jax.ShapeDtypeStruct((ROUNDS, 10, 16), jnp.float32)
    given = (table, measure, jax.ShapeDtypeStruct((5,), jnp.int32), number)
    text = export.export(jax.jit(measure_chunk), platforms=[platform])(*given).mlir_module()
    assert_device_only(text)


@pytest.mark.parametrize("platform", PLATFORMS)
@pytest.mark.parametrize("num_arms", some_in_default([1, 2, 10, 100], [10]))
def test_the_fused_engine(platform, num_arms):
    for exploration in ("adaptive", "decaying"):
        lower_fused(sf.strategies.scale_free(exploration), num_arms, platform)


# By default every archetype for one of them, in turns.
FUSED = list(product(STRATEGIES, ("cuda", "tpu")))
FUSED_BY_DEFAULT = list(zip(ARCHETYPES, cycle(("cuda", "tpu"))))


@pytest.mark.parametrize(("name", "platform"), some_in_default(FUSED, FUSED_BY_DEFAULT))
def test_every_strategy_fused(name, platform):
    factory = STRATEGIES[name]
    lower_fused(factory(**horizon_argument(factory, ROUNDS)), 5, platform)


@pytest.mark.parametrize("platform", PLATFORMS)
def test_a_loop_of_unknown_length_fused(platform):
    def halvings(state):
        start = (jnp.max(state.full_information.play), jnp.int32(0))
        return lax.while_loop(lambda x: x[0] > 0.01, lambda x: (x[0] / 2, x[1] + 1), start)

    lower_fused(sf.strategies.scale_free(), 5, platform, Partial(halvings))


def lower_fused(bandit, num_arms, platform, record=None):
    arguments = arguments_of_a_chunk(bandit, num_arms, num_sequences=3, record=record)
    kind = "tpu" if platform == "tpu" else "gpu"
    play = partial(in_groups(partial(play_chunk_fused, platform=kind)), window=WINDOW)
    assert_device_only(lowered_text(play, arguments, platform), kernel=True)
    assert not wide_numbers(jax.make_jaxpr(play)(*arguments).jaxpr)
