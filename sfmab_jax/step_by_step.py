"""step_by_step: one game as a generator of its rounds, for teaching and debugging."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from sfmab_jax.base import Bandit, BanditState, Round, with_static_functions
from sfmab_jax.checks import check_integer
from sfmab_jax.compose import learn, observe, parts_of
from sfmab_jax.engine import over_lanes
from sfmab_jax.engine.loss_stream import (
    LossProcess,
    LossStream,
    early_values,
    round_maker,
    start_sequences,
)
from sfmab_jax.engine.rounds import draw_of_round
from sfmab_jax.engine.run import keys_of_games
from sfmab_jax.engine.validate import check_dtype, check_rounds, unit_of_losses
from sfmab_jax.engine.validate_parts import check_parameters, check_shapes
from sfmab_jax.losses import LossSequence, as_loss_sequence
from sfmab_jax.losses.sequence import shown_of
from sfmab_jax.numerics.double_word import Sum
from sfmab_jax.numerics.threefry import pinned_generator, root_key

__all__ = ["Step", "step_by_step"]

# Rounds whose losses are made together, and lanes that an adversary's are made in.
_CHUNK_ROUNDS, _LANES = 128, 16


class Step(NamedTuple):
    """Round t of one game, in the order of Algorithm 1.

    All but the states count losses as the sequence gives them; the states do, too, unless losses
    are above 1e6 or below 1e-6, see `Result`. What a strategy does not have is None.

    Attributes:
      t: the round, 1, 2, ...
      play: p_t [n], the play of F.
      probabilities: p'_t [n], the law of the arm, made of p_t by S.
      arm: i_t, drawn from p'_t.
      losses: l_t [n], which the strategy sees in full information only.
      loss: l_t(i_t).
      estimate: l~_t [n], by E.
      mass: Gamma_t(gamma_{t-1}), of adaptive exploration.
      exploration: gamma_t, with which p'_{t+1} will be made.
      gap: M_t(eta_{t-1}), or what takes the place of the mixability gap in AdaFTRL.
      learning_rate: eta_t, with which p_{t+1} was made, for the potential that F has here.
      next_play: p_{t+1} [n].
      regret: sum_s l_s(i_s) - min_i sum_s l_s(i) over the rounds s <= t.
      expected_regret: the same with l_s.p'_s in place of l_s(i_s).
      before: the states of S, E and F before the round; gamma_{t-1} and eta_{t-1} are in them.
      after: the states after it.
    """

    t: int
    play: np.ndarray
    probabilities: np.ndarray
    arm: int
    losses: np.ndarray
    loss: float
    estimate: np.ndarray
    mass: float | None
    exploration: float | None
    gap: float | None
    learning_rate: float | None
    next_play: np.ndarray
    regret: float
    expected_regret: float
    before: BanditState
    after: BanditState

    def __str__(self) -> str:
        """The quantities by their names in the paper, a line each."""
        named = {
            "p_t": self.play,
            "p'_t": self.probabilities,
            "i_t": self.arm,
            "l_t": self.losses,
            "l_t(i_t)": self.loss,
            "l~_t": self.estimate,
            "Gamma_t": self.mass,
            "gamma_t": self.exploration,
            "M_t": self.gap,
            "eta_t": self.learning_rate,
            "p_{t+1}": self.next_play,
            "regret": self.regret,
        }
        lines = [f"round {self.t}"]
        for name, value in named.items():
            if isinstance(value, np.ndarray):
                lines.append(f"  {name:8} {np.array2string(value, precision=4, threshold=20)}")
            elif value is not None:
                lines.append(f"  {name:8} {value:.6g}")
        return "\n".join(lines)


def step_by_step(
    bandit: Bandit,
    losses: LossSequence | Any,
    *,
    num_rounds: int | None = None,
    seed: int = 0,
    sequence: int = 0,
    game: int = 0,
    dtype: Any = jnp.float32,
) -> Iterator[Step]:
    """Play one game as a generator that yields every quantity of every round, by its name.

    It is the game of sequence k and seed s that `simulate` plays in a run of the same ``seed``: the
    losses are the same bits, and so are the random bits of the arms. Only the arithmetic of a
    strategy may round differently, as it is compiled for one game here and for many there. Where
    that moves a law past a random number, another arm is drawn and the two games part: in float32
    it happened to 2 of 105 games within 10,000 rounds (3 of every strategy).

    Every function of the parts is called once in a round, so ``jax.debug.print`` in one prints once
    (in `simulate`, once for each group of games played side by side). Within ``with
    jax.disable_jit():`` nothing is compiled: ``print`` and ``breakpoint()`` work in the parts, too.

    Args:
      bandit: made by `compose`, as all of `sf.strategies` are.
      losses: a `LossSequence`, or an array [T, n] or [K, T, n].
      num_rounds: T, as in `simulate`. The generator may be left at any round.
      seed: names the run.
      sequence: k, the number of the loss sequence, from 0. Where every game of a run has a sequence
        of its own, as by default on random families, this is the number of the game.
      game: s, the number of the seed on that sequence, from 0.
      dtype: float32, or float64 when JAX has it enabled.

    >>> import sfmab_jax as sf
    >>> losses = [[1.0, 0.0], [0.5, 2.0], [1.0, 0.0]]
    >>> for step in step_by_step(sf.strategies.scale_free(), losses):
    ...     print(step.t, step.probabilities.round(3), step.arm, step.loss, step.estimate)
    1 [0.5 0.5] 1 0.0 [0. 0.]
    2 [0.5 0.5] 1 2.0 [0. 4.]
    3 [0.702 0.298] 1 0.0 [0. 0.]
    """
    if not isinstance(bandit, Bandit):
        raise ValueError(
            f"bandit is {bandit!r}; give a Bandit, as made by sf.strategies.scale_free() or "
            "sf.compose(...)"
        )
    parts_of(bandit)
    family = as_loss_sequence(losses)
    dtype = check_dtype(dtype)
    check_parameters("strategy", bandit, dtype)
    check_shapes("strategy", bandit, family.num_arms, dtype)
    rounds = check_rounds(num_rounds, family)
    most = 2**31 - 1 if family.num_sequences is None else family.num_sequences - 1
    k = check_integer("sequence", sequence, 0, most)
    s = check_integer("game", game, 0, 2**31 - 1)
    run_seed = check_integer("seed", seed, 0, 2**32 - 1)
    unit = unit_of_losses(family.magnitude, dtype)
    made = _stream if family.is_oblivious else _answers
    losses_of = made(family, k, run_seed, unit, dtype)
    with pinned_generator(), jax.disable_jit(False):
        key = keys_of_games(root_key(run_seed), jnp.uint32([k]), jnp.uint32([s]))[:, 0]
    state = bandit.init(family.num_arms, dtype, jnp.asarray(1 / unit, dtype))
    return _steps(bandit, losses_of, state, key, rounds, unit)


# (t, i_{t-1}, () -> p'_t [n]) -> l_t [n], in units; rounds are asked for in order.
_LossesOf = Callable[[int, int, Callable[[], Array]], np.ndarray]


def _stream(family: LossSequence, k: int, seed: int, unit: float, dtype: np.dtype) -> _LossesOf:
    """Return the losses of one sequence, which are made some rounds at a time."""
    stream = LossStream(
        family, np.array([k]), seed=seed, unit=unit, dtype=dtype, chunk_rounds=_CHUNK_ROUNDS
    )
    chunk = np.zeros(0)

    def losses_of(t: int, last_arm: int, law: Callable[[], Array]) -> np.ndarray:
        nonlocal chunk
        place = (t - 1) % _CHUNK_ROUNDS
        if place == 0:
            chunk = np.asarray(stream.chunk(t))[:, :, 0]
        return chunk[place]

    return losses_of


def _answers(family: LossSequence, k: int, seed: int, unit: float, dtype: np.dtype) -> _LossesOf:
    """Return the losses with which an adversary answers one game."""
    process = LossProcess(with_static_functions(family.next), np.asarray(1 / unit, dtype))
    # As many as are made side by side at least, all alike: the same bits as in `simulate`.
    with pinned_generator(), jax.disable_jit(False):
        keys, states = start_sequences(family, seed, np.full(_LANES, k))

    def losses_of(t: int, last_arm: int, law: Callable[[], Array]) -> np.ndarray:
        nonlocal states
        shown = (np.int32(last_arm), np.float32(law()) if family.sees == "law" else None)
        seen = [np.stack([x] * _LANES, axis=-1) for x in shown_of(family.sees, shown)]
        with pinned_generator():
            states, losses = _answer(process, states, keys, np.int32(t), tuple(seen))
        return np.asarray(losses)[:, 0]

    return losses_of


@jax.jit
def _answer(process: LossProcess, states: Any, keys: Array, round_: Array, seen: Any) -> Any:
    """Return the states after a round, and its losses [n, lanes]."""
    maker = round_maker(process, states, seen)
    values = [x[0] for x in early_values(over_lanes, maker, round_, 1)]
    return over_lanes(partial(maker.late, values))(states, keys, *seen)


def _steps(
    bandit: Bandit,
    losses_of: _LossesOf,
    state: BanditState,
    key: Array,
    num_rounds: int,
    unit: float,
) -> Iterator[Step]:
    totals, realised, expected = np.zeros(len(state.full_information.play)), 0.0, 0.0
    arm = -1
    for place in range(num_rounds):
        with jax.disable_jit(False):  # losses are made as in `simulate`
            counted = losses_of(place + 1, arm, partial(bandit.probabilities, state))
        with pinned_generator():
            seen, after = _play_round(bandit, state, key, np.int32(place + 1), counted)
        losses = counted.astype(np.float64) * unit
        arm, law = int(seen.arm), np.asarray(seen.probabilities)
        totals += losses
        realised += losses[arm]
        # Counted from the loss of the first arm: free of what is common to all arms.
        expected += losses[0] + law.astype(np.float64) @ (losses - losses[0])
        before, state = state, after
        sampler, follower = after.sampling, after.full_information
        rate = _number(getattr(follower, "learning_rate", None))
        yield Step(
            t=place + 1,
            play=np.asarray(seen.play),
            probabilities=law,
            arm=arm,
            losses=losses,
            loss=float(losses[arm]),
            estimate=np.asarray(seen.estimate) * unit,
            mass=_growth(before.sampling, sampler, "mass", unit),
            exploration=_number(getattr(sampler, "exploration", None)),
            gap=_growth(before.full_information, follower, "gaps", unit),
            learning_rate=None if rate is None else rate / unit,
            next_play=np.asarray(follower.play),
            regret=float(realised - totals.min()),
            expected_regret=float(expected - totals.min()),
            before=before,
            after=after,
        )


@jax.jit
def _play_round(
    bandit: Bandit, state: BanditState, key: Array, round_: Array, losses: Array
) -> tuple[Round, BanditState]:
    """Return round t as the parts see it, and their states after it.

    As `engine.rounds.play_round_of_game` plays it, with every part called once.
    """
    parts = parts_of(bandit)
    round_, losses = jnp.asarray(round_), jnp.asarray(losses)
    probabilities = bandit.probabilities(state)
    arm = draw_of_round(probabilities, key, round_)
    seen = observe(parts, state, probabilities, arm, bandit.feedback(losses, arm))
    return seen, learn(parts, state, seen)


def _number(value: Any) -> float | None:
    """Return a state's number; None if it has none of that name."""
    return float(value) if isinstance(value, Array) and value.ndim == 0 else None


def _growth(before: Any, after: Any, name: str, unit: float) -> float | None:
    """Return what a round added to a sum in two words; None if the state has none of that name."""
    old, new = getattr(before, name, None), getattr(after, name, None)
    if not (isinstance(old, Sum) and isinstance(new, Sum)) or jnp.ndim(new.value):
        return None
    words = [float(word) for word in (new.value, new.error, old.value, old.error)]
    return ((words[0] - words[2]) + (words[1] - words[3])) * unit
