"""The race of contenders in turns within one process, and its short form `sfmab bench`.

The race is here, and not in `benchmarks/`, so that an installed package can run `sfmab bench`: the
engine against the obvious JAX program. `python -m benchmarks` in the repository has more rivals,
sweeps and plots, and times them by the same `race`.
"""

import math
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from sfmab_jax.checks import check_integer
from sfmab_jax.simulate import simulate
from sfmab_jax.strategies import scale_free

__all__ = [
    "Contender",
    "MissingRivalError",
    "Timing",
    "engine",
    "losses_for_bench",
    "play_plainly",
    "race",
    "report",
    "short_form",
    "start_plainly",
    "vmap_scan_while_loop",
]

# Mean losses more standard errors apart than this are of different games.
_STANDARD_ERRORS = 4


class MissingRivalError(Exception):
    """A rival is not available here; the message says why, and how to get it."""


class Contender(NamedTuple):
    """A way to play games: ``make(games)`` returns a function of the seed that plays them.

    That function returns independent numbers whose mean is that of a game's total loss: the losses
    of the games, or their means over the games of each loss sequence.
    """

    name: str
    make: Callable[[int], Callable[[int], np.ndarray]]
    most_games: int = 2**31 - 1  # slow contenders play fewer; speed is per round


class Timing(NamedTuple):
    """What a race measured of one contender."""

    name: str
    games: int
    rounds: int
    mean_loss: float
    standard_error: float
    first_seconds: float  # to make it and to play once, with compilation
    seconds: list[float]  # of each repeat

    @property
    def rounds_per_second(self) -> np.ndarray:
        """Rounds of games per second of each repeat."""
        return self.games * self.rounds / np.array(self.seconds)

    @property
    def compile_seconds(self) -> float:
        """Seconds of the first call beyond an ordinary one."""
        return max(self.first_seconds - float(np.median(self.seconds)), 0.0)

    def ratio_of(self, ours: "Timing") -> np.ndarray:
        """Return how many times faster ours is in each repeat."""
        return ours.rounds_per_second / self.rounds_per_second


def race(
    contenders: Sequence[Contender], num_games: int, num_rounds: int, repeats: int
) -> tuple[list[Timing], list[str]]:
    """Time contenders in turns, after a check that all play the same game as the first.

    They take turns so that other work on the machine slows all of them alike: compare by ratios
    within a repeat.

    Args:
      contenders: the first is the one that the others are compared with.
      num_games: games of each contender, unless it plays fewer.
      num_rounds: rounds of a game.
      repeats: turns of each contender.

    Returns:
      The timings, in order, and a line on each contender that is not available here.
    """
    ready, timings, skipped = [], [], []
    for contender in contenders:
        games = min(num_games, contender.most_games)
        start = time.perf_counter()
        try:
            run = contender.make(games)
        except MissingRivalError as missing:
            skipped.append(f"{contender.name} skipped: {missing}")
            continue
        totals = np.asarray(run(0), np.float64)
        took = time.perf_counter() - start
        several = len(totals) > 1  # of one number nothing can be said
        error = float(totals.std(ddof=1) / np.sqrt(len(totals))) if several else math.inf
        ready.append(run)
        timings.append(
            Timing(contender.name, games, num_rounds, float(totals.mean()), error, took, [])
        )
        _check_same_game(timings[0], timings[-1])
    for repeat in range(1, repeats + 1):
        for run, timing in zip(ready, timings, strict=True):
            start = time.perf_counter()
            run(repeat)
            timing.seconds.append(time.perf_counter() - start)
    return timings, skipped


def _check_same_game(ours: Timing, theirs: Timing) -> None:
    error = float(np.hypot(ours.standard_error, theirs.standard_error))
    if abs(theirs.mean_loss - ours.mean_loss) > _STANDARD_ERRORS * error:
        raise ValueError(
            f"{theirs.name} plays another game: mean loss {theirs.mean_loss:.4f} against "
            f"{ours.mean_loss:.4f}, more than {_STANDARD_ERRORS} standard errors of {error:.4f} "
            "apart; not timed"
        )


def losses_for_bench(num_rounds: int, num_arms: int) -> np.ndarray:
    """Return losses uniform on [-1, 1], of the first arm lower by 0.2: float32 [T, n]."""
    losses = np.random.default_rng(0).uniform(-1, 1, (num_rounds, num_arms)).astype(np.float32)
    losses[:, 0] -= np.float32(0.2)
    return losses


def engine(losses: np.ndarray, num_games: int) -> Callable[[int], np.ndarray]:
    """Make the engine on Algorithm 1, adaptive: 64 checkpoints, both regrets and the norms."""
    bandit = scale_free("adaptive")

    def run(seed: int) -> np.ndarray:
        result = simulate(bandit, losses, num_seeds=num_games, seed=seed, progress=False)
        return result.regret[0, :, -1] + result.norms.best[0, -1]  # type: ignore[union-attr]

    return run


