"""How games are played. The mathematics knows nothing of batches, chunks or devices.

A run is a rectangle of games and rounds. It is cut like this:

                    rounds ---------------------------------------------->
                    |<----------- chunk ----------->|<---- chunk ----> ...
                    |<- window ->|<- window ->| ...
    batch [ group [ lane = game    one program plays a group
          [       [ lane = game    from window to window, and
          [       [ ...            group after group
          [ group [ lane = game
          [       [ ...
    batch [ ...

    game    one loss sequence, one seed, one strategy, all rounds
    lane    a place in the last axis of every array: of one game, or in `measure` of one sequence
    group   the games played side by side; always of one width, as code of another width may
            round differently
    batch   the groups that one thread plays; a stream of losses, if there is one, is theirs
    chunk   the rounds that one call of the compiled program plays
    window  the rounds whose losses are handed to the lanes together

A batch is played a few groups at a time: a *call* of the compiled program takes them, one after
the other, through one chunk. A study cuts its own work into cells, blocks and spans, which are
explained there. Two smaller units have one home each: a *piece*, the rounds of losses that are made
together, 128, or fewer with very many arms or memory (`loss_stream`), and a *tile*, the lanes of a
group that one kernel plays (`pallas`).

A game is a loss process and a bandit. Where few games share a sequence, each lane carries the state
of its own process next to that of its bandit, and makes and measures its losses round by round.
Where many do, losses are made once, chunk by chunk, and streamed to the lanes. A sequence has the
same bits either way.

`rounds.play_round_of_game` plays a round. Line by line of Algorithm 1 (`strategies.scale_free`):

    l_t                      loss_stream.round_maker -> losses
    p'_t = (1-g) p_t + g/n   compose._probabilities -> sampling.mixing
    i_t ~ p'_t               numerics.threefry, numerics.draw
    l~_t                     compose._update -> estimation.importance
    gamma_t, the next g      compose._update -> sampling.mixing
    M_t(eta_{t-1})           full_information.ada_ftrl -> numerics.stability
                             -> potentials.log_barrier -> numerics.stability_power
                             -> numerics.stability_series
    eta_t                    full_information.ada_ftrl
    p_{t+1}                  full_information.ftrl -> numerics.simplex
                             -> potentials.log_barrier -> numerics.root_finding
    sums, checkpoints        rounds

Around it:

    layout       the sizes of all of the above
    run          compile, stream the losses, play a batch
    measure      the norms of the loss sequences
    switching    the best sequences of arms with few switches
    rows         where results of a round go
    delayed      feedback that arrives later
    tally        how often each arm was played, and the losses to be expected of it
    switching    the best sequence of arms with few switches
    delayed      feedback that arrives later
    observer     what else may be followed beside the regret
    gather       results in the order of the games
    resume       bookmarks of long runs
    threads, progress, validate, validate_parts
    lanes/       one game as many on CPU: the batching transform (private)
    pallas/      the fused engine: a chunk of rounds in one kernel (private)
"""

from sfmab_jax.engine.lanes import over_lanes
from sfmab_jax.engine.loss_stream import LossStream

__all__ = ["LossStream", "over_lanes"]
