"""The first losses of every family, held; ``python tests/helpers/kept_losses.py`` writes them.

Only after a change that is meant to change the losses of a seed; say so in the changelog.
"""

import json
from pathlib import Path

import numpy as np

import sfmab_jax as sf
from sfmab_jax.engine.loss_stream import LossStream

PATH = Path(__file__).with_suffix(".json")
SEQUENCES, ROUNDS = np.array([0, 5]), 6


def first_losses(name: str) -> np.ndarray:
    """[rounds, 3 arms, sequences], float32, of seed 1."""
    stream = LossStream(
        sf.losses.LOSSES[name](num_arms=3),
        SEQUENCES,
        seed=1,
        unit=1.0,
        dtype=np.dtype(np.float32),
        chunk_rounds=ROUNDS,
    )
    return np.asarray(stream.chunk(1))


if __name__ == "__main__":
    losses = {name: first_losses(name).ravel().astype(float).tolist() for name in sf.losses.LOSSES}
    PATH.write_text(json.dumps(losses, indent=0) + "\n")
