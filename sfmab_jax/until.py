"""When a simulation has played enough: rules for ``simulate(until=...)``.

It looks at the results, plays as many games again as there are, and looks again; for the first time
at 50 games or more, as the spread of fewer is too uncertain. The intervals that the rules look at
hold at all looks together, so that one may stop whenever they please; see
`results.statistics.sequential_interval`.

    result = sf.simulate(bandit, losses, until=sf.until.precise(relative=0.02))
    results = sf.simulate(bandits, losses, until=sf.until.decided("exp3", "tsallis_inf"))
"""

from collections.abc import Callable
from typing import Literal, NamedTuple

from sfmab_jax.checks import check_integer, check_positive
from sfmab_jax.results.result import Results
from sfmab_jax.results.statistics import Over, check_level

__all__ = ["Until", "decided", "precise"]

Kind = Literal["expected", "realised", "pseudo", "policy", "tracking"]
_MOST_GAMES = 2**20


class Until(NamedTuple):
    """A rule to stop.

    Attributes:
      is_enough: ``is_enough(results)``, asked after each look; results of a single bandit are named
        "strategy".
      aim: what it waits for, in words.
      most_games: of each strategy, after which it is given up, with a warning.
      over: what its intervals are over, "family" or "sequence"; None for the default.
      names: the strategies that it compares.
    """

    is_enough: Callable[[Results], bool]
    aim: str
    most_games: int = _MOST_GAMES
    over: Over | None = None
    names: tuple[str, ...] = ()


def precise(
    *,
    relative: float | None = None,
    width: float | None = None,
    level: float = 0.95,
    kind: Kind = "expected",
    over: Over | None = None,
    most_games: int = _MOST_GAMES,
) -> Until:
    """Stop when the final mean regret of every strategy is known well enough.

    Args:
      relative: half the width of the interval, as a part of the mean.
      width: the whole width of the interval, in units of the losses; give one of the two.
      level: of confidence.
      kind: of regret.
      over: the family, or given each "sequence", as in `Result.interval`. More seeds tell more of
        each sequence of an array, but no more of the family.
      most_games: of each strategy, after which it is given up, with a warning.

    >>> import sfmab_jax as sf
    >>> rule = precise(relative=0.05)
    >>> losses = sf.losses.bernoulli(num_arms=2)
    >>> result = sf.simulate(sf.strategies.exp3(), losses, num_rounds=50, num_seeds=64, until=rule)
    >>> low, high = (side[0, -1] for side in result.interval())
    >>> bool(high - low <= 0.1 * result.mean()[0, -1])
    True
    """
    if (relative is None) == (width is None):
        raise ValueError(f"relative is {relative} and width is {width}; give one of them")
    check_positive(**{"width": width} if relative is None else {"relative": relative})
    check_level(level)
    aim = (
        f"intervals not wider than {width:g}"
        if relative is None
        else f"means known to within {relative:.2g} of their size"
    )

    def is_enough(results: Results) -> bool:
        for result in results.values():
            low, high = (side[:, -1] for side in result.interval(level, kind=kind, over=over))
            mean = abs(result.mean(kind, over)[:, -1])
            most = width if relative is None else 2 * relative * mean
            if not (high - low <= most).all():
                return False
        return True

    return Until(is_enough, aim, check_integer("most_games", most_games, 1, 2**31 - 1), over)


def decided(
    one: str,
    other: str,
    *,
    level: float = 0.95,
    kind: Kind = "expected",
    over: Over | None = None,
    most_games: int = _MOST_GAMES,
) -> Until:
    """Stop when it is decided which of two strategies has less final mean regret.

    That is when the interval of their paired difference does not hold zero.

    Args:
      one, other: their names.
      level, kind, over, most_games: as in `precise`.

    >>> decided("exp3", "ucb1").aim
    "a difference between 'exp3' and 'ucb1'"
    """
    check_level(level)
    if one == other:
        raise ValueError(f"one and other are both {one!r}; give the names of two strategies")

    def is_enough(results: Results) -> bool:
        _, low, high = results.difference(one, other, level=level, kind=kind, over=over)
        return bool(((low[:, -1] > 0) | (high[:, -1] < 0)).all())

    number = check_integer("most_games", most_games, 1, 2**31 - 1)
    aim = f"a difference between {one!r} and {other!r}"
    return Until(is_enough, aim, number, over, (one, other))
