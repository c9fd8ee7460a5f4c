"""`sfmab run` by several processes: the same games, cut into blocks as a study is."""

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from sfmab_jax.hosts import Process
from sfmab_jax.results import Results
from sfmab_jax.study.config import parse_study
from sfmab_jax.study.loaded import load_study
from sfmab_jax.study.runner import run_study

__all__ = ["run_together"]


def run_together(
    process: Process,
    folder: Path,
    strategies: Mapping[str, tuple[str, Mapping[str, str]]],
    families: Sequence[str],
    scales: Sequence[float],
    say: Callable[[str], None],
    **settings: int | str,
) -> dict[tuple[str, float], Results]:
    """Plays all strategies on all families at all scales, with the numbers `simulate` gives.

    Args:
      process: which of several processes this one is.
      folder: a folder that all of them see; it will hold a study, whose blocks another run with
        the same options reuses.
      strategies: labels with the strategy's name and parameters.
      families, scales: of the losses.
      say: told in single lines what is reused, changed or damaged.
      settings: arms, rounds, seeds, seed, checkpoints and dtype, as in a study file.

    Returns:
      By (family, scale) the results of all strategies; nothing if this is not process 0.
    """
    lines = [f"{key} = {json.dumps(value)}" for key, value in settings.items()]
    for label, (name, parameters) in strategies.items():
        given = {"strategy": name, **parameters}
        lines += [f'[strategies."{label}"]', *(f"{k} = {json.dumps(v)}" for k, v in given.items())]
    for family in families:
        lines += [f"[losses.{family}]", f"scale = {json.dumps([float(s) for s in scales])}"]
    study = parse_study('title = "sfmab run"\n' + "\n".join(lines) + "\n", "sfmab run")
    run_study(study, folder, say, show=None, process=process)
    if process.number > 0:
        return {}
    played = load_study(folder)
    return {
        (family, scale): Results(played.on((family, study.arms[0], study.rounds[0], float(scale))))
        for family in families
        for scale in scales
    }
