"""pymab's Exp3 with its Rust backend, on its own stationary Bernoulli bandit."""

from collections.abc import Callable

import numpy as np

from sfmab_jax.cli.bench import MissingRivalError

__all__ = ["pymab_exp3"]


def pymab_exp3(
    mean_losses: np.ndarray, exploration: float, num_rounds: int, num_games: int
) -> Callable[[int], np.ndarray]:
    """Exp3 of Auer et al. (2002): a function of the seed, giving the total losses [games].

    pymab makes a new reward table for each game and takes no table of the user's.
    """
    try:
        from pymab import BanditEnvironment, BernoulliReward, Experiment, ExperimentConfig
        from pymab.policies import EXP3Policy
    except ImportError:
        raise MissingRivalError("pymab is not installed; pip install '.[bench]'") from None
    num_arms = len(mean_losses)
    environment = BanditEnvironment(means=1 - mean_losses, reward_model=BernoulliReward())
    policy = EXP3Policy(n_arms=num_arms, gamma=exploration)

    def run(seed: int) -> np.ndarray:
        config = ExperimentConfig(
            horizon=num_rounds, n_replicates=num_games, seed=seed, backend="rust"
        )
        experiment = Experiment(environment=environment, policies={"exp3": policy}, config=config)
        rewards = experiment.run().rewards  # [games, T, 1]
        return num_rounds - rewards.sum(axis=(1, 2))

    return run
