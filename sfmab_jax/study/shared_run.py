"""`sfmab run` by several processes: the same games, cut into the blocks of a study."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from sfmab_jax.results.result import Results
from sfmab_jax.study.config import parse_study
from sfmab_jax.study.hosts import Process
from sfmab_jax.study.runner import run_study
from sfmab_jax.study.study import load_study

__all__ = ["play_shared"]


def play_shared(
    process: Process,
    folder: Path,
    bandits: Mapping[str, tuple[Any, str | None]],
    families: Iterable[str],
    scales: Iterable[float],
    say: Callable[[str], None],
    settings: Mapping[str, Any],
) -> Iterator[tuple[str, float, Results]]:
    """Play all strategies on all families at all scales, with the results of `simulate`.

    Args:
      process: which of several processes this one is.
      folder: a folder that all of them see. It will hold a study, whose blocks another run with
        the same options reuses.
      bandits: by name, with the exploration option of those that have one.
      families, scales: of the losses.
      say: told in single lines what is reused, changed or damaged.
      settings: arms, rounds, seeds, sequences, seed and dtype, as in a study file; None if it does
        not give them.

    Yields:
      In process 0 only, (family, scale, results of all strategies).
    """
    given = {key: value for key, value in settings.items() if value is not None}
    lines = [f"{key} = {json.dumps(value)}" for key, value in given.items()]
    for name, (_, option) in bandits.items():
        lines += [f'[strategies."{name}"]', f"strategy = {json.dumps(name.split()[0])}"]
        lines += [] if option is None else [f"exploration = {json.dumps(option)}"]
    for family in families:
        lines += [f"[losses.{family}]", f"scale = {json.dumps([float(s) for s in scales])}"]
    # As many checkpoints as `simulate` has by default.
    text = "\n".join(['title = "sfmab run"', "checkpoints = 64", *lines, ""])
    study = parse_study(text, "sfmab run")
    run_study(study, folder, say, show=None, process=process)
    if process.number == 0:
        results = load_study(folder)
        for losses, arms, rounds, scale in results.settings:
            yield losses, scale, Results(results.on((losses, arms, rounds, scale)))
