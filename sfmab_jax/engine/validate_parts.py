"""Validate strategies and their parts, before anything is compiled."""

from collections.abc import Callable
from textwrap import shorten
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from sfmab_jax.base import (
    Bandit,
    BanditState,
    Estimation,
    Round,
    has_own_functions,
    with_static_functions,
)
from sfmab_jax.checks import (
    PartError,
    check_arguments,
    check_kept,
    described,
    naming_errors,
    refusing,
    strongly_typed,
)
from sfmab_jax.compose import compose, is_composed, parts_of

__all__ = ["check_parameters", "check_record", "check_shapes", "is_array"]


def check_parameters(name: str, bandit: Bandit, dtype: np.dtype) -> None:
    """Refuse parameters that are not numbers in this precision: 1e300 is infinite in float32."""
    for leaf in jax.tree.leaves(bandit):
        if callable(leaf):
            continue
        number = np.asarray(leaf)
        if number.dtype.kind not in "fiub":
            raise ValueError(f"strategy {name!r} has a parameter {leaf!r}; give real numbers")
        with np.errstate(over="ignore"):
            stored = number.astype(dtype)
        if np.isnan(stored).any() or (np.isinf(stored) & np.isfinite(number)).any():
            raise ValueError(
                f"strategy {name!r} has a parameter {leaf!r}, not a number in {dtype.name}; "
                "give another"
            )


# Strategies that were found good, by all but their real numbers: tracing one takes a tenth of a
# second.
_GOOD_SHAPES: set[Any] = set()


def check_shapes(name: str, bandit: Bandit, num_arms: int, dtype: np.dtype) -> None:
    """Refuse a strategy that cannot be played: laws that are not [n], states that change type."""
    # Bare functions would be leaves, of which only the type is looked at.
    leaves, structure = jax.tree.flatten(with_static_functions(bandit))
    kind = (
        structure,
        # An integer, such as the number of an arm, may be one that is refused.
        tuple(
            (np.shape(x), x if isinstance(x, int) else getattr(x, "dtype", type(x))) for x in leaves
        ),
        num_arms,
        dtype,
    )
    if kind in _GOOD_SHAPES:
        return
    with refusing():
        _trace_round(name, bandit, num_arms, dtype)
    if is_composed(bandit):
        _check_weigh(name, parts_of(bandit)[1], num_arms, dtype)
    if len(_GOOD_SHAPES) >= 256:
        _GOOD_SHAPES.clear()
    _GOOD_SHAPES.add(kind)


# The fields of a `BanditState`, in words.
_PARTS = {
    "sampling": "sampling scheme",
    "estimation": "estimation scheme",
    "full_information": "full-information strategy",
}
# What the functions of a part, or of a bandit without parts, are given.
_GIVEN = {
    "init": "num_arms, dtype, loss_unit",
    "probabilities": "state, play",
    "estimate": "state, play, probabilities, arm, loss",
    "weigh": "state, play, probabilities, arm, loss",
    "update": "state, round",
    "wait": "state, round, missing",
}
_GIVEN_OF_BANDITS = _GIVEN | {"probabilities": "state", "update": "state, arm, loss"}


def _trace_round(name: str, bandit: Bandit, num_arms: int, dtype: np.dtype) -> None:
    """Trace the start of a game and one round, and check what every function returns."""
    subject = f"strategy {name!r}"
    if is_composed(bandit):
        parts = (
            _checked(part, f"the {words} of {subject}", f"state.{field}", num_arms)
            for part, (field, words) in zip(parts_of(bandit), _PARTS.items(), strict=True)
        )
        checked = compose(*parts)._replace(feedback=bandit.feedback)
    else:
        checked = _checked(bandit, subject, "state", num_arms)
    unit = jax.ShapeDtypeStruct((), dtype)
    state = strongly_typed(jax.eval_shape(lambda unit: checked.init(num_arms, dtype, unit), unit))
    if is_composed(bandit):
        _check_play(subject, state.full_information, num_arms)
    jax.eval_shape(checked.probabilities, state)
    arm, losses = jax.ShapeDtypeStruct((), np.int32), jax.ShapeDtypeStruct((num_arms,), dtype)
    later = jax.eval_shape(
        lambda s, arm, losses: checked.update(s, arm, checked.feedback(losses, arm)),
        state,
        arm,
        losses,
    )
    if is_composed(bandit):
        for field, words in _PARTS.items():
            before, after = getattr(state, field), getattr(later, field)
            check_kept(f"update of the {words} of {subject}", f"state.{field}", before, after)
        if (wait := parts_of(checked)[2].wait) is not None:
            waited = jax.eval_shape(wait, later.full_information, arm, arm)
            what = f"wait of the full-information strategy of {subject}"
            check_kept(what, "state.full_information", later.full_information, waited)
    else:
        check_kept(f"update of {subject}", "state", state, later)


def _checked(part: Any, subject: str, place: str, num_arms: int) -> Any:
    """Return a part, or a bandit, with functions that check what they are given and return."""
    given = _GIVEN_OF_BANDITS if isinstance(part, Bandit) else _GIVEN
    shapes = {"probabilities": (num_arms,), "estimate": (num_arms,), "weigh": ()}

    def checked(kind: str) -> Callable[..., Any]:
        function, what = getattr(part, kind), f"{kind} of {subject}"
        hint = f"define {kind}({given[kind]})"
        if not callable(function):
            raise PartError(f"{what} is {shorten(repr(function), 80)}; {hint}")
        check_arguments(what, function, given[kind], hint)

        def call(*arguments: Any) -> Any:
            with naming_errors(what):
                returned = function(*arguments)
            if kind in shapes:
                _check_shape(what, returned, shapes[kind])
                if kind == "probabilities":
                    _check_floats(what, returned)
            else:
                _check_leaves(what, place, returned)
            return returned

        return call

    kinds = [kind for kind in given if kind in part._fields]
    for kind in ("weigh", "wait"):
        if getattr(part, kind, given) is None:  # it may be left out
            kinds.remove(kind)
    return part._replace(**{kind: checked(kind) for kind in kinds})


