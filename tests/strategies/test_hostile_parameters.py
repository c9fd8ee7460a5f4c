"""Parameters out of range: every factory works with finite numbers, or names what is wrong."""

import inspect
import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import sfmab_jax as sf
from sfmab_jax.base import with_static_functions
from sfmab_jax.engine.validate_parts import check_parameters

FLOAT32 = np.dtype("float32")
STRANGE = {
    "zero": 0,
    "zero_float": 0.0,
    "minus_one": -1,
    "minus_half": -0.5,
    "tiny": 1e-45,
    "least_normal": 1.2e-38,
    "half": 0.5,
    "one": 1,
    "nan": float("nan"),
    "infinite": float("inf"),
    "minus_infinite": -float("inf"),
    "huge": 1e30,
    "minus_huge": -1e30,
    "beyond_float32": 1e300,
    "beyond_float64": 10**400,
    "vector": np.ones(3),
    "vector_of_one": np.ones(1),
    "jax_vector": jnp.ones(3),
    "jax_nan": jnp.float32(np.nan),
    "jax_minus_one": jnp.float32(-1),
    "list": [1.0, 2.0],
    "ragged": [[1.0], [1.0, 2.0]],
    "string": "1.5",
    "true": True,
    "complex": 1j,
}


def wants_number(parameter):
    """Whether a parameter is a number: by its default, or else by its type."""
    if isinstance(parameter.default, int | float):
        return not isinstance(parameter.default, bool)
    return "float" in str(parameter.annotation)


def numeric_parameters(factories):
    return [
        pytest.param(make, name, id=f"{make.__module__.split('.')[1]}.{make.__name__}-{name}")
        for make in factories
        for name, parameter in inspect.signature(make).parameters.items()
        if parameter.kind is not parameter.VAR_KEYWORD and wants_number(parameter)
    ]


PARTS = [
    sf.sampling.favouring_last,
    sf.sampling.fixed,
    sf.sampling.gap_exploration,
    sf.sampling.lifted,
    sf.estimation.balanced_skipping,
    sf.estimation.centred,
    sf.estimation.doubling_skipping,
    sf.estimation.gain_weighted,
    sf.estimation.reduced_variance,
    sf.full_information.ada_ftrl,
    sf.full_information.balanced_ftrl,
    sf.full_information.barrier_descent,
    sf.full_information.constant,
    sf.full_information.doubling_ftrl,
    sf.full_information.fixed_share,
    sf.full_information.ftrl,
    sf.full_information.restarting_ftrl,
    sf.potentials.tsallis,
]
COMBINATORS = [
    sf.losses.clipped,
    sf.losses.enveloped,
    sf.losses.scaled,
    sf.losses.shifted,
]
# What the parts need besides their numbers.
OTHERS = {
    "potential": sf.potentials.log_barrier(),
    "threshold": lambda t, n: 1 / (t + n),
    "learning_rate": 0.1,
    "share": 0.01,
    "weight": lambda t, n: 1 / (t + n),
    "exploration": 0.1,
    "centre": 0.0,
    "num_rounds": 100,
    "losses": sf.losses.uniform(3),
    "envelope": lambda t: jnp.sqrt(t),
    "factor": 2.0,
    "offset": 1.0,
}

# By other names in messages.
ALIASES = {"factor": "scale", "rate": "learning_rate"}


def arguments_for(make, name, value):
    parameters = inspect.signature(make).parameters
    needed = [key for key, p in parameters.items() if p.default is p.empty and key in OTHERS]
    return {key: OTHERS[key] for key in needed} | {name: value}


def made(make, name, value):
    """What the factory makes; None if it refuses, in words that name the parameter and value."""
    try:
        return make(**arguments_for(make, name, value))
    except (ValueError, TypeError) as error:
        message = str(error)
    names = {name, name.removesuffix("s"), name.removesuffix("es"), ALIASES.get(name, name)}
    assert any(f"{word} is " in message or f"{word}, " in message for word in names), message
    # Of several numbers, one.
    values = [value, *value] if isinstance(value, list | str | np.ndarray) else [value]
    assert any(repr(one) in message or str(one) in message for one in values), message
    return None


def takes(make, name):
    """Yield what the factory makes of the strange values that it takes, None where it may."""
    default = inspect.signature(make).parameters[name].default
    for value in STRANGE.values() if default is None else [*STRANGE.values(), None]:
        result = made(make, name, value)
        if result is not None:
            yield value, result


