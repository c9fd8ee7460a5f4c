"""Runs go on from their bookmarks, wherever they stopped, and end with the same bits."""

import numpy as np
import pytest
from study_folders import StoppedError

import sfmab_jax as sf
from sfmab_jax.engine.resume import Bookmarks


class Memory:
    """Bookmarks in a dictionary; stops the run at a given writing."""

    def __init__(self, span_rounds: int):
        self.span_rounds, self.kept, self.resumed = span_rounds, {}, 0
        self.written, self.stop_at = [], None

    def write(self, place, done, arrays):
        if len(self.written) == self.stop_at:
            raise StoppedError
        self.written.append((place, done))
        self.kept[place] = done, [np.array(array) for array in arrays]

    def add(self, rounds):
        self.resumed += rounds

    def bookmarks(self):
        return Bookmarks(self.span_rounds, self.kept.get, self.write, self.add)


GAMES = {
    "num_rounds": 250,
    "num_seeds": 180,  # of three sequences: more than a batch of 512 games
    "num_sequences": 3,
    "checkpoints": 9,
    "chunk_rounds": 24,  # no multiple of the window in which losses are made
    "certificate": True,
    "arm_counts": True,
    "switches": 2,
    "record": lambda state: state.full_information.learning_rate,
}


@pytest.mark.parametrize("family", ["random_walk", "uniform", "permuted"])
def test_a_run_goes_on_from_its_bookmarks_bitwise(family):
    """Stopped at several writings in turn; families with and without memory."""
    losses = (
        sf.losses.permuted(sf.losses.random_walk(num_arms=4))
        if family == "permuted"
        else sf.losses.LOSSES[family](num_arms=4)
    )
    bandit = sf.strategies.scale_free()
    games = GAMES | {"pseudo_regret": losses.mean is not None}
    through = sf.simulate(bandit, losses, **games)
    memory, played = Memory(span_rounds=50), []
    for stop_at in (1, 2, 7):
        memory.stop_at = stop_at
        with pytest.raises(StoppedError):
            sf.simulate(bandit, losses, **games, bookmarks=memory.bookmarks())
    memory.stop_at, memory.resumed = None, 0
    resumed = sf.simulate(
        bandit, losses, **games, bookmarks=memory.bookmarks(), progress=played.append
    )
    assert memory.resumed > 0
    assert sum(played) + memory.resumed == 250 * 540
    for name in ("regret", "expected_regret", "records"):
        np.testing.assert_array_equal(getattr(resumed, name), getattr(through, name))
    for name, array in through.certificate._asdict().items():
        np.testing.assert_array_equal(getattr(resumed.certificate, name), array)
    for name, array in through.kept.items():
        np.testing.assert_array_equal(resumed.kept[name], array)
    for one, other in zip(resumed.norms, through.norms):
        np.testing.assert_array_equal(one, other)
    # What is finished is read, not played again: nothing is written in the first chunk.
    before = len(memory.written)
    sf.simulate(bandit, losses, **games, bookmarks=memory.bookmarks())
    assert len(memory.written) == before


def test_runs_of_one_span_keep_nothing_and_others_each_span():
    memory = Memory(span_rounds=250)
    losses = sf.losses.uniform(num_arms=4)
    games = GAMES | {"num_seeds": 10}
    sf.simulate(sf.strategies.scale_free(), losses, **games, bookmarks=memory.bookmarks())
    assert not memory.written
    memory.span_rounds = 50
    sf.simulate(sf.strategies.scale_free(), losses, **games, bookmarks=memory.bookmarks())
    # The ends of the first chunks of 24 rounds at or after 50, 100, ..., and the last round.
    assert memory.written == [("games_0_0_512", done) for done in (72, 120, 168, 216, 250)]


def test_places_of_another_arrangement_are_not_used():
    memory = Memory(span_rounds=50)
    losses, bandit = sf.losses.uniform(num_arms=4), sf.strategies.scale_free()
    games = GAMES | {"num_seeds": 10}
    expected = sf.simulate(bandit, losses, **games, bookmarks=memory.bookmarks())
    for place, (done, arrays) in memory.kept.items():
        memory.kept[place] = done, [array[..., :-1] for array in arrays]
    got = sf.simulate(bandit, losses, **games, bookmarks=memory.bookmarks())
    np.testing.assert_array_equal(got.regret, expected.regret)
    assert memory.resumed == 0
