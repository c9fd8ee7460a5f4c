"""The command line, `sfmab`.

    main                 the commands put together, with `list`, `verify` and `bench`
    run, losses, plan, worst_case    a command each
    both_worlds          the sweep of `run --sweep both-worlds`
    study                the commands `study new | check | run | report`
    options              what several commands share
    bench                the race behind `sfmab bench` and `python -m benchmarks`
    compilation_cache    compiled programs kept from run to run
    console              the console script, installed as the module `sfmab`: calls `main`

Each command imports what it needs when it runs, so that help and usage errors are quick.
"""

from sfmab_jax.cli.main import app, main

__all__ = ["app", "main"]
