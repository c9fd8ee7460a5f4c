"""`sfmab run` by several processes: the same games, cut into blocks as a study is."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from sfmab_jax.hosts import Process
from sfmab_jax.results import Results
from sfmab_jax.study.config import parse_study
from sfmab_jax.study.loaded import load_study
from sfmab_jax.study.runner import run_study

__all__ = ["play_together"]


def play_together(
    process: Process,
    folder: Path,
    bandits: Mapping[str, tuple[Any, str | None]],
    families: Iterable[str],
    scales: Iterable[float],
    say: Callable[[str], None],
    settings: Mapping[str, Any],
) -> Iterator[tuple[str, float, Results, None]]:
    """Plays all strategies on all families at all scales, with the numbers `simulate` gives.

    Args:
      process: which of several processes this one is.
      folder: a folder that all of them see; it will hold a study, whose blocks another run with
        the same options reuses.
      bandits: by name, with the exploration option of those that have one.
      families, scales: of the losses.
      say: told in single lines what is reused, changed or damaged.
      settings: arms, rounds, seeds, seed and dtype, as in a study file.

    Yields:
      (Family, scale, results of all strategies, None); process 0 only. There is no speed of single
      loss sequences, as their blocks are played here and there.
    """
    lines = [f"{key} = {json.dumps(value)}" for key, value in settings.items()]
    for name, (_, option) in bandits.items():
        lines += [f'[strategies."{name}"]', f"strategy = {json.dumps(name.split()[0])}"]
        lines += [] if option is None else [f"exploration = {json.dumps(option)}"]
    for family in families:
        lines += [f"[losses.{family}]", f"scale = {json.dumps([float(s) for s in scales])}"]
    # As many checkpoints as `simulate` has by itself.
    text = "\n".join(['title = "sfmab run"', "checkpoints = 64", *lines, ""])
    study = parse_study(text, "sfmab run")
    run_study(study, folder, say, show=None, process=process)
    if process.number == 0:
        played = load_study(folder)
        for losses, arms, rounds, scale in played.settings:
            yield losses, scale, Results(played.on((losses, arms, rounds, scale))), None
