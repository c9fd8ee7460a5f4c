"""Results made from numbers given, without a simulation."""

import numpy as np

import sfmab_jax as sf
from sfmab_jax.results.norms import Norms


def made(regret, name="mine", rounds=None, **options):
    """A `Result` of the regret [K, S, C] given."""
    regret = np.asarray(regret, np.float64)
    num_sequences, _, num_checkpoints = regret.shape
    rounds = np.arange(1, num_checkpoints + 1) if rounds is None else rounds
    sizes = (np.full((num_sequences, num_checkpoints), float(k)) for k in range(7))
    described = {
        "seed": 5,
        "first_seed": 100,
        "losses": "some",
        "dtype": "float32",
        "seconds": 1.5,
        **options,
    }
    return sf.Result(
        name=name,
        rounds=rounds,
        regret=regret,
        expected_regret=regret + 1,
        norms=Norms(3, rounds, *sizes),
        **described,
    )


def two_strategies():
    """Two strategies: 2 sequences, 5 seeds, 3 checkpoints, with records."""
    generator = np.random.default_rng(0)
    shape = (2, 5, 3)
    rounds = np.array([1, 10, 100])
    return sf.Results(
        {
            name: made(
                generator.normal(size=shape),
                name=name,
                rounds=rounds,
                records={"play": generator.normal(size=(*shape, 4)), "rate": np.ones(shape)},
            )
            for name in ("first", "second")
        }
    )
