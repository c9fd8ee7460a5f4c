"""Play every strategy at many numbers of arms, each strategy in a process of its own.

    python tests/helpers/every_size.py [names of strategies]

XLA has been seen to end the process over a program as one function; this shows that it does not for
any strategy at sizes on either side of every rule of the engine that depends on the arms.
"""

import subprocess
import sys

import sfmab_jax as sf
from sfmab_jax.checks import horizon_argument

SIZES = (1, 2, 5, 16, 17, 64, 65, 256, 257, 1000)
NUM_ROUNDS = 20


def play(name: str) -> None:
    make = sf.strategies.STRATEGIES[name]
    bandit = make(**horizon_argument(make, NUM_ROUNDS))
    for num_arms in SIZES:
        losses = sf.losses.uniform(num_arms=num_arms)
        sf.simulate(bandit, losses, num_rounds=NUM_ROUNDS, num_seeds=3, progress=False)
        print(num_arms, flush=True)


def main() -> int:
    if sys.argv[1:2] == ["--child"]:
        play(sys.argv[2])
        return 0
    ended = 0
    for name in sys.argv[1:] or sf.strategies.STRATEGIES:
        command = [sys.executable, __file__, "--child", name]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        sizes = done.stdout.split()
        print(
            f"{name}: {len(sizes)} of {len(SIZES)} sizes, exit code {done.returncode}", flush=True
        )
        ended += done.returncode != 0
    print(f"{ended} strategies ended their process")
    return 1 if ended else 0


if __name__ == "__main__":
    sys.exit(main())
