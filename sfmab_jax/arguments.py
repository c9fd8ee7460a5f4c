"""Checks of what `simulate` is given, before anything is compiled."""

from collections.abc import Callable
from typing import Any

import jax
import numpy as np

from sfmab_jax.base import Bandit, BanditState

__all__ = ["check_parameters", "check_record", "check_shapes", "check_switches"]


def check_parameters(name: str, bandit: Bandit, dtype: np.dtype) -> None:
    """Refuses parameters that are not numbers in this precision: 1e300 is infinite in float32."""
    for leaf in jax.tree.leaves(bandit):
        if callable(leaf):
            continue
        given = np.asarray(leaf)
        if given.dtype.kind not in "fiub":
            raise ValueError(f"strategy {name!r} has a parameter {leaf!r}; give real numbers")
        with np.errstate(over="ignore"):
            held = given.astype(dtype)
        if np.isnan(held).any() or (np.isinf(held) & np.isfinite(given)).any():
            raise ValueError(
                f"strategy {name!r} has a parameter {leaf!r}, not a number in {dtype.name}; "
                "give another"
            )


# Strategies that were found good, by all but their numbers: tracing one takes a tenth of a second.
_GOOD_SHAPES: set[Any] = set()


def check_shapes(name: str, bandit: Bandit, num_arms: int, dtype: np.dtype) -> None:
    """Refuses a strategy whose p'_t is not [n], or whose state does not keep its types."""
    leaves, structure = jax.tree.flatten(bandit)
    kind = (
        structure,
        tuple((np.shape(x), getattr(x, "dtype", type(x))) for x in leaves),
        num_arms,
        dtype,
    )
    if kind in _GOOD_SHAPES:
        return
    _trace_shapes(name, bandit, num_arms, dtype)
    if len(_GOOD_SHAPES) >= 256:
        _GOOD_SHAPES.clear()
    _GOOD_SHAPES.add(kind)


def _trace_shapes(name: str, bandit: Bandit, num_arms: int, dtype: np.dtype) -> None:
    arm, losses = jax.ShapeDtypeStruct((), np.int32), jax.ShapeDtypeStruct((num_arms,), dtype)
    state = jax.eval_shape(lambda: bandit.init(num_arms, dtype))
    shape = jax.eval_shape(bandit.probabilities, state).shape
    if shape != (num_arms,):
        raise ValueError(
            f"strategy {name!r} has probabilities of shape {list(shape)}; give [{num_arms}]"
        )
    later = jax.eval_shape(
        lambda s, arm, losses: bandit.update(s, arm, bandit.feedback(losses, arm)),
        state,
        arm,
        losses,
    )
    given: Any = jax.tree.structure(state)
    returned: Any = jax.tree.structure(later)
    if given != returned:
        raise ValueError(
            f"strategy {name!r}: update returns {returned}, not the structure of init, {given}; "
            "return the same"
        )
    for (path, before), after in zip(jax.tree.leaves_with_path(state), jax.tree.leaves(later)):
        if (before.shape, before.dtype) != (after.shape, after.dtype) and not before.weak_type:
            raise ValueError(
                f"strategy {name!r}: update makes state{jax.tree_util.keystr(path)} "
                f"{after.dtype}{list(after.shape)} of {before.dtype}{list(before.shape)}; "
                "keep its type and shape"
            )


def check_record(
    record: Callable[[BanditState], Any] | None, bandit: Bandit, num_arms: int, dtype: np.dtype
) -> None:
    """Refuses a record that is no function, or that returns what cannot be kept in arrays."""
    if record is None:
        return
    if not callable(record):
        raise ValueError(f"record is {record!r}; give a function of the bandit's state, or None")

    def kept() -> None:
        for leaf in jax.tree.leaves(record(bandit.init(num_arms, dtype))):
            if not isinstance(leaf, jax.Array | np.ndarray | np.generic | int | float):
                raise ValueError(f"record returned {leaf!r}; return arrays, or a pytree of them")

    jax.eval_shape(kept)


def check_switches(progress: Any, certificate: Any) -> None:
    """Refuses what is neither on nor off."""
    if not (progress is None or isinstance(progress, bool) or callable(progress)):
        raise ValueError(f"progress is {progress!r}; give True, False, None or a function")
    if not isinstance(certificate, bool):
        raise ValueError(f"certificate is {certificate!r}; give True or False")