@jax.jit
def _laws(bandit, row):
    """The laws of the first two rounds, the first played on the likeliest arm."""
    state = bandit.init(3, FLOAT32)
    law = bandit.probabilities(state)
    arm = jnp.argmax(law).astype(jnp.int32)
    state = bandit.update(state, arm, bandit.feedback(row, arm))
    return jnp.stack([law, bandit.probabilities(state)])


@pytest.mark.parametrize(("make", "name"), numeric_parameters(sf.strategies.STRATEGIES.values()))
def test_strategies(make, name):
    """As `simulate` plays them: laws on the simplex, whatever the parameter."""
    for value, bandit in takes(make, name):
        check_parameters("strategy", bandit, FLOAT32)
        as_arrays = jax.tree.map(
            lambda x: x if callable(x) else jnp.asarray(x, None if name == "arm" else FLOAT32),
            bandit,
        )
        if name == "arm" and value not in range(3):
            with pytest.raises(ValueError, match="there are 3 arms"):
                bandit.init(3)
            continue
        laws = np.asarray(_laws(with_static_functions(as_arrays), np.float32([0.25, 0.5, 1])))
        assert np.isfinite(laws).all(), value
        assert (laws >= 0).all(), value
        np.testing.assert_allclose(laws.sum(axis=1), 1, rtol=1e-5, err_msg=str(value))


@pytest.mark.parametrize(("make", "name"), numeric_parameters(PARTS))
def test_parts(make, name):
    for value, part in takes(make, name):
        check_parameters("part", part, FLOAT32)
        if hasattr(part, "init") and name != "arm":
            state = part.init(3, FLOAT32, jnp.float32(1))
            assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(state)), value


@pytest.mark.parametrize(
    ("make", "name"), numeric_parameters([*sf.losses.LOSSES.values(), *COMBINATORS])
)
def test_losses(make, name):
    for value, losses in takes(make, name):
        if 1e-37 <= losses.magnitude <= 8e37:  # `simulate` refuses others
            family = with_static_functions((losses.init, losses.next, losses.mean))
            loss, mean = loss_and_mean(*family)
            assert np.isfinite(loss).all(), value
            assert mean is None or np.isfinite(mean).all(), value


@jax.jit  # which parameters share, as they are leaves
def loss_and_mean(init, next_loss, mean):
    key = jax.random.key(0)
    state, loss = next_loss(init(key), key, jnp.int32(1))
    return loss, None if mean is None else mean(state, jnp.int32(1))


@pytest.mark.parametrize("weights", [[1, np.inf], [1, np.nan], ["a", 1], 3, None, [1], [[1, 2]]])
def test_weights_that_are_none(weights):
    with pytest.raises(ValueError, match=f"weights are {re.escape(repr(weights))}; give 2"):
        sf.losses.mixed([sf.losses.uniform(3)] * 2, weights)


@pytest.mark.parametrize("lengths", [3, None, [], [1, 2], "x"])
def test_lengths_that_are_none(lengths):
    with pytest.raises(ValueError, match=f"(lengths are|length is) {re.escape(repr(lengths))}; "):
        sf.losses.concatenated([sf.losses.uniform(3)] * 2, lengths)


@pytest.mark.parametrize("offset", ["x", None, 1e300, [1, 2], [np.nan] * 3])
def test_offsets_that_are_none(offset):
    with pytest.raises(ValueError, match=f"offset is {re.escape(repr(offset))}; give a finite"):
        sf.losses.shifted(sf.losses.uniform(3), offset)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: sf.strategies.uni_inf_horizon(num_rounds=1), "num_rounds is 1; give 2 or more"),
        (
            lambda: sf.strategies.broad_increasing_horizon(num_rounds=1),
            "num_rounds is 1; give 2 or more",
        ),
        (
            lambda: sf.strategies.log_barrier_horizon(num_rounds=0.5),
            "num_rounds is 0.5; give 1 or more",
        ),
        (lambda: sf.strategies.exp3_p_horizon(failure=0.0), "failure is 0.0; give a probability"),
        (lambda: sf.strategies.exp3(scale=jnp.ones(3)), r"scale is Array\(\[1\., 1\., 1\.\]"),
        (lambda: sf.strategies.broad(rate=1e-30), "rate is 1e-30; give 1e-24 or more"),
        (lambda: sf.strategies.fixed_arm(None), "arm is None; give an integer"),
        (lambda: sf.strategies.exp3(scale="1"), "scale is '1'; give a number"),
        (lambda: sf.strategies.exp3(scale=True), "scale is True; give a number"),
    ],
)
def test_the_value_and_the_fix_are_named(make, message):
    with pytest.raises(ValueError, match=message):
        make()


