"""SMPyBandits' Tsallis-INF, one game at a time."""

import importlib.util
import sys
import warnings
from collections.abc import Callable
from functools import cache
from pathlib import Path
from types import ModuleType

import numpy as np

from sfmab_jax.cli.bench import MissingRivalError

__all__ = ["smpybandits_tsallis_inf"]


def smpybandits_tsallis_inf(
    mean_losses: np.ndarray, num_rounds: int, num_games: int
) -> Callable[[int], np.ndarray]:
    """Its TsallisInf policy as published: a function of the seed, giving the total losses [games].

    Every game draws its own table of Bernoulli losses.

    It plays each arm once at first and weights a loss by the law after an Exp3 step; the mean
    regret is nevertheless that of Tsallis-INF up to what some games can show.
    """
    policy_of = _policy()
    num_arms = len(mean_losses)

    def run(seed: int) -> np.ndarray:
        generator = np.random.default_rng(seed)
        tables = generator.random((num_games, num_rounds, num_arms)) < mean_losses
        np.random.seed(seed)  # noqa: NPY002, it draws from NumPy's global generator
        with warnings.catch_warnings():
            # Its minimiser leaves the domain of the objective now and then.
            warnings.simplefilter("ignore")
            return np.array([_game(policy_of(num_arms), table.astype(float)) for table in tables])

    return run


def _game(policy, losses: np.ndarray) -> float:
    policy.startGame()
    total = 0.0
    for row in losses:
        arm = policy.choice()
        policy.getReward(arm, 1 - row[arm])
        total += row[arm]
    return total


@cache
def _policy():
    """The class, from its own file: the package's __init__ fails with SciPy 1.14 and later."""
    found = importlib.util.find_spec("SMPyBandits")
    if found is None or found.origin is None:
        raise MissingRivalError("SMPyBandits is not installed; pip install '.[bench]'")
    root = Path(found.origin).parent
    for name, place in (("SMPyBandits", root), ("SMPyBandits.Policies", root / "Policies")):
        if name not in sys.modules:
            package = ModuleType(name)
            package.__path__ = [str(place)]
            sys.modules[name] = package
    try:
        from SMPyBandits.Policies.TsallisInf import TsallisInf
    except ImportError as error:
        raise MissingRivalError(f"SMPyBandits cannot be imported: {error}") from None
    return TsallisInf
