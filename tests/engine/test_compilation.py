"""One compiled program serves all seeds, hyperparameters, lengths and scales of a strategy."""

import logging

import jax

import sfmab_jax as sf


def run(num_arms=3, beta=1.0, scale=1.0, **changes):
    options = {"num_rounds": 200, "num_sequences": 1, "num_seeds": 3, "chunk_rounds": 64}
    options |= changes
    losses = sf.losses.uniform(num_arms=num_arms, scale=scale)
    return sf.simulate(sf.strategies.scale_free(beta=beta), losses, dtype="float32", **options)


def test_a_second_run_compiles_nothing(caplog):
    """Other seeds, rates, loss parameters and numbers of rounds reuse the programs."""

    def compiled():
        messages = [record.getMessage() for record in caplog.records]
        return [m for m in messages if "XLA compilation" in m and "play_groups" in m]

    run()
    jax.config.update("jax_log_compiles", True)  # in all threads, unlike jax.log_compiles()
    try:
        with caplog.at_level(logging.WARNING):
            run(seed=1)
            run(beta=3.0)
            run(scale=40.0)
            run(num_seeds=100)
            run(first_seed=7)
            run(num_rounds=150)
            assert not compiled()
            run(num_arms=4)
            assert len(compiled()) == 1
    finally:
        jax.config.update("jax_log_compiles", False)