ENTROPY = sf.potentials.negative_entropy()
# By the parameter that is a function.
WITH_FUNCTIONS = [
    ("exploration", lambda f: sf.sampling.scheduled(f)),
    ("threshold", lambda f: sf.sampling.truncated(f)),
    ("bonus", lambda f: sf.estimation.gain_weighted(bonus=f)),
    ("bias", lambda f: sf.estimation.implicit_exploration(f)),
    ("threshold", lambda f: sf.estimation.reduced_variance(f)),
    ("limit", lambda f: sf.estimation.skipping(f)),
    ("gap", lambda f: sf.full_information.ada_ftrl(ENTROPY, gap=f)),
    ("learning_rate", lambda f: sf.full_information.ftrl_by_arms(ENTROPY, f)),
    ("bonus", lambda f: sf.full_information.lowest_index(f)),
    ("psi", lambda f: sf.potentials.potential(f, jnp.log)),
    ("inverse", lambda f: sf.potentials.potential(jnp.exp, f)),
    ("envelope", lambda f: sf.losses.enveloped(sf.losses.uniform(3), f)),
    ("loss", lambda f: sf.losses.from_function(f, 3)),
    ("mean", lambda f: sf.losses.from_function(lambda key, t: jnp.ones(3), 3, mean=f)),
    ("init", lambda f: sf.losses.from_recurrence(f, lambda state, key, t: (state, t), 3)),
    ("next_loss", lambda f: sf.losses.from_recurrence(lambda key: key, f, 3)),
]


@pytest.mark.parametrize(("name", "make"), WITH_FUNCTIONS)
@pytest.mark.parametrize("value", [3, -0.5, float("nan"), "x", [], True, np.ones(3)], ids=repr)
def test_functions_that_are_none(name, make, value):
    with pytest.raises(ValueError, match=f"^{name} is {re.escape(repr(value))}; give a function$"):
        make(value)


@pytest.mark.parametrize("value", [None, 3, "x", sf.sampling.adaptive, sf.estimation.skipping])
def test_schemes_that_are_none(value):
    with pytest.raises(ValueError, match=f"then is {re.escape(repr(value))}; give a sampling"):
        sf.sampling.each_arm_first(value)


@pytest.mark.parametrize("value", [None, 1, "yes", 0.5])
def test_truth_values_that_are_none(value):
    with pytest.raises(ValueError, match=f"optimistic is {value!r}; choose True or False"):
        sf.full_information.barrier_descent(0.1, optimistic=value)


@pytest.mark.parametrize("value", [None, 3, sf.losses.uniform])
def test_lists_of_losses_that_are_none(value):
    for make in (sf.losses.mixed, sf.losses.concatenated):
        with pytest.raises(ValueError, match=f"losses are {re.escape(repr(value))}; give a list"):
            make(value, [1])


@pytest.mark.parametrize("loss", [None, (1.0, 2.0), {}])
def test_a_function_that_returns_no_losses(loss):
    losses = sf.losses.from_function(lambda key, t: loss, 2, name="mine")
    with pytest.raises(ValueError, match=r"mine returns .*return the losses of the arms, an array"):
        sf.simulate(sf.strategies.uniform(), losses, num_rounds=2)


def test_traced_parameters_pass():
    """So that they can be differentiated and mapped over."""

    def first_rate(scale):
        bandit = sf.strategies.exp3_horizon(num_rounds=scale * 100, scale=scale)
        return bandit.init(3, FLOAT32).full_information.learning_rate

    rates = jax.vmap(first_rate)(jnp.float32([1, 2]))
    np.testing.assert_allclose(rates[0], rates[1] * 2**1.5, rtol=1e-6)


def test_a_device_given_twice_is_refused():
    (device, *_) = jax.local_devices()
    with pytest.raises(ValueError, match="more than once; give each device once"):
        sf.simulate(sf.strategies.uniform(), [[0.0, 1.0]], devices=[device, device])


def test_a_tsallis_power_of_jax_is_checked():
    with pytest.raises(ValueError, match="strictly between 0 and 1"):
        sf.potentials.tsallis(jnp.float32(1.5))


def test_a_strategy_that_breaks_down_is_named():
    """BROAD overflows where losses are 1e36 times the scale it was told."""
    told = sf.strategies.broad(scale=1e-36)
    losses = sf.losses.sparse(num_arms=3)
    with pytest.warns(RuntimeWarning, match="'strategy' has regret that is not finite"):
        sf.simulate(told, losses, num_rounds=100, num_seeds=8, dtype="float32")
