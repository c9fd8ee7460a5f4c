"""What property tests share: their settings, the functions they are about, and random inputs."""

import types
from collections.abc import Callable

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import sfmab_jax as sf

NUM_ARMS = 3
EPS = float(np.finfo(np.float32).eps)
# Functions with a property test, by the test that is about them.
HELD: dict[Callable, list[str]] = {}


def property_of(*functions: Callable, examples: int = 20, **drawn):
    """A hypothesis test over ``drawn`` that states something about each of ``functions``.

    The same examples on every run, and few of them: what is new is compiled once, so that a
    hundred cost little more than ten.
    """

    def mark(test):
        for function in functions:
            HELD.setdefault(function, []).append(test.__name__)
        quiet = settings(
            deadline=None,
            derandomize=True,
            database=None,
            max_examples=examples,
            suppress_health_check=list(HealthCheck),
        )
        return quiet(given(**drawn)(test))

    return mark


def public_modules() -> list[types.ModuleType]:
    """`sfmab_jax`, its studies, and every module that can be reached through ``__all__``."""
    import sfmab_jax.study

    found, waiting = [], [sf, sfmab_jax.study]
    while waiting:
        module = waiting.pop()
        if module not in found:
            found.append(module)
            named = (getattr(module, name) for name in module.__all__)
            waiting += [value for value in named if isinstance(value, types.ModuleType)]
    return found


def public_functions() -> dict[Callable, str]:
    """Every public function with its name."""
    return {
        value: f"{module.__name__}.{name}"
        for module in public_modules()
        for name in module.__all__
        if isinstance(value := getattr(module, name), types.FunctionType)
    }


def arrays(*shape: int, low: float = -1.0, high: float = 1.0):
    """float64 arrays of float32 numbers between ``low`` and ``high``; none is denormal."""
    number = st.floats(low, high, width=32, allow_subnormal=False)
    size = int(np.prod(shape))
    return st.lists(number, min_size=size, max_size=size).map(
        lambda values: np.array(values).reshape(shape)
    )


def points(num_arms: int = NUM_ARMS):
    """Points inside the simplex, float64 [n], no coordinate below about 1e-6."""
    weights = arrays(num_arms, low=2.0**-19, high=1.0)
    return weights.map(lambda w: w / w.sum())


powers_of_two = st.integers(-20, 20).map(lambda k: 2.0**k)
seeds = st.integers(0, 2**32 - 1)
not_positive_numbers = st.sampled_from([0.0, -1.0, float("nan"), float("inf"), "x", None, [1.0]])
