"""Plans: against plain arithmetic, against XLA's own figures and against a study that is played."""

from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tiers import some_in_default

from sfmab_jax.base import with_static_functions
from sfmab_jax.cli.main import main
from sfmab_jax.engine.lanes import compile_cpu
from sfmab_jax.engine.rounds import begin_group, play_chunk
from sfmab_jax.study import calibration
from sfmab_jax.study.blocks import call_work
from sfmab_jax.study.cells import plan_cells
from sfmab_jax.study.config import parse_study
from sfmab_jax.study.cost import _MOST_PROGRAMS, Cost, Machine, cost_of, this_machine
from sfmab_jax.study.runner import run_study

# 1,000 cells of 10,000 seeds and 100,000 rounds: 10^9 seed-rounds each.
LARGE = """
title = "A thousand cells"
arms = [5, 10, 20, 50, 100]
rounds = 100000
seeds = 10000
sequences = 1
[strategies.scale_free]
beta = [0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0]
[strategies.tsallis_inf]
scale = [0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0]
[losses.uniform]
scale = [0.01, 0.1, 1, 10, 100]
[losses.sparse]
scale = [0.01, 0.1, 1, 10, 100]
"""
SMALL = """
arms = [4, 16]
rounds = 4000
seeds = 1500
checkpoints = 20
[strategies.exp3_ix]
[strategies.tsallis_inf]
[losses.uniform]
"""
GPUS = Machine(devices=64, vectors=1, memory=80e9, speed=15 * 2e8)


def planned(text: str, machine: Machine) -> Cost:
    study = parse_study(text, "study.toml")
    return cost_of(plan_cells(study), study.seeds, machine)


@pytest.fixture(scope="module")
def large() -> Cost:
    return planned(LARGE, GPUS)


@pytest.mark.parametrize(("num_shapes", "num_programs"), [(1, 2), (30, 60), (200, 80)])
def test_programs_count_as_memory(num_shapes, num_programs):
    """Each takes 12 MB; of many, the engine keeps those of 40 cells."""
    text = f"arms = {[*range(2, 2 + num_shapes)]}\n[strategies.exp3]\n[losses.uniform]"
    memory = planned(text, GPUS._replace(devices=1)).host_memory
    assert 12e6 * num_programs < memory < 12e6 * num_programs + 5e6
    assert _MOST_PROGRAMS == 2 * compile_cpu._MOST_PROGRAMS