def _check_shape(what: str, returned: Any, shape: tuple[int, ...]) -> None:
    """Refuse what is not an array of this shape."""
    if not is_array(returned) or np.shape(returned) != shape:
        text = f"shape {list(np.shape(returned))}" if is_array(returned) else described(returned)
        wanted = "one number for each arm, " if shape else "a number, "
        raise PartError(f"{what} returns {shorten(text, 80)}; return {wanted}{list(shape)}")


def _check_floats(what: str, law: Any) -> None:
    """Refuse an array of integers, truth values or small floats for a law."""
    if law.dtype not in (np.float32, np.float64):
        raise PartError(
            f"{what} returns {described(law)}; return a law of play's type, as by "
            "law.astype(play.dtype)"
        )


def is_array(value: Any) -> bool:
    """Whether a value is an array or a number; keys are, texts are not."""
    if isinstance(value, np.ndarray | np.generic):
        return value.dtype.kind in "fiubc"
    return isinstance(value, jax.Array | int | float)


def _check_leaves(what: str, place: str, state: Any) -> None:
    """Refuse a state with a leaf that is no array, or that is a random key."""
    for path, leaf in jax.tree.leaves_with_path(state):
        where = f"{place}{jax.tree_util.keystr(path)}"
        if not is_array(leaf):
            raise PartError(
                f"{what} puts {shorten(repr(leaf), 60)} in {where}; a state holds arrays and "
                "numbers: leave the rest to the function that makes the part"
            )
        if isinstance(leaf, jax.Array) and jax.dtypes.issubdtype(leaf.dtype, jax.dtypes.prng_key):
            raise PartError(
                f"{what} has a random key in {where}; parts are pure functions of what was played "
                "and get no random numbers of their own"
            )


def _check_play(subject: str, state: Any, num_arms: int) -> None:
    """Refuse a full-information strategy whose state has no play [n]."""
    what = f"the full-information strategy of {subject}"
    if not hasattr(state, "play"):
        raise PartError(
            f"{what} has the state {described(state)}, without play; return a NamedTuple with "
            f"the field play, p_{{t+1}} [{num_arms}]"
        )
    shape = getattr(state.play, "shape", None)
    if shape != (num_arms,):
        raise PartError(
            f"{what} has play {described(state.play)}; give one number for each arm, [{num_arms}]"
        )
    if state.play.dtype.kind not in "fV":
        raise PartError(
            f"{what} has play {described(state.play)}; make it of the dtype that init is given"
        )


def _check_weigh(name: str, estimation: Estimation, num_arms: int, dtype: np.dtype) -> None:
    """Refuse a user's ``weigh`` that is not what ``estimate`` has at the arm, and 0 elsewhere."""
    if estimation.weigh is None or has_own_functions(estimation):
        return
    rounds, generator = 2, np.random.default_rng(0)
    laws = (0.5 / num_arms + 0.5 * generator.dirichlet(np.ones(num_arms), rounds)).astype(dtype)
    arms = np.array([0, num_arms - 1], np.int32)
    losses = generator.uniform(0.1, 1, rounds).astype(dtype)

    @jax.jit
    def first_rounds(estimation: Any, laws, arms, losses) -> list[Any]:
        state, estimates = estimation.init(num_arms, dtype, jnp.ones((), dtype)), []
        for law, arm, loss in zip(laws, arms, losses):
            arguments = (state, law, law, arm, loss)
            estimates.append((estimation.estimate(*arguments), estimation.weigh(*arguments)))
            state = estimation.update(state, Round(law, law, arm, loss, *estimates[-1]))
        return estimates

    made = first_rounds(estimation, list(laws), list(arms), list(losses))
    for t, (arm, (estimate, weighed)) in enumerate(zip(arms, made)):
        estimate, weighed = np.asarray(estimate), np.asarray(weighed)
        expected = np.where(np.arange(num_arms) == arm, weighed, 0)
        largest = np.maximum(np.abs(estimate).max(), np.abs(weighed))
        off = np.abs(estimate - expected) > 1e-3 * largest  # never where one is not a number
        if off.any():
            i = int(np.argmax(off))
            whose = "the arm that was played" if i == arm else f"arm {i}, which was not played"
            raise ValueError(
                f"weigh of the estimation scheme of strategy {name!r} does not agree with "
                f"estimate: in round {t + 1}, with arm {arm} played, estimate has "
                f"{estimate[i]:.4g} for {whose}, and weigh says {expected[i]:.4g}; mend one of "
                "them, or leave out weigh, which is for estimates that are 0 on all other arms"
            )


def check_record(
    record: Callable[[BanditState], Any] | None, bandit: Bandit, num_arms: int, dtype: np.dtype
) -> None:
    """Refuse a record that is no function, or that returns what cannot be kept in arrays."""
    if record is None:
        return
    if not callable(record):
        raise ValueError(f"record is {record!r}; give a function of the bandit's state, or None")

    def check_leaves() -> None:
        with naming_errors("record"):
            kept = record(bandit.init(num_arms, dtype))
        for leaf in jax.tree.leaves(kept):
            if not isinstance(leaf, jax.Array | np.ndarray | np.generic | int | float):
                raise ValueError(f"record returned {leaf!r}; return arrays, or a pytree of them")

    with refusing():
        jax.eval_shape(check_leaves)
