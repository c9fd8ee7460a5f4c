"""Studies: strategies x losses x n x T x scale x seeds, from a file to a report.

`sfmab study new | check | run | report` on the command line; `load_study` reads the results.
"""

from sfmab_jax.study.config import StudyFile, read_study
from sfmab_jax.study.loaded import Study, load_study
from sfmab_jax.study.plan import plan_cells
from sfmab_jax.study.runner import run_study

__all__ = ["Study", "StudyFile", "load_study", "plan_cells", "read_study", "run_study"]
