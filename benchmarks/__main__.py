"""`python -m benchmarks`: rounds per second, and ratios to the rivals, in one interleaved run."""

import argparse
import json
import platform
import time
from collections.abc import Callable
from pathlib import Path

import jax
import numpy as np

import sfmab_jax as sf
from benchmarks.rivals.c_lanes import c_free, c_same_work
from benchmarks.rivals.numba_prange import numba_prange
from benchmarks.rivals.vmap_scan_while_loop import vmap_scan_while_loop


def engine(losses: np.ndarray, num_seeds: int) -> Callable[[int], np.ndarray]:
    """sfmab_jax on the same table, with its 64 checkpoints, both regrets and the norms."""
    bandit = sf.strategies.scale_free("adaptive")

    def run(seed: int) -> np.ndarray:
        result = sf.simulate(bandit, losses, num_seeds=num_seeds, seed=seed, progress=False)
        return result.regret[0, :, -1] + result.norms.best[0, -1]

    return run


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--arms", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=1000)
    parser.add_argument("--seeds", type=int, default=4096)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--output", type=Path, default=Path("benchmarks.json"))
    options = parser.parse_args()
    generator = np.random.default_rng(0)
    losses = generator.uniform(-1, 1, (options.rounds, options.arms)).astype(np.float32)
    losses[:, 0] -= 0.2
    makers = {
        "sfmab_jax": engine,
        "C same work": c_same_work,
        "C free": c_free,
        "Numba prange": numba_prange,
        "vmap(scan(while_loop))": vmap_scan_while_loop,
    }
    contenders = {name: make(losses, options.seeds) for name, make in makers.items()}

    first, means, errors = {}, {}, {}
    for name, run in contenders.items():
        start = time.perf_counter()
        totals = run(0)
        first[name] = time.perf_counter() - start
        means[name] = totals.mean()
        errors[name] = totals.std(ddof=1) / np.sqrt(len(totals))
    ours = "sfmab_jax"
    for name in contenders:
        difference = abs(means[name] - means[ours])
        allowed = 4 * np.hypot(errors[name], errors[ours])
        if name != ours and difference > allowed:
            raise SystemExit(
                f"{name} plays another game: mean loss {means[name]:.3f} against "
                f"{means[ours]:.3f}, more than 4 standard errors apart"
            )

    seconds: dict[str, list[float]] = {name: [] for name in contenders}
    for repeat in range(options.repeats):
        for name, run in contenders.items():
            start = time.perf_counter()
            run(repeat + 1)
            seconds[name].append(time.perf_counter() - start)

    work = options.rounds * options.seeds
    report = {
        "machine": platform.processor() or platform.machine(),
        "cores": len(jax.devices()) if jax.default_backend() != "cpu" else _cores(),
        "jax": jax.__version__,
        "arms": options.arms,
        "rounds": options.rounds,
        "seeds": options.seeds,
        "repeats": options.repeats,
        "contenders": {},
    }
    print(f"{options.arms} arms, {options.rounds} rounds, {options.seeds} seeds, adaptive, float32")
    print(f"{'':24} {'million rounds/s':>16} {'ours is faster by':>24} {'first call':>11}")
    for name in contenders:
        ratios = np.array(seconds[name]) / np.array(seconds[ours])
        speed = work / np.median(seconds[name]) / 1e6
        spread = f"{np.median(ratios):.1f} ({ratios.min():.1f} to {ratios.max():.1f})"
        print(f"{name:24} {speed:16.2f} {spread:>24} {first[name]:9.1f} s")
        report["contenders"][name] = {
            "million_rounds_per_second": speed,
            "ratio_median": float(np.median(ratios)),
            "ratios": ratios.tolist(),
            "first_call_seconds": first[name],
            "mean_loss": float(means[name]),
            "standard_error": float(errors[name]),
        }
    options.output.write_text(json.dumps(report, indent=2) + "\n")
    print(f"Wrote {options.output}")


def _cores() -> int:
    import os

    return os.cpu_count() or 1


if __name__ == "__main__":
    main()
