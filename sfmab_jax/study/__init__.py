"""Studies: strategies x losses x n x T x scale x seeds, from a file to a report.

`sfmab study new | check | run | report` on the command line; `load_study` reads the results. A
study is cut into

    cell     one strategy on one loss family with one n, T and scale
    block    some seeds of a cell: what is played and stored at a time, by one process
    span     the rounds of a block between two bookmarks, from which it resumes

    config, settings, parameters, factories    the study file, checked
    cells, blocks, cost, calibration    how it is cut, and what it will cost
    runner, play_block, spans, same_losses, display    play it
    store, manifest, folder, changes, lock, provenance    its folder
    hosts, processes, shared_run    several processes
    study, analysis, figures, document, report    read the results and report on them
"""

from sfmab_jax.study.cells import plan_cells
from sfmab_jax.study.config import StudyFile, read_study
from sfmab_jax.study.runner import run_study
from sfmab_jax.study.study import Study, load_study

__all__ = ["Study", "StudyFile", "load_study", "plan_cells", "read_study", "run_study"]