def test_a_thousand_cells_on_64_devices_add_up(large):
    assert large.num_cells == 1000
    assert large.num_rounds == 10**9 * 10**3
    # Games in a call. A block has two calls of 512 seeds, two of 256, or four of 128: 1,024 or 512
    # seeds, the last block of a cell 784 or 272.
    widths = {5: 512, 10: 512, 20: 512, 50: 256, 100: 128}
    num_blocks = 200 * (3 * 10 + 2 * 20)
    assert large.num_blocks == num_blocks
    # A call costs its width times n + 5 a round; there are 200 cells for each n.
    calls = {5: 20, 10: 20, 20: 20, 50: 40, 100: 79}
    work = sum(200 * calls[n] * widths[n] * 10**5 * (n + 5) for n in widths)
    assert large.computing == pytest.approx(work / (15 * 2e8) / 64, rel=1e-9)
    # Blocks are dealt to devices within one block of each other, 4 x 128 x 10^5 x 105 at most.
    assert 0 <= large.waiting <= 4 * 128 * 10**5 * 105 / (15 * 2e8)
    # Each device meets all programs: two strategies and two families for five numbers of arms.
    assert large.compiling == 5.0 * 4 * 5
    parts = large.computing + large.waiting + large.compiling + large.writing
    assert large.seconds == pytest.approx(parts, rel=1e-12)
    # A file for each block, a description for each cell, the manifest and the lock.
    assert large.num_files == num_blocks + 1000 + 2
    # Two regrets of 48 checkpoints for each game, in float64, and a little more.
    regrets = 1000 * 10_000 * 2 * 48 * 8
    assert regrets < large.disk < 1.02 * regrets
    # A span is about 15 s of a core: 7.5e8 / (width (n + 5)) rounds.
    spans = sum(
        200 * (10 if width == 512 else 20) * -(-(10**5) // int(7.5e8 / (width * (n + 5))))
        for n, width in widths.items()
    )
    assert large.num_spans == spans
    assert large.bottleneck.startswith("computing")


@pytest.mark.parametrize(
    ("change", "machine", "named"),
    [
        ({}, GPUS._replace(memory=1e5), "memory: "),
        ({"seeds = 1500": "seeds = 100"}, GPUS._replace(compilation=0.0, speed=1e6), "too few"),
        ({}, GPUS, "compiling"),
        ({"checkpoints = 20": "checkpoints = 4000"}, GPUS._replace(compilation=0.0), "writing"),
        ({}, GPUS._replace(devices=3, compilation=0.0, speed=1e6), "computing"),
        (
            {"= 4000": "= [10, 20, 4000]", "[4, 16]": "4", "[strategies.exp3_ix]\n": ""},
            GPUS._replace(devices=3, compilation=0.0, speed=1e6),
            "uneven",
        ),
    ],
)
def test_the_bottleneck_is_named(change, machine, named):
    text = SMALL
    for old, new in change.items():
        text = text.replace(old, new)
    cost = planned(text, machine)
    assert cost.bottleneck.startswith(named), cost


@pytest.mark.parametrize("arms", some_in_default([4, 100, 2000], [100]))
def test_memory_is_what_the_compiler_says(arms):
    """Within a factor of two of what XLA takes for the games of a call, arguments and all."""
    text = SMALL.replace("arms = [4, 16]", f"arms = {arms}").replace("[strategies.exp3_ix]\n", "")
    cell = plan_cells(parse_study(text, "study.toml"))[0]
    width, rounds = {4: (512, 4000), 100: (128, 4000), 2000: (32, 1024)}[arms]
    bandit = with_static_functions(cell.bandit())
    unit = jnp.ones((), jnp.float32)
    sizes = {"num_arms": arms, "num_games": width, "num_checkpoints": 20}
    group = jax.eval_shape(
        lambda: begin_group(bandit, None, None, unit, **sizes, dtype=np.dtype(np.float32))
    )

    def shape(*shape, dtype=jnp.int32):
        return jax.ShapeDtypeStruct(shape, dtype)

    lowered = jax.jit(play_chunk, static_argnames="window", donate_argnames="group").lower(
        bandit,
        None,
        None,
        shape(rounds, arms, 1, dtype=jnp.float32),
        group,
        shape(2, width, dtype=jnp.uint32),
        shape(width),
        shape(20),
        shape(),
        shape(),
        window=16,
    )
    used = lowered.compile().memory_analysis()
    total = used.argument_size_in_bytes + used.temp_size_in_bytes
    machine = Machine(devices=1, vectors=1, memory=1e12, speed=1e8)
    estimate = cost_of([cell], 1500, machine).device_memory
    assert total / 2 <= estimate <= 2 * total


def test_the_speed_is_found_from_the_times_of_rounds(monkeypatch):
    """On a machine of known speed, on which a compilation takes 2 seconds and a run 0.1."""
    study = parse_study(SMALL, "study.toml")
    cells = plan_cells(study)
    speed, overhead, compilation = {"exp3_ix": 3e8, "tsallis_inf": 1e8}, 0.1, 2.0
    compiled = set()

    def time_rounds(cell, games, num_rounds):
        name = cell.strategy_name
        compiles = 2 * compilation * (name not in compiled)  # to play, and to make losses
        compiled.add(name)
        work = GPUS.vectors * call_work(cell) * num_rounds
        return compiles + overhead + work / speed[name]

    monkeypatch.setattr(calibration, "_time_rounds", time_rounds)
    said = []
    found = calibration.measure_speed(GPUS, cells, study.seeds, said.append)
    assert found.speeds == pytest.approx(speed, rel=1e-6)
    assert found.speed == pytest.approx(2e8, rel=1e-6)
    assert found.compilation == pytest.approx(compilation, rel=1e-6)
    assert found.overhead == pytest.approx(overhead, rel=1e-6)
    assert [line.split(":")[0] for line in said] == list(speed)


def test_rounds_are_timed_and_files_are_as_planned(tmp_path, monkeypatch):
    """No time is compared with another; see above."""
    monkeypatch.setattr(calibration, "_SECONDS", 0.01)
    small = SMALL.replace("rounds = 4000", "rounds = 200").replace("[strategies.tsallis_inf]\n", "")
    study = parse_study(small, "study.toml")
    cells = plan_cells(study)
    said = []
    machine = calibration.measure_speed(this_machine(), cells, study.seeds, said.append)
    assert min(machine.speeds.values()) > 0
    cost = cost_of(cells, study.seeds, machine)
    assert cost.seconds > 0
    assert run_study(study, tmp_path / "out") == cost.num_blocks
    files = [path for path in Path(tmp_path / "out").rglob("*") if path.is_file()]
    assert len(files) == cost.num_files
    actual = sum(path.stat().st_size for path in files if path.suffix == ".npz")
    assert cost.disk == pytest.approx(actual, rel=0.02)


def test_the_command_prints_the_plan(tmp_path, capsys):
    file = tmp_path / "large.toml"
    file.write_text(SMALL)
    options = "--devices 64 --memory 80GB --rounds-per-second 2e8".split()
    with pytest.raises(SystemExit) as stopped:
        main(["plan", str(file), *options])
    assert stopped.value.code == 0
    lines = dict(line.split(maxsplit=1) for line in capsys.readouterr().out.splitlines())
    assert lines["machine"].startswith("64 devices of 80 GB")
    assert lines["blocks"].startswith("4, ")
    assert lines["files"].startswith("10, ")
    assert lines["limit"].startswith("compiling")
    assert [path.name for path in tmp_path.iterdir()] == ["large.toml"]


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ("--devices 0", "--devices is 0"),
        ("--memory lots", "--memory is 'lots'"),
        ("--memory 0GB", "--memory"),
        ("--rounds-per-second -1", "--rounds-per-second is -1"),
        ("--rounds-per-second nan", "--rounds-per-second"),
    ],
)
def test_bad_options_are_one_line_and_exit_code_2(options, named, capsys):
    with pytest.raises(SystemExit) as stopped:
        main(["plan", "paper_claims", *options.split()])
    assert stopped.value.code == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert named in error
