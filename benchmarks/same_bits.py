"""Show that a change of the code changes no bit of any result.

Play every strategy on ten loss families at 1 to 300 arms and save every array; then compare two
such folders, one written by each commit:

    python -m benchmarks.same_bits save before     # in a checkout of the one
    python -m benchmarks.same_bits save after      # in a checkout of the other
    python -m benchmarks.same_bits compare before after

Only public names are used, so that the script can be copied into an older checkout. One run takes
about twenty minutes on a core; ``--arms 10`` takes a sixth of that.
"""

import argparse
import sys
from pathlib import Path

import jax
import numpy as np

import sfmab_jax as sf

FAMILIES = (
    "bernoulli gaussian pareto switching corrupted sparse growing random_walk cyclic minimax"
).split()
ARMS = (1, 2, 10, 17, 100, 300)
NUM_ROUNDS = 320
CERTIFIED = ("scale_free", "scale_free_decaying")


def strategies() -> dict[str, sf.Bandit]:
    """Every named strategy with its defaults, and Algorithm 1 with both options."""
    bandits = {}
    for name, make in sf.strategies.STRATEGIES.items():
        told = {"num_rounds": NUM_ROUNDS} if name.endswith("_horizon") else {}
        bandits[name] = make(**told)
    bandits["scale_free_decaying"] = sf.strategies.scale_free(exploration="decaying")
    return bandits


def next_play(state: sf.BanditState):
    return state.full_information.play


def arrays_of(result: sf.Result) -> dict[str, np.ndarray]:
    """Every array of a result, by name."""
    arrays = {"regret": result.regret, "expected_regret": result.expected_regret}
    arrays |= {f"norms.{name}": np.asarray(x) for name, x in result.norms._asdict().items()}
    if result.certificate is not None:
        arrays |= {f"certificate.{k}": v for k, v in result.certificate._asdict().items()}
    leaves = jax.tree_util.tree_leaves_with_path(result.records)
    return arrays | {f"record{jax.tree_util.keystr(path)}": x for path, x in leaves}


def save(folder: Path, arms: tuple[int, ...]) -> None:
    """Write one file of arrays per strategy and number of arms."""
    folder.mkdir(parents=True, exist_ok=True)
    for num_arms in arms:
        jax.clear_caches()
        for name, bandit in strategies().items():
            path = folder / f"{num_arms}_{name}.npz"
            if path.exists():
                continue
            arrays = {}
            for family in FAMILIES:
                losses = sf.losses.LOSSES[family](num_arms=num_arms)
                given = {"num_rounds": NUM_ROUNDS, "seed": 3, "checkpoints": 16}
                runs = {"own": sf.simulate(bandit, losses, num_sequences=3, num_seeds=5, **given)}
                if num_arms == 10:
                    runs["shared"] = sf.simulate(
                        bandit,
                        losses,
                        num_seeds=9,
                        record=next_play,
                        certificate=name in CERTIFIED,
                        **given,
                    )
                for kind, result in runs.items():
                    arrays |= {f"{family}.{kind}.{k}": v for k, v in arrays_of(result).items()}
            np.savez(path, **arrays)
            print(f"{num_arms} arms, {name}: {len(arrays)} arrays", flush=True)


def compare(one: Path, other: Path) -> int:
    """Print what differs; return 1 if anything does."""
    names = sorted({path.name for folder in (one, other) for path in folder.glob("*.npz")})
    num_arrays = num_bytes = 0
    different = []
    for name in names:
        if not ((one / name).exists() and (other / name).exists()):
            different.append(f"{name} is in one folder only")
            continue
        left, right = np.load(one / name), np.load(other / name)
        for key in sorted({*left.files, *right.files}):
            if key not in left.files or key not in right.files:
                different.append(f"{name} {key} is in one file only")
                continue
            a, b = left[key], right[key]
            num_arrays, num_bytes = num_arrays + 1, num_bytes + a.nbytes
            if (a.dtype, a.shape, a.tobytes()) != (b.dtype, b.shape, b.tobytes()):
                different.append(f"{name} {key} differs")
    print(*different[:40], sep="\n" if different else "")
    print(
        f"{len(names)} files, {num_arrays:,} arrays, {num_bytes:,} bytes compared: "
        f"{len(different)} differences"
    )
    return 1 if different or not names else 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    commands = parser.add_subparsers(dest="command", required=True)
    saving = commands.add_parser("save", help="play the games and write their arrays")
    saving.add_argument("folder", type=Path)
    saving.add_argument("--arms", type=int, nargs="+", default=ARMS)
    comparing = commands.add_parser("compare", help="compare two folders")
    comparing.add_argument("folders", type=Path, nargs=2)
    given = parser.parse_args()
    if given.command == "compare":
        return compare(*given.folders)
    save(given.folder, tuple(given.arms))
    return 0


if __name__ == "__main__":
    sys.exit(main())
