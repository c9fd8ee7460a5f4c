"""How games are played. The mathematics knows nothing of batches, chunks or devices.

A run is a rectangle of games and rounds. It is cut like this:

              rounds ------------------------------------------------>
              |<------------ chunk ------------>|<---- chunk ----> ...
              |<- window ->|<- window ->| ...
    batch     +------------+------------+-------+-----------------
      group   |  lane = game              one program plays a group
              |  lane = game              from window to window, and
              |  ...                      group after group
      group   |  lane = game
              |  ...
    batch     +------------+------------+-------+-----------------
      ...

    game    one loss sequence, one seed, one strategy, all rounds
    lane    the place of a game in the last axis of every array
    group   the games that are played side by side; what a game's bits may depend on
    batch   the groups that share one stream of losses; one thread plays it
    chunk   the rounds that one call of the compiled program plays
    window  the rounds whose losses are handed to the lanes together

A batch is played a few groups at a time: a *call* of the compiled program takes them, one after
the other, through one chunk. A study cuts its own work into cells, blocks and spans, which are
explained there. Two smaller units have one home each: a *piece*, 16 rounds of losses made together
(`loss_stream`), and a *tile*, the lanes of a group that one kernel plays (`pallas`).

One round goes: `loss_stream` (l_t) -> `rounds.play_round_of_game` (law, arm, feedback, estimate,
update, by the parts of the strategy and `numerics`) -> `rounds` (sums, checkpoints). The update is
`compose._update`; for Algorithm 1 it goes on to `full_information.ada_ftrl._update`. Around it:

    layout       the sizes of all of the above
    run          compile, stream the losses, play a batch
    measure      the norms of the loss sequences
    observer     what may be followed beside the regret
    gather       results in the order of the games
    resume       bookmarks of long runs
    threads, progress, validate
    lanes/       one game as many on CPU: the batching transform (private)
    pallas/      the fused engine: a chunk of rounds in one kernel (private)
"""

from sfmab_jax.engine.lanes import over_lanes
from sfmab_jax.engine.loss_stream import LossStream

__all__ = ["LossStream", "over_lanes"]
