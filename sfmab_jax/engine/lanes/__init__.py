"""Play many games as lanes: the batching transform, and what makes XLA on CPU compile it well.

Private to `engine`.

    transform    replay the operations of one game with the games as the last axis
    rules        how each operation is done with lanes
    written_out  random draws as arithmetic on words
    two_parts    what depends on one argument alone, apart from the rest
    branches     which operations are done inside a branch only
    jaxpr        a traced function as a flat list of operations
    reductions   several sums over the arms in one pass
    compile_cpu  compile a loop over rounds as one function of machine code

``exact`` has one meaning throughout: minima and maxima pass on a NaN, and choices and loops keep
the sign of a zero. The package's own parts need neither and are faster without; users' parts are
always mapped exactly.
"""

from sfmab_jax.engine.lanes.compile_cpu import compile_loop
from sfmab_jax.engine.lanes.reductions import keep_shared
from sfmab_jax.engine.lanes.transform import OverGames, over_lanes
from sfmab_jax.engine.lanes.two_parts import depends_on_first, in_two_parts

__all__ = [
    "OverGames",
    "compile_loop",
    "depends_on_first",
    "in_two_parts",
    "keep_shared",
    "over_lanes",
]