def vmap_scan_while_loop(losses: np.ndarray, num_games: int) -> Callable[[int], np.ndarray]:
    """Make Algorithm 1, adaptive, as one would first write it in JAX.

    vmap over seeds, scan over rounds, Newton steps in while loops; no checkpoints, plain sums.
    """
    table = jnp.asarray(losses, jnp.float32)

    def play(key: Array) -> Array:
        start = start_plainly(key, losses.shape[1])
        return lax.scan(lambda carry, loss: (play_plainly(carry, loss), None), start, table)[0][-1]

    run = jax.jit(lambda key: jax.vmap(play)(jax.random.split(key, num_games)))
    return lambda seed: np.asarray(run(jax.random.key(seed)))


def start_plainly(key: Array, num_arms: int) -> tuple[Array, ...]:
    """Return what `play_plainly` carries before round 1."""
    zeros, zero = jnp.zeros(num_arms, jnp.float32), jnp.float32(0)
    uniform, rate, exploration = zeros + 1 / num_arms, jnp.float32(num_arms), jnp.float32(0.5)
    return key, uniform, zeros, rate, exploration, zero, zero, zero


def play_plainly(carry: tuple[Array, ...], loss: Array) -> tuple[Array, ...]:
    """Play a round of Algorithm 1, adaptive, on losses [n]; the total loss is carried last."""
    key, p, cumulative, rate, exploration, gaps, masses, total = carry
    num_arms = len(loss)
    key, draw = jax.random.split(key)
    mixed = (1 - exploration) * p + exploration / num_arms
    arm = jax.random.choice(draw, num_arms, p=mixed)
    estimate = jnp.zeros(num_arms, jnp.float32).at[arm].set(loss[arm] / mixed[arm])
    moved = 1 / p + rate * estimate
    q = _normalise(moved - jnp.min(moved))
    ratio = q / p
    divergence = jnp.sum(ratio - 1 - jnp.log(ratio))
    gaps = gaps + jnp.maximum(jnp.dot(estimate, p - q) - divergence / rate, 0)
    masses = masses + exploration * jnp.abs(loss[arm]) / mixed[arm]
    cumulative = cumulative + estimate
    rate = num_arms / (1 + gaps)
    exploration = num_arms / (2 * num_arms + masses)
    p = _normalise(rate * (cumulative - jnp.min(cumulative)))
    return key, p, cumulative, rate, exploration, gaps, masses, total + loss[arm]


def _normalise(gaps: Array) -> Array:
    """Return 1 / (x + mu) with mu the root of sum(1 / (x + mu)) = 1, by Newton's method."""

    def unfinished(carry):
        mu, step = carry
        return jnp.abs(step) > 1e-6 * mu

    def newton(carry):
        mu, _ = carry
        p = 1 / (gaps + mu)
        step = (jnp.sum(p) - 1) / jnp.sum(p * p)
        return mu + step, step

    start = jnp.maximum(1.0, len(gaps) - jnp.mean(gaps))
    mu, _ = lax.while_loop(unfinished, newton, (start, jnp.float32(jnp.inf)))
    return 1 / (gaps + mu)


def short_form(num_arms: int, num_rounds: int, num_games: int, repeats: int) -> list[Timing]:
    """Race the engine against `vmap(scan(while_loop))`."""
    check_integer("arms", num_arms, 2, 10_000)
    check_integer("rounds", num_rounds, 1, 1_000_000)
    check_integer("seeds", num_games, 2, 10_000_000)
    check_integer("repeats", repeats, 1, 1000)
    losses = losses_for_bench(num_rounds, num_arms)
    contenders = [
        Contender("sfmab_jax", partial(engine, losses)),
        Contender("vmap(scan(while_loop))", partial(vmap_scan_while_loop, losses)),
    ]
    return race(contenders, num_games, num_rounds, repeats)[0]


def report(num_arms: int, timings: list[Timing]) -> str:
    """Return a table for the terminal."""
    ours = timings[0]
    size = f"{num_arms:,} arms, {ours.rounds:,} rounds, {ours.games:,} seeds, float32"
    lines = [
        f"Algorithm 1, adaptive exploration: {size}",
        f"{'':24}{'million rounds/s':>18}{'ours is faster by (range)':>28}{'compile':>11}",
    ]
    for timing in timings:
        speed = np.median(timing.rounds_per_second) / 1e6
        ratios = timing.ratio_of(ours)
        spread = f"{np.median(ratios):.1f} ({ratios.min():.1f} to {ratios.max():.1f})"
        shown = "1" if timing is ours else spread
        lines.append(f"{timing.name:24}{speed:18.2f}{shown:>28}{timing.compile_seconds:9.1f} s")
    where = "More rivals, sweeps and plots: `python -m benchmarks` in a clone of the repository."
    return "\n".join([*lines, where])
